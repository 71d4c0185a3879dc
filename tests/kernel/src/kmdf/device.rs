//! Devices: what a driver says of one before it is created, the device itself,
//! and its way into and out of its working state (D0).

use super::{
    Entries, Routine,
    driver::{self, DriverData, read_unicode_string},
    lock_framework,
    object::{self, Kind, create, read_attributes},
    queue::{self, QueueData},
    request::{self, RequestData},
};
use crate::{
    abi::{FileObjectConfig, ObjectAttributes, PnpPowerCallbacks},
    status::NtStatus,
    thread::{self, Thread},
    verifier::Rule,
};

/// Where the `WDFDEVICE_INIT` handles start; they look like kernel addresses.
const FIRST_INIT: u64 = 0xFFFF_A800_0000_0000;

/// `WDF_POWER_DEVICE_STATE`: off, to come back.
const D3: u64 = 4;
/// `WDF_POWER_DEVICE_STATE`: off for good, or never on.
const D3_FINAL: u64 = 5;

/// What the driver says of a device before it creates it.
#[derive(Default)]
pub struct DeviceInit {
    pnp_power: Option<PnpPowerCallbacks>,
    file: Option<FileObjectConfig>,
    file_attributes: Option<ObjectAttributes>,
    request_attributes: Option<ObjectAttributes>,
    sddl: Option<String>,
    name: Option<String>,
    exclusive: bool,
}

/// A device.
pub struct DeviceData {
    init: DeviceInit,
    /// The queue that gets requests.
    pub default_queue: Option<u64>,
    interfaces: Vec<[u8; 16]>,
    links: Vec<String>,
    in_d0: bool,
}

impl DeviceData {
    /// The file object callbacks that the driver gave.
    pub const fn file_config(&self) -> Option<(FileObjectConfig, Option<ObjectAttributes>)> {
        match self.init.file {
            Some(config) => Some((config, self.init.file_attributes)),
            None => None,
        }
    }

    /// The attributes of the requests that the framework makes for the device.
    pub const fn request_attributes(&self) -> Option<ObjectAttributes> {
        self.init.request_attributes
    }

    /// Whether the device works.
    pub const fn is_in_d0(&self) -> bool {
        self.in_d0
    }

    /// What the device can be found by: interfaces, links, name, SDDL.
    pub const fn is_reachable(&self) -> bool {
        !self.interfaces.is_empty() || !self.links.is_empty() || self.init.name.is_some()
    }

    /// Whether one file at a time may be open.
    pub const fn is_exclusive(&self) -> bool {
        self.init.exclusive
    }

    /// The security descriptor that the driver gave, as text.
    pub fn sddl(&self) -> Option<&str> {
        self.init.sddl.as_deref()
    }
}

pub const ENTRIES: Entries = &[
    (
        "WdfDeviceInitSetPnpPowerEventCallbacks",
        Routine::Three(set_pnp_power),
    ),
    (
        "WdfDeviceInitSetFileObjectConfig",
        Routine::Four(set_file_config),
    ),
    (
        "WdfDeviceInitSetRequestAttributes",
        Routine::Three(set_request_attributes),
    ),
    ("WdfDeviceInitAssignSDDLString", Routine::Three(assign_sddl)),
    ("WdfDeviceInitAssignName", Routine::Three(assign_name)),
    ("WdfDeviceInitSetExclusive", Routine::Three(set_exclusive)),
    ("WdfDeviceInitSetIoType", Routine::Three(set_buffered_io)),
    ("WdfDeviceInitSetDeviceType", Routine::Three(accept_init)),
    (
        "WdfDeviceInitSetCharacteristics",
        Routine::Four(accept_characteristics),
    ),
    ("WdfDeviceCreate", Routine::Four(device_create)),
    (
        "WdfDeviceCreateDeviceInterface",
        Routine::Four(create_interface),
    ),
    ("WdfDeviceCreateSymbolicLink", Routine::Three(create_link)),
    ("WdfDeviceGetDefaultQueue", Routine::Two(get_default_queue)),
    ("WdfDeviceGetDriver", Routine::Two(get_driver)),
];

