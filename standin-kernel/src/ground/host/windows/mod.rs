//! The stand-in kernel's host on Windows.

pub mod code;
pub mod faults;
pub mod files;
pub mod memory;
#[cfg(feature = "run")]
pub mod process;
pub mod thread;
