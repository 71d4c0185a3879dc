//! The outputs of the program `etl`: tables, JSON, CSV, timelines, packets, pages, counts, durations, times
//! and the comparison with other decoders.
//!
//! The other programs of the repository and the tests use them; the crate `etl-file` is the library
//! for everybody else.

pub mod compare;
pub mod csv;
pub mod durations;
pub mod json;
pub mod pcapng;
pub mod perfetto;
pub mod report;
pub mod stacks;
pub mod stats;
pub mod table;
pub mod times;
