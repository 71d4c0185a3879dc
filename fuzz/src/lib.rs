//! What the fuzz targets check.
//!
//! Each module is one target: its `check` takes what the fuzzer made up, and panics if
//! something does not hold that must hold of any input. `fuzz_targets/` has their entry
//! points, `seeds/` what they start from, and `docs/fuzzing.md` says how to run them.

pub mod etl_read;
pub mod etl_round_trip;
pub mod filter_data;
pub mod manifest;
pub mod manifest_compile;
mod payload;
pub mod pe_load;
pub mod resources;
pub mod script;
mod text;
pub mod tracelogging;
pub mod traits;
