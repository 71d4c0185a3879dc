//! The security descriptors of objects. They are kept and given back; who opens a device is not checked
//! against that of the device.

use super::{
    context::{Context, Entries},
    data,
    ex::pool,
    io::devices,
    ke::thread_objects,
    ob::handles::{self, Target},
    se::{
        descriptors::{self, SELECTED, kept, present},
        security_descriptors::{GROUP, INVALID_DESCRIPTOR, OWNER, descriptor, parts},
    },
};
use crate::{
    execution::routine::{Routine, low_byte, low_half},
    ground::{irql::Irql, memory, status::NtStatus},
    services::ntoskrnl::se::capture::store_copy,
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("ObOpenObjectByPointer", PASSIVE, Routine::Seven(open_by_pointer)),
    ("ZwSetSecurityObject", PASSIVE, Routine::Three(set)),
    ("ZwQuerySecurityObject", PASSIVE, Routine::Five(query)),
    ("ObGetObjectSecurity", APC, Routine::Three(get)),
    ("ObReleaseObjectSecurity", APC, Routine::Two(release)),
];

/// `STATUS_INVALID_OWNER` and `STATUS_INVALID_PRIMARY_GROUP`.
const INVALID_OWNER: NtStatus = NtStatus::from_bits(0xC000_005A);

const INVALID_PRIMARY_GROUP: NtStatus = NtStatus::from_bits(0xC000_005B);

/// Returns the type of an object: the exported variable that points to it.
fn type_of(context: &Context, object: u64) -> Option<&'static str> {
    if devices::is_device(context, object) {
        Some("IoDeviceObjectType")
    } else if thread_objects::process_of(context, object).is_some() {
        Some("PsProcessType")
    } else if thread_objects::has_ended(context, object).is_some() {
        Some("PsThreadType")
    } else {
        handles::type_of(context, object).or_else(|| io_type(object))
    }
}

/// Returns the type of an object of the I/O manager, which says it in its first field.
fn io_type(object: u64) -> Option<&'static str> {
    /// `IO_TYPE_DRIVER` and `IO_TYPE_FILE`.
    const DRIVER: u16 = 4;
    const FILE: u16 = 5;
    match memory::read::<u16>(object).ok()? {
        DRIVER => Some("IoDriverObjectType"),
        FILE => Some("IoFileObjectType"),
        _ => None,
    }
}

/// Stops a driver that names an object of which nothing is known.
fn stop_for_object(context: &Context, object: u64) -> ! {
    if memory::read::<u8>(object).is_err() {
        context.stop_for_misuse(&format!("with 0x{object:016X}, which is not an object"));
    }
    context.stop_for_unprovided(&format!(
        "for 0x{object:016X}, which is no device, file, driver, process or thread, and no object that has \
         a handle,"
    ))
}

fn open_by_pointer(context: &Context, arguments: [u64; 7]) -> u64 {
    let [object, _attributes, _state, _access, kind, _mode, handle] = arguments;
    let Some(type_name) = type_of(context, object) else {
        stop_for_object(context, object);
    };
    if kind != 0 && data::object_type(type_name) != Some(kind) {
        return NtStatus::OBJECT_TYPE_MISMATCH.to_register();
    }
    handles::reference(context, object);
    let target = Target {
        type_name,
        object,
        close: |context, object| {
            handles::dereference(context, object);
        },
    };
    let opened = handles::open(context, target);
    context.write(handle, &opened);
    NtStatus::SUCCESS.to_register()
}

fn set(context: &Context, handle: u64, information: u64, at: u64) -> u64 {
    let Some(target) = handles::target(context, handle) else {
        return NtStatus::INVALID_HANDLE.to_register();
    };
    let information = low_half(information);
    let found = descriptor(context, at);
    let Some((found, new)) = found.and_then(|one| parts(context, &one).map(|parts| (one, parts)))
    else {
        return INVALID_DESCRIPTOR.to_register();
    };
    let mut kept = kept(context, target.object);
    for (bit, part) in SELECTED {
        let (Some(from), Some(to)) = (new.get(part), kept.parts.get_mut(part)) else {
            continue;
        };
        if information & bit == 0 {
            continue;
        }
        match part {
            OWNER if from.is_empty() => return INVALID_OWNER.to_register(),
            GROUP if from.is_empty() => return INVALID_PRIMARY_GROUP.to_register(),
            _ => {}
        }
        to.clone_from(from);
        kept.control = kept.control & !present(part) | found.control & present(part);
    }
    descriptors::keep(context, target.object, kept);
    NtStatus::SUCCESS.to_register()
}

fn query(
    context: &Context,
    handle: u64,
    information: u64,
    at: u64,
    length: u64,
    needed: u64,
) -> u64 {
    let Some(target) = handles::target(context, handle) else {
        return NtStatus::INVALID_HANDLE.to_register();
    };
    let bytes = kept(context, target.object).selected(low_half(information));
    context.write(needed, &u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    if usize::try_from(low_half(length)).unwrap_or(0) < bytes.len() {
        return NtStatus::BUFFER_TOO_SMALL.to_register();
    }
    context.write_bytes(at, &bytes);
    NtStatus::SUCCESS.to_register()
}

fn get(context: &Context, object: u64, to: u64, is_allocated: u64) -> u64 {
    if type_of(context, object).is_none() {
        stop_for_object(context, object);
    }
    let status = store_copy(context, to, &kept(context, object).selected(u32::MAX));
    context.write(is_allocated, &u8::from(status == NtStatus::SUCCESS));
    status.to_register()
}

fn release(context: &Context, at: u64, is_allocated: u64) -> u64 {
    if low_byte(is_allocated) != 0 {
        pool::free_block(context, at);
    }
    0
}
