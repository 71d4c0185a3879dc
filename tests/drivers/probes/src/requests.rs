//! The device's requests. The queue presents one at a time, at `PASSIVE_LEVEL`.

use core::{
    ptr, slice,
    sync::atomic::{AtomicPtr, Ordering},
};

use etw_driver_support::{at_irql, sized, wdf};
use etw_probes_interface::{Ask, Callbacks, IOCTL_ASK, IOCTL_CALLBACKS, Reply, place};
use wdk_sys::{
    NTSTATUS, PVOID, STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_DEVICE_REQUEST,
    STATUS_INVALID_PARAMETER, STATUS_SUCCESS, ULONG, WDF_DPC_CONFIG, WDF_IO_QUEUE_CONFIG,
    WDF_WORKITEM_CONFIG, WDFDEVICE, WDFDPC, WDFDPC__, WDFQUEUE, WDFREQUEST, WDFREQUEST__,
    WDFWORKITEM, WDFWORKITEM__,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::{
    answers, callbacks,
    context::{attributes, check},
    stored, thread,
};

/// `DISPATCH_LEVEL`.
const DISPATCH_LEVEL: u8 = 2;

/// The request that a DPC, a work item or a thread must answer, or null.
static PENDING: AtomicPtr<WDFREQUEST__> = AtomicPtr::new(ptr::null_mut());
static DPC: AtomicPtr<WDFDPC__> = AtomicPtr::new(ptr::null_mut());
static WORK_ITEM: AtomicPtr<WDFWORKITEM__> = AtomicPtr::new(ptr::null_mut());
/// The driver object, with the type that the framework returns.
static DRIVER: AtomicPtr<wdk_sys::DRIVER_OBJECT> = AtomicPtr::new(ptr::null_mut());

/// Creates the device's queue, DPC and work item.
pub fn create(device: WDFDEVICE) -> Result<(), NTSTATUS> {
    let driver = wdf!(WdfDeviceGetDriver, device);
    let object = wdf!(WdfDriverWdmGetDriverObject, driver);
    DRIVER.store(object, Ordering::Release);
    let mut of_device = attributes(device.cast());
    let mut config = WDF_DPC_CONFIG {
        Size: size_of::<WDF_DPC_CONFIG>() as ULONG,
        EvtDpcFunc: Some(in_dpc),
        AutomaticSerialization: 0,
    };
    let mut dpc: WDFDPC = ptr::null_mut();
    check(wdf!(WdfDpcCreate, &raw mut config, &raw mut of_device, &raw mut dpc,))?;
    DPC.store(dpc, Ordering::Release);
    let mut config = WDF_WORKITEM_CONFIG {
        Size: size_of::<WDF_WORKITEM_CONFIG>() as ULONG,
        EvtWorkItemFunc: Some(in_work_item),
        AutomaticSerialization: 0,
    };
    let mut work_item: WDFWORKITEM = ptr::null_mut();
    check(wdf!(WdfWorkItemCreate, &raw mut config, &raw mut of_device, &raw mut work_item,))?;
    WORK_ITEM.store(work_item, Ordering::Release);
    let mut config = sized!(WDF_IO_QUEUE_CONFIG {
        DispatchType: wdk_sys::_WDF_IO_QUEUE_DISPATCH_TYPE::WdfIoQueueDispatchSequential,
        PowerManaged: wdk_sys::_WDF_TRI_STATE::WdfUseDefault,
        DefaultQueue: 1,
        EvtIoDeviceControl: Some(device_control)
    });
    let mut queue_attributes = attributes(ptr::null_mut());
    queue_attributes.ExecutionLevel = wdk_sys::_WDF_EXECUTION_LEVEL::WdfExecutionLevelPassive;
    check(wdf!(
        WdfIoQueueCreate,
        device,
        &raw mut config,
        &raw mut queue_attributes,
        ptr::null_mut(),
    ))
}

fn complete(request: WDFREQUEST, result: Result<usize, NTSTATUS>) {
    let (status, information) = match result {
        Ok(length) => (STATUS_SUCCESS, length),
        Err(status) => (status, 0),
    };
    wdf!(WdfRequestCompleteWithInformation, request, status, information as u64,);
}

/// The buffer of a request. Input and output share it.
struct Buffer {
    address: *mut u8,
    input: usize,
    output: usize,
}

impl Buffer {
    fn retrieve(
        request: WDFREQUEST,
        minimum_input: usize,
        minimum_output: usize,
    ) -> Result<Self, NTSTATUS> {
        let mut address: PVOID = ptr::null_mut();
        let mut output = 0;
        check(wdf!(
            WdfRequestRetrieveOutputBuffer, request, minimum_output, &raw mut address,
            &raw mut output,
        ))?;
        let mut input = 0;
        if minimum_input > 0 {
            check(wdf!(
                WdfRequestRetrieveInputBuffer, request, minimum_input, &raw mut address,
                &raw mut input,
            ))?;
        }
        Ok(Self { address: address.cast(), input, output })
    }

    const fn input(&self) -> &[u8] {
        // SAFETY: the system's buffer has `self.input` bytes of input, and until the request is
        // completed, only `put`, which consumes the buffer, writes to it.
        unsafe { slice::from_raw_parts(self.address, self.input) }
    }

    /// Writes the output and returns its length.
    const fn put(self, bytes: &[u8]) -> Result<usize, NTSTATUS> {
        if bytes.len() > self.output {
            return Err(STATUS_BUFFER_TOO_SMALL);
        }
        // SAFETY: the system's buffer has at least `bytes.len()` bytes of output, and does not
        // overlap `bytes`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.address, bytes.len()) };
        Ok(bytes.len())
    }
}

/// Returns a request's buffer and its [`Ask`].
fn ask_of(request: WDFREQUEST) -> Result<(Buffer, Ask), NTSTATUS> {
    let buffer = Buffer::retrieve(request, size_of::<Ask>(), size_of::<Reply>())?;
    let (ask, _) = Ask::read_from_prefix(buffer.input()).map_err(|_| STATUS_INVALID_PARAMETER)?;
    Ok((buffer, ask))
}

/// Performs a request's operation in the current context.
fn answer_here(request: WDFREQUEST) -> Result<usize, NTSTATUS> {
    let (buffer, ask) = ask_of(request)?;
    let behind = buffer.input().get(size_of::<Ask>()..).unwrap_or_default();
    let reply = answers::answer(&ask, behind);
    buffer.put(reply.as_bytes())
}

/// Answers the pending request in the current context, and completes it. IRQL: `DISPATCH_LEVEL` or
/// below.
fn answer_pending() {
    let request = PENDING.swap(ptr::null_mut(), Ordering::AcqRel);
    if !request.is_null() {
        complete(request, answer_here(request));
    }
}

/// `EvtDpcFunc`, at `DISPATCH_LEVEL`.
extern "C" fn in_dpc(_dpc: WDFDPC) {
    answer_pending();
}

/// `EvtWorkItem`, at `PASSIVE_LEVEL`.
extern "C" fn in_work_item(_work_item: WDFWORKITEM) {
    answer_pending();
}

/// The routine of the system thread, at `PASSIVE_LEVEL`.
extern "C" fn in_thread(_context: PVOID) {
    answer_pending();
    thread::end();
}

/// Performs a request's operation on the current thread, at `DISPATCH_LEVEL`.
fn answer_raised(request: WDFREQUEST) -> Result<usize, NTSTATUS> {
    at_irql(DISPATCH_LEVEL, || answer_here(request))
}

/// Passes a request to the context that its [`Ask`] specifies. Returns the result, or `None` if the
/// request is completed in that context.
fn place(request: WDFREQUEST) -> Result<Option<usize>, NTSTATUS> {
    let (buffer, ask) = ask_of(request)?;
    match ask.place {
        place::CALLER => answer_here(request).map(Some),
        place::RAISED => answer_raised(request).map(Some),
        place::DRIVER_ENTRY => {
            let reply = stored::answer_of(ask.operation).ok_or(STATUS_INVALID_PARAMETER)?;
            buffer.put(reply.as_bytes()).map(Some)
        }
        place::WORK_ITEM => {
            PENDING.store(request, Ordering::Release);
            wdf!(WdfWorkItemEnqueue, WORK_ITEM.load(Ordering::Acquire));
            Ok(None)
        }
        place::DPC => {
            PENDING.store(request, Ordering::Release);
            let _was_queued = wdf!(WdfDpcEnqueue, DPC.load(Ordering::Acquire));
            Ok(None)
        }
        place::SYSTEM_THREAD => {
            PENDING.store(request, Ordering::Release);
            match thread::start(DRIVER.load(Ordering::Acquire), in_thread) {
                Ok(()) => Ok(None),
                Err(status) => {
                    PENDING.store(ptr::null_mut(), Ordering::Release);
                    // The context does not exist on this system, which is also an answer.
                    let mut reply = Reply::new(ask.operation);
                    reply.available = 0;
                    reply.statuses[7] = status.cast_unsigned();
                    buffer.put(reply.as_bytes()).map(Some)
                }
            }
        }
        _ => Err(STATUS_INVALID_PARAMETER),
    }
}

/// Stores the table of callbacks in a request's buffer.
fn callbacks(request: WDFREQUEST) -> Result<usize, NTSTATUS> {
    let buffer = Buffer::retrieve(request, 0, size_of::<Callbacks>())?;
    // SAFETY: the system's buffer has room for a `Callbacks`, and nothing else uses it.
    let bytes = unsafe { slice::from_raw_parts_mut(buffer.address, size_of::<Callbacks>()) };
    bytes.fill(0);
    // The system's buffer is aligned for any structure.
    let table = Callbacks::mut_from_bytes(bytes).map_err(|_| STATUS_INVALID_PARAMETER)?;
    callbacks::copy_to(table);
    Ok(size_of::<Callbacks>())
}

/// `EvtIoDeviceControl`, at `PASSIVE_LEVEL`.
extern "C" fn device_control(
    _queue: WDFQUEUE,
    request: WDFREQUEST,
    _output: usize,
    _input: usize,
    code: ULONG,
) {
    match code {
        IOCTL_ASK => match place(request) {
            Ok(None) => {}
            Ok(Some(length)) => complete(request, Ok(length)),
            Err(status) => complete(request, Err(status)),
        },
        IOCTL_CALLBACKS => complete(request, callbacks(request)),
        _ => complete(request, Err(STATUS_INVALID_DEVICE_REQUEST)),
    }
}
