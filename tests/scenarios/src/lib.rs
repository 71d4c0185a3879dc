//! Scenarios that the sample driver must pass on every host, written once.
//!
//! A [`Scenario`] starts sessions on a [`Host`], enables the provider, sends requests to the
//! device, stops the sessions and checks the decoded events. Two hosts exist: the stand-in
//! kernel (`StandIn`, on x86-64 Linux and Windows) and a Windows machine (the sample client).
//! A scenario proves the same statement on both.
//!
//! The stand-in kernel also supports a tour: `drive` exercises every path of the sample driver
//! while two sessions trace it, `expected_everything` and `expected_requests` return the events
//! that each session must record, in order, and `check` compares them with a trace.

mod describe;
#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
mod expect;
mod host;
mod report;
mod stage;
#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
mod stand_in;
mod suite;
#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
mod tour;

use etl_file::Guid;
use etw_sample_interface::{CLIENT_PROVIDER_NAME, PROVIDER_GROUP};

#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
pub use crate::{
    expect::{ExpectError, check},
    stand_in::StandIn,
    tour::{Tour, TourError, drive, expected_everything, expected_requests},
};
pub use crate::{
    host::{
        Answer, BufferSpace, File, Filter, Host, HostError, Ids, MANIFEST, Pending, Recording,
        Seen, Session, Slots, Source,
    },
    report::{Outcome, Report},
    suite::{Scenario, run, scenarios},
};

/// The GUID of the sample driver's provider: the standard hash of its name.
const PROVIDER: &str = "802b686a-519d-5416-5280-4c0ead585fbb";

/// Returns the GUID of the sample driver's provider.
#[must_use]
pub fn provider() -> Guid {
    PROVIDER.parse().unwrap_or_default()
}

/// Returns the GUID of the client's provider.
#[must_use]
pub fn client() -> Guid {
    Guid::of_name(CLIENT_PROVIDER_NAME).unwrap_or_default()
}

/// Returns the GUID of the provider group to which the sample driver's provider belongs.
#[must_use]
pub fn group() -> Guid {
    PROVIDER_GROUP.parse().unwrap_or_default()
}
