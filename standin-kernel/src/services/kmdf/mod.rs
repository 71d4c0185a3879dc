//! The Kernel-Mode Driver Framework: its function table and its objects.
//!
//! Each folder has the routines and callbacks of a kind of framework object, or of a group of kinds:
//! `object` the general ones (memory, collections, strings), `io` queues and requests, `deferred`
//! timers, DPCs and work items. `state` has what several of them share. A module that uses several
//! folders, or that several use, lies beside them, since folders do not use each other in circles.

pub mod binding;
pub mod bus;
pub mod creation;
pub mod deferred;
pub mod device;
pub mod dma;
pub mod driver;
pub mod file_object;
pub mod file_opening;
pub mod interrupt;
pub mod io;
pub mod io_target;
pub mod lifetime;
pub mod miniport;
pub mod object;
pub mod registry;
pub mod resource_lists;
pub mod state;
pub mod synchronization;
pub mod table;
pub mod wdm_request;
pub mod work;