impl Thread {
    /// Runs `body` on the `WDFDEVICE_INIT` that the driver named.
    fn with_init<R>(&self, handle: u64, body: impl FnOnce(&mut DeviceInit) -> R) -> R {
        let result = lock_framework(self.shared())
            .inits
            .get_mut(&handle)
            .map(body);
        result.unwrap_or_else(|| {
            let call = self.call();
            self.stop(
                Rule::BadHandle,
                format!(
                    "{} was called from {} with 0x{handle:016X}, which is no WDFDEVICE_INIT in use",
                    call.name(),
                    self.shared().place(call.return_address)
                ),
            )
        })
    }

    /// Stops the machine: a structure's size field is wrong in a routine that
    /// has no status to say so with.
    fn stop_for_size(&self, structure: &str, size: u32) -> ! {
        let call = self.call();
        self.stop(
            Rule::BadHandle,
            format!(
                "{} was called from {} with a {structure} whose Size is {size}",
                call.name(),
                self.shared().place(call.return_address)
            ),
        )
    }
}

extern "win64" fn set_pnp_power(_globals: u64, init: u64, callbacks: u64) -> u64 {
    let thread = thread::current();
    let callbacks: PnpPowerCallbacks = thread.read(callbacks);
    if callbacks.size as usize != size_of::<PnpPowerCallbacks>() {
        thread.stop_for_size("WDF_PNPPOWER_EVENT_CALLBACKS", callbacks.size);
    }
    thread.with_init(init, |init| init.pnp_power = Some(callbacks));
    0
}

extern "win64" fn set_file_config(_globals: u64, init: u64, config: u64, attributes: u64) -> u64 {
    let thread = thread::current();
    let config: FileObjectConfig = thread.read(config);
    if config.size as usize != size_of::<FileObjectConfig>() {
        thread.stop_for_size("WDF_FILEOBJECT_CONFIG", config.size);
    }
    let attributes = read_attributes(&thread, attributes);
    thread.with_init(init, |init| {
        init.file = Some(config);
        init.file_attributes = attributes;
    });
    0
}

extern "win64" fn set_request_attributes(_globals: u64, init: u64, attributes: u64) -> u64 {
    let thread = thread::current();
    let attributes = read_attributes(&thread, attributes);
    thread.with_init(init, |init| init.request_attributes = attributes);
    0
}

