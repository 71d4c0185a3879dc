//! Requests: reads, writes and device controls.

use core::{ptr, slice, sync::atomic::Ordering};

use etw_sample_interface::{
    ACTIVITY_SIZE, Burst, CAPACITY, IOCTL_BURST, IOCTL_ECHO, IOCTL_ECHO_IN_DPC,
    IOCTL_GET_STATISTICS, IOCTL_SET_TIMER, IOCTL_SIMULATE_READS, IOCTL_WAIT, IOCTL_WAKE, MAX_BURST,
    MAX_READS, Reads, Statistics, TimerControl, untraced,
};
use wdk_etw::{Activity, ActivityId, Guid, emit};
use wdk_sys::{
    NTSTATUS, PVOID, STATUS_BUFFER_TOO_SMALL, STATUS_CANCELLED, STATUS_DEVICE_BUSY,
    STATUS_INVALID_BUFFER_SIZE, STATUS_INVALID_DEVICE_REQUEST, STATUS_INVALID_PARAMETER,
    STATUS_NOT_FOUND, STATUS_SUCCESS, ULONG, WDF_DPC_CONFIG, WDF_IO_QUEUE_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDF_OBJECT_ATTRIBUTES, WDFDEVICE, WDFDPC, WDFQUEUE, WDFREQUEST,
    call_unsafe_wdf_function_binding,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::{
    context::{self, ContextType},
    state::{Device, check},
    timer, trace,
};

static CONTEXT: ContextType<Request> = ContextType::new(c"Request", &raw const CONTEXT);

/// The context of a request. The framework zeroes it; zeros mean that there is no activity.
struct Request {
    /// The request's activity, from its arrival to its completion.
    activity: Activity,
    /// The length of the sender's activity id in front of the input and the output: 0 unless the
    /// request is traced.
    header: usize,
}

/// Returns the attributes of this driver's requests.
pub fn request_attributes() -> WDF_OBJECT_ATTRIBUTES {
    CONTEXT.attributes()
}

/// Creates the device's default queue. It presents requests in parallel, always at `PASSIVE_LEVEL`,
/// where callbacks may read the thread's activity id.
pub fn create(device: WDFDEVICE) -> Result<(), NTSTATUS> {
    let mut config = WDF_IO_QUEUE_CONFIG {
        Size: size_of::<WDF_IO_QUEUE_CONFIG>() as ULONG,
        DispatchType: wdk_sys::_WDF_IO_QUEUE_DISPATCH_TYPE::WdfIoQueueDispatchParallel,
        PowerManaged: wdk_sys::_WDF_TRI_STATE::WdfUseDefault,
        DefaultQueue: 1,
        EvtIoRead: Some(read),
        EvtIoWrite: Some(write),
        EvtIoDeviceControl: Some(device_control),
        ..WDF_IO_QUEUE_CONFIG::default()
    };
    // No limit on presented requests, as WDF_IO_QUEUE_CONFIG_INIT sets for parallel queues.
    config.Settings.Parallel.NumberOfPresentedRequests = ULONG::MAX;
    let mut attributes = context::attributes();
    attributes.ExecutionLevel = wdk_sys::_WDF_EXECUTION_LEVEL::WdfExecutionLevelPassive;
    // SAFETY: the device is live, and the call copies the structures.
    check(unsafe {
        call_unsafe_wdf_function_binding!(
            WdfIoQueueCreate,
            device,
            &raw mut config,
            &raw mut attributes,
            ptr::null_mut(),
        )
    })
}

/// Creates the queue of pending [`IOCTL_WAIT`] requests. The framework can cancel them there in any
/// power state of the device.
pub fn create_waiting(device: WDFDEVICE) -> Result<WDFQUEUE, NTSTATUS> {
    let mut config = WDF_IO_QUEUE_CONFIG {
        Size: size_of::<WDF_IO_QUEUE_CONFIG>() as ULONG,
        DispatchType: wdk_sys::_WDF_IO_QUEUE_DISPATCH_TYPE::WdfIoQueueDispatchManual,
        PowerManaged: wdk_sys::_WDF_TRI_STATE::WdfFalse,
        EvtIoCanceledOnQueue: Some(canceled_while_waiting),
        ..WDF_IO_QUEUE_CONFIG::default()
    };
    let mut queue: WDFQUEUE = ptr::null_mut();
    // SAFETY: the device is live, and the call copies the structures.
    check(unsafe {
        call_unsafe_wdf_function_binding!(
            WdfIoQueueCreate, device, &raw mut config, WDF_NO_OBJECT_ATTRIBUTES, &raw mut queue,
        )
    })?;
    Ok(queue)
}

/// Creates the DPC that completes [`IOCTL_ECHO_IN_DPC`].
pub fn create_dpc(device: WDFDEVICE) -> Result<WDFDPC, NTSTATUS> {
    let mut config = WDF_DPC_CONFIG {
        Size: size_of::<WDF_DPC_CONFIG>() as ULONG,
        EvtDpcFunc: Some(complete_deferred),
        // The callback only uses atomics, so it needs no lock of the device.
        AutomaticSerialization: 0,
    };
    let mut attributes = context::attributes();
    attributes.ParentObject = device.cast();
    let mut dpc: WDFDPC = ptr::null_mut();
    // SAFETY: the parent is live, and the call copies the structures.
    check(unsafe {
        call_unsafe_wdf_function_binding!(
            WdfDpcCreate, &raw mut config, &raw mut attributes, &raw mut dpc,
        )
    })?;
    Ok(dpc)
}

/// Completes a request, which must not be accessed afterwards.
pub fn complete(request: WDFREQUEST, status: NTSTATUS, information: usize) {
    // SAFETY: every callback completes its request once.
    unsafe {
        call_unsafe_wdf_function_binding!(
            WdfRequestCompleteWithInformation, request, status, information as u64,
        );
    }
}

/// Returns the device of a queue.
fn device_of<'a>(queue: WDFQUEUE) -> &'a Device {
    // SAFETY: the framework passes a live queue.
    let device = unsafe { call_unsafe_wdf_function_binding!(WdfIoQueueGetDevice, queue) };
    // SAFETY: the device belongs to this driver, and its context was built before the queue.
    unsafe { Device::from_handle(device) }
}

/// Returns a request's context.
///
/// # Safety
///
/// `request` must be live and not completed.
unsafe fn context_of<'a>(request: WDFREQUEST) -> &'a mut Request {
    // SAFETY: the request is live and was created with this context type.
    let context = unsafe { CONTEXT.address(request.cast()) };
    // SAFETY: zeroed memory is a valid context, and only one callback
    // at a time owns the request.
    unsafe { &mut *context }
}

/// The buffer of a request, which input and output share.
#[derive(Clone, Copy)]
struct Buffer {
    address: *mut u8,
    length: usize,
}

impl Buffer {
    /// Returns the input of a request without its header; fails if it is shorter than `minimum`.
    fn input(request: WDFREQUEST, minimum: usize) -> Result<Self, NTSTATUS> {
        // SAFETY: the caller owns the request, which is live.
        let header = unsafe { context_of(request) }.header;
        let mut address: PVOID = ptr::null_mut();
        let mut length = 0;
        // SAFETY: the request is live, and the out-parameters are locals.
        check(unsafe {
            call_unsafe_wdf_function_binding!(
                WdfRequestRetrieveInputBuffer,
                request,
                minimum.wrapping_add(header),
                &raw mut address,
                &raw mut length,
            )
        })?;
        Ok(Self::behind(header, address, length))
    }

    /// Returns the output buffer of a request without its header; fails if it is shorter than
    /// `minimum`.
    fn output(request: WDFREQUEST, minimum: usize) -> Result<Self, NTSTATUS> {
        // SAFETY: the caller owns the request, which is live.
        let header = unsafe { context_of(request) }.header;
        let mut address: PVOID = ptr::null_mut();
        let mut length = 0;
        // SAFETY: the request is live, and the out-parameters are locals.
        check(unsafe {
            call_unsafe_wdf_function_binding!(
                WdfRequestRetrieveOutputBuffer,
                request,
                minimum.wrapping_add(header),
                &raw mut address,
                &raw mut length,
            )
        })?;
        Ok(Self::behind(header, address, length))
    }

    /// Returns a buffer without the header of a traced request. The framework has checked that the
    /// header fits.
    const fn behind(header: usize, address: PVOID, length: usize) -> Self {
        Self {
            address: address.cast::<u8>().wrapping_add(header),
            length: length.saturating_sub(header),
        }
    }

    /// Returns the bytes for reading.
    ///
    /// # Safety
    ///
    /// The request must not be completed while the slice lives, and nothing may write to the
    /// buffer.
    const unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the framework guarantees address and length until the request completes.
        unsafe { slice::from_raw_parts(self.address, self.length) }
    }

    /// Returns the bytes for writing.
    ///
    /// # Safety
    ///
    /// The request must not be completed while the slice lives, and nothing else may use the
    /// buffer.
    const unsafe fn bytes_mut<'a>(self) -> &'a mut [u8] {
        // SAFETY: the framework guarantees address and length until the request completes.
        unsafe { slice::from_raw_parts_mut(self.address, self.length) }
    }
}

