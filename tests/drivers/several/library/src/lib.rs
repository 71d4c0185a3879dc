//! A library crate with a provider of its own, as a driver's protocol or hardware layer is.

#![no_std]

mod trace;

use wdk_etw::{HexDump, NtStatus, Traced as _, emit};

pub use trace::provider::{register, unregister};

/// Checks a message: a byte with its length, and the bytes. Writes the message, and why it is wrong.
///
/// # Errors
///
/// Returns `STATUS_INVALID_PARAMETER` if the message's length differs from the length that it
/// states.
pub fn check(message: &[u8]) -> Result<(), NtStatus> {
    emit!(trace::provider::received(message.len(), HexDump::window(message, 1, 4)));
    let said = message.first().copied().map(usize::from);
    let valid = said == message.len().checked_sub(1);
    valid.then_some(()).ok_or(NtStatus::INVALID_PARAMETER).traced(trace::provider::refused)
}
