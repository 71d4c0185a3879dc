//! The exports of `WppRecorder.sys`: the flight recorder in the WDK's driver templates.
//!
//! Each log keeps the newest messages that fit in its buffer. Tests read them, and a session that
//! enables the driver's provider receives the default log's messages. Windows keeps the logs in an
//! internal format for dump files; the routines that return it are not provided.

use etl_file::write::WppRecord;
use etl_file::{EncodedRecord, Guid};

use super::{
    message::{gather, record_in, session},
    recorder_logs::{DEFAULT_ROOM, Log, RecorderMessage},
    service::Context,
};
use crate::{
    execution::routine::{At, Memory, Routine, routine},
    ground::{
        NtResult, NtStatus,
        abi::{DriverObject, UnicodeString},
        memory,
        rule::Rule,
    },
};

/// The module's name.
pub const MODULE: &str = "WppRecorder.sys";

/// The exports.
pub const ENTRIES: &[Routine<Context>] = &[
    routine("WppAutoLogStart", start),
    routine("WppAutoLogStop", stop),
    routine("WppAutoLogTrace", trace),
    routine("imp_WppRecorderConfigure", configure),
    routine("imp_WppRecorderIsDefaultLogAvailable", is_default_available),
    routine("imp_WppRecorderLogCreate", create),
    routine("imp_WppRecorderLogDelete", delete),
    routine("imp_WppRecorderLogGetDefault", get_default),
    routine("imp_WppRecorderLogSetIdentifier", set_identifier),
    routine("imp_WppRecorderReplay", replay),
];

/// The offsets in a driver's control block: the next block, the log's handle, and a switch for
/// verbose messages. On Windows, the driver's registry key can set the switch.
const NEXT: u64 = 0x10;
const LOG: u64 = 0x40;
const VERBOSE: u64 = 0x48;

/// Stores the handle of the default log in each of a driver's control blocks.
fn set_log(context: &Context, control: u64, handle: u64) {
    /// A number that exceeds the number of any driver's control blocks.
    const LIMIT: usize = 1000;
    let mut at = control;
    for _ in 0..LIMIT {
        if at == 0 {
            return;
        }
        context.write(at.wrapping_add(LOG), &handle);
        context.write(at.wrapping_add(VERBOSE), &0_u32);
        at = context.read(at.wrapping_add(NEXT));
    }
    context.stop_call(Rule::ObjectMisused, "with a list of control blocks that forms a cycle");
}

fn add(context: &Context, log: Log) -> u64 {
    let handle = log.handle();
    context.recorder().0.push(log);
    handle
}

/// Starts a driver's recorder: creates its default log.
fn start(context: &Context, control: Memory, _driver: At<DriverObject>, _path: At<UnicodeString>) {
    stop(context, control, At::NULL);
    let handle = add(context, Log::new(control.0, true, String::new(), DEFAULT_ROOM));
    set_log(context, control.0, handle);
}

/// Stops a driver's recorder: deletes its default log.
fn stop(context: &Context, control: Memory, _driver: At<DriverObject>) {
    let had_log = {
        let mut recorder = context.recorder();
        let before = recorder.0.len();
        let is_it = |log: &Log| log.is_default && log.control == control.0;
        recorder.0.retain(|log| !is_it(log));
        recorder.0.len() < before
    };
    if had_log {
        set_log(context, control.0, 0);
    }
}

/// Adds a message to a log. The message's arguments follow the five parameters: pairs of an address
/// and a size, terminated by a null address.
fn trace(
    context: &Context,
    log: Memory,
    level: u8,
    flags: u32,
    guid: At<Guid>,
    number: u16,
) -> NtResult {
    /// The return address, the home space of the four register parameters, and the fifth parameter.
    const BEFORE_ARGUMENTS: u64 = 6 * 8;
    if log.is_null() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let arguments = context.call().stack.wrapping_add(BEFORE_ARGUMENTS);
    let data = gather(context, arguments);
    context.check_address("a message GUID", guid.0, 16);
    let mut message = RecorderMessage {
        log: String::new(),
        level,
        flag: flags,
        guid: Guid::from_bytes(context.read(guid.0)),
        number,
        data,
    };
    with(context, log.0, |log| {
        message.log.clone_from(&log.identifier);
        log.add(message);
    });
    Ok(())
}

/// Runs `body` on the log with this handle. Bugchecks if there is no such log.
fn with<R>(context: &Context, handle: u64, body: impl FnOnce(&mut Log) -> R) -> R {
    let result = {
        let mut recorder = context.recorder();
        let mut logs = recorder.0.iter_mut();
        logs.find(|log| log.handle() == handle).map(body)
    };
    result.unwrap_or_else(|| {
        context.stop_call(
            Rule::ObjectMisused,
            &format!("with 0x{handle:016X}, which is not a recorder log"),
        )
    })
}

