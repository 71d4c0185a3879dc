//! The security descriptors of objects. They are stored and returned, but a device's descriptor
//! does not restrict the processes that open the device.

use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Memory, Out, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::AccessState,
        memory,
        opaque::{ObjectType, SecurityDescriptor},
    },
    services::{
        managers::tokens,
        ntoskrnl::{
            cm::keys,
            context::{Context, Entries},
            ex::pool,
            io::devices,
            ke::thread_objects,
            ob::{
                callbacks,
                callbacks::HandleOperation,
                filters::CREATE,
                handles,
                handles::{Opening, Target},
            },
            se::{
                capture::store_copy,
                descriptors::{self, SELECTED, kept, present},
                security_descriptors::{GROUP, INVALID_DESCRIPTOR, OWNER, descriptor, parts},
            },
            variables,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("ObOpenObjectByPointer", open_by_pointer),
    routine("ZwSetSecurityObject", set),
    routine("ZwQuerySecurityObject", query),
    routine("ObGetObjectSecurity", get),
    routine("ObReleaseObjectSecurity", release),
];

/// `STATUS_INVALID_OWNER` and `STATUS_INVALID_PRIMARY_GROUP`.
const INVALID_OWNER: NtStatus = NtStatus::from_bits(0xC000_005A);

const INVALID_PRIMARY_GROUP: NtStatus = NtStatus::from_bits(0xC000_005B);

/// Returns the type of an object: the name of the exported variable that points to the type.
pub fn type_of(context: &Context, object: u64) -> Option<&'static str> {
    if devices::is_device(context, object) {
        Some("IoDeviceObjectType")
    } else if thread_objects::process_of(context, object).is_some() {
        Some("PsProcessType")
    } else if thread_objects::has_ended(context, object).is_some() {
        Some("PsThreadType")
    } else if tokens::process_of(object).is_some() {
        Some("SeTokenObjectType")
    } else {
        handles::type_of(context, object).or_else(|| io_type(object))
    }
}

/// Returns the type of an I/O manager object, according to the object's first field.
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

/// Bugchecks if the memory at an address is inaccessible.
pub fn must_be_object(context: &Context, object: u64) {
    if type_of(context, object).is_none() && memory::read::<u8>(object).is_err() {
        context.stop_for_wrong(object, "an object");
    }
}

/// Bugchecks because this kernel does not know the object.
fn stop_for_object(context: &Context, object: u64) -> ! {
    must_be_object(context, object);
    context.stop_for_unprovided(&format!(
        "for 0x{object:016X}, which is not a device, file, driver, process, thread or object with \
         a handle,"
    ))
}

fn open_by_pointer(
    context: &Context,
    object: Memory,
    attributes: u32,
    _state: At<AccessState>,
    access: u32,
    kind: At<ObjectType>,
    _mode: i8,
    handle: Out<NtObject>,
) -> NtResult {
    let type_name =
        type_of(context, object.0).unwrap_or_else(|| stop_for_object(context, object.0));
    if !kind.is_null() && variables::object_type(type_name) != Some(kind.0) {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    let processes = [0; 2];
    let operation =
        HandleOperation { operation: CREATE, type_name, object: object.0, access, processes };
    callbacks::notify(context, &operation, || {
        handles::reference(context, object);
        let target = Target {
            type_name,
            object: object.0,
            close: |context, object| {
                keys::handle_closed(context, object);
                handles::dereference(context, At::new(object));
            },
            has_reference: true,
        };
        let opening = Opening { attributes, access };
        handle.write(context, handles::open(context, target, opening));
        Ok(())
    })
}

fn set(
    context: &Context,
    handle: Handle<NtObject>,
    information: u32,
    at: At<SecurityDescriptor>,
) -> NtResult {
    let target = handles::target(context, handle.0).ok_or(NtStatus::INVALID_HANDLE)?;
    let found = descriptor(context, at.0).ok_or(INVALID_DESCRIPTOR)?;
    let new = parts(context, &found).ok_or(INVALID_DESCRIPTOR)?;
    let mut kept = kept(context, target.object);
    for (bit, part) in SELECTED {
        let (Some(from), Some(to)) = (new.get(part), kept.parts.get_mut(part)) else {
            continue;
        };
        if information & bit == 0 {
            continue;
        }
        match part {
            OWNER if from.is_empty() => return Err(INVALID_OWNER),
            GROUP if from.is_empty() => return Err(INVALID_PRIMARY_GROUP),
            _ => {}
        }
        to.clone_from(from);
        kept.control = kept.control & !present(part) | found.control & present(part);
    }
    descriptors::keep(context, target.object, kept);
    Ok(())
}

fn query(
    context: &Context,
    handle: Handle<NtObject>,
    information: u32,
    at: At<SecurityDescriptor>,
    length: u32,
    needed: At<u32>,
) -> NtResult {
    let target = handles::target(context, handle.0).ok_or(NtStatus::INVALID_HANDLE)?;
    let bytes = kept(context, target.object).selected(information);
    needed.write(context, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    if (length as usize) < bytes.len() {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(at.0, &bytes);
    Ok(())
}

fn get(
    context: &Context,
    object: Memory,
    security_descriptor: At<u64>,
    is_allocated: At<u8>,
) -> NtResult {
    if type_of(context, object.0).is_none() {
        stop_for_object(context, object.0);
    }
    let stored =
        store_copy(context, security_descriptor, &kept(context, object.0).selected(u32::MAX));
    is_allocated.write(context, stored.is_ok().into());
    stored
}

fn release(context: &Context, at: At<SecurityDescriptor>, is_allocated: bool) {
    if is_allocated {
        pool::free_block(context, at.0);
    }
}
