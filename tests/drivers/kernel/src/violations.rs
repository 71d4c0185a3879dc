//! Actions that drivers must not take.

use core::ffi::c_void;

use etw_driver_support::at_irql;
use wdk_sys::{PDEVICE_OBJECT, PVOID};

use crate::{
    activities, addresses,
    call::{NULL, call, pointer, with_device},
    dispatcher::{Object, delay, wait, wait_for},
    kernel_queues, lifetime, power_framework, power_settings, registry, resources, tables, threads,
    timers::dpc_routine,
    variables, watchers, wmi,
};

/// The services that break a rule.
pub const SERVICES: &[(&str, fn())] = &[
    ("fault-wait-forever", wait_forever),
    ("fault-wait-raised", wait_raised),
    ("fault-event", uninitialized_event),
    ("fault-mutex", foreign_mutex),
    ("fault-mutex-limit", mutex_limit),
    ("fault-executable-pool", executable_pool),
    ("fault-semaphore", semaphore),
    ("fault-spin-lock-twice", spin_lock_twice),
    ("fault-spin-lock", spin_lock),
    ("fault-fast-mutex-twice", fast_mutex_twice),
    ("fault-close", close),
    ("fault-dereference", dereference),
    ("fault-dpc", uninitialized_dpc),
    ("fault-timer-freed", timer_freed),
    ("fault-timer-left", timer_left),
    ("fault-thread-left", thread_left),
    ("fault-work-item-twice", work_item_twice),
    ("fault-work-item-impersonates", work_item_impersonates),
    ("fault-region", region),
    ("fault-thread", thread),
    ("fault-print", print),
    ("fault-assert", assertion),
    ("fault-break", break_point),
    ("fault-probe-stack", addresses::probe_stack),
    ("fault-probe-misaligned", addresses::probe_misaligned),
    ("fault-probe-end", addresses::probe_end),
    ("fault-probe-nothing", addresses::probe_nothing),
    ("fault-raise", addresses::raise),
    ("fault-pageable", addresses::pageable_raised),
    ("fault-pages-left", addresses::pages_left),
    ("fault-shared-twice", kernel_queues::owned_twice),
    ("fault-shared", kernel_queues::not_shared),
    ("fault-queue-forever", kernel_queues::waits_forever),
    ("fault-device-timer", lifetime::timer),
    ("fault-detach", lifetime::detach),
    ("fault-watcher-left", watchers::left),
    ("fault-watcher-unknown", watchers::unknown_handles),
    ("fault-resource", resources::not_acquired),
    ("fault-resource-freed", resources::freed),
    ("fault-resource-device", resources::in_device),
    ("fault-resource-upgrade", resources::upgrade),
    ("fault-bitmap", resources::beyond),
    ("fault-table", tables::node_freed),
    ("fault-recorder-left", variables::recorder_left),
    ("fault-registry-irql", registry_raised),
    ("fault-registry-link", registry::keys::link),
    ("fault-registry-bypass", registry::callbacks::provide_nothing),
    ("fault-registry-unregister", registry::callbacks::unregister_inside),
    ("fault-registry-name", registry::keys::name_gone),
    ("fault-registry-unchecked", registry::query_table::unchecked),
    ("fault-driver-key", driver_key),
    ("fault-activity-request", activities::wrong_request),
    ("fault-activity-raised", activities::thread_at_dispatch),
    ("fault-wmi-left", wmi::left),
    ("fault-wmi-object", wmi::wrong_object),
    ("fault-wmi-release", wmi::release_left),
    ("fault-wmi-no-block", wmi::no_block),
    ("fault-power-setting-left", power_settings::left),
    ("fault-component-idle", power_framework::idle_without_activation),
    ("fault-component-answer", power_framework::answer_without_question),
    ("fault-component-left", power_framework::left),
    ("fault-component-twice", power_framework::registered_twice),
];

fn wait_forever() {
    let mut event = Object::new();
    call!(KeInitializeEvent, event.at(), 0, 0);
    wait(event.at());
}

fn wait_raised() {
    let mut event = Object::new();
    call!(KeInitializeEvent, event.at(), 0, 1);
    let mut timeout = 0_i64;
    let timeout = &raw mut timeout;
    // If the routine does not wait, it is allowed to check the object.
    at_irql(2, || {
        call!(KeWaitForSingleObject, event.at(), 0, 0, 0, timeout);
        call!(KeWaitForSingleObject, event.at(), 0, 0, 0, NULL);
    });
}

fn uninitialized_event() {
    let mut event = Object::new();
    call!(KeSetEvent, event.at(), 0, 0);
}

fn foreign_mutex() {
    let mut mutex = Object::new();
    call!(KeInitializeMutex, mutex.at(), 0);
    wait(mutex.at());
    let thread = threads::start(release, mutex.at());
    wait_for(thread, -10_000);
}

/// Waits for a mutex that the thread has acquired the maximum number of times.
fn mutex_limit() {
    let mut mutex = Object::new();
    call!(KeInitializeMutex, mutex.at(), 0);
    wait(mutex.at());
    mutex.0[0] = mutex.0[0] & 0xFFFF_FFFF | 0x8000_0000 << 32;
    wait(mutex.at());
}

