//! Model checker tests, which try every interleaving of the provider's atomics.

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
    __facade::settle,
    __macro::StaticProvider,
    EnableInfo, EventDescriptor, Guid, Keyword, Level, Provider, RateLimit, RegisterError,
    Registered, Traits, WriteOptions,
    model::{EnableState, Rundown, Stripe, set_group, stack_index},
    traits,
};

const fn enable_info(level: u8, any: u64, all: u64) -> EnableInfo {
    EnableInfo {
        level: Level(level),
        match_any: Keyword::from_bits(any),
        match_all: Keyword::from_bits(all),
    }
}

/// Starts a thread that shares a value.
fn spawn<T: 'static, R: 'static>(
    shared: &Arc<T>,
    body: impl FnOnce(&T) -> R + 'static,
) -> thread::JoinHandle<R> {
    let shared = Arc::clone(shared);
    thread::spawn(move || body(&shared))
}

// R-C5
#[test]
fn a_composite_is_the_old_or_the_new_or_everything() {
    const FIRST: EnableInfo = enable_info(2, 0x11, 0x1);
    const SECOND: EnableInfo = enable_info(5, 0x22, 0x2);
    model(|| {
        let state = Arc::new(EnableState::new());
        state.enable(FIRST);
        let writer = spawn(&state, |state| {
            state.enable(SECOND);
            state.disable();
        });
        let read = state.enable_info();
        let known = [Some(FIRST), Some(SECOND), None, Some(EnableInfo::EVERYTHING)];
        assert!(known.contains(&read), "{read:?}");
        writer.join().unwrap();
        assert_eq!(state.enable_info(), None);
    });
}

// R-C5: an update does not change the current enable info, because it writes to the other slot.
#[test]
fn during_one_update_a_composite_is_the_old_or_the_new() {
    const FIRST: EnableInfo = enable_info(2, 0x11, 0x1);
    const SECOND: EnableInfo = enable_info(5, 0x22, 0x2);
    model(|| {
        let state = Arc::new(EnableState::new());
        state.enable(FIRST);
        let writer = spawn(&state, |state| state.enable(SECOND));
        let read = state.enable_info();
        assert!([Some(FIRST), Some(SECOND)].contains(&read), "{read:?}");
        writer.join().unwrap();
    });
}

// R-C5: a reader at a higher IRQL can interrupt the writer anywhere, and must not wait.
#[test]
fn the_hot_check_never_mixes_level_and_keyword() {
    model(|| {
        let state = Arc::new(EnableState::new());
        state.enable(enable_info(2, 0x11, 0));
        let writer = spawn(&state, |state| state.enable(enable_info(5, 0x22, 0)));
        // Only the second state enables level 3, and only the first state enables keyword 0x11.
        assert!(!state.is_enabled_fast(Level(3), Keyword::from_bits(0x11)));
        writer.join().unwrap();
        assert!(state.is_enabled_fast(Level(3), Keyword::from_bits(0x22)));
    });
}

// A closing thread waits for the writes in progress. A notification must not let new writes start.
#[test]
fn the_masks_of_a_closed_state_stay_clear_whatever_notification_comes() {
    model(|| {
        let state = Arc::new(EnableState::new());
        let notification = spawn(&state, |state| state.enable(enable_info(4, 0x11, 0)));
        state.close();
        notification.join().unwrap();
        assert!(!state.is_enabled_fast(Level(4), Keyword::from_bits(0x11)));
        state.open();
        state.enable(enable_info(4, 0x11, 0));
        assert!(state.is_enabled_fast(Level(4), Keyword::from_bits(0x11)));
    });
}

