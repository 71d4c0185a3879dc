//! Controls ETW sessions on Windows, and consumes and decodes their events.
//!
//! `cargo etw trace` and the sample driver's client use this library. [`Source`], [`Filter`] and
//! [`AutoLogger`] exist on every system; everything that calls Windows exists only there. The tests
//! run under Wine, which has no ETW; a mock replaces the ETW and TDH routines.

pub mod autologger;
mod source;

#[cfg(windows)]
mod api;
#[cfg(windows)]
pub mod consumer;
#[cfg(windows)]
pub mod error;
#[cfg(windows)]
pub mod follow;
#[cfg(windows)]
pub mod guid;
#[cfg(all(windows, test))]
mod mock;
#[cfg(windows)]
pub mod pointer;
#[cfg(windows)]
pub mod process;
#[cfg(windows)]
pub mod record;
#[cfg(windows)]
pub mod session;
#[cfg(windows)]
pub mod tdh;
#[cfg(windows)]
pub mod wide;

pub use autologger::AutoLogger;
pub use source::{Filter, Ids, Source};
