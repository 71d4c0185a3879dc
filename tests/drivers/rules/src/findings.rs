//! Bugs whose reports must name the line with the bug.
//!
//! Each line with a bug ends with the comment `BUG:` and the service's name, so that the tests find
//! the line.

use alloc::boxed::Box;
use core::{
    arch::asm,
    hint::black_box,
    mem::MaybeUninit,
    ptr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use etw_driver_support::{check, nt, sized, wdf};
use wdk_sys::{
    LARGE_INTEGER, NTSTATUS, POOL_FLAG_NON_PAGED, POOL_FLAG_PAGED, PWDFDEVICE_INIT,
    STATUS_INSUFFICIENT_RESOURCES, STATUS_SUCCESS, WDF_IO_QUEUE_CONFIG, WDF_NO_OBJECT_ATTRIBUTES,
    WDFDEVICE, WDFDRIVER, WDFQUEUE, WDFREQUEST,
};

use crate::{
    common::{PROVIDER, Run, TAG, create_lock, end_process},
    etw::write_events_and_print,
};

/// The service whose driver has a device.
pub const WITH_A_DEVICE: &str = "double-completion";

/// The bugs, by service name.
pub const SERVICES: &[Run] = &[
    ("leak", leak),
    ("forgotten-unregister", forget_to_unregister),
    ("pageable-data", use_pageable_data),
    ("user-pointer", write_from_user_space),
    (WITH_A_DEVICE, || ()),
    ("wait-at-dispatch", wait_at_dispatch),
    ("lock-held", keep_the_lock),
    ("use-after-free", use_after_free),
    ("overrun", overrun),
    ("stack-overflow", overflow_the_stack),
    ("endless-loop", run_forever),
    ("fast-fail", fail_fast),
    ("lock-then-irql", raise_after_a_lock),
    ("smashed-stack", smash_the_stack),
    ("not-canonical", write_to_no_address),
    ("not-canonical-at-dispatch", write_to_no_address_at_dispatch),
    ("privileged", read_a_control_register),
    ("kill-after-box", kill_after_a_box),
    ("bugcheck-in-a-large-frame", bugcheck_in_a_large_frame),
    ("kill-after-many-events", kill_after_many_events),
    ("leak-after-many-events", leak_after_many_events),
    ("unload-fault", || {
        FAULT_IN_UNLOAD.store(true, Ordering::Relaxed);
    }),
];

#[inline(never)]
fn leak() {
    let kept = Box::new(black_box([7_u64; 16])); // BUG: leak
    black_box(Box::leak(kept));
}

#[inline(never)]
fn forget_to_unregister() {
    let mut handle = 0;
    let handle_place = &raw mut handle;
    let status = nt!(EtwRegister, &raw const PROVIDER, None, ptr::null_mut(), handle_place); // BUG: forgotten-unregister
    black_box((status, handle));
}

/// Acquires a new spin lock, which raises the IRQL to `DISPATCH_LEVEL`.
fn raise() -> wdk_sys::WDFSPINLOCK {
    let lock = create_lock();
    wdf!(WdfSpinLockAcquire, lock);
    lock
}

#[inline(never)]
fn use_pageable_data() {
    let block = nt!(ExAllocatePool2, POOL_FLAG_PAGED, 64, TAG).cast::<u8>();
    let _lock = raise();
    // SAFETY: violated on purpose: the memory is pageable.
    let byte = unsafe { block.read_volatile() }; // BUG: pageable-data
    black_box(byte);
}

#[inline(never)]
fn write_from_user_space() {
    let mut handle = 0;
    let status = nt!(EtwRegister, &raw const PROVIDER, None, ptr::null_mut(), &raw mut handle);
    let event = wdk_sys::EVENT_DESCRIPTOR {
        Id: 1,
        Level: 4,
        Keyword: 1,
        ..wdk_sys::EVENT_DESCRIPTOR::default()
    };
    let mut data = [0x1_0000_u64, 8];
    let data = data.as_mut_ptr().cast();
    let none = ptr::null();
    // The data are at a user-mode address.
    let written = nt!(EtwWriteEx, handle, &raw const event, 0, 0, none, none, 1, data); // BUG: user-pointer
    black_box((status, written));
    let _status = nt!(EtwUnregister, handle);
}

#[inline(never)]
fn wait_at_dispatch() {
    let _lock = raise();
    let mut interval = LARGE_INTEGER { QuadPart: -10_000 };
    // The IRQL is too high.
    let status = nt!(KeDelayExecutionThread, 0, 0, &raw mut interval); // BUG: wait-at-dispatch
    black_box(status);
}

#[inline(never)]
fn keep_the_lock() {
    let lock = create_lock();
    wdf!(WdfSpinLockAcquire, lock); // BUG: lock-held
    black_box(lock);
}

/// Allocates 24 bytes of non-paged pool.
fn block() -> *mut u8 {
    nt!(ExAllocatePool2, POOL_FLAG_NON_PAGED, 24, TAG).cast()
}

#[inline(never)]
fn use_after_free() {
    let block = block();
    nt!(ExFreePool, block.cast());
    // SAFETY: violated on purpose: the block is free.
    let byte = unsafe { block.read_volatile() }; // BUG: use-after-free
    black_box(byte);
}

#[inline(never)]
fn overrun() {
    let block = block();
    for at in 0..40 {
        // SAFETY: violated on purpose: the block is 24 bytes long.
        let byte = unsafe { block.add(at) };
        // SAFETY: as above.
        unsafe { byte.write_volatile(1) }; // BUG: overrun
    }
    nt!(ExFreePool, block.cast());
}

/// The depth of the recursion.
static DEPTH: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn overflow_the_stack() {
    fn deeper(depth: u64) -> u64 {
        // When a frame does not fit, less than 1 KiB of the stack is left.
        let frame = MaybeUninit::<[u64; 100]>::uninit();
        let below = if depth == 0 { 0 } else { deeper(depth + 1) }; // BUG: stack-overflow
        below + black_box(&frame).as_ptr().addr() as u64
    }
    DEPTH.store(deeper(1), Ordering::Relaxed);
}

#[inline(never)]
fn run_forever() {
    while black_box(true) {} // BUG: endless-loop
}

#[inline(never)]
fn fail_fast() {
    /// `FAST_FAIL_STACK_COOKIE_CHECK_FAILURE`.
    const STACK_COOKIE: u32 = 2;
    // SAFETY: the instruction ends the system, as a failed check does.
    unsafe { asm!("int 0x29", in("ecx") STACK_COOKIE) }; // BUG: fast-fail
}

/// Acquires and releases a lock, which lowers the IRQL again, and then raises the IRQL.
#[inline(never)]
fn raise_after_a_lock() {
    const APC_LEVEL: u8 = 1;
    let lock = raise();
    wdf!(WdfSpinLockRelease, lock);
    // Nothing lowers the IRQL.
    let before = nt!(KfRaiseIrql, APC_LEVEL); // BUG: lock-then-irql
    black_box(before);
}

/// Overwrites its own frame, its return address and its callers' frames, and returns.
#[inline(never)]
fn smash_the_stack() {
    // SAFETY: violated on purpose: the writes also overwrite the callers' frames.
    unsafe {
        asm!(
            "mov rax, 0x4141414141",
            "mov ecx, 12",
            "2:",
            "mov [rsp + 8 * rcx - 8], rax",
            "dec ecx",
            "jnz 2b",
            "ret",
            options(noreturn)
        );
    }
}

/// A non-canonical address.
const NOT_CANONICAL: usize = 0x8000_0000_0000_1230;

#[inline(never)]
fn write_to_no_address() {
    // SAFETY: violated on purpose: the address is not canonical.
    unsafe { ptr::without_provenance_mut::<u8>(NOT_CANONICAL).write_volatile(1) }; // BUG: not-canonical
}

#[inline(never)]
fn write_to_no_address_at_dispatch() {
    let _lock = raise();
    write_to_no_address();
}

/// Reads a processor register, which a driver is allowed to do.
#[inline(never)]
fn read_a_control_register() {
    let value: u64;
    // SAFETY: the instruction has no other effect.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack)) }; // BUG: privileged
    black_box(value);
}

/// Allocates through a library, and ends the process.
#[inline(never)]
fn kill_after_a_box() {
    #[inline(never)]
    fn nested() {
        // The size differs from other functions' sizes, because the linker merges equal functions.
        let kept = Box::new(black_box([7_u64; 24])); // BUG: kill-after-box
        black_box(Box::leak(kept));
    }
    nested();
    end_process();
}

#[inline(never)]
fn bugcheck_in_a_large_frame() {
    let frame = MaybeUninit::<[u8; 10 << 10]>::uninit();
    let start: *mut u8 = black_box(frame.as_ptr().cast_mut().cast());
    // SAFETY: the byte is the first of the frame.
    unsafe { start.write_volatile(1) };
    // SAFETY: violated on purpose: the address is null.
    let byte = unsafe { ptr::null::<u8>().read_volatile() };
    black_box((byte, start));
}

#[inline(never)]
fn kill_after_many_events() {
    write_events_and_print(5000);
    end_process();
}

#[inline(never)]
fn leak_after_many_events() {
    write_events_and_print(5000);
    let kept = Box::new(black_box([7_u64; 16])); // BUG: leak-after-many-events
    black_box(Box::leak(kept));
}

/// Set if the unload routine has a bug.
static FAULT_IN_UNLOAD: AtomicBool = AtomicBool::new(false);

/// Runs the unload routine's bug, if the service is named after this bug.
pub fn unload() {
    if FAULT_IN_UNLOAD.load(Ordering::Relaxed) {
        // SAFETY: violated on purpose: the address is null.
        let byte = unsafe { ptr::null::<u8>().read_volatile() }; // BUG: unload-fault
        black_box(byte);
    }
}

/// Adds a device whose requests are completed twice.
pub extern "C" fn add_device(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let mut device: WDFDEVICE = ptr::null_mut();
    check!(wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, &raw mut device));
    check!(wdf!(WdfDeviceCreateDeviceInterface, device, &raw const PROVIDER, ptr::null()));
    let mut config = sized!(WDF_IO_QUEUE_CONFIG {
        DispatchType: wdk_sys::_WDF_IO_QUEUE_DISPATCH_TYPE::WdfIoQueueDispatchSequential,
        PowerManaged: wdk_sys::_WDF_TRI_STATE::WdfUseDefault,
        DefaultQueue: 1,
        EvtIoWrite: Some(complete_twice)
    });
    wdf!(WdfIoQueueCreate, device, &raw mut config, WDF_NO_OBJECT_ATTRIBUTES, ptr::null_mut())
}

/// `EvtIoWrite`.
extern "C" fn complete_twice(_queue: WDFQUEUE, request: WDFREQUEST, _length: usize) {
    wdf!(WdfRequestComplete, request, STATUS_SUCCESS);
    let again = STATUS_INSUFFICIENT_RESOURCES;
    // The request is complete.
    wdf!(WdfRequestComplete, request, again); // BUG: double-completion
    black_box(again);
}
