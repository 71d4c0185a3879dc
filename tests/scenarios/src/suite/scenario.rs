//! A scenario, and what all of them use.

use crate::{
    report::Outcome,
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
    pub(super) run: fn(&mut Stage<'_>) -> Result<(), Failure>,
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

/// The sample driver's provider.
pub(super) fn provider() -> Source {
    Source::Provider(crate::provider())
}

/// The group that it is a member of.
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

/// All events up to a level.
pub(super) fn up_to(level: u8) -> Filter {
    Filter {
        level,
        ..Filter::default()
    }
}

/// The names of a recording's events, in order.
pub(super) fn names(recording: &Recording) -> Vec<&str> {
    recording
        .events
        .iter()
        .map(|seen| seen.event.event_name.as_deref().unwrap_or("(no name)"))
        .collect()
}

/// How many events of a recording have a name.
pub(super) fn count(recording: &Recording, name: &str) -> usize {
    names(recording)
        .into_iter()
        .filter(|other| *other == name)
        .count()
}
