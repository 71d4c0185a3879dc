//! Tests `wdk-etw` as drivers use it, with the mock ETW routines of `mock-etw`.

#![allow(clippy::significant_drop_tightening, reason = "a test's turn lasts as long as the test")]

extern crate self as itself;

mod configured;
mod cuts;
mod debugger;
mod declared;
mod decode;
mod documents;
mod dynamic;
mod elements;
mod enable_state;
/// The declaration with everything that can be declared compiles; tests of `wdk-etw-build` write its
/// manifest.
#[path = "../../build/tests/fixture/everything.rs"]
mod everything;
pub mod exported;
mod field_types;
mod from_wpp;
mod helpers;
mod hostile;
mod imported;
mod large;
mod limits;
pub mod lints;
mod names;
mod parallel;
mod presentations;
mod registration;
mod sizes;
mod statistics;
mod traits;
mod writing;
mod written;
