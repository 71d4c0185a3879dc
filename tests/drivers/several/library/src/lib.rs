//! A library crate with its own provider, like a driver's protocol or hardware layer.

#![no_std]

mod trace;

use wdk_etw::{HexDump, NtStatus, Traced as _, emit};

pub use trace::provider::{register, unregister};

/// Checks a message: one byte with its length, and the bytes. Writes it, and why it is invalid.
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
