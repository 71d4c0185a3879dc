//! The routines that open, read and change the registry's keys.

pub mod information;
pub mod keys;
pub mod query_table;
pub mod relative;
pub mod values;
