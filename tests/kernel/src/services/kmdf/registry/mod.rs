//! The registry, and the `WdfRegistry*` routines.

pub mod assign;
pub mod keys;
pub mod query;
