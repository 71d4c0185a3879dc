//! The registry that the framework's keys and the kernel's routines share. At first, it contains
//! only the keys that every system has. It exists as long as its kernel.

pub mod paths;
pub mod store;
pub mod tree;
pub mod value;
