//! The ground that everything else stands on: memory and addresses, images, the ABI, IRQLs,
//! time, statuses, and the vocabulary of rules.
//!
//! Nothing here knows of threads, of routines or of drivers that run.

pub mod abi;
pub mod access;
pub mod arena;
pub mod bugcheck;
pub mod clock;
pub mod copy;
pub mod image;
pub mod images;
pub mod irql;
pub mod loader;
pub mod lock_order;
pub mod memory;
pub mod rule;
pub mod signals;
pub mod status;
pub mod symbols;
