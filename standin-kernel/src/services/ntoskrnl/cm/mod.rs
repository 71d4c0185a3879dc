//! The configuration manager: keys, values, registry callbacks and notifications.

pub mod callbacks;
pub mod changes;
pub mod key_information;
pub mod key_operations;
pub mod keys;
pub mod values;
