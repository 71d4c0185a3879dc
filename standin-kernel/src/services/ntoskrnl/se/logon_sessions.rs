//! Logon sessions: the system's and the user's, which do not end.

use super::tokens::{SYSTEM_LUID, USER_LUID};
use crate::{
    execution::routine::{At, Callback, routine},
    ground::{NtResult, NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("SeMarkLogonSessionForTerminationNotification", mark),
    routine("SeRegisterLogonSessionTerminatedRoutine", register),
    routine("SeUnregisterLogonSessionTerminatedRoutine", unregister),
];

/// `STATUS_NOT_FOUND`.
const NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_0225);

/// The routines that drivers registered, newest last.
#[derive(Default)]
struct Routines(Vec<u64>);

/// Asks for a notification of the end of a logon session.
fn mark(context: &Context, id: At<u64>) -> NtResult {
    let id = id.read(context);
    if [SYSTEM_LUID, USER_LUID].contains(&id) { Ok(()) } else { Err(NOT_FOUND) }
}

fn register(context: &Context, routine: Callback) -> NtResult {
    if routine == Callback(0) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    context.with_state(|Routines(all)| all.push(routine.0));
    Ok(())
}

fn unregister(context: &Context, routine: Callback) -> NtResult {
    if routine == Callback(0) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    context.with_state(|Routines(all)| {
        let at = all.iter().rposition(|one| *one == routine.0).ok_or(NOT_FOUND)?;
        all.remove(at);
        Ok(())
    })
}

/// Removes and returns the routines that `belongs` selects.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    context.with_state(|Routines(all)| all.extract_if(.., |one| belongs(*one)).count())
}
