//! Notifications to registrations about changes that sessions make.

use std::thread::ThreadId;

use etl_file::Guid;

use super::{callback, service::Context, state::Notification};
use crate::ground::rule::Rule;

/// The content of a notification, apart from the state.
#[derive(Clone, Copy)]
pub struct Cause {
    /// Set to request a state capture.
    pub capture: bool,
    /// The controller's source id.
    pub source: Guid,
    /// Set to pass the sessions' filters.
    pub filters: bool,
    /// A control code that replaces the code that the state implies.
    pub code: Option<u32>,
}

impl Cause {
    /// A change of the sessions' state by a controller that specifies no source id.
    pub const CHANGE: Self = Self { capture: false, source: Guid::NULL, filters: true, code: None };
}

/// Notifies registrations one after the other. See [`notify`].
pub fn notify_all(context: &Context, handles: Vec<u64>, cause: Cause) {
    for handle in handles {
        notify(context, handle, cause);
    }
}

/// Notifies a registration: calls its enable callback at `PASSIVE_LEVEL` on a system thread.
/// Notifications to one registration are serialized, and each carries the state at the time of the
/// call (ETW-2.9).
pub fn notify(context: &Context, handle: u64, cause: Cause) {
    let this = context.id();
    let turn = || -> Option<(Option<Notification>, Option<ThreadId>)> {
        let mut etw = context.etw();
        let running_on = etw.registration_at(handle).and_then(|one| one.in_callback);
        if running_on.is_some_and(|other| other != this) {
            return None;
        }
        let notification = etw.notification(handle, cause.capture);
        let notification = notification.filter(|one| one.callback != 0);
        if notification.is_some() {
            etw.notifications += 1;
            if let Ok(registration) = etw.registration(handle) {
                registration.in_callback = Some(this);
            }
        }
        Some((notification, running_on))
    };
    let (notification, outer) = context.wait_for("a notification to end", turn);
    let Some(mut notification) = notification else {
        return;
    };
    if !cause.filters {
        notification.filters.clear();
    }
    check_callback(context, &notification);
    let code = cause.code.unwrap_or(notification.code);
    callback::call(context, &notification, cause.source, code);
    if let Ok(registration) = context.etw().registration(notification.handle) {
        registration.in_callback = outer;
    }
}

/// Checks that the callback and its context still exist. They must exist until `EtwUnregister`
/// (ETW-2.1).
fn check_callback(context: &Context, notification: &Notification) {
    let gone =
        [("code", notification.callback), ("context", notification.context)].into_iter().find_map(
            |(what, address)| Some((what, address, context.addresses().describe_stale(address)?)),
        );
    if let Some((what, address, why)) = gone {
        context.stop(
            Rule::DiscardedCode,
            format!(
                "provider {{{}}}: the {what} of its enable callback, at 0x{address:016X}, {why}; \
                 call EtwUnregister before freeing it",
                notification.provider
            ),
        );
    }
}
