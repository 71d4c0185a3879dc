//! A driver that probes undocumented behavior of ETW at its client's request.
//!
//! It calls ETW directly, because wdk-etw refuses some of the operations. The driver's device
//! serves one request at a time: an operation and its answer (`etw-probes-interface`).

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

mod activities;
mod answers;
mod callbacks;
mod context;
mod device;
mod entry;
mod phases;
mod registrations;
mod requests;
mod stored;
mod system;
mod thread;
mod timer;
mod write;
