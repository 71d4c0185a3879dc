//! Which sessions an event can go to, ready to be looked up by whoever writes it.
//!
//! The runtime's state is behind one lock, which writes do not take: they look at the
//! routes, which are replaced as a whole whenever that state changes.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::RwLock;

use etl_file::Guid;

use super::{composite::EnableInfo, filters::EventFilters, session::running::Session};

/// One way from a registration to a session.
#[derive(Clone)]
pub struct TargetSession {
    pub session: Arc<Session>,
    pub enable_info: EnableInfo,
    pub events: Arc<EventFilters>,
    /// Whether events that are marked as private browsing's are kept out (ETW-6.1.9).
    pub exclude_in_private: bool,
    /// Whether a stack is to go with events.
    pub stack_walk: bool,
}

/// Where a registration's events go.
pub struct Route {
    pub provider: Guid,
    pub traits: Option<Arc<[u8]>>,
    /// Whether the types of data descriptors mean something (ETW-4.3.6).
    pub honours_types: bool,
    /// Counts the events that are written.
    pub writes: Arc<AtomicU64>,
    /// By session; one that enables the provider and its group is there twice.
    pub target_sessions: Vec<TargetSession>,
}

/// The routes of all registrations, by handle.
#[derive(Default)]
pub struct Routes(RwLock<HashMap<u64, Arc<Route>>>);

impl Routes {
    /// Where events go that are written with a handle.
    pub fn get(&self, handle: u64) -> Option<Arc<Route>> {
        let routes = self.0.read();
        routes.get(&handle).cloned()
    }

    /// Puts other routes in place of all that there were.
    pub fn replace(&self, routes: HashMap<u64, Arc<Route>>) {
        let before = {
            let mut present = self.0.write();
            std::mem::replace(&mut *present, routes)
        };
        // What they held goes without anyone waiting for it.
        drop(before);
    }
}
