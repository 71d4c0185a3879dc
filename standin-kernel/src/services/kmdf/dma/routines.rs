//! The `WdfDma*` and `WdfCommonBuffer*` routines.

use super::{
    common_buffer::{self, CommonBufferData, alignment_of},
    enabler::{self, EnablerData},
    transaction::{self, Completion, State, TransactionData, extent, parts_of, stop_for_state},
};
use crate::{
    execution::routine::{Handle, Routine},
    ground::{
        NtResult, NtStatus,
        framework_abi::{DmaSystemProfileConfig, Mdl},
        irql::Irql,
    },
    services::kmdf::{
        io::irp::mdl_of,
        object::give,
        state::{
            device::DeviceData,
            framework::{Context, Entries},
            request::{METHOD_BUFFERED, METHOD_MASK, METHOD_NEITHER, RequestData, RequestKind},
        },
    },
};

pub const ENTRIES: Entries = &[
    ("WdfDmaEnablerCreate", Routine::after_globals(enabler_create)),
    ("WdfDmaEnablerGetMaximumLength", Routine::after_globals(get_maximum_length)),
    ("WdfDmaEnablerGetMaximumScatterGatherElements", Routine::after_globals(get_maximum_elements)),
    ("WdfDmaEnablerSetMaximumScatterGatherElements", Routine::after_globals(set_maximum_elements)),
    ("WdfDmaEnablerGetFragmentLength", Routine::after_globals(get_fragment_length)),
    ("WdfDmaEnablerConfigureSystemProfile", Routine::after_globals(configure_system_profile)),
    ("WdfCommonBufferCreate", Routine::after_globals(buffer_create)),
    ("WdfCommonBufferCreateWithConfig", Routine::after_globals(buffer_create_with_config)),
    ("WdfCommonBufferGetAlignedVirtualAddress", Routine::after_globals(buffer_virtual)),
    ("WdfCommonBufferGetAlignedLogicalAddress", Routine::after_globals(buffer_logical)),
    ("WdfCommonBufferGetLength", Routine::after_globals(buffer_length)),
    ("WdfDmaTransactionCreate", Routine::after_globals(transaction_create)),
    ("WdfDmaTransactionInitialize", Routine::after_globals(initialize)),
    ("WdfDmaTransactionInitializeUsingOffset", Routine::after_globals(initialize_using_offset)),
    ("WdfDmaTransactionInitializeUsingRequest", Routine::after_globals(initialize_using_request)),
    ("WdfDmaTransactionExecute", Routine::after_globals(execute)),
    ("WdfDmaTransactionRelease", Routine::after_globals(release)),
    ("WdfDmaTransactionDmaCompleted", Routine::after_globals(completed)),
    ("WdfDmaTransactionDmaCompletedWithLength", Routine::after_globals(completed_with_length)),
    ("WdfDmaTransactionDmaCompletedFinal", Routine::after_globals(completed_final)),
    ("WdfDmaTransactionGetBytesTransferred", Routine::after_globals(get_transferred)),
    ("WdfDmaTransactionSetMaximumLength", Routine::after_globals(set_maximum_length)),
    ("WdfDmaTransactionSetSingleTransferRequirement", Routine::after_globals(set_single_transfer)),
    ("WdfDmaTransactionGetRequest", Routine::after_globals(get_request)),
    ("WdfDmaTransactionGetCurrentDmaTransferLength", Routine::after_globals(get_current_length)),
    ("WdfDmaTransactionGetDevice", Routine::after_globals(get_device)),
    ("WdfDmaTransactionGetTransferInfo", Routine::after_globals(get_transfer_info)),
    ("WdfDmaTransactionCancel", Routine::after_globals(cancel)),
];

/// `WdfDmaDirectionReadFromDevice` and `WdfDmaDirectionWriteToDevice`.
const READ: u32 = 0;
const WRITE: u32 = 1;

fn enabler_create(
    context: &Context,
    device: Handle<DeviceData>,
    config: u64,
    attributes: u64,
    enabler: u64,
) -> NtResult {
    device.check(context);
    let made = enabler::make(context, device.0, config, attributes);
    give(context, made, enabler)
}

fn get_maximum_length(context: &Context, enabler: Handle<EnablerData>) -> u64 {
    enabler.with(context, |data| data.maximum_length())
}

fn get_maximum_elements(context: &Context, enabler: Handle<EnablerData>) -> u64 {
    enabler.with(context, |data| data.maximum_elements)
}

