//! Runs a driver as the command lines do: loads it, enables its providers, plays a script, shows what
//! happens, and reports what was found.
//!
//! `standin-kernel run` and `cargo etw run` are [`arguments()`] and [`execute()`]. [`Run::play`] does the
//! same for a program that has a [`Report`] of its own.

mod arguments;
mod child;
mod enable;
mod execute;
mod finding;
mod human;
mod json;
mod options;
mod play;
mod progress;
mod salvage;

pub use self::{
    arguments::{arguments, etl_here, format, run},
    enable::Enabled,
    execute::execute,
    finding::{Finding, Kind},
    human::Human,
    json::Json,
    options::{Format, Run},
    play::{Report, Summary},
};
