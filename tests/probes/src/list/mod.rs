//! The probes, by their subjects.

mod activities;
mod callbacks;
mod events;
mod sessions;
mod settings;

use crate::probe::Probe;

/// Returns all probes.
pub fn probes() -> impl Iterator<Item = &'static Probe> {
    subjects().into_iter().flat_map(|(_, probes)| probes)
}

/// Returns the subjects and their probes.
pub const fn subjects() -> [(&'static str, &'static [Probe]); 5] {
    [
        ("EtwSetInformation", settings::PROBES),
        ("Activity ids", activities::PROBES),
        ("Enable callbacks", callbacks::PROBES),
        ("Sessions", sessions::PROBES),
        ("Events", events::PROBES),
    ]
}
