//! The Kernel-Mode Driver Framework, as a driver sees it: the function table,
//! framework objects, devices, queues, requests, timers, DPCs, work items, locks,
//! memory, strings and registry keys.

mod buffer;
mod device;
mod driver;
mod lock;
mod names;
mod object;
mod queue;
mod registry;
mod request;
mod timer;
mod wait;
mod work;

use std::collections::{HashMap, VecDeque};

use parking_lot::MutexGuard;

pub use self::{
    device::{add_device, find_device, power_cycle, remove_device, sddl, surprise_remove},
    driver::{bind, framework_unload, read_unicode_string, unbind, version_of},
    names::FUNCTIONS,
    object::Framework,
    registry::RegistryValue,
    request::{
        Completion, IoRequest, RequestKind, cancel, close_file, create_file, outcome, submit,
    },
    timer::{run_dpcs, run_timers},
    work::run_work,
};
use crate::{gateway::Export, machine::Shared, thread, verifier::Rule};

/// The framework's function table: every entry by name, those that are not
/// provided as a routine that says so and stops the machine.
pub fn entries() -> Vec<Export> {
    let provided: HashMap<&str, u64> = [
        buffer::ENTRIES,
        driver::ENTRIES,
        device::ENTRIES,
        lock::ENTRIES,
        object::ENTRIES,
        queue::ENTRIES,
        registry::ENTRIES,
        request::ENTRIES,
        timer::ENTRIES,
        work::ENTRIES,
    ]
    .into_iter()
    .flatten()
    .map(|(name, routine)| (*name, routine.address()))
    .collect();
    debug_assert!(
        provided
            .keys()
            .all(|name| FUNCTIONS.iter().any(|(known, _)| known == name)),
        "a routine is provided under a name that the table does not have"
    );
    let unprovided = not_provided as *const () as u64;
    FUNCTIONS
        .iter()
        .map(|(name, ceiling)| {
            let target = provided.get(name).copied().unwrap_or(unprovided);
            (*name, *ceiling, target)
        })
        .collect()
}

/// An entry of the table by its number of parameters, the globals included.
/// Arguments and results are registers: the high bytes of narrower ones are
/// not to be read.
#[derive(Clone, Copy)]
enum Routine {
    Two(extern "win64" fn(u64, u64) -> u64),
    Three(extern "win64" fn(u64, u64, u64) -> u64),
    Four(extern "win64" fn(u64, u64, u64, u64) -> u64),
    Five(extern "win64" fn(u64, u64, u64, u64, u64) -> u64),
    Six(extern "win64" fn(u64, u64, u64, u64, u64, u64) -> u64),
    Seven(extern "win64" fn(u64, u64, u64, u64, u64, u64, u64) -> u64),
}

impl Routine {
    fn address(self) -> u64 {
        match self {
            Self::Two(routine) => routine as *const () as u64,
            Self::Three(routine) => routine as *const () as u64,
            Self::Four(routine) => routine as *const () as u64,
            Self::Five(routine) => routine as *const () as u64,
            Self::Six(routine) => routine as *const () as u64,
            Self::Seven(routine) => routine as *const () as u64,
        }
    }
}

/// A module's part of the function table.
type Entries = &'static [(&'static str, Routine)];

extern "win64" fn not_provided() -> u64 {
    let thread = thread::current();
    let call = thread.call();
    thread.stop(
        Rule::NotProvided,
        format!(
            "{} was called from {}; the stand-in kernel does not provide it",
            call.name(),
            thread.shared().place(call.return_address)
        ),
    )
}

/// The machine's framework. The lock is never held over a call of the driver
/// nor over a stop.
pub fn lock_framework(shared: &Shared) -> MutexGuard<'_, Framework> {
    shared.framework.lock()
}

/// DPCs that wait for the IRQL to fall, by handle.
pub type DpcQueue = VecDeque<u64>;
