//! A library crate with its own provider, like a driver's protocol or hardware layer.

#![no_std]

mod trace;

use wdk_etw::{HexDump, NtStatus, Traced as _, emit};

pub use trace::provider::{register, unregister};

/// Checks a message: one byte that contains its length, and the bytes. Writes events for the
/// message, and for the reason why it is invalid.
///
/// # Errors
///
/// Returns `STATUS_INVALID_PARAMETER` if the message's length differs from the length in its first
/// byte.
pub fn check(message: &[u8]) -> Result<(), NtStatus> {
    emit!(trace::provider::received(message.len(), HexDump::window(message, 1, 4)));
    let said = message.first().copied().map(usize::from);
    let valid = said == message.len().checked_sub(1);
    valid.then_some(()).ok_or(NtStatus::INVALID_PARAMETER).traced(trace::provider::refused)
}
