//! A driver that behaves correctly or incorrectly, depending on its service name.
//!
//! Tests load it under the name of a fault, and check that the stand-in kernel's verifier reports
//! the fault, or under the name of an observation, and check the output. The driver calls ETW
//! directly, because wdk-etw prevents these mistakes.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]
#![allow(
    clippy::missing_const_for_fn,
    reason = "the functions must run in the driver, not in the compiler"
)]

extern crate alloc;
mod common;
mod etw;
mod findings;

use core::{
    ffi::c_void,
    mem::MaybeUninit,
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use etw_driver_support::{Service, check, config, create_driver, nt, wdf};
use wdk_sys::{
    DRIVER_OBJECT, LPCGUID, NT_SUCCESS, NTSTATUS, PEVENT_FILTER_DESCRIPTOR, POOL_FLAG_NON_PAGED,
    REGHANDLE, STATUS_SUCCESS, WDF_DRIVER_CONFIG, WDFDRIVER,
};

use crate::common::{PROVIDER, Run, TAG, create_lock, end_process};

/// The registration to end at unload, or 0.
static REGISTRATION: AtomicU64 = AtomicU64::new(0);

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    let mut config = WDF_DRIVER_CONFIG { EvtDriverUnload: Some(unload), ..config() };
    if service.is(findings::WITH_A_DEVICE) {
        config.EvtDriverDeviceAdd = Some(findings::add_device);
    }
    check!(create_driver(driver, service, config, None));
    let tables = [SERVICES, findings::SERVICES, etw::SERVICES];
    match tables.into_iter().find_map(|table| service.find(table)) {
        Some(run) => run(),
        None => REGISTRATION.store(register(), Ordering::Relaxed),
    }
    STATUS_SUCCESS
}

const SERVICES: &[Run] = &[
    // The report must name this function. A tail call would omit the function.
    ("leaked-pool", || {
        core::hint::black_box(allocate());
    }),
    ("freed-twice", free_twice),
    ("left-registered", || {
        register();
    }),
    ("registered-at-dispatch", register_at_dispatch),
    ("wrong-handle", use_wrong_handle),
    ("deleted-object", use_a_deleted_object),
    ("stale-handle", use_stale_handle),
    ("not-provided", call_what_is_not_provided),
    ("read-null", read_null),
    ("write-at-dispatch", write_at_dispatch),
    ("call-null", call_null),
    ("copy-from-nowhere", copy_from_nowhere),
    ("divide", divide),
    ("illegal", illegal),
    ("stack", || REGISTRATION.store(use_up_the_stack(1), Ordering::Relaxed)),
    ("large-frame", || REGISTRATION.store(use_a_frame::<LARGE>(), Ordering::Relaxed)),
    ("frame-beyond-the-stack", || {
        REGISTRATION.store(use_a_frame::<BEYOND_THE_STACK>(), Ordering::Relaxed);
    }),
    ("exit", exit),
    ("kill", kill),
    ("exit-after-events", || after_events(exit)),
    ("kill-after-events", || after_events(kill)),
    ("corrupt-after-events", || after_events(corrupt)),
    ("corrupt", corrupt),
    ("panic", || panic!("as the service name says")),
];

fn after_events(run: fn()) {
    etw::write_events_and_print(200);
    run();
}

/// Allocates a pool block.
fn allocate() -> *mut core::ffi::c_void {
    nt!(ExAllocatePool2, POOL_FLAG_NON_PAGED, 64, TAG)
}

fn free_twice() {
    let block = allocate();
    nt!(ExFreePool, block);
    nt!(ExFreePool, block);
}

/// The enable callback: prints its arguments.
extern "C" fn notified(
    source: LPCGUID,
    code: u32,
    level: u8,
    match_any: u64,
    match_all: u64,
    filter: PEVENT_FILTER_DESCRIPTOR,
    _context: *mut c_void,
) {
    // SAFETY: ETW passes a valid pointer.
    let source = unsafe { (*source).Data1 };
    // SAFETY: ETW passes null or a valid descriptor.
    let filter = unsafe { filter.as_ref() }.map_or(0, |filter| filter.Size);
    wdk::println!(
        "code {code} level {level} any {match_any:x} all {match_all:x} source {source:x} filter {filter}"
    );
}

/// Registers the provider and returns the handle, or 0.
fn register() -> REGHANDLE {
    let mut handle = 0;
    let status =
        nt!(EtwRegister, &raw const PROVIDER, Some(notified), ptr::null_mut(), &raw mut handle);
    if NT_SUCCESS(status) { handle } else { 0 }
}

fn register_at_dispatch() {
    let lock = create_lock();
    wdf!(WdfSpinLockAcquire, lock);
    // The lock raises the IRQL to DISPATCH_LEVEL, where EtwRegister must not be called.
    let handle = register();
    wdf!(WdfSpinLockRelease, lock);
    REGISTRATION.store(handle, Ordering::Relaxed);
}

fn use_wrong_handle() {
    let lock = create_lock();
    // The handle has the wrong type, which is the fault.
    let _was_set = wdf!(WdfTimerStart, lock.cast(), 0);
}

