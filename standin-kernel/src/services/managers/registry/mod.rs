//! The registry that the framework's keys and the kernel's routines share: made up, empty but for the
//! keys that every system has, and gone with its kernel.

pub mod paths;
pub mod store;
pub mod tree;
pub mod value;
