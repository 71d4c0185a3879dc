//! Tests registering and unregistering a provider.

use std::sync::Mutex;
#[cfg(debug_assertions)]
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use mock_etw::{
    ACCESS_DENIED, Call, ENABLE, NO_MEMORY, Turn, register, register_with, registered, turn,
};
use wdk_etw::{
    __macro::{Hooks, StaticProvider},
    ActivityError, ActivityId, EventDescriptor, Guid, Keyword, Level, Notification, NtStatus,
    POOL_TAG, Provider, Refusals, RegisterError, Registered, TraitsBuffer, UnregisterError,
    WriteOptions, debug_print, emit, event, guid_of_name, traits,
};

const NAME: &str = "Contoso.Sample";
const ID: Guid = guid_of_name!(NAME);

macro_rules! provider {
    () => {{
        static PROVIDER: StaticProvider =
            StaticProvider::new(ID, &traits!(NAME, group = "faaf2f61-9b26-4591-9bb1-b9b8bae2d34c"));
        &PROVIDER
    }};
}

static EVENT: EventDescriptor = EventDescriptor::new(1, 0, Level::INFO, Keyword::bit::<0>());

fn write(provider: &'static Provider) {
    provider.write(&EVENT, &WriteOptions::new(), &[]).unwrap();
}

// R-C2, R-C3, R-T3, R-T6
#[test]
fn registering_sets_the_traits() {
    let provider = provider!();
    let etw = registered(provider);
    assert_eq!(
        etw.calls(),
        [
            Call::Register(ID),
            Call::SetInformation(0x1001, 2, provider.traits().as_bytes().to_vec()),
        ]
    );
    provider.unregister().unwrap();
    assert_eq!(etw.calls(), [Call::Unregister(0x1001)]);
}

// R-G2
#[test]
fn a_refused_group_leaves_the_provider_working() {
    let etw = turn();
    let provider = provider!();
    etw.set(|etw| etw.information_status = ACCESS_DENIED);
    let refusals = Refusals {
        traits: Some(NtStatus::ACCESS_DENIED),
        descriptor_types: Some(NtStatus::ACCESS_DENIED),
        ..Refusals::default()
    };
    assert_eq!(register(provider), Ok(Registered::Incomplete(refusals)));
    assert_eq!(
        refusals.to_string(),
        "EtwSetInformation(EventProviderSetTraits) returned STATUS_ACCESS_DENIED (0xC0000022): \
         the provider works, but it is not in its group; \
         EtwSetInformation(EventProviderUseDescriptorType) returned STATUS_ACCESS_DENIED \
         (0xC0000022): TraceLogging events cannot be decoded"
    );
    // `EventProviderUseDescriptorType` is set even though the traits were refused.
    assert_eq!(etw.calls().last(), Some(&Call::SetInformation(0x1001, 3, vec![1])));
    write(provider);
    assert_eq!(etw.writes().len(), 1);
    provider.unregister().unwrap();
}

#[test]
fn a_second_registration_is_an_error_and_no_call() {
    let provider = provider!();
    let etw = registered(provider);
    etw.calls();
    assert_eq!(register(provider), Err(RegisterError::AlreadyRegistered));
    assert_eq!(etw.calls(), []);
}

#[test]
fn unregistering_twice_is_one_call() {
    let etw = turn();
    let provider = provider!();
    assert_eq!(provider.unregister(), Ok(()));
    assert_eq!(etw.calls(), [], "it was never registered");
    assert_eq!(register(provider), Ok(Registered::Complete));
    provider.unregister().unwrap();
    provider.unregister().unwrap();
    let unregistered =
        etw.calls().into_iter().filter(|call| matches!(call, Call::Unregister(_))).count();
    assert_eq!(unregistered, 1);
}

#[test]
fn a_provider_can_be_registered_again() {
    let etw = turn();
    let provider = provider!();
    for handle in [0x1001, 0x1002] {
        assert_eq!(register(provider), Ok(Registered::Complete));
        etw.calls();
        write(provider);
        assert_eq!(etw.writes()[0].handle, handle);
        provider.unregister().unwrap();
    }
}