/// Completes a request with the result of its handler.
fn finish(request: WDFREQUEST, result: Result<usize, NTSTATUS>) {
    // SAFETY: the request is live until it is completed, below.
    let header = unsafe { context_of(request) }.header;
    match result {
        Ok(0) => complete(request, STATUS_SUCCESS, 0),
        Ok(information) => {
            let whole = information.saturating_add(header);
            complete(request, STATUS_SUCCESS, whole);
        }
        Err(status) => complete(request, status, 0),
    }
}

/// `EvtIoRead`, at `PASSIVE_LEVEL`: returns the bytes of the last write.
extern "C" fn read(queue: WDFQUEUE, request: WDFREQUEST, length: usize) {
    let device = device_of(queue);
    let result = Buffer::output(request, 1).map(|output| {
        // SAFETY: the request is completed below, and nothing else uses its buffer.
        let output = unsafe { output.bytes_mut() };
        let count = device.with_kept(|kept| {
            let count = kept.len().min(output.len());
            for (to, from) in output.iter_mut().zip(kept.iter()) {
                *to = *from;
            }
            count
        });
        device.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        count
    });
    trace::read(length, result);
    finish(request, result);
}

/// `EvtIoWrite`, at `PASSIVE_LEVEL`: keeps the bytes for later reads.
extern "C" fn write(queue: WDFQUEUE, request: WDFREQUEST, length: usize) {
    let device = device_of(queue);
    let result = Buffer::input(request, 1).and_then(|input| {
        // SAFETY: the request is completed below, and nothing writes to its buffer.
        let input = unsafe { input.bytes() };
        if input.len() > CAPACITY {
            return Err(STATUS_INVALID_BUFFER_SIZE);
        }
        trace::write_data(input);
        device.keep(input);
        device.bytes_written.fetch_add(input.len() as u64, Ordering::Relaxed);
        Ok(input.len())
    });
    trace::write(length, result);
    finish(request, result);
}

