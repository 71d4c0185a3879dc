//! Runs a driver as the command lines do: loads it, enables its providers, runs a script, shows the
//! events, and reports the diagnostics.
//!
//! The command lines `standin-kernel run` and `cargo etw run` add [`add_arguments`] to a command,
//! read a [`RunConfig`] from them, and run it in a child process
//! ([`run_in_child`](RunConfig::run_in_child)). A program with its own [`Report`] runs it in its own
//! process ([`run_in_process`](RunConfig::run_in_process)).

mod arguments;
mod child;
mod config;
mod confine;
mod diagnostic;
mod enable;
mod hints;
mod human;
mod in_child;
mod in_process;
mod json;
mod progress;
mod report;
mod salvage;

pub use self::{
    arguments::{add_arguments, etl_here},
    config::{Confine, Format, RunConfig},
    confine::confine,
    diagnostic::{Diagnostic, Kind},
    enable::Enabled,
    human::Human,
    in_child::started_for,
    json::Json,
    report::{Report, Summary},
};
