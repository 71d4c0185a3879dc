//! DMA transactions. A buffer is transferred in one or more DMA transfers. For each transfer, the
//! driver programs its device with a scatter/gather list.

use super::{
    bus::{Bus, PAGE},
    enabler::EnablerData,
};
use crate::{
    ground::{
        NtResult, NtStatus,
        abi::{Mdl, ScatterGatherElement, ScatterGatherList},
        arena::Block,
        irql::Irql,
        rule::Rule,
    },
    services::kmdf::{
        lifetime::{create, hold, read_attributes, release},
        state::framework::{Context, Data, ObjectRoutine},
    },
};

/// The state of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The transaction is new or was released, and has no buffer.
    Released,
    /// The transaction has a buffer.
    Initialized,
    /// A transfer is in progress.
    Transfer,
    /// The last transfer is complete.
    Completed,
    /// A transfer could not be started, or the driver stopped the transaction.
    Failed,
}

/// The way in which a driver completes a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// The entire transfer is complete.
    Full,
    /// This number of bytes was transferred. The next transfer starts after these bytes.
    Partial(u64),
    /// This number of bytes was transferred, and no transfer follows.
    Final(u64),
}

/// A transaction.
pub struct TransactionData {
    pub enabler: u64,
    pub state: State,
    /// `EvtProgramDma` and its context.
    function: u64,
    argument: u64,
    direction: u32,
    /// The parts of the buffer, as addresses and lengths.
    parts: Vec<(u64, u64)>,
    length: u64,
    pub transferred: u64,
    remaining: u64,
    /// The length of the current transfer.
    pub current: u64,
    /// The maximum length of a transfer, as limited by the driver.
    maximum: u64,
    is_single: bool,
    pub request: Option<u64>,
    is_request_held: bool,
    /// The scatter/gather list of the current transfer, and its ranges on the bus.
    list: Option<Block>,
    mapped: Vec<u64>,
}

impl Data for TransactionData {
    const NAME: &'static str = "WDFDMATRANSACTION";
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(before_delete);
}

/// Creates a transaction for an enabler.
pub fn make(context: &Context, enabler: u64, attributes: u64) -> NtResult<u64> {
    let (is_system, is_single) = context.with::<EnablerData, _>(enabler, |data| {
        (data.is_system(), data.requires_single_transfer())
    });
    let attributes = read_attributes(context, attributes);
    if attributes.is_some_and(|attributes| attributes.parent_object != 0) {
        return Err(NtStatus::WDF_PARENT_ASSIGNMENT_NOT_ALLOWED);
    }
    if is_system {
        // Profiles that use a system DMA controller cannot be configured in the stand-in kernel.
        return Err(NtStatus::INVALID_DEVICE_STATE);
    }
    let data = TransactionData {
        enabler,
        state: State::Released,
        function: 0,
        argument: 0,
        direction: 0,
        parts: Vec::new(),
        length: 0,
        transferred: 0,
        remaining: 0,
        current: 0,
        maximum: 0,
        is_single,
        request: None,
        is_request_held: false,
        list: None,
        mapped: Vec::new(),
    };
    create(context, data, attributes.as_ref(), Some(enabler))
}

/// Bugchecks because the transaction's state does not allow the current call.
pub fn stop_for_state(context: &Context, transaction: u64) -> ! {
    let state = context.with::<TransactionData, _>(transaction, |data| data.state);
    let what = match state {
        State::Released => "has no buffer",
        State::Initialized => "was not executed",
        State::Transfer => "has a transfer in progress",
        State::Completed => "is completed; release it first",
        State::Failed => "has failed; release it first",
    };
    context.stop_call(Rule::ObjectMisused, &format!("for a DMA transaction that {what}"))
}

/// Returns the parts of a buffer that a chain of MDLs describes, or `None` if the chain describes
/// less memory.
pub fn parts_of(
    context: &Context,
    mdl: u64,
    mut offset: u64,
    mut length: u64,
) -> Option<Vec<(u64, u64)>> {
    /// The maximum length of a chain of MDLs. A longer chain counts as a cycle.
    const MAX_CHAIN: usize = 1 << 16;
    let mut parts = Vec::new();
    let mut at = mdl;
    for _ in 0..MAX_CHAIN {
        if length == 0 || at == 0 {
            break;
        }
        let one: Mdl = context.read(at);
        let (start, size) = extent(&one);
        let skipped = offset.min(size);
        let used = (size - skipped).min(length);
        if used > 0 {
            parts.push((start + skipped, used));
        }
        offset -= skipped;
        length -= used;
        at = one.next;
    }
    (length == 0).then_some(parts)
}

/// Returns the address and length of the buffer that an MDL describes.
pub fn extent(mdl: &Mdl) -> (u64, u64) {
    let start = mdl.start_va.wrapping_add(u64::from(mdl.byte_offset));
    (start, u64::from(mdl.byte_count))
}

