//! The sample KMDF driver that traces itself with wdk-etw.
//!
//! The driver serves a root-enumerated device without hardware. Reads return the bytes of the last
//! write, control codes echo their input immediately or from a DPC, and a periodic timer ticks.
//! Every callback writes ETW events, which [`trace`] declares.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the sizes of WDK structures fit in their size fields"
)]

extern crate alloc;

mod context;
mod device;
mod entry;
mod parameters;
mod queue;
mod record;
mod state;
mod text;
mod timer;
mod trace;

#[cfg(not(test))]
extern crate wdk_panic;

use wdk_alloc::WdkAllocator;

#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;
