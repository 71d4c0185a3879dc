//! Cancel-safe queues of requests (`IO_CSQ`). The driver implements the queue and its lock, and the
//! kernel handles cancellation.

use zerocopy::FromZeros;

use super::{
    cancel::{exchange_routine, set_own_routine},
    irp::{self, STACK, control},
};
use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{
        NtStatus,
        abi::{CancelSafeContext, CancelSafeQueue, Irp, IrpStack},
        arena::Block,
    },
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("IoCsqInitialize", initialize::<PLAIN>),
    routine("IoCsqInitializeEx", initialize::<EXTENDED>),
    routine("IoCsqInsertIrp", insert),
    routine("IoCsqInsertIrpEx", insert_with),
    routine("IoCsqRemoveIrp", remove),
    routine("IoCsqRemoveNextIrp", remove_next),
];

/// `IO_TYPE_CSQ_IRP_CONTEXT`, `IO_TYPE_CSQ` and `IO_TYPE_CSQ_EX`.
const CONTEXT: u32 = 1;
const PLAIN: u32 = 2;
const EXTENDED: u32 = 3;

/// The index in a request's tail of the link to the request's queue: `DriverContext[3]`.
const LINK: usize = 3;

fn initialize<const KIND: u32>(
    context: &Context,
    queue: At<CancelSafeQueue>,
    insert: Callback,
    remove: Callback,
    peek: Callback,
    acquire: Callback,
    release: Callback,
    complete_cancelled: Callback,
) -> NtStatus {
    let value = CancelSafeQueue {
        kind: KIND,
        csq_insert_irp: insert.0,
        csq_remove_irp: remove.0,
        csq_peek_next_irp: peek.0,
        csq_acquire_lock: acquire.0,
        csq_release_lock: release.0,
        csq_complete_canceled_irp: complete_cancelled.0,
        ..CancelSafeQueue::new_zeroed()
    };
    queue.write(context, value);
    NtStatus::SUCCESS
}

/// Returns a queue's fields. Bugchecks if the queue was not initialized.
fn read(context: &Context, queue: u64) -> CancelSafeQueue {
    let value: CancelSafeQueue = context.read(queue);
    if !matches!(value.kind, PLAIN | EXTENDED) {
        context.stop_for_misuse(&format!(
            "with the queue at 0x{queue:016X}, which was not initialized"
        ));
    }
    value
}

/// A queue whose lock the driver holds.
struct Locked<'a> {
    context: &'a Context,
    queue: u64,
    value: CancelSafeQueue,
    /// The memory in which the driver stores the previous IRQL.
    irql: Block,
}

impl<'a> Locked<'a> {
    /// Calls the driver to acquire the lock of a queue.
    fn new(context: &'a Context, queue: u64) -> Self {
        let value = read(context, queue);
        let irql = Block::zeroed(8);
        context.call_driver_with_lock(
            "CsqAcquireLock",
            value.csq_acquire_lock,
            [queue, irql.address()],
        );
        Self { context, queue, value, irql }
    }

    /// Calls the driver to release the lock.
    fn release(self) {
        let irql: u8 = self.context.read(self.irql.address());
        let arguments = [self.queue, u64::from(irql)];
        self.context
            .call_driver_with_lock("CsqReleaseLock", self.value.csq_release_lock, arguments);
    }

    /// Calls the driver to remove a request from the queue.
    fn take(&self, irp: u64) {
        let arguments = [self.queue, irp];
        self.context.call_driver("CsqRemoveIrp", self.value.csq_remove_irp, arguments);
        self.forget(irp);
    }

    /// Calls the driver to find the next request after `irp`.
    fn next(&self, irp: u64, peek_context: u64) -> u64 {
        let arguments = [self.queue, irp, peek_context];
        self.context.call_driver("CsqPeekNextIrp", self.value.csq_peek_next_irp, arguments)
    }