/// Returns the elements of a transfer: `length` bytes, starting after the first `skipped` bytes.
fn elements(parts: &[(u64, u64)], skipped: u64, length: u64, is_packet: bool) -> Vec<(u64, u64)> {
    let (mut skipped, mut left) = (skipped, length);
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (start, size) in parts {
        let before = skipped.min(*size);
        skipped -= before;
        let (mut at, mut rest) = (start + before, (size - before).min(left));
        left -= rest;
        while rest > 0 {
            // In a packet profile, map registers combine the pages into one range.
            let room = if is_packet { rest } else { PAGE - at % PAGE };
            let used = rest.min(room);
            found.push((at, used));
            at += used;
            rest -= used;
        }
    }
    found
}

/// Assigns a buffer to a transaction.
///
/// # Errors
///
/// Returns an error if the device cannot transfer the buffer.
pub fn initialize(
    context: &Context,
    transaction: u64,
    function: u64,
    direction: u32,
    parts: Vec<(u64, u64)>,
) -> NtResult {
    let (state, enabler, is_single) = context
        .with::<TransactionData, _>(transaction, |data| (data.state, data.enabler, data.is_single));
    if state != State::Released {
        stop_for_state(context, transaction);
    }
    let (maximum, limit, is_packet) = context.with::<EnablerData, _>(enabler, |data| {
        (data.maximum_length(), data.maximum_elements, data.is_packet())
    });
    let length: u64 = parts.iter().map(|(_, size)| size).sum();
    if is_single && length > maximum {
        return Err(NtStatus::WDF_TOO_MANY_TRANSFERS);
    }
    let mut skipped = 0;
    while skipped < length && !is_packet {
        let next = maximum.min(length - skipped);
        if elements(&parts, skipped, next, is_packet).len() as u64 > limit {
            return Err(NtStatus::WDF_TOO_FRAGMENTED);
        }
        skipped += next;
    }
    context.with::<TransactionData, _>(transaction, |data| {
        data.state = State::Initialized;
        data.function = function;
        data.direction = direction;
        data.parts = parts;
        data.length = length;
        data.transferred = 0;
        data.remaining = length;
        data.current = 0;
        data.maximum = maximum;
    });
    Ok(())
}

/// Limits the length of an initialized transaction's transfers.
pub fn limit(context: &Context, transaction: u64, maximum: u64) {
    context.with::<TransactionData, _>(transaction, |data| {
        if maximum != 0 {
            data.maximum = data.maximum.min(maximum);
        }
    });
}

/// Sets whether the transaction must consist of a single transfer.
pub fn require_single(context: &Context, transaction: u64, is_single: bool) {
    context.with::<TransactionData, _>(transaction, |data| data.is_single = is_single);
}

/// Starts the first transfer.
///
/// # Errors
///
/// Returns an error if no transfer can be started.
pub fn execute(context: &Context, transaction: u64, argument: u64) -> NtResult {
    let (state, request) =
        context.with::<TransactionData, _>(transaction, |data| (data.state, data.request));
    if state != State::Initialized {
        stop_for_state(context, transaction);
    }
    if let Some(request) = request {
        hold(context, request);
    }
    context.with::<TransactionData, _>(transaction, |data| {
        data.state = State::Transfer;
        data.argument = argument;
        data.is_request_held = request.is_some();
    });
    stage(context, transaction).inspect_err(|_| end(context, transaction, State::Failed))
}

/// Starts the next transfer: calls `EvtProgramDma` with its scatter/gather list.
fn stage(context: &Context, transaction: u64) -> NtResult {
    let enabler = context.with::<TransactionData, _>(transaction, |data| data.enabler);
    let (device, is_packet) =
        context.with::<EnablerData, _>(enabler, |data| (data.device, data.is_packet()));
    let found = context.with::<TransactionData, _>(transaction, |data| {
        data.current = data.remaining.min(data.maximum);
        data.remaining -= data.current;
        elements(&data.parts, data.transferred, data.current, is_packet)
    });
    let (list, mapped) = map(context, &found)?;
    let address = list.address();
    let (function, argument, direction) = context.with::<TransactionData, _>(transaction, |data| {
        data.list = Some(list);
        data.mapped = mapped;
        (data.function, data.argument, u64::from(data.direction))
    });
    context.call_driver_at(
        Irql::DISPATCH_LEVEL,
        "EvtProgramDma",
        function,
        [transaction, device, argument, direction, address],
    );
    Ok(())
}

