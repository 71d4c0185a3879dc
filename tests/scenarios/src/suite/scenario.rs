//! A scenario, and the values and functions that all scenarios use.

use crate::{
    host::{Filter, Host, Recording, Source},
    report::Outcome,
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
    pub(super) run: fn(&mut Stage<'_>) -> Result<(), Failure>,
}

impl Scenario {
    /// Runs the scenario on a host, and clears the host afterwards.
    pub fn run_on(&self, host: &mut dyn Host) -> Outcome {
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

/// Returns the sample driver's provider.
pub(super) fn provider() -> Source {
    Source::Provider(crate::provider())
}

/// Returns the group to which the sample driver's provider belongs.
pub(super) fn group() -> Source {
    Source::Group(crate::group())
}

pub(super) const WARNING: u8 = 3;
pub(super) const INFORMATION: u8 = 4;
pub(super) const VERBOSE: u8 = 5;

pub(super) const START: u8 = 1;
pub(super) const STOP: u8 = 2;

pub(super) const SUCCESS: u32 = 0;
pub(super) const CANCELLED: u32 = 0xC000_0120;

/// Returns a filter that passes all events up to this level.
pub(super) fn up_to(level: u8) -> Filter {
    Filter { level, ..Filter::default() }
}

/// Returns the names of a recording's events, in order.
pub(super) fn names(recording: &Recording) -> Vec<&str> {
    recording
        .events
        .iter()
        .map(|seen| seen.event.event_name.as_deref().unwrap_or("(no name)"))
        .collect()
}

/// Returns the number of events with this name in a recording.
pub(super) fn count(recording: &Recording, name: &str) -> usize {
    names(recording).into_iter().filter(|other| *other == name).count()
}
