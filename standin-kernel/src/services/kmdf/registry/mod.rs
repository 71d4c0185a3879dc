//! The `WdfRegistry*` routines, on the registry that the kernel has.

pub mod assign;
pub mod keys;
pub mod query;
