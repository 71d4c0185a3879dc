//! Devices, from `WDFDEVICE_INIT` to their removal.

pub mod init;
pub mod pnp;
pub mod routines;
