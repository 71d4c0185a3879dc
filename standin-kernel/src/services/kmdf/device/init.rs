//! The `WDFDEVICE_INIT` structures that describe devices before their creation.

use std::collections::HashMap;

use super::wdm::Offered;
use crate::{
    execution::routine::{Handle, Kind, Routine},
    ground::{
        NtResult, NtStatus,
        abi::{FileObjectConfig, ObjectAttributes, PnpPowerCallbacks},
        framework_abi::{FdoCallbacks, IoTypeConfig},
        rule::Rule,
    },
    services::kmdf::{
        driver::DriverData,
        object::{read_attributes, validate},
        state::{
            device::DeviceInit,
            device_object::Object,
            file::FileData,
            framework::{Choices, Context, Data, Entries},
            stack::physical_below,
        },
        text_routines::read_text,
    },
};

/// The first `WDFDEVICE_INIT` handle. The handles look like kernel addresses.
const FIRST_INIT: u64 = 0xFFFF_A800_0000_0000;

pub const ENTRIES: Entries = &[
    ("WdfDeviceInitSetPnpPowerEventCallbacks", Routine::after_globals(set_pnp_power)),
    ("WdfDeviceInitSetFileObjectConfig", Routine::after_globals(set_file_config)),
    ("WdfDeviceInitSetRequestAttributes", Routine::after_globals(set_request_attributes)),
    ("WdfDeviceInitAssignSDDLString", Routine::after_globals(assign_sddl)),
    ("WdfDeviceInitAssignName", Routine::after_globals(assign_name)),
    ("WdfDeviceInitSetExclusive", Routine::after_globals(set_exclusive)),
    ("WdfDeviceInitSetIoType", Routine::after_globals(set_io_type)),
    ("WdfDeviceInitSetIoTypeEx", Routine::after_globals(set_io_type_ex)),
    ("WdfDeviceInitSetDeviceType", Routine::after_globals(set_device_type)),
    ("WdfDeviceInitSetDeviceClass", Routine::after_globals(set_device_class)),
    ("WdfDeviceInitSetIoInCallerContextCallback", Routine::after_globals(set_in_caller_context)),
    ("WdfFdoInitSetFilter", Routine::after_globals(set_filter)),
    ("WdfFdoInitWdmGetPhysicalDevice", Routine::after_globals(get_physical_device)),
    ("WdfFdoInitSetEventCallbacks", Routine::after_globals(set_fdo_callbacks)),
    (
        "WdfControlDeviceInitSetShutdownNotification",
        Routine::after_globals(set_shutdown_notification),
    ),
    ("WdfDeviceInitSetCharacteristics", Routine::after_globals(set_characteristics)),
    ("WdfDeviceInitFree", Routine::after_globals(init_free)),
    ("WdfControlDeviceInitAllocate", Routine::after_globals(control_init_allocate)),
];

/// The device descriptions, indexed by `WDFDEVICE_INIT` handle.
#[derive(Default)]
pub struct Inits {
    /// The handles in use and their descriptions.
    pub open: HashMap<u64, DeviceInit>,
    /// The total number of issued handles.
    issued: u64,
}

impl Kind for DeviceInit {
    const NAME: &'static str = "PWDFDEVICE_INIT";
}

impl Handle<DeviceInit> {
    /// Bugchecks if the handle is invalid.
    pub fn check_init(self, context: &Context) {
        self.with_init(context, |_| ());
    }

    /// Runs `body` on the device description. Bugchecks if the handle is invalid.
    pub fn with_init<R>(self, context: &Context, body: impl FnOnce(&mut DeviceInit) -> R) -> R {
        with_init(context, self.0, body)
    }
}

/// Runs `body` on the `WDFDEVICE_INIT` that the driver passed.
pub fn with_init<R>(context: &Context, handle: u64, body: impl FnOnce(&mut DeviceInit) -> R) -> R {
    let mut framework = context.framework();
    let result = framework.part::<Inits>().open.get_mut(&handle).map(body);
    drop(framework);
    result.unwrap_or_else(|| {
        context.stop_call(
            Rule::BadHandle,
            &format!("with 0x{handle:016X}, which is not a valid WDFDEVICE_INIT"),
        )
    })
}

