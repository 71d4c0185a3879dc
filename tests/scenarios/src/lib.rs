//! What must be observed of the sample driver, written once.
//!
//! A [`Scenario`] is a story told to a [`World`]: start sessions, enable the provider, talk
//! to the device, stop, look at the decoded events. The stand-in kernel is one world
//! (`StandIn`, with the feature `stand-in`), a Windows machine another; what a scenario
//! proves is the same in both.
//!
//! With the feature `stand-in` there is a tour besides: `drive` drives the device through
//! everything it can do while two sessions trace it; `expected_everything` and
//! `expected_requests` say which events each session must have recorded, in order, and
//! `check` compares.

mod describe;
#[cfg(all(feature = "stand-in", target_arch = "x86_64", target_os = "linux"))]
mod expect;
mod report;
mod stage;
#[cfg(all(feature = "stand-in", target_arch = "x86_64", target_os = "linux"))]
mod stand_in;
mod suite;
#[cfg(all(feature = "stand-in", target_arch = "x86_64", target_os = "linux"))]
mod tour;
mod world;

use etl_file::Guid;
use etw_sample_interface::PROVIDER_GROUP;

#[cfg(all(feature = "stand-in", target_arch = "x86_64", target_os = "linux"))]
pub use crate::{
    expect::{ExpectError, Expected, check},
    stand_in::StandIn,
    tour::{Tour, TourError, drive, expected_everything, expected_requests},
};
pub use crate::{
    report::{Outcome, Report},
    suite::{Scenario, play, scenarios},
    world::{
        Answer, File, Filter, Ids, MANIFEST, Pending, Recording, Room, Seen, Session, Source,
        World, WorldError,
    },
};

/// The GUID of the sample driver's provider: the standard hash of its name.
const PROVIDER: &str = "802b686a-519d-5416-5280-4c0ead585fbb";

/// The sample driver's provider.
#[must_use]
pub fn provider() -> Guid {
    PROVIDER.parse().unwrap_or_default()
}

/// The provider group that it is a member of.
#[must_use]
pub fn group() -> Guid {
    PROVIDER_GROUP.parse().unwrap_or_default()
}
