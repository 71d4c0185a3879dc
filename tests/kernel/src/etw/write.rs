//! Writing an event: from a driver's call to the sessions' buffers.

use std::sync::{Arc, atomic::Ordering};

use etl_file::{EventRecord, ExtendedItem, record::ext_type};
use zerocopy::IntoBytes;

use super::{
    Guid, checks,
    filters::{Subject, name_of},
    open_points::ImplicitActivity,
    routes::{Reach, Route},
    runtime,
    session::{NoRoom, Session},
};
use etw_wire::limits::MAX_DATA_DESCRIPTORS;

use crate::{
    abi::{EventDataDescriptor, EventDescriptor},
    irql::Irql,
    status::NtStatus,
    thread::Thread,
    verifier::Rule,
};

/// `EVENT_DATA_DESCRIPTOR` types (ETW-6.6.1).
pub const EVENT_METADATA: u8 = 1;
pub const PROVIDER_METADATA: u8 = 2;
pub const TIMESTAMP_OVERRIDE: u8 = 3;
/// `EVENT_WRITE_FLAG_INPRIVATE` (ETW-6.1.9).
const IN_PRIVATE: u32 = 2;

/// The arguments of a write.
pub struct WriteCall {
    pub handle: u64,
    /// The `EVENT_DESCRIPTOR`'s address.
    pub descriptor: u64,
    /// The activity id, unless it is the thread's.
    pub activity: Option<Guid>,
    /// The related activity id.
    pub related: Option<Guid>,
    /// How many data descriptors there are.
    pub count: u32,
    /// Their address.
    pub data: u64,
    /// Bits of the sessions that the provider keeps the event from.
    pub filter: u64,
    /// `EVENT_WRITE_FLAG_*`.
    pub flags: u32,
}

/// What the data descriptors amount to.
#[derive(Default)]
pub struct Content {
    pub payload: Vec<u8>,
    pub event_metadata: Option<Vec<u8>>,
    pub provider_metadata: Option<Vec<u8>>,
    pub timestamp: Option<i64>,
}

/// The route of a handle, or what a call with it comes to.
fn route(thread: &Thread, handle: u64) -> Result<Arc<Route>, NtStatus> {
    if let Some(route) = thread.shared().routes.get(handle) {
        return Ok(route);
    }
    checks::handle_in_registration(thread, handle);
    let error = thread.shared().etw().registration(handle).err();
    Err(error.map_or(NtStatus::INVALID_HANDLE, |error| {
        runtime::refuse(thread, handle, &error)
    }))
}

/// Writes an event to every session that wants it.
pub fn write(thread: &Thread, call: &WriteCall) -> NtStatus {
    let route = match route(thread, call.handle) {
        Ok(route) => route,
        Err(status) => return status,
    };
    route.writes.fetch_add(1, Ordering::Relaxed);
    // Arguments are checked before anything is asked of sessions (ETW-1.3.15).
    // ETW-1.1.12.
    if call.descriptor == 0
        || call.count as usize > MAX_DATA_DESCRIPTORS
        || (call.count != 0 && call.data == 0)
    {
        checks::refused_arguments(thread, call);
        return NtStatus::INVALID_PARAMETER;
    }
    let descriptor: EventDescriptor = thread.read(call.descriptor);
    let descriptors = data_descriptors(thread, call);
    checks::arguments(thread, call, &route, &descriptor, &descriptors);
    let interested = interested(&route, descriptor, call.filter, call.flags);
    if interested.is_empty() {
        return NtStatus::SUCCESS;
    }
    let content = gather(thread, &descriptors, route.honours_types);
    checks::content(thread, &content);
    let sessions = filtered(&interested, descriptor, &content);
    if sessions.is_empty() {
        return NtStatus::SUCCESS;
    }
    for reach in interested.iter().filter(|reach| reach.stack_walk) {
        reach.session.count_stack();
    }
    deliver(thread, call, &route, descriptor, content, &sessions)
}

