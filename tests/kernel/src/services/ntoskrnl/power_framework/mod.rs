//! The power management framework: components of devices, which drivers activate and idle, and which
//! idle in a state of low power.

pub mod routines;
mod state;