#[test]
fn a_failed_registration_returns_its_cause_and_can_be_retried() {
    let etw = turn();
    let provider = provider!();
    etw.set(|etw| etw.register_status = NO_MEMORY);
    let error = RegisterError::Refused(NtStatus::NO_MEMORY);
    assert_eq!(register(provider), Err(error));
    assert_eq!(
        error.to_string(),
        "cannot register the provider: EtwRegister returned STATUS_NO_MEMORY (0xC0000017)"
    );
    write(provider);
    assert_eq!(etw.writes(), [], "there is no handle to write to");
    etw.set(|etw| etw.register_status = 0);
    assert_eq!(register(provider), Ok(Registered::Complete));
    provider.unregister().unwrap();
}

#[test]
fn after_a_failed_unregistration_writes_do_nothing_and_it_can_be_retried() {
    let provider = provider!();
    let etw = registered(provider);
    etw.notify(ENABLE, 4, 1, 0);
    etw.set(|etw| etw.unregister_status = NO_MEMORY);
    let error = UnregisterError::Refused(NtStatus::NO_MEMORY);
    assert_eq!(provider.unregister(), Err(error));
    assert_eq!(
        error.to_string(),
        "cannot unregister the provider: EtwUnregister returned STATUS_NO_MEMORY (0xC0000017)"
    );
    etw.calls();
    // The handle may or may not be valid.
    write(provider);
    assert!(!provider.is_enabled_fast(Level::INFO, Keyword::bit::<0>()));
    assert_eq!(etw.writes(), []);
    assert_eq!(register(provider), Err(RegisterError::AlreadyRegistered));
    etw.set(|etw| etw.unregister_status = 0);
    provider.unregister().unwrap();
    assert_eq!(etw.calls(), [Call::Unregister(0x1001)]);
}

#[test]
fn any_number_of_failed_unregistrations_leaves_the_provider_as_one_does() {
    let provider = provider!();
    let etw = registered(provider);
    for failures in 1..=4 {
        // Match-all keywords send writes to the slow path.
        etw.notify(ENABLE, 4, 1, 1);
        etw.set(|etw| etw.unregister_status = NO_MEMORY);
        for _ in 0..failures {
            let refused = Err(UnregisterError::Refused(NtStatus::NO_MEMORY));
            assert_eq!(provider.unregister(), refused);
            write(provider);
            assert!(!provider.event_enabled(&EVENT));
            // A notification does not let writes resume.
            etw.notify(ENABLE, 4, 1, 1);
            assert!(!provider.is_enabled_fast(Level::INFO, Keyword::bit::<0>()));
            etw.notify(ENABLE, 200, 1, 0);
            assert!(!provider.is_enabled_fast(Level(200), Keyword::bit::<0>()));
            write(provider);
        }
        assert_eq!(etw.writes(), [], "after {failures} failures");
        etw.set(|etw| etw.unregister_status = 0);
        provider.unregister().unwrap();
        assert_eq!(register(provider), Ok(Registered::Complete));
        etw.notify(ENABLE, 200, 1, 0);
        assert!(provider.is_enabled_fast(Level::INFO, Keyword::bit::<0>()));
        assert!(provider.is_enabled_fast(Level(200), Keyword::bit::<0>()));
        etw.calls();
        write(provider);
        assert_eq!(etw.writes().len(), 1, "after {failures} failures");
    }
}

#[test]
fn unregister_waits_for_writes_in_progress() {
    let provider = provider!();
    let etw = registered(provider);
    etw.set(|etw| etw.hold_writes = true);
    std::thread::scope(|scope| {
        scope.spawn(|| write(provider));
        etw.wait_until(|etw| etw.writes_inside == 1);
        let unregister = scope.spawn(|| provider.unregister());
        // After the rundown is closed, `unregister` waits for the write in progress.
        while provider.provider_enabled(Level::CRITICAL, Keyword::bit::<0>()) {
            std::thread::yield_now();
        }
        for _ in 0..1000 {
            assert!(!unregister.is_finished());
            std::thread::yield_now();
        }
        let calls = etw.calls();
        assert!(
            !calls.contains(&Call::Unregister(0x1001)),
            "the handle was released while a write used it"
        );
        // A later write does not wait.
        write(provider);
        etw.set(|etw| etw.hold_writes = false);
        assert_eq!(unregister.join().unwrap(), Ok(()));
    });
    assert_eq!(etw.calls(), [Call::Unregister(0x1001)]);
}

