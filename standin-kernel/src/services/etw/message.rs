//! Messages and events that a driver writes to the single session in its trace handle: WPP messages,
//! and events of classic providers.

use etl_file::internals::kernel::wpp_flags;
use etl_file::write::{ClassicRecord, WppRecord};
use etl_file::{EncodedRecord, Guid};
use std::sync::Arc;

use super::{
    callback::TRACED_GUID,
    service::Context,
    session::running::{NoRoom, Session},
    state::session_of,
};
use crate::{
    execution::routine::{At, Memory, Routine, routine},
    ground::{NtResult, NtStatus, irql::Irql, rule::Rule},
    services::managers::wmi_events::WmiEvent,
};

/// The exports. The documentation of `WmiTraceMessage` allows any IRQL; the limit of
/// `IoWMIWriteEvent` is from wdm.h.
pub const ENTRIES: &[Routine<Context>] = &[
    routine("IoWMIWriteEvent", io_wmi_write_event),
    routine("WmiTraceMessage", wmi_trace_message),
    routine("WmiTraceMessageVa", wmi_trace_message_va),
];

/// Writes a message. The message's arguments follow the four register parameters: pairs of an
/// address and a size, terminated by a null address.
fn wmi_trace_message(
    context: &Context,
    handle: u64,
    flags: u32,
    guid: At<Guid>,
    number: u16,
) -> NtResult {
    /// The return address, and the home space of the four register parameters.
    const BEFORE_ARGUMENTS: u64 = 5 * 8;
    let arguments = context.call().stack.wrapping_add(BEFORE_ARGUMENTS);
    write_message(context, handle, flags, guid.0, number, arguments)
}

/// Writes a message whose arguments are in a `va_list`. A `va_list` is the arguments' address.
fn wmi_trace_message_va(
    context: &Context,
    handle: u64,
    flags: u32,
    guid: At<Guid>,
    number: u16,
    arguments: Memory,
) -> NtResult {
    write_message(context, handle, flags, guid.0, number, arguments.0)
}

/// All flags that evntrace.h defines. The last two specify the pointer size.
const KNOWN_FLAGS: u32 = 0xFF;

/// Writes a message to the session in a trace handle (ETW-6.8.1).
fn write_message(
    context: &Context,
    handle: u64,
    flags: u32,
    guid: u64,
    number: u16,
    arguments: u64,
) -> NtResult {
    check_flags(context, flags);
    let arguments = gather(context, arguments);
    let has = |flag: u16| flags & u32::from(flag) != 0;
    let component = has(wpp_flags::COMPONENT_ID).then(|| {
        context.check_address("a component id", guid, 4);
        context.read::<u32>(guid)
    });
    let guid = has(wpp_flags::GUID).then(|| {
        context.check_address("a message GUID", guid, 16);
        Guid::from_bytes(context.read(guid))
    });
    let session = session(context, handle).ok_or(NtStatus::INVALID_HANDLE)?;
    let sequence = has(wpp_flags::SEQUENCE).then(|| session.next_sequence(context.sequence()));
    let identity = context.identity();
    let message = WppRecord {
        message: number,
        sequence: sequence.flatten(),
        guid,
        component,
        timestamp: has(wpp_flags::TIMESTAMP).then_some(0),
        thread_and_process: has(wpp_flags::SYSTEM_INFO)
            .then_some((identity.thread, identity.process)),
        arguments,
        ..WppRecord::default()
    };
    let record = EncodedRecord::try_from(&message);
    record_in(context, &session, record.ok(), message.arguments.len())
}

/// Warns about undefined flags, and about missing flags that make the message unreadable.
fn check_flags(context: &Context, flags: u32) {
    let unknown = flags & !KNOWN_FLAGS;
    let has = |flag: u16| flags & u32::from(flag) != 0;
    let what = if unknown != 0 {
        format!("with the unknown flags 0x{unknown:x}")
    } else if has(wpp_flags::PERFORMANCE_TIMESTAMP) {
        "with TRACE_MESSAGE_PERFORMANCE_TIMESTAMP, which is obsolete and not implemented".to_owned()
    } else if !has(wpp_flags::GUID) && !has(wpp_flags::COMPONENT_ID) {
        "without TRACE_MESSAGE_GUID and TRACE_MESSAGE_COMPONENTID, so nobody can find the \
         message's format"
            .to_owned()
    } else {
        return;
    };
    context.warn(Rule::MessageFlags, || what);
}

/// Collects the arguments of a message. Stops reading once the message is too large for any record.
pub fn gather(context: &Context, list: u64) -> Vec<u8> {
    let mut gathered = Vec::new();
    let mut at = list;
    loop {
        let address: u64 = context.read(at);
        if address == 0 || gathered.len() > LARGEST {
            return gathered;
        }
        let size: u64 = context.read(at.wrapping_add(8));
        at = at.wrapping_add(16);
        context.check_address("a message argument", address, size);
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(LARGEST + 1);
        let start = gathered.len();
        gathered.resize(start + size, 0);
        context.read_into(address, gathered.get_mut(start..).unwrap_or_default());
    }
}

/// The maximum size of a record in bytes.
const LARGEST: usize = u16::MAX as usize;

/// Returns the session in a trace handle, if it records events from drivers.
pub fn session(context: &Context, handle: u64) -> Option<Arc<Session>> {
    let etw = context.etw();
    let running = etw.sessions.get(&session_of(handle))?;
    (!running.is_closed_to_drivers()).then(|| Arc::clone(&running.session))
}

