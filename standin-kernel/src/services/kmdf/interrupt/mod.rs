//! Interrupts, which tests raise.

pub mod delivery;
pub mod lock;
pub mod routines;
pub mod state;
pub mod wdm;
