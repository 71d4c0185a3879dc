//! The requests (`IRP`) that were neither completed nor freed, by address.

use std::collections::HashMap;

use crate::services::ntoskrnl::context::Context;

/// Called with a request's address when every driver has completed the request.
pub type Ended = fn(&Context, u64);

/// A request.
#[derive(Clone, Copy)]
pub struct Request {
    /// Finishes a request of the I/O manager. `None` for a driver's own request.
    pub ended: Option<Ended>,
    /// Finishes a driver's own request that the I/O manager built, unless a completion routine
    /// keeps the request.
    pub if_not_kept: Option<Ended>,
    /// Set if this kernel allocated the request's memory.
    pub is_allocated: bool,
    /// The location from which the owner has sent the request, until the request has returned there.
    pub home: Option<u8>,
}

#[derive(Default)]
struct Requests(HashMap<u64, Request>);

/// Adds a request, replacing any previous request in the same memory.
pub fn add(context: &Context, irp: u64, request: Request) {
    context.state().get::<Requests>().0.insert(irp, request);
}

/// Returns the request at an address, if there is one.
pub fn find(context: &Context, irp: u64) -> Option<Request> {
    context.state().get::<Requests>().0.get(&irp).copied()
}

/// Sets the function that finishes a driver's own request, unless a completion routine keeps the
/// request.
pub fn end_by(context: &Context, irp: u64, ended: Ended) {
    if let Some(request) = context.state().get::<Requests>().0.get_mut(&irp) {
        request.if_not_kept = Some(ended);
    }
}

/// Removes a request.
pub fn forget(context: &Context, irp: u64) {
    context.state().get::<Requests>().0.remove(&irp);
}

/// Records that a driver sends a request from a stack location. The first location belongs to the
/// owner.
pub fn sent_from(context: &Context, irp: u64, location: u8) {
    if let Some(request) = context.state().get::<Requests>().0.get_mut(&irp) {
        request.home.get_or_insert(location);
    }
}

/// Records that a request has returned to a stack location. At its owner's location, no other
/// driver owns the request any longer.
pub fn back_at(context: &Context, irp: u64, location: u8) {
    if let Some(request) = context.state().get::<Requests>().0.get_mut(&irp) {
        request.home.take_if(|home| location >= *home);
    }
}

/// Removes the requests in memory that a driver frees. Returns whether one of them is still in progress.
pub fn forget_inside(context: &Context, is_inside: impl Fn(u64) -> bool) -> bool {
    context.with_state(|Requests(all)| {
        let freed = all.extract_if(|irp, _| is_inside(*irp));
        freed.fold(false, |is_used, (_, one)| is_used || one.home.is_some())
    })
}
