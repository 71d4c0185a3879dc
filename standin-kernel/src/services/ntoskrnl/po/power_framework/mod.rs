//! The power management framework: components of devices, which drivers activate and idle, and which
//! idle in a state of low power.

mod description;
pub mod routines;
mod state;
