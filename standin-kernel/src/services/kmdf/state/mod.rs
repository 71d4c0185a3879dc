//! The framework's state: objects, and data that several modules share.

pub mod device;
pub mod device_object;
pub mod file;
pub mod framework;
pub mod operation;
pub mod outgoing;
pub mod queue;
pub mod request;
pub mod simulated;
pub mod stack;
pub mod target;
pub mod text;
