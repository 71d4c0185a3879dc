//! Registering and unregistering a provider.

#![allow(
    clippy::significant_drop_tightening,
    reason = "a test's turn lasts as long as the test"
)]

mod common;

use common::{ACCESS_DENIED, Call, ENABLE, NO_MEMORY, turn};
use wdk_etw::{
    Event, EventDescriptor, Guid, Keyword, Level, NtStatus, Provider, RegisterError, Registered,
    TraitsFailure, UnregisterError, WriteOptions, guid_of_name, traits, write_event,
};

const NAME: &str = "Contoso.Sample";
const ID: Guid = guid_of_name!(NAME);

macro_rules! provider {
    () => {{
        static PROVIDER: Provider = Provider::new(
            ID,
            &traits!(NAME, group = "faaf2f61-9b26-4591-9bb1-b9b8bae2d34c"),
        );
        &PROVIDER
    }};
}

static EVENT: Event = Event::manifest(EventDescriptor::new(
    1,
    0,
    Level::INFORMATION,
    Keyword::bit::<0>(),
));

fn write(provider: &'static Provider) {
    provider.write(&EVENT, &WriteOptions::new(), &[]).unwrap();
}

// R-C2, R-C3, R-T3, R-T6
#[test]
fn registering_sets_the_traits() {
    let etw = turn();
    let provider = provider!();
    assert_eq!(provider.register(), Ok(Registered::Complete));
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

// R-G2, R-T4
#[test]
fn refused_traits_are_reported_and_the_provider_works() {
    let etw = turn();
    let provider = provider!();
    etw.set(|etw| etw.information_status = ACCESS_DENIED);
    let failure = TraitsFailure(NtStatus::ACCESS_DENIED);
    assert_eq!(provider.register(), Ok(Registered::WithoutTraits(failure)));
    let text = failure.to_string();
    assert!(text.contains("EtwSetInformation") && text.contains("STATUS_ACCESS_DENIED"));
    // ETW is asked to tell descriptions from fields all the same.
    assert_eq!(
        etw.calls().last(),
        Some(&Call::SetInformation(0x1001, 3, vec![1]))
    );
    write(provider);
    assert_eq!(etw.writes().len(), 1);
    provider.unregister().unwrap();
}

#[test]
fn a_second_registration_is_an_error_and_no_call() {
    let etw = turn();
    let provider = provider!();
    assert_eq!(provider.register(), Ok(Registered::Complete));
    etw.calls();
    assert_eq!(provider.register(), Err(RegisterError::AlreadyRegistered));
    assert_eq!(etw.calls(), []);
    provider.unregister().unwrap();
}

#[test]
fn unregistering_twice_is_one_call() {
    let etw = turn();
    let provider = provider!();
    assert_eq!(provider.unregister(), Ok(()));
    assert_eq!(etw.calls(), [], "it was never registered");
    assert_eq!(provider.register(), Ok(Registered::Complete));
    provider.unregister().unwrap();
    provider.unregister().unwrap();
    let unregistered = etw
        .calls()
        .into_iter()
        .filter(|call| matches!(call, Call::Unregister(_)))
        .count();
    assert_eq!(unregistered, 1);
}

#[test]
fn a_provider_can_be_registered_again() {
    let etw = turn();
    let provider = provider!();
    for handle in [0x1001, 0x1002] {
        assert_eq!(provider.register(), Ok(Registered::Complete));
        etw.calls();
        write(provider);
        assert_eq!(etw.writes()[0].handle, handle);
        provider.unregister().unwrap();
    }
}

#[test]
fn a_failed_registration_says_why_and_can_be_tried_again() {
    let etw = turn();
    let provider = provider!();
    etw.set(|etw| etw.register_status = NO_MEMORY);
    let error = RegisterError::Refused(NtStatus::NO_MEMORY);
    assert_eq!(provider.register(), Err(error));
    assert_eq!(
        error.to_string(),
        "EtwRegister returned STATUS_NO_MEMORY (0xC0000017)"
    );
    write(provider);
    assert_eq!(etw.writes(), [], "there is no handle to write to");
    etw.set(|etw| etw.register_status = 0);
    assert_eq!(provider.register(), Ok(Registered::Complete));
    provider.unregister().unwrap();
}

#[test]
fn a_failed_unregistration_leaves_the_provider_registered() {
    let etw = turn();
    let provider = provider!();
    assert_eq!(provider.register(), Ok(Registered::Complete));
    etw.notify(ENABLE, 4, 1, 0);
    etw.set(|etw| etw.unregister_status = NO_MEMORY);
    let error = UnregisterError::Refused(NtStatus::NO_MEMORY);
    assert_eq!(provider.unregister(), Err(error));
    etw.calls();
    write_event!(provider, EVENT, WriteOptions::new(), []);
    assert_eq!(etw.writes().len(), 1);
    etw.set(|etw| etw.unregister_status = 0);
    provider.unregister().unwrap();
}

#[test]
fn a_write_before_and_after_registration_does_nothing() {
    let etw = turn();
    let provider = provider!();
    write(provider);
    assert_eq!(provider.register(), Ok(Registered::Complete));
    provider.unregister().unwrap();
    write(provider);
    assert!(!provider.etw_wants(Level::CRITICAL, Keyword::bit::<0>()));
    assert_eq!(etw.writes(), []);
    assert_eq!(provider.failures().total(), 0);
}

#[test]
fn threads_that_race_register_once() {
    let etw = turn();
    let provider = provider!();
    let registered: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| usize::from(provider.register().is_ok())))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(registered, 1);
    let calls = etw.calls();
    assert_eq!(
        calls
            .iter()
            .filter(|call| matches!(call, Call::Register(_)))
            .count(),
        1
    );
    provider.unregister().unwrap();
}
