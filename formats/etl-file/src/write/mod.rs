//! Session buffers and the log file to which they are flushed.
//!
//! A session keeps a [`Buffer`] per processor and appends records to it. When
//! the next record does not fit, or the flush timer fires, the session writes
//! the buffer to its [`LogFile`] and clears it.

mod buffer;
mod file;
mod raw;

pub use buffer::{AppendError, Buffer};
pub use file::{Finish, LogFile, Losses, Obstacle, WriteError};
pub use raw::{ClassicRecord, KernelForm, KernelRecord, WppRecord};
