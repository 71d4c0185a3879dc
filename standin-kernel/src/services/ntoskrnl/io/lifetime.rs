//! Drivers' registrations for their devices and themselves: device timers, shutdown notifications,
//! driver object extensions, and routines that run after `DriverEntry`.

use std::collections::{BTreeMap, VecDeque, btree_map::Entry};

use super::power_states;
use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, DriverObject},
        arena::Block,
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::timers,
    },
};

pub const ENTRIES: Entries = &[
    routine("IoInitializeTimer", initialize_timer),
    routine("IoStartTimer", start_timer),
    routine("IoStopTimer", stop_timer),
    routine("IoRegisterShutdownNotification", register_shutdown::<false>),
    routine("IoRegisterLastChanceShutdownNotification", register_shutdown::<true>),
    routine("IoUnregisterShutdownNotification", unregister_shutdown),
    routine("IoAllocateDriverObjectExtension", allocate_extension),
    routine("IoGetDriverObjectExtension", get_extension),
    routine("IoRegisterDriverReinitialization", register_reinitialization::<false>),
    routine("IoRegisterBootDriverReinitialization", register_reinitialization::<true>),
];

/// The timers of devices, by device object: their routines and contexts.
#[derive(Default)]
struct Timers(BTreeMap<u64, Timer>);

struct Timer {
    routine: u64,
    context: u64,
    /// The memory to which the device object points.
    memory: Block,
}

/// Sets a device's timer, or replaces the timer's routine.
fn initialize_timer(
    context: &Context,
    device: At<DeviceObject>,
    routine: Callback,
    callback_context: Memory,
) -> NtStatus {
    let mut value = device.read(context);
    value.timer = context.with_state(|Timers(timers)| {
        let timer = timers.entry(device.0).or_insert_with(|| Timer {
            routine: 0,
            context: 0,
            memory: Block::zeroed(0x40),
        });
        (timer.routine, timer.context) = (routine.0, callback_context.0);
        timer.memory.address()
    });
    device.write(context, value);
    NtStatus::SUCCESS
}

/// Returns a timer's routine and context. Bugchecks if the device has no timer.
fn timer_of(context: &Context, device: u64) -> (u64, u64) {
    let found = context.with_state(|Timers(timers)| {
        timers.get(&device).map(|timer| (timer.routine, timer.context))
    });
    found.unwrap_or_else(|| context.stop_for_wrong(device, "a device whose timer was initialized"))
}

fn start_timer(context: &Context, device: At<DeviceObject>) {
    let (routine, callback_context) = timer_of(context, device.0);
    timers::start_for_device(context, device.0, routine, callback_context);
}

fn stop_timer(context: &Context, device: At<DeviceObject>) {
    timer_of(context, device.0);
    timers::stop(context, device.0);
}

/// A device whose driver is notified of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notified {
    /// The device's object.
    pub device: u64,
    /// Set if the driver is notified after the file systems.
    pub is_last: bool,
}

/// The devices whose drivers are notified of the shutdown, last registered first.
#[derive(Default)]
struct Shutdown(VecDeque<Notified>);

/// `DO_SHUTDOWN_REGISTERED`.
const SHUTDOWN_REGISTERED: u32 = 0x800;

fn register_shutdown<const LAST: bool>(context: &Context, device: At<DeviceObject>) -> NtStatus {
    device.update(context, |value| value.flags |= SHUTDOWN_REGISTERED);
    let notified = Notified { device: device.0, is_last: LAST };
    context.state().get::<Shutdown>().0.push_front(notified);
    NtStatus::SUCCESS
}

fn unregister_shutdown(context: &Context, device: At<DeviceObject>) {
    device.update(context, |value| value.flags &= !SHUTDOWN_REGISTERED);
    context.state().get::<Shutdown>().0.retain(|one| one.device != device.0);
}

