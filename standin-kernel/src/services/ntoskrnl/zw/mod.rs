//! System services: files, keys, events, waits and the security of objects.

pub mod events;
pub mod file_information;
pub mod files;
pub mod information;
pub mod key_operations;
pub mod keys;
pub mod values;
pub mod waits;