/// The facades' maximum level is the level of the last notification, even if another thread that
/// read an older state publishes at the same time.
#[test]
fn a_published_level_is_never_an_old_one() {
    use loom::sync::atomic::{AtomicBool, Ordering};
    model(|| {
        let shared = Arc::new((EnableState::new(), AtomicBool::new(false)));
        let publish = |(state, published): &(EnableState, AtomicBool)| {
            let is_enabled = || state.is_enabled_fast(Level(4), Keyword::NONE);
            settle(
                || published.store(is_enabled(), Ordering::Relaxed),
                || published.load(Ordering::Relaxed) == is_enabled(),
            );
        };
        let hook = spawn(&shared, move |shared| {
            shared.0.enable(enable_info(4, 1, 0));
            publish(shared);
        });
        publish(&shared);
        hook.join().unwrap();
        assert!(shared.1.load(Ordering::Relaxed));
    });
}

/// Makes the current thread write in the stripe with index `stripe` of `stripes`.
fn write_in(stripe: usize, stripes: usize) {
    set_group(stripe);
    // If the stripe were different, the models would pass after checking only one stripe.
    assert_eq!(stack_index::<1>(stripes), stripe);
}

/// Checks that writers in the stripes with these numbers never use the handle after the closing
/// thread has released it. Before that, this thread releases the handle and restores it `rounds`
/// times.
fn check_rundown<const N: usize, const WRITERS: usize>(places: [usize; WRITERS], rounds: u64)
where
    Rundown<[Stripe; N]>: Send + Sync,
{
    use loom::cell::UnsafeCell;
    model(move || {
        // The cell is the handle: loom reports unordered accesses to it.
        let shared = Arc::new((Rundown::<[Stripe; N]>::new(), UnsafeCell::new(0_u64)));
        let rundown: &Rundown = &shared.0;
        // SAFETY: no other thread can access the cell yet.
        shared.1.with_mut(|handle| unsafe { *handle = 7 });
        rundown.open(true);
        let writers = places.map(|place| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                write_in(place, N);
                let rundown: &Rundown = &shared.0;
                // This takes the fast path or, if the slot is taken, the slow path, like a write.
                if let Some(_guard) = rundown.enter_fast().or_else(|| rundown.enter()) {
                    // SAFETY: the guard keeps the handle from being released.
                    let handle = shared.1.with(|handle| unsafe { *handle });
                    assert_ne!(handle, 0);
                }
            })
        });
        for handle in 0..rounds {
            rundown.close(true, thread::yield_now);
            // SAFETY: the rundown is closed, so no other thread uses the cell.
            shared.1.with_mut(|place| unsafe { *place = 0 });
            // SAFETY: as above.
            shared.1.with_mut(|place| unsafe { *place = 8 + handle });
            rundown.open(true);
        }
        rundown.close(true, thread::yield_now);
        // SAFETY: the rundown is closed, so no other thread uses the cell.
        shared.1.with_mut(|handle| unsafe { *handle = 0 });
        assert!(rundown.enter_fast().is_none());
        assert!(rundown.enter().is_none());
        for writer in writers {
            writer.join().unwrap();
        }
    });
}

#[test]
fn a_handle_is_never_used_after_the_rundown_is_closed() {
    check_rundown::<1, 2>([0, 0], 0);
    check_rundown::<2, 2>([0, 1], 0);
    check_rundown::<2, 2>([1, 1], 0);
    check_rundown::<1, 1>([0], 1);
}

#[test]
fn a_write_sees_what_was_stored_before_the_rundown_was_opened() {
    use loom::cell::UnsafeCell;
    model(|| {
        let shared = Arc::new((Rundown::<[Stripe; 2]>::new(), UnsafeCell::new(0_u64)));
        let writer = spawn(&shared, |shared| {
            write_in(1, 2);
            let rundown: &Rundown = &shared.0;
            if let Some(_pass) = rundown.enter_fast() {
                // SAFETY: the rundown guard keeps the handle from being released.
                let handle = shared.1.with(|handle| unsafe { *handle });
                assert_eq!(handle, 7);
            }
        });
        // SAFETY: the rundown is closed, so the other thread does not use the cell.
        shared.1.with_mut(|handle| unsafe { *handle = 7 });
        let rundown: &Rundown = &shared.0;
        rundown.open(true);
        writer.join().unwrap();
    });
}

