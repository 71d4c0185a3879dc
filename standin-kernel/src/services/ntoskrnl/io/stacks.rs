//! Stacks of device objects.

use std::collections::BTreeSet;

use super::devices::{flag, forget_unused, must_be_device, with};
use crate::{
    execution::routine::{At, routine},
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, FileObject},
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ob::handles,
    },
};

pub const ENTRIES: Entries = &[
    routine("IoAttachDeviceToDeviceStack", attach),
    routine("IoAttachDeviceToDeviceStackSafe", attach_safe),
    routine("IoDetachDevice", detach),
    routine("IoGetAttachedDevice", attached),
    routine("IoGetAttachedDeviceReference", attached_reference),
    routine("IoGetRelatedDeviceObject", related_device),
];

/// Attaches a device to the top of another device's stack. Returns the previous top, or null if the
/// previous top is not ready or was deleted.
fn attach(
    context: &Context,
    source: At<DeviceObject>,
    target: At<DeviceObject>,
) -> At<DeviceObject> {
    At::new(attach_to_top(context, source.0, target.0, None).unwrap_or(0))
}

/// Attaches a device to the top of another device's stack, and stores the previous top.
pub fn attach_safe(
    context: &Context,
    source: At<DeviceObject>,
    target: At<DeviceObject>,
    lower: At<u64>,
) -> NtResult {
    // The field's previous value does not matter, but reading it checks that it is accessible.
    lower.read(context);
    attach_to_top(context, source.0, target.0, Some(lower.0))
        .map(drop)
        .ok_or(NtStatus::NO_SUCH_DEVICE)
}

/// Attaches a device to the top of another device's stack. Returns the previous top, unless it is
/// not ready or was deleted. Stores the previous top in `lower` before a request can reach the new
/// top.
pub fn attach_to_top(
    context: &Context,
    source: u64,
    target: u64,
    lower: Option<u64>,
) -> Option<u64> {
    must_be_device(context, target);
    let top = top_of(context, target);
    let is_attached = with(context, source, |one| one.below.is_some());
    if is_attached || top == source {
        context.stop_for_misuse("for a device that is already attached");
    }
    let mut at = Some(top);
    while let Some(lower) = at {
        if lower == source {
            context.stop_for_misuse("to attach a device to a device that is attached above it");
        }
        at = with(context, lower, |one| one.below);
    }
    let mut below: DeviceObject = context.read(top);
    let is_deleted = with(context, top, |one| one.is_deleted);
    if is_deleted || below.flags & flag::INITIALIZING != 0 {
        return None;
    }
    with(context, source, |one| one.below = Some(top));
    if let Some(lower) = lower {
        context.write(lower, &top);
    }
    below.attached_device = source;
    context.write(top, &below);
    context.update(source, |above: &mut DeviceObject| {
        above.stack_size = below.stack_size.saturating_add(1);
        above.alignment_requirement = below.alignment_requirement;
    });
    Some(top)
}

/// Detaches the device that is attached to `target`.
fn detach(context: &Context, target: At<DeviceObject>) {
    let above = target.update(context, |below| std::mem::take(&mut below.attached_device));
    if above == 0 {
        context.stop_for_misuse("for a device to which nothing is attached");
    }
    with(context, above, |one| one.below = None);
    forget_unused(context, target.0);
}

/// Returns the devices of a stack from this device up. Drivers can write to the fields that link
/// the devices.
pub fn stack_above(context: &Context, device: u64) -> Vec<u64> {
    let mut stack = vec![device];
    let mut seen = BTreeSet::from([device]);
    let mut at = device;
    loop {
        at = context.read::<DeviceObject>(at).attached_device;
        if at == 0 {
            return stack;
        }
        if !seen.insert(at) {
            context
                .stop_for_misuse("for a stack whose device objects form a cycle by AttachedDevice");
        }
        stack.push(at);
    }
}

/// Returns the device at the top of a stack.
pub fn top_of(context: &Context, device: u64) -> u64 {
    let stack = stack_above(context, device);
    stack.last().copied().unwrap_or(device)
}

fn attached(context: &Context, device: At<DeviceObject>) -> At<DeviceObject> {
    At::new(top_of(context, device.0))
}

fn attached_reference(context: &Context, device: At<DeviceObject>) -> At<DeviceObject> {
    let top = top_of(context, device.0);
    handles::reference(context, At::new(top));
    At::new(top)
}

/// Returns the device at the top of the stack of a file's device.
fn related_device(context: &Context, file: At<FileObject>) -> At<DeviceObject> {
    /// The offset of a file object's device.
    const DEVICE: u64 = std::mem::offset_of!(FileObject, device_object) as u64;
    let device: u64 = context.read(file.0.wrapping_add(DEVICE));
    At::new(top_of(context, device))
}
