//! Writing an event: from a driver's call to the sessions' buffers.

use etl_file::{EventRecord, ExtendedItem, record::ext_type};

use super::{
    Guid,
    filters::{Subject, name_of},
    runtime::{self, Etw, HandleError, instance_bit},
};
use crate::{
    abi::{EventDataDescriptor, EventDescriptor},
    memory,
    status::NtStatus,
    thread::Thread,
    verifier::Rule,
};

/// More descriptors than this are refused (1.1.12).
const MOST_DESCRIPTORS: u32 = 128;
/// An event, its header and items included, is counted by 16 bits (6.2.1).
const LARGEST_EVENT: usize = u16::MAX as usize;
/// `EVENT_DATA_DESCRIPTOR` types (6.6.1).
const EVENT_METADATA: u8 = 1;
const PROVIDER_METADATA: u8 = 2;
const TIMESTAMP_OVERRIDE: u8 = 3;

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
}

/// What the data descriptors amount to.
#[derive(Default)]
struct Content {
    payload: Vec<u8>,
    event_metadata: Option<Vec<u8>>,
    provider_metadata: Option<Vec<u8>>,
    timestamp: Option<i64>,
}

/// Writes an event to every session that wants it.
pub fn write(thread: &Thread, call: &WriteCall) -> NtStatus {
    let honours_types = match thread.shared().etw().registration(call.handle) {
        Ok(registration) => Ok(registration.honours_types),
        Err(error) => Err(error),
    };
    let honours_types = match honours_types {
        Ok(honours_types) => honours_types,
        Err(error) => return runtime::refuse(thread, call.handle, &error),
    };
    // Arguments are checked before anything is asked of sessions (1.3.15).
    if call.descriptor == 0 || call.count > MOST_DESCRIPTORS || (call.count != 0 && call.data == 0)
    {
        return NtStatus::INVALID_PARAMETER;
    }
    let descriptor: EventDescriptor = thread.read(call.descriptor);
    let sessions = interested(thread, call.handle, descriptor, call.filter);
    if sessions.is_empty() {
        return NtStatus::SUCCESS;
    }
    let content = gather(thread, call, honours_types);
    let sessions = filtered(thread, call.handle, descriptor, &content, sessions);
    if sessions.is_empty() {
        return NtStatus::SUCCESS;
    }
    deliver(thread, call, descriptor, content, &sessions)
}

/// Writes a string as an event that carries nothing else.
pub fn write_string(
    thread: &Thread,
    handle: u64,
    descriptor: EventDescriptor,
    activity: Option<Guid>,
    text: Vec<u8>,
) -> NtStatus {
    let known = thread.shared().etw().registration(handle).err();
    if let Some(error) = known {
        return runtime::refuse(thread, handle, &error);
    }
    let sessions = interested(thread, handle, descriptor, 0);
    if sessions.is_empty() {
        return NtStatus::SUCCESS;
    }
    let call = WriteCall {
        handle,
        descriptor: 0,
        activity,
        related: None,
        count: 0,
        data: 0,
        filter: 0,
    };
    let content = Content {
        payload: text,
        ..Content::default()
    };
    deliver(thread, &call, descriptor, content, &sessions)
}

/// The sessions that want an event (6.1.1): each is asked by its own level and
/// keywords (3.4.8), once, whichever of its enablements lets the event through.
fn interested(thread: &Thread, handle: u64, event: EventDescriptor, filter: u64) -> Vec<u16> {
    let etw = thread.shared().etw();
    let mut sessions: Vec<u16> = etw
        .enablements_of_handle(handle)
        .into_iter()
        .filter(|(session, one)| {
            filter & instance_bit(*session) == 0
                && etw
                    .sessions
                    .get(session)
                    .is_some_and(|session| !session.is_full())
                && one.enablement.wants(event.level, event.keyword)
        })
        .map(|(session, _)| session)
        .collect();
    sessions.sort_unstable();
    sessions.dedup();
    sessions
}

/// Those of the sessions whose filters let the event pass too, whichever of their
/// enablements it passes by.
fn filtered(
    thread: &Thread,
    handle: u64,
    event: EventDescriptor,
    content: &Content,
    mut sessions: Vec<u16>,
) -> Vec<u16> {
    let etw = thread.shared().etw();
    let subject = Subject {
        id: event.id,
        level: event.level,
        keyword: event.keyword,
        name: content.event_metadata.as_deref().and_then(name_of),
    };
    let enablements = etw.enablements_of_handle(handle);
    sessions.retain(|session| {
        enablements.iter().any(|(of, one)| {
            of == session
                && one.enablement.wants(event.level, event.keyword)
                && one.events.pass(subject)
        })
    });
    sessions
}

