//! A queue of requests that can be canceled.

use core::ptr;

use etw_driver_support::nt;
use wdk_sys::{
    IO_CSQ, IRP, KIRQL, KSPIN_LOCK, LIST_ENTRY, NTSTATUS, PIO_CSQ, PIRP, PKIRQL, PVOID,
    STATUS_CANCELLED, STATUS_PENDING, STATUS_SUCCESS, STATUS_UNSUCCESSFUL,
};

use crate::irps::complete;

/// The maximum number of requests in a limited queue.
const MAX: u32 = 1;

/// A queue. It begins with the structure that the system's routines require.
#[repr(C)]
pub struct Queue {
    csq: IO_CSQ,
    lock: KSPIN_LOCK,
    list: LIST_ENTRY,
    length: u32,
    /// The context that identifies one request in the queue.
    found: wdk_sys::IO_CSQ_IRP_CONTEXT,
}

impl Queue {
    /// Initializes a queue, which accepts any number of requests or, if `is_limited`, only `MAX`.
    pub fn initialize(&mut self, is_limited: bool) -> NTSTATUS {
        let head = &raw mut self.list;
        self.list = LIST_ENTRY { Flink: head, Blink: head };
        nt!(KeInitializeSpinLock, &raw mut self.lock);
        if is_limited {
            return nt!(
                IoCsqInitializeEx,
                &raw mut self.csq,
                Some(insert_some),
                Some(remove),
                Some(peek),
                Some(acquire),
                Some(release),
                Some(complete_cancelled),
            );
        }
        nt!(
            IoCsqInitialize,
            &raw mut self.csq,
            Some(insert),
            Some(remove),
            Some(peek),
            Some(acquire),
            Some(release),
            Some(complete_cancelled),
        )
    }

    /// Leaves a request pending in the queue. Completes the request if the queue refuses it.
    pub fn keep(&mut self, irp: *mut IRP, is_limited: bool) -> NTSTATUS {
        if is_limited {
            let kept =
                nt!(IoCsqInsertIrpEx, &raw mut self.csq, irp, ptr::null_mut(), ptr::null_mut());
            return if kept == STATUS_SUCCESS { STATUS_PENDING } else { complete(irp, kept) };
        }
        nt!(IoCsqInsertIrp, &raw mut self.csq, irp, ptr::null_mut());
        STATUS_PENDING
    }

    /// Leaves a request pending in the queue, with a context that identifies it in the queue.
    pub fn keep_found(&mut self, irp: *mut IRP) -> NTSTATUS {
        nt!(IoCsqInsertIrp, &raw mut self.csq, irp, &raw mut self.found);
        STATUS_PENDING
    }

    /// Completes the oldest request. Returns whether there was one.
    pub fn complete_next(&mut self) -> bool {
        let irp = nt!(IoCsqRemoveNextIrp, &raw mut self.csq, ptr::null_mut());
        complete_any(irp)
    }

    /// Completes the request of [`Self::keep_found`], if it is still in the queue. Returns whether
    /// it was still there.
    pub fn complete_found(&mut self) -> bool {
        let irp = nt!(IoCsqRemoveIrp, &raw mut self.csq, &raw mut self.found);
        complete_any(irp)
    }
}

fn complete_any(irp: *mut IRP) -> bool {
    if irp.is_null() {
        return false;
    }
    complete(irp, STATUS_SUCCESS);
    true
}

/// Returns the queue that contains this `IO_CSQ`.
fn queue<'a>(csq: PIO_CSQ) -> &'a mut Queue {
    // SAFETY: the structure is the first field of a queue, whose lock the system has acquired.
    unsafe { &mut *csq.cast::<Queue>() }
}

/// Returns the links of a request.
fn links(irp: PIRP) -> *mut LIST_ENTRY {
    // SAFETY: the driver owns the request, whose tail is its overlay.
    unsafe { &raw mut (*irp).Tail.Overlay.__bindgen_anon_2.ListEntry }
}

/// Returns the request that contains these links.
const fn of_links(links: *mut LIST_ENTRY) -> PIRP {
    const OFFSET: usize = core::mem::offset_of!(IRP, Tail.Overlay.__bindgen_anon_2.ListEntry);
    links.cast::<u8>().wrapping_sub(OFFSET).cast()
}

unsafe extern "C" fn insert(csq: PIO_CSQ, irp: PIRP) {
    let queue = queue(csq);
    let (head, entry) = (&raw mut queue.list, links(irp));
    let last = queue.list.Blink;
    // SAFETY: the entry belongs to a request that is in no other list.
    unsafe {
        *entry = LIST_ENTRY { Flink: head, Blink: last };
    };
    // SAFETY: the last entry belongs to a request in the queue, or is the head.
    unsafe { (*last).Flink = entry };
    queue.list.Blink = entry;
    queue.length += 1;
}

unsafe extern "C" fn insert_some(csq: PIO_CSQ, irp: PIRP, _context: PVOID) -> NTSTATUS {
    if queue(csq).length >= MAX {
        return STATUS_UNSUCCESSFUL;
    }
    // SAFETY: the system passes the arguments that this routine received.
    unsafe { insert(csq, irp) };
    STATUS_SUCCESS
}

unsafe extern "C" fn remove(csq: PIO_CSQ, irp: PIRP) {
    // SAFETY: the request is in the queue.
    let entry = unsafe { *links(irp) };
    // SAFETY: the entry's neighbors are in the list.
    unsafe { (*entry.Flink).Blink = entry.Blink };
    // SAFETY: as above.
    unsafe { (*entry.Blink).Flink = entry.Flink };
    queue(csq).length -= 1;
}

unsafe extern "C" fn peek(csq: PIO_CSQ, irp: PIRP, _context: PVOID) -> PIRP {
    let queue = queue(csq);
    let next = if irp.is_null() {
        queue.list.Flink
    } else {
        // SAFETY: the request is in the queue.
        unsafe { (*links(irp)).Flink }
    };
    if next == &raw mut queue.list { ptr::null_mut() } else { of_links(next) }
}

unsafe extern "C" fn acquire(csq: PIO_CSQ, irql: PKIRQL) {
    // SAFETY: the structure is the first field of a queue.
    let lock = unsafe { &raw mut (*csq.cast::<Queue>()).lock };
    let before = nt!(KeAcquireSpinLockRaiseToDpc, lock);
    // SAFETY: the system passes a variable for the IRQL.
    unsafe { *irql = before };
}

unsafe extern "C" fn release(csq: PIO_CSQ, irql: KIRQL) {
    // SAFETY: the structure is the first field of a queue.
    let lock = unsafe { &raw mut (*csq.cast::<Queue>()).lock };
    nt!(KeReleaseSpinLock, lock, irql);
}

unsafe extern "C" fn complete_cancelled(_csq: PIO_CSQ, irp: PIRP) {
    complete(irp, STATUS_CANCELLED);
}
