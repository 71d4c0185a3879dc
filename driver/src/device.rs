//! The device: its creation, its context, and its power.

use alloc::vec::Vec;
use core::{
    cell::UnsafeCell,
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering},
};

use etw_sample_interface::{CAPACITY, DEVICE_INTERFACE, Statistics};
use wdk::wdf::{SpinLock, Timer};
use wdk_sys::{
    GUID, NT_SUCCESS, NTSTATUS, PUNICODE_STRING, PWDFDEVICE_INIT, STATUS_INSUFFICIENT_RESOURCES,
    STATUS_SUCCESS, UNICODE_STRING, WDF_FILEOBJECT_CONFIG, WDF_PNPPOWER_EVENT_CALLBACKS,
    WDF_POWER_DEVICE_STATE, WDFDEVICE, WDFDPC, WDFDRIVER, WDFFILEOBJECT, WDFOBJECT, WDFREQUEST,
    WDFREQUEST__, call_unsafe_wdf_function_binding,
};

use crate::{context::ContextType, queue, timer, trace};

/// The system and administrators may do everything, others nothing
/// (`SDDL_DEVOBJ_SYS_ALL_ADM_ALL`).
const SDDL: &[u16; 27] = &utf16("D:P(A;;GA;;;SY)(A;;GA;;;BA)");

/// The device interface class.
static INTERFACE: GUID = GUID {
    Data1: DEVICE_INTERFACE.0,
    Data2: DEVICE_INTERFACE.1,
    Data3: DEVICE_INTERFACE.2,
    Data4: DEVICE_INTERFACE.3,
};

static CONTEXT: ContextType<Device> = ContextType::new(c"Device", &raw const CONTEXT);

/// What the device keeps.
pub struct Device {
    /// Guards `kept`.
    lock: SpinLock,
    kept: UnsafeCell<Vec<u8>>,
    /// The timer, and whether a user wants it to run.
    pub timer: Timer,
    pub timer_wanted: AtomicBool,
    /// The DPC, and the request that it is to complete.
    pub dpc: WDFDPC,
    pub deferred: AtomicPtr<WDFREQUEST__>,
    pub bytes_read: AtomicU64,
    pub bytes_written: AtomicU64,
    pub timer_ticks: AtomicU64,
}

/// Converts ASCII text to UTF-16 at compile time.
const fn utf16<const N: usize>(text: &str) -> [u16; N] {
    let bytes = text.as_bytes();
    assert!(bytes.len() == N, "the array is as long as the text");
    let mut units = [0; N];
    let mut at = 0;
    while at < N {
        units[at] = bytes[at] as u16;
        at += 1;
    }
    units
}

impl Device {
    /// The context of a device.
    ///
    /// # Safety
    ///
    /// `device` is a live device of this driver whose context has been built: any
    /// that a callback gets, `EvtDriverDeviceAdd`'s aside.
    pub unsafe fn of<'a>(device: WDFDEVICE) -> &'a Self {
        // SAFETY: the device is live and was created with this context type.
        let context = unsafe { CONTEXT.of(device.cast()) };
        // SAFETY: the context was built in `add`, before any other callback, and
        // lives as long as the device; what changes in it is atomic or locked.
        unsafe { &*context }
    }

    /// Runs `body` on the bytes that were written last, at `DISPATCH_LEVEL`.
    pub fn with_kept<R>(&self, body: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        self.lock.acquire();
        // SAFETY: the lock is held, so this is the only reference.
        let result = body(unsafe { &mut *self.kept.get() });
        self.lock.release();
        result
    }

    /// The counters.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
            timer_ticks: self.timer_ticks.load(Ordering::Relaxed),
            events_failed: trace::events_failed(),
        }
    }
}

/// `EvtDriverDeviceAdd`, at `PASSIVE_LEVEL`.
pub extern "C" fn add(_driver: WDFDRIVER, init: PWDFDEVICE_INIT) -> NTSTATUS {
    match create(init) {
        Ok(()) => {
            trace::device_added();
            STATUS_SUCCESS
        }
        Err(status) => {
            trace::driver_failed(status);
            status
        }
    }
}

/// A failure as an error.
pub const fn check(status: NTSTATUS) -> Result<(), NTSTATUS> {
    if NT_SUCCESS(status) {
        Ok(())
    } else {
        Err(status)
    }
}