/// Maps the elements of a transfer. Returns their scatter/gather list and their bus addresses.
fn map(context: &Context, found: &[(u64, u64)]) -> Result<(Block, Vec<u64>), NtStatus> {
    let mut mapped = Vec::with_capacity(found.len());
    {
        let mut framework = context.framework();
        let bus = framework.part::<Bus>();
        for (address, length) in found {
            if let Some(start) = bus.map(*address, *length, PAGE) {
                mapped.push(start);
            }
        }
        if mapped.len() < found.len() {
            for start in mapped {
                bus.unmap(start);
            }
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
    }
    let head = size_of::<ScatterGatherList>();
    let list = Block::zeroed(head + found.len() * size_of::<ScatterGatherElement>());
    let address = list.address();
    context.write(
        address,
        &ScatterGatherList {
            number_of_elements: u32::try_from(found.len()).unwrap_or(u32::MAX),
            ..Default::default()
        },
    );
    let places = (address + head as u64..).step_by(size_of::<ScatterGatherElement>());
    for ((place, start), (_, length)) in places.zip(&mapped).zip(found) {
        context.write(
            place,
            &ScatterGatherElement {
                address: start.cast_signed(),
                length: u32::try_from(*length).unwrap_or(u32::MAX),
                ..Default::default()
            },
        );
    }
    Ok((list, mapped))
}

/// Removes the memory of the current transfer from the bus.
fn unmap(context: &Context, transaction: u64) {
    let mapped = context.with::<TransactionData, _>(transaction, |data| {
        data.list = None;
        core::mem::take(&mut data.mapped)
    });
    let mut framework = context.framework();
    let bus = framework.part::<Bus>();
    for start in mapped {
        bus.unmap(start);
    }
}

/// Completes the current transfer. If data remain, starts the next transfer and returns
/// `STATUS_MORE_PROCESSING_REQUIRED`; otherwise the transaction is complete.
pub fn complete(context: &Context, transaction: u64, completion: Completion) -> NtStatus {
    let (state, current) =
        context.with::<TransactionData, _>(transaction, |data| (data.state, data.current));
    if state != State::Transfer {
        stop_for_state(context, transaction);
    }
    let (length, is_last) = match completion {
        Completion::Full => (current, false),
        Completion::Partial(length) => (length, false),
        Completion::Final(length) => (length, true),
    };
    if length > current {
        context.warn_of_misuse(|| {
            format!("with {length} bytes, but the current transfer has {current}")
        });
        end(context, transaction, State::Failed);
        return NtStatus::INVALID_PARAMETER;
    }
    unmap(context, transaction);
    let (remaining, is_single) = context.with::<TransactionData, _>(transaction, |data| {
        data.transferred += length;
        data.remaining += data.current - length;
        data.current = length;
        (data.remaining, data.is_single)
    });
    let status = if remaining == 0 || (is_last && !is_single) {
        NtStatus::SUCCESS
    } else if is_single {
        NtStatus::WDF_TOO_MANY_TRANSFERS
    } else {
        match stage(context, transaction) {
            Ok(()) => return NtStatus::MORE_PROCESSING_REQUIRED,
            Err(status) => status,
        }
    };
    let state = if status.is_success() { State::Completed } else { State::Failed };
    end(context, transaction, state);
    status
}

/// Ends a transaction's transfers. The transaction keeps its request until the driver releases the
/// transaction.
fn end(context: &Context, transaction: u64, state: State) {
    unmap(context, transaction);
    let request = context.with::<TransactionData, _>(transaction, |data| {
        data.state = state;
        data.current = 0;
        let was_held = core::mem::take(&mut data.is_request_held);
        data.request.filter(|_| was_held)
    });
    if let Some(request) = request {
        release(context, request);
    }
}

/// Removes the buffer from a transaction, so that it can be initialized again.
pub fn reset(context: &Context, transaction: u64) {
    let state = context.with::<TransactionData, _>(transaction, |data| data.state);
    if state == State::Transfer {
        stop_for_state(context, transaction);
    }
    end(context, transaction, State::Released);
    context.with::<TransactionData, _>(transaction, |data| {
        data.request = None;
        data.parts.clear();
        data.transferred = 0;
        data.remaining = 0;
    });
}

/// Returns the numbers of map registers and list elements that the buffer of an initialized
/// transaction requires.
pub fn needs(context: &Context, transaction: u64) -> [u32; 2] {
    let (state, enabler) =
        context.with::<TransactionData, _>(transaction, |data| (data.state, data.enabler));
    if state != State::Initialized {
        stop_for_state(context, transaction);
    }
    let is_packet = context.with::<EnablerData, _>(enabler, |data| data.is_packet());
    context.with::<TransactionData, _>(transaction, |data| {
        [false, is_packet].map(|is_packet| {
            let count = elements(&data.parts, 0, data.length, is_packet).len();
            u32::try_from(count).unwrap_or(u32::MAX)
        })
    })
}

fn before_delete(context: &Context, transaction: u64) {
    reset(context, transaction);
}

#[cfg(test)]
mod tests {
    use super::elements;

    #[test]
    fn transfers_are_split_at_pages() {
        let parts = [(0x1FF0, 0x1020), (0x9000, 8)];
        let all = elements(&parts, 0, 0x1028, false);
        assert_eq!(all, [(0x1FF0, 0x10), (0x2000, 0x1000), (0x3000, 0x10), (0x9000, 8)]);
        assert_eq!(elements(&parts, 0x1018, 0x10, false), [(0x3008, 8), (0x9000, 8)]);
        assert_eq!(elements(&parts, 0x10, 0x1000, true), [(0x2000, 0x1000)]);
    }
}
