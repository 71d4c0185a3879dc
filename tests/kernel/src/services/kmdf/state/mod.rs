//! The framework's state: objects, and the data of kinds that several modules share.

pub mod device;
pub mod file;
pub mod framework;
pub mod queue;
pub mod request;
pub mod text;
