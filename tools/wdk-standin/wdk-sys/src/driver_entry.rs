//! The entry code of KMDF drivers, which replaces the WDK's `WdfDriverEntry.lib`.
//!
//! The image's entry point is [`FxDriverEntry`]: it binds the driver to the framework, runs the
//! driver's `DriverEntry`, and hooks the unload routine, so that the binding ends after it.
//! `docs/reference/kmdf-binding.md` describes each step.

use core::{
    cell::UnsafeCell,
    ffi::c_void,
    mem, ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use crate::{
    _WDFFUNCENUM, DRIVER_OBJECT, NT_SUCCESS, NTSTATUS, PCUNICODE_STRING, PDRIVER_OBJECT,
    PUNICODE_STRING, PWDF_DRIVER_GLOBALS, STATUS_SUCCESS, ULONG, UNICODE_STRING, WCHAR,
    function_table::{COPIED, Shared, TABLE},
    ntddk::RtlCopyUnicodeString,
};

/// The variables that the framework sets and the bindings read. They have the same names and types
/// as in the WDK's entry library.
#[allow(non_upper_case_globals, reason = "the names are defined by the WDK's entry library")]
pub mod globals {
    use core::ptr;

    use crate::{
        _WDFFUNCENUM, BOOLEAN, PWDF_DRIVER_GLOBALS, ULONG, WDF_STRUCT_INFO, WDFFUNC,
        function_table::{COPIED, TABLE},
    };

    /// The number of functions in the table. The bindings use it as the table's length with every
    /// framework version, so it is initialized statically.
    pub static mut WdfFunctionCount: ULONG = _WDFFUNCENUM::WdfFunctionTableNumEntries as ULONG;
    /// The number of structures whose sizes the framework has set.
    pub static mut WdfStructureCount: ULONG = 0;
    table! {
        /// The framework's function table.
        pub static mut WdfFunctions: *const WDFFUNC =
            if COPIED == 0 { ptr::null() } else { TABLE.0.get().cast_const().cast() };
    }
    /// The framework's globals for the driver.
    pub static mut WdfDriverGlobals: PWDF_DRIVER_GLOBALS = ptr::null_mut();
    /// True if the driver was built for a framework newer than the one that it is bound to.
    pub static mut WdfClientVersionHigherThanFramework: BOOLEAN = 0;
    /// The sizes of structures, if the framework has set them.
    pub static mut WdfStructures: WDF_STRUCT_INFO = ptr::null_mut();
    /// The routine that a miniport's unload routine calls.
    pub static mut WdfDriverMiniportUnloadOverride: WDFFUNC = None;
}

/// The framework version for which the driver was built.
#[repr(C)]
struct Version {
    major: ULONG,
    minor: ULONG,
    build: ULONG,
}

/// The bind information that the driver passes to the loader: `WDF_BIND_INFO`, followed by the
/// fields that `WDF_BIND_INFO2` adds.
#[repr(C)]
pub struct BindInfo {
    size: ULONG,
    component: *const WCHAR,
    version: Version,
    function_count: ULONG,
    function_table: *mut c_void,
    module: *mut c_void,
    minimum_version_required: *const ULONG,
    client_version_higher_than_framework: *mut u8,
    function_count_pointer: *mut ULONG,
    structure_count_pointer: *mut ULONG,
    structure_table: *mut c_void,
}

const _: () = {
    assert!(size_of::<BindInfo>() == 88);
    assert!(mem::offset_of!(BindInfo, component) == 8);
    assert!(mem::offset_of!(BindInfo, version) == 16);
    assert!(mem::offset_of!(BindInfo, function_count) == 28);
    assert!(mem::offset_of!(BindInfo, function_table) == 32);
    assert!(mem::offset_of!(BindInfo, module) == 40);
    assert!(mem::offset_of!(BindInfo, minimum_version_required) == 48);
    assert!(mem::offset_of!(BindInfo, structure_table) == 80);
};

/// The capacity, in characters, of the copy of the registry path.
const PATH_LENGTH: usize = 260;

/// `KmdfLibrary` with a NUL.
static COMPONENT: [WCHAR; 12] = {
    let name = b"KmdfLibrary\0";
    let mut units = [0; 12];
    let mut at = 0;
    while at < units.len() {
        units[at] = name[at] as WCHAR;
        at += 1;
    }
    units
};

static MINIMUM_VERSION: ULONG = crate::WdfMinimumVersionRequired;

static PATH: Shared<[WCHAR; PATH_LENGTH]> = Shared(UnsafeCell::new([0; PATH_LENGTH]));

static REGISTRY_PATH: Shared<UNICODE_STRING> = Shared(UnsafeCell::new(UNICODE_STRING {
    Length: 0,
    MaximumLength: (PATH_LENGTH * size_of::<WCHAR>()) as u16,
    Buffer: PATH.0.get().cast(),
}));

static BIND_INFO: Shared<BindInfo> = Shared(UnsafeCell::new(BindInfo {
    // `WDF_BIND_INFO2` came with KMDF 1.25.
    size: if crate::version::TARGET < 25 {
        mem::offset_of!(BindInfo, minimum_version_required)
    } else {
        size_of::<BindInfo>()
    } as ULONG,
    component: COMPONENT.as_ptr(),
    version: Version {
        major: 1,
        minor: crate::version::TARGET,
        // The framework does not read this field.
        build: 0,
    },
    function_count: _WDFFUNCENUM::WdfFunctionTableNumEntries as ULONG,
    function_table: if COPIED == 0 {
        (&raw mut globals::WdfFunctions).cast()
    } else {
        TABLE.0.get().cast()
    },
    module: ptr::null_mut(),
    minimum_version_required: &raw const MINIMUM_VERSION,
    client_version_higher_than_framework: &raw mut globals::WdfClientVersionHigherThanFramework,
    function_count_pointer: &raw mut globals::WdfFunctionCount,
    structure_count_pointer: &raw mut globals::WdfStructureCount,
    structure_table: (&raw mut globals::WdfStructures).cast(),
}));

/// The unload routine that the hook replaced.
static DISPLACED_UNLOAD: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

type Unload = unsafe extern "C" fn(PDRIVER_OBJECT);

#[cfg_attr(
    target_os = "windows",
    link(name = "WDFLDR.SYS", kind = "raw-dylib", modifiers = "+verbatim")
)]
unsafe extern "C" {
    fn WdfVersionBind(
        driver_object: PDRIVER_OBJECT,
        registry_path: PUNICODE_STRING,
        info: *mut BindInfo,
        globals: *mut PWDF_DRIVER_GLOBALS,
    ) -> NTSTATUS;

    fn WdfVersionUnbind(
        registry_path: PUNICODE_STRING,
        info: *mut BindInfo,
        globals: PWDF_DRIVER_GLOBALS,
    ) -> NTSTATUS;
}

