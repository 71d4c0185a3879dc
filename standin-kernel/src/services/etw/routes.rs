//! The routes of events to sessions, prepared for lookup by writes.
//!
//! The runtime's state is behind one lock, which writes do not acquire. They read the routes,
//! which are replaced as a whole whenever that state changes. Reading them writes to no memory that
//! another thread reads.

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
    /// Set to drop events that are marked as private browsing (ETW-6.1.9).
    pub exclude_in_private: bool,
    /// Set if stacks are requested with events.
    pub stack_walk: bool,
}

/// The destinations of a registration's events.
pub struct Route {
    pub provider: Guid,
    pub traits: Option<Arc<[u8]>>,
    /// Set once the types of data descriptors have a meaning (ETW-4.3.6).
    pub honours_types: bool,
    /// The number of written events.
    pub writes: Arc<Tally>,
    /// The target sessions. A session that enables both the provider and its group is listed
    /// twice.
    pub target_sessions: Vec<TargetSession>,
}

/// The routes of all registrations, by handle.
pub type RouteTable = BTreeMap<u64, Route>;

/// The present routes.
#[derive(Default)]
pub struct Routes(ArcSwap<RouteTable>);

impl Routes {
    /// Returns the routes as they are now. They stay as they are while the caller has them.
    pub fn now(&self) -> Guard<Arc<RouteTable>> {
        self.0.load()
    }

    /// Replaces all routes. Writes that have the old ones may continue with them.
    pub fn replace(&self, routes: RouteTable) {
        self.0.store(Arc::new(routes));
    }
}