/// Concurrent notifications, which ETW is not known to send, do not disable an event that either
/// notification enables.
#[test]
fn notifications_that_overlap_disable_no_event() {
    const FIRST: EnableInfo = enable_info(2, 0x11, 0x1);
    const SECOND: EnableInfo = enable_info(5, 0x22, 0x2);
    model(|| {
        let state = Arc::new(EnableState::new());
        let other = spawn(&state, |state| state.enable(FIRST));
        state.enable(SECOND);
        other.join().unwrap();
        let known = [FIRST, SECOND, EnableInfo::EVERYTHING];
        let info = state.enable_info().unwrap();
        assert!(known.contains(&info), "{info:?}");
        // The masks and the enable info come from the same notification, or they pass everything.
        let passes =
            |level, keyword| state.is_enabled_fast(Level(level), Keyword::from_bits(keyword));
        assert_eq!(passes(2, 0x11), info.match_any.bits() & 0x11 != 0);
        assert_eq!(passes(5, 0x22), info.match_any.bits() & 0x22 != 0);
        // The next notification that does not overlap restores the exact state.
        state.enable(FIRST);
        assert_eq!(state.enable_info(), Some(FIRST));
        assert!(!state.is_enabled_fast(Level(5), Keyword::from_bits(0x22)));
    });
}

/// The registered handle, or 0. The model checker runs one thread at a time and switches only at
/// its own atomics, so this atomic always has the current value.
static LIVE: AtomicU64 = AtomicU64::new(0);
static REGISTRATIONS: AtomicU32 = AtomicU32::new(0);
/// The number of writes.
static WRITTEN: AtomicU64 = AtomicU64::new(0);
static TRAITS: Traits = traits!("Test");
static EVENT: EventDescriptor = EventDescriptor::new(1, 0, Level(4), Keyword::bit::<0>());

fn assert_live(handle: u64) {
    assert_ne!(handle, 0, "the provider passed the handle 0");
    assert_eq!(LIVE.load(Ordering::SeqCst), handle, "the handle was released");
}

// SAFETY: the crate calls the routine by this name, and no other symbol has it.
#[unsafe(no_mangle)]
extern "system" fn EtwRegister(
    _provider: &Guid,
    _callback: *const c_void,
    _context: *const c_void,
    handle: &mut u64,
) -> i32 {
    assert_eq!(LIVE.load(Ordering::SeqCst), 0, "a provider is already registered");
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
    Box::leak(vec![0_u8; bytes].into_boxed_slice()).as_mut_ptr().cast()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn ExFreePoolWithTag(_block: *mut c_void, _tag: u32) {}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn PsGetCurrentThreadId() -> *mut c_void {
    std::ptr::null_mut()
}

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
    WRITTEN.fetch_add(1, Ordering::SeqCst);
    // The handle is valid during the whole call.
    assert_live(handle);
    thread::yield_now();
    assert_live(handle);
    0
}

/// The lock that the test that currently uses the routines holds.
static TURN: Mutex<()> = Mutex::new(());

/// The default maximum number of preemptions of a thread.
const PREEMPTIONS: usize = 3;

/// Returns the maximum number of preemptions of a thread in `WDK_ETW_PREEMPTIONS`.
fn more_preemptions() -> Option<usize> {
    let setting = std::env::var("WDK_ETW_PREEMPTIONS").ok();
    setting.map(|text| text.parse().expect("WDK_ETW_PREEMPTIONS must be a number"))
}

/// Checks a model of a single part. Tries every interleaving if the setting exceeds the default.
fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = more_preemptions().is_none().then_some(PREEMPTIONS);
    builder.check(body);
}

