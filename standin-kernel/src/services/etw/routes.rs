//! The routes of events to sessions, prepared for fast lookup in writes.
//!
//! The runtime's state is protected by one lock, which event writes do not acquire. They read the
//! routes, which are replaced as a whole whenever that state changes. A thread that reads the
//! routes does not write to memory that another thread reads.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::{ArcSwap, Guard};

use etl_file::Guid;

use super::{enable_info::EnableInfo, filters::EventFilters, session::running::Session};
use crate::ground::tally::Tally;

/// One path from a registration to a session.
#[derive(Clone)]
pub struct TargetSession {
    pub session: Arc<Session>,
    pub enable_info: EnableInfo,
    pub events: Arc<EventFilters>,
    /// Set to drop events that are marked as private (ETW-6.1.9).
    pub exclude_in_private: bool,
    /// Set if stacks are requested with events.
    pub stack_walk: bool,
}

/// The target sessions of a registration's events.
pub struct Route {
    pub provider: Guid,
    pub traits: Option<Arc<[u8]>>,
    /// Set once data descriptors' types are evaluated (ETW-4.3.6).
    pub honours_types: bool,
    /// The number of writes.
    pub writes: Arc<Tally>,
    /// The target sessions. A session that enables both the provider and its group is listed
    /// twice.
    pub target_sessions: Vec<TargetSession>,
}

/// The routes of all registrations, by handle.
pub type RouteTable = BTreeMap<u64, Route>;

/// The current routes.
#[derive(Default)]
pub struct Routes(ArcSwap<RouteTable>);

impl Routes {
    /// Returns a snapshot of the routes.
    pub fn now(&self) -> Guard<Arc<RouteTable>> {
        self.0.load()
    }

    /// Replaces all routes. Concurrent writes may continue with the old routes.
    pub fn replace(&self, routes: RouteTable) {
        self.0.store(Arc::new(routes));
    }
}
