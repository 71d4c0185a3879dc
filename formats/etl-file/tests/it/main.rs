//! The tests of the crate, by subject.

mod compressed;
mod damage;
mod foreign_decoders;
mod foreign_kernel;
mod goldens;
mod image;
mod kernel_events;
mod manifest;
mod merge;
mod mof;
mod names;
mod relogged;
mod round_trip;
mod schemas;
mod streaming;
mod wpp;
