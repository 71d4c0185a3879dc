//! The path of an event from a driver's call to the sessions' buffers.

use etl_file::{EncodedRecord, EventRecord, ExtendedItem, Guid, ext_type};
use etw_wire::limits::MAX_DATA_DESCRIPTORS;
use smallvec::SmallVec;
use zerocopy::IntoBytes;

use super::{
    checks::{self, Written},
    event::{Content, EVENT_METADATA, PROVIDER_METADATA, TIMESTAMP_OVERRIDE, WriteCall},
    filters::{Subject, instance_bit, name_of},
    limits::MAX_PER_PROVIDER,
    registration,
    routes::{Route, RouteTable, TargetSession},
    service::Context,
    session::running::{NoRoom, Session},
    unspecified::ImplicitActivity,
};
use crate::ground::{
    NtResult, NtStatus,
    abi::{EventDataDescriptor, EventDescriptor},
    irql::Irql,
    rule::Rule,
};

/// A list without allocation for up to as many items as a provider can have sessions.
type Short<T> = SmallVec<[T; MAX_PER_PROVIDER]>;

/// `EVENT_WRITE_FLAG_INPRIVATE` (ETW-6.1.9).
const IN_PRIVATE: u32 = 2;

/// Writes an event to every session that records it.
pub fn write(context: &Context, call: &WriteCall) -> NtResult {
    let routes = context.routes().now();
    let route = route(context, &routes, call.handle)?;
    route.writes.increment(context.processor());
    // Arguments are checked before sessions (ETW-1.3.15, ETW-1.1.12).
    if call.descriptor == 0
        || call.count as usize > MAX_DATA_DESCRIPTORS
        || (call.count != 0 && call.data == 0)
    {
        checks::refused_arguments(context, call);
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let descriptor: EventDescriptor = context.read(call.descriptor);
    let descriptors = data_descriptors(context, call);
    let written = Written::new(context, call, route, &descriptor, &descriptors);
    checks::arguments(&written);
    let interested = interested(route, descriptor, call.filter, call.flags);
    if interested.is_empty() {
        return Ok(());
    }
    let gathered = gather(context, &descriptors, route.honours_types);
    checks::content(&written, &gathered);
    let sessions = filtered(&interested, descriptor, &gathered);
    if sessions.is_empty() {
        return Ok(());
    }
    for target in interested.iter().filter(|target| target.stack_walk) {
        target.session.count_stack();
    }
    deliver(&written, call, route, descriptor, gathered, &sessions)
}

/// Writes an event whose content has already been read: a driver's string or a program's event.
/// Checks the call if a driver made it.
pub fn write_content(
    context: &Context,
    handle: u64,
    descriptor: EventDescriptor,
    activity: Option<Guid>,
    gathered: Content,
    is_driver: bool,
) -> NtResult {
    let routes = context.routes().now();
    let route = route(context, &routes, handle)?;
    let call = WriteCall {
        handle,
        descriptor: 0,
        activity,
        related: None,
        count: 0,
        data: 0,
        filter: 0,
        flags: 0,
    };
    let written = Written::new(context, &call, route, &descriptor, &[]);
    if is_driver {
        checks::arguments(&written);
    }
    let interested = interested(route, descriptor, 0, 0);
    let sessions = filtered(&interested, descriptor, &gathered);
    if sessions.is_empty() {
        return Ok(());
    }
    deliver(&written, &call, route, descriptor, gathered, &sessions)
}

/// Returns the route of a handle, or the status for a call with an invalid handle.
fn route<'a>(context: &Context, routes: &'a RouteTable, handle: u64) -> NtResult<&'a Route> {
    if let Some(route) = routes.get(&handle) {
        return Ok(route);
    }
    checks::handle_in_registration(context, handle);
    let error = context.etw().registration(handle).err();
    Err(error
        .map_or(NtStatus::INVALID_HANDLE, |error| registration::refuse(context, handle, &error)))
}

