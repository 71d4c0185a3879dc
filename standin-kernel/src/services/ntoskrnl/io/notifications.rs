//! Registrations for notifications about events that do not occur in the stand-in kernel: hardware
//! profile changes, arrival and removal of other drivers' devices, and drivers that start during
//! system boot.

use std::collections::BTreeMap;

use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{NtResult, NtStatus, abi::DriverObject, arena::Block},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("IoRegisterPlugPlayNotification", register_plug_and_play),
    routine("IoUnregisterPlugPlayNotification", unregister_plug_and_play),
    routine("IoUnregisterPlugPlayNotificationEx", unregister_plug_and_play),
    routine("IoRegisterBootDriverCallback", register_boot),
    routine("IoUnregisterBootDriverCallback", unregister_boot),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    PlugAndPlay,
    Boot,
}

struct Registration {
    kind: Kind,
    routine: u64,
    _memory: Block,
}

/// The registrations, by handle.
#[derive(Default)]
struct Registrations(BTreeMap<u64, Registration>);

/// Registers a routine, and returns the registration's handle.
fn register(context: &Context, kind: Kind, routine: u64) -> u64 {
    let memory = Block::zeroed(0x40);
    let handle = memory.address();
    let registration = Registration { kind, routine, _memory: memory };
    context.state().get::<Registrations>().0.insert(handle, registration);
    handle
}

fn unregister(context: &Context, kind: Kind, handle: u64) {
    let removed = context.with_state(|Registrations(all)| {
        all.extract_if(handle..=handle, |_, one| one.kind == kind).count()
    });
    if removed == 0 {
        context.stop_for_wrong(handle, "a registration of this kind");
    }
}

fn register_plug_and_play(
    context: &Context,
    category: u32,
    _flags: u32,
    data: Memory,
    driver: At<DriverObject>,
    routine: Callback,
    _argument: Memory,
    entry: At<u64>,
) -> NtResult {
    /// `EventCategoryHardwareProfileChange`, `EventCategoryDeviceInterfaceChange` and
    /// `EventCategoryTargetDeviceChange`.
    const HARDWARE_PROFILE: u32 = 1;
    const INTERFACE: u32 = 2;
    const TARGET: u32 = 3;
    let is_valid = match category {
        HARDWARE_PROFILE => true,
        // The data are the class of the interface, or the file object of the device.
        INTERFACE | TARGET => !data.is_null(),
        _ => false,
    };
    if !is_valid || driver.is_null() || routine == Callback(0) {
        entry.write(context, 0_u64);
        return Err(NtStatus::INVALID_PARAMETER);
    }
    entry.write(context, register(context, Kind::PlugAndPlay, routine.0));
    Ok(())
}

fn unregister_plug_and_play(context: &Context, entry: Memory) -> NtStatus {
    unregister(context, Kind::PlugAndPlay, entry.0);
    NtStatus::SUCCESS
}

fn register_boot(context: &Context, routine: Callback, _argument: Memory) -> Memory {
    At::new(register(context, Kind::Boot, routine.0))
}

fn unregister_boot(context: &Context, handle: Memory) {
    unregister(context, Kind::Boot, handle.0);
}

/// Removes the registrations of a driver's routines, and returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    context
        .with_state(|Registrations(all)| all.extract_if(.., |_, one| belongs(one.routine)).count())
}
