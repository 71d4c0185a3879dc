//! The registry: keys and values, by handles and by paths relative to the system's keys.

pub mod callbacks;
pub mod common;
pub mod keys;
pub mod query_table;
pub mod relative;
mod values;
