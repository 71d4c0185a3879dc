//! The function table and its provided entries.

use std::collections::HashMap;

use super::{
    binding, bus, creation, deferred, device, dma, driver, file_object, file_opening, interrupt,
    io, io_target, miniport, object, registry, resource_lists,
    state::framework::{Context, Entries},
    synchronization, wdm_request,
};
use crate::{
    execution::{
        declarations::{Declaration, framework},
        routine::{Routine, refused, routine},
    },
    ground::rule::Rule,
};

/// The module name for the framework's function table. Its entries are not exports; drivers
/// receive the table when they are bound.
pub const MODULE: &str = "Wdf01000.sys";

/// The module name for routines that are neither exported nor in the table.
pub const INTERNAL: &str = "Wdf01000.sys (internal)";

/// The provided routines, by module.
const PROVIDED: &[Entries] = &[
    bus::list::ENTRIES,
    bus::pdo::ENTRIES,
    bus::pdo_init::ENTRIES,
    bus::retrieve::ENTRIES,
    deferred::timer::ENTRIES,
    deferred::work_item::ENTRIES,
    device::capabilities::ENTRIES,
    creation::ENTRIES,
    device::device_state::ENTRIES,
    device::init::ENTRIES,
    device::interfaces::ENTRIES,
    miniport::ENTRIES,
    device::power_policy::ENTRIES,
    device::properties::ENTRIES,
    device::relations::ENTRIES,
    resource_lists::ENTRIES,
    device::routines::ENTRIES,
    device::settings::ENTRIES,
    device::wdm::ENTRIES,
    device::wmi::ENTRIES,
    dma::routines::ENTRIES,
    binding::ENTRIES,
    driver::verifier::ENTRIES,
    driver::version::ENTRIES,
    file_object::ENTRIES,
    file_opening::ENTRIES,
    interrupt::routines::ENTRIES,
    io::halt::ENTRIES,
    io::power::ENTRIES,
    io::queue_routines::ENTRIES,
    io::request_routines::ENTRIES,
    io::retrieve::ENTRIES,
    io::wdm_dispatch::ENTRIES,
    wdm_request::ENTRIES,
    io_target::format::ENTRIES,
    io_target::open::ENTRIES,
    io_target::requests::ENTRIES,
    io_target::routines::ENTRIES,
    io_target::synchronous::ENTRIES,
    io_target::usb::ENTRIES,
    object::collection::ENTRIES,
    object::memory::ENTRIES,
    object::routines::ENTRIES,
    object::string::ENTRIES,
    registry::assign::ENTRIES,
    registry::keys::ENTRIES,
    registry::query::ENTRIES,
    synchronization::lock::ENTRIES,
    synchronization::presentation::ENTRIES,
];

/// Returns the provided routines by name.
pub fn provided() -> HashMap<&'static str, Routine<Context>> {
    let all = PROVIDED.iter().copied().flatten();
    all.map(|routine| (routine.name(), *routine)).collect()
}

/// Returns all entries of the function table in order. The entry of a function that is not provided
/// bugchecks.
pub fn entries() -> Vec<Routine<Context>> {
    let provided = provided();
    let entry = |declaration: &'static Declaration| {
        provided
            .get(declaration.name)
            .copied()
            .unwrap_or_else(|| refused(declaration, not_provided))
    };
    framework().into_iter().map(entry).collect()
}

/// The framework's routines that are not in its table.
pub const INTERNAL_ENTRIES: Entries = &[routine("FxDriverUnload", binding::framework_unload)];

fn not_provided(context: &Context) -> u64 {
    context.stop(
        Rule::NotProvided,
        format!(
            "{MODULE}!{} was called from {}; the stand-in kernel does not provide it",
            context.call().name,
            context.caller()
        ),
    )
}