fn set_maximum_elements(context: &Context, enabler: Handle<EnablerData>, count: u64) {
    enabler.with(context, |data| {
        if count != 0 {
            data.set_maximum_elements(count);
        }
    });
}

/// Returns the maximum transfer length. It is the enabler's maximum, because the number of map
/// registers is not limited.
fn get_fragment_length(context: &Context, enabler: Handle<EnablerData>, direction: u32) -> u64 {
    let (length, is_system) =
        enabler.with(context, |data| (data.maximum_length(), data.is_system()));
    if is_system || direction > WRITE { 0 } else { length }
}

/// Fails, because the stand-in kernel has no system DMA controller.
fn configure_system_profile(
    context: &Context,
    enabler: Handle<EnablerData>,
    config: u64,
    direction: u32,
) -> NtStatus {
    enabler.check(context);
    if config == 0 {
        return NtStatus::INVALID_PARAMETER;
    }
    let config: DmaSystemProfileConfig = context.read(config);
    if config.size as usize != size_of::<DmaSystemProfileConfig>() {
        NtStatus::INFO_LENGTH_MISMATCH
    } else if config.dma_descriptor == 0 || direction > WRITE {
        NtStatus::INVALID_PARAMETER
    } else {
        NtStatus::UNSUCCESSFUL
    }
}

fn buffer_create(
    context: &Context,
    enabler: u64,
    length: u64,
    attributes: u64,
    buffer: u64,
) -> NtResult {
    let made = common_buffer::make(context, enabler, length, 1, attributes);
    give(context, made, buffer)
}

fn buffer_create_with_config(
    context: &Context,
    enabler: u64,
    length: u64,
    config: u64,
    attributes: u64,
    buffer: u64,
) -> NtResult {
    let made = alignment_of(context, config)
        .and_then(|alignment| common_buffer::make(context, enabler, length, alignment, attributes));
    give(context, made, buffer)
}

fn buffer_virtual(context: &Context, buffer: Handle<CommonBufferData>) -> u64 {
    buffer.with(context, |data| data.address)
}

fn buffer_logical(context: &Context, buffer: Handle<CommonBufferData>) -> u64 {
    buffer.with(context, |data| data.bus)
}

fn buffer_length(context: &Context, buffer: Handle<CommonBufferData>) -> u64 {
    buffer.with(context, |data| data.length)
}

fn transaction_create(
    context: &Context,
    enabler: Handle<EnablerData>,
    attributes: u64,
    transaction: u64,
) -> NtResult {
    enabler.check(context);
    let made = transaction::make(context, enabler.0, attributes);
    give(context, made, transaction)
}

