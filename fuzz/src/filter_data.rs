//! Passes arbitrary bytes as filter data to a provider's enable callback.
//!
//! The callback receives the data in an `EVENT_FILTER_DESCRIPTOR`, as ETW passes it. The memory is
//! exactly as large as the data, so that `AddressSanitizer` detects an access past its end.

use std::{
    cell::RefCell,
    ffi::c_void,
    sync::{
        Once,
        atomic::{AtomicPtr, AtomicUsize, Ordering},
    },
};

use wdk_etw::{
    __macro::{Hooks, StaticProvider},
    FilterData, Guid, Notification, Provider, Registered, guid, traits,
};

/// `EVENT_FILTER_TYPE_SCHEMATIZED`.
const SCHEMATIZED: u32 = 0x8000_0000;
/// The maximum size of filter data that the library documents.
const MAX_BYTES: usize = 64 * 1024;
/// The size of the buffer that receives copies.
const ROOM: usize = 64;

/// The size of `EVENT_FILTER_HEADER` in bytes.
const HEADER: usize = 24;

/// An expected or found filter: id, version, instance and data.
type Found = (u16, u8, u64, Vec<u8>);

/// The filter data that the provider's hook received.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    kind: u32,
    bytes: Vec<u8>,
    filters: Option<Vec<Found>>,
}

thread_local! {
    static SEEN: RefCell<Option<Seen>> = const { RefCell::new(None) };
}

static PROVIDER: StaticProvider =
    StaticProvider::new(guid!("5d1f3c1e-4ad6-4f0e-9b53-2f6d2c3a7e10"), &traits!("Fuzzed.Filters"))
        .with_hooks(Hooks { on_enable: Some(look), ..Hooks::NONE });

/// The provider's hook, which reads all filters and checks the copy.
fn look(_: &Provider, notification: &Notification<'_>) {
    let seen = notification.filter.as_ref().map(|filter| {
        let copy = filter.copied::<ROOM>();
        let kept = filter.bytes().len().min(ROOM);
        assert_eq!(copy.data().bytes(), &filter.bytes()[..kept]);
        assert_eq!(copy.missing(), filter.bytes().len() - kept);
        assert_eq!(copy.data().kind(), filter.kind());
        if copy.missing() == 0 {
            assert_eq!(walked(&copy.data()), walked(filter));
        }
        Seen { kind: filter.kind(), bytes: filter.bytes().to_vec(), filters: walked(filter) }
    });
    SEEN.set(seen);
}

fn walked(filter: &FilterData<'_>) -> Option<Vec<Found>> {
    let found = filter
        .schematized()?
        .map(|(header, data)| (header.id, header.version, header.instance_id, data.to_vec()));
    Some(found.collect())
}

/// Checks which filters a provider finds in filter data.
///
/// The first byte is the filter's type; the rest is its data. Returns the number of schematized
/// filters that the provider found: 0 if the type is different or the data too long.
#[must_use]
pub fn check(data: &[u8]) -> Option<usize> {
    let (kind, data) = data.split_first()?;
    let kind = match kind % 4 {
        0 => 0x8000_0200, // EVENT_FILTER_TYPE_EVENT_ID
        _ => SCHEMATIZED,
    };
    notify(kind, data);
    let seen = SEEN.take();
    let expected = (data.len() <= MAX_BYTES).then(|| Seen {
        kind,
        bytes: data.to_vec(),
        filters: (kind == SCHEMATIZED).then(|| expected(data)),
    });
    assert_eq!(seen, expected);
    Some(seen?.filters?.len())
}

/// Returns the filters according to the definition of the format: each header contains the end
/// offset of its data and the offset of the next header relative to this one, or 0 in the last
/// header.
fn expected(data: &[u8]) -> Vec<Found> {
    let dword = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().expect("4 bytes"));
    let mut found = Vec::new();
    let mut at = 0;
    while at + HEADER <= data.len() {
        let size = dword(at + 16) as usize;
        let next = dword(at + 20) as usize;
        if size < HEADER || size > data.len() - at {
            break;
        }
        found.push((
            u16::from_le_bytes([data[at], data[at + 1]]),
            data[at + 2],
            u64::from_le_bytes(data[at + 8..at + 16].try_into().expect("8 bytes")),
            data[at + HEADER..at + size].to_vec(),
        ));
        if next < HEADER {
            break;
        }
        at += next;
    }
    assert!(found.len() <= data.len() / HEADER, "the walk went back");
    found
}

type Callback =
    unsafe extern "system" fn(*const Guid, u32, u8, u64, u64, *const Descriptor, *mut c_void);

/// `EVENT_FILTER_DESCRIPTOR`.
#[repr(C)]
struct Descriptor {
    address: u64,
    size: u32,
    kind: u32,
}

/// The callback that the provider registered, and its context.
static CALLBACK: AtomicUsize = AtomicUsize::new(0);
static CONTEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Registers the provider once, and calls its callback in place of ETW.
fn notify(kind: u32, data: &[u8]) {
    /// `EVENT_CONTROL_CODE_ENABLE_PROVIDER`.
    const ENABLE: u32 = 1;
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the fuzzer's code is never unmapped.
        let registered = unsafe { PROVIDER.register() };
        assert!(matches!(registered, Ok(Registered::Complete)));
    });
    let bytes: Box<[u8]> = data.into();
    let descriptor = Descriptor {
        address: bytes.as_ptr().expose_provenance() as u64,
        size: u32::try_from(bytes.len()).expect("the fuzzer's inputs are small"),
        kind,
    };
    let callback = CALLBACK.load(Ordering::Relaxed);
    // SAFETY: `EtwRegister` stored a callback in it.
    let callback = unsafe { std::mem::transmute::<*const (), Callback>(callback as *const ()) };
    let context = CONTEXT.load(Ordering::Relaxed);
    // SAFETY: the callback and the context belong together, and the descriptor and its data are
    // valid for the call.
    unsafe { callback(&Guid::NULL, ENABLE, 5, 1, 0, &raw const descriptor, context) };
}

// Stand-ins for the ntoskrnl.exe routines that the library calls.

// SAFETY: the library calls the routine by this name, and no other symbol has it.
#[unsafe(no_mangle)]
extern "system" fn EtwRegister(
    _provider: &Guid,
    callback: Callback,
    context: *mut c_void,
    handle: &mut u64,
) -> i32 {
    CALLBACK.store(callback as usize, Ordering::Relaxed);
    CONTEXT.store(context, Ordering::Relaxed);
    *handle = 1;
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
const extern "system" fn EtwUnregister(_handle: u64) -> i32 {
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
const extern "system" fn EtwSetInformation(
    _handle: u64,
    _class: i32,
    _information: *const c_void,
    _length: u32,
) -> i32 {
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
const extern "system" fn ExAllocatePool2(_flags: u64, _bytes: usize, _tag: u32) -> *mut c_void {
    std::ptr::null_mut()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
const extern "system" fn ExFreePoolWithTag(_block: *mut c_void, _tag: u32) {}

// SAFETY: as above.
#[unsafe(no_mangle)]
const extern "system" fn PsGetCurrentThreadId() -> *mut c_void {
    std::ptr::null_mut()
}

// SAFETY: as above.
#[unsafe(no_mangle)]
const extern "system" fn KeGetCurrentIrql() -> u8 {
    0
}