// R-E7: writes on different stacks are counted in different cache lines.
#[test]
fn unregister_waits_for_the_last_of_many_writes_and_admits_no_other() {
    const WRITERS: usize = 48;
    let provider = provider!();
    let etw = registered(provider);
    etw.set(|etw| etw.hold_writes = true);
    let released = std::sync::Barrier::new(WRITERS + 1);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                write(provider);
                released.wait();
                write(provider);
            });
        }
        etw.wait_until(|etw| etw.writes_inside == WRITERS);
        let unregister = scope.spawn(|| provider.unregister());
        for left in (0..WRITERS).rev() {
            for _ in 0..20 {
                assert!(!unregister.is_finished(), "{left} writes are in progress");
                std::thread::yield_now();
            }
            etw.set(|etw| etw.let_out = 1);
            // `EtwUnregister` fails the test if a write is in progress.
            etw.wait_until(|etw| etw.writes_inside == left);
        }
        assert_eq!(unregister.join().unwrap(), Ok(()));
        etw.set(|etw| etw.hold_writes = false);
        assert_eq!(etw.writes().len(), WRITERS);
        released.wait();
    });
    assert_eq!(etw.calls(), []);
}

// R-T4
#[test]
fn second_set_traits_is_reported() {
    fn set_first(_provider: &Provider, _notification: &Notification<'_>) {
        // Simulates that the traits of this registration are already set.
        mock_etw::set_traits(0x1001);
    }
    static PROVIDER: StaticProvider = StaticProvider::new(ID, &traits!(NAME))
        .with_hooks(Hooks { on_enable: Some(set_first), ..Hooks::NONE });
    let etw = turn();
    etw.set(|etw| etw.enabled_before = Some((5, 0, 0)));
    assert_eq!(
        register(&PROVIDER),
        Ok(Registered::Incomplete(Refusals {
            traits: Some(NtStatus::INVALID_PARAMETER),
            ..Refusals::default()
        }))
    );
    let classes: Vec<_> = etw
        .calls()
        .into_iter()
        .filter_map(|call| match call {
            Call::SetInformation(_, class, _) => Some(class),
            _ => None,
        })
        .collect();
    assert_eq!(classes, [2, 3], "traits are tried once");
    write(&PROVIDER);
    assert_eq!(etw.writes().len(), 1);
    PROVIDER.unregister().unwrap();
}

// R-C4, R-T5, R-T7
#[test]
fn run_time_traits_are_in_non_paged_pool_until_unregistration() {
    let etw = turn();
    let provider = provider!();
    let expected = {
        let mut traits = Box::new(TraitsBuffer::<64>::named(NAME).unwrap());
        traits.push(255, b"unit 7").unwrap();
        assert_eq!(register_with(provider, &traits), Ok(Registered::Complete));
        traits.as_bytes().to_vec()
    };
    assert_eq!(
        etw.calls(),
        [
            Call::Allocate(0x40, expected.len(), POOL_TAG),
            Call::Register(ID),
            Call::SetInformation(0x1001, 2, expected.clone())
        ]
    );
    etw.notify(ENABLE, 5, 0, 0);
    event!(provider, "Now", level = Info, keyword = none);
    assert_eq!(etw.writes()[0].data[0], (2, expected));
    provider.unregister().unwrap();
    assert_eq!(etw.calls(), [Call::Unregister(0x1001), Call::Free(POOL_TAG)]);
    // The next registration has the provider's own traits.
    assert_eq!(register(provider), Ok(Registered::Complete));
    etw.notify(ENABLE, 5, 0, 0);
    event!(provider, "Now", level = Info, keyword = none);
    let own = provider.traits().as_bytes().to_vec();
    assert_eq!(etw.writes()[0].data[0], (2, own));
    provider.unregister().unwrap();
}

