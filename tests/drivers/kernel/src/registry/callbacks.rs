//! The notifications of registry callbacks.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use etw_driver_support::utf16;

use super::common::{ALL, NOT_FOUND, close, create, open};
use crate::{
    call::{address, at, call, driver, low, same},
    names::{is_text, with_attributes, with_string},
    objects::{Object, wait},
    threads,
};

const DENIED: u32 = 0xC000_0022;
const BYPASS: u32 = 0xC000_0503;
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
static KEY_HANDLE: AtomicU64 = AtomicU64::new(0);
/// The event that a callback sets.
static EVENT: AtomicU64 = AtomicU64::new(0);
/// Set while a callback performs an operation itself.
static IS_NESTED: AtomicBool = AtomicBool::new(false);

/// Returns the status of `body`, or success if a callback is already performing an operation.
fn nested(body: impl FnOnce() -> u32) -> u32 {
    if IS_NESTED.swap(true, Ordering::Relaxed) {
        return 0;
    }
    let status = body();
    IS_NESTED.store(false, Ordering::Relaxed);
    status
}

/// Returns a reference to the object of a key.
fn object_of(key: u64) -> u64 {
    let mut object = 0_u64;
    let status = call!("ObReferenceObjectByHandle", key, 0, 0, 0, at(&mut object), 0);
    same!(low(status), 0);
    object
}

