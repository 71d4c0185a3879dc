//! Processes and threads, and the routines that drivers register to be notified of them.

pub mod current;
pub mod notify_routines;
pub mod process_handles;
pub mod processes;
pub mod thread_creation;
pub mod watchers;