/// Checks every interleaving with up to [`PREEMPTIONS`] preemptions of a thread, or the number in
/// the setting.
fn check(body: impl Fn(&'static Provider) + Sync + Send + 'static) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = Builder::new();
    builder.preemption_bound = Some(more_preemptions().unwrap_or(PREEMPTIONS));
    builder.check(move || {
        LIVE.store(0, Ordering::SeqCst);
        REGISTRATIONS.store(0, Ordering::SeqCst);
        // Only a `'static` provider can be registered, and each run needs a new one.
        let provider: &'static StaticProvider<2> =
            Box::leak(Box::new(StaticProvider::new(Guid::NULL, &TRAITS)));
        body(provider);
    });
}

fn register(provider: &'static Provider) -> Result<Registered, RegisterError> {
    // SAFETY: a test's code is never unmapped.
    unsafe { provider.register() }
}

fn write(provider: &Provider) {
    provider.write(&EVENT, &WriteOptions::new(), &[]).unwrap();
}

#[test]
fn no_write_reaches_a_released_handle() {
    check(|provider| {
        assert_eq!(register(provider), Ok(Registered::Complete));
        // The threads write in different stripes.
        let writer = thread::spawn(|| {
            write_in(1, 2);
            write(provider);
            write(provider);
        });
        write(provider);
        provider.unregister().unwrap();
        writer.join().unwrap();
        assert_eq!(LIVE.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_write_across_registrations_uses_the_handle_that_is_registered() {
    check(|provider| {
        assert_eq!(register(provider), Ok(Registered::Complete));
        let writer = thread::spawn(|| {
            write_in(1, 2);
            write(provider);
        });
        provider.unregister().unwrap();
        assert_eq!(register(provider), Ok(Registered::Complete));
        writer.join().unwrap();
        provider.unregister().unwrap();
    });
}

#[test]
fn racing_registrations_register_once() {
    check(|provider| {
        let register_once = move || match register(provider) {
            Ok(Registered::Complete) => 1,
            Err(RegisterError::AlreadyRegistered | RegisterError::Busy) => 0,
            other => panic!("{other:?}"),
        };
        let other = thread::spawn(register_once);
        let here = register_once();
        assert_eq!(here + other.join().unwrap(), 1);
        assert_eq!(REGISTRATIONS.load(Ordering::SeqCst), 1);
        provider.unregister().unwrap();
    });
}

#[test]
fn racing_unregistrations_unregister_once() {
    check(|provider| {
        assert_eq!(register(provider), Ok(Registered::Complete));
        // `EtwUnregister` accepts a handle only once.
        let other = thread::spawn(|| {
            let _ok_or_busy = provider.unregister();
        });
        let _ok_or_busy = provider.unregister();
        other.join().unwrap();
        assert_eq!(LIVE.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_rate_limit_admits_each_nth_occurrence_exactly_once() {
    model(|| {
        let shared = Arc::new((
            StaticProvider::<1>::new(Guid::NULL, &TRAITS),
            RateLimit::every(2),
            RateLimit::once(),
        ));
        let count = |shared: &(StaticProvider<1>, RateLimit, RateLimit)| {
            let admitted = |limit| u32::from(shared.0.admits(limit));
            (admitted(&shared.1) + admitted(&shared.1), admitted(&shared.2))
        };
        let other = spawn(&shared, count);
        let here = count(&shared);
        let other = other.join().unwrap();
        // The first limit admits two of four occurrences, and the second admits one of two.
        assert_eq!((here.0 + other.0, here.1 + other.1), (2, 1));
        assert_eq!((shared.1.left_out(), shared.2.left_out()), (2, 1));
        // The provider counts the occurrences that were dropped before the last admitted one, and
        // all dropped occurrences of the other limit.
        assert_eq!(shared.0.statistics().left_out, 2);
    });
}

#[test]
fn an_event_is_either_written_or_counted_as_dropped() {
    check(|provider| {
        assert_eq!(register(provider), Ok(Registered::Complete));
        WRITTEN.store(0, Ordering::SeqCst);
        let writer = thread::spawn(|| write(provider));
        provider.unregister().unwrap();
        writer.join().unwrap();
        let written = WRITTEN.load(Ordering::SeqCst);
        assert_eq!(written + provider.statistics().dropped, 1);
    });
}
