//! Devices, from `WDFDEVICE_INIT` to their removal.

pub mod capabilities;
pub mod device_state;
pub mod init;
pub mod interfaces;
pub mod nodes;
pub mod pnp;
pub mod power_policy;
pub mod properties;
pub mod relations;
pub mod routines;
pub mod settings;
pub mod wdm;
pub mod wmi;
