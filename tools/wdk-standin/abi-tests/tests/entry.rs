//! Tests a driver's entry code with a simulated loader and driver.

use std::{
    cell::RefCell,
    ffi::c_void,
    ptr,
    sync::{Mutex, MutexGuard},
};

use wdk_sys::{
    DRIVER_OBJECT, NTSTATUS, PCUNICODE_STRING, PDRIVER_OBJECT, PUNICODE_STRING, UNICODE_STRING,
    WDF_DRIVER_GLOBALS, driver_entry::FxDriverEntry,
};

/// A test's simulated events and their expected results.
#[derive(Default)]
struct Play {
    log: Vec<&'static str>,
    bind: NTSTATUS,
    entry: NTSTATUS,
    displace: bool,
    globals: Option<Box<WDF_DRIVER_GLOBALS>>,
}

thread_local! {
    static PLAY: RefCell<Play> = RefCell::default();
}

/// Serializes the tests, because the entry code's variables are global.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn log(what: &'static str) {
    PLAY.with_borrow_mut(|play| play.log.push(what));
}

// SAFETY: the entry code calls the loader by this name; no other symbol has it.
#[unsafe(no_mangle)]
extern "C" fn WdfVersionBind(
    _driver: PDRIVER_OBJECT,
    path: PUNICODE_STRING,
    info: *mut c_void,
    globals: *mut *mut WDF_DRIVER_GLOBALS,
) -> NTSTATUS {
    log("bind");
    // SAFETY: the entry code passes its copy of the path.
    assert_eq!(unsafe { (*path).Length }, 8);
    // SAFETY: the entry code passes its bind information, which starts with its size.
    assert_eq!(unsafe { info.cast::<u32>().read() }, 88);
    PLAY.with_borrow_mut(|play| {
        let public = play.globals.insert(Box::default());
        public.DisplaceDriverUnload = u8::from(play.displace);
        // SAFETY: the entry code passes its own variable.
        unsafe { globals.write(&raw mut **public) };
        play.bind
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn WdfVersionUnbind(
    _path: PUNICODE_STRING,
    _info: *mut c_void,
    _globals: *mut WDF_DRIVER_GLOBALS,
) -> NTSTATUS {
    log("unbind");
    0
}

// SAFETY: the entry code calls the driver by this name; no other symbol has it.
#[unsafe(no_mangle)]
extern "system" fn DriverEntry(_driver: PDRIVER_OBJECT, path: PCUNICODE_STRING) -> NTSTATUS {
    log("entry");
    // SAFETY: the test passes a valid path.
    assert_eq!(unsafe { (*path).MaximumLength }, 10, "the path is unchanged");
    PLAY.with_borrow(|play| play.entry)
}

// SAFETY: the entry code calls the routine by this name; no other symbol has it.
#[unsafe(no_mangle)]
extern "C" fn RtlCopyUnicodeString(to: PUNICODE_STRING, from: PCUNICODE_STRING) {
    // SAFETY: the entry code passes its own string.
    let to = unsafe { &mut *to };
    assert_eq!(to.MaximumLength, 520);
    // SAFETY: the test passes a valid string.
    to.Length = unsafe { (*from).Length };
}

extern "C" fn own_unload(_driver: PDRIVER_OBJECT) {
    log("driver's unload");
}

/// Calls the entry point as the system does, and then the unload routine, if there is one.
fn run(play: Play) -> (NTSTATUS, Vec<&'static str>) {
    let _turn = turn();
    PLAY.set(play);
    let mut driver = DRIVER_OBJECT { DriverUnload: Some(own_unload), ..DRIVER_OBJECT::default() };
    let mut text = [0x61_u16; 5];
    let path = UNICODE_STRING { Length: 8, MaximumLength: 10, Buffer: text.as_mut_ptr() };
    // SAFETY: both outlive the call.
    let status = unsafe { FxDriverEntry(&raw mut driver, &raw const path) };
    log("loaded");
    if status >= 0
        && let Some(unload) = driver.DriverUnload
    {
        // SAFETY: the routine is the entry code's or the test's.
        unsafe { unload(&raw mut driver) };
    }
    (status, PLAY.take().log)
}

#[test]
fn a_driver_is_bound_before_its_entry_and_unbound_after_its_unload() {
    let play = Play { displace: true, ..Play::default() };
    assert_eq!(run(play), (0, vec!["bind", "entry", "loaded", "driver's unload", "unbind"]));
}

#[test]
fn an_unload_routine_is_hooked_only_on_request() {
    assert_eq!(run(Play::default()), (0, vec!["bind", "entry", "loaded", "driver's unload"]));
}

#[test]
fn a_failed_binding_skips_the_drivers_entry() {
    let play = Play { bind: -5, ..Play::default() };
    assert_eq!(run(play), (-5, vec!["bind", "loaded"]));
}

#[test]
fn a_failed_entry_is_unbound() {
    let play = Play { entry: -7, displace: true, ..Play::default() };
    assert_eq!(run(play), (-7, vec!["bind", "entry", "unbind", "loaded"]));
}

#[test]
fn an_informational_status_becomes_success() {
    let play = Play { entry: 0x4000_0000, ..Play::default() };
    assert_eq!(run(play).0, 0);
}

#[test]
fn without_a_driver_object_nothing_is_bound() {
    let _turn = turn();
    PLAY.set(Play::default());
    let path = UNICODE_STRING { MaximumLength: 10, ..UNICODE_STRING::default() };
    // SAFETY: the path outlives the call, and a null driver object is allowed.
    let status = unsafe { FxDriverEntry(ptr::null_mut(), &raw const path) };
    assert_eq!((status, PLAY.take().log), (0, vec!["entry"]));
}

#[test]
fn the_function_count_is_initialized_statically() {
    assert_eq!(wdk_sys::wdf::__private::get_wdf_function_count(), 458);
}
