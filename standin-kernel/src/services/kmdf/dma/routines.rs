//! The `WdfDma*` and `WdfCommonBuffer*` routines.

use super::{
    common_buffer::{self, CommonBufferData, alignment_of},
    enabler::{self, EnablerData},
    transaction::{self, Completion, State, TransactionData, extent, parts_of, stop_for_state},
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{
        framework_abi::{DmaSystemProfileConfig, Mdl},
        irql::Irql,
        status::NtStatus,
    },
    services::kmdf::{
        io::irp::mdl_of,
        object::{give, status_of},
        state::{
            device::DeviceData,
            framework::{Context, Entries},
            request::{METHOD_BUFFERED, METHOD_MASK, METHOD_NEITHER, RequestData, RequestKind},
        },
    },
};

pub const ENTRIES: Entries = &[
    ("WdfDmaEnablerCreate", Routine::Five(enabler_create)),
    ("WdfDmaEnablerGetMaximumLength", Routine::Two(get_maximum_length)),
    ("WdfDmaEnablerGetMaximumScatterGatherElements", Routine::Two(get_maximum_elements)),
    ("WdfDmaEnablerSetMaximumScatterGatherElements", Routine::Three(set_maximum_elements)),
    ("WdfDmaEnablerGetFragmentLength", Routine::Three(get_fragment_length)),
    ("WdfDmaEnablerConfigureSystemProfile", Routine::Four(configure_system_profile)),
    ("WdfCommonBufferCreate", Routine::Five(buffer_create)),
    ("WdfCommonBufferCreateWithConfig", Routine::Six(buffer_create_with_config)),
    ("WdfCommonBufferGetAlignedVirtualAddress", Routine::Two(buffer_virtual)),
    ("WdfCommonBufferGetAlignedLogicalAddress", Routine::Two(buffer_logical)),
    ("WdfCommonBufferGetLength", Routine::Two(buffer_length)),
    ("WdfDmaTransactionCreate", Routine::Four(transaction_create)),
    ("WdfDmaTransactionInitialize", Routine::Seven(initialize)),
    ("WdfDmaTransactionInitializeUsingOffset", Routine::Seven(initialize_using_offset)),
    ("WdfDmaTransactionInitializeUsingRequest", Routine::Five(initialize_using_request)),
    ("WdfDmaTransactionExecute", Routine::Three(execute)),
    ("WdfDmaTransactionRelease", Routine::Two(release)),
    ("WdfDmaTransactionDmaCompleted", Routine::Three(completed)),
    ("WdfDmaTransactionDmaCompletedWithLength", Routine::Four(completed_with_length)),
    ("WdfDmaTransactionDmaCompletedFinal", Routine::Four(completed_final)),
    ("WdfDmaTransactionGetBytesTransferred", Routine::Two(get_transferred)),
    ("WdfDmaTransactionSetMaximumLength", Routine::Three(set_maximum_length)),
    ("WdfDmaTransactionSetSingleTransferRequirement", Routine::Three(set_single_transfer)),
    ("WdfDmaTransactionGetRequest", Routine::Two(get_request)),
    ("WdfDmaTransactionGetCurrentDmaTransferLength", Routine::Two(get_current_length)),
    ("WdfDmaTransactionGetDevice", Routine::Two(get_device)),
    ("WdfDmaTransactionGetTransferInfo", Routine::Four(get_transfer_info)),
    ("WdfDmaTransactionCancel", Routine::Two(cancel)),
];

/// `WdfDmaDirectionReadFromDevice` and `WdfDmaDirectionWriteToDevice`.
const READ: u32 = 0;
const WRITE: u32 = 1;

fn enabler_create(
    context: &Context,
    _globals: u64,
    device: u64,
    config: u64,
    attributes: u64,
    enabler: u64,
) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    let made = enabler::make(context, device, config, attributes);
    give(context, made, enabler)
}

fn get_maximum_length(context: &Context, _globals: u64, enabler: u64) -> u64 {
    context.with::<EnablerData, _>(enabler, |data| data.maximum_length())
}

fn get_maximum_elements(context: &Context, _globals: u64, enabler: u64) -> u64 {
    context.with::<EnablerData, _>(enabler, |data| data.maximum_elements)
}

