//! Session buffers and the log file to which they are flushed.
//!
//! A session appends records to a [`Buffer`] for each processor. When a record
//! does not fit, or the flush timer fires, it writes the buffer to its
//! [`LogFile`] and clears the buffer.

mod buffer;
mod file;
mod raw;

pub use buffer::{AppendError, Buffer};
pub use file::{Finish, LogFile, Losses, Obstacle, WriteError};
pub use raw::{ClassicRecord, KernelForm, KernelRecord, WppRecord};
