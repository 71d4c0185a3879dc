//! The scenarios.

mod activities;
mod filters;
mod groups;
mod lifetime;
mod requests;
mod sessions;

use crate::{
    report::{Outcome, Report},
    stage::{Failure, Stage},
    world::{Filter, Recording, Source, World},
};

/// Something that must be observed of the sample driver, in any world.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What is proven when it passes, as a sentence.
    pub proves: &'static str,
    /// The requirements it is about.
    pub requirements: &'static [&'static str],
    run: fn(&mut Stage<'_>) -> Result<(), Failure>,
}

impl Scenario {
    /// Plays it in a world, and clears the world afterwards.
    pub fn play(&self, world: &mut dyn World) -> Outcome {
        let mut stage = Stage::new(world);
        let mut result = (self.run)(&mut stage).map_err(|failure| failure.to_string());
        let log = stage.into_log();
        if let Err(error) = world.clear()
            && result.is_ok()
        {
            result = Err(format!("afterwards: {error}"));
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

/// All scenarios.
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

/// Plays scenarios one after the other; `progress` is told of each that is over.
pub fn play<'a>(
    scenarios: impl Iterator<Item = &'a Scenario>,
    world: &mut dyn World,
    progress: &mut dyn FnMut(&Outcome),
) -> Report {
    let outcomes = scenarios
        .map(|scenario| {
            let outcome = scenario.play(world);
            progress(&outcome);
            outcome
        })
        .collect();
    Report { outcomes }
}

/// The sample driver's provider.
fn provider() -> Source {
    Source::Provider(crate::provider())
}

/// The group that it is a member of.
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

/// All events up to a level.
fn up_to(level: u8) -> Filter {
    Filter {
        level,
        ..Filter::default()
    }
}

/// The names of a recording's events, in order.
fn names(recording: &Recording) -> Vec<&str> {
    recording
        .events
        .iter()
        .map(|seen| seen.event.event_name.as_deref().unwrap_or("(no name)"))
        .collect()
}

/// How many events of a recording have a name.
fn count(recording: &Recording, name: &str) -> usize {
    names(recording)
        .into_iter()
        .filter(|other| *other == name)
        .count()
}
