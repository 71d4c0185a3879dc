//! The power management framework: components of devices. Drivers activate and idle them, and idle
//! components use low-power states.

mod description;
pub mod routines;
mod state;