    /// Removes the link between a request and its queue.
    fn forget(&self, irp: u64) {
        let link = self.context.read::<Irp>(irp).tail[LINK];
        irp::store(self.context, irp, irp::tail(LINK), &0_u64);
        if link != 0 && link != self.queue {
            self.context.update(link, |its: &mut CancelSafeContext| its.irp = 0);
        }
    }

    /// Releases the lock, and calls the driver to complete a canceled request.
    fn complete_cancelled(self, irp: u64) {
        let (context, queue) = (self.context, self.queue);
        let routine = self.value.csq_complete_canceled_irp;
        self.release();
        context.call_driver("CsqCompleteCanceledIrp", routine, [queue, irp]);
    }
}

fn insert(
    context: &Context,
    queue: At<CancelSafeQueue>,
    irp: At<Irp>,
    irp_context: At<CancelSafeContext>,
) {
    insert_with(context, queue, irp, irp_context, At::NULL);
}

/// Marks a request as pending, and calls the driver to queue it unless it is canceled.
fn insert_with(
    context: &Context,
    queue: At<CancelSafeQueue>,
    irp: At<Irp>,
    irp_context: At<CancelSafeContext>,
    insert_context: Memory,
) -> NtStatus {
    let locked = Locked::new(context, queue.0);
    let link = if irp_context.is_null() {
        queue.0
    } else {
        let value =
            CancelSafeContext { kind: CONTEXT, irp: irp.0, csq: queue.0, ..Default::default() };
        irp_context.write(context, value);
        irp_context.0
    };
    irp::store(context, irp.0, irp::tail(LINK), &link);
    let value = irp.read(context);
    let routine = locked.value.csq_insert_irp;
    if locked.value.kind == EXTENDED {
        let arguments = [queue.0, irp.0, insert_context.0];
        let status =
            NtStatus::from_register(context.call_driver("CsqInsertIrpEx", routine, arguments));
        if !status.is_success() {
            locked.forget(irp.0);
            locked.release();
            return status;
        }
    } else {
        context.call_driver("CsqInsertIrp", routine, [queue.0, irp.0]);
    }
    context.update(value.tail[STACK], |location: &mut IrpStack| {
        location.control |= control::PENDING_RETURNED;
    });
    set_own_routine(context, irp.0, cancelled);
    let is_cancelled = irp.read(context).cancel != 0;
    // If the cancel routine was already taken, it completes the request.
    if is_cancelled && exchange_routine(context, irp.0, 0) != 0 {
        locked.take(irp.0);
        locked.complete_cancelled(irp.0);
    } else {
        locked.release();
    }
    NtStatus::SUCCESS
}

/// Removes a request that is being canceled from its queue.
fn cancelled(context: &Context, irp: u64) {
    let link = context.read::<Irp>(irp).tail[LINK];
    let kind: u32 = context.read(link);
    let queue = if kind == CONTEXT { context.read::<CancelSafeContext>(link).csq } else { link };
    let locked = Locked::new(context, queue);
    locked.take(irp);
    locked.complete_cancelled(irp);
}

/// Removes a request from its queue, unless it is being canceled.
fn remove(
    context: &Context,
    queue: At<CancelSafeQueue>,
    irp_context: At<CancelSafeContext>,
) -> At<Irp> {
    let locked = Locked::new(context, queue.0);
    let irp = irp_context.read(context).irp;
    let is_taken = irp != 0 && exchange_routine(context, irp, 0) != 0;
    if is_taken {
        locked.take(irp);
    }
    locked.release();
    if is_taken { At::new(irp) } else { At::NULL }
}

/// Removes the next request that is not being canceled from its queue.
fn remove_next(context: &Context, queue: At<CancelSafeQueue>, peek_context: Memory) -> At<Irp> {
    let locked = Locked::new(context, queue.0);
    let mut irp = locked.next(0, peek_context.0);
    while irp != 0 && exchange_routine(context, irp, 0) == 0 {
        irp = locked.next(irp, peek_context.0);
    }
    if irp != 0 {
        irp::must_be_request(context, irp);
        locked.take(irp);
    }
    locked.release();
    At::new(irp)
}
