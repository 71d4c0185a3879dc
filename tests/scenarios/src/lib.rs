//! What must be observed of the sample driver, written once.
//!
//! [`drive`] drives the device through everything it can do while two sessions
//! trace it; [`expected_everything`] and [`expected_requests`] say which events
//! each session must have recorded, and [`check`] compares.

mod expect;
mod tour;

pub use crate::{
    expect::{ExpectError, Expected, check},
    tour::{Tour, TourError, drive, expected_everything, expected_requests, provider},
};
