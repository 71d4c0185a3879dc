//! The registry: keys and values by handles, and by paths that are relative to keys of the system.

pub mod common;
pub mod keys;
pub mod query_table;
pub mod relative;
mod values;
