//! Tests concurrent threads that write, read, notify and register.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
};

use mock_etw::{DISABLE, ENABLE, register, register_with, turn};
use wdk_etw::{
    EnableInfo, Keyword, Level, Provider, RegisterError, Registered, TraitsBuffer, UnregisterError,
    emit, event,
};

#[wdk_etw::provider(name = "Test.Parallel")]
mod trace {
    #[keyword]
    pub const LOW: Keyword = Keyword::bit(0);
    #[keyword]
    pub const HIGH: Keyword = Keyword::bit(1);

    #[event(level = Info, keyword = LOW)]
    pub fn described(number: u32, text: &str);

    #[event(id = 1, level = Verbose, keyword = HIGH)]
    pub fn in_manifest(number: u32, text: &str);
}

/// The minimum number of rounds of registration and notification.
const ROUNDS: u32 = if cfg!(miri) { 4 } else { 300 };
/// The minimum number of events that were enabled at their call site, which shows that the threads
/// ran concurrently.
const EVENTS: u32 = if cfg!(miri) { 4 } else { 200 };

/// The two enable infos that the sessions alternate between. They differ in all three parts.
const FIRST: (u8, u64, u64) = (4, 1, 1);
const SECOND: (u8, u64, u64) = (5, 2, 2);

const fn enable_info(of: (u8, u64, u64)) -> EnableInfo {
    EnableInfo::delivered(of.0, of.1, of.2)
}

/// Ends the threads when the test ends, even if it fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks that a reader sees no enable info, one of the two, or the widest.
fn look(provider: &Provider) {
    let known =
        [None, Some(enable_info(FIRST)), Some(enable_info(SECOND)), Some(EnableInfo::EVERYTHING)];
    let seen = provider.enable_info();
    assert!(known.contains(&seen), "{seen:?}");
    // Neither enable info enables Verbose with the low keyword. Only a mixture of one update's
    // level and the other's keywords would enable it.
    assert!(!provider.is_enabled_fast(Level::VERBOSE, Keyword::bit::<0>()));
}

// R-C5, R-E7: the mock ETW fails the test if a write uses a released handle, or is in progress when
// its handle is released.
#[test]
fn writers_readers_and_registrations_do_not_disturb_one_another() {
    let etw = turn();
    let (done, written) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut traits = TraitsBuffer::<64>::named("Test.Parallel").unwrap();
    traits.push(128, b"made at run time").unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    emit!(trace::described(written.fetch_add(1, Ordering::Relaxed), "a text"));
                    emit!(trace::in_manifest(2, "another"));
                    event!(trace::PROVIDER, "Now", level = Info, keyword = trace::LOW, {
                        bytes: &[u8] = &[1, 2, 3],
                    });
                    thread::yield_now();
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                look(&trace::PROVIDER);
            }
        });
        // A second thread unregisters the provider at random times.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                match trace::PROVIDER.unregister() {
                    Ok(()) | Err(UnregisterError::Busy) => thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
                for _ in 0..20 {
                    thread::yield_now();
                }
            }
        });
        let _ends = Ends(&done);
        let mut round = 0;
        while round < ROUNDS || written.load(Ordering::Relaxed) < EVENTS {
            round += 1;
            let registered = if round % 2 == 0 {
                register(&trace::PROVIDER)
            } else {
                register_with(&trace::PROVIDER, &traits)
            };
            match registered {
                Ok(Registered::Complete)
                | Err(RegisterError::AlreadyRegistered | RegisterError::Busy) => {}
                other => panic!("{other:?}"),
            }
            for (level, any, all) in [FIRST, SECOND, FIRST] {
                etw.notify_if_registered(ENABLE, level, any, all);
                thread::yield_now();
            }
            etw.notify_if_registered(DISABLE, 0, 0, 0);
            etw.calls();
        }
    });
    trace::unregister().unwrap();
    etw.set(|etw| assert!(etw.blocks.is_empty(), "traits were left in the pool"));
}
