//! What drivers register for their devices and for themselves: a timer for each device, notifications
//! of the shutdown, extensions of their objects, and routines that run after `DriverEntry`.

use std::collections::{BTreeMap, VecDeque};

use super::power_states;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{
        abi::{DeviceObject, DriverObject},
        arena::Block,
        irql::Irql,
        status::NtStatus,
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::timers,
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoInitializeTimer", PASSIVE, Routine::Three(initialize_timer)),
    ("IoStartTimer", DISPATCH, Routine::One(start_timer)),
    ("IoStopTimer", DISPATCH, Routine::One(stop_timer)),
    ("IoRegisterShutdownNotification", PASSIVE, Routine::One(register_shutdown::<false>)),
    ("IoRegisterLastChanceShutdownNotification", PASSIVE, Routine::One(register_shutdown::<true>)),
    ("IoUnregisterShutdownNotification", PASSIVE, Routine::One(unregister_shutdown)),
    ("IoAllocateDriverObjectExtension", DISPATCH, Routine::Four(allocate_extension)),
    ("IoGetDriverObjectExtension", DISPATCH, Routine::Two(get_extension)),
    (
        "IoRegisterDriverReinitialization",
        PASSIVE,
        Routine::Three(register_reinitialization::<false>),
    ),
    (
        "IoRegisterBootDriverReinitialization",
        PASSIVE,
        Routine::Three(register_reinitialization::<true>),
    ),
];

/// The timers of devices: their routines and contexts, by the devices' objects.
#[derive(Default)]
struct Timers(BTreeMap<u64, Timer>);

struct Timer {
    routine: u64,
    context: u64,
    /// What the device's object points to.
    memory: Block,
}

/// Gives a device its timer, or the timer another routine.
fn initialize_timer(context: &Context, device: u64, routine: u64, its_context: u64) -> u64 {
    let mut value: DeviceObject = context.read(device);
    let address = {
        let mut state = context.state();
        let timers = &mut state.get::<Timers>().0;
        let timer = timers.entry(device).or_insert_with(|| Timer {
            routine: 0,
            context: 0,
            memory: Block::zeroed(0x40),
        });
        (timer.routine, timer.context) = (routine, its_context);
        timer.memory.address()
    };
    value.timer = address;
    context.write(device, &value);
    NtStatus::SUCCESS.to_register()
}

/// Returns a timer's routine and context. Bugchecks if the device has no timer.
fn timer_of(context: &Context, device: u64) -> (u64, u64) {
    let found = {
        let mut state = context.state();
        let timer = state.get::<Timers>().0.get(&device);
        timer.map(|timer| (timer.routine, timer.context))
    };
    found.unwrap_or_else(|| {
        context.stop_for_misuse(&format!(
            "with 0x{device:016X}, which is not a device whose timer was initialized"
        ))
    })
}

fn start_timer(context: &Context, device: u64) -> u64 {
    let (routine, its_context) = timer_of(context, device);
    timers::start_for_device(context, device, routine, its_context);
    0
}

fn stop_timer(context: &Context, device: u64) -> u64 {
    timer_of(context, device);
    timers::stop(context, device);
    0
}

/// A device whose driver is told of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notified {
    /// The device's object.
    pub device: u64,
    /// Set if the driver is told after the file systems.
    pub is_last: bool,
}

/// The devices whose drivers are told of the shutdown, the last registered first.
#[derive(Default)]
struct Shutdown(VecDeque<Notified>);

/// `DO_SHUTDOWN_REGISTERED`.
const SHUTDOWN_REGISTERED: u32 = 0x800;

fn register_shutdown<const LAST: bool>(context: &Context, device: u64) -> u64 {
    let mut value: DeviceObject = context.read(device);
    value.flags |= SHUTDOWN_REGISTERED;
    context.write(device, &value);
    let notified = Notified { device, is_last: LAST };
    context.state().get::<Shutdown>().0.push_front(notified);
    NtStatus::SUCCESS.to_register()
}

fn unregister_shutdown(context: &Context, device: u64) -> u64 {
    let mut value: DeviceObject = context.read(device);
    value.flags &= !SHUTDOWN_REGISTERED;
    context.write(device, &value);
    let mut state = context.state();
    state.get::<Shutdown>().0.retain(|one| one.device != device);
    0
}