/// `EvtIoDeviceControl`, at `PASSIVE_LEVEL`.
extern "C" fn device_control(
    queue: WDFQUEUE,
    request: WDFREQUEST,
    _output_length: usize,
    _input_length: usize,
    code: ULONG,
) {
    let device = device_of(queue);
    let (code, sender) =
        untraced(code).map_or((code, Ok(None)), |code| (code, sender_of(request).map(Some)));
    let activity = trace::device_control_started(code, sender.unwrap_or(None));
    // SAFETY: the request is live until `stop` below, or the DPC, completes it.
    unsafe { context_of(request) }.activity = activity;
    if let Err(status) = sender {
        stop(request, code, Err(status));
        return;
    }
    let result = match code {
        IOCTL_ECHO => echo(request),
        IOCTL_ECHO_IN_DPC => match defer(device, request) {
            // The DPC now owns the request.
            Ok(()) => return,
            Err(status) => Err(status),
        },
        IOCTL_SET_TIMER => set_timer(device, request),
        IOCTL_GET_STATISTICS => get_statistics(device, request),
        IOCTL_BURST => burst(request),
        IOCTL_SIMULATE_READS => simulate_reads(request),
        IOCTL_WAIT => match wait(device, request) {
            // The queue of waiting requests now owns the request.
            Ok(()) => return,
            Err(status) => Err(status),
        },
        IOCTL_WAKE => wake(device),
        _ => Err(STATUS_INVALID_DEVICE_REQUEST),
    };
    stop(request, code, result);
}

