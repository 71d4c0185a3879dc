//! Tests the library's calls to advapi32.dll with mock routines. The client's tests call the real
//! routines on Windows.

#![cfg(not(windows))]
#![allow(clippy::significant_drop_tightening, reason = "a test's turn lasts as long as the test")]

use std::ffi::c_void;

use etw_user_mode::trace;
use parking_lot::{Mutex, MutexGuard};
use wdk_etw::{
    ActivityId, EventDescriptor, Guid, Keyword, Level, NtStatus, RegisterError, Registered,
    TraitsBuffer, WriteError, WriteOptions, emit,
};

type Callback =
    unsafe extern "system" fn(*const Guid, u32, u8, u64, u64, *const c_void, *mut c_void);

/// A call that the library made.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    Register(Guid),
    Unregister(u64),
    SetInformation(u64, i32, Vec<u8>),
    Write(u64, u16, Option<Guid>, Vec<u8>),
    Allocate(usize),
    Free,
}

#[derive(Default)]
struct System {
    calls: Vec<Call>,
    registered: Option<(Callback, usize)>,
    /// The Win32 error codes that the routines return.
    register_code: u32,
    write_code: u32,
    thread_activity: Guid,
    heap: Vec<Box<[u8]>>,
}

static SYSTEM: Mutex<Option<System>> = Mutex::new(None);
static TURN: Mutex<()> = Mutex::new(());

fn with<R>(body: impl FnOnce(&mut System) -> R) -> R {
    body(SYSTEM.lock().get_or_insert_with(System::default))
}

fn turn() -> MutexGuard<'static, ()> {
    let turn = TURN.lock();
    *SYSTEM.lock() = Some(System::default());
    turn
}

fn calls() -> Vec<Call> {
    with(|system| std::mem::take(&mut system.calls))
}

/// Enables or disables the provider, or requests its state.
fn notify(code: u32, level: u8) {
    let (callback, context) = with(|system| system.registered).expect("a provider is registered");
    // SAFETY: the library registered the callback and the context.
    unsafe {
        callback(&raw const NO_SOURCE, code, level, 0, 0, std::ptr::null(), context as *mut c_void);
    }
}

static NO_SOURCE: Guid = Guid::NULL;

