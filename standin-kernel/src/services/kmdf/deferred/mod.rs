//! Deferred work: timers, DPCs and work items.

pub mod timer;
pub mod work_item;
