//! The scenarios.

mod activities;
mod filters;
mod groups;
mod lifetime;
mod requests;
mod scenario;
mod sessions;

pub use self::scenario::Scenario;
use crate::{
    report::{Outcome, Report},
    world::World,
};

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
