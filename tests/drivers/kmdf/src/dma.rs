//! DMA: an enabler, a common buffer, and a transaction that the test completes in place of the
//! device.

use core::{
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use etw_driver_support::{made, sized};
use wdk_sys::{
    BOOLEAN, NTSTATUS, PSCATTER_GATHER_LIST, STATUS_SUCCESS, ULONG, WDF_COMMON_BUFFER_CONFIG,
    WDF_DMA_DIRECTION, WDF_DMA_ENABLER_CONFIG, WDF_NO_OBJECT_ATTRIBUTES, WDFCONTEXT, WDFDEVICE,
    WDFDMAENABLER, WDFDMATRANSACTION, WDFREQUEST,
};

use crate::{
    commands,
    framework::{complete, irql, wdf},
};

/// The enabler, the transaction, and the request that it transfers.
static ENABLER: AtomicPtr<wdk_sys::WDFDMAENABLER__> = AtomicPtr::new(ptr::null_mut());
static TRANSACTION: AtomicPtr<wdk_sys::WDFDMATRANSACTION__> = AtomicPtr::new(ptr::null_mut());
static REQUEST: AtomicPtr<wdk_sys::WDFREQUEST__> = AtomicPtr::new(ptr::null_mut());

const WRITE: WDF_DMA_DIRECTION = wdk_sys::_WDF_DMA_DIRECTION::WdfDmaDirectionWriteToDevice;
const READ: WDF_DMA_DIRECTION = wdk_sys::_WDF_DMA_DIRECTION::WdfDmaDirectionReadFromDevice;

/// Runs a command of this module. Returns false if the command belongs to another module.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) -> bool {
    match code {
        commands::DMA_CREATE => create(device),
        commands::DMA_START => {
            start(request);
            return true;
        }
        commands::DMA_COMPLETE => {
            finish(|it, status| wdf!(WdfDmaTransactionDmaCompleted, it, status));
        }
        commands::DMA_COMPLETE_SHORT => {
            finish(|it, status| wdf!(WdfDmaTransactionDmaCompletedWithLength, it, 1000, status));
        }
        commands::DMA_COMPLETE_FINAL => {
            finish(|it, status| wdf!(WdfDmaTransactionDmaCompletedFinal, it, 10, status));
        }
        commands::DMA_EXECUTE => {
            let transaction = TRANSACTION.load(Ordering::Relaxed);
            let _status = wdf!(WdfDmaTransactionExecute, transaction, ptr::null_mut());
        }
        _ => return false,
    }
    complete(request, STATUS_SUCCESS);
    true
}

extern "C" fn enable(_enabler: WDFDMAENABLER) -> NTSTATUS {
    wdk::println!("dma enable at {}", irql());
    STATUS_SUCCESS
}

extern "C" fn disable(_enabler: WDFDMAENABLER) -> NTSTATUS {
    wdk::println!("dma disable at {}", irql());
    STATUS_SUCCESS
}

fn create(device: WDFDEVICE) {
    let mut config = sized!(WDF_DMA_ENABLER_CONFIG {
        Profile: wdk_sys::_WDF_DMA_PROFILE::WdfDmaProfileScatterGather,
        MaximumLength: 0,
        EvtDmaEnablerEnable: Some(enable),
        EvtDmaEnablerDisable: Some(disable)
    });
    let mut enabler: WDFDMAENABLER = ptr::null_mut();
    let mut make = |config: &mut WDF_DMA_ENABLER_CONFIG| {
        wdf!(WdfDmaEnablerCreate, device, config, WDF_NO_OBJECT_ATTRIBUTES, &raw mut enabler)
    };
    let empty = make(&mut config);
    config.MaximumLength = 8192;
    let status = make(&mut config);
    ENABLER.store(enabler, Ordering::Relaxed);
    wdf!(WdfDmaEnablerSetMaximumScatterGatherElements, enabler, 3);
    let length = wdf!(WdfDmaEnablerGetMaximumLength, enabler);
    let fragment = wdf!(WdfDmaEnablerGetFragmentLength, enabler, WRITE);
    let elements = wdf!(WdfDmaEnablerGetMaximumScatterGatherElements, enabler);
    wdk::println!("enabler {empty:x} {status:x} {length} {fragment} {elements}");
    let mut config = sized!(WDF_COMMON_BUFFER_CONFIG { AlignmentRequirement: 0xFFFF });
    let (status, buffer) = made(|handle| {
        wdf!(
            WdfCommonBufferCreateWithConfig, enabler, 24, &raw mut config,
            WDF_NO_OBJECT_ATTRIBUTES, handle
        )
    });
    let address = wdf!(WdfCommonBufferGetAlignedVirtualAddress, buffer).cast::<[u8; 8]>();
    let logical = wdf!(WdfCommonBufferGetAlignedLogicalAddress, buffer);
    let length = wdf!(WdfCommonBufferGetLength, buffer);
    // SAFETY: the buffer is at least 8 bytes long, and only the device uses it besides this driver.
    unsafe { *address = *b"for you!" };
    // SAFETY: any value is valid.
    let logical = unsafe { logical.QuadPart };
    wdk::println!("common {status:x} {length} bus {logical:x} {}", address.addr() % 0x1_0000);
    let (status, transaction) =
        made(|handle| wdf!(WdfDmaTransactionCreate, enabler, WDF_NO_OBJECT_ATTRIBUTES, handle));
    TRANSACTION.store(transaction, Ordering::Relaxed);
    let same = wdf!(WdfDmaTransactionGetDevice, transaction) == device;
    wdk::println!("transaction {status:x} {same}");
}

