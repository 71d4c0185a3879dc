//! Checks of addresses in user space, and the exceptions that they and drivers raise.
//!
//! The stand-in kernel dispatches no exceptions: one that is raised ends the kernel, even where a handler
//! of the driver would run on Windows. A check that finds nothing wrong returns, as it does on Windows.

use super::{
    context::{Context, Entries},
    data::USER_PROBE_ADDRESS,
    pages,
};
use crate::{
    execution::{
        identity::Identity,
        routine::{Routine, low_half},
    },
    ground::{arena::PAGE, irql::Irql, memory, status::NtStatus},
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("ProbeForRead", APC, Routine::Three(probe_for_read)),
    ("ProbeForWrite", APC, Routine::Three(probe_for_write)),
    ("ExRaiseStatus", APC, Routine::One(raise_status)),
    ("ExRaiseAccessViolation", APC, Routine::Zero(raise_access_violation)),
    ("ExRaiseDatatypeMisalignment", APC, Routine::Zero(raise_misalignment)),
    ("ExGetPreviousMode", Irql::DISPATCH_LEVEL, Routine::Zero(previous_mode)),
];

/// `STATUS_DATATYPE_MISALIGNMENT`.
const MISALIGNMENT: NtStatus = NtStatus::from_bits(0x8000_0002);

/// Bugchecks because a routine raises an exception. `why` completes "was called from PLACE".
pub fn raise(context: &Context, status: NtStatus, why: &str) -> ! {
    /// `KMODE_EXCEPTION_NOT_HANDLED`.
    const NOT_HANDLED: u32 = 0x1E;
    let call = context.call();
    context.bugcheck(
        NOT_HANDLED,
        [u64::from(status.bits()), call.return_address, 0, 0],
        format!(
            "{} was called from {} {why} and raised {status}; the stand-in kernel does not dispatch \
             exceptions, so a handler of the driver does not run",
            call.name,
            context.caller()
        ),
        &context.backtrace(),
    )
}

fn raise_status(context: &Context, status: u64) -> u64 {
    raise(context, NtStatus::from_register(status), "by the driver")
}

fn raise_access_violation(context: &Context) -> u64 {
    raise(context, NtStatus::ACCESS_VIOLATION, "by the driver")
}

fn raise_misalignment(context: &Context) -> u64 {
    raise(context, MISALIGNMENT, "by the driver")
}

/// Returns what an address in system space is in. All memory of a process of Linux is below the end of
/// user space, so the value does not tell.
fn of_system(context: &Context, address: u64) -> Option<&'static str> {
    let environment = context.environment();
    if context.pool().contains(address) || environment.paged.contains(address) {
        Some("pool")
    } else if environment.images.contains(address) {
        Some("a driver's image")
    } else if pages::contains(context, address) {
        Some("pages that the driver allocated")
    } else if context.stack().contains(address) {
        Some("the driver's stack")
    } else {
        None
    }
}

/// Checks that a range is in user space and aligned. A range without bytes is not checked.
fn probe(context: &Context, address: u64, length: u64, alignment: u64) -> Option<u64> {
    let range = format!("for {length} bytes at 0x{address:016X}");
    if length == 0 {
        return None;
    }
    let alignment = u64::from(low_half(alignment)).max(1);
    if address & (alignment - 1) != 0 {
        let why = format!("{range}, which is not aligned to {alignment} bytes,");
        raise(context, MISALIGNMENT, &why);
    }
    let end = address.checked_add(length);
    let is_below = end.is_some_and(|end| end <= USER_PROBE_ADDRESS);
    if !is_below {
        let why = format!("{range}, which are not in user space,");
        raise(context, NtStatus::ACCESS_VIOLATION, &why);
    }
    if let Some(place) = of_system(context, address) {
        let why = format!("{range}, which is in {place} and not in user space,");
        raise(context, NtStatus::ACCESS_VIOLATION, &why);
    }
    end
}

fn probe_for_read(context: &Context, address: u64, length: u64, alignment: u64) -> u64 {
    probe(context, address, length, alignment);
    0
}

/// Checks a range as [`probe_for_read`] does, and that each of its pages can be written.
fn probe_for_write(context: &Context, address: u64, length: u64, alignment: u64) -> u64 {
    const STEP: u64 = PAGE as u64;
    let Some(end) = probe(context, address, length, alignment) else {
        return 0;
    };
    let mut at = address;
    while at < end {
        let touched = memory::read::<u8>(at).and_then(|byte| memory::write(at, &byte));
        if let Err(error) = touched {
            let why = format!("for {length} bytes at 0x{address:016X}, and {error},");
            raise(context, NtStatus::ACCESS_VIOLATION, &why);
        }
        at = (at & !(STEP - 1)) + STEP;
    }
    0
}

/// Returns `UserMode` on a thread of a program's process, which entered the kernel with a request, and
/// `KernelMode` on the system's threads.
fn previous_mode(context: &Context) -> u64 {
    /// `KernelMode` and `UserMode`.
    const MODES: [u64; 2] = [0, 1];
    let system = [Identity::IDLE.process, Identity::SYSTEM.process];
    let is_user = !system.contains(&context.identity().process);
    MODES[usize::from(is_user)]
}