unsafe extern "system" {
    /// The driver's own entry point.
    fn DriverEntry(driver_object: PDRIVER_OBJECT, registry_path: PCUNICODE_STRING) -> NTSTATUS;
}

/// The image's entry point. IRQL: `PASSIVE_LEVEL`.
///
/// Returns the status of the binding or of `DriverEntry` if it fails, and `STATUS_SUCCESS`
/// otherwise.
///
/// # Safety
///
/// Only the system may call this function, once, with the driver object and the registry path.
// SAFETY: the linker's options name this function as the entry point, and no other symbol has the
// name.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn FxDriverEntry(
    driver_object: PDRIVER_OBJECT,
    registry_path: PCUNICODE_STRING,
) -> NTSTATUS {
    if driver_object.is_null() {
        // An export driver, which is not loaded as a driver, is not bound.
        // SAFETY: the arguments are the system's.
        return unsafe { DriverEntry(driver_object, registry_path) };
    }
    // SAFETY: the destination is the entry code's own string, which has a buffer.
    unsafe { RtlCopyUnicodeString(REGISTRY_PATH.0.get(), registry_path) };
    let driver_globals = &raw mut globals::WdfDriverGlobals;
    // SAFETY: all four arguments live as long as the image, so the loader may keep the pointers.
    let bound = unsafe {
        WdfVersionBind(driver_object, REGISTRY_PATH.0.get(), BIND_INFO.0.get(), driver_globals)
    };
    if !NT_SUCCESS(bound) {
        return bound;
    }
    // SAFETY: the arguments are the system's; the driver receives the path unchanged.
    let entered = unsafe { DriverEntry(driver_object, registry_path) };
    if !NT_SUCCESS(entered) {
        unbind();
        return entered;
    }
    // SAFETY: the driver object is the system's, and nothing else uses it now.
    unsafe { hook_unload(driver_object) };
    STATUS_SUCCESS
}

/// If the framework requests it, replaces the unload routine that the framework or the driver has
/// set with the entry code's own.
///
/// # Safety
///
/// `driver_object` must be this driver's object, and the driver must be bound.
unsafe fn hook_unload(driver_object: *mut DRIVER_OBJECT) {
    /// `WdfDriverInitNoDispatchOverride`.
    const NO_DISPATCH_OVERRIDE: ULONG = 2;
    // SAFETY: the binding set the pointer.
    let public = unsafe { globals::WdfDriverGlobals };
    // SAFETY: the globals are the framework's, and live until unbinding.
    let displace = unsafe { (*public).DisplaceDriverUnload };
    // SAFETY: as above.
    let flags = unsafe { (*public).DriverFlags };
    if displace != 0 {
        // SAFETY: the caller guarantees that the driver object is valid.
        let unload = unsafe { &raw mut (*driver_object).DriverUnload };
        // SAFETY: the field is readable.
        if let Some(displaced) = unsafe { unload.read() } {
            DISPLACED_UNLOAD.store(displaced as *mut c_void, Ordering::Relaxed);
        }
        // SAFETY: the field is writable.
        unsafe { unload.write(Some(unload_driver)) };
    } else if flags & NO_DISPATCH_OVERRIDE != 0 {
        let override_unload: unsafe extern "C" fn() = unbind;
        // SAFETY: nothing else uses the variable while the driver is loaded.
        unsafe { globals::WdfDriverMiniportUnloadOverride = Some(override_unload) };
    }
}

/// The hook: calls the replaced unload routine, and then ends the binding.
unsafe extern "C" fn unload_driver(driver_object: PDRIVER_OBJECT) {
    let displaced = DISPLACED_UNLOAD.load(Ordering::Relaxed);
    if !displaced.is_null() && displaced != unload_driver as *mut c_void {
        // SAFETY: only `hook_unload` writes the variable, and the value is an unload routine.
        let displaced = unsafe { mem::transmute::<*mut c_void, Unload>(displaced) };
        // SAFETY: the argument is the system's.
        unsafe { displaced(driver_object) };
    }
    unbind();
}

extern "C" fn unbind() {
    // SAFETY: the binding set the pointer.
    let public = unsafe { globals::WdfDriverGlobals };
    // The status is ignored, because the driver is unloaded in any case. SAFETY: the driver was
    // bound with the same arguments.
    let _status = unsafe { WdfVersionUnbind(REGISTRY_PATH.0.get(), BIND_INFO.0.get(), public) };
}
