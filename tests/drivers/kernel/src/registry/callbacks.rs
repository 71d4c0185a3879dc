//! The notifications of registry callbacks.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};

use etw_driver_support::{counted, utf16};
use wdk_sys::{
    NTSTATUS, PEX_CALLBACK_FUNCTION, PVOID, STATUS_ACCESS_DENIED, STATUS_CALLBACK_BYPASS,
    STATUS_OBJECT_NAME_NOT_FOUND,
};

use super::common::{ALL, close, create, open};
use crate::{
    call::{NULL, at, call, driver, field, pointer, same, set_field},
    dispatcher::{Object, wait},
    names::{is_text, with_attributes, with_string},
    threads,
};

const KEY: &[u8] = br"\Registry\Machine\Software\Watched";

/// The notifications: each is 100 times the registration's context plus the class.
static LOG: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The cookies, by the registrations' contexts.
static COOKIES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Actions of the callbacks, besides those that depend on the names of values.
mod action {
    /// The lower callback changes the success of a creation to a failure.
    pub const FAIL: usize = 1;
    /// The lower callback creates the key itself.
    pub const CREATE: usize = 2;
    /// The lower callback changes the failure of an opening to a success.
    pub const SUCCEED: usize = 3;
    /// The lower callback prevents a creation, and provides no key.
    pub const BYPASS: usize = 4;
    /// The upper callback removes its registration during a flush.
    pub const UNREGISTER: usize = 5;
    /// The upper callback sets the event and waits during a flush.
    pub const WAIT: usize = 6;
    /// The name of the key is not checked.
    pub const OTHER_KEY: usize = 7;
}
static ACTION: AtomicUsize = AtomicUsize::new(0);
/// The key that callbacks use.
static KEY_HANDLE: AtomicPtr<c_void> = AtomicPtr::new(NULL);
/// The event that a callback sets.
static EVENT: AtomicPtr<c_void> = AtomicPtr::new(NULL);
/// Set while a callback performs an operation itself.
static IS_NESTED: AtomicBool = AtomicBool::new(false);

/// Returns the status of `body`, or success if a callback is already performing an operation.
fn nested(body: impl FnOnce() -> NTSTATUS) -> NTSTATUS {
    if IS_NESTED.swap(true, Ordering::Relaxed) {
        return 0;
    }
    let status = body();
    IS_NESTED.store(false, Ordering::Relaxed);
    status
}

/// Returns a reference to the object of a key.
fn object_of(key: PVOID) -> PVOID {
    let mut object = NULL;
    same!(call!(ObReferenceObjectByHandle, key, 0, NULL, 0, &mut object, NULL), 0);
    object
}

/// Performs [`ACTION`] for an operation on a key. Returns the status if there is an action.
fn act(context: usize, class: usize, information: PVOID) -> Option<NTSTATUS> {
    /// The offsets of `ResultObject` and `ReturnStatus`.
    const RESULT_OBJECT: usize = 72;
    const RETURN_STATUS: usize = 24;
    let lower = context == 2;
    Some(match (ACTION.load(Ordering::Relaxed), class) {
        (action::FAIL, 27) if lower => {
            call!(ObfDereferenceObject, field::<PVOID>(information, 0));
            set_field(information, RETURN_STATUS, STATUS_ACCESS_DENIED);
            STATUS_CALLBACK_BYPASS
        }
        (action::FAIL, 27) => {
            same!(field::<u64>(information, 0), 0);
            same!(field::<u32>(information, 8), STATUS_ACCESS_DENIED);
            0
        }
        (action::CREATE, 26) if lower => nested(|| {
            let (status, key, _) = create(NULL, KEY, ALL, 0);
            same!(status, 0);
            set_field(field(information, RESULT_OBJECT), 0, object_of(key));
            close(key);
            STATUS_CALLBACK_BYPASS
        }),
        (action::SUCCEED, 29) if lower => {
            let object = object_of(KEY_HANDLE.load(Ordering::Relaxed));
            set_field(field(field(information, 16), RESULT_OBJECT), 0, object);
            set_field(information, RETURN_STATUS, 0_u32);
            STATUS_CALLBACK_BYPASS
        }
        (action::SUCCEED, 29) => {
            same!(field::<u64>(information, 0) != 0, true);
            same!(field::<u32>(information, 8), 0);
            0
        }
        (action::BYPASS, 26) if lower => STATUS_CALLBACK_BYPASS,
        (action::UNREGISTER, 30) if !lower => {
            call!(CmUnRegisterCallback, COOKIES[1].load(Ordering::Relaxed));
            0
        }
        (action::WAIT, 30) if !lower => {
            call!(KeSetEvent, EVENT.load(Ordering::Relaxed), 0, 0);
            let mut interval = -100_000_i64;
            same!(call!(KeDelayExecutionThread, 0, 0, &mut interval), 0);
            0
        }
        (action::OTHER_KEY, 26) => 0,
        (action::OTHER_KEY, 27) => {
            same!(field::<u64>(information, 0) != 0, true);
            0
        }
        _ => return None,
    })
}