fn initialize(
    context: &Context,
    transaction: Handle<TransactionData>,
    function: u64,
    direction: u32,
    mdl: u64,
    address: u64,
    length: u64,
) -> NtResult {
    transaction.check(context);
    let one: Mdl = context.read(mdl);
    let (start, size) = extent(&one);
    let offset = address.wrapping_sub(start);
    if length == 0 || direction > WRITE || offset >= size {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let parts = parts_of(context, mdl, offset, length & 0xFFFF_FFFF);
    let parts = parts.ok_or(NtStatus::INVALID_PARAMETER);
    parts.and_then(|parts| {
        transaction::initialize(context, transaction.0, function, direction, parts)
    })
}

fn initialize_using_offset(
    context: &Context,
    transaction: Handle<TransactionData>,
    function: u64,
    direction: u32,
    mdl: u64,
    offset: u64,
    length: u64,
) -> NtResult {
    let one: Mdl = context.read(mdl);
    let address = extent(&one).0.wrapping_add(offset);
    initialize(context, transaction, function, direction, mdl, address, length)
}

/// Returns a request's buffer for a transfer in this direction.
fn buffer_of(data: &RequestData, direction: u32) -> NtResult<(u64, u64)> {
    let buffer = match data.kind {
        RequestKind::Read if direction == READ => data.output(),
        RequestKind::Write if direction == WRITE => data.input(),
        RequestKind::DeviceControl { code } | RequestKind::InternalDeviceControl { code } => {
            /// `METHOD_IN_DIRECT`.
            const IN_DIRECT: u32 = 1;
            match code & METHOD_MASK {
                METHOD_BUFFERED if direction == WRITE => data.input(),
                METHOD_BUFFERED => data.output(),
                METHOD_NEITHER => return Err(NtStatus::INVALID_DEVICE_REQUEST),
                IN_DIRECT if direction == WRITE => data.output(),
                method if method != IN_DIRECT && direction == READ => data.output(),
                _ => return Err(NtStatus::INVALID_DEVICE_REQUEST),
            }
        }
        _ => return Err(NtStatus::INVALID_DEVICE_REQUEST),
    };
    if data.has_buffers() && buffer.1 != 0 {
        Ok(buffer)
    } else {
        Err(NtStatus::INVALID_DEVICE_REQUEST)
    }
}

fn initialize_using_request(
    context: &Context,
    transaction: Handle<TransactionData>,
    request: Handle<RequestData>,
    function: u64,
    direction: u32,
) -> NtResult {
    transaction.check(context);
    if direction > WRITE {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let buffer = request.with(context, |data| {
        let buffer = buffer_of(data, direction)?;
        // As on Windows, the request now has an MDL.
        mdl_of(data, buffer);
        Ok(buffer)
    })?;
    transaction::initialize(context, transaction.0, function, direction, vec![buffer])?;
    transaction.with(context, |data| data.request = Some(request.0));
    Ok(())
}

fn execute(context: &Context, transaction: u64, argument: u64) -> NtResult {
    transaction::execute(context, transaction, argument)
}

fn release(context: &Context, transaction: u64) -> NtStatus {
    transaction::reset(context, transaction);
    NtStatus::SUCCESS
}

/// Completes a transfer, and returns whether the transaction is complete.
fn complete(context: &Context, transaction: u64, completion: Completion, status: u64) -> bool {
    let result = transaction::complete(context, transaction, completion);
    context.write(status, &result.bits());
    result != NtStatus::MORE_PROCESSING_REQUIRED
}

fn completed(context: &Context, transaction: u64, status: u64) -> bool {
    complete(context, transaction, Completion::Full, status)
}

fn completed_with_length(context: &Context, transaction: u64, length: u64, status: u64) -> bool {
    complete(context, transaction, Completion::Partial(length), status)
}

fn completed_final(context: &Context, transaction: u64, length: u64, status: u64) -> bool {
    complete(context, transaction, Completion::Final(length), status)
}

fn get_transferred(context: &Context, transaction: Handle<TransactionData>) -> u64 {
    transaction.with(context, |data| data.transferred)
}

fn set_maximum_length(context: &Context, transaction: u64, length: u64) {
    transaction::limit(context, transaction, length);
}

fn set_single_transfer(context: &Context, transaction: Handle<TransactionData>, single: bool) {
    let (enabler, state) = transaction.with(context, |data| (data.enabler, data.state));
    let is_version_3 = context.with::<EnablerData, _>(enabler, |data| data.is_version_3());
    if context.irql() > Irql::DISPATCH_LEVEL || !is_version_3 || state != State::Released {
        context.warn_of_misuse(|| {
            "for a transaction that has a buffer, or whose enabler has an older version of DMA"
                .to_owned()
        });
        return;
    }
    transaction::require_single(context, transaction.0, single);
}

fn get_request(context: &Context, transaction: Handle<TransactionData>) -> u64 {
    transaction.with(context, |data| data.request.unwrap_or(0))
}

fn get_current_length(context: &Context, transaction: Handle<TransactionData>) -> u64 {
    transaction.with(context, |data| data.current)
}

fn get_device(context: &Context, transaction: Handle<TransactionData>) -> u64 {
    let enabler = transaction.with(context, |data| data.enabler);
    context.with::<EnablerData, _>(enabler, |data| data.device)
}

fn get_transfer_info(context: &Context, transaction: u64, registers: u64, elements: u64) {
    let needed = transaction::needs(context, transaction);
    for (address, count) in [registers, elements].into_iter().zip(needed) {
        context.write_optional(address, &count);
    }
}

/// Returns `FALSE`, because map registers are always available, so no transaction waits for them.
fn cancel(context: &Context, transaction: Handle<TransactionData>) -> bool {
    let (enabler, state) = transaction.with(context, |data| (data.enabler, data.state));
    if !context.with::<EnablerData, _>(enabler, |data| data.is_version_3()) {
        context.warn_of_misuse(|| {
            "for a transaction whose enabler has an older version of DMA".to_owned()
        });
        return false;
    }
    if state == State::Released {
        stop_for_state(context, transaction.0);
    }
    false
}