fn set_maximum_elements(context: &Context, _globals: u64, enabler: u64, count: u64) -> u64 {
    context.with::<EnablerData, _>(enabler, |data| {
        if count != 0 {
            data.set_maximum_elements(count);
        }
    });
    0
}

/// Returns the longest transfer, which is that of the enabler: there are enough map registers for it.
fn get_fragment_length(context: &Context, _globals: u64, enabler: u64, direction: u64) -> u64 {
    let (length, is_system) =
        context.with::<EnablerData, _>(enabler, |data| (data.maximum_length(), data.is_system()));
    if is_system || low_half(direction) > WRITE { 0 } else { length }
}

/// Fails, since the machine has no DMA controller.
fn configure_system_profile(
    context: &Context,
    _globals: u64,
    enabler: u64,
    config: u64,
    direction: u64,
) -> u64 {
    context.with::<EnablerData, _>(enabler, |_| ());
    if config == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let config: DmaSystemProfileConfig = context.read(config);
    let status = if config.size as usize != size_of::<DmaSystemProfileConfig>() {
        NtStatus::INFO_LENGTH_MISMATCH
    } else if config.dma_descriptor == 0 || low_half(direction) > WRITE {
        NtStatus::INVALID_PARAMETER
    } else {
        NtStatus::UNSUCCESSFUL
    };
    status.to_register()
}

fn buffer_create(
    context: &Context,
    _globals: u64,
    enabler: u64,
    length: u64,
    attributes: u64,
    buffer: u64,
) -> u64 {
    let made = common_buffer::make(context, enabler, length, 1, attributes);
    give(context, made, buffer)
}

fn buffer_create_with_config(
    context: &Context,
    _globals: u64,
    enabler: u64,
    length: u64,
    config: u64,
    attributes: u64,
    buffer: u64,
) -> u64 {
    let made = alignment_of(context, config)
        .and_then(|alignment| common_buffer::make(context, enabler, length, alignment, attributes));
    give(context, made, buffer)
}

fn buffer_virtual(context: &Context, _globals: u64, buffer: u64) -> u64 {
    context.with::<CommonBufferData, _>(buffer, |data| data.address)
}

fn buffer_logical(context: &Context, _globals: u64, buffer: u64) -> u64 {
    context.with::<CommonBufferData, _>(buffer, |data| data.bus)
}

fn buffer_length(context: &Context, _globals: u64, buffer: u64) -> u64 {
    context.with::<CommonBufferData, _>(buffer, |data| data.length)
}

fn transaction_create(
    context: &Context,
    _globals: u64,
    enabler: u64,
    attributes: u64,
    transaction: u64,
) -> u64 {
    context.with::<EnablerData, _>(enabler, |_| ());
    let made = transaction::make(context, enabler, attributes);
    give(context, made, transaction)
}

fn initialize(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, transaction, function, direction, mdl, address, length] = arguments;
    context.with::<TransactionData, _>(transaction, |_| ());
    let one: Mdl = context.read(mdl);
    let (start, size) = extent(&one);
    let offset = address.wrapping_sub(start);
    let direction = low_half(direction);
    if length == 0 || direction > WRITE || offset >= size {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let parts = parts_of(context, mdl, offset, length & 0xFFFF_FFFF);
    let parts = parts.ok_or(NtStatus::INVALID_PARAMETER);
    status_of(parts.and_then(|parts| {
        transaction::initialize(context, transaction, function, direction, parts)
    }))
}

fn initialize_using_offset(context: &Context, arguments: [u64; 7]) -> u64 {
    let [globals, transaction, function, direction, mdl, offset, length] = arguments;
    let one: Mdl = context.read(mdl);
    let address = extent(&one).0.wrapping_add(offset);
    initialize(context, [globals, transaction, function, direction, mdl, address, length])
}

