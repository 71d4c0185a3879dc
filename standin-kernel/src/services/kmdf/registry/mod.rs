//! The `WdfRegistry*` routines, which use the kernel's registry.

pub mod assign;
pub mod keys;
pub mod query;