/// Performs [`ACTION`] for an operation on a key. Returns the status if there is an action.
fn act(context: u64, class: u64, information: u64) -> Option<u32> {
    /// The offsets of `ResultObject` and `ReturnStatus`.
    const RESULT_OBJECT: u64 = 72;
    const RETURN_STATUS: u64 = 24;
    let lower = context == 2;
    Some(match (ACTION.load(Ordering::Relaxed), class) {
        (action::FAIL, 27) if lower => {
            call!("ObfDereferenceObject", field::<u64>(information, 0));
            set(information, RETURN_STATUS, DENIED);
            BYPASS
        }
        (action::FAIL, 27) => {
            same!(field::<u64>(information, 0), 0);
            same!(field::<u32>(information, 8), DENIED);
            0
        }
        (action::CREATE, 26) if lower => nested(|| {
            let (status, key, _) = create(0, KEY, ALL, 0);
            same!(status, 0);
            set(field(information, RESULT_OBJECT), 0, object_of(key));
            close(key);
            BYPASS
        }),
        (action::SUCCEED, 29) if lower => {
            let object = object_of(KEY_HANDLE.load(Ordering::Relaxed));
            set(field(field(information, 16), RESULT_OBJECT), 0, object);
            set(information, RETURN_STATUS, 0_u32);
            BYPASS
        }
        (action::SUCCEED, 29) => {
            same!(field::<u64>(information, 0) != 0, true);
            same!(field::<u32>(information, 8), 0);
            0
        }
        (action::BYPASS, 26) if lower => BYPASS,
        (action::UNREGISTER, 30) if !lower => {
            call!("CmUnRegisterCallback", COOKIES[1].load(Ordering::Relaxed));
            0
        }
        (action::WAIT, 30) if !lower => {
            call!("KeSetEvent", EVENT.load(Ordering::Relaxed), 0, 0);
            let mut interval = -100_000_i64;
            same!(low(call!("KeDelayExecutionThread", 0, 0, at(&mut interval))), 0);
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

const fn field<T: Copy>(structure: u64, offset: u64) -> T {
    // SAFETY: the kernel passes a structure with the field.
    unsafe { ((structure + offset) as *const T).read() }
}

const fn set<T>(structure: u64, offset: u64, value: T) {
    // SAFETY: the kernel passes a structure with the field, which callbacks may change.
    unsafe { ((structure + offset) as *mut T).write(value) }
}

/// Returns whether the structure's counted string at `string` is `text`.
fn is_named(string: u64, text: &[u8]) -> bool {
    let length = field::<u16>(string, 0).into();
    // SAFETY: the kernel passes a string with this length.
    let units =
        unsafe { core::slice::from_raw_parts(field::<u64>(string, 8) as *const u8, length) };
    is_text(units, text)
}

unsafe extern "C" fn callback(context: u64, class: u64, information: u64) -> u32 {
    let class = class & 0xFFFF_FFFF;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    LOG[number % LOG.len()].store(100 * context + class, Ordering::Relaxed);
    if let Some(status) = act(context, class, information) {
        return status;
    }
    match class {
        1 if context == 1 && is_named(field(information, 8), b"Replaced") => {
            return nested(|| {
                same!(set_value(KEY_HANDLE.load(Ordering::Relaxed), b"Replaced"), 0);
                BYPASS
            });
        }
        1 if context == 2 && is_named(field(information, 8), b"Blocked") => return DENIED,
        1 if context == 2 && is_named(field(information, 8), b"Bypassed") => return BYPASS,
        1 => same!(field::<u32>(information, 20), 4),
        26 => {
            same!(is_named(field(information, 0), KEY), true);
            same!(field::<u64>(information, 104), 1);
            names_of_root(context, field(information, 8));
            set(information, 80, 0x1000 + context);
        }
        27 => {
            same!(field::<u32>(information, 8), 0);
            same!(field::<u64>(information, 32), 0x1000 + context);
            let object: u64 = field(information, 0);
            let cookie = COOKIES[context as usize].as_ptr();
            if context == 1 {
                same!(low(call!("CmSetCallbackObjectContext", object, cookie, 0x55, 0)), 0);
            }
        }
        22 if context == 2 => {
            set(information, 24, DENIED);
            return BYPASS;
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
fn names_of_root(context: u64, root: u64) {
    const ROOT: &[u8] = br"\REGISTRY";
    let (mut id, mut name) = (0_u64, 0_u64);
    let cookie = COOKIES[context as usize].as_ptr();
    let get = |id: &mut u64, name: &mut u64, flags: u64| {
        low(call!("CmCallbackGetKeyObjectIDEx", cookie, root, at(id), at(name), flags))
    };
    same!(get(&mut id, &mut name, 1), 0xC000_000D);
    same!(get(&mut id, &mut name, 0), 0);
    same!(is_named(name, ROOT), true);
    call!("CmCallbackReleaseKeyObjectIDEx", name);
    let mut other = 0_u64;
    let status = call!("CmCallbackGetKeyObjectID", cookie, root, at(&mut other), at(&mut name));
    same!((low(status), other) == (0, id), true);
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

fn set_value(key: u64, name: &[u8]) -> u32 {
    let mut data = 7_u32;
    with_string(name, |name| low(call!("ZwSetValueKey", key, name, 0, 4, at(&mut data), 4)))
}

/// Registers the callbacks.
fn register() {
    static ALTITUDES: [[u16; 6]; 2] = [utf16(b"400000"), utf16(b"321000")];
    let routine = address(callback as *const c_void);
    // The lower altitude is registered first.
    for context in [2, 1] {
        let mut altitude = [0x000C_000C_u64, ALTITUDES[context - 1].as_ptr() as u64];
        let (name, driver, cookie) = (at(&mut altitude), driver(), COOKIES[context].as_ptr());
        let status = call!("CmRegisterCallbackEx", routine, name, driver, context, cookie, 0);
        same!(low(status), 0);
    }
}

/// Removes the registrations.
fn unregister() {
    for context in [1, 2] {
        let cookie = COOKIES[context].load(Ordering::Relaxed);
        same!(low(call!("CmUnRegisterCallback", cookie)), 0);
    }
}

/// Creates the key whose operations are watched, and lets the callbacks use it.
fn watched(line: u32) -> u64 {
    let (status, key, _) = create(0, KEY, ALL, 0);
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
    same!(set_value(key, b"Blocked"), DENIED);
    notified(line!(), &[101, 201, 116]);
    same!(set_value(key, b"Bypassed"), 0);
    notified(line!(), &[101, 201, 116]);
    let mut length = 0_u32;
    for name in [b"Blocked".as_slice(), b"Bypassed"] {
        let status = with_string(name, |name| {
            low(call!("ZwQueryValueKey", key, name, 2, 0, 0, at(&mut length)))
        });
        same!(status, NOT_FOUND);
        notified(line!(), &[108, 208, 223, 123]);
    }
    // A callback changes the status.
    let mut buffer = [0_u8; 100];
    let status = call!("ZwQueryKey", key, 0, at(&mut buffer), 100, at(&mut length));
    same!(low(status), DENIED);
    notified(line!(), &[107, 207, 222, 122]);
    same!(low(call!("ZwFlushKey", key)), 0);
    notified(line!(), &[130, 230, 231, 131]);
    let mut handle = 0_u64;
    let missing = with_attributes(key, b"Missing", 0x240, |attributes| {
        low(call!("ZwOpenKey", at(&mut handle), ALL, attributes))
    });
    same!(missing, NOT_FOUND);
    notified(line!(), &[128, 228, 229, 129]);
    same!(low(call!("ZwDeleteKey", key)), 0);
    notified(line!(), &[100, 200, 215, 115]);
    close(key);
    notified(line!(), &CLOSURE);
    unregister();
    let (_, key, _) = create(0, KEY, ALL, 0);
    same!(low(call!("ZwDeleteKey", key)), 0);
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
    let mut other = 0_u64;
    let status = call!("ObOpenObjectByPointer", object, 0x200, 0, ALL, 0, 0, at(&mut other));
    same!(low(status), 0);
    close(key);
    notified(line!(), &[]);
    close(other);
    notified(line!(), &CLOSURE);
    call!("ObfDereferenceObject", object);
    notified(line!(), &[]);
    unregister();
}

/// The routines of the I/O manager notify callbacks of the opening as of the closure.
pub fn open_of_driver() {
    register();
    ACTION.store(action::OTHER_KEY, Ordering::Relaxed);
    let mut key = 0_u64;
    same!(low(call!("IoOpenDriverRegistryKey", driver(), 0, ALL, 0, at(&mut key))), 0);
    notified(line!(), &[126, 226, 227, 127]);
    close(key);
    notified(line!(), &[114, 214, 225, 125]);
    unregister();
}

/// A callback that changes a success to a failure releases the object.
pub fn fail() {
    register();
    ACTION.store(action::FAIL, Ordering::Relaxed);
    same!(create(0, KEY, ALL, 0).0, DENIED);
    notified(line!(), &[126, 226, 227, 127]);
    unregister();
}

/// Upper callbacks receive the object that a lower callback provides.
pub fn provide() {
    register();
    ACTION.store(action::CREATE, Ordering::Relaxed);
    let (status, key, _) = create(0, KEY, ALL, 0);
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
    same!(low(call!("ZwFlushKey", key)), 0);
}

/// The removal of a registration waits for the callback that another thread runs.
pub fn wait_for_callback() {
    register();
    let key = watched(line!());
    let mut event = Object::new();
    call!("KeInitializeEvent", event.at(), 0, 0);
    EVENT.store(event.at(), Ordering::Relaxed);
    ACTION.store(action::WAIT, Ordering::Relaxed);
    let thread = threads::start(flush, key);
    same!(wait(event.at()), 0);
    same!(low(call!("CmUnRegisterCallback", COOKIES[1].load(Ordering::Relaxed))), 0);
    notified(line!(), &[130, 230, 231, 131, 140]);
    threads::join(thread);
    close(key);
    notified(line!(), &[214, 225]);
    same!(low(call!("CmUnRegisterCallback", COOKIES[2].load(Ordering::Relaxed))), 0);
}

/// Prevents a creation without a key.
pub fn provide_nothing() {
    register();
    ACTION.store(action::BYPASS, Ordering::Relaxed);
    create(0, KEY, ALL, 0);
}

/// Removes a registration in its callback.
pub fn unregister_inside() {
    register();
    let key = watched(line!());
    ACTION.store(action::UNREGISTER, Ordering::Relaxed);
    call!("ZwFlushKey", key);
}