fn create(mut init: PWDFDEVICE_INIT) -> Result<(), NTSTATUS> {
    // What cannot be had is found out before the device exists.
    let mut kept = Vec::new();
    kept.try_reserve_exact(CAPACITY)
        .map_err(|_| STATUS_INSUFFICIENT_RESOURCES)?;
    describe(init)?;
    let mut attributes = CONTEXT.attributes();
    attributes.EvtDestroyCallback = Some(destroy);
    let mut device: WDFDEVICE = ptr::null_mut();
    // SAFETY: the init is the framework's, and the out-parameter is a local.
    check(unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceCreate,
            &raw mut init,
            &raw mut attributes,
            &raw mut device,
        )
    })?;
    let mut lock_attributes = crate::context::attributes();
    lock_attributes.ParentObject = device.cast();
    let lock = SpinLock::try_new(&mut lock_attributes)?;
    let context = Device {
        lock,
        kept: UnsafeCell::new(kept),
        timer: timer::create(device)?,
        timer_wanted: AtomicBool::new(false),
        dpc: queue::create_dpc(device)?,
        deferred: AtomicPtr::new(ptr::null_mut()),
        bytes_read: AtomicU64::new(0),
        bytes_written: AtomicU64::new(0),
        timer_ticks: AtomicU64::new(0),
    };
    // SAFETY: the device was created with this context type.
    let place = unsafe { CONTEXT.of(device.cast()) };
    // SAFETY: the framework gave zeroed memory of the context's size, which
    // nothing reads before this function returns.
    unsafe { place.write(context) };
    // From here on, requests can come.
    queue::create(device)?;
    // SAFETY: the device is live, and the GUID a constant.
    check(unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceCreateDeviceInterface,
            device,
            &raw const INTERFACE,
            ptr::null_mut(),
        )
    })
}

/// Says what the device is to be, before it is created.
fn describe(init: PWDFDEVICE_INIT) -> Result<(), NTSTATUS> {
    let mut power = WDF_PNPPOWER_EVENT_CALLBACKS {
        Size: size_of::<WDF_PNPPOWER_EVENT_CALLBACKS>() as u32,
        EvtDeviceD0Entry: Some(d0_entry),
        EvtDeviceD0Exit: Some(d0_exit),
        ..WDF_PNPPOWER_EVENT_CALLBACKS::default()
    };
    // SAFETY: the init is the framework's, and the callbacks are copied.
    unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceInitSetPnpPowerEventCallbacks,
            init,
            &raw mut power,
        );
    }
    let mut files = WDF_FILEOBJECT_CONFIG {
        Size: size_of::<WDF_FILEOBJECT_CONFIG>() as u32,
        EvtDeviceFileCreate: Some(file_create),
        EvtFileClose: Some(file_close),
        EvtFileCleanup: Some(file_cleanup),
        AutoForwardCleanupClose: wdk_sys::_WDF_TRI_STATE::WdfUseDefault,
        FileObjectClass: wdk_sys::_WDF_FILEOBJECT_CLASS::WdfFileObjectWdfCannotUseFsContexts,
    };
    let mut file_attributes = crate::context::attributes();
    // SAFETY: as above.
    unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceInitSetFileObjectConfig,
            init,
            &raw mut files,
            &raw mut file_attributes,
        );
    }
    let mut request_attributes = queue::request_attributes();
    // SAFETY: as above.
    unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDeviceInitSetRequestAttributes,
            init,
            &raw mut request_attributes,
        );
    }
    let length = size_of_val(SDDL) as u16;
    let mut sddl = UNICODE_STRING {
        Length: length,
        MaximumLength: length,
        Buffer: SDDL.as_ptr().cast_mut(),
    };
    let sddl: PUNICODE_STRING = &raw mut sddl;
    // SAFETY: the init is the framework's, and the text a constant that it reads.
    check(unsafe { call_unsafe_wdf_function_binding!(WdfDeviceInitAssignSDDLString, init, sddl) })
}

/// `EvtDestroyCallback` of the device: the context's own things go.
extern "C" fn destroy(object: WDFOBJECT) {
    // SAFETY: the framework calls this for devices of this driver only.
    let context = unsafe { CONTEXT.of(object) };
    // A device whose creation failed half way has an unbuilt, zeroed context.
    // SAFETY: the field is a plain handle, readable in a zeroed context too.
    let built = unsafe { !(*context).dpc.is_null() };
    if built {
        // SAFETY: the context was built, and nothing uses it after this callback.
        unsafe { context.drop_in_place() };
    }
}

/// `EvtDeviceD0Entry`, at `PASSIVE_LEVEL`.
extern "C" fn d0_entry(device: WDFDEVICE, previous: WDF_POWER_DEVICE_STATE) -> NTSTATUS {
    trace::d0_entry(previous);
    // SAFETY: the framework passes a live device of this driver.
    timer::resume(unsafe { Device::of(device) });
    STATUS_SUCCESS
}

/// `EvtDeviceD0Exit`, at `PASSIVE_LEVEL`.
extern "C" fn d0_exit(device: WDFDEVICE, target: WDF_POWER_DEVICE_STATE) -> NTSTATUS {
    // SAFETY: the framework passes a live device of this driver.
    timer::pause(unsafe { Device::of(device) });
    trace::d0_exit(target);
    STATUS_SUCCESS
}

/// `EvtDeviceFileCreate`, at `PASSIVE_LEVEL`.
extern "C" fn file_create(_device: WDFDEVICE, request: WDFREQUEST, _file: WDFFILEOBJECT) {
    trace::file_created();
    queue::complete(request, STATUS_SUCCESS, 0);
}

/// `EvtFileCleanup`, at `PASSIVE_LEVEL`: the last handle is closed.
extern "C" fn file_cleanup(_file: WDFFILEOBJECT) {
    trace::file_cleaned_up();
}

/// `EvtFileClose`, at `PASSIVE_LEVEL`: the last request is done too.
extern "C" fn file_close(_file: WDFFILEOBJECT) {
    trace::file_closed();
}