/// Records a message or an event in its session. The routines' documentation specifies the same
/// status for a record that is too large and for full buffers.
pub fn record_in(
    context: &Context,
    session: &Session,
    record: Option<EncodedRecord>,
    data: usize,
) -> NtResult {
    let too_large = || {
        context.warn(Rule::LargeEvent, || {
            format!("with {data} bytes of data, which do not fit in a session's buffer")
        });
        session.count_lost();
        Err(NtStatus::NO_MEMORY)
    };
    let Some(record) = record else {
        return too_large();
    };
    let may_grow = context.irql() < Irql::DISPATCH_LEVEL;
    let reserved = match session.reserve(context.processor(), record.size(), may_grow) {
        Ok(reserved) => reserved,
        Err(NoRoom::NeverFits) => return too_large(),
        Err(NoRoom::Ended) => return Err(NtStatus::INVALID_HANDLE),
        Err(why) => {
            session.count_lost();
            return Err(match why {
                NoRoom::Ended | NoRoom::Stopped => NtStatus::INVALID_HANDLE,
                NoRoom::StoreFull => NtStatus::LOG_FILE_FULL,
                NoRoom::NoBuffer | NoRoom::NeverFits => NtStatus::NO_MEMORY,
            });
        }
    };
    if let Err(error) = reserved.record(&record, context.clock().counter()) {
        let what = format!("a reserved buffer rejected a message: {error}");
        context.stop(Rule::Internal, what);
    }
    Ok(())
}

/// The size of `EVENT_TRACE_HEADER` and of `MOF_FIELD`.
const EVENT_HEADER: usize = 48;
const MOF_FIELD: usize = 16;
/// The maximum size of a WMI event.
const LARGEST_ITEM: usize = 0xFFFF;
/// `WNODE_FLAG_USE_GUID_PTR`: the header contains the GUID's address.
const USE_GUID_PTR: u32 = 0x0008_0000;
/// `WNODE_FLAG_USE_MOF_PTR`: the header is followed by an array of `MOF_FIELD` that describes the
/// data.
const USE_MOF_PTR: u32 = 0x0010_0000;

/// `WNODE_FLAG_EVENT_ITEM` and `WNODE_FLAG_EVENT_REFERENCE`.
const EVENT_ITEM: u32 = 0x80;
const EVENT_REFERENCE: u32 = 0x2000;

/// Fires a WMI event. The drivers that registered for it receive it. WMI then frees the driver's
/// block.
fn fire(context: &Context, item: u64, header: &[u8; EVENT_HEADER], flags: u32) -> NtResult {
    if flags & EVENT_REFERENCE != 0 {
        context.stop_call(
            Rule::NotProvided,
            "with a reference to an event, whose data WMI queries; the stand-in kernel provides only events with \
             data (WNODE_FLAG_EVENT_ITEM)",
        );
    }
    let size = u32::from_le_bytes(part(header, 0)) as usize;
    if flags & EVENT_ITEM == 0 || size < EVENT_HEADER {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if size > LARGEST_ITEM {
        return Err(NtStatus::BUFFER_OVERFLOW);
    }
    if !context.addresses().is_block(item) {
        context.stop_call(
            Rule::BadFree,
            &format!(
                "with an event at 0x{item:016X}, which is not a pool block; WMI frees the \
                 event's block"
            ),
        );
    }
    let event = WmiEvent { node: read(context, item, size), block: Some(item) };
    context.wmi_events().fire(event);
    Ok(())
}

/// Writes the event of a classic provider (ETW-6.8.3), or fires a WMI event.
fn io_wmi_write_event(context: &Context, item: Memory) -> NtResult {
    context.check_address("an event", item.0, EVENT_HEADER as u64);
    let mut header = [0; EVENT_HEADER];
    context.read_into(item.0, &mut header);
    let flags = u32::from_le_bytes(part(&header, 44));
    if flags & TRACED_GUID == 0 {
        return fire(context, item.0, &header, flags);
    }
    let size = usize::from(u16::from_le_bytes(part(&header, 0)));
    let rest = size.checked_sub(EVENT_HEADER).ok_or(NtStatus::INVALID_PARAMETER)?;
    let session = session(context, u64::from_le_bytes(part(&header, 8)));
    let session = session.ok_or(NtStatus::INVALID_HANDLE)?;
    let class = if flags & USE_GUID_PTR == 0 {
        part(&header, 24)
    } else {
        let address = u64::from_le_bytes(part(&header, 24));
        context.check_address("an event's GUID", address, 16);
        context.read(address)
    };
    let data = item.0.wrapping_add(EVENT_HEADER as u64);
    let payload = if flags & USE_MOF_PTR == 0 {
        read(context, data, rest)
    } else {
        let fields = read(context, data, rest);
        let (fields, _) = fields.as_chunks::<MOF_FIELD>();
        let mut payload = Vec::new();
        for field in fields {
            let length = u32::from_le_bytes(part(field, 8)) as usize;
            payload.extend(read(context, u64::from_le_bytes(part(field, 0)), length));
            if payload.len() > LARGEST {
                break;
            }
        }
        payload
    };
    let identity = context.identity();
    let [_, _, _, _, opcode, level, ..] = header;
    let event = ClassicRecord {
        class: Guid::from_bytes(class),
        opcode,
        level,
        version: u16::from_le_bytes(part(&header, 6)),
        thread_id: identity.thread,
        process_id: identity.process,
        payload,
        ..ClassicRecord::default()
    };
    let record = EncodedRecord::try_from(&event);
    record_in(context, &session, record.ok(), event.payload.len())
}

/// Reads an event's data at this address, unless the data are too large for any record.
fn read(context: &Context, address: u64, length: usize) -> Vec<u8> {
    context.check_address("event data", address, length as u64);
    let mut bytes = vec![0; length.min(LARGEST + 1)];
    context.read_into(address, &mut bytes);
    bytes
}

/// Returns bytes of a structure; bytes beyond its end are zero.
fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.copied().unwrap_or([0; N])
}