/// Writes a string as an event that carries nothing else.
pub fn write_string(
    thread: &Thread,
    handle: u64,
    descriptor: EventDescriptor,
    activity: Option<Guid>,
    text: Vec<u8>,
) -> NtStatus {
    let route = match route(thread, handle) {
        Ok(route) => route,
        Err(status) => return status,
    };
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
    checks::arguments(thread, &call, &route, &descriptor, &[]);
    let interested = interested(&route, descriptor, 0, 0);
    let content = Content {
        payload: text,
        ..Content::default()
    };
    let sessions = filtered(&interested, descriptor, &content);
    if sessions.is_empty() {
        return NtStatus::SUCCESS;
    }
    deliver(thread, &call, &route, descriptor, content, &sessions)
}

/// The ways that an event passes by level, keywords, and what the provider says (ETW-6.1.1):
/// each session is asked by its own (ETW-3.4.8).
fn interested(route: &Route, event: EventDescriptor, filter: u64, flags: u32) -> Vec<&Reach> {
    route
        .reaches
        .iter()
        .filter(|reach| {
            filter & runtime::instance_bit(reach.session.id()) == 0
                && !(reach.exclude_in_private && flags & IN_PRIVATE != 0)
                && reach.enablement.wants(event.level, event.keyword)
                && !reach.session.is_full()
        })
        .collect()
}

/// The sessions whose filters let the event pass too, by whichever of their ways, once
/// each.
fn filtered<'a>(
    interested: &[&'a Reach],
    event: EventDescriptor,
    content: &Content,
) -> Vec<&'a Session> {
    let subject = Subject {
        id: event.id,
        level: event.level,
        keyword: event.keyword,
        name: content.event_metadata.as_deref().and_then(name_of),
    };
    let mut sessions: Vec<&Session> = interested
        .iter()
        .filter(|reach| reach.events.is_empty() || reach.events.pass(subject))
        .map(|reach| &*reach.session)
        .collect();
    sessions.dedup_by_key(|session| session.id());
    sessions
}

/// The array of data descriptors.
fn data_descriptors(thread: &Thread, call: &WriteCall) -> Vec<EventDataDescriptor> {
    let empty = EventDataDescriptor {
        pointer: 0,
        size: 0,
        kind: 0,
        reserved_1: 0,
        reserved_2: 0,
    };
    let mut descriptors = vec![empty; call.count as usize];
    thread.read_into(call.data, descriptors.as_mut_bytes());
    descriptors
}

/// Collects what the data descriptors point at.
fn gather(thread: &Thread, descriptors: &[EventDataDescriptor], honours_types: bool) -> Content {
    let mut content = Content::default();
    let largest = thread.shared().config.open_points.largest_event;
    for descriptor in descriptors {
        let size = descriptor.size as usize;
        if descriptor.pointer == 0 && size != 0 {
            checks::null_data(thread, size);
        }
        let read = |into: &mut Vec<u8>| {
            // What is too large already needs no more reading.
            let size = size.min(largest + 1);
            let start = into.len();
            into.resize(start + size, 0);
            thread.read_into(
                descriptor.pointer,
                into.get_mut(start..).unwrap_or_default(),
            );
        };
        let read_whole = || {
            let mut bytes = Vec::new();
            read(&mut bytes);
            bytes
        };
        match descriptor.kind {
            EVENT_METADATA if honours_types => content.event_metadata = Some(read_whole()),
            PROVIDER_METADATA if honours_types => content.provider_metadata = Some(read_whole()),
            TIMESTAMP_OVERRIDE if honours_types => {
                let bytes: Option<[u8; 8]> = read_whole().try_into().ok();
                content.timestamp = bytes.map(i64::from_le_bytes);
            }
            _ => read(&mut content.payload),
        }
        if content.payload.len() > largest {
            break;
        }
    }
    content
}

/// The activity id of an event that names none (ETW-6.5.1).
fn implicit_activity(thread: &Thread) -> Guid {
    let shared = thread.shared();
    let at_dispatch = thread.irql() >= Irql::DISPATCH_LEVEL;
    if at_dispatch && shared.config.open_points.activity_at_dispatch == ImplicitActivity::Null {
        return Guid::NULL;
    }
    shared.activities.of_thread(thread.identity().thread)
}

