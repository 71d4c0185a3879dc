//! The composition of a kernel: its services and their connections, and the gateways of all routines.

pub mod exports;
pub mod system;
