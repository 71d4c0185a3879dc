//! Tests the library's calls to advapi32.dll with mock routines. The client's tests call the real
//! routines on Windows.

#![cfg(not(windows))]
#![allow(clippy::significant_drop_tightening, reason = "a test's turn lasts as long as the test")]

use etw_user_mode::trace;
use mock_etw::{CAPTURE_STATE, Call, ENABLE, Turn, enabled, register, register_with, turn};
use wdk_etw::{
    ActivityId, Guid, Keyword, Level, NtStatus, RegisterError, Registered, TraitsBuffer,
    WriteError, WriteOptions, emit,
};

/// The handle of a test's first registration.
const HANDLE: u64 = 0x1001;

/// Returns the handle, the event's id, the activity and the data of each write.
fn written(etw: &Turn) -> Vec<(u64, u16, Option<Guid>, Vec<u8>)> {
    let writes = etw.writes().into_iter();
    writes.map(|one| (one.handle, one.event.id(), one.activity, one.content())).collect()
}

#[test]
fn a_provider_registers_writes_and_unregisters_with_advapi32() {
    let etw = turn();
    emit!(trace::request_sent(1, "not registered"));
    assert_eq!(register(&trace::PROVIDER), Ok(Registered::Complete));
    let traits = trace::PROVIDER.traits().as_bytes().to_vec();
    assert_eq!(etw.calls(), [Call::Register(trace::ID), Call::SetInformation(HANDLE, 2, traits)]);
    emit!(trace::request_sent(1, "no session"));
    assert_eq!(etw.calls(), []);
    etw.notify(ENABLE, 5, 0, 0);
    let activity = ActivityId::create().unwrap();
    emit!(trace::request_sent(2, "ab"), activity = activity);
    emit!(trace::request_answered(NtStatus::SUCCESS));
    assert_eq!(
        written(&etw),
        [
            (HANDLE, 0, Some(activity.guid()), vec![2, 0, 0, 0, 2, 0, b'a', b'b']),
            (HANDLE, 1, None, vec![0; 4]),
        ]
    );
    assert!(trace::PROVIDER.provider_enabled(Level::INFO, Keyword::bit::<0>()));
    assert!(trace::PROVIDER.event_enabled(&trace::request_sent::DESCRIPTOR));
    // The state request writes the counters.
    etw.notify(CAPTURE_STATE, 5, 0, 0);
    assert!(matches!(written(&etw).as_slice(), [(HANDLE, 0, None, _)]));
    trace::unregister().unwrap();
    emit!(trace::request_sent(3, "unregistered"));
    assert_eq!(etw.calls(), [Call::Unregister(HANDLE)]);
}

#[test]
fn win32_errors_are_the_statuses_of_the_kernel() {
    let etw = turn();
    // `ERROR_NOT_ENOUGH_MEMORY`.
    etw.set(|etw| etw.register_status = 8);
    let error = register(&trace::PROVIDER).unwrap_err();
    assert_eq!(error, RegisterError::Refused(NtStatus::NO_MEMORY));
    assert_eq!(
        error.to_string(),
        "cannot register the provider: EventRegister returned STATUS_NO_MEMORY (0xC0000017)"
    );
    drop(etw);
    let etw = enabled(&trace::PROVIDER, 5);
    let before = trace::PROVIDER.statistics();
    for (code, status) in [
        (5, NtStatus::ACCESS_DENIED),
        (6, NtStatus::INVALID_HANDLE),
        (8, NtStatus::NO_MEMORY),
        (14, NtStatus::NO_MEMORY),
        (87, NtStatus::INVALID_PARAMETER),
        (234, NtStatus::BUFFER_OVERFLOW),
        (534, NtStatus::INTEGER_OVERFLOW),
        (1502, NtStatus::LOG_FILE_FULL),
        (1450, NtStatus::from_bits(0xC007_05AA)),
    ] {
        etw.set(|etw| etw.write_status = code);
        let written = trace::request_answered::write(&WriteOptions::new(), NtStatus::SUCCESS);
        assert_eq!(written, Err(WriteError(status)), "error {code}");
    }
    let now = trace::PROVIDER.statistics();
    assert_eq!(now.failed_in_total() - before.failed_in_total(), 9);
    assert_eq!(now.failed_otherwise - before.failed_otherwise, 2);
    assert_eq!(
        WriteError(NtStatus::NO_MEMORY).to_string(),
        "cannot write the event: EventWriteEx returned STATUS_NO_MEMORY (0xC0000017)"
    );
}

#[test]
fn traits_of_run_time_are_on_the_heap() {
    let etw = turn();
    let mut traits = TraitsBuffer::<64>::named("Test.UserMode").unwrap();
    traits.push(200, b"build 7").unwrap();
    let size = traits.as_bytes().len();
    assert_eq!(register_with(&trace::PROVIDER, &traits), Ok(Registered::Complete));
    assert_eq!(etw.calls()[0], Call::Allocate(0, size, 0));
    trace::unregister().unwrap();
    assert_eq!(etw.calls(), [Call::Unregister(HANDLE), Call::Free(0)]);
    etw.set(|etw| assert!(etw.blocks.is_empty()));
}

#[test]
fn the_threads_activity_is_that_of_the_process() {
    let _etw = turn();
    let activity = ActivityId::create().unwrap();
    let scope = activity.enter().unwrap();
    assert_eq!(ActivityId::current(), Ok(activity));
    drop(scope);
    assert_eq!(ActivityId::current(), Ok(ActivityId::NONE));
}
