//! Activity ids of requests and threads.

use wdk_sys::{NTSTATUS, PIRP, PVOID, STATUS_NOT_FOUND, STATUS_NOT_SUPPORTED};

use crate::call::{NULL, at, call, pointer, same};

type Id = [u64; 2];

/// Returns the activity id of a request, or the status.
fn of_request(irp: PIRP) -> Result<Id, NTSTATUS> {
    let mut id = [0_u64; 2];
    match call!(IoGetActivityIdIrp, irp, &mut id) {
        0 => Ok(id),
        status => Err(status),
    }
}

pub fn run() {
    let mut id: Id = [0x1111_2222_3333_4444, 0x5555_6666_7777_8888];
    let irp = call!(IoAllocateIrp, 2, 0);
    same!(of_request(irp) == Err(STATUS_NOT_FOUND), true);
    // The thread has no id yet.
    same!(call!(IoSetActivityIdIrp, irp, NULL), STATUS_NOT_SUPPORTED);
    let before = call!(KfRaiseIrql, 2);
    same!(call!(IoSetActivityIdIrp, irp, &mut id), 0);
    call!(KeLowerIrql, before);
    same!(of_request(irp) == Ok(id), true);

    // The thread that serves the request adopts the request's id.
    let (mut own, mut propagated, mut original): (Id, Id, PVOID) = ([9, 9], [0, 0], pointer(1));
    same!(call!(IoSetActivityIdThread, &mut own), 0);
    same!(call!(IoGetActivityIdThread), at(&mut own));
    let propagate = |irp: PIRP, to: PVOID, original: PVOID| {
        call!(IoPropagateActivityIdToThread, irp, to, original)
    };
    same!(propagate(irp, at(&mut propagated), at(&mut original)), 0);
    same!(propagated == id && original == at(&mut own), true);
    same!(call!(IoGetActivityIdThread), at(&mut propagated));
    call!(IoTransferActivityId, &mut own, &mut propagated);

    // Another request takes the id from the thread.
    let other = call!(IoAllocateIrp, 1, 0);
    same!(propagate(other, at(&mut propagated), at(&mut original)), STATUS_NOT_FOUND);
    same!(call!(IoSetActivityIdIrp, other, NULL), 0);
    same!(of_request(other) == Ok(id), true);
    call!(IoClearActivityIdThread, &mut own);
    same!(call!(IoGetActivityIdThread), at(&mut own));
    call!(IoClearActivityIdThread, NULL);
    same!(call!(IoGetActivityIdThread), 0);

    // A reused request has no activity id.
    call!(IoReuseIrp, other, 0);
    same!(of_request(other) == Err(STATUS_NOT_FOUND), true);
    same!(of_request(irp) == Ok(id), true);
    call!(IoFreeIrp, irp);
    call!(IoFreeIrp, other);
}

/// Requests the id of an object that is not a request.
pub fn wrong_request() {
    let mut memory = [0_u64; 32];
    let _status = of_request(at(&mut memory).cast());
}

/// Attaches the thread's id at `DISPATCH_LEVEL`.
pub fn thread_at_dispatch() {
    let irp = call!(IoAllocateIrp, 1, 0);
    call!(KfRaiseIrql, 2);
    call!(IoSetActivityIdIrp, irp, NULL);
}
