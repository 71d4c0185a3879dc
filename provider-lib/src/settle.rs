//! Values that are computed from the enable state and published elsewhere.

use crate::sync::{Ordering, fence};

/// Publishes a value derived from the enable state until it matches the current state.
///
/// Several threads can publish at the same time: a hook, for the state that it was called with, and
/// another thread, which may have read an older state. The thread that publishes last checks the
/// state afterwards. Because of the fences, it either sees the state that the hook was called with,
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

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;

    #[test]
    fn a_value_is_published_until_it_is_current() {
        let (published, state) = (Cell::new(0), Cell::new(1));
        let publish = || {
            published.set(state.get());
            // Another thread changes the state twice.
            state.set(3.min(state.get() + 1));
        };
        settle(publish, || published.get() == state.get());
        assert_eq!(published.get(), 3);
    }
}
