//! Activity ids of requests and threads.

use crate::call::{Routine, at, call, low, same};

const NOT_FOUND: u32 = 0xC000_0225;
const NOT_SUPPORTED: u32 = 0xC000_00BB;

type Id = [u64; 2];

/// Returns the activity id of a request, or the status.
fn of_request(irp: u64) -> Result<Id, u32> {
    let mut id = [0_u64; 2];
    match low(call!("IoGetActivityIdIrp", irp, at(&mut id))) {
        0 => Ok(id),
        status => Err(status),
    }
}

pub fn run() {
    let mut id: Id = [0x1111_2222_3333_4444, 0x5555_6666_7777_8888];
    let irp = call!("IoAllocateIrp", 2, 0);
    same!(of_request(irp) == Err(NOT_FOUND), true);
    let set = Routine::find("IoSetActivityIdIrp");
    // The thread has no id yet.
    same!(low(set.call(&[irp, 0])), NOT_SUPPORTED);
    let (raise, lower) = (Routine::find("KfRaiseIrql"), Routine::find("KeLowerIrql"));
    let before = raise.call(&[2]) & 0xFF;
    same!(low(set.call(&[irp, at(&mut id)])), 0);
    lower.call(&[before]);
    same!(of_request(irp) == Ok(id), true);

    // The thread that serves the request adopts the request's id.
    let (mut own, mut propagated, mut original): (Id, Id, u64) = ([9, 9], [0, 0], 1);
    same!(call!("IoSetActivityIdThread", at(&mut own)), 0);
    same!(call!("IoGetActivityIdThread"), at(&mut own));
    let propagate = |irp: u64, to: u64, original: u64| {
        low(call!("IoPropagateActivityIdToThread", irp, to, original))
    };
    same!(propagate(irp, at(&mut propagated), at(&mut original)), 0);
    same!(propagated == id && original == at(&mut own), true);
    same!(call!("IoGetActivityIdThread"), at(&mut propagated));
    call!("IoTransferActivityId", at(&mut own), at(&mut propagated));

    // Another request takes the id from the thread.
    let other = call!("IoAllocateIrp", 1, 0);
    same!(propagate(other, at(&mut propagated), at(&mut original)), NOT_FOUND);
    same!(low(set.call(&[other, 0])), 0);
    same!(of_request(other) == Ok(id), true);
    call!("IoClearActivityIdThread", at(&mut own));
    same!(call!("IoGetActivityIdThread"), at(&mut own));
    call!("IoClearActivityIdThread", 0);
    same!(call!("IoGetActivityIdThread"), 0);

    // A reused request has no activity id.
    call!("IoReuseIrp", other, 0);
    same!(of_request(other) == Err(NOT_FOUND), true);
    same!(of_request(irp) == Ok(id), true);
    call!("IoFreeIrp", irp);
    call!("IoFreeIrp", other);
}

/// Requests the id of an object that is not a request.
pub fn wrong_request() {
    let mut memory = [0_u64; 32];
    let _status = of_request(at(&mut memory));
}

/// Attaches the thread's id at `DISPATCH_LEVEL`.
pub fn thread_at_dispatch() {
    let irp = call!("IoAllocateIrp", 1, 0);
    let (set, raise) = (Routine::find("IoSetActivityIdIrp"), Routine::find("KfRaiseIrql"));
    raise.call(&[2]);
    set.call(&[irp, 0]);
}
