//! The notifications of registry callbacks.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use etw_driver_support::utf16;

use super::common::{ALL, NOT_FOUND, close, create};
use crate::{
    call::{address, at, call, driver, low, same},
    names::{is_text, with_attributes, with_string},
};

const DENIED: u32 = 0xC000_0022;
const BYPASS: u32 = 0xC000_0503;
const KEY: &[u8] = br"\Registry\Machine\Software\Watched";

/// The notifications: each is 100 times the registration's context plus the class.
static LOG: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The cookies, by the registrations' contexts.
static COOKIES: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

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
    match class {
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

pub fn run() {
    static ALTITUDES: [[u16; 6]; 2] = [utf16(b"400000"), utf16(b"321000")];
    let routine = address(callback as *const c_void);
    // The lower altitude is registered first.
    for context in [2, 1] {
        let mut altitude = [0x000C_000C_u64, ALTITUDES[context - 1].as_ptr() as u64];
        let (name, driver, cookie) = (at(&mut altitude), driver(), COOKIES[context].as_ptr());
        let status = call!("CmRegisterCallbackEx", routine, name, driver, context, cookie, 0);
        same!(low(status), 0);
    }
    let (status, key, _) = create(0, KEY, ALL, 0);
    same!(status, 0);
    notified(line!(), &[126, 226, 227, 127]);
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
    notified(line!(), &[114, 214, 225, 125, 140]);
    for context in [1, 2] {
        let cookie = COOKIES[context].load(Ordering::Relaxed);
        same!(low(call!("CmUnRegisterCallback", cookie)), 0);
    }
    let (_, key, _) = create(0, KEY, ALL, 0);
    same!(low(call!("ZwDeleteKey", key)), 0);
    close(key);
    notified(line!(), &[]);
}
