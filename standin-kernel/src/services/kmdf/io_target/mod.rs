//! I/O targets, and the requests that a driver sends to them.

pub mod buffers;
pub mod format;
pub mod open;
pub mod removal;
pub mod requests;
pub mod routines;
pub mod submit;
pub mod synchronous;
pub mod usb;