/// Returns whether the structure's counted string at `string` is `text`.
fn is_named(string: PVOID, text: &[u8]) -> bool {
    let length = field::<u16>(string, 0).into();
    // SAFETY: the kernel passes a string with this length.
    let units = unsafe { core::slice::from_raw_parts(field::<*const u8>(string, 8), length) };
    is_text(units, text)
}

unsafe extern "C" fn callback(context: PVOID, class: PVOID, information: PVOID) -> NTSTATUS {
    let (context, class) = (context.addr(), class.addr() & 0xFFFF_FFFF);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    LOG[number % LOG.len()].store(100 * context as u64 + class as u64, Ordering::Relaxed);
    if let Some(status) = act(context, class, information) {
        return status;
    }
    match class {
        1 if context == 1 && is_named(field(information, 8), b"Replaced") => {
            return nested(|| {
                same!(set_value(KEY_HANDLE.load(Ordering::Relaxed), b"Replaced"), 0);
                STATUS_CALLBACK_BYPASS
            });
        }
        1 if context == 2 && is_named(field(information, 8), b"Blocked") => {
            return STATUS_ACCESS_DENIED;
        }
        1 if context == 2 && is_named(field(information, 8), b"Bypassed") => {
            return STATUS_CALLBACK_BYPASS;
        }
        1 => same!(field::<u32>(information, 20), 4),
        26 => {
            same!(is_named(field(information, 0), KEY), true);
            same!(field::<u64>(information, 104), 1);
            names_of_root(context, field(information, 8));
            set_field(information, 80, 0x1000 + context);
        }
        27 => {
            same!(field::<u32>(information, 8), 0);
            same!(field::<u64>(information, 32), 0x1000 + context);
            let object: PVOID = field(information, 0);
            let cookie = COOKIES[context].as_ptr();
            if context == 1 {
                same!(call!(CmSetCallbackObjectContext, object, cookie, pointer(0x55), NULL), 0);
            }
        }
        22 if context == 2 => {
            set_field(information, 24, STATUS_ACCESS_DENIED);
            return STATUS_CALLBACK_BYPASS;
        }
        23 => {
            same!(field::<u64>(information, 40), if context == 1 { 0x55 } else { 0 });
        }
        40 => same!(field::<u64>(information, 8), 0x55),
        _ => {}
    }
    0
}

/// The root of an absolute name is the registry's root.
fn names_of_root(context: usize, root: PVOID) {
    const ROOT: &[u8] = br"\REGISTRY";
    let (mut id, mut name) = (0_u64, NULL);
    let cookie = COOKIES[context].as_ptr();
    let get = |id: &mut u64, name: &mut PVOID, flags: u64| {
        call!(CmCallbackGetKeyObjectIDEx, cookie, root, id, name, flags)
    };
    same!(get(&mut id, &mut name, 1), 0xC000_000D_u32);
    same!(get(&mut id, &mut name, 0), 0);
    same!(is_named(name, ROOT), true);
    call!(CmCallbackReleaseKeyObjectIDEx, name);
    let mut other = 0_u64;
    let status = call!(CmCallbackGetKeyObjectID, cookie, root, &mut other, &mut name);
    same!((status, other) == (0, id), true);
    same!(is_named(name, ROOT), true);
}

