//! The exports of ntoskrnl.exe, except those of ETW. `docs/reference/kernel-exports.md` lists the
//! sources of the common routines' IRQL limits.

use super::{
    access, bitmaps, bugcheck_callbacks, callbacks,
    context::{Context, Entries},
    crt, crt_memory, crt_numbers, crt_text, dpc, events, exceptions, files, frames, handles,
    identifiers,
    io::{
        build, cancel, device_queues, devices, error_log, irp, lifetime, pointers, remove_locks,
        safe_queues, stacks,
    },
    kernel_queues, mdl, mutexes, named_events, notifications, object_security, pages,
    plug_and_play, pool, power_framework, power_settings, print, processes, processors, registry,
    resources, rtl, run_once, security, shared_locks, spin_locks, strings, system,
    tables::{avl, splay},
    texts, thread_creation, thread_objects, threads, timer, times, utf8, versions,
    watcher_routines, wmi, work_items,
};
use crate::execution::routine::Export;

/// The module's name.
pub const MODULE: &str = "ntoskrnl.exe";

/// The exports by module.
const ALL: &[Entries] = &[
    access::ENTRIES,
    avl::ENTRIES,
    bitmaps::ENTRIES,
    bugcheck_callbacks::ENTRIES,
    build::ENTRIES,
    callbacks::ENTRIES,
    cancel::ENTRIES,
    crt::ENTRIES,
    crt_memory::ENTRIES,
    crt_numbers::ENTRIES,
    crt_text::ENTRIES,
    device_queues::ENTRIES,
    devices::ENTRIES,
    dpc::ENTRIES,
    error_log::ENTRIES,
    events::ENTRIES,
    exceptions::ENTRIES,
    files::ENTRIES,
    frames::ENTRIES,
    handles::ENTRIES,
    identifiers::ENTRIES,
    irp::ENTRIES,
    kernel_queues::ENTRIES,
    lifetime::ENTRIES,
    mdl::ENTRIES,
    mutexes::ENTRIES,
    named_events::ENTRIES,
    notifications::ENTRIES,
    object_security::ENTRIES,
    pages::ENTRIES,
    pointers::ENTRIES,
    plug_and_play::changes::ENTRIES,
    plug_and_play::interfaces::ENTRIES,
    plug_and_play::keys::ENTRIES,
    plug_and_play::reports::ENTRIES,
    plug_and_play::power::ENTRIES,
    plug_and_play::properties::ENTRIES,
    pool::ENTRIES,
    power_framework::routines::ENTRIES,
    power_settings::ENTRIES,
    print::ENTRIES,
    processes::ENTRIES,
    processors::ENTRIES,
    registry::keys::ENTRIES,
    registry::relative::ENTRIES,
    registry::values::ENTRIES,
    remove_locks::ENTRIES,
    resources::ENTRIES,
    rtl::ENTRIES,
    run_once::ENTRIES,
    safe_queues::ENTRIES,
    security::ENTRIES,
    shared_locks::ENTRIES,
    spin_locks::ENTRIES,
    splay::ENTRIES,
    stacks::ENTRIES,
    strings::ENTRIES,
    system::ENTRIES,
    texts::ENTRIES,
    thread_objects::ENTRIES,
    thread_creation::ENTRIES,
    threads::ENTRIES,
    timer::ENTRIES,
    times::ENTRIES,
    utf8::ENTRIES,
    versions::ENTRIES,
    watcher_routines::ENTRIES,
    wmi::ENTRIES,
    work_items::ENTRIES,
];

/// Returns the exports. The IRQL limits come from the annotations in the WDK headers or, if there
/// are none, from the documentation.
pub fn exports() -> Vec<Export<Context>> {
    ALL.iter().copied().flatten().copied().collect()
}
