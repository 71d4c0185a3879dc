//! The `WDFDEVICE_INIT` structures that describe devices before their creation.

use std::collections::HashMap;

use super::super::{
    driver::DriverData,
    object::read_attributes,
    state::{
        device::DeviceInit,
        framework::{Context, Entries},
    },
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{
        abi::{FileObjectConfig, PnpPowerCallbacks},
        rule::Rule,
        status::NtStatus,
    },
    services::strings::read_unicode_string,
};

/// The first `WDFDEVICE_INIT` handle. The handles look like kernel addresses.
const FIRST_INIT: u64 = 0xFFFF_A800_0000_0000;

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
        Routine::Four(set_characteristics),
    ),
    ("WdfDeviceInitFree", Routine::Two(init_free)),
    (
        "WdfControlDeviceInitAllocate",
        Routine::Three(control_init_allocate),
    ),
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

/// Bugchecks for a wrong structure size in a routine that returns no status.
fn stop_for_size(context: &Context, structure: &str, size: u32) -> ! {
    context.stop(
        Rule::BadHandle,
        format!(
            "{} was called from {} with a {structure} whose Size is {size}",
            context.call().name,
            context.caller()
        ),
    )
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
    let callbacks: PnpPowerCallbacks = context.read(callbacks);
    if callbacks.size as usize != size_of::<PnpPowerCallbacks>() {
        stop_for_size(context, "WDF_PNPPOWER_EVENT_CALLBACKS", callbacks.size);
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
        stop_for_size(context, "WDF_FILEOBJECT_CONFIG", config.size);
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

/// Bugchecks for any I/O type other than buffered. The stand-in kernel always buffers requests,
/// and a driver that uses a different type would misinterpret the pointers.
fn set_buffered_io(context: &Context, _globals: u64, init: u64, io_type: u64) -> u64 {
    const BUFFERED: u64 = 2;
    with_init(context, init, |_| ());
    let io_type = io_type & 0xFFFF_FFFF;
    if io_type != BUFFERED {
        context.stop(
            Rule::NotProvided,
            format!(
                "WdfDeviceInitSetIoType was called from {} for I/O type {io_type}; the stand-in \
                 kernel provides buffered I/O only",
                context.caller()
            ),
        );
    }
    0
}

/// Accepts the device type, which has no effect on a driver under test.
fn accept_init(context: &Context, _globals: u64, init: u64, _value: u64) -> u64 {
    with_init(context, init, |_| ());
    0
}

/// Adds to the device's characteristics, or replaces them.
fn set_characteristics(context: &Context, _globals: u64, init: u64, set: u64, or: u64) -> u64 {
    let set = low_half(set);
    let [or_in, ..] = or.to_le_bytes();
    with_init(context, init, |init| {
        init.characteristics = if or_in == 0 {
            set
        } else {
            init.characteristics | set
        };
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
        DeviceInit {
            sddl: Some(sddl),
            control_of: Some(driver),
            ..DeviceInit::default()
        },
    )
}
