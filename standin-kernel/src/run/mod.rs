//! Runs a driver as the command lines do: loads it, enables its providers, runs a script, shows the
//! events, and reports the diagnostics.
//!
//! `standin-kernel run` and `cargo etw run` use [`arguments()`] and [`execute()`]. A program with
//! its own [`Report`] uses [`Run::execute`].

mod arguments;
mod child;
mod confine;
mod diagnostic;
mod enable;
mod execute;
mod human;
mod json;
mod options;
mod progress;
mod runner;
mod salvage;

pub use self::{
    arguments::{arguments, etl_here, format, run},
    confine::confine,
    diagnostic::{Diagnostic, Kind},
    enable::Enabled,
    execute::execute,
    human::Human,
    json::Json,
    options::{Confine, Format, Run},
    runner::{Report, Summary},
};