fn start(request: WDFREQUEST) {
    let transaction = TRANSACTION.load(Ordering::Relaxed);
    REQUEST.store(request, Ordering::Relaxed);
    let wrong =
        wdf!(WdfDmaTransactionInitializeUsingRequest, transaction, request, Some(program), 2);
    let status =
        wdf!(WdfDmaTransactionInitializeUsingRequest, transaction, request, Some(program), WRITE);
    let mut registers: ULONG = 0;
    let mut elements: ULONG = 0;
    wdf!(WdfDmaTransactionGetTransferInfo, transaction, &raw mut registers, &raw mut elements);
    let executed = wdf!(
        WdfDmaTransactionExecute,
        transaction,
        ptr::without_provenance_mut::<core::ffi::c_void>(7)
    );
    wdk::println!("start {wrong:x} {status:x} {executed:x} needs {registers} {elements}");
}

/// `EvtProgramDma`.
extern "C" fn program(
    transaction: WDFDMATRANSACTION,
    _device: WDFDEVICE,
    context: WDFCONTEXT,
    direction: WDF_DMA_DIRECTION,
    list: PSCATTER_GATHER_LIST,
) -> BOOLEAN {
    // SAFETY: the framework passes a list.
    let count = unsafe { (*list).NumberOfElements };
    let length = wdf!(WdfDmaTransactionGetCurrentDmaTransferLength, transaction);
    wdk::println!(
        "program {count} of {length} for {} at {}, write {}",
        context.addr(),
        irql(),
        direction != READ
    );
    // SAFETY: the elements follow the list's head.
    let first = unsafe { &raw const (*list).Elements }.cast::<wdk_sys::SCATTER_GATHER_ELEMENT>();
    for index in 0..count as usize {
        // SAFETY: the list has this many elements.
        let element = unsafe { first.add(index) };
        // SAFETY: as above.
        let element = unsafe { *element };
        // SAFETY: any value is valid.
        let address = unsafe { element.Address.QuadPart };
        wdk::println!("element {address:x} {}", element.Length);
    }
    1
}

/// Ends a transfer with the call `end`. If it was the last transfer, completes the request of the
/// transaction.
fn finish(end: impl FnOnce(WDFDMATRANSACTION, *mut NTSTATUS) -> BOOLEAN) {
    let transaction = TRANSACTION.load(Ordering::Relaxed);
    let mut status: NTSTATUS = 0;
    let is_over = end(transaction, &raw mut status);
    let bytes = wdf!(WdfDmaTransactionGetBytesTransferred, transaction);
    wdk::println!("over {is_over} {status:x} {bytes}");
    if is_over == 0 {
        return;
    }
    let request = REQUEST.swap(ptr::null_mut(), Ordering::Relaxed);
    let same = wdf!(WdfDmaTransactionGetRequest, transaction) == request;
    let _status = wdf!(WdfDmaTransactionRelease, transaction);
    wdk::println!("its request {same}");
    wdf!(WdfRequestCompleteWithInformation, request, status, bytes as u64);
}