// R-C4
#[test]
fn a_registration_that_fails_leaves_no_pool_behind() {
    let etw = turn();
    let provider = provider!();
    let traits = TraitsBuffer::<64>::named(NAME).unwrap();
    etw.set(|etw| etw.register_status = NO_MEMORY);
    assert_eq!(register_with(provider, &traits), Err(RegisterError::Refused(NtStatus::NO_MEMORY)));
    etw.set(|etw| {
        assert!(etw.blocks.is_empty());
        etw.register_status = 0;
        etw.no_pool = true;
        etw.calls.clear();
    });
    let error = RegisterError::NoPool(17);
    assert_eq!(register_with(provider, &traits), Err(error));
    assert!(error.to_string().contains("ExAllocatePool2 could not allocate 17 bytes"));
    assert_eq!(etw.calls(), [Call::Allocate(0x40, 17, POOL_TAG)]);
    assert_eq!(register(provider), Ok(Registered::Complete));
    provider.unregister().unwrap();
}

#[test]
fn an_image_is_tracked_if_its_provider_requests_it() {
    static PROVIDER: StaticProvider =
        StaticProvider::new(ID, &traits!(NAME)).with_binary_tracking();
    let etw = turn();
    assert_eq!(register(&PROVIDER), Ok(Registered::Complete));
    assert_eq!(
        etw.calls()[1..],
        [
            Call::SetInformation(0x1001, 2, PROVIDER.traits().as_bytes().to_vec()),
            Call::SetInformation(0x1001, 0, vec![]),
        ]
    );
    PROVIDER.unregister().unwrap();
    etw.set(|etw| etw.tracking_status = ACCESS_DENIED);
    let refusals =
        Refusals { binary_tracking: Some(NtStatus::ACCESS_DENIED), ..Refusals::default() };
    assert_eq!(register(&PROVIDER), Ok(Registered::Incomplete(refusals)));
    PROVIDER.unregister().unwrap();
}

// R-C5
#[test]
fn calls_above_the_highest_irql_do_not_reach_etw() {
    let etw = turn();
    let provider = provider!();
    etw.set(|etw| etw.irql = 1);
    let error = RegisterError::TooHighIrql(1);
    assert_eq!(register(provider), Err(error));
    let traits = TraitsBuffer::<64>::named(NAME).unwrap();
    assert_eq!(register_with(provider, &traits), Err(error));
    assert!(error.to_string().contains("PASSIVE_LEVEL"));
    assert_eq!(etw.calls(), []);
    let thread = ActivityId::current();
    assert!(thread.is_ok(), "APC_LEVEL is low enough for a thread's activity");
    etw.set(|etw| etw.irql = 2);
    let error = ActivityError::TooHighIrql(2);
    assert_eq!(ActivityId::current(), Err(error));
    assert_eq!(
        error.to_string(),
        "cannot read or set the thread's activity id at IRQL 2: call EtwActivityIdControl at \
         APC_LEVEL (1) or below"
    );
    assert_eq!(
        ActivityError::Refused(NtStatus::NO_MEMORY).to_string(),
        "cannot create, read or set the activity id: EtwActivityIdControl returned \
         STATUS_NO_MEMORY (0xC0000017)"
    );
    assert!(ActivityId::create().is_ok(), "an id can be made at any IRQL");
    etw.set(|etw| etw.irql = 0);
    assert_eq!(register(provider), Ok(Registered::Complete));
    let scope = ActivityId::create().unwrap().enter().unwrap();
    etw.set(|etw| etw.irql = 2);
    etw.calls();
    assert_eq!(provider.unregister(), Err(UnregisterError::TooHighIrql(2)));
    drop(scope);
    assert_eq!(etw.calls(), []);
    etw.set(|etw| etw.irql = 0);
    provider.unregister().unwrap();
}

