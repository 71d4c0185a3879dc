//! Session buffers, and the log file that they are flushed to.
//!
//! A session keeps a [`Buffer`] per processor and appends records to it. When
//! the next record does not fit, or the flush timer fires, the session hands
//! the buffer to its [`LogFile`] and starts it anew.

mod buffer;
mod file;

pub use buffer::{AppendError, Buffer};
pub use file::{Finish, LogFile, Losses, WriteError};
