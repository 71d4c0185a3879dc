//! Tests the client's provider, with its own declaration, against the system's advapi32.dll.
//!
//! Wine records no events: the calls succeed, and no session enables the provider. Wine has no
//! `EventWriteEx`, so unconditional writes are not tested there.

#[allow(dead_code, reason = "the test does not write every event")]
#[path = "../src/trace.rs"]
mod trace;

use trace::provider;
use wdk_etw::{ActivityId, NtStatus, RegisterError, Registered, WriteOptions, emit};

fn register() -> Result<Registered, RegisterError> {
    // SAFETY: a test's code is never unmapped.
    unsafe { provider::register() }
}

#[test]
fn the_provider_registers_writes_and_unregisters() {
    emit!(provider::request_sent(1, 2));
    let registered = register();
    assert!(
        matches!(registered, Ok(Registered::Complete | Registered::Incomplete(_))),
        "{registered:?}"
    );
    assert_eq!(register(), Err(RegisterError::AlreadyRegistered));
    assert!(!provider::request_sent::is_enabled());
    assert_eq!(provider::PROVIDER.enable_info(), None);
    let activity = ActivityId::create();
    assert!(activity.is_ok(), "{activity:?}");
    emit!(
        provider::request_answered(1, 2, NtStatus::SUCCESS),
        activity = activity.unwrap_or_default()
    );
    if std::env::var_os("WINEPREFIX").is_none() {
        let options = WriteOptions::new();
        assert_eq!(provider::request_sent::write(&options, 1, 2), Ok(()));
    }
    let statistics = provider::PROVIDER.statistics();
    assert_eq!(statistics.failed_in_total(), 0);
    assert_eq!(provider::unregister(), Ok(()));
    assert_eq!(provider::unregister(), Ok(()));
    // A provider can be registered again.
    assert!(register().is_ok());
    assert_eq!(provider::unregister(), Ok(()));
}