fn use_a_deleted_object() {
    let lock = create_lock();
    wdf!(WdfObjectDelete, lock.cast());
    // The object is deleted, which is the fault.
    wdf!(WdfSpinLockAcquire, lock);
}

fn use_stale_handle() {
    let handle = register();
    let _status = nt!(EtwUnregister, handle);
    // The handle is released, which is the fault.
    let _status = nt!(EtwUnregister, handle);
}

fn call_what_is_not_provided() {
    let _count = wdf!(WdfIoResourceListGetCount, ptr::null_mut());
}

#[inline(never)]
fn read_null() {
    // SAFETY: violated on purpose: this is the fault.
    unsafe { ptr::null::<u32>().read_volatile() };
}

#[inline(never)]
fn write_at_dispatch() {
    let lock = create_lock();
    wdf!(WdfSpinLockAcquire, lock);
    // SAFETY: violated on purpose: this is the fault.
    unsafe { ptr::without_provenance_mut::<u8>(0xDEAD_0000).write_volatile(1) };
}

#[inline(never)]
fn call_null() {
    let nowhere = core::hint::black_box(8_usize);
    // SAFETY: violated on purpose: this is the fault.
    let nowhere = unsafe { core::mem::transmute::<usize, extern "C" fn()>(nowhere) };
    nowhere();
}

fn copy_from_nowhere() {
    let length = core::hint::black_box(600_usize);
    let mut bytes = [0_u8; 600];
    let nowhere = core::hint::black_box(ptr::without_provenance::<u8>(0x1000));
    // SAFETY: violated on purpose: this is the fault.
    unsafe { ptr::copy_nonoverlapping(nowhere, bytes.as_mut_ptr(), length) };
    core::hint::black_box(&bytes);
}

#[inline(never)]
fn divide() {
    // SAFETY: violated on purpose: the division by zero is the fault.
    unsafe {
        core::arch::asm!("xor ecx, ecx", "div ecx", out("rax") _, out("rcx") _, out("rdx") _);
    }
}

#[inline(never)]
fn illegal() {
    // SAFETY: violated on purpose: this is the fault.
    unsafe { core::arch::asm!("ud2") };
}

/// Ends the process with a Linux system call whose number Windows code would not use.
#[inline(never)]
fn exit() {
    allocate();
    // SAFETY: violated on purpose: the process does not return.
    unsafe { core::arch::asm!("syscall", in("rax") 231, in("rdi") 0, options(noreturn)) };
}

/// Ends the process with a signal that no process can handle.
#[inline(never)]
fn kill() {
    allocate();
    end_process();
}

/// Overwrites the memory around the thread's control block. The memory belongs to the test program.
#[inline(never)]
fn corrupt() {
    let block: u64;
    // SAFETY: in the program's threads, the control block begins with its own address.
    unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) block) };
    // The range contains the block, and the program's thread-local variables below it.
    for word in 0..320_u64 {
        let at = block.wrapping_add(64).wrapping_sub(word.wrapping_mul(8));
        // SAFETY: violated on purpose: this is the fault.
        unsafe { ptr::with_exposed_provenance_mut::<u64>(at as usize).write_volatile(u64::MAX) };
    }
    core::hint::black_box(allocate());
}

/// Calls itself until the stack overflows.
#[inline(never)]
fn use_up_the_stack(depth: u64) -> u64 {
    let frame = core::hint::black_box([depth; 64]);
    if depth == 0 {
        return 0;
    }
    let deeper = use_up_the_stack(depth.wrapping_add(1));
    deeper.wrapping_add(core::hint::black_box(&frame).len() as u64)
}

/// A size of local variables, in bytes, for which the compiler probes the stack.
const LARGE: usize = 8 << 10;
/// A size of local variables, in bytes, that exceeds a kernel stack.
const BEYOND_THE_STACK: usize = 1 << 20;

/// Has local variables of this size, and uses only the first and the last byte.
#[inline(never)]
fn use_a_frame<const SIZE: usize>() -> u64 {
    let mut frame = MaybeUninit::<[u8; SIZE]>::uninit();
    let start: *mut u8 = core::hint::black_box(frame.as_mut_ptr().cast());
    let end = start.wrapping_add(SIZE - 1);
    // SAFETY: the byte is the first of the frame.
    unsafe { start.write_volatile(1) };
    // SAFETY: the byte is the last of the frame.
    unsafe { end.write_volatile(2) };
    // SAFETY: the byte was written above.
    let first = unsafe { start.read_volatile() };
    // SAFETY: the byte was written above.
    let last = unsafe { end.read_volatile() };
    u64::from(first) + u64::from(last) - 3
}

/// `EvtDriverUnload`.
extern "C" fn unload(_driver: WDFDRIVER) {
    findings::unload();
    etw::unregister();
    let handle = REGISTRATION.swap(0, Ordering::Relaxed);
    if handle != 0 {
        let _status = nt!(EtwUnregister, handle);
    }
}