/// Checks the notifications since the last check.
fn notified(line: u32, expected: &[u64]) {
    let count = COUNT.swap(0, Ordering::Relaxed);
    crate::call::check(line, "the number of notifications", count as u64, expected.len() as u64);
    for (found, expected) in LOG.iter().zip(expected) {
        crate::call::check(line, "a notification", found.load(Ordering::Relaxed), *expected);
    }
}

fn set_value(key: PVOID, name: &[u8]) -> NTSTATUS {
    let mut data = 7_u32;
    with_string(name, |name| call!(ZwSetValueKey, key, name, 0, 4, &mut data, 4))
}

/// Registers the callbacks.
fn register() {
    static ALTITUDES: [[u16; 6]; 2] = [utf16(b"400000"), utf16(b"321000")];
    let routine: PEX_CALLBACK_FUNCTION = Some(callback);
    // The lower altitude is registered first.
    for context in [2, 1] {
        let mut altitude = counted(&ALTITUDES[context - 1]);
        let (name, driver, cookie) = (at(&mut altitude), driver(), COOKIES[context].as_ptr());
        let status =
            call!(CmRegisterCallbackEx, routine, name, driver, pointer(context), cookie, NULL);
        same!(status, 0);
    }
}

/// Removes the registrations.
fn unregister() {
    for context in [1, 2] {
        let cookie = COOKIES[context].load(Ordering::Relaxed);
        same!(call!(CmUnRegisterCallback, cookie), 0);
    }
}

/// Creates the key whose operations are watched, and lets the callbacks use it.
fn watched(line: u32) -> PVOID {
    let (status, key, _) = create(NULL, KEY, ALL, 0);
    same!(status, 0);
    notified(line, &[126, 226, 227, 127]);
    KEY_HANDLE.store(key, Ordering::Relaxed);
    key
}

/// The notifications of the closure of the last handle. The context is cleaned up before the end.
const CLOSURE: [u64; 5] = [114, 214, 140, 225, 125];

pub fn run() {
    register();
    let key = watched(line!());
    same!(set_value(key, b"Plain"), 0);
    notified(line!(), &[101, 201, 216, 116]);
    // A callback prevents the operation, or performs it itself.
    same!(set_value(key, b"Blocked"), STATUS_ACCESS_DENIED);
    notified(line!(), &[101, 201, 116]);
    same!(set_value(key, b"Bypassed"), 0);
    notified(line!(), &[101, 201, 116]);
    let mut length = 0_u32;
    for name in [b"Blocked".as_slice(), b"Bypassed"] {
        let status =
            with_string(name, |name| call!(ZwQueryValueKey, key, name, 2, NULL, 0, &mut length));
        same!(status, STATUS_OBJECT_NAME_NOT_FOUND);
        notified(line!(), &[108, 208, 223, 123]);
    }
    // A callback changes the status.
    let mut buffer = [0_u8; 100];
    same!(call!(ZwQueryKey, key, 0, &mut buffer, 100, &mut length), STATUS_ACCESS_DENIED);
    notified(line!(), &[107, 207, 222, 122]);
    same!(call!(ZwFlushKey, key), 0);
    notified(line!(), &[130, 230, 231, 131]);
    let mut handle = NULL;
    let missing = with_attributes(key, b"Missing", 0x240, |attributes| {
        call!(ZwOpenKey, &mut handle, ALL, attributes)
    });
    same!(missing, STATUS_OBJECT_NAME_NOT_FOUND);
    notified(line!(), &[128, 228, 229, 129]);
    same!(call!(ZwDeleteKey, key), 0);
    notified(line!(), &[100, 200, 215, 115]);
    close(key);
    notified(line!(), &CLOSURE);
    unregister();
    let (_, key, _) = create(NULL, KEY, ALL, 0);
    same!(call!(ZwDeleteKey, key), 0);
    close(key);
    notified(line!(), &[]);
}

