//! The routines that print to a debugger, and those that break into a debugger.

use super::crt::format::variadic;
use super::{
    context::{Context, Entries},
    crt::format::{Arguments, Width, format},
};
use crate::{
    execution::routine::{At, Memory, routine},
    ground::{NtStatus, irql::Irql, memory},
};

pub const ENTRIES: Entries = &[
    routine("DbgPrint", dbg_print),
    routine("DbgPrintEx", dbg_print_ex),
    routine("vDbgPrintEx", v_dbg_print_ex),
    routine("vDbgPrintExWithPrefix", v_dbg_print_ex_with_prefix),
    routine("DbgBreakPoint", break_point),
    routine("DbgBreakPointWithStatus", break_point_with_status),
    routine("RtlAssert", assert),
];

/// The maximum length in bytes of the output of one call.
const LIMIT: usize = 512;

fn dbg_print(context: &Context, format: At<i8>, _: u64, _: u64, _: u64) -> u32 {
    print(context, "", format.0, variadic(context, 1))
}

fn dbg_print_ex(context: &Context, _component: u32, _level: u32, format: At<i8>, _: u64) -> u32 {
    print(context, "", format.0, variadic(context, 3))
}

fn v_dbg_print_ex(
    context: &Context,
    _component: u32,
    _level: u32,
    format: At<i8>,
    arguments: At<i8>,
) -> u32 {
    print(context, "", format.0, Arguments::at(arguments.0))
}

fn v_dbg_print_ex_with_prefix(
    context: &Context,
    prefix: At<i8>,
    _component: u32,
    _level: u32,
    format: At<i8>,
    arguments: At<i8>,
) -> u32 {
    let prefix = text(context, prefix.0);
    print(context, &prefix, format.0, Arguments::at(arguments.0))
}

/// Returns a narrow string that the driver passed.
fn text(context: &Context, address: u64) -> String {
    let bytes = context.checked(memory::read_c_string(address, LIMIT));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Formats a driver's message, and stores it.
fn print(context: &Context, prefix: &str, text: u64, mut arguments: Arguments) -> u32 {
    let bytes = context.checked(memory::read_c_string(text, LIMIT));
    let units: Vec<u16> = bytes.into_iter().map(u16::from).collect();
    let formatted = context.checked(format(&units, Width::Narrow, &mut arguments));
    if formatted.converts {
        context.require_irql(Irql::PASSIVE_LEVEL, "with a directive for wide characters");
    }
    let mut out = format!("{prefix}{}", formatted.to_text());
    let end = (0..=LIMIT.min(out.len())).rev().find(|end| out.is_char_boundary(*end));
    out.truncate(end.unwrap_or(0));
    context.print(out);
    NtStatus::SUCCESS.bits()
}

/// `KMODE_EXCEPTION_NOT_HANDLED`, the result of a breakpoint if no debugger is attached.
const KMODE_EXCEPTION_NOT_HANDLED: u32 = 0x1E;
/// `STATUS_BREAKPOINT`.
const STATUS_BREAKPOINT: u64 = 0x8000_0003;

/// Bugchecks, as a breakpoint does if no debugger is attached.
fn stop_at_breakpoint(context: &Context, message: String) -> ! {
    context.bugcheck(
        KMODE_EXCEPTION_NOT_HANDLED,
        [STATUS_BREAKPOINT, context.call().return_address, 0, 0],
        message,
        &context.backtrace(),
    )
}

fn break_point(context: &Context) {
    let message = format!(
        "the driver called {} from {}, and no kernel debugger is attached",
        context.call().name,
        context.caller()
    );
    stop_at_breakpoint(context, message)
}

fn break_point_with_status(context: &Context, _status: u32) {
    break_point(context);
}

/// Reports a failed assertion, which breaks into the debugger.
fn assert(context: &Context, assertion: Memory, file: Memory, line: u32, message: At<i8>) {
    let or_empty = |address: u64| match address {
        0 => String::new(),
        _ => text(context, address),
    };
    let message = match or_empty(message.0) {
        message if message.is_empty() => message,
        message => format!(": {message}"),
    };
    let sentence = format!(
        "the driver's assertion `{}` failed at {}:{}{message}",
        or_empty(assertion.0),
        or_empty(file.0),
        line
    );
    stop_at_breakpoint(context, sentence)
}
