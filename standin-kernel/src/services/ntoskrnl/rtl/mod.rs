//! The run-time library: strings, memory, bitmaps, tables, times, versions and security descriptors.

pub mod addresses;
pub mod bitmaps;
pub mod compression;
pub mod expressions;
pub mod frames;
pub mod memory;
pub mod query_table;
pub mod registry;
pub mod run_once;
pub mod security;
pub mod security_identifiers;
pub mod strings;
pub mod tables;
pub mod texts;
pub mod times;
pub mod utf8;
pub mod version;
pub mod version_conditions;