/// Returns the devices whose drivers are notified of the shutdown, in the order of notification.
pub fn notified_of_shutdown(context: &Context) -> Vec<Notified> {
    let mut all = Vec::from(context.state().get::<Shutdown>().0.clone());
    all.sort_by_key(|one| one.is_last);
    all
}

/// Removes the timer and the shutdown notification of a device that is being deleted.
pub fn device_deleted(context: &Context, device: u64) {
    timers::stop(context, device);
    power_states::forget(context, device);
    let mut state = context.state();
    state.get::<Timers>().0.remove(&device);
    state.get::<Shutdown>().0.retain(|one| one.device != device);
}

/// The driver object extensions, by driver and client identification.
#[derive(Default)]
struct Extensions(BTreeMap<(u64, u64), Block>);

/// Allocates memory that is valid as long as the driver object exists.
fn allocate_extension(
    context: &Context,
    driver: At<DriverObject>,
    id: Memory,
    size: u32,
    result: At<u64>,
) -> NtResult {
    result.write(context, 0_u64);
    if context.faults().take("ExAllocatePool2").is_some() {
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    let address = context.with_state(|Extensions(all)| {
        let Entry::Vacant(free) = all.entry((driver.0, id.0)) else {
            return Err(NtStatus::OBJECT_NAME_COLLISION);
        };
        let block = Block::try_zeroed(size as usize).ok_or(NtStatus::INSUFFICIENT_RESOURCES)?;
        Ok(free.insert(block).address())
    })?;
    result.write(context, address);
    Ok(())
}

/// Returns the address of an extension, or null.
fn get_extension(context: &Context, driver: At<DriverObject>, id: Memory) -> Memory {
    At::new(
        context.with_state(|Extensions(all)| all.get(&(driver.0, id.0)).map_or(0, Block::address)),
    )
}

/// The routines that run after all drivers have started. Boot drivers' routines come first.
#[derive(Default)]
struct Reinitializations(VecDeque<Reinitialization>);

#[derive(Clone, Copy)]
struct Reinitialization {
    driver: u64,
    routine: u64,
    context: u64,
    is_of_boot: bool,
}

fn register_reinitialization<const BOOT: bool>(
    context: &Context,
    driver: At<DriverObject>,
    routine: Callback,
    callback_context: Memory,
) {
    let one = Reinitialization {
        driver: driver.0,
        routine: routine.0,
        context: callback_context.0,
        is_of_boot: BOOT,
    };
    context.state().get::<Reinitializations>().0.push_back(one);
}

/// The offset of the call count in `DRIVER_EXTENSION`.
const COUNT: u64 = 16;

/// Calls the routines that a driver registered in `DriverEntry`, and the routines that these
/// routines register.
pub fn reinitialize(context: &Context, driver: u64) {
    /// The number of calls after which the driver counts as never finishing.
    const LIMIT: u32 = 1000;
    let extension = context.read::<DriverObject>(driver).driver_extension;
    for _ in 0..LIMIT {
        let next = context.with_state(|Reinitializations(all)| {
            let of_boot = all.iter().position(|one| one.driver == driver && one.is_of_boot);
            let any = || all.iter().position(|one| one.driver == driver);
            of_boot.or_else(any).and_then(|at| all.remove(at))
        });
        let Some(next) = next else {
            return;
        };
        let count = context.update(extension.wrapping_add(COUNT), |count: &mut u32| {
            *count = count.wrapping_add(1);
            *count
        });
        let arguments = [driver, next.context, u64::from(count)];
        context.call_driver("the reinitialization routine", next.routine, arguments);
    }
    context.stop_for_misuse("in a reinitialization routine that always registers itself again");
}

/// Removes a driver's registrations for itself.
pub fn driver_gone(context: &Context, driver: u64) {
    let mut state = context.state();
    state.get::<Extensions>().0.retain(|(of, _), _| *of != driver);
    state.get::<Reinitializations>().0.retain(|one| one.driver != driver);
}
