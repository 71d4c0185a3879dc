//! Write requests: the bytes of Modbus frames.

use core::{
    ptr, slice,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

use modbus_core::{
    DecoderType,
    rtu::{self, DecodedFrame, FrameLocation},
};
use tracing::Span;
use wdk_etw::{NtStatus, emit};
use wdk_sys::{
    NTSTATUS, STATUS_INVALID_PARAMETER, STATUS_SUCCESS, ULONG, WDF_OBJECT_ATTRIBUTES, WDFDEVICE,
    WDFQUEUE, WDFREQUEST, WDFSPINLOCK, call_unsafe_wdf_function_binding,
};

use crate::trace;

/// The lock of the statistics.
static LOCK: AtomicPtr<wdk_sys::WDFSPINLOCK__> = AtomicPtr::new(ptr::null_mut());

/// The number of decoded frames. Only the holder of [`LOCK`] changes it.
static FRAMES: AtomicU64 = AtomicU64::new(0);

/// Creates the lock of the statistics, which the device owns.
pub fn create_lock(device: WDFDEVICE) -> NTSTATUS {
    let mut attributes = WDF_OBJECT_ATTRIBUTES {
        Size: size_of::<WDF_OBJECT_ATTRIBUTES>() as ULONG,
        ExecutionLevel: wdk_sys::_WDF_EXECUTION_LEVEL::WdfExecutionLevelInheritFromParent,
        SynchronizationScope:
            wdk_sys::_WDF_SYNCHRONIZATION_SCOPE::WdfSynchronizationScopeInheritFromParent,
        ParentObject: device.cast(),
        ..WDF_OBJECT_ATTRIBUTES::default()
    };
    let mut lock: WDFSPINLOCK = ptr::null_mut();
    // SAFETY: the parent is live, the call copies the structure, and the output parameter is a local
    // variable.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(WdfSpinLockCreate, &raw mut attributes, &raw mut lock)
    };
    LOCK.store(lock, Ordering::Release);
    status
}

/// Decodes a frame that a client wrote (`EvtIoWrite`, at `PASSIVE_LEVEL`).
pub extern "C" fn write(_queue: WDFQUEUE, request: WDFREQUEST, length: usize) {
    // This activity's parent is the client thread's activity, if it has one.
    let span = tracing::info_span!("write", length);
    let (status, used) = span.in_scope(|| match bytes_of(request) {
        Ok(bytes) => {
            // A declared event, which also belongs to the span.
            emit!(trace::frame_received(bytes));
            decode(bytes, &span)
        }
        Err(status) => {
            tracing::warn!(status, "no buffer");
            (status, 0)
        }
    });
    emit!(trace::request_completed(NtStatus(status), used as u64));
    // SAFETY: this callback owns the request, and nothing uses it afterwards.
    unsafe {
        call_unsafe_wdf_function_binding!(
            WdfRequestCompleteWithInformation, request, status, used as u64,
        );
    }
}

/// Returns the bytes that a client wrote.
fn bytes_of<'a>(request: WDFREQUEST) -> Result<&'a [u8], NTSTATUS> {
    let mut start = ptr::null_mut();
    let mut length = 0;
    // SAFETY: the request is not completed, and the output parameters are local variables.
    let status = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfRequestRetrieveInputBuffer, request, 1, &raw mut start, &raw mut length,
        )
    };
    if status == STATUS_SUCCESS {
        // SAFETY: the framework returns a buffer of this length, which is valid until the request
        // is completed.
        Ok(unsafe { slice::from_raw_parts(start.cast::<u8>(), length) })
    } else {
        Err(status)
    }
}

/// Calls the decoder. Out of line, so that the repository's panic check can distinguish the crate's
/// panics, such as index checks', from the driver's own.
#[inline(never)]
fn find_frame(
    bytes: &[u8],
) -> Result<Option<(DecodedFrame<'_>, FrameLocation)>, modbus_core::Error> {
    rtu::decode(DecoderType::Request, bytes)
}

/// Decodes a frame. Returns the request's status, and the number of bytes up to the frame's end.
fn decode(bytes: &[u8], request: &Span) -> (NTSTATUS, usize) {
    // The crate logs the errors that it finds in the bytes.
    match find_frame(bytes) {
        Ok(Some((frame, place))) => {
            let function = frame.pdu.first().copied().map(u32::from);
            tracing::debug!(slave = frame.slave, function, "decoded a frame");
            count(request);
            (STATUS_SUCCESS, place.start.saturating_add(place.size))
        }
        Ok(None) => {
            tracing::debug!("no whole frame");
            (STATUS_SUCCESS, 0)
        }
        Err(error) => {
            tracing::warn!(%error, "no frame");
            (STATUS_INVALID_PARAMETER, 0)
        }
    }
}

/// Counts a frame, at `DISPATCH_LEVEL`.
fn count(request: &Span) {
    let lock = LOCK.load(Ordering::Acquire);
    // SAFETY: the device owns the lock, and exists as long as its requests.
    unsafe { call_unsafe_wdf_function_binding!(WdfSpinLockAcquire, lock) };
    let frames = FRAMES.load(Ordering::Relaxed).saturating_add(1);
    FRAMES.store(frames, Ordering::Relaxed);
    // At DISPATCH_LEVEL, an event must name its span.
    tracing::trace!(parent: request, frames, "counted");
    // `log` has no spans, so this record has no activity at DISPATCH_LEVEL.
    log::debug!("{frames} frames so far");
    // SAFETY: this function acquired the lock.
    unsafe { call_unsafe_wdf_function_binding!(WdfSpinLockRelease, lock) };
}
