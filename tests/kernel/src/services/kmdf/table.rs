//! The function table and its provided entries.

use std::collections::HashMap;

use super::{
    buffer, device, driver, file, io, lock,
    names::FUNCTIONS,
    object_routines, registry,
    state::framework::{Context, Entries},
    text_routines, timer, work_item,
};
use crate::{
    execution::routine::{Export, Routine},
    ground::{irql::Irql, rule::Rule},
};

/// The module name for the framework's function table. Its entries are not exports; drivers
/// receive the table when they are bound.
pub const MODULE: &str = "Wdf01000.sys";

/// The module name for routines that are neither exports nor in the table.
pub const INTERNAL: &str = "Wdf01000.sys (internal)";

/// The provided routines by module.
const PROVIDED: [Entries; 16] = [
    buffer::ENTRIES,
    driver::ENTRIES,
    device::init::ENTRIES,
    device::routines::ENTRIES,
    file::ENTRIES,
    io::halt::ENTRIES,
    io::power::ENTRIES,
    io::queue_routines::ENTRIES,
    io::request_routines::ENTRIES,
    io::retrieve::ENTRIES,
    lock::ENTRIES,
    object_routines::ENTRIES,
    registry::ENTRIES,
    text_routines::ENTRIES,
    timer::ENTRIES,
    work_item::ENTRIES,
];

/// Returns the provided routines by name.
pub fn provided() -> HashMap<&'static str, Routine<Context>> {
    PROVIDED.into_iter().flatten().copied().collect()
}

/// Returns every entry of the function table in its order. An entry that is not provided is a
/// routine that bugchecks.
pub fn entries() -> Vec<Export<Context>> {
    let provided = provided();
    FUNCTIONS
        .iter()
        .map(|(name, ceiling)| {
            let routine = provided.get(name).copied();
            (
                *name,
                *ceiling,
                routine.unwrap_or(Routine::Zero(not_provided)),
            )
        })
        .collect()
}

/// Returns the framework's routines that are not in its table.
pub fn internal() -> Vec<Export<Context>> {
    vec![(
        "FxDriverUnload",
        Irql::PASSIVE_LEVEL,
        Routine::One(driver::framework_unload),
    )]
}

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
