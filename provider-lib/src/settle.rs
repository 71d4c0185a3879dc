//! Values that are computed from the enable state and published elsewhere.

use crate::sync::{Ordering, fence};

/// Publishes a value that depends on the enable state until the published value is the current one.
///
/// Several threads can publish at the same time: a hook, for the state that it was called for, and
/// another thread, which may have read an older state. The thread that publishes last checks the
/// state afterwards. Because of the fences, either it sees the state that the hook was called for,
/// and publishes again, or the hook publishes after it.
///
/// The loop repeats only if the state changed in between.
pub fn settle(publish: impl Fn(), is_current: impl Fn() -> bool) {
    loop {
        fence(Ordering::SeqCst);
        publish();
        fence(Ordering::SeqCst);
        if is_current() {
            return;
        }
    }
}
