//! The configuration manager: registry callbacks. The routines for keys are in `zw` and `rtl`.

pub mod callbacks;