// ETW-2.13
#[test]
fn a_hook_cannot_unregister_its_provider_but_another_thread_can_meanwhile() {
    static RESULTS: Mutex<Vec<Result<(), UnregisterError>>> = Mutex::new(Vec::new());
    static PROVIDER: StaticProvider = StaticProvider::new(ID, &traits!(NAME))
        .with_hooks(Hooks { on_enable: Some(unregister), ..Hooks::NONE });
    fn unregister(_provider: &Provider, _notification: &Notification<'_>) {
        let here = PROVIDER.unregister();
        // ETW would wait for this hook; the mock does not.
        let there = std::thread::spawn(|| PROVIDER.unregister()).join().unwrap();
        RESULTS.lock().unwrap().extend([here, there]);
    }
    let etw = turn();
    assert_eq!(register(&PROVIDER), Ok(Registered::Complete));
    etw.notify(ENABLE, 5, 0, 0);
    assert_eq!(*RESULTS.lock().unwrap(), [Err(UnregisterError::InHook), Ok(())]);
    let released = etw.calls().into_iter().filter(|call| matches!(call, Call::Unregister(_)));
    assert_eq!(released.count(), 1);
    // The thread is no longer in a hook.
    assert_eq!(register(&PROVIDER), Ok(Registered::Complete));
    PROVIDER.unregister().unwrap();
}

#[test]
fn several_registrations_of_the_same_and_other_guids_are_independent() {
    static FIRST: StaticProvider = StaticProvider::new(ID, &traits!(NAME));
    static SECOND: StaticProvider = StaticProvider::new(ID, &traits!(NAME));
    static OTHER: StaticProvider = StaticProvider::new(guid_of_name!("Other"), &traits!("Other"));
    let etw = turn();
    for provider in [&FIRST, &SECOND, &OTHER] {
        assert_eq!(register(provider), Ok(Registered::Complete));
    }
    etw.calls();
    for (provider, handle) in [(&SECOND, 0x1002), (&OTHER, 0x1003), (&FIRST, 0x1001)] {
        write(provider);
        assert_eq!(etw.writes()[0].handle, handle);
        provider.unregister().unwrap();
        assert_eq!(etw.calls(), [Call::Unregister(handle)]);
    }
}

// R-E9, R-E7
#[test]
fn a_hook_that_registers_unregisters_or_writes_too_early_does_no_harm() {
    static RESULTS: std::sync::Mutex<Vec<bool>> = std::sync::Mutex::new(Vec::new());
    static PROVIDER: StaticProvider = StaticProvider::new(ID, &traits!(NAME))
        .with_hooks(Hooks { on_enable: Some(meddle), ..Hooks::NONE });
    fn meddle(_provider: &Provider, _notification: &Notification<'_>) {
        write(&PROVIDER);
        RESULTS.lock().unwrap().extend([
            register(&PROVIDER) == Err(RegisterError::Busy),
            PROVIDER.unregister() == Err(UnregisterError::InHook),
        ]);
    }
    let etw = turn();
    etw.set(|etw| etw.enabled_before = Some((5, 0, 0)));
    assert_eq!(register(&PROVIDER), Ok(Registered::Complete));
    assert_eq!(*RESULTS.lock().unwrap(), [true, true]);
    assert_eq!(etw.writes(), [], "there was no handle yet");
    PROVIDER.unregister().unwrap();
}

#[test]
fn a_write_before_and_after_registration_does_nothing() {
    let etw = turn();
    let provider = provider!();
    write(provider);
    assert_eq!(register(provider), Ok(Registered::Complete));
    provider.unregister().unwrap();
    write(provider);
    assert!(!provider.provider_enabled(Level::CRITICAL, Keyword::bit::<0>()));
    assert_eq!(etw.writes(), []);
    assert_eq!(provider.failures().total(), 0);
}

#[test]
fn threads_that_race_register_once() {
    let etw = turn();
    let provider = provider!();
    let registered: usize = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| usize::from(register(provider).is_ok()))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(registered, 1);
    let calls = etw.calls();
    assert_eq!(calls.iter().filter(|call| matches!(call, Call::Register(_))).count(), 1);
    provider.unregister().unwrap();
}