/// Returns the devices whose drivers are told of a shutdown, in the order in which they are.
pub fn notified_of_shutdown(context: &Context) -> Vec<Notified> {
    let mut state = context.state();
    let mut all: Vec<Notified> = state.get::<Shutdown>().0.iter().copied().collect();
    all.sort_by_key(|one| one.is_last);
    all
}

/// Forgets the timer and the notification of a device that is deleted.
pub fn device_deleted(context: &Context, device: u64) {
    timers::stop(context, device);
    power_states::forget(context, device);
    let mut state = context.state();
    state.get::<Timers>().0.remove(&device);
    state.get::<Shutdown>().0.retain(|one| one.device != device);
}

/// The extensions of drivers' objects, by the driver and by what identifies the extension.
#[derive(Default)]
struct Extensions(BTreeMap<(u64, u64), Block>);

/// Allocates memory that lives as long as the driver's object.
fn allocate_extension(context: &Context, driver: u64, id: u64, size: u64, result: u64) -> u64 {
    context.write(result, &0_u64);
    let Ok(size) = usize::try_from(low_half(size)) else {
        return NtStatus::INSUFFICIENT_RESOURCES.to_register();
    };
    if context.faults().take("ExAllocatePool2").is_some() {
        return NtStatus::INSUFFICIENT_RESOURCES.to_register();
    }
    let address = {
        let mut state = context.state();
        let extensions = &mut state.get::<Extensions>().0;
        if extensions.contains_key(&(driver, id)) {
            return NtStatus::OBJECT_NAME_COLLISION.to_register();
        }
        let Some(block) = Block::try_zeroed(size) else {
            return NtStatus::INSUFFICIENT_RESOURCES.to_register();
        };
        let address = block.address();
        extensions.insert((driver, id), block);
        address
    };
    context.write(result, &address);
    NtStatus::SUCCESS.to_register()
}

/// Returns the memory of an extension, or null.
fn get_extension(context: &Context, driver: u64, id: u64) -> u64 {
    let mut state = context.state();
    let extension = state.get::<Extensions>().0.get(&(driver, id));
    extension.map_or(0, Block::address)
}

/// The routines that run once all drivers have started: those of boot drivers first.
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
    driver: u64,
    routine: u64,
    its_context: u64,
) -> u64 {
    let one = Reinitialization { driver, routine, context: its_context, is_of_boot: BOOT };
    let mut state = context.state();
    state.get::<Reinitializations>().0.push_back(one);
    0
}

/// The offset of the number of calls in `DRIVER_EXTENSION`.
const COUNT: u64 = 16;

/// Calls the routines that a driver has registered in `DriverEntry`, and those that they register.
pub fn reinitialize(context: &Context, driver: u64) {
    /// The number of calls after which the driver counts as one that never ends.
    const LIMIT: u32 = 1000;
    let extension = context.read::<DriverObject>(driver).driver_extension;
    for _ in 0..LIMIT {
        let next = {
            let mut state = context.state();
            let all = &mut state.get::<Reinitializations>().0;
            let of_boot = all.iter().position(|one| one.driver == driver && one.is_of_boot);
            let any = || all.iter().position(|one| one.driver == driver);
            of_boot.or_else(any).and_then(|at| all.remove(at))
        };
        let Some(next) = next else {
            return;
        };
        let count: u32 = context.read(extension.wrapping_add(COUNT));
        let count = count.wrapping_add(1);
        context.write(extension.wrapping_add(COUNT), &count);
        let arguments = [driver, next.context, u64::from(count)];
        context.call_driver("the reinitialization routine", next.routine, arguments);
    }
    context.stop_for_misuse("in a reinitialization routine that always registers itself again");
}

/// Forgets what a driver registered for itself.
pub fn driver_gone(context: &Context, driver: u64) {
    let mut state = context.state();
    state.get::<Extensions>().0.retain(|(of, _), _| *of != driver);
    state.get::<Reinitializations>().0.retain(|one| one.driver != driver);
}
