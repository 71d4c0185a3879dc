//! The checks of the fuzz targets.
//!
//! Each module is one target. Its `check` takes the fuzzer's input and panics if a property that
//! must hold for every input does not hold. It returns how far the input was processed, or the
//! error that rejected it, so that tests can check that each seed serves its purpose. The entry
//! points are in `fuzz_targets/`, the initial inputs in [`seeds`]; `docs/fuzzing.md` describes how
//! to run the targets.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(clippy::missing_panics_doc, reason = "a check that fails panics; how, is in its message")]

pub mod compare;
pub mod compression;
pub mod etl_read;
pub mod etl_round_trip;
pub mod filter_data;
pub mod kernel;
pub mod manifest;
pub mod manifest_compile;
mod payload;
pub mod pe_load;
pub mod resources;
pub mod schemas;
pub mod script;
pub mod seeds;
mod text;
pub mod tmf;
pub mod tracelogging;
pub mod traits;
pub mod unwind;
