//! The registry that the framework's keys and the kernel's routines share. It starts with only the
//! keys that every system has, and exists only as long as its kernel.

pub mod paths;
pub mod store;
pub mod tree;
pub mod value;
