//! What must be observed of the sample driver, written once.
//!
//! [`tour`] drives the device through everything it can do while two sessions
//! trace it, and says which events each session must have recorded.

mod tour;

pub use crate::tour::{Tour, TourError, drive};
