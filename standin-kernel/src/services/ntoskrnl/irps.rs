//! The requests (`IRP`) that have not been completed or freed, by their addresses.

use std::collections::HashMap;

use super::context::Context;

/// Called when a request has been completed by every driver, with its address.
pub type Ended = fn(&Context, u64);

/// A request.
#[derive(Clone, Copy)]
pub struct Request {
    /// Completes a request of the I/O manager; a driver's own request has none.
    pub ended: Option<Ended>,
    /// Ends a driver's own request that no completion routine keeps, if the I/O manager built it.
    pub if_not_kept: Option<Ended>,
    /// Set if this kernel allocated the memory.
    pub is_allocated: bool,
    /// The location from which its owner has sent the request, until it has come back there.
    pub home: Option<u8>,
}

#[derive(Default)]
struct Requests(HashMap<u64, Request>);

/// Adds a request, in place of an earlier one in the same memory.
pub fn add(context: &Context, irp: u64, request: Request) {
    context.state().get::<Requests>().0.insert(irp, request);
}

/// Returns a request, if the address is that of one.
pub fn find(context: &Context, irp: u64) -> Option<Request> {
    context.state().get::<Requests>().0.get(&irp).copied()
}

/// Sets what ends a driver's own request that no completion routine keeps.
pub fn end_by(context: &Context, irp: u64, ended: Ended) {
    if let Some(request) = context.state().get::<Requests>().0.get_mut(&irp) {
        request.if_not_kept = Some(ended);
    }
}

/// Forgets a request.
pub fn forget(context: &Context, irp: u64) {
    context.state().get::<Requests>().0.remove(&irp);
}

/// Notes that a driver sends a request from a location. The first one is its owner's.
pub fn sent_from(context: &Context, irp: u64, location: u8) {
    if let Some(request) = context.state().get::<Requests>().0.get_mut(&irp) {
        request.home.get_or_insert(location);
    }
}

/// Notes that a request has come back to a location. At its owner's location, no other driver has the request any more.
pub fn back_at(context: &Context, irp: u64, location: u8) {
    if let Some(request) = context.state().get::<Requests>().0.get_mut(&irp) {
        request.home.take_if(|home| location >= *home);
    }
}

/// Forgets the requests in memory that a driver frees. Returns whether one of them is under way.
pub fn forget_inside(context: &Context, is_inside: impl Fn(u64) -> bool) -> bool {
    context.with_state(|Requests(all)| {
        let freed = all.extract_if(|irp, _| is_inside(*irp));
        freed.fold(false, |is_used, (_, one)| is_used || one.home.is_some())
    })
}
