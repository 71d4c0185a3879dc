//! The `WDFDEVICE_INIT` structures that describe devices before their creation.

use std::collections::HashMap;

use super::wdm::Offered;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{
        abi::{FileObjectConfig, PnpPowerCallbacks},
        framework_abi::{FdoCallbacks, IoTypeConfig},
        rule::Rule,
        status::NtStatus,
    },
    services::{
        kmdf::{
            driver::DriverData,
            object::read_attributes,
            state::{
                device::DeviceInit,
                device_object::Object,
                framework::{Context, Entries},
                stack::physical_below,
            },
        },
        strings::read_unicode_string,
    },
};

/// The first `WDFDEVICE_INIT` handle. The handles look like kernel addresses.
const FIRST_INIT: u64 = 0xFFFF_A800_0000_0000;

pub const ENTRIES: Entries = &[
    ("WdfDeviceInitSetPnpPowerEventCallbacks", Routine::Three(set_pnp_power)),
    ("WdfDeviceInitSetFileObjectConfig", Routine::Four(set_file_config)),
    ("WdfDeviceInitSetRequestAttributes", Routine::Three(set_request_attributes)),
    ("WdfDeviceInitAssignSDDLString", Routine::Three(assign_sddl)),
    ("WdfDeviceInitAssignName", Routine::Three(assign_name)),
    ("WdfDeviceInitSetExclusive", Routine::Three(set_exclusive)),
    ("WdfDeviceInitSetIoType", Routine::Three(set_io_type)),
    ("WdfDeviceInitSetIoTypeEx", Routine::Three(set_io_type_ex)),
    ("WdfDeviceInitSetDeviceType", Routine::Three(set_device_type)),
    ("WdfDeviceInitSetDeviceClass", Routine::Three(set_device_class)),
    ("WdfDeviceInitSetIoInCallerContextCallback", Routine::Three(set_in_caller_context)),
    ("WdfFdoInitSetFilter", Routine::Two(set_filter)),
    ("WdfFdoInitWdmGetPhysicalDevice", Routine::Two(get_physical_device)),
    ("WdfFdoInitSetEventCallbacks", Routine::Three(set_fdo_callbacks)),
    ("WdfControlDeviceInitSetShutdownNotification", Routine::Four(set_shutdown_notification)),
    ("WdfDeviceInitSetCharacteristics", Routine::Four(set_characteristics)),
    ("WdfDeviceInitFree", Routine::Two(init_free)),
    ("WdfControlDeviceInitAllocate", Routine::Three(control_init_allocate)),
];

/// The device descriptions by their `WDFDEVICE_INIT` handles.
#[derive(Default)]
pub struct Inits {
    /// The handles in use and their descriptions.
    pub open: HashMap<u64, DeviceInit>,
    /// The number of handles that were ever issued.
    issued: u64,
}

