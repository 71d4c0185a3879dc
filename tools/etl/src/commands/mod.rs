//! The commands.

pub mod compare;
pub mod dump;
pub mod durations;
pub mod merge;
pub mod read_symbols;
pub mod report;
pub mod stats;
pub mod times;