/// Returns the activity id at the start of a traced request's input, and excludes it from the
/// request's buffers as their header.
fn sender_of(request: WDFREQUEST) -> Result<ActivityId, NTSTATUS> {
    let input = Buffer::input(request, ACTIVITY_SIZE)?;
    // SAFETY: the request is completed after this, and nothing writes to its buffer.
    let input = unsafe { input.bytes() };
    let id = input.first_chunk().ok_or(STATUS_BUFFER_TOO_SMALL)?;
    // SAFETY: this callback owns the request, which is live.
    unsafe { context_of(request) }.header = ACTIVITY_SIZE;
    Ok(ActivityId::from_guid(Guid::from_bytes(*id)))
}

/// Ends a device control's activity and completes the request.
fn stop(request: WDFREQUEST, code: ULONG, result: Result<usize, NTSTATUS>) {
    // SAFETY: the request is live until it is completed, below.
    let activity = unsafe { context_of(request) }.activity;
    trace::device_control_stopped(activity, code, result);
    finish(request, result);
}

/// Returns the length of the input. Input and output share a buffer, so nothing is copied.
fn echo(request: WDFREQUEST) -> Result<usize, NTSTATUS> {
    let input = Buffer::input(request, 1)?;
    let output = Buffer::output(request, 1)?;
    if output.length < input.length {
        return Err(STATUS_BUFFER_TOO_SMALL);
    }
    Ok(input.length)
}

/// Passes a request to the DPC, which can hold one request at a time.
fn defer(device: &Device, request: WDFREQUEST) -> Result<(), NTSTATUS> {
    device
        .deferred
        .compare_exchange(ptr::null_mut(), request, Ordering::Release, Ordering::Relaxed)
        .map_err(|_| STATUS_DEVICE_BUSY)?;
    // A DPC that is already queued also finds this request.
    // SAFETY: the DPC lives as long as its device.
    let _newly = unsafe { call_unsafe_wdf_function_binding!(WdfDpcEnqueue, device.dpc) };
    Ok(())
}

/// `EvtDpcFunc`, at `DISPATCH_LEVEL`.
extern "C" fn complete_deferred(dpc: WDFDPC) {
    // SAFETY: the framework passes a live DPC.
    let device = unsafe { call_unsafe_wdf_function_binding!(WdfDpcGetParentObject, dpc) };
    // SAFETY: the DPC's parent is the device that it was created for.
    let device = unsafe { Device::from_handle(device.cast()) };
    let request = device.deferred.swap(ptr::null_mut(), Ordering::Acquire);
    if request.is_null() {
        return;
    }
    // SAFETY: the request is live: `defer` passed it on, and it is completed below.
    let activity = unsafe { context_of(request) }.activity;
    let result = echo(request);
    trace::dpc_ran(activity);
    stop(request, IOCTL_ECHO_IN_DPC, result);
}

fn set_timer(device: &Device, request: WDFREQUEST) -> Result<usize, NTSTATUS> {
    let input = Buffer::input(request, size_of::<TimerControl>())?;
    // SAFETY: the request is completed after this, and nothing writes to its buffer.
    let input = unsafe { input.bytes() };
    let control = TimerControl::read_from_bytes(input).map_err(|_| STATUS_INVALID_BUFFER_SIZE)?;
    match control.run {
        0 => timer::stop(device),
        1 => timer::start(device),
        _ => return Err(STATUS_INVALID_PARAMETER),
    }
    Ok(0)
}