/// Returns the buffer of a request that is transferred in a direction.
fn buffer_of(data: &RequestData, direction: u32) -> Result<(u64, u64), NtStatus> {
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
    _globals: u64,
    transaction: u64,
    request: u64,
    function: u64,
    direction: u64,
) -> u64 {
    context.with::<TransactionData, _>(transaction, |_| ());
    let direction = low_half(direction);
    if direction > WRITE {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let buffer = context.with::<RequestData, _>(request, |data| {
        let buffer = buffer_of(data, direction)?;
        // The MDL exists, as it does on Windows.
        mdl_of(data, buffer);
        Ok(buffer)
    });
    let result = buffer.and_then(|buffer| {
        transaction::initialize(context, transaction, function, direction, vec![buffer])
    });
    if result.is_ok() {
        context.with::<TransactionData, _>(transaction, |data| data.request = Some(request));
    }
    status_of(result)
}

fn execute(context: &Context, _globals: u64, transaction: u64, argument: u64) -> u64 {
    status_of(transaction::execute(context, transaction, argument))
}

fn release(context: &Context, _globals: u64, transaction: u64) -> u64 {
    transaction::reset(context, transaction);
    NtStatus::SUCCESS.to_register()
}

/// Completes a transfer, and returns whether the transaction is over.
fn complete(context: &Context, transaction: u64, completion: Completion, status: u64) -> u64 {
    let result = transaction::complete(context, transaction, completion);
    context.write(status, &result.bits());
    u64::from(result != NtStatus::MORE_PROCESSING_REQUIRED)
}

fn completed(context: &Context, _globals: u64, transaction: u64, status: u64) -> u64 {
    complete(context, transaction, Completion::Full, status)
}

fn completed_with_length(
    context: &Context,
    _globals: u64,
    transaction: u64,
    length: u64,
    status: u64,
) -> u64 {
    complete(context, transaction, Completion::Partial(length), status)
}

fn completed_final(
    context: &Context,
    _globals: u64,
    transaction: u64,
    length: u64,
    status: u64,
) -> u64 {
    complete(context, transaction, Completion::Final(length), status)
}

fn get_transferred(context: &Context, _globals: u64, transaction: u64) -> u64 {
    context.with::<TransactionData, _>(transaction, |data| data.transferred)
}

fn set_maximum_length(context: &Context, _globals: u64, transaction: u64, length: u64) -> u64 {
    transaction::limit(context, transaction, length);
    0
}

fn set_single_transfer(context: &Context, _globals: u64, transaction: u64, single: u64) -> u64 {
    let (enabler, state) =
        context.with::<TransactionData, _>(transaction, |data| (data.enabler, data.state));
    let is_version_3 = context.with::<EnablerData, _>(enabler, |data| data.is_version_3());
    if context.irql() > Irql::DISPATCH_LEVEL || !is_version_3 || state != State::Released {
        context.warn_of_misuse(|| {
            "for a transaction that has a buffer, or whose enabler has an older version of DMA"
                .to_owned()
        });
        return 0;
    }
    transaction::require_single(context, transaction, single & 0xFF != 0);
    0
}

fn get_request(context: &Context, _globals: u64, transaction: u64) -> u64 {
    context.with::<TransactionData, _>(transaction, |data| data.request.unwrap_or(0))
}

fn get_current_length(context: &Context, _globals: u64, transaction: u64) -> u64 {
    context.with::<TransactionData, _>(transaction, |data| data.current)
}

fn get_device(context: &Context, _globals: u64, transaction: u64) -> u64 {
    let enabler = context.with::<TransactionData, _>(transaction, |data| data.enabler);
    context.with::<EnablerData, _>(enabler, |data| data.device)
}

fn get_transfer_info(
    context: &Context,
    _globals: u64,
    transaction: u64,
    registers: u64,
    elements: u64,
) -> u64 {
    let needed = transaction::needs(context, transaction);
    for (address, count) in [registers, elements].into_iter().zip(needed) {
        if address != 0 {
            context.write(address, &count);
        }
    }
    0
}

/// Returns `FALSE`: map registers are there at once, so no transaction waits for them.
fn cancel(context: &Context, _globals: u64, transaction: u64) -> u64 {
    let (enabler, state) =
        context.with::<TransactionData, _>(transaction, |data| (data.enabler, data.state));
    if !context.with::<EnablerData, _>(enabler, |data| data.is_version_3()) {
        context.warn_of_misuse(|| {
            "for a transaction whose enabler has an older version of DMA".to_owned()
        });
        return 0;
    }
    if state == State::Released {
        stop_for_state(context, transaction);
    }
    0
}
