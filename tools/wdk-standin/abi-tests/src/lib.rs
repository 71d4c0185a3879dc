//! Measurements of every definition of the wdk-sys stand-in, which the tests compare with data that
//! were extracted from the WDK's headers.

#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    non_upper_case_globals,
    reason = "the list is generated from the stand-in's sources"
)]
mod measured {
    use wdk_sys::*;

    include!(concat!(env!("OUT_DIR"), "/measured.rs"));
}

pub use measured::{ALIASES, CONSTANTS, ENUMERATORS, ROUTINES, TYPES};
