//! Checks of user-space addresses, and the exceptions that these checks and drivers raise.
//!
//! The stand-in kernel does not dispatch exceptions: a raised exception bugchecks, even if a
//! handler in the driver would run on Windows. As on Windows, a check that finds no error returns
//! normally.

use crate::{
    execution::{identity::Identity, routine::routine},
    ground::NtStatus,
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("ExRaiseStatus", raise_status),
    routine("ExRaiseAccessViolation", raise_access_violation),
    routine("ExRaiseDatatypeMisalignment", raise_misalignment),
    routine("ExGetPreviousMode", previous_mode),
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

/// Returns `UserMode` on a thread of a program's process, which entered the kernel with a request,
/// and `KernelMode` on a system thread.
fn previous_mode(context: &Context) -> i8 {
    /// `KernelMode` and `UserMode`.
    const MODES: [i8; 2] = [0, 1];
    let system = [Identity::IDLE.process, Identity::SYSTEM.process];
    let is_user = !system.contains(&context.identity().process);
    MODES[usize::from(is_user)]
}
