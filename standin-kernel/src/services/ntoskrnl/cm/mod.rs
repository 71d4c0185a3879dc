//! The configuration manager: registry callbacks. The routines for keys are in `zw` and `rtl`.

pub mod callbacks;
pub mod key_information;
pub mod key_operations;
pub mod keys;
pub mod values;