/// Creates a `WDFDEVICE_INIT`.
pub fn allocate_init(context: &Context, init: DeviceInit) -> u64 {
    let mut framework = context.framework();
    let inits = framework.part::<Inits>();
    let handle = FIRST_INIT + inits.issued * 0x40;
    inits.issued += 1;
    inits.open.insert(handle, init);
    handle
}

fn set_pnp_power(context: &Context, init: Handle<DeviceInit>, callbacks: u64) {
    /// The structure's size up to KMDF 1.9, without the last callback.
    const OLD: usize = size_of::<PnpPowerCallbacks>() - size_of::<u64>();
    let callbacks: PnpPowerCallbacks = match context.read_sized(callbacks, &[OLD]) {
        Ok(callbacks) => callbacks,
        Err(size) => return context.warn_of_size("WDF_PNPPOWER_EVENT_CALLBACKS", size),
    };
    if callbacks.usage_notification != 0 && callbacks.usage_notification_ex != 0 {
        context.warn_of_misuse(|| {
            "with both EvtDeviceUsageNotification and EvtDeviceUsageNotificationEx; the framework \
             ignores all callbacks"
                .to_owned()
        });
        return;
    }
    init.with_init(context, |init| init.pnp_power = Some(callbacks));
}

fn set_file_config(context: &Context, init: Handle<DeviceInit>, config: u64, attributes: u64) {
    let config: FileObjectConfig = context.read(config);
    if config.size as usize != size_of::<FileObjectConfig>() {
        return context.warn_of_size("WDF_FILEOBJECT_CONFIG", config.size);
    }
    let attributes = read_attributes(context, attributes);
    if !are_valid(context, attributes.as_ref(), FileData::CHOICES) {
        return;
    }
    init.with_init(context, |init| {
        init.file = Some(config);
        init.file_attributes = attributes;
    });
}

fn set_request_attributes(context: &Context, init: Handle<DeviceInit>, attributes: u64) {
    let attributes: ObjectAttributes = context.read(attributes);
    let choices = Choices { has_fixed_parent: true, ..Choices::default() };
    if are_valid(context, Some(&attributes), choices) {
        init.with_init(context, |init| init.request_attributes = Some(attributes));
    }
}

/// Returns whether attributes are valid for objects that the framework creates later. If not, warns
/// that the framework ignores the call.
fn are_valid(context: &Context, attributes: Option<&ObjectAttributes>, choices: Choices) -> bool {
    let problem = attributes.and_then(|given| validate(context, given, choices).err());
    if let Some(status) = problem {
        context.warn_of_misuse(|| {
            format!("with invalid attributes ({status}); the framework ignores the call")
        });
    }
    problem.is_none()
}

