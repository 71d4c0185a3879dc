//! The `WdfDma*` and `WdfCommonBuffer*` routines.

use super::{
    common_buffer::{self, CommonBufferData, alignment_of},
    enabler::{self, EnablerData},
    transaction::{self, Completion, State, TransactionData, extent, parts_of, stop_for_state},
};
use crate::{
    execution::routine::{At, Callback, Handle, Memory, Out, routine},
    ground::{
        NtResult, NtStatus,
        abi::{
            CommonBufferConfig, DmaEnablerConfig, DmaSystemProfileConfig, Mdl, ObjectAttributes,
        },
        irql::Irql,
    },
    services::kmdf::{
        io::irp::mdl_of,
        lifetime::give,
        state::{
            device::DeviceData,
            framework::{Context, Entries},
            request::{METHOD_BUFFERED, METHOD_MASK, METHOD_NEITHER, RequestData, RequestKind},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfDmaEnablerCreate", enabler_create),
    routine("WdfDmaEnablerGetMaximumLength", get_maximum_length),
    routine("WdfDmaEnablerGetMaximumScatterGatherElements", get_maximum_elements),
    routine("WdfDmaEnablerSetMaximumScatterGatherElements", set_maximum_elements),
    routine("WdfDmaEnablerGetFragmentLength", get_fragment_length),
    routine("WdfDmaEnablerConfigureSystemProfile", configure_system_profile),
    routine("WdfCommonBufferCreate", buffer_create),
    routine("WdfCommonBufferCreateWithConfig", buffer_create_with_config),
    routine("WdfCommonBufferGetAlignedVirtualAddress", buffer_virtual),
    routine("WdfCommonBufferGetAlignedLogicalAddress", buffer_logical),
    routine("WdfCommonBufferGetLength", buffer_length),
    routine("WdfDmaTransactionCreate", transaction_create),
    routine("WdfDmaTransactionInitialize", initialize),
    routine("WdfDmaTransactionInitializeUsingOffset", initialize_using_offset),
    routine("WdfDmaTransactionInitializeUsingRequest", initialize_using_request),
    routine("WdfDmaTransactionExecute", execute),
    routine("WdfDmaTransactionRelease", release),
    routine("WdfDmaTransactionDmaCompleted", completed),
    routine("WdfDmaTransactionDmaCompletedWithLength", completed_with_length),
    routine("WdfDmaTransactionDmaCompletedFinal", completed_final),
    routine("WdfDmaTransactionGetBytesTransferred", get_transferred),
    routine("WdfDmaTransactionSetMaximumLength", set_maximum_length),
    routine("WdfDmaTransactionSetSingleTransferRequirement", set_single_transfer),
    routine("WdfDmaTransactionGetRequest", get_request),
    routine("WdfDmaTransactionGetCurrentDmaTransferLength", get_current_length),
    routine("WdfDmaTransactionGetDevice", get_device),
    routine("WdfDmaTransactionGetTransferInfo", get_transfer_info),
    routine("WdfDmaTransactionCancel", cancel),
];

/// `WdfDmaDirectionReadFromDevice` and `WdfDmaDirectionWriteToDevice`.
const READ: u32 = 0;
const WRITE: u32 = 1;

fn enabler_create(
    context: &Context,
    device: Handle<DeviceData>,
    config: At<DmaEnablerConfig>,
    attributes: At<ObjectAttributes>,
    enabler: Out<EnablerData>,
) -> NtResult {
    device.check(context);
    let made = enabler::make(context, device.0, config.0, attributes.0);
    give(context, made, enabler.0)
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
    config: At<DmaSystemProfileConfig>,
    direction: u32,
) -> NtStatus {
    enabler.check(context);
    if config.is_null() {
        return NtStatus::INVALID_PARAMETER;
    }
    let config = config.read(context);
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
    enabler: Handle<EnablerData>,
    length: u64,
    attributes: At<ObjectAttributes>,
    buffer: Out<CommonBufferData>,
) -> NtResult {
    let made = common_buffer::make(context, enabler.0, length, 1, attributes.0);
    give(context, made, buffer.0)
}

fn buffer_create_with_config(
    context: &Context,
    enabler: Handle<EnablerData>,
    length: u64,
    config: At<CommonBufferConfig>,
    attributes: At<ObjectAttributes>,
    buffer: Out<CommonBufferData>,
) -> NtResult {
    let made = alignment_of(context, config.0).and_then(|alignment| {
        common_buffer::make(context, enabler.0, length, alignment, attributes.0)
    });
    give(context, made, buffer.0)
}

fn buffer_virtual(context: &Context, buffer: Handle<CommonBufferData>) -> Memory {
    At::new(buffer.with(context, |data| data.address))
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
    attributes: At<ObjectAttributes>,
    transaction: Out<TransactionData>,
) -> NtResult {
    enabler.check(context);
    let made = transaction::make(context, enabler.0, attributes.0);
    give(context, made, transaction.0)
}

fn initialize(
    context: &Context,
    transaction: Handle<TransactionData>,
    function: Callback,
    direction: u32,
    mdl: At<Mdl>,
    address: Memory,
    length: u64,
) -> NtResult {
    transaction.check(context);
    let one = mdl.read(context);
    let (start, size) = extent(&one);
    let offset = address.0.wrapping_sub(start);
    if length == 0 || direction > WRITE || offset >= size {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let parts = parts_of(context, mdl.0, offset, length & 0xFFFF_FFFF);
    let parts = parts.ok_or(NtStatus::INVALID_PARAMETER);
    parts.and_then(|parts| {
        transaction::initialize(context, transaction.0, function.0, direction, parts)
    })
}

fn initialize_using_offset(
    context: &Context,
    transaction: Handle<TransactionData>,
    function: Callback,
    direction: u32,
    mdl: At<Mdl>,
    offset: u64,
    length: u64,
) -> NtResult {
    let one = mdl.read(context);
    let address = extent(&one).0.wrapping_add(offset);
    initialize(context, transaction, function, direction, mdl, At::new(address), length)
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
    function: Callback,
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
    transaction::initialize(context, transaction.0, function.0, direction, vec![buffer])?;
    transaction.with(context, |data| data.request = Some(request.0));
    Ok(())
}

fn execute(context: &Context, transaction: Handle<TransactionData>, argument: Memory) -> NtResult {
    transaction::execute(context, transaction.0, argument.0)
}

fn release(context: &Context, transaction: Handle<TransactionData>) -> NtStatus {
    transaction::reset(context, transaction.0);
    NtStatus::SUCCESS
}

/// Completes a transfer, and returns whether the transaction is complete.
fn complete(context: &Context, transaction: u64, completion: Completion, status: u64) -> bool {
    let result = transaction::complete(context, transaction, completion);
    context.write(status, &result.bits());
    result != NtStatus::MORE_PROCESSING_REQUIRED
}

fn completed(context: &Context, transaction: Handle<TransactionData>, status: At<i32>) -> bool {
    complete(context, transaction.0, Completion::Full, status.0)
}

fn completed_with_length(
    context: &Context,
    transaction: Handle<TransactionData>,
    length: u64,
    status: At<i32>,
) -> bool {
    complete(context, transaction.0, Completion::Partial(length), status.0)
}

fn completed_final(
    context: &Context,
    transaction: Handle<TransactionData>,
    length: u64,
    status: At<i32>,
) -> bool {
    complete(context, transaction.0, Completion::Final(length), status.0)
}

fn get_transferred(context: &Context, transaction: Handle<TransactionData>) -> u64 {
    transaction.with(context, |data| data.transferred)
}

fn set_maximum_length(context: &Context, transaction: Handle<TransactionData>, length: u64) {
    transaction::limit(context, transaction.0, length);
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

fn get_request(context: &Context, transaction: Handle<TransactionData>) -> Handle<RequestData> {
    Handle::new(transaction.with(context, |data| data.request.unwrap_or(0)))
}

fn get_current_length(context: &Context, transaction: Handle<TransactionData>) -> u64 {
    transaction.with(context, |data| data.current)
}

fn get_device(context: &Context, transaction: Handle<TransactionData>) -> Handle<DeviceData> {
    let enabler = transaction.with(context, |data| data.enabler);
    Handle::new(context.with::<EnablerData, _>(enabler, |data| data.device))
}

fn get_transfer_info(
    context: &Context,
    transaction: Handle<TransactionData>,
    registers: At<u32>,
    elements: At<u32>,
) {
    let needed = transaction::needs(context, transaction.0);
    for (address, count) in [registers, elements].into_iter().zip(needed) {
        context.write_optional(address.0, &count);
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
