//! Queries about the framework, and reports to it.

use super::version::VERSION;
use crate::{
    execution::{
        kinds::AnyObject,
        routine::{At, Callback, Handle, Memory, routine},
    },
    ground::{NtStatus, abi::DriverObject, arena::Block},
    services::kmdf::state::framework::{Context, Entries},
};
use etl_file::Guid;

pub const ENTRIES: Entries = &[
    routine("WdfObjectQuery", query),
    routine("WdfVerifierKeBugCheck", bug_check),
    routine("WdfCxVerifierKeBugCheck", bug_check_for),
    routine("WdfGetTriageInfo", get_triage_info),
    routine("WdfDriverRegisterTraceInfo", register_trace_info),
];

/// Returns `STATUS_NOT_FOUND`, as the framework does for every GUID.
fn query(
    context: &Context,
    object: Handle<AnyObject>,
    _guid: At<Guid>,
    _length: u32,
    _buffer: Memory,
) -> NtStatus {
    context.with_object(object.0, |_| ());
    NtStatus::NOT_FOUND
}

/// Bugchecks as `KeBugCheckEx` does.
fn stop(context: &Context, code: u32, parameters: [u64; 4]) -> ! {
    let message = format!("the driver called {} from {}", context.call().name, context.caller());
    let backtrace = context.backtrace();
    context.bugcheck(code, parameters, message, &backtrace)
}

fn bug_check(context: &Context, code: u32, p1: u64, p2: u64, p3: u64, p4: u64) {
    stop(context, code, [p1, p2, p3, p4]);
}

/// Bugchecks as `KeBugCheckEx` does. The object, if not null, selects the log that a dump contains.
fn bug_check_for(
    context: &Context,
    object: Handle<AnyObject>,
    code: u32,
    p1: u64,
    p2: u64,
    p3: u64,
    p4: u64,
) {
    if object.0 != 0 {
        context.with_object(object.0, |_| ());
    }
    stop(context, code, [p1, p2, p3, p4]);
}

/// The block that debuggers use to find the framework.
#[derive(Default)]
struct TriageInfo(Option<Block>);

/// Returns the address of the information for debuggers: the versions of the framework and of the
/// information and, on Windows, pointers to the layouts of framework objects. The stand-in kernel
/// has no such objects, so these pointers are null.
fn get_triage_info(context: &Context) -> Memory {
    const SIZE: usize = 96;
    let (address, is_new) = {
        let mut framework = context.framework();
        let info = &mut framework.part::<TriageInfo>().0;
        let is_new = info.is_none();
        let block = info.get_or_insert_with(|| Block::zeroed(SIZE));
        (block.address(), is_new)
    };
    if is_new {
        let (major, minor) = VERSION;
        context.write(address, &[major, minor, 1, 1]);
    }
    At::new(address)
}

/// Returns `STATUS_NOT_SUPPORTED`, as the framework does.
const fn register_trace_info(
    _context: &Context,
    _driver: At<DriverObject>,
    _callback: Callback,
    _block: Memory,
) -> NtStatus {
    NtStatus::NOT_SUPPORTED
}
