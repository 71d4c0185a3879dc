//! The tests of the crate and of the command `etl`, by subject.

mod browser;
mod cli;
mod compare;
mod compressed;
mod damage;
mod foreign_decoders;
mod foreign_kernel;
mod goldens;
mod image;
mod kernel_cli;
mod kernel_events;
mod manifest;
mod merge;
mod mof;
mod names;
mod output;
mod page;
mod pdb_fixture;
mod relogged;
mod report;
mod round_trip;
mod schemas;
mod streaming;
mod symbols;
mod timeline;
mod wpp;
