//! The lowest layer: memory and addresses, images, the ABI, IRQLs, time, statuses and rules.
//!
//! This layer does not depend on threads, routines or running drivers.

pub mod abi;
pub mod access;
pub mod arena;
pub mod backtrace;
pub mod bugcheck;
pub mod clock;
pub mod copy;
pub mod culprit;
pub mod fast_fail;
pub mod flight;
pub mod host;
pub mod image;
pub mod images;
pub mod irql;
pub mod load_config;
pub mod loader;
pub mod lock_order;
pub mod memory;
pub mod memory_routines;
pub mod nearest;
pub mod opaque;
pub mod processor_block;
pub mod restore_guard;
pub mod rule;
pub mod shared_data;
pub mod spool;
pub mod symbols;
pub mod tally;
pub mod unprovided;
pub mod unwind;

pub use etw_wire::NtStatus;

/// The result of an operation that fails with a status.
pub type NtResult<T = ()> = Result<T, NtStatus>;
