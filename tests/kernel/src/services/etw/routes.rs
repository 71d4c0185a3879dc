//! The routes of events to sessions, prepared for lookup by writes.
//!
//! The runtime's state is behind one lock, which writes do not acquire. They read the routes,
//! which are replaced as a whole whenever that state changes.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::RwLock;

use etl_file::Guid;

use super::{composite::EnableInfo, filters::EventFilters, session::running::Session};

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
    pub writes: Arc<AtomicU64>,
    /// The target sessions. A session that enables both the provider and its group is listed
    /// twice.
    pub target_sessions: Vec<TargetSession>,
}

/// The routes of all registrations, by handle.
#[derive(Default)]
pub struct Routes(RwLock<HashMap<u64, Arc<Route>>>);

impl Routes {
    /// Returns the destinations of events that are written with a handle.
    pub fn get(&self, handle: u64) -> Option<Arc<Route>> {
        let routes = self.0.read();
        routes.get(&handle).cloned()
    }

    /// Replaces all routes.
    pub fn replace(&self, routes: HashMap<u64, Arc<Route>>) {
        let before = {
            let mut present = self.0.write();
            std::mem::replace(&mut *present, routes)
        };
        // The old routes are dropped after the lock is released.
        drop(before);
    }
}