#[test]
fn a_debug_message_is_cut_between_characters_and_ends_with_a_line_feed() {
    let etw = turn();
    let long = "é".repeat(200);
    for (text, printed) in [
        ("", "\n".to_owned()),
        ("short", "short\n".to_owned()),
        (&long, "é".repeat(127) + "\n"),
        // The maximum length, and one byte more.
        (&"a".repeat(254), "a".repeat(254) + "\n"),
        (&"a".repeat(255), "a".repeat(254) + "\n"),
        ("%s\0%s", "%s %s\n".to_owned()),
    ] {
        debug_print(format_args!("{text}"));
        assert_eq!(etw.calls(), [Call::Print(printed)]);
    }
    // `DbgPrint` may be called up to the highest IRQL of devices.
    for (irql, prints) in [(12, 1), (13, 0)] {
        etw.set(|etw| etw.irql = irql);
        debug_print(format_args!("text"));
        assert_eq!(etw.calls().len(), prints);
    }
}

#[wdk_etw::provider(name = "Test.Bare", rundown = none)]
mod without_rundown {
    #[event(level = Info, keyword = none)]
    pub fn written(number: u32);
}

#[test]
fn a_provider_without_a_rundown_is_unregistered_by_an_unsafe_function() {
    let etw = turn();
    for handle in [0x1001, 0x1002] {
        assert_eq!(register(&without_rundown::PROVIDER), Ok(Registered::Complete));
        etw.notify(ENABLE, 5, 0, 0);
        etw.calls();
        emit!(without_rundown::written(1));
        assert_eq!(etw.writes().len(), 1);
        assert_eq!(without_rundown::PROVIDER.unregister(), Err(UnregisterError::NoRundown));
        assert_eq!(etw.calls(), []);
        // SAFETY: no write is in progress.
        assert_eq!(unsafe { without_rundown::unregister() }, Ok(()));
        emit!(without_rundown::written(2));
        assert!(!without_rundown::PROVIDER.provider_enabled(Level(1), Keyword::NONE));
        assert_eq!(etw.calls(), [Call::Unregister(handle)]);
    }
    // If ETW refused the traits, manifest events are written on the slow path.
    etw.set(|etw| etw.information_status = ACCESS_DENIED);
    let _incomplete = register(&without_rundown::PROVIDER).unwrap();
    etw.notify(ENABLE, 5, 0, 0);
    etw.calls();
    emit!(without_rundown::written(3));
    assert_eq!(etw.writes().len(), 1);
    // SAFETY: as above.
    assert_eq!(unsafe { without_rundown::unregister() }, Ok(()));
}

// The test breaks the contract, which debug builds detect.
#[cfg(debug_assertions)]
#[test]
fn a_write_in_progress_without_a_rundown_is_noticed_in_debug_builds() {
    let etw = turn();
    assert_eq!(register(&without_rundown::PROVIDER), Ok(Registered::Complete));
    etw.notify(ENABLE, 5, 0, 0);
    etw.set(|etw| etw.hold_writes = true);
    std::thread::scope(|scope| {
        let write = scope.spawn(|| emit!(without_rundown::written(1)));
        etw.wait_until(|etw| etw.writes_inside == 1);
        etw.calls();
        // SAFETY: not upheld; the library does not release the handle.
        let unregistered = unsafe { without_rundown::unregister() };
        assert_eq!(unregistered, Err(UnregisterError::WriteInProgress));
        assert_eq!(etw.calls(), []);
        etw.set(|etw| etw.hold_writes = false);
        write.join().unwrap();
    });
    // SAFETY: no write is in progress.
    assert_eq!(unsafe { without_rundown::unregister() }, Ok(()));
}

#[wdk_etw::provider(name = "Test.Hooked", rundown = none, on_enable = super::hooked_enabled)]
mod hooked {
    #[event(level = Info, keyword = none)]
    pub fn written(number: u32);
}

/// The code that the hook of `hooked` runs.
static HOOK: Mutex<fn()> = Mutex::new(|| {});

fn hooked_enabled(_provider: &Provider, _notification: &Notification<'_>) {
    let code = *HOOK.lock().unwrap();
    code();
}

/// Registers `without_rundown` and `hooked`, enables them, and sets the hook.
fn with_hook(etw: &Turn, hook: fn()) {
    *HOOK.lock().unwrap() = || {};
    for provider in [&*without_rundown::PROVIDER, &*hooked::PROVIDER] {
        assert_eq!(register(provider), Ok(Registered::Complete));
        etw.notify(ENABLE, 5, 0, 0);
    }
    etw.calls();
    *HOOK.lock().unwrap() = hook;
}

