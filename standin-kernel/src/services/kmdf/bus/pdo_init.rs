//! The description of a child before its creation.

use super::children::Child;
use crate::{
    execution::routine::{At, Handle, routine},
    ground::{
        NtResult, NtStatus,
        abi::{PdoCallbacks, UnicodeString},
    },
    services::kmdf::{
        device::init::allocate_init,
        object::string::read_text,
        state::{
            device::{DeviceData, DeviceInit},
            framework::{Context, Entries},
        },
    },
};
use etl_file::Guid;

pub const ENTRIES: Entries = &[
    routine("WdfPdoInitAllocate", allocate),
    routine("WdfPdoInitAssignDeviceID", assign_device_id),
    routine("WdfPdoInitAssignInstanceID", assign_instance_id),
    routine("WdfPdoInitAddHardwareID", add_hardware_id),
    routine("WdfPdoInitAddCompatibleID", add_compatible_id),
    routine("WdfPdoInitAssignContainerID", assign_container_id),
    routine("WdfPdoInitAddDeviceText", add_device_text),
    routine("WdfPdoInitSetDefaultLocale", set_default_locale),
    routine("WdfPdoInitAssignRawDevice", assign_raw_device),
    routine("WdfPdoInitSetEventCallbacks", set_event_callbacks),
    routine("WdfPdoInitAllowForwardingRequestToParent", allow_forwarding),
    routine("WdfPdoInitRemovePowerDependencyOnParent", remove_power_dependency),
];

/// A child's strings in one locale.
#[derive(Default)]
struct Texts {
    all: Vec<(u32, String, String)>,
    default: u32,
}

/// Returns the description of a new child, or null if the parent is not a function device.
fn allocate(context: &Context, parent: Handle<DeviceData>) -> Handle<DeviceInit> {
    let is_function =
        parent.with(context, |parent| !parent.is_control() && parent.init.child_of.is_none());
    if !is_function {
        return Handle::new(0);
    }
    Handle::new(allocate_init(context, DeviceInit { is_to_be_added: true, ..new(parent.0) }))
}

/// Returns the description of a new child of a bus device.
pub fn new(parent: u64) -> DeviceInit {
    DeviceInit { child_of: Some(parent), ..DeviceInit::default() }
}

/// Changes the description of a child. Fails for a device that is not a child.
fn change<R>(
    context: &Context,
    init: Handle<DeviceInit>,
    change: impl FnOnce(&mut DeviceInit) -> R,
) -> NtResult<R> {
    let changed = init.with_init(context, |init| init.child_of.is_some().then(|| change(init)));
    if changed.is_none() {
        context.warn_of_misuse(|| {
            "with a WDFDEVICE_INIT that does not describe a child of a bus device".to_owned()
        });
    }
    changed.ok_or(NtStatus::INVALID_DEVICE_REQUEST)
}

fn assign_device_id(
    context: &Context,
    init: Handle<DeviceInit>,
    id: At<UnicodeString>,
) -> NtResult {
    let id = read_text(context, id.0)?;
    change(context, init, |init| {
        init.parts.get::<Child>().has_device_id = true;
        let identity = &mut init.identity;
        let instance = identity.instance.split('\\').skip(2).collect::<String>();
        identity.instance = format!(r"{id}\{instance}");
    })
}

fn assign_instance_id(
    context: &Context,
    init: Handle<DeviceInit>,
    id: At<UnicodeString>,
) -> NtResult {
    let id = read_text(context, id.0)?;
    change(context, init, |init| {
        let instance = &mut init.identity.instance;
        let device: Vec<&str> = instance.split('\\').take(2).collect();
        *instance = if device.len() == 2 {
            format!(r"{}\{id}", device.join(r"\"))
        } else {
            format!(r"\\{id}")
        };
    })
}

fn add_hardware_id(context: &Context, init: Handle<DeviceInit>, id: At<UnicodeString>) -> NtResult {
    let id = read_text(context, id.0)?;
    change(context, init, |init| init.identity.hardware_ids.push(id))
}

fn add_compatible_id(
    context: &Context,
    init: Handle<DeviceInit>,
    id: At<UnicodeString>,
) -> NtResult {
    let id = read_text(context, id.0)?;
    change(context, init, |init| init.identity.compatible_ids.push(id))
}

fn assign_container_id(
    context: &Context,
    init: Handle<DeviceInit>,
    id: At<UnicodeString>,
) -> NtResult {
    let id = read_text(context, id.0)?;
    change(context, init, |init| init.identity.container = id)
}

/// Adds the description and location for a locale. The device uses those for the default locale.
fn add_device_text(
    context: &Context,
    init: Handle<DeviceInit>,
    description: At<UnicodeString>,
    location: At<UnicodeString>,
    locale: u32,
) -> NtResult {
    let description = read_text(context, description.0)?;
    let location = read_text(context, location.0)?;
    change(context, init, |init| {
        let texts = init.parts.get::<Texts>();
        texts.all.push((locale, description, location));
        choose_text(init);
    })
}

fn set_default_locale(context: &Context, init: Handle<DeviceInit>, locale: u32) {
    let _ = change(context, init, |init| {
        init.parts.get::<Texts>().default = locale;
        choose_text(init);
    });
}

/// Uses the strings for the default locale for the device or, if there are none, the first strings.
fn choose_text(init: &mut DeviceInit) {
    let texts = init.parts.get::<Texts>();
    let default = texts.default;
    let chosen = texts.all.iter().find(|(locale, ..)| *locale == default);
    if let Some((_, description, location)) = chosen.or_else(|| texts.all.first()).cloned() {
        init.identity.description = description;
        init.identity.location = location;
    }
}

fn assign_raw_device(context: &Context, init: Handle<DeviceInit>, class: At<Guid>) -> NtResult {
    let _class: [u8; 16] = context.read(class.0);
    change(context, init, |init| init.parts.get::<Child>().is_raw = true)
}

fn set_event_callbacks(context: &Context, init: Handle<DeviceInit>, callbacks: At<PdoCallbacks>) {
    /// The structure's size before the last callback was added.
    const OLD: usize = 56;
    let given: PdoCallbacks = context
        .read_sized(callbacks.0, &[OLD])
        .unwrap_or_else(|size| context.stop_for_size("WDF_PDO_EVENT_CALLBACKS", size));
    let _ = change(context, init, |init| init.parts.get::<Child>().eject = given.evt_device_eject);
}

fn allow_forwarding(context: &Context, init: Handle<DeviceInit>) {
    let _ = change(context, init, |init| init.parts.get::<Child>().forwards_to_parent = true);
}

/// Accepts that the child does not depend on its parent's power. In the stand-in kernel, the test
/// determines when devices start.
fn remove_power_dependency(context: &Context, init: Handle<DeviceInit>) {
    let _ = change(context, init, |_| ());
}