/// Writes a burst of events.
fn burst(request: WDFREQUEST) -> Result<usize, NTSTATUS> {
    let input = Buffer::input(request, size_of::<Burst>())?;
    // SAFETY: the request is completed after this, and nothing writes to its buffer.
    let input = unsafe { input.bytes() };
    let burst = Burst::read_from_bytes(input).map_err(|_| STATUS_INVALID_BUFFER_SIZE)?;
    if burst.count > MAX_BURST {
        return Err(STATUS_INVALID_PARAMETER);
    }
    for number in 0..burst.count {
        emit!(trace::burst(burst.sender, number));
    }
    Ok(0)
}

/// Writes the events of simulated local and remote reads.
fn simulate_reads(request: WDFREQUEST) -> Result<usize, NTSTATUS> {
    let input = Buffer::input(request, size_of::<Reads>())?;
    // SAFETY: the request is completed after this, and nothing writes to its buffer.
    let input = unsafe { input.bytes() };
    let reads = Reads::read_from_bytes(input).map_err(|_| STATUS_INVALID_BUFFER_SIZE)?;
    if reads.local > MAX_READS || reads.remote > MAX_READS {
        return Err(STATUS_INVALID_PARAMETER);
    }
    for number in 0..reads.local {
        emit!(trace::local_read(number));
    }
    for number in 0..reads.remote {
        emit!(trace::remote_read(number));
    }
    Ok(0)
}

/// Makes a request pending until it is woken or canceled.
fn wait(device: &Device, request: WDFREQUEST) -> Result<(), NTSTATUS> {
    // Check the output buffer now, while the request can still be rejected.
    Buffer::output(request, size_of::<u64>())?;
    // SAFETY: this callback owns the request, and the queue lives as long as its device.
    check(unsafe {
        call_unsafe_wdf_function_binding!(WdfRequestForwardToIoQueue, request, device.waiting)
    })
}

/// Completes the request that has waited longest.
fn wake(device: &Device) -> Result<usize, NTSTATUS> {
    let mut request: WDFREQUEST = ptr::null_mut();
    // SAFETY: the queue lives as long as its device, and the out-parameter is a local.
    let found = unsafe {
        call_unsafe_wdf_function_binding!(
            WdfIoQueueRetrieveNextRequest, device.waiting, &raw mut request,
        )
    };
    check(found).map_err(|_| STATUS_NOT_FOUND)?;
    let number = device.woken.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    let result = Buffer::output(request, size_of::<u64>()).and_then(|output| {
        // SAFETY: the request is completed below, and nothing else uses its buffer.
        let output = unsafe { output.bytes_mut() };
        number.write_to_prefix(output).map_err(|_| STATUS_BUFFER_TOO_SMALL)?;
        Ok(size_of::<u64>())
    });
    stop(request, IOCTL_WAIT, result);
    Ok(0)
}

/// Cancels the waiting requests and rejects new ones. IRQL: `PASSIVE_LEVEL`.
pub fn purge_waiting(device: &Device) {
    // SAFETY: the queue lives as long as its device, and no completion callback is set.
    unsafe {
        call_unsafe_wdf_function_binding!(WdfIoQueuePurge, device.waiting, None, ptr::null_mut());
    }
}

/// `EvtIoCanceledOnQueue`: a waiting request was canceled or its device is being removed.
extern "C" fn canceled_while_waiting(_queue: WDFQUEUE, request: WDFREQUEST) {
    stop(request, IOCTL_WAIT, Err(STATUS_CANCELLED));
}

fn get_statistics(device: &Device, request: WDFREQUEST) -> Result<usize, NTSTATUS> {
    let output = Buffer::output(request, size_of::<Statistics>())?;
    // SAFETY: the request is completed after this, and nothing else uses its buffer.
    let output = unsafe { output.bytes_mut() };
    device.statistics().write_to_prefix(output).map_err(|_| STATUS_BUFFER_TOO_SMALL)?;
    Ok(size_of::<Statistics>())
}