/// Collects what the data descriptors point at.
fn gather(thread: &Thread, call: &WriteCall, honours_types: bool) -> Content {
    let mut content = Content::default();
    let bad = |error| thread.stop_for_address(error);
    for number in 0..u64::from(call.count) {
        let at = call.data + number * size_of::<EventDataDescriptor>() as u64;
        let descriptor: EventDataDescriptor = thread.read(at);
        let read = || match memory::read_bytes(descriptor.pointer, descriptor.size as usize) {
            Ok(bytes) => bytes,
            Err(error) => bad(error),
        };
        match descriptor.kind {
            EVENT_METADATA if honours_types => content.event_metadata = Some(read()),
            PROVIDER_METADATA if honours_types => content.provider_metadata = Some(read()),
            TIMESTAMP_OVERRIDE if honours_types => {
                let bytes: Option<[u8; 8]> = read().try_into().ok();
                content.timestamp = bytes.map(i64::from_le_bytes);
            }
            _ => content.payload.extend_from_slice(&read()),
        }
        // What is too large already needs no more reading.
        if content.payload.len() > LARGEST_EVENT {
            break;
        }
    }
    content
}

/// Builds the record and puts it into every session's buffer, or into none
/// (6.1.3, R-O11).
fn deliver(
    thread: &Thread,
    call: &WriteCall,
    descriptor: EventDescriptor,
    content: Content,
    sessions: &[u16],
) -> NtStatus {
    let identity = thread.identity();
    let timestamp = content
        .timestamp
        .unwrap_or_else(|| thread.shared().clock.counter());
    let mut etw = thread.shared().etw();
    let activity = call
        .activity
        .or_else(|| etw.activities.get(&identity.thread).copied())
        .unwrap_or(Guid::NULL);
    let (provider, traits) = match etw.registration(call.handle) {
        Ok(registration) => (registration.provider, registration.traits.clone()),
        Err(HandleError::Null | HandleError::Released | HandleError::NeverIssued) => {
            return NtStatus::INVALID_HANDLE;
        }
    };
    let mut items = Vec::new();
    let mut add = |ext_type, data: Option<Vec<u8>>| {
        if let Some(data) = data {
            items.push(ExtendedItem { ext_type, data });
        }
    };
    add(
        ext_type::RELATED_ACTIVITYID,
        call.related.map(|related| related.to_bytes().to_vec()),
    );
    // Traits that were set win over those that a descriptor carries (4.4.5).
    add(ext_type::PROV_TRAITS, traits.or(content.provider_metadata));
    add(ext_type::EVENT_SCHEMA_TL, content.event_metadata);
    let record = EventRecord {
        thread_id: identity.thread,
        process_id: identity.process,
        timestamp,
        provider,
        descriptor: etl_file::EventDescriptor {
            id: descriptor.id,
            version: descriptor.version,
            channel: descriptor.channel,
            level: descriptor.level,
            opcode: descriptor.opcode,
            task: descriptor.task,
            keyword: descriptor.keyword,
        },
        activity_id: activity,
        extended: items,
        user_data: content.payload,
        ..EventRecord::default()
    };
    let count_lost = |etw: &mut Etw, session: u16| {
        if let Some(session) = etw.sessions.get_mut(&session) {
            session.count_lost();
        }
    };
    if record.encoded_size() > LARGEST_EVENT {
        for session in sessions {
            count_lost(&mut etw, *session);
        }
        return NtStatus::INTEGER_OVERFLOW;
    }
    let without_room: Vec<u16> = sessions
        .iter()
        .copied()
        .filter(|session| {
            etw.sessions
                .get(session)
                .is_some_and(|session| !session.has_room_for(&record))
        })
        .collect();
    if !without_room.is_empty() {
        for session in without_room {
            count_lost(&mut etw, session);
        }
        return NtStatus::BUFFER_OVERFLOW;
    }
    let mut failed = None;
    for session in sessions {
        if let Some(session) = etw.sessions.get_mut(session)
            && let Err(error) = session.append(&record, &thread.shared().clock)
        {
            failed = Some(error);
        }
    }
    drop(etw);
    if let Some(error) = failed {
        thread.stop(
            Rule::Internal,
            format!("a session's file could not be written: {error}"),
        );
    }
    NtStatus::SUCCESS
}
