//! The scenarios.

mod activities;
mod filters;
mod groups;
mod lifetime;
mod requests;
mod sessions;

use crate::{
    host::{Filter, Host, Recording, Source},
    report::{Outcome, Report},
    stage::{Failure, Stage},
};

/// A test of the sample driver that must pass on every host.
pub struct Scenario {
    /// The name.
    pub name: &'static str,
    /// The statement that the scenario proves when it passes.
    pub proves: &'static str,
    /// The ids of the requirements that the scenario covers.
    pub requirements: &'static [&'static str],
    run: fn(&mut Stage<'_>) -> Result<(), Failure>,
}

impl Scenario {
    /// Runs the scenario on a host and clears the host afterwards.
    pub fn play(&self, host: &mut dyn Host) -> Outcome {
        let mut stage = Stage::new(host);
        let mut result = (self.run)(&mut stage).map_err(|failure| failure.to_string());
        let log = stage.into_log();
        if let Err(error) = host.clear()
            && result.is_ok()
        {
            result = Err(format!("cannot clear the host after the scenario: {error}"));
        }
        Outcome {
            name: self.name,
            proves: self.proves,
            requirements: self.requirements,
            failure: result.err(),
            log,
        }
    }
}

/// Returns all scenarios.
pub fn scenarios() -> impl Iterator<Item = &'static Scenario> {
    [
        filters::SCENARIOS,
        sessions::SCENARIOS,
        groups::SCENARIOS,
        activities::SCENARIOS,
        requests::SCENARIOS,
        lifetime::SCENARIOS,
    ]
    .into_iter()
    .flatten()
}

/// Runs scenarios one after the other and calls `progress` after each.
pub fn play<'a>(
    scenarios: impl Iterator<Item = &'a Scenario>,
    host: &mut dyn Host,
    progress: &mut dyn FnMut(&Outcome),
) -> Report {
    let outcomes = scenarios
        .map(|scenario| {
            let outcome = scenario.play(host);
            progress(&outcome);
            outcome
        })
        .collect();
    Report { outcomes }
}

/// Returns the sample driver's provider.
fn provider() -> Source {
    Source::Provider(crate::provider())
}

/// Returns the group that the sample driver's provider belongs to.
fn group() -> Source {
    Source::Group(crate::group())
}

const WARNING: u8 = 3;
const INFORMATION: u8 = 4;
const VERBOSE: u8 = 5;

const START: u8 = 1;
const STOP: u8 = 2;

const SUCCESS: u32 = 0;
const CANCELLED: u32 = 0xC000_0120;

/// Returns a filter that passes all events up to a level.
fn up_to(level: u8) -> Filter {
    Filter {
        level,
        ..Filter::default()
    }
}

/// Returns the names of a recording's events, in order.
fn names(recording: &Recording) -> Vec<&str> {
    recording
        .events
        .iter()
        .map(|seen| seen.event.event_name.as_deref().unwrap_or("(no name)"))
        .collect()
}

/// Counts the events of a recording that have the name `name`.
fn count(recording: &Recording, name: &str) -> usize {
    names(recording)
        .into_iter()
        .filter(|other| *other == name)
        .count()
}
