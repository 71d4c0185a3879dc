//! The Kernel-Mode Driver Framework: its function table and its objects.
//!
//! Each folder has the routines and callbacks of a kind of framework object, or of a group of kinds:
//! `object` the general ones (memory, collections, strings), `io` queues and requests, `deferred`
//! timers, DPCs and work items. `state` has what several of them share.

pub mod bus;
pub mod deferred;
pub mod device;
pub mod dma;
pub mod driver;
pub mod file;
pub mod interrupt;
pub mod io;
pub mod io_target;
pub mod object;
pub mod registry;
pub mod state;
pub mod synchronization;
pub mod table;