/// Calls code in `NonPagedPool`.
fn executable_pool() {
    let code = call!(ExAllocatePoolWithTag, 0, 64, 0x7473_6554);
    // SAFETY: the kernel stops the driver before the first instruction.
    let code = unsafe { core::mem::transmute::<PVOID, unsafe extern "C" fn()>(code) };
    // SAFETY: as above.
    unsafe { code() };
}

unsafe extern "C" fn release(mutex: *mut c_void) {
    call!(KeReleaseMutex, mutex, 0);
}

fn semaphore() {
    let mut semaphore = Object::new();
    call!(KeInitializeSemaphore, semaphore.at(), 1, 1);
    call!(KeReleaseSemaphore, semaphore.at(), 0, 1, 0);
}

fn spin_lock_twice() {
    let mut lock = 0_u64;
    call!(KeAcquireSpinLockRaiseToDpc, &mut lock);
    call!(KeAcquireSpinLockRaiseToDpc, &mut lock);
}

fn spin_lock() {
    let mut lock = 0_u64;
    at_irql(2, || {
        call!(KeReleaseSpinLock, &mut lock, 2);
    });
}

fn fast_mutex_twice() {
    let mut mutex = Object::new();
    call!(KeInitializeGuardedMutex, mutex.at());
    call!(KeAcquireGuardedMutex, mutex.at());
    call!(KeAcquireGuardedMutex, mutex.at());
}

fn close() {
    call!(ZwClose, pointer(0x1234));
}

fn registry_raised() {
    let mut handle = 0_u64;
    at_irql(2, || {
        call!(ZwFlushKey, &mut handle);
    });
}

fn driver_key() {
    let (mut key, mut memory) = (0_u64, [0_u64; 64]);
    call!(IoOpenDriverRegistryKey, &mut memory, 0, 1, 0, &mut key);
}

fn dereference() {
    let mut memory = Object::new();
    call!(ObfDereferenceObject, memory.at());
}

fn uninitialized_dpc() {
    let mut dpc = Object::new();
    call!(KeInsertQueueDpc, dpc.at(), NULL, NULL);
}

fn timer_freed() {
    let block = call!(ExAllocatePool2, 0x40, 64, 0x7473_6574);
    call!(KeInitializeTimer, block);
    call!(KeSetTimer, block, -10_000_i64, NULL);
    call!(ExFreePool, block);
}

/// A timer and its DPC in the image.
static mut LEFT: [Object; 2] = [Object::new(), Object::new()];

fn timer_left() {
    let [timer, dpc] = [0, 64].map(|offset| (&raw mut LEFT).wrapping_byte_add(offset));
    call!(KeInitializeDpc, dpc, Some(dpc_routine), pointer(2));
    call!(KeInitializeTimer, timer);
    call!(KeSetTimer, timer, -10_000_000_000_i64, dpc);
}

fn thread_left() {
    let thread = threads::start(sleep_long, NULL);
    call!(ObfDereferenceObject, thread);
}

unsafe extern "C" fn sleep_long(_context: *mut c_void) {
    delay(-10_000_000_000);
}

const unsafe extern "C" fn nothing(_device: PDEVICE_OBJECT, _context: PVOID) {}

fn work_item_twice() {
    with_device(|device| {
        let item = call!(IoAllocateWorkItem, device);
        for _ in 0..2 {
            call!(IoQueueWorkItem, item, Some(nothing), 1, NULL);
        }
    });
}

unsafe extern "C" fn impersonate(_device: PDEVICE_OBJECT, _context: PVOID) {
    let token = call!(PsReferencePrimaryToken, call!(PsGetCurrentProcess));
    call!(PsImpersonateClient, call!(KeGetCurrentThread), token, 0, 0, 2);
    call!(PsDereferencePrimaryToken, token);
}

fn work_item_impersonates() {
    with_device(|device| {
        let item = call!(IoAllocateWorkItem, device);
        call!(IoQueueWorkItem, item, Some(impersonate), 1, NULL);
        delay(-10_000);
        call!(IoFreeWorkItem, item);
    });
}

fn region() {
    call!(KeLeaveCriticalRegion);
}

fn thread() {
    let thread = threads::start(write_null, NULL);
    wait(thread);
}

unsafe extern "C" fn write_null(_context: *mut c_void) {
    call!(KeSetEvent, pointer(0x10), 0, 0);
}

fn print() {
    let text = [u16::from(b'x'), 0];
    at_irql(2, || {
        call!(DbgPrint, c"%s".as_ptr(); c"fine".as_ptr() as u64);
        call!(DbgPrint, c"%ws".as_ptr(); text.as_ptr() as u64);
    });
}

fn assertion() {
    call!(RtlAssert, c"1 == 2".as_ptr(), c"file.c".as_ptr(), 7, NULL);
}

fn break_point() {
    call!(DbgBreakPoint);
}