/// Runs `body` on the `WDFDEVICE_INIT` that the driver named.
pub fn with_init<R>(context: &Context, handle: u64, body: impl FnOnce(&mut DeviceInit) -> R) -> R {
    let mut framework = context.framework();
    let result = framework.part::<Inits>().open.get_mut(&handle).map(body);
    drop(framework);
    result.unwrap_or_else(|| {
        context.stop(
            Rule::BadHandle,
            format!(
                "{} was called from {} with 0x{handle:016X}, which is not a valid WDFDEVICE_INIT",
                context.call().name,
                context.caller()
            ),
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

fn set_pnp_power(context: &Context, _globals: u64, init: u64, callbacks: u64) -> u64 {
    /// The size up to KMDF 1.9, without the last callback.
    const OLD: usize = size_of::<PnpPowerCallbacks>() - size_of::<u64>();
    let callbacks: PnpPowerCallbacks = context
        .read_sized(callbacks, &[OLD])
        .unwrap_or_else(|size| context.stop_for_size("WDF_PNPPOWER_EVENT_CALLBACKS", size));
    if callbacks.usage_notification != 0 && callbacks.usage_notification_ex != 0 {
        context.warn_of_misuse(|| {
            "with both EvtDeviceUsageNotification and EvtDeviceUsageNotificationEx; the framework \
             ignores all callbacks"
                .to_owned()
        });
        return 0;
    }
    with_init(context, init, |init| init.pnp_power = Some(callbacks));
    0
}

fn set_file_config(
    context: &Context,
    _globals: u64,
    init: u64,
    config: u64,
    attributes: u64,
) -> u64 {
    let config: FileObjectConfig = context.read(config);
    if config.size as usize != size_of::<FileObjectConfig>() {
        context.stop_for_size("WDF_FILEOBJECT_CONFIG", config.size);
    }
    let attributes = read_attributes(context, attributes);
    with_init(context, init, |init| {
        init.file = Some(config);
        init.file_attributes = attributes;
    });
    0
}

fn set_request_attributes(context: &Context, _globals: u64, init: u64, attributes: u64) -> u64 {
    let attributes = read_attributes(context, attributes);
    with_init(context, init, |init| init.request_attributes = attributes);
    0
}

fn assign_sddl(context: &Context, _globals: u64, init: u64, sddl: u64) -> u64 {
    let sddl = (sddl != 0).then(|| read_unicode_string(context, sddl));
    if sddl.as_ref().is_some_and(|sddl| !sddl.starts_with("D:")) {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    with_init(context, init, |init| init.sddl = sddl);
    NtStatus::SUCCESS.to_register()
}

fn assign_name(context: &Context, _globals: u64, init: u64, name: u64) -> u64 {
    let name = (name != 0).then(|| read_unicode_string(context, name));
    with_init(context, init, |init| init.name = name);
    NtStatus::SUCCESS.to_register()
}

fn set_exclusive(context: &Context, _globals: u64, init: u64, exclusive: u64) -> u64 {
    with_init(context, init, |init| init.exclusive = exclusive & 0xFF != 0);
    0
}

/// Takes the I/O type of reads and writes (`WDF_DEVICE_IO_TYPE`). An invalid one is buffered.
fn set_io_type(context: &Context, _globals: u64, init: u64, io_type: u64) -> u64 {
    store_io_type(context, init, low_half(io_type));
    0
}

fn store_io_type(context: &Context, init: u64, io_type: u32) {
    const BUFFERED: u32 = 2;
    /// Neither, buffered, direct, and either of the last two.
    const VALID: core::ops::RangeInclusive<u32> = 1..=4;
    let is_valid = VALID.contains(&io_type);
    if !is_valid {
        context.warn_of_misuse(|| {
            format!("with {io_type}, which is no WDF_DEVICE_IO_TYPE; the device has buffered I/O")
        });
    }
    with_init(context, init, |init| {
        init.io_type = if is_valid { io_type } else { BUFFERED };
    });
}

fn set_io_type_ex(context: &Context, _globals: u64, init: u64, config: u64) -> u64 {
    with_init(context, init, |_| ());
    let config: IoTypeConfig = context.read(config);
    if config.size as usize != size_of::<IoTypeConfig>() {
        context.stop_for_size("WDF_IO_TYPE_CONFIG", config.size);
    }
    store_io_type(context, init, config.read_write_io_type);
    0
}

fn set_device_type(context: &Context, _globals: u64, init: u64, device_type: u64) -> u64 {
    with_init(context, init, |init| {
        init.parts.get::<Offered>().device_type = low_half(device_type);
    });
    0
}

/// Accepts the class that the device's security settings in the registry are found by. The stand-in
/// kernel has none.
fn set_device_class(context: &Context, _globals: u64, init: u64, class: u64) -> u64 {
    let _class: [u8; 16] = context.read(class);
    with_init(context, init, |_| ());
    0
}

fn set_in_caller_context(context: &Context, _globals: u64, init: u64, callback: u64) -> u64 {
    with_init(context, init, |init| init.in_caller_context = callback);
    0
}

/// Returns whether a description is that of a device that the plug-and-play manager offered. Otherwise
/// the framework ignores or refuses the call.
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

fn set_filter(context: &Context, _globals: u64, init: u64) -> u64 {
    if is_offered(context, init) {
        with_init(context, init, |init| init.is_filter = true);
    }
    0
}

fn get_physical_device(context: &Context, _globals: u64, init: u64) -> u64 {
    if !is_offered(context, init) {
        return 0;
    }
    let (bus, below) = with_init(context, init, |init| {
        let offered = init.parts.get::<Offered>();
        (offered.bus.as_ref().map(Object::address), init.below)
    });
    bus.unwrap_or_else(|| physical_below(context, below))
}

/// Takes the callbacks for resource requirements, which the stand-in kernel does not query.
fn set_fdo_callbacks(context: &Context, _globals: u64, init: u64, callbacks: u64) -> u64 {
    let callbacks: FdoCallbacks = context.read(callbacks);
    if callbacks.size as usize != size_of::<FdoCallbacks>() {
        context.stop_for_size("WDF_FDO_EVENT_CALLBACKS", callbacks.size);
    }
    is_offered(context, init);
    0
}

/// Takes the callback for the system's shutdown. The stand-in kernel never shuts down.
fn set_shutdown_notification(
    context: &Context,
    _globals: u64,
    init: u64,
    _callback: u64,
    flags: u64,
) -> u64 {
    /// `WdfDeviceShutdown` and `WdfDeviceLastChanceShutdown`.
    const VALID: u64 = 3;
    let is_control = with_init(context, init, |init| init.control_of.is_some());
    if !is_control || flags & 0xFF & !VALID != 0 || flags & VALID == 0 {
        context.warn_of_misuse(|| {
            "with flags that are not valid, or for a device that is no control device".to_owned()
        });
    }
    0
}

/// Adds to the device's characteristics, or replaces them.
fn set_characteristics(context: &Context, _globals: u64, init: u64, set: u64, or: u64) -> u64 {
    let set = low_half(set);
    let [or_in, ..] = or.to_le_bytes();
    with_init(context, init, |init| {
        init.characteristics = if or_in == 0 { set } else { init.characteristics | set };
    });
    0
}

fn init_free(context: &Context, _globals: u64, init: u64) -> u64 {
    with_init(context, init, |_| ());
    context.framework().part::<Inits>().open.remove(&init);
    0
}

fn control_init_allocate(context: &Context, _globals: u64, driver: u64, sddl: u64) -> u64 {
    context.with::<DriverData, _>(driver, |_| ());
    let sddl = read_unicode_string(context, sddl);
    if !sddl.starts_with("D:") {
        return 0;
    }
    allocate_init(
        context,
        DeviceInit { sddl: Some(sddl), control_of: Some(driver), ..DeviceInit::default() },
    )
}
