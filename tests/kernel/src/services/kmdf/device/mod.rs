//! Devices, from their description to their removal.

pub mod init;
pub mod pnp;
pub mod routines;
