//! Events for error statuses.

use crate::{NtStatus, WriteError};

/// Writes an event if a result is an error, and returns the result unchanged.
///
/// ```no_run
/// #[wdk_etw::provider(name = "Contoso.Driver")]
/// mod trace {
///     #[event(level = Error, keyword = none)]
///     pub fn start_failed(status: NtStatus);
///
///     #[event(level = Error, keyword = none)]
///     pub fn read_failed(offset: u64, status: NtStatus);
/// }
///
/// use wdk_etw::{NtStatus, Traced as _, emit};
///
/// # fn map_registers() -> Result<(), NtStatus> { Ok(()) }
/// # fn read_at(offset: u64) -> i32 { 0 }
/// fn start(offset: u64) -> Result<(), NtStatus> {
///     map_registers().traced(trace::start_failed)?;
///     // With other fields, and a WDK routine's status, which is an `i32`:
///     let status = NtStatus(read_at(offset));
///     let status = status.traced(|status| emit!(trace::read_failed(offset, status)));
///     if status.is_success() { Ok(()) } else { Err(status) }
/// }
/// ```
///
/// A success costs one comparison. An error also costs the event's check.
///
/// # IRQL
///
/// Any, like the event's own function. An event that is passed by name has the thread's activity;
/// at `DISPATCH_LEVEL` and above, pass a closure whose [`emit!`](macro@crate::emit) sets it.
pub trait Traced: Sized {
    /// Passes the status to `write` if this is an error, and returns `self`. `write` can be the
    /// function of an event whose only field is an `NtStatus`.
    #[must_use = "the function returns the result; the caller must still handle it"]
    fn traced(self, write: impl FnOnce(NtStatus)) -> Self;
}

/// An error that has an `NTSTATUS`. A driver can implement it for its own errors.
pub trait HasStatus {
    /// Returns the status.
    fn status(&self) -> NtStatus;
}

impl HasStatus for NtStatus {
    #[inline]
    fn status(&self) -> NtStatus {
        *self
    }
}

impl HasStatus for WriteError {
    #[inline]
    fn status(&self) -> NtStatus {
        self.0
    }
}

impl<T, E: HasStatus> Traced for Result<T, E> {
    #[inline]
    fn traced(self, write: impl FnOnce(NtStatus)) -> Self {
        if let Err(error) = &self {
            write(error.status());
        }
        self
    }
}

impl Traced for NtStatus {
    #[inline]
    fn traced(self, write: impl FnOnce(Self)) -> Self {
        if !self.is_success() {
            write(self);
        }
        self
    }
}
