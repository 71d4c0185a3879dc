//! The routines of ntoskrnl.exe, except those of ETW.

pub mod callbacks;
mod code_page;
pub mod context;
mod crt;
pub mod data;
mod dispatcher;
pub mod dpc;
mod events;
pub mod exports;
pub mod files;
mod format;
mod handles;
mod header;
pub mod left;
mod mdl;
mod mutexes;
mod pool;
mod print;
mod processors;
mod rtl;
mod spin_locks;
mod strings;
mod system;
mod thread_objects;
pub mod threads;
pub mod timer;
mod work_items;
