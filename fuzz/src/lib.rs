//! What the fuzz targets check.
//!
//! Each module is one target: its `check` takes what the fuzzer made up, and panics if
//! something does not hold that must hold of any input. It returns how far the input got, or
//! the error that refused it, so that tests can hold the seeds to what they are made for.
//! `fuzz_targets/` has the entry points, [`seeds`] the inputs that the fuzzer starts from, and
//! `docs/fuzzing.md` says how to run them.

pub mod etl_read;
pub mod etl_round_trip;
pub mod filter_data;
pub mod manifest;
pub mod manifest_compile;
mod payload;
pub mod pe_load;
pub mod resources;
pub mod script;
pub mod seeds;
mod text;
pub mod tracelogging;
pub mod traits;
