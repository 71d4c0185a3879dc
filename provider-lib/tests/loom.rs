//! The model checker tries every interleaving of the provider's atomics.

#![cfg(loom)]

use loom::{sync::Arc, thread};
use wdk_etw::{
    Composite, Keyword, Level,
    model::{EnableState, Rundown},
};

const fn composite(level: u8, any: u64, all: u64) -> Composite {
    Composite {
        level: Level(level),
        match_any: Keyword::from_bits(any),
        match_all: Keyword::from_bits(all),
    }
}

// R-C5
#[test]
fn a_composite_is_the_old_or_the_new_or_everything() {
    const FIRST: Composite = composite(2, 0x11, 0x1);
    const SECOND: Composite = composite(5, 0x22, 0x2);
    loom::model(|| {
        let state = Arc::new(EnableState::new());
        state.enable(FIRST);
        let writer = {
            let state = Arc::clone(&state);
            thread::spawn(move || {
                state.enable(SECOND);
                state.disable();
            })
        };
        let read = state.composite();
        let known = [Some(FIRST), Some(SECOND), None, Some(Composite::EVERYTHING)];
        assert!(known.contains(&read), "{read:?}");
        writer.join().unwrap();
        assert_eq!(state.composite(), None);
    });
}

// R-C5: a reader at a higher IRQL can interrupt the writer anywhere and must not wait.
#[test]
fn the_hot_check_never_mixes_level_and_keyword() {
    loom::model(|| {
        let state = Arc::new(EnableState::new());
        state.enable(composite(2, 0x11, 0));
        let writer = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.enable(composite(5, 0x22, 0)))
        };
        // Level 3 comes with the second state only, keyword 0x11 with the first only.
        assert!(!state.wants(Level(3), Keyword::from_bits(0x11)));
        writer.join().unwrap();
        assert!(state.wants(Level(3), Keyword::from_bits(0x22)));
    });
}

#[test]
fn a_handle_is_never_used_after_the_rundown_is_closed() {
    use loom::cell::UnsafeCell;
    loom::model(|| {
        // The cell is the handle: loom reports an access that is not ordered.
        let shared = Arc::new((Rundown::new(), UnsafeCell::new(0_u64)));
        // SAFETY: nobody else has it yet.
        shared.1.with_mut(|handle| unsafe { *handle = 7 });
        shared.0.open();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    if let Some(_pass) = shared.0.enter() {
                        // SAFETY: the pass keeps the handle from being released.
                        let handle = shared.1.with(|handle| unsafe { *handle });
                        assert_eq!(handle, 7);
                    }
                })
            })
            .collect();
        shared.0.close(thread::yield_now);
        // SAFETY: the rundown is closed, so nobody else uses it any more.
        shared.1.with_mut(|handle| unsafe { *handle = 0 });
        assert!(shared.0.enter().is_none());
        for writer in writers {
            writer.join().unwrap();
        }
    });
}
