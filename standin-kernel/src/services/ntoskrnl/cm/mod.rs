//! The configuration manager: callbacks for the registry. Its keys are under `zw` and `rtl`.

pub mod callbacks;
