//! Registrations for notifications of what does not happen here: changes of hardware profiles, devices
//! of other drivers that come and go, and drivers that start while the system boots.

use std::collections::BTreeMap;

use crate::{
    execution::routine::{Routine, low_half},
    ground::{arena::Block, irql::Irql, status::NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoRegisterPlugPlayNotification", PASSIVE, Routine::Seven(register_plug_and_play)),
    ("IoUnregisterPlugPlayNotification", PASSIVE, Routine::One(unregister_plug_and_play)),
    ("IoUnregisterPlugPlayNotificationEx", PASSIVE, Routine::One(unregister_plug_and_play)),
    ("IoRegisterBootDriverCallback", PASSIVE, Routine::Two(register_boot)),
    ("IoUnregisterBootDriverCallback", Irql::APC_LEVEL, Routine::One(unregister_boot)),
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

/// The registrations by their handles.
#[derive(Default)]
struct Registrations(BTreeMap<u64, Registration>);

/// Registers a routine, and returns the handle.
fn register(context: &Context, kind: Kind, routine: u64) -> u64 {
    let memory = Block::zeroed(0x40);
    let handle = memory.address();
    let registration = Registration { kind, routine, _memory: memory };
    let mut state = context.state();
    let all = &mut state.get::<Registrations>().0;
    all.insert(handle, registration);
    handle
}

fn unregister(context: &Context, kind: Kind, handle: u64) {
    let is_known = {
        let mut state = context.state();
        let all = &mut state.get::<Registrations>().0;
        let is_known = all.get(&handle).is_some_and(|one| one.kind == kind);
        if is_known {
            all.remove(&handle);
        }
        is_known
    };
    if !is_known {
        context.stop_for_misuse(&format!(
            "with 0x{handle:016X}, which is not a registration of this kind"
        ));
    }
}

fn register_plug_and_play(
    context: &Context,
    [category, _flags, data, driver, routine, _argument, entry]: [u64; 7],
) -> u64 {
    /// `EventCategoryHardwareProfileChange`, `EventCategoryDeviceInterfaceChange` and
    /// `EventCategoryTargetDeviceChange`.
    const HARDWARE_PROFILE: u32 = 1;
    const INTERFACE: u32 = 2;
    const TARGET: u32 = 3;
    let category = low_half(category);
    let is_valid = match category {
        HARDWARE_PROFILE => true,
        // The class of the interface, or the file object of the device.
        INTERFACE | TARGET => data != 0,
        _ => false,
    };
    if !is_valid || driver == 0 || routine == 0 {
        context.write(entry, &0_u64);
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let handle = register(context, Kind::PlugAndPlay, routine);
    context.write(entry, &handle);
    NtStatus::SUCCESS.to_register()
}

fn unregister_plug_and_play(context: &Context, entry: u64) -> u64 {
    unregister(context, Kind::PlugAndPlay, entry);
    NtStatus::SUCCESS.to_register()
}

fn register_boot(context: &Context, routine: u64, _argument: u64) -> u64 {
    register(context, Kind::Boot, routine)
}

fn unregister_boot(context: &Context, handle: u64) -> u64 {
    unregister(context, Kind::Boot, handle);
    0
}

/// Takes the registrations of a driver's routines, and returns how many there were.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    let mut state = context.state();
    let all = &mut state.get::<Registrations>().0;
    let before = all.len();
    all.retain(|_, one| !belongs(one.routine));
    before - all.len()
}
