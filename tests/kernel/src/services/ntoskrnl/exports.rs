//! The exports of ntoskrnl.exe, except those of ETW. `docs/reference/kernel-exports.md` lists the
//! sources of the common routines' IRQL limits.

use super::{
    callbacks,
    context::{Context, Entries},
    crt, dpc, events, files, handles,
    io::{cancel, devices, irp},
    mdl, mutexes, named_events, notifications, plug_and_play, pool, print, processors, registry,
    rtl, spin_locks, strings, system, thread_objects, threads, timer, work_items,
};
use crate::execution::routine::Export;

/// The module's name.
pub const MODULE: &str = "ntoskrnl.exe";

/// The exports by module.
const ALL: &[Entries] = &[
    callbacks::ENTRIES,
    cancel::ENTRIES,
    crt::ENTRIES,
    devices::ENTRIES,
    dpc::ENTRIES,
    events::ENTRIES,
    files::ENTRIES,
    handles::ENTRIES,
    irp::ENTRIES,
    mdl::ENTRIES,
    mutexes::ENTRIES,
    named_events::ENTRIES,
    notifications::ENTRIES,
    plug_and_play::interfaces::ENTRIES,
    plug_and_play::keys::ENTRIES,
    pool::ENTRIES,
    print::ENTRIES,
    processors::ENTRIES,
    registry::keys::ENTRIES,
    registry::relative::ENTRIES,
    registry::values::ENTRIES,
    rtl::ENTRIES,
    spin_locks::ENTRIES,
    strings::ENTRIES,
    system::ENTRIES,
    thread_objects::ENTRIES,
    threads::ENTRIES,
    timer::ENTRIES,
    work_items::ENTRIES,
];

/// Returns the exports. The IRQL limits come from the annotations in the WDK headers or, if there
/// are none, from the documentation.
pub fn exports() -> Vec<Export<Context>> {
    ALL.iter().copied().flatten().copied().collect()
}