/// Returns the target sessions whose level and keywords pass the event and which the provider does not
/// exclude (ETW-6.1.1). Each session is checked against its own enable info (ETW-3.4.8).
fn interested(
    route: &Route,
    event: EventDescriptor,
    filter: u64,
    flags: u32,
) -> Short<&TargetSession> {
    route
        .target_sessions
        .iter()
        .filter(|target| {
            filter & instance_bit(target.session.id()) == 0
                && !(target.exclude_in_private && flags & IN_PRIVATE != 0)
                && target.enable_info.passes(event.level, event.keyword)
                && !target.session.is_full()
        })
        .collect()
}

/// Returns the sessions whose filters pass the event on any of their routes, without duplicates.
fn filtered<'a>(
    interested: &[&'a TargetSession],
    event: EventDescriptor,
    gathered: &Content,
) -> Short<&'a Session> {
    let has_filter = interested.iter().any(|target| !target.events.is_empty());
    let metadata = gathered.event_metadata.as_deref().filter(|_| has_filter);
    let subject = Subject {
        id: event.id,
        level: event.level,
        keyword: event.keyword,
        name: metadata.and_then(name_of),
    };
    let mut sessions: Short<&Session> = interested
        .iter()
        .filter(|target| target.events.is_empty() || target.events.pass(subject))
        .map(|target| &*target.session)
        .collect();
    sessions.dedup_by_key(|session| session.id());
    sessions
}

fn data_descriptors(context: &Context, call: &WriteCall) -> Short<EventDataDescriptor> {
    let empty = EventDataDescriptor::default();
    let mut descriptors = Short::from_elem(empty, call.count as usize);
    context.read_into(call.data, descriptors.as_mut_slice().as_mut_bytes());
    descriptors
}

/// Collects the data to which the data descriptors point.
fn gather(context: &Context, descriptors: &[EventDataDescriptor], honours_types: bool) -> Content {
    let largest = context.config().unspecified_behaviour.largest_event;
    let whole: usize = descriptors.iter().map(|one| one.size as usize).sum();
    let mut gathered =
        Content { payload: Vec::with_capacity(whole.min(largest + 1)), ..Content::default() };
    for descriptor in descriptors {
        let size = descriptor.size as usize;
        if descriptor.ptr == 0 && size != 0 {
            checks::null_data(context, size);
        }
        let read = |into: &mut Vec<u8>| {
            // Once the event is too large, the rest does not need to be read.
            let size = size.min(largest + 1);
            let start = into.len();
            into.resize(start + size, 0);
            context.read_into(descriptor.ptr, into.get_mut(start..).unwrap_or_default());
        };
        let read_whole = || {
            let mut bytes = Vec::new();
            read(&mut bytes);
            bytes
        };
        match descriptor.kind {
            EVENT_METADATA if honours_types => gathered.event_metadata = Some(read_whole()),
            PROVIDER_METADATA if honours_types => gathered.provider_metadata = Some(read_whole()),
            TIMESTAMP_OVERRIDE if honours_types => {
                let bytes: Option<[u8; 8]> = read_whole().try_into().ok();
                gathered.timestamp = bytes.map(i64::from_le_bytes);
            }
            _ => read(&mut gathered.payload),
        }
        if gathered.payload.len() > largest {
            break;
        }
    }
    gathered
}

/// Returns the activity id of an event that is written without one (ETW-6.5.1).
fn implicit_activity(context: &Context) -> Guid {
    let at_dispatch = context.irql() >= Irql::DISPATCH_LEVEL;
    if at_dispatch
        && context.config().unspecified_behaviour.activity_at_dispatch == ImplicitActivity::Null
    {
        return Guid::NULL;
    }
    context.activities().current(context.identity().thread)
}