// SAFETY: the library calls the routine by this name, and no other symbol has it.
#[unsafe(no_mangle)]
extern "system" fn EventRegister(
    provider: &Guid,
    callback: Callback,
    context: *mut c_void,
    handle: &mut u64,
) -> u32 {
    with(|system| {
        system.calls.push(Call::Register(*provider));
        if system.register_code == 0 {
            *handle = 7;
            system.registered = Some((callback, context as usize));
        }
        system.register_code
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EventUnregister(handle: u64) -> u32 {
    with(|system| system.calls.push(Call::Unregister(handle)));
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EventSetInformation(
    handle: u64,
    class: i32,
    information: *const u8,
    length: u32,
) -> u32 {
    assert_eq!(information.is_null(), length == 0, "{information:?}");
    let blob = if information.is_null() {
        &[]
    } else {
        // SAFETY: the library passes information of this length.
        unsafe { std::slice::from_raw_parts(information, length as usize) }
    };
    let call = Call::SetInformation(handle, class, blob.to_vec());
    with(|system| system.calls.push(call));
    0
}

/// `EVENT_DATA_DESCRIPTOR`.
#[repr(C)]
struct DataDescriptor {
    address: u64,
    size: u32,
    kind: u8,
    reserved: [u8; 3],
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EventWriteEx(
    handle: u64,
    event: &EventDescriptor,
    _filter: u64,
    _flags: u32,
    activity: Option<&Guid>,
    _related: Option<&Guid>,
    count: u32,
    data: *const DataDescriptor,
) -> u32 {
    let mut payload = Vec::new();
    for at in 0..count as usize {
        // SAFETY: the library passes this number of descriptors.
        let descriptor = unsafe { data.add(at) };
        // SAFETY: each descriptor is readable.
        let descriptor = unsafe { descriptor.read() };
        assert_eq!(descriptor.reserved, [0; 3]);
        if descriptor.kind == 0 {
            let start = descriptor.address as *const u8;
            // An empty slice can have a null pointer.
            let bytes = if start.is_null() && descriptor.size == 0 {
                &[]
            } else {
                // SAFETY: each descriptor refers to readable bytes.
                unsafe { std::slice::from_raw_parts(start, descriptor.size as usize) }
            };
            payload.extend_from_slice(bytes);
        }
    }
    with(|system| {
        let call = Call::Write(handle, event.id(), activity.copied(), payload);
        system.calls.push(call);
        system.write_code
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EventActivityIdControl(code: u32, activity: &mut Guid) -> u32 {
    with(|system| {
        let given = *activity;
        match code {
            1 => *activity = system.thread_activity,
            2 => system.thread_activity = given,
            3 => *activity = Guid::new(0xAC71, 1, 1, [0; 8]),
            4 => *activity = std::mem::replace(&mut system.thread_activity, given),
            // ERROR_INVALID_PARAMETER
            _ => return 87,
        }
        0
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EventProviderEnabled(_handle: u64, level: u8, _keyword: u64) -> u8 {
    u8::from(level <= 4)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn EventEnabled(_handle: u64, event: &EventDescriptor) -> u8 {
    u8::from(event.level().0 <= 4)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
const extern "system" fn GetCurrentThreadId() -> u32 {
    1
}

// SAFETY: as above.
#[unsafe(no_mangle)]
const extern "system" fn GetProcessHeap() -> *mut c_void {
    std::ptr::without_provenance_mut(0x4EA9)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn HeapAlloc(heap: *mut c_void, _flags: u32, bytes: usize) -> *mut c_void {
    assert_eq!(heap.addr(), 0x4EA9);
    with(|system| {
        system.calls.push(Call::Allocate(bytes));
        system.heap.push(vec![0; bytes].into_boxed_slice());
        system.heap.last_mut().unwrap().as_mut_ptr().cast()
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn HeapFree(_heap: *mut c_void, _flags: u32, block: *mut c_void) -> i32 {
    with(|system| {
        system.calls.push(Call::Free);
        let mut blocks = system.heap.iter();
        let at = blocks.position(|one| one.as_ptr().addr() == block.addr());
        drop(system.heap.remove(at.expect("a block of the heap")));
    });
    1
}

fn register() -> Result<Registered, RegisterError> {
    // SAFETY: a test's code is never unmapped.
    unsafe { trace::register() }
}

#[test]
fn a_provider_registers_writes_and_unregisters_with_advapi32() {
    let _turn = turn();
    emit!(trace::request_sent(1, "not registered"));
    assert_eq!(register(), Ok(Registered::Complete));
    let traits = trace::PROVIDER.traits().as_bytes().to_vec();
    assert_eq!(calls(), [Call::Register(trace::ID), Call::SetInformation(7, 2, traits)]);
    emit!(trace::request_sent(1, "no session"));
    assert_eq!(calls(), []);
    notify(1, 5);
    let activity = ActivityId::create().unwrap();
    emit!(trace::request_sent(2, "ab"), activity = activity);
    emit!(trace::request_answered(NtStatus::SUCCESS));
    assert_eq!(
        calls(),
        [
            Call::Write(7, 0, Some(activity.guid()), vec![2, 0, 0, 0, 2, 0, b'a', b'b']),
            Call::Write(7, 1, None, vec![0; 4]),
        ]
    );
    assert!(trace::PROVIDER.provider_enabled(Level::INFO, Keyword::NONE));
    assert!(trace::PROVIDER.event_enabled(&trace::request_sent::DESCRIPTOR));
    // The state request writes the counters.
    notify(2, 5);
    assert!(matches!(calls().as_slice(), [Call::Write(7, 0, None, _)]));
    trace::unregister().unwrap();
    emit!(trace::request_sent(3, "unregistered"));
    assert_eq!(calls(), [Call::Unregister(7)]);
}

#[test]
fn win32_errors_are_the_statuses_of_the_kernel() {
    let _turn = turn();
    with(|system| system.register_code = 8);
    let error = register().unwrap_err();
    assert_eq!(error, RegisterError::Refused(NtStatus::NO_MEMORY));
    assert_eq!(
        error.to_string(),
        "cannot register the provider: EventRegister returned STATUS_NO_MEMORY (0xC0000017)"
    );
    with(|system| system.register_code = 0);
    assert_eq!(register(), Ok(Registered::Complete));
    notify(1, 5);
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
        with(|system| system.write_code = code);
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
    trace::unregister().unwrap();
}

#[test]
fn traits_of_run_time_are_on_the_heap() {
    let _turn = turn();
    let mut traits = TraitsBuffer::<64>::named("Test.UserMode").unwrap();
    traits.push(200, b"build 7").unwrap();
    let size = traits.as_bytes().len();
    // SAFETY: a test's code is never unmapped.
    let registered = unsafe { trace::PROVIDER.register_with(&traits) };
    assert_eq!(registered, Ok(Registered::Complete));
    assert_eq!(calls()[0], Call::Allocate(size));
    trace::unregister().unwrap();
    assert_eq!(calls(), [Call::Unregister(7), Call::Free]);
    assert!(with(|system| system.heap.is_empty()));
}

#[test]
fn the_threads_activity_is_that_of_the_process() {
    let _turn = turn();
    let activity = ActivityId::create().unwrap();
    let scope = activity.enter().unwrap();
    assert_eq!(ActivityId::current(), Ok(activity));
    drop(scope);
    assert_eq!(ActivityId::current(), Ok(ActivityId::NONE));
}
