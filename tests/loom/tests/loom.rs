//! The model checker tries every interleaving of the provider's atomics.

#![cfg(loom)]

use std::{
    ffi::c_void,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use loom::{model::Builder, sync::Arc, thread};
use wdk_etw::{
    Composite, EventDescriptor, Guid, Keyword, Level, Provider, RegisterError, Registered, Traits,
    WriteOptions,
    model::{EnableState, Rundown},
    traits,
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
        assert!(!state.is_enabled_fast(Level(3), Keyword::from_bits(0x11)));
        writer.join().unwrap();
        assert!(state.is_enabled_fast(Level(3), Keyword::from_bits(0x22)));
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

/// The handle that is registered; 0 for none. The checker runs one thread at a time, and
/// switches at its own atomics only, so that ordinary ones tell what is true just now.
static LIVE: AtomicU64 = AtomicU64::new(0);
static REGISTRATIONS: AtomicU32 = AtomicU32::new(0);
static TRAITS: Traits = traits!("Test");
static EVENT: EventDescriptor = EventDescriptor::new(1, 0, Level(4), Keyword::bit::<0>());

fn assert_live(handle: u64) {
    assert_ne!(handle, 0, "there is no such handle");
    assert_eq!(LIVE.load(Ordering::SeqCst), handle, "it was released");
}

// SAFETY: the crate calls the routine by this name; nothing else has it.
#[unsafe(no_mangle)]
extern "system" fn EtwRegister(
    _provider: &Guid,
    _callback: *const c_void,
    _context: *const c_void,
    handle: &mut u64,
) -> i32 {
    assert_eq!(LIVE.load(Ordering::SeqCst), 0, "it is registered already");
    *handle = u64::from(REGISTRATIONS.fetch_add(1, Ordering::SeqCst)) + 1;
    LIVE.store(*handle, Ordering::SeqCst);
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EtwUnregister(handle: u64) -> i32 {
    assert_live(handle);
    LIVE.store(0, Ordering::SeqCst);
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn ExAllocatePool2(_flags: u64, bytes: usize, _tag: u32) -> *mut c_void {
    Box::leak(vec![0_u8; bytes].into_boxed_slice())
        .as_mut_ptr()
        .cast()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn ExFreePoolWithTag(_block: *mut c_void, _tag: u32) {}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn KeGetCurrentIrql() -> u8 {
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EtwSetInformation(
    handle: u64,
    _class: i32,
    _information: *const c_void,
    _length: u32,
) -> i32 {
    assert_live(handle);
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EtwWriteEx(
    handle: u64,
    _event: &EventDescriptor,
    _filter: u64,
    _flags: u32,
    _activity: *const Guid,
    _related: *const Guid,
    _count: u32,
    _data: *const c_void,
) -> i32 {
    // The handle is good from the call's first instruction to its last.
    assert_live(handle);
    thread::yield_now();
    assert_live(handle);
    0
}

/// One test at a time uses the routines.
static TURN: Mutex<()> = Mutex::new(());

/// How often a thread is preempted at most; `WDK_ETW_PREEMPTIONS` may ask for more. (The
/// models of the parts alone have no limit.)
fn preemptions() -> usize {
    let asked = std::env::var("WDK_ETW_PREEMPTIONS").ok();
    asked.map_or(3, |text| text.parse().expect("a number"))
}

/// Every interleaving with up to so many preemptions of a thread.
fn check(body: impl Fn(&'static Provider) + Sync + Send + 'static) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions());
    builder.check(move || {
        LIVE.store(0, Ordering::SeqCst);
        REGISTRATIONS.store(0, Ordering::SeqCst);
        // Only what lives for ever can be registered, and each run needs a new one.
        let provider = Box::leak(Box::new(Provider::new(Guid::NULL, &TRAITS)));
        body(provider);
    });
}

fn write(provider: &Provider) {
    provider.write(&EVENT, &WriteOptions::new(), &[]).unwrap();
}

#[test]
fn no_write_reaches_a_released_handle() {
    check(|provider| {
        assert_eq!(provider.register(), Ok(Registered::Complete));
        let writer = thread::spawn(|| {
            write(provider);
            write(provider);
        });
        provider.unregister().unwrap();
        writer.join().unwrap();
        assert_eq!(LIVE.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_write_across_registrations_uses_the_handle_of_its_time() {
    check(|provider| {
        assert_eq!(provider.register(), Ok(Registered::Complete));
        let writer = thread::spawn(|| write(provider));
        provider.unregister().unwrap();
        assert_eq!(provider.register(), Ok(Registered::Complete));
        writer.join().unwrap();
        provider.unregister().unwrap();
    });
}

#[test]
fn racing_registrations_are_one() {
    check(|provider| {
        let register = || match provider.register() {
            Ok(Registered::Complete) => 1,
            Err(RegisterError::AlreadyRegistered | RegisterError::Busy) => 0,
            other => panic!("{other:?}"),
        };
        let other = thread::spawn(register);
        let here = register();
        assert_eq!(here + other.join().unwrap(), 1);
        assert_eq!(REGISTRATIONS.load(Ordering::SeqCst), 1);
        provider.unregister().unwrap();
    });
}

#[test]
fn racing_unregistrations_are_one() {
    check(|provider| {
        assert_eq!(provider.register(), Ok(Registered::Complete));
        // `EtwUnregister` takes a handle once.
        let other = thread::spawn(|| {
            let _ok_or_busy = provider.unregister();
        });
        let _ok_or_busy = provider.unregister();
        other.join().unwrap();
        assert_eq!(LIVE.load(Ordering::SeqCst), 0);
    });
}
