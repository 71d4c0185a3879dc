//! Queries and reports about the framework itself.

use super::{
    driver_version::VERSION,
    state::framework::{Context, Entries},
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{arena::Block, status::NtStatus},
};

pub const ENTRIES: Entries = &[
    ("WdfObjectQuery", Routine::Five(query)),
    ("WdfVerifierKeBugCheck", Routine::Six(bug_check)),
    ("WdfCxVerifierKeBugCheck", Routine::Seven(bug_check_for)),
    ("WdfGetTriageInfo", Routine::One(get_triage_info)),
    ("WdfDriverRegisterTraceInfo", Routine::Four(register_trace_info)),
];

/// Returns `STATUS_NOT_FOUND`, as the framework does for every GUID.
fn query(
    context: &Context,
    _globals: u64,
    object: u64,
    _guid: u64,
    _length: u64,
    _buffer: u64,
) -> u64 {
    context.with_object(object, |_| ());
    NtStatus::NOT_FOUND.to_register()
}

/// Bugchecks as `KeBugCheckEx` does.
fn stop(context: &Context, code: u64, parameters: [u64; 4]) -> ! {
    let message = format!("the driver called {} from {}", context.call().name, context.caller());
    let backtrace = context.backtrace();
    context.bugcheck(low_half(code), parameters, message, &backtrace)
}

fn bug_check(
    context: &Context,
    _globals: u64,
    code: u64,
    p1: u64,
    p2: u64,
    p3: u64,
    p4: u64,
) -> u64 {
    stop(context, code, [p1, p2, p3, p4])
}

/// Bugchecks as `KeBugCheckEx` does. The object, or null, selects whose log a dump contains.
fn bug_check_for(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, object, code, p1, p2, p3, p4] = arguments;
    if object != 0 {
        context.with_object(object, |_| ());
    }
    stop(context, code, [p1, p2, p3, p4])
}

/// What debuggers know the framework by.
#[derive(Default)]
struct TriageInfo(Option<Block>);

/// Returns the address of the information for debuggers: the framework's version, that of the
/// information, and pointers to the layouts of Windows' framework objects. The stand-in kernel has no
/// such objects, so these pointers are null.
fn get_triage_info(context: &Context, _globals: u64) -> u64 {
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
    address
}

/// Returns `STATUS_NOT_SUPPORTED`, as the framework does.
const fn register_trace_info(
    _context: &Context,
    _globals: u64,
    _driver: u64,
    _callback: u64,
    _block: u64,
) -> u64 {
    NtStatus::NOT_SUPPORTED.to_register()
}
