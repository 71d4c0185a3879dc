//! `NTSTATUS` values.

pub use etw_wire::NtStatus;

/// The result of an operation that fails with a status.
pub type NtResult<T = ()> = Result<T, NtStatus>;