fn assign_sddl(context: &Context, init: Handle<DeviceInit>, sddl: u64) -> NtResult {
    let is_control = init.with_init(context, |init| init.control_of.is_some());
    if sddl == 0 && is_control {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let sddl = (sddl != 0).then(|| read_text(context, sddl)).transpose()?;
    init.with_init(context, |init| init.sddl = sddl);
    Ok(())
}

fn assign_name(context: &Context, init: Handle<DeviceInit>, name: u64) -> NtResult {
    let name = (name != 0).then(|| read_text(context, name)).transpose()?;
    init.with_init(context, |init| init.name = name);
    Ok(())
}

fn set_exclusive(context: &Context, init: Handle<DeviceInit>, exclusive: bool) {
    init.with_init(context, |init| init.exclusive = exclusive);
}

/// Sets the I/O type of reads and writes (`WDF_DEVICE_IO_TYPE`). An invalid type selects buffered
/// I/O.
fn set_io_type(context: &Context, init: u64, io_type: u32) {
    store_io_type(context, init, io_type);
}

fn store_io_type(context: &Context, init: u64, io_type: u32) {
    const BUFFERED: u32 = 2;
    /// Neither, buffered, direct, and either buffered or direct.
    const VALID: core::ops::RangeInclusive<u32> = 1..=4;
    let is_valid = VALID.contains(&io_type);
    if !is_valid {
        context.warn_of_misuse(|| {
            format!(
                "with {io_type}, which is not a WDF_DEVICE_IO_TYPE; the device uses buffered \
                     I/O"
            )
        });
    }
    with_init(context, init, |init| {
        init.io_type = if is_valid { io_type } else { BUFFERED };
    });
}

fn set_io_type_ex(context: &Context, init: Handle<DeviceInit>, config: u64) {
    init.check_init(context);
    let config: IoTypeConfig = context.read(config);
    if config.size as usize != size_of::<IoTypeConfig>() {
        return context.warn_of_size("WDF_IO_TYPE_CONFIG", config.size);
    }
    store_io_type(context, init.0, config.read_write_io_type);
}

fn set_device_type(context: &Context, init: Handle<DeviceInit>, device_type: u32) {
    init.with_init(context, |init| {
        init.parts.get::<Offered>().device_type = device_type;
    });
}

/// Accepts the class under which the registry stores the device's security settings. The stand-in
/// kernel has no such settings.
fn set_device_class(context: &Context, init: Handle<DeviceInit>, class: u64) {
    let _class: [u8; 16] = context.read(class);
    init.check_init(context);
}

fn set_in_caller_context(context: &Context, init: Handle<DeviceInit>, callback: u64) {
    init.with_init(context, |init| init.in_caller_context = callback);
}

/// Returns whether a description is for a device that the Plug and Play manager offered. If not,
/// the framework ignores or rejects the call.
fn is_offered(context: &Context, init: u64) -> bool {
    let is_offered =
        with_init(context, init, |init| init.control_of.is_none() && init.child_of.is_none());
    if !is_offered {
        context.warn_of_misuse(|| {
            "with a WDFDEVICE_INIT that EvtDriverDeviceAdd did not receive".to_owned()
        });
    }
    is_offered
}

fn set_filter(context: &Context, init: Handle<DeviceInit>) {
    if is_offered(context, init.0) {
        init.with_init(context, |init| init.is_filter = true);
    }
}

fn get_physical_device(context: &Context, init: Handle<DeviceInit>) -> u64 {
    if !is_offered(context, init.0) {
        return 0;
    }
    let (bus, below) = init.with_init(context, |init| {
        let offered = init.parts.get::<Offered>();
        (offered.bus.as_ref().map(Object::address), init.below)
    });
    bus.unwrap_or_else(|| physical_below(context, below))
}

/// Accepts the callbacks for resource requirements. The stand-in kernel does not query
/// requirements.
fn set_fdo_callbacks(context: &Context, init: u64, callbacks: u64) {
    let callbacks: FdoCallbacks = context.read(callbacks);
    if callbacks.size as usize != size_of::<FdoCallbacks>() {
        return context.warn_of_size("WDF_FDO_EVENT_CALLBACKS", callbacks.size);
    }
    is_offered(context, init);
}

/// Accepts the shutdown callback. The stand-in kernel never shuts down.
fn set_shutdown_notification(
    context: &Context,
    init: Handle<DeviceInit>,
    _callback: u64,
    flags: u8,
) {
    /// `WdfDeviceShutdown` and `WdfDeviceLastChanceShutdown`.
    const VALID: u8 = 3;
    let is_control = init.with_init(context, |init| init.control_of.is_some());
    if !is_control || flags & !VALID != 0 || flags & VALID == 0 {
        context.warn_of_misuse(|| {
            "with invalid flags, or for a device that is not a control device".to_owned()
        });
    }
}

/// Replaces the device's characteristics or, if `or` is set, adds to them.
fn set_characteristics(context: &Context, init: Handle<DeviceInit>, set: u32, or: bool) {
    init.with_init(context, |init| {
        init.characteristics = if or { init.characteristics | set } else { set };
    });
}

fn init_free(context: &Context, init: Handle<DeviceInit>) {
    init.check_init(context);
    context.framework().part::<Inits>().open.remove(&init.0);
}

fn control_init_allocate(context: &Context, driver: Handle<DriverData>, sddl: u64) -> u64 {
    driver.check(context);
    let Ok(sddl) = read_text(context, sddl) else {
        return 0;
    };
    allocate_init(
        context,
        DeviceInit { sddl: Some(sddl), control_of: Some(driver.0), ..DeviceInit::default() },
    )
}
