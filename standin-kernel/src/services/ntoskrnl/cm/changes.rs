//! Requests for a notification when a key changes.
//!
//! Changes that the framework's routines and tests make are not among them, nor what changes while no request
//! waits.

use std::collections::BTreeMap;

use crate::{
    execution::{coroutine::wait_until, routine::At},
    ground::{NtStatus, abi::IoStatusBlock},
    services::ntoskrnl::{context::Context, ke::dispatcher, ob::handles},
};

/// `REG_NOTIFY_CHANGE_NAME` and `REG_NOTIFY_CHANGE_LAST_SET`: a subkey is created or deleted, or a value is
/// set or deleted.
pub const NAME: u32 = 1;
pub const LAST_SET: u32 = 4;

/// `STATUS_NOTIFY_CLEANUP` and `STATUS_NOTIFY_ENUM_DIR`: the key's handle was closed, or the key changed.
const NOTIFY_CLEANUP: NtStatus = NtStatus::from_bits(0x10B);
const NOTIFY_ENUM_DIR: NtStatus = NtStatus::from_bits(0x10C);

/// A request for a notification.
pub struct Request {
    /// The object of the key's handle, or 0 for a framework's handle.
    pub object: u64,
    pub path: String,
    /// The changes that end the request: [`NAME`] and [`LAST_SET`].
    pub filter: u32,
    /// Set if changes of the keys below the key count.
    pub is_tree: bool,
    /// The event to set, or 0. The request holds a reference to it.
    pub event: u64,
    pub block: At<IoStatusBlock>,
}

/// The requests, by number.
#[derive(Default)]
struct Requests {
    issued: u64,
    waiting: BTreeMap<u64, Request>,
}

/// Adds a request, and waits for a change unless the request is asynchronous. Returns the call's result.
pub fn notify(context: &Context, request: Request, is_asynchronous: bool) -> NtStatus {
    let block = request.block;
    if request.event != 0 {
        handles::reference(context, At::new(request.event));
    }
    let number = context.with_state(|requests: &mut Requests| {
        requests.issued += 1;
        requests.waiting.insert(requests.issued, request);
        requests.issued
    });
    if is_asynchronous {
        return NtStatus::PENDING;
    }
    let is_over =
        || context.with_state(|requests: &mut Requests| !requests.waiting.contains_key(&number));
    if !wait_until(context, None, is_over) {
        context.stop_for_misuse("and would wait forever: nothing changes the key");
    }
    NtStatus::from_bits(block.read(context).status)
}

/// Ends the requests that `selects` selects.
fn end(context: &Context, status: NtStatus, selects: impl Fn(&Request) -> bool) {
    let ended: Vec<Request> = context.with_state(|requests: &mut Requests| {
        let ended = requests.waiting.extract_if(.., |_, request| selects(request));
        ended.map(|(_, request)| request).collect()
    });
    for request in ended {
        let block = IoStatusBlock { status: status.bits(), ..Default::default() };
        request.block.write(context, block);
        if request.event != 0 {
            dispatcher::set_state(context, request.event, 1);
            handles::dereference(context, At::new(request.event));
        }
    }
}

/// Removes the requests whose status block `belongs` selects. Returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    let left: Vec<Request> = context.with_state(|requests: &mut Requests| {
        let left = requests.waiting.extract_if(.., |_, request| belongs(request.block.0));
        left.map(|(_, request)| request).collect()
    });
    for request in &left {
        if request.event != 0 {
            handles::dereference(context, At::new(request.event));
        }
    }
    left.len()
}

/// Notifies those who wait for a change of the values of the key with a path, or of its subkeys.
pub fn changed(context: &Context, path: &str, what: u32) {
    let below = |request: &Request| {
        let rest = path.strip_prefix(request.path.as_str());
        rest.is_some_and(|rest| rest.is_empty() || request.is_tree && rest.starts_with('\\'))
    };
    end(context, NOTIFY_ENUM_DIR, |request| request.filter & what != 0 && below(request));
}

/// Notifies those who wait for a change of the subkeys of the parent of the key with a path. A deleted key
/// ends the requests for it.
pub fn subkey_changed(context: &Context, path: &str, is_deleted: bool) {
    if is_deleted {
        end(context, NOTIFY_CLEANUP, |request| request.path == path);
    }
    if let Some((parent, _)) = path.rsplit_once('\\') {
        changed(context, parent, NAME);
    }
}

/// Ends the requests with the handles of a key's object, which is closed.
pub fn handle_closed(context: &Context, object: u64) {
    end(context, NOTIFY_CLEANUP, |request| request.object == object);
}