/// Builds the record and copies it to every session's buffer. Either all sessions that are not
/// independent record it, or none do (ETW-6.1.3, ETW-6.1.4, R-O11).
fn deliver(
    written: &Written<'_>,
    call: &WriteCall,
    route: &Route,
    descriptor: EventDescriptor,
    gathered: Content,
    sessions: &[&Session],
) -> NtResult {
    let context: &Context = written;
    let unspecified = context.config().unspecified_behaviour;
    let record = record(context, call, route, descriptor, gathered);
    let counter = record.timestamp;
    let size = record.encoded_size();
    let encoded = EncodedRecord::new(&record);
    let encoded = encoded.ok().filter(|_| size <= unspecified.largest_event);
    let Some(record) = encoded else {
        for session in sessions {
            session.count_lost();
        }
        checks::too_large(written, size);
        return Err(NtStatus::INTEGER_OVERFLOW);
    };
    let may_grow = context.irql() < Irql::DISPATCH_LEVEL;
    let processor = context.processor();
    let mut reserved = Short::new();
    let mut refused: Option<NoRoom> = None;
    let mut fitting = true;
    for session in sessions {
        match session.reserve(processor, size, may_grow) {
            Ok(reservation) => reserved.push((*session, reservation)),
            Err(NoRoom::Ended) => {}
            // The session stopped on its own after the routes were read.
            Err(NoRoom::Stopped) => session.count_lost(),
            Err(why) => {
                session.count_lost();
                fitting &= why != NoRoom::NeverFits;
                // The failure of an independent session does not affect the others.
                if !session.config().independent {
                    refused.get_or_insert(why);
                }
            }
        }
    }
    if !fitting {
        checks::too_large_for_a_buffer(written, size);
    }
    if refused.is_some() {
        reserved.retain(|(session, _)| {
            let stays = session.config().independent;
            if !stays && unspecified.every_session_counts_loss {
                session.count_lost();
            }
            stays
        });
    }
    let recorded = !reserved.is_empty();
    // The timestamp is the same in all sessions, and later than every earlier timestamp in these
    // buffers.
    let counter = if counter == 0 { context.clock().counter() } else { counter };
    for (_, reservation) in reserved {
        if let Err(error) = reservation.record(&record, counter) {
            let what = format!("a reserved buffer rejected an event: {error}");
            context.stop(Rule::Internal, what);
        }
    }
    match refused {
        None => Ok(()),
        Some(_) if recorded && unspecified.independent_session_suffices => Ok(()),
        Some(NoRoom::NeverFits) => Err(NtStatus::BUFFER_OVERFLOW),
        Some(NoRoom::StoreFull) => Err(NtStatus::LOG_FILE_FULL),
        Some(_) => Err(NtStatus::NO_MEMORY),
    }
}

/// Returns the record of an event. Its timestamp is 0 unless the event specifies one.
fn record(
    context: &Context,
    call: &WriteCall,
    route: &Route,
    descriptor: EventDescriptor,
    gathered: Content,
) -> EventRecord {
    let identity = context.identity();
    let mut extended = Vec::new();
    let mut add = |ext_type, data: Option<Vec<u8>>| {
        if let Some(data) = data {
            extended.push(ExtendedItem { ext_type, data });
        }
    };
    add(ext_type::RELATED_ACTIVITYID, call.related.map(|related| related.to_bytes().to_vec()));
    // Traits that EtwSetInformation has set override the traits in a data descriptor (ETW-4.4.5).
    let traits = route.traits.as_deref().map(<[u8]>::to_vec);
    add(ext_type::PROV_TRAITS, traits.or(gathered.provider_metadata));
    add(ext_type::EVENT_SCHEMA_TL, gathered.event_metadata);
    EventRecord {
        thread_id: identity.thread,
        process_id: identity.process,
        timestamp: gathered.timestamp.unwrap_or(0),
        provider: route.provider,
        descriptor: etl_file::EventDescriptor {
            id: descriptor.id,
            version: descriptor.version,
            channel: descriptor.channel,
            level: descriptor.level,
            opcode: descriptor.opcode,
            task: descriptor.task,
            keyword: descriptor.keyword,
        },
        activity_id: call.activity.unwrap_or_else(|| implicit_activity(context)),
        extended,
        string_only: gathered.string_only,
        user_data: gathered.payload,
        ..EventRecord::default()
    }
}
