//! The description of a child before its creation.

use super::children::Child;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{framework_abi::PdoCallbacks, status::NtStatus},
    services::{
        kmdf::{
            device::init::{allocate_init, with_init},
            state::{
                device::{DeviceData, DeviceInit},
                framework::{Context, Entries},
            },
        },
        strings::read_unicode_string,
    },
};

pub const ENTRIES: Entries = &[
    ("WdfPdoInitAllocate", Routine::Two(allocate)),
    ("WdfPdoInitAssignDeviceID", Routine::Three(assign_device_id)),
    ("WdfPdoInitAssignInstanceID", Routine::Three(assign_instance_id)),
    ("WdfPdoInitAddHardwareID", Routine::Three(add_hardware_id)),
    ("WdfPdoInitAddCompatibleID", Routine::Three(add_compatible_id)),
    ("WdfPdoInitAssignContainerID", Routine::Three(assign_container_id)),
    ("WdfPdoInitAddDeviceText", Routine::Five(add_device_text)),
    ("WdfPdoInitSetDefaultLocale", Routine::Three(set_default_locale)),
    ("WdfPdoInitAssignRawDevice", Routine::Three(assign_raw_device)),
    ("WdfPdoInitSetEventCallbacks", Routine::Three(set_event_callbacks)),
    ("WdfPdoInitAllowForwardingRequestToParent", Routine::Two(allow_forwarding)),
    ("WdfPdoInitRemovePowerDependencyOnParent", Routine::Two(remove_power_dependency)),
];

/// The texts of a child in its locales.
#[derive(Default)]
struct Texts {
    all: Vec<(u32, String, String)>,
    default: u32,
}

fn allocate(context: &Context, _globals: u64, parent: u64) -> u64 {
    context.with::<DeviceData, _>(parent, |_| ());
    allocate_init(context, new(parent))
}

/// Returns the description of a new child of a bus device.
pub fn new(parent: u64) -> DeviceInit {
    DeviceInit { child_of: Some(parent), ..DeviceInit::default() }
}

/// Changes the description of a child. The description of another device is refused.
fn change(context: &Context, init: u64, change: impl FnOnce(&mut DeviceInit) -> NtStatus) -> u64 {
    let status = with_init(context, init, |init| {
        if init.child_of.is_some() { change(init) } else { NtStatus::INVALID_DEVICE_REQUEST }
    });
    if status == NtStatus::INVALID_DEVICE_REQUEST {
        context.warn_of_misuse(|| {
            "with a WDFDEVICE_INIT that does not describe a child of a bus device".to_owned()
        });
    }
    status.to_register()
}

fn assign_device_id(context: &Context, _globals: u64, init: u64, id: u64) -> u64 {
    let id = read_unicode_string(context, id);
    change(context, init, |init| {
        init.parts.get::<Child>().has_device_id = true;
        let identity = &mut init.identity;
        let instance = identity.instance.split('\\').skip(2).collect::<String>();
        identity.instance = format!(r"{id}\{instance}");
        NtStatus::SUCCESS
    })
}

fn assign_instance_id(context: &Context, _globals: u64, init: u64, id: u64) -> u64 {
    let id = read_unicode_string(context, id);
    change(context, init, |init| {
        let instance = &mut init.identity.instance;
        let device: Vec<&str> = instance.split('\\').take(2).collect();
        *instance = if device.len() == 2 {
            format!(r"{}\{id}", device.join(r"\"))
        } else {
            format!(r"\\{id}")
        };
        NtStatus::SUCCESS
    })
}

fn add_hardware_id(context: &Context, _globals: u64, init: u64, id: u64) -> u64 {
    let id = read_unicode_string(context, id);
    change(context, init, |init| {
        init.identity.hardware_ids.push(id);
        NtStatus::SUCCESS
    })
}

fn add_compatible_id(context: &Context, _globals: u64, init: u64, id: u64) -> u64 {
    let id = read_unicode_string(context, id);
    change(context, init, |init| {
        init.identity.compatible_ids.push(id);
        NtStatus::SUCCESS
    })
}

fn assign_container_id(context: &Context, _globals: u64, init: u64, id: u64) -> u64 {
    let id = read_unicode_string(context, id);
    change(context, init, |init| {
        init.identity.container = id;
        NtStatus::SUCCESS
    })
}

/// Adds the description and the location in a locale. The default locale's are the device's.
fn add_device_text(
    context: &Context,
    _globals: u64,
    init: u64,
    description: u64,
    location: u64,
    locale: u64,
) -> u64 {
    let description = read_unicode_string(context, description);
    let location = read_unicode_string(context, location);
    let locale = low_half(locale);
    change(context, init, |init| {
        let texts = init.parts.get::<Texts>();
        if texts.all.iter().any(|(known, ..)| *known == locale) {
            return NtStatus::OBJECT_NAME_COLLISION;
        }
        texts.all.push((locale, description, location));
        choose_text(init);
        NtStatus::SUCCESS
    })
}

fn set_default_locale(context: &Context, _globals: u64, init: u64, locale: u64) -> u64 {
    change(context, init, |init| {
        init.parts.get::<Texts>().default = low_half(locale);
        choose_text(init);
        NtStatus::SUCCESS
    });
    0
}

/// Makes the text of the default locale the device's, or the first text.
fn choose_text(init: &mut DeviceInit) {
    let texts = init.parts.get::<Texts>();
    let default = texts.default;
    let chosen = texts.all.iter().find(|(locale, ..)| *locale == default);
    if let Some((_, description, location)) = chosen.or_else(|| texts.all.first()).cloned() {
        init.identity.description = description;
        init.identity.location = location;
    }
}

fn assign_raw_device(context: &Context, _globals: u64, init: u64, class: u64) -> u64 {
    let _class: [u8; 16] = context.read(class);
    change(context, init, |init| {
        init.parts.get::<Child>().is_raw = true;
        NtStatus::SUCCESS
    })
}

fn set_event_callbacks(context: &Context, _globals: u64, init: u64, callbacks: u64) -> u64 {
    /// The size before the last callback was added.
    const OLD: usize = 56;
    let given: PdoCallbacks = context
        .read_sized(callbacks, &[OLD])
        .unwrap_or_else(|size| context.stop_for_size("WDF_PDO_EVENT_CALLBACKS", size));
    change(context, init, |init| {
        init.parts.get::<Child>().eject = given.eject;
        NtStatus::SUCCESS
    });
    0
}

fn allow_forwarding(context: &Context, _globals: u64, init: u64) -> u64 {
    change(context, init, |init| {
        init.parts.get::<Child>().forwards_to_parent = true;
        NtStatus::SUCCESS
    });
    0
}

/// Accepts that the child needs no power of its parent. The stand-in kernel starts devices as the test
/// says.
fn remove_power_dependency(context: &Context, _globals: u64, init: u64) -> u64 {
    change(context, init, |_| NtStatus::SUCCESS);
    0
}