/// Of an operation by a callback, only lower callbacks are notified.
pub fn nest() {
    register();
    let key = watched(line!());
    same!(set_value(key, b"Replaced"), 0);
    notified(line!(), &[101, 201, 216]);
    close(key);
    notified(line!(), &CLOSURE);
    unregister();
}

/// A reference to the object does not delay the cleanup of its context, and a handle that the driver
/// opens by the object counts.
pub fn refer() {
    register();
    let key = watched(line!());
    let object = object_of(key);
    let mut other = NULL;
    same!(call!(ObOpenObjectByPointer, object, 0x200, NULL, ALL, NULL, 0, &mut other), 0);
    close(key);
    notified(line!(), &[]);
    close(other);
    notified(line!(), &CLOSURE);
    call!(ObfDereferenceObject, object);
    notified(line!(), &[]);
    unregister();
}

/// The routines of the I/O manager notify callbacks of the opening as of the closure.
pub fn open_of_driver() {
    register();
    ACTION.store(action::OTHER_KEY, Ordering::Relaxed);
    let mut key = NULL;
    same!(call!(IoOpenDriverRegistryKey, driver(), 0, ALL, 0, &mut key), 0);
    notified(line!(), &[126, 226, 227, 127]);
    close(key);
    notified(line!(), &[114, 214, 225, 125]);
    unregister();
}

/// A callback that changes a success to a failure releases the object.
pub fn fail() {
    register();
    ACTION.store(action::FAIL, Ordering::Relaxed);
    same!(create(NULL, KEY, ALL, 0).0, STATUS_ACCESS_DENIED);
    notified(line!(), &[126, 226, 227, 127]);
    unregister();
}

/// Upper callbacks receive the object that a lower callback provides.
pub fn provide() {
    register();
    ACTION.store(action::CREATE, Ordering::Relaxed);
    let (status, key, _) = create(NULL, KEY, ALL, 0);
    same!(status, 0);
    notified(line!(), &[126, 226, 127]);
    close(key);
    notified(line!(), &CLOSURE);
    ACTION.store(0, Ordering::Relaxed);
    let key = watched(line!());
    ACTION.store(action::SUCCEED, Ordering::Relaxed);
    let (status, other) = open(key, b"Missing", ALL);
    same!(status, 0);
    notified(line!(), &[128, 228, 229, 129]);
    close(other);
    notified(line!(), &[]);
    close(key);
    notified(line!(), &CLOSURE);
    unregister();
}

unsafe extern "C" fn flush(key: *mut c_void) {
    same!(call!(ZwFlushKey, key), 0);
}

/// The removal of a registration waits for the callback that another thread runs.
pub fn wait_for_callback() {
    register();
    let key = watched(line!());
    let mut event = Object::new();
    call!(KeInitializeEvent, event.at(), 0, 0);
    EVENT.store(event.at(), Ordering::Relaxed);
    ACTION.store(action::WAIT, Ordering::Relaxed);
    let thread = threads::start(flush, key);
    same!(wait(event.at()), 0);
    same!(call!(CmUnRegisterCallback, COOKIES[1].load(Ordering::Relaxed)), 0);
    notified(line!(), &[130, 230, 231, 131, 140]);
    threads::join(thread);
    close(key);
    notified(line!(), &[214, 225]);
    same!(call!(CmUnRegisterCallback, COOKIES[2].load(Ordering::Relaxed)), 0);
}

/// Prevents a creation without a key.
pub fn provide_nothing() {
    register();
    ACTION.store(action::BYPASS, Ordering::Relaxed);
    create(NULL, KEY, ALL, 0);
}

/// Removes a registration in its callback.
pub fn unregister_inside() {
    register();
    let key = watched(line!());
    ACTION.store(action::UNREGISTER, Ordering::Relaxed);
    call!(ZwFlushKey, key);
}
