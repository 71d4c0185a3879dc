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
    host::Host,
    report::{Outcome, Report},
};

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

/// Runs scenarios one after the other, and calls `progress` after each.
pub fn run<'a>(
    scenarios: impl Iterator<Item = &'a Scenario>,
    host: &mut dyn Host,
    progress: &mut dyn FnMut(&Outcome),
) -> Report {
    let outcomes = scenarios
        .map(|scenario| {
            let outcome = scenario.run_on(host);
            progress(&outcome);
            outcome
        })
        .collect();
    Report { outcomes }
}
