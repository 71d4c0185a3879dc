//! `NTSTATUS` values.

pub use etw_wire::NtStatus;