fn default_of(context: &Context, control: u64) -> Option<u64> {
    let recorder = context.recorder();
    let mut logs = recorder.0.iter();
    let found = logs.find(|log| log.is_default && log.control == control);
    found.map(Log::handle)
}

fn get_default(context: &Context, control: Memory) -> Memory {
    At::new(default_of(context, control.0).unwrap_or(0))
}

fn is_default_available(context: &Context, control: Memory) -> bool {
    default_of(context, control.0).is_some()
}

/// Creates or deletes the default log.
fn configure(context: &Context, control: Memory, parameters: Memory) -> NtStatus {
    /// The offset of `CreateDefaultLog`, its value for no log, and its value for no change.
    const CREATE: u64 = 4;
    const NO: u32 = 0;
    const AS_IT_IS: u32 = 2;
    let wanted = context.read::<u32>(parameters.0.wrapping_add(CREATE)) & 0xFF;
    if wanted == NO {
        stop(context, control, At::NULL);
    } else if wanted != AS_IT_IS && default_of(context, control.0).is_none() {
        start(context, control, At::NULL, At::NULL);
    }
    NtStatus::SUCCESS
}

/// Creates a log as specified by `RECORDER_LOG_CREATE_PARAMS`.
fn create(
    context: &Context,
    control: Memory,
    parameters: Memory,
    recorder_log: At<u64>,
) -> NtResult {
    /// The offsets of the fields: the buffer size, the number to append to the identifier, the switch
    /// for appending it, the identifier's size, and the identifier.
    const ROOM: u64 = 8;
    const APPENDED: u64 = 16;
    const IS_APPENDED: u64 = 24;
    const LENGTH: u64 = 28;
    const IDENTIFIER: u64 = 32;
    /// The minimum size of the structure, and the maximum buffer size.
    const SMALLEST: u32 = 48;
    const LARGEST: u32 = 1 << 20;
    let at = |offset: u64| parameters.0.wrapping_add(offset);
    let size: u32 = context.read(parameters.0);
    let room: u32 = context.read(at(ROOM));
    if size < SMALLEST || room > LARGEST {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if context.faults().take("ExAllocatePool2").is_some() {
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    let length = context.read::<u32>(at(LENGTH)) as usize;
    let mut identifier = text(context, at(IDENTIFIER), length);
    if context.read::<u8>(at(IS_APPENDED)) != 0 {
        let appended: u64 = context.read(at(APPENDED));
        identifier = format!("{identifier}{appended:x}");
    }
    let room = if room == 0 { DEFAULT_ROOM } else { room as usize };
    recorder_log.write(context, add(context, Log::new(control.0, false, identifier, room)));
    Ok(())
}

/// Reads a string of `length` bytes, or up to the first zero byte.
fn text(context: &Context, at: u64, length: usize) -> String {
    /// `RECORDER_LOG_IDENTIFIER_MAX_CHARS`.
    const LONGEST: usize = 16;
    let bytes = context.checked(memory::read_c_string(at, length.min(LONGEST)));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn delete(context: &Context, _control: Memory, log: Memory) -> NtStatus {
    if with(context, log.0, |log| log.is_default) {
        context.stop_call(Rule::ObjectMisused, "for the default log, which WppAutoLogStop deletes");
    }
    context.recorder().0.retain(|one| one.handle() != log.0);
    NtStatus::SUCCESS
}

fn set_identifier(
    context: &Context,
    _control: Memory,
    log: Memory,
    identifier: At<i8>,
) -> NtStatus {
    let identifier = text(context, identifier.0, usize::MAX);
    with(context, log.0, |log| log.identifier = identifier);
    NtStatus::SUCCESS
}

/// Writes the messages in a driver's default log to a session that has enabled the driver's provider.
fn replay(context: &Context, control: Memory, handle: u64, flags: u32, level: u8) -> NtStatus {
    let is_enabled = |message: &RecorderMessage| {
        let bit = message.flag.wrapping_sub(1) & 31;
        message.level <= level && flags >> bit & 1 != 0
    };
    let messages: Vec<RecorderMessage> = {
        let recorder = context.recorder();
        let logs = recorder.0.iter().filter(|log| log.is_default);
        let of_driver = logs.filter(|log| log.control == control.0);
        let all = of_driver.flat_map(|log| log.messages.iter().cloned());
        all.filter(is_enabled).collect()
    };
    let Some(session) = session(context, handle) else {
        return NtStatus::SUCCESS;
    };
    let identity = context.identity();
    for message in messages {
        let record = WppRecord {
            message: message.number,
            guid: Some(message.guid),
            timestamp: Some(0),
            thread_and_process: Some((identity.thread, identity.process)),
            arguments: message.data,
            ..WppRecord::default()
        };
        let encoded = EncodedRecord::try_from(&record).ok();
        let _recorded = record_in(context, &session, encoded, record.arguments.len());
    }
    NtStatus::SUCCESS
}