/// Builds the record and puts it into every session's buffer. Unless a session is
/// independent, all of them take it or none (ETW-6.1.3, ETW-6.1.4, R-O11).
fn deliver(
    thread: &Thread,
    call: &WriteCall,
    route: &Route,
    descriptor: EventDescriptor,
    content: Content,
    sessions: &[&Session],
) -> NtStatus {
    let open = &thread.shared().config.open_points;
    let mut record = record(thread, call, route, descriptor, content);
    let size = record.encoded_size();
    if size > open.largest_event {
        for session in sessions {
            session.count_lost();
        }
        checks::too_large(thread, size);
        return NtStatus::INTEGER_OVERFLOW;
    }
    let may_grow = thread.irql() < Irql::DISPATCH_LEVEL;
    let processor = thread.processor();
    let mut reserved = Vec::with_capacity(sessions.len());
    let mut refused: Option<NoRoom> = None;
    let mut fitting = true;
    for session in sessions {
        match session.reserve(processor, size, may_grow) {
            Ok(reservation) => reserved.push((*session, reservation)),
            Err(NoRoom::Ended) => {}
            // It has stopped by itself while the event was on its way.
            Err(NoRoom::Stopped) => session.count_lost(),
            Err(why) => {
                session.count_lost();
                fitting &= why != NoRoom::NeverFits;
                // An independent session's failure is its own.
                if !session.config().independent {
                    refused.get_or_insert(why);
                }
            }
        }
    }
    if !fitting {
        checks::too_large_for_a_buffer(thread, size);
    }
    if refused.is_some() {
        reserved.retain(|(session, _)| {
            let stays = session.config().independent;
            if !stays && open.all_count_the_loss {
                session.count_lost();
            }
            stays
        });
    }
    let recorded = !reserved.is_empty();
    // The moment is the same for all, and later than that of every event before it in
    // these buffers.
    let counter = record.timestamp;
    let counter = if counter == 0 {
        thread.shared().clock.counter()
    } else {
        counter
    };
    for (_, reservation) in reserved {
        if let Err(error) = reservation.record(&mut record, counter) {
            let what = format!("a reserved buffer did not take an event: {error}");
            thread.stop(Rule::Internal, what);
        }
    }
    match refused {
        None => NtStatus::SUCCESS,
        Some(_) if recorded && open.success_if_an_independent_session_records => NtStatus::SUCCESS,
        Some(NoRoom::NeverFits) => NtStatus::BUFFER_OVERFLOW,
        Some(NoRoom::StoreFull) => NtStatus::LOG_FILE_FULL,
        Some(_) => NtStatus::NO_MEMORY,
    }
}

/// The record of an event; its timestamp is 0 unless the event brings its own.
fn record(
    thread: &Thread,
    call: &WriteCall,
    route: &Route,
    descriptor: EventDescriptor,
    content: Content,
) -> EventRecord {
    let identity = thread.identity();
    let mut extended = Vec::new();
    let mut add = |ext_type, data: Option<Vec<u8>>| {
        if let Some(data) = data {
            extended.push(ExtendedItem { ext_type, data });
        }
    };
    add(
        ext_type::RELATED_ACTIVITYID,
        call.related.map(|related| related.to_bytes().to_vec()),
    );
    // Traits that were set win over those that a descriptor carries (ETW-4.4.5).
    let traits = route.traits.as_deref().map(<[u8]>::to_vec);
    add(ext_type::PROV_TRAITS, traits.or(content.provider_metadata));
    add(ext_type::EVENT_SCHEMA_TL, content.event_metadata);
    EventRecord {
        thread_id: identity.thread,
        process_id: identity.process,
        timestamp: content.timestamp.unwrap_or(0),
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
        activity_id: call.activity.unwrap_or_else(|| implicit_activity(thread)),
        extended,
        user_data: content.payload,
        ..EventRecord::default()
    }
}