extern "win64" fn assign_sddl(_globals: u64, init: u64, sddl: u64) -> u64 {
    let thread = thread::current();
    let sddl = (sddl != 0).then(|| read_unicode_string(&thread, sddl));
    if sddl.as_ref().is_some_and(|sddl| !sddl.starts_with("D:")) {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    thread.with_init(init, |init| init.sddl = sddl);
    NtStatus::SUCCESS.to_register()
}

extern "win64" fn assign_name(_globals: u64, init: u64, name: u64) -> u64 {
    let thread = thread::current();
    let name = (name != 0).then(|| read_unicode_string(&thread, name));
    thread.with_init(init, |init| init.name = name);
    NtStatus::SUCCESS.to_register()
}

extern "win64" fn set_exclusive(_globals: u64, init: u64, exclusive: u64) -> u64 {
    thread::current().with_init(init, |init| init.exclusive = exclusive & 0xFF != 0);
    0
}

/// Requests are always buffered here; a driver that asks for another kind of
/// access would get pointers of another meaning, so it is stopped.
extern "win64" fn set_buffered_io(_globals: u64, init: u64, io_type: u64) -> u64 {
    const BUFFERED: u64 = 2;
    let thread = thread::current();
    thread.with_init(init, |_| ());
    let io_type = io_type & 0xFFFF_FFFF;
    if io_type != BUFFERED {
        let call = thread.call();
        thread.stop(
            Rule::NotProvided,
            format!(
                "WdfDeviceInitSetIoType was called from {} for I/O type {io_type}; the stand-in \
                 kernel provides buffered I/O only",
                thread.shared().place(call.return_address)
            ),
        );
    }
    0
}

/// Device type: of no consequence for a driver under test.
extern "win64" fn accept_init(_globals: u64, init: u64, _value: u64) -> u64 {
    thread::current().with_init(init, |_| ());
    0
}

/// Device characteristics: of no consequence for a driver under test.
extern "win64" fn accept_characteristics(_globals: u64, init: u64, _set: u64, _or: u64) -> u64 {
    thread::current().with_init(init, |_| ());
    0
}

extern "win64" fn device_create(
    _globals: u64,
    init_pointer: u64,
    attributes: u64,
    device: u64,
) -> u64 {
    let thread = thread::current();
    let init_handle: u64 = thread.read(init_pointer);
    let init = thread.with_init(init_handle, core::mem::take);
    let attributes = read_attributes(&thread, attributes);
    if attributes.is_some_and(|attributes| attributes.parent != 0) {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let parent = driver::driver_of(&thread);
    let kind = Kind::Device(Box::new(DeviceData {
        init,
        default_queue: None,
        interfaces: Vec::new(),
        links: Vec::new(),
        in_d0: false,
    }));
    match create(&thread, kind, attributes.as_ref(), parent) {
        Ok(handle) => {
            // The framework takes the init away: the driver must not use it again.
            lock_framework(thread.shared()).inits.remove(&init_handle);
            thread.write(init_pointer, &0_u64);
            thread.write(device, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn create_interface(_globals: u64, device: u64, guid: u64, reference: u64) -> u64 {
    let thread = thread::current();
    let guid: [u8; 16] = thread.read(guid);
    if reference != 0 {
        read_unicode_string(&thread, reference);
    }
    thread.with::<DeviceData, _>(device, |device| device.interfaces.push(guid));
    NtStatus::SUCCESS.to_register()
}

extern "win64" fn create_link(_globals: u64, device: u64, name: u64) -> u64 {
    let thread = thread::current();
    let name = read_unicode_string(&thread, name);
    thread.with::<DeviceData, _>(device, |device| device.links.push(name));
    NtStatus::SUCCESS.to_register()
}

extern "win64" fn get_default_queue(_globals: u64, device: u64) -> u64 {
    thread::current().with::<DeviceData, _>(device, |device| device.default_queue.unwrap_or(0))
}

extern "win64" fn get_driver(_globals: u64, device: u64) -> u64 {
    let thread = thread::current();
    thread.with::<DeviceData, _>(device, |_| ());
    lock_framework(thread.shared())
        .ancestor::<DriverData>(device)
        .unwrap_or(0)
}

/// Calls a callback that returns a status, if the driver gave it.
fn call_optional<const N: usize>(
    thread: &Thread,
    what: &str,
    callback: u64,
    arguments: [u64; N],
) -> NtStatus {
    if callback == 0 {
        return NtStatus::SUCCESS;
    }
    NtStatus::from_register(thread.call_driver(what, callback, arguments))
}

/// Offers the driver a device: `EvtDriverDeviceAdd`, then the way into D0.
pub fn add_device(thread: &Thread, driver_object: u64) -> Result<u64, NtStatus> {
    let Some(driver) = driver::handle_of(thread, driver_object) else {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    };
    let device_add = thread.with::<DriverData, _>(driver, |driver| driver.device_add);
    if device_add == 0 {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let (init, devices) = {
        let mut framework = lock_framework(thread.shared());
        let init = FIRST_INIT + framework.inits_issued * 0x40;
        framework.inits_issued += 1;
        framework.inits.insert(init, DeviceInit::default());
        (init, framework.all::<DeviceData>())
    };
    let added = call_optional(thread, "EvtDriverDeviceAdd", device_add, [driver, init]);
    let device = {
        let mut framework = lock_framework(thread.shared());
        framework.inits.remove(&init);
        framework
            .all::<DeviceData>()
            .into_iter()
            .find(|device| !devices.contains(device))
    };
    let Some(device) = device else {
        return Err(if added.is_success() {
            NtStatus::INVALID_DEVICE_REQUEST
        } else {
            added
        });
    };
    if !added.is_success() {
        object::delete(thread, device);
        return Err(added);
    }
    start(thread, device).inspect_err(|_| object::delete(thread, device))?;
    Ok(device)
}

fn pnp_power(thread: &Thread, device: u64) -> Option<PnpPowerCallbacks> {
    thread.with::<DeviceData, _>(device, |device| device.init.pnp_power)
}

/// Prepares the hardware (it has no resources) and enters D0.
fn start(thread: &Thread, device: u64) -> Result<(), NtStatus> {
    let check = |status: NtStatus| status.is_success().then_some(()).ok_or(status);
    if let Some(calls) = pnp_power(thread, device) {
        check(call_optional(
            thread,
            "EvtDevicePrepareHardware",
            calls.prepare_hardware,
            [device, 0, 0],
        ))?;
        check(call_optional(
            thread,
            "EvtDeviceD0Entry",
            calls.d0_entry,
            [device, D3_FINAL],
        ))?;
        check(call_optional(
            thread,
            "EvtDeviceD0EntryPostInterruptsEnabled",
            calls.d0_entry_post_interrupts,
            [device, D3_FINAL],
        ))?;
        check(call_optional(
            thread,
            "EvtDeviceSelfManagedIoInit",
            calls.self_managed_io_init,
            [device],
        ))?;
    }
    thread.with::<DeviceData, _>(device, |device| device.in_d0 = true);
    Ok(())
}

/// Takes the device out of D0 and deletes it, as when it is removed in order.
pub fn remove_device(thread: &Thread, device: u64) {
    let calls = pnp_power(thread, device);
    if let Some(calls) = calls {
        call_optional(thread, "EvtDeviceQueryRemove", calls.query_remove, [device]);
        call_optional(
            thread,
            "EvtDeviceSelfManagedIoSuspend",
            calls.self_managed_io_suspend,
            [device],
        );
    }
    thread.with::<DeviceData, _>(device, |device| device.in_d0 = false);
    queue::purge(thread, device);
    if let Some(calls) = calls {
        call_optional(
            thread,
            "EvtDeviceD0ExitPreInterruptsDisabled",
            calls.d0_exit_pre_interrupts,
            [device, D3_FINAL],
        );
        call_optional(thread, "EvtDeviceD0Exit", calls.d0_exit, [device, D3_FINAL]);
        call_optional(
            thread,
            "EvtDeviceReleaseHardware",
            calls.release_hardware,
            [device, 0],
        );
        call_optional(
            thread,
            "EvtDeviceSelfManagedIoFlush",
            calls.self_managed_io_flush,
            [device],
        );
        call_optional(
            thread,
            "EvtDeviceSelfManagedIoCleanup",
            calls.self_managed_io_cleanup,
            [device],
        );
    }
    report_requests_left(thread, device);
    object::delete(thread, device);
}

/// A driver must complete every request that it was given.
fn report_requests_left(thread: &Thread, device: u64) {
    let left = {
        let mut framework = lock_framework(thread.shared());
        let requests = framework.all::<RequestData>();
        requests.into_iter().find_map(|handle| {
            let data = framework.get::<RequestData>(handle).ok()?;
            let description = request::describe(data);
            let queue = data.is_open().then_some(data.queue()).flatten()?;
            (framework.ancestor::<DeviceData>(queue) == Some(device)).then_some(description)
        })
    };
    if let Some(description) = left {
        thread.stop(
            Rule::RequestNotCompleted,
            format!("the device was removed while the driver held {description}, never completed"),
        );
    }
}

/// Sends a device to a lower power state and back: `EvtDeviceD0Exit`, then
/// `EvtDeviceD0Entry`.
pub fn power_cycle(thread: &Thread, device: u64) -> NtStatus {
    let Some(calls) = pnp_power(thread, device) else {
        return NtStatus::SUCCESS;
    };
    thread.with::<DeviceData, _>(device, |device| device.in_d0 = false);
    let status = call_optional(thread, "EvtDeviceD0Exit", calls.d0_exit, [device, D3]);
    if !status.is_success() {
        return status;
    }
    let status = call_optional(thread, "EvtDeviceD0Entry", calls.d0_entry, [device, D3]);
    if status.is_success() {
        thread.with::<DeviceData, _>(device, |device| device.in_d0 = true);
    }
    status
}

/// The device that a queue or file belongs to.
pub fn device_of(thread: &Thread, handle: u64) -> Option<u64> {
    lock_framework(thread.shared()).ancestor::<DeviceData>(handle)
}

/// Whether a device has a queue for requests.
pub fn queue_of(thread: &Thread, device: u64) -> Option<u64> {
    let queue = thread.with::<DeviceData, _>(device, |device| device.default_queue)?;
    lock_framework(thread.shared())
        .get::<QueueData>(queue)
        .is_ok()
        .then_some(queue)
}

/// The security descriptor that the driver gave a device.
pub fn sddl(thread: &Thread, device: u64) -> Option<String> {
    thread.with::<DeviceData, _>(device, |device| device.sddl().map(str::to_owned))
}
