//! Checks of addresses in user space, and the exceptions that they and drivers raise.
//!
//! The stand-in kernel dispatches no exceptions: one that is raised ends the kernel, even where a handler
//! of the driver would run on Windows. A check that finds nothing wrong returns, as it does on Windows.

use crate::{
    execution::{identity::Identity, routine::Routine},
    ground::{NtStatus, irql::Irql},
    services::ntoskrnl::context::{Context, Entries},
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExRaiseStatus", APC, Routine::of(raise_status)),
    ("ExRaiseAccessViolation", APC, Routine::of(raise_access_violation)),
    ("ExRaiseDatatypeMisalignment", APC, Routine::of(raise_misalignment)),
    ("ExGetPreviousMode", Irql::DISPATCH_LEVEL, Routine::of(previous_mode)),
];

/// `STATUS_DATATYPE_MISALIGNMENT`.
pub const MISALIGNMENT: NtStatus = NtStatus::from_bits(0x8000_0002);

fn raise_status(context: &Context, status: NtStatus) {
    context.raise_exception(status, "by the driver")
}

fn raise_access_violation(context: &Context) {
    context.raise_exception(NtStatus::ACCESS_VIOLATION, "by the driver")
}

fn raise_misalignment(context: &Context) {
    context.raise_exception(MISALIGNMENT, "by the driver")
}

/// Returns `UserMode` on a thread of a program's process, which entered the kernel with a request, and
/// `KernelMode` on the system's threads.
fn previous_mode(context: &Context) -> i8 {
    /// `KernelMode` and `UserMode`.
    const MODES: [i8; 2] = [0, 1];
    let system = [Identity::IDLE.process, Identity::SYSTEM.process];
    let is_user = !system.contains(&context.identity().process);
    MODES[usize::from(is_user)]
}