#[test]
fn without_a_rundown_unregistering_waits_for_a_write_of_the_providers_hook() {
    let etw = turn();
    with_hook(&etw, || emit!(hooked::written(1)));
    etw.set(|etw| etw.hold_writes = true);
    std::thread::scope(|scope| {
        scope.spawn(|| etw.notify_if_registered(ENABLE, 5, 0, 0));
        etw.wait_until(|etw| etw.writes_inside == 1);
        // SAFETY: the only write in progress is the one in the provider's hook.
        let unregistering = scope.spawn(|| unsafe { hooked::unregister() });
        while hooked::PROVIDER.is_enabled_fast(Level::INFO, Keyword::NONE) {
            std::thread::yield_now();
        }
        etw.set(|etw| etw.hold_writes = false);
        assert_eq!(unregistering.join().unwrap(), Ok(()));
    });
    assert!(matches!(etw.calls()[..], [Call::Write(_), Call::Unregister(0x1002)]));
    // SAFETY: no write is in progress.
    assert_eq!(unsafe { without_rundown::unregister() }, Ok(()));
}

// The test breaks the contract: ETW waits only for the hooks of the provider that is unregistered.
#[cfg(debug_assertions)]
#[test]
fn a_write_in_the_hook_of_another_provider_is_noticed_in_debug_builds() {
    let etw = turn();
    with_hook(&etw, || emit!(without_rundown::written(1)));
    etw.set(|etw| etw.hold_writes = true);
    std::thread::scope(|scope| {
        scope.spawn(|| etw.notify_if_registered(ENABLE, 5, 0, 0));
        etw.wait_until(|etw| etw.writes_inside == 1);
        etw.calls();
        // SAFETY: not upheld; the library does not release the handle.
        let unregistered = unsafe { without_rundown::unregister() };
        assert_eq!(unregistered, Err(UnregisterError::WriteInProgress));
        assert_eq!(etw.calls(), []);
        etw.set(|etw| etw.hold_writes = false);
    });
    for unregister in [without_rundown::unregister, hooked::unregister] {
        // SAFETY: no write is in progress.
        assert_eq!(unsafe { unregister() }, Ok(()));
    }
}

// The test breaks the contract by a write outside the hook.
#[cfg(debug_assertions)]
#[test]
fn a_hook_hides_no_write_of_another_thread_in_debug_builds() {
    static IN_HOOK: AtomicBool = AtomicBool::new(false);
    let etw = turn();
    IN_HOOK.store(true, Ordering::Relaxed);
    with_hook(&etw, || {
        while IN_HOOK.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    });
    etw.set(|etw| etw.hold_writes = true);
    std::thread::scope(|scope| {
        scope.spawn(|| emit!(hooked::written(1)));
        etw.wait_until(|etw| etw.writes_inside == 1);
        etw.calls();
        scope.spawn(|| etw.notify_if_registered(ENABLE, 5, 0x10, 0));
        while hooked::PROVIDER.enable_info().is_none_or(|info| info.match_any.bits() != 0x10) {
            std::thread::yield_now();
        }
        // SAFETY: not upheld; the library does not release the handle.
        let unregistering = scope.spawn(|| unsafe { hooked::unregister() });
        while hooked::PROVIDER.is_enabled_fast(Level::INFO, Keyword::NONE) {
            std::thread::yield_now();
        }
        // Let the other thread compare the counts.
        std::thread::sleep(Duration::from_millis(20));
        IN_HOOK.store(false, Ordering::Relaxed);
        assert_eq!(unregistering.join().unwrap(), Err(UnregisterError::WriteInProgress));
        assert_eq!(etw.calls(), []);
        etw.set(|etw| etw.hold_writes = false);
    });
    for unregister in [without_rundown::unregister, hooked::unregister] {
        // SAFETY: no write is in progress.
        assert_eq!(unsafe { unregister() }, Ok(()));
    }
}
