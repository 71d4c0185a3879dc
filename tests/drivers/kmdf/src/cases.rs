//! Calls of the framework that a test writes as a string, such as `markex r0; complete r0 0`.
//!
//! Words are functions, numbers in hexadecimal digits, and names of objects: a letter of [`KINDS`]
//! and a digit. A received request receives the first free name, which its callback prints. `r` is
//! the request that arrived last. `on read complete r 0|next q1` specifies the calls that a
//! callback makes.

#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the numbers in scripts fit their arguments"
)]

extern crate alloc;

use alloc::{borrow::ToOwned, boxed::Box, string::String, vec::Vec};
use core::{
    ffi::c_void,
    ptr, slice,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed},
};

use etw_driver_support::{Service, at_irql, check, nt, sized};
use wdk_sys::{
    NTSTATUS, PVOID, PWDFDEVICE_INIT, STATUS_SUCCESS, ULONG, UNICODE_STRING, WDF_FILEOBJECT_CONFIG,
    WDF_IO_QUEUE_CONFIG, WDF_IO_TARGET_OPEN_PARAMS, WDF_MEMORY_DESCRIPTOR,
    WDF_NO_OBJECT_ATTRIBUTES, WDF_REQUEST_FORWARD_OPTIONS, WDF_REQUEST_PARAMETERS,
    WDF_REQUEST_REUSE_PARAMS, WDF_REQUEST_SEND_OPTIONS, WDF_TIMER_CONFIG, WDF_WMI_PROVIDER_CONFIG,
    WDFCONTEXT, WDFDEVICE, WDFDRIVER, WDFFILEOBJECT, WDFIOTARGET, WDFKEY, WDFMEMORY,
    WDFMEMORY_OFFSET, WDFOBJECT, WDFQUEUE, WDFREQUEST, WDFTIMER, WDFWMIPROVIDER,
};

use crate::framework::{attributes, counted, utf16, wdf};

/// Requests, queues, targets, memory objects and devices.
const KINDS: &str = "rqtmd";
const OF_KIND: usize = 8;
static HANDLES: [AtomicPtr<c_void>; 5 * OF_KIND] =
    [const { AtomicPtr::new(ptr::null_mut()) }; 5 * OF_KIND];
/// The index of the request that arrived last.
static LAST: AtomicUsize = AtomicUsize::new(0);

const EVENTS: [&str; 18] = [
    "read", "write", "control", "default", "create", "cleanup", "close", "cancel", "queuecancel",
    "stop", "resume", "state", "done", "caller", "ready", "gone", "destroyed", "timer",
];
static SCRIPTS: [AtomicPtr<String>; EVENTS.len()] =
    [const { AtomicPtr::new(ptr::null_mut()) }; EVENTS.len()];
/// The part of the service's name after `cases `.
static SETUP: AtomicPtr<String> = AtomicPtr::new(ptr::null_mut());

const LINK: [u16; 20] = utf16(br"\DosDevices\KmdfTest");
const LOWER: [u16; 17] = utf16(br"\Device\Simulated");
const ABSENT: [u16; 14] = utf16(br"\Device\Absent");
const NOWHERE: [u16; 15] = utf16(br"\Nowhere\Absent");
/// The device control whose input is a script.
const RUN: ULONG = 0x0022_2FFC;

fn text_of(place: &AtomicPtr<String>) -> &'static str {
    // SAFETY: the string was leaked, so it is never freed.
    unsafe { place.load(Relaxed).as_ref() }.map_or("", String::as_str)
}

fn store(place: &AtomicPtr<String>, text: &str) {
    place.store(Box::into_raw(Box::new(text.to_owned())), Relaxed);
}

/// Stores the setup of a service that this module runs. Returns whether this module runs the
/// service.
pub fn select(service: Service<'_>) -> bool {
    let name = service.units().rsplit(|unit| *unit == u16::from(b'\\')).next().unwrap_or_default();
    let name = String::from_utf16_lossy(name);
    name.strip_prefix("cases").map(|setup| store(&SETUP, setup)).is_some()
}

fn slot(word: &str) -> Option<&'static AtomicPtr<c_void>> {
    let kind = KINDS.find(word.get(..1)?)?;
    let place = if word == "r" { LAST.load(Relaxed) } else { word.get(1..)?.parse().ok()? };
    HANDLES.get(kind * OF_KIND + place)
}

/// Returns the object that a word names, or null.
fn get<T>(word: &str) -> *mut T {
    slot(word).map_or(ptr::null_mut(), |slot| slot.load(Relaxed).cast())
}

fn set<T>(word: &str, handle: *mut T) {
    if let Some(slot) = slot(word) {
        slot.store(handle.cast(), Relaxed);
    }
}

fn number(word: &str) -> usize {
    usize::from_str_radix(word, 16).unwrap_or(0)
}

fn show(status: NTSTATUS) {
    wdk::println!("{status:x}");
}

fn show_failure(status: NTSTATUS) {
    if status != STATUS_SUCCESS {
        show(status);
    }
}

/// Prints the name of an event, and runs its script.
fn fire(event: &str) {
    wdk::println!("{event}");
    if let Some(place) =
        EVENTS.iter().position(|name| *name == event.trim_end_matches(char::is_numeric))
    {
        run(text_of(&SCRIPTS[place]), '|');
    }
}

/// Names a request, and handles its event.
fn arrive(event: &str, request: WDFREQUEST) {
    let names = &HANDLES[..OF_KIND];
    let find = |handle: *mut c_void| names.iter().position(|slot| slot.load(Relaxed) == handle);
    let place = find(request.cast()).or_else(|| find(ptr::null_mut())).unwrap_or(0);
    names[place].store(request.cast(), Relaxed);
    LAST.store(place, Relaxed);
    fire(&alloc::format!("{event}{place}"));
}

extern "C" fn read(_: WDFQUEUE, request: WDFREQUEST, _: usize) {
    arrive("read", request);
}
extern "C" fn write(_: WDFQUEUE, request: WDFREQUEST, _: usize) {
    arrive("write", request);
}
extern "C" fn default(_: WDFQUEUE, request: WDFREQUEST) {
    arrive("default", request);
}
extern "C" fn queue_canceled(_: WDFQUEUE, request: WDFREQUEST) {
    arrive("queuecancel", request);
}
extern "C" fn canceled(request: WDFREQUEST) {
    arrive("cancel", request);
}
extern "C" fn stop(_: WDFQUEUE, request: WDFREQUEST, flags: ULONG) {
    wdk::println!("{flags:x}");
    arrive("stop", request);
}
extern "C" fn resume(_: WDFQUEUE, request: WDFREQUEST) {
    arrive("resume", request);
}
extern "C" fn state(_: WDFQUEUE, _: WDFCONTEXT) {
    fire("state");
}
extern "C" fn ready(_: WDFQUEUE, _: WDFCONTEXT) {
    fire("ready");
}
extern "C" fn create(_: WDFDEVICE, request: WDFREQUEST, file: WDFFILEOBJECT) {
    if file.is_null() {
        wdk::println!("null");
    }
    arrive("create", request);
}
extern "C" fn caller(device: WDFDEVICE, request: WDFREQUEST) {
    let mut parameters = parameters();
    wdf!(WdfRequestGetParameters, request, &raw mut parameters);
    // SAFETY: the fields of all kinds of requests are numbers.
    if unsafe { parameters.Parameters.DeviceIoControl }.IoControlCode == RUN {
        let _status: NTSTATUS = wdf!(WdfDeviceEnqueueRequest, device, request);
    } else {
        arrive("caller", request);
    }
}
extern "C" fn cleanup(_: WDFFILEOBJECT) {
    fire("cleanup");
}
extern "C" fn close(_: WDFFILEOBJECT) {
    fire("close");
}
extern "C" fn timer(_: WDFTIMER) {
    fire("timer");
}
extern "C" fn gone(_: WDFOBJECT) {
    fire("gone");
}
extern "C" fn destroyed(_: WDFOBJECT) {
    fire("destroyed");
}

/// Returns the performance counter, in units of 100 ns.
fn counter() -> i64 {
    // SAFETY: every member of the union is an integer.
    unsafe { nt!(KeQueryPerformanceCounter, ptr::null_mut()).QuadPart }
}

fn parameters() -> WDF_REQUEST_PARAMETERS {
    let size = size_of::<WDF_REQUEST_PARAMETERS>() as u16;
    WDF_REQUEST_PARAMETERS { Size: size, Type: 7, ..WDF_REQUEST_PARAMETERS::default() }
}

extern "C" fn done(
    request: WDFREQUEST,
    _: WDFIOTARGET,
    parameters: wdk_sys::PWDF_REQUEST_COMPLETION_PARAMS,
    _: WDFCONTEXT,
) {
    // SAFETY: the framework passes the parameters of the completed request.
    let parameters = unsafe { &*parameters };
    // SAFETY: the status is the member that completed requests have.
    show(unsafe { parameters.IoStatus.__bindgen_anon_1.Status });
    wdk::println!("{}", parameters.IoStatus.Information);
    arrive("done", request);
}
extern "C" fn control(_: WDFQUEUE, request: WDFREQUEST, _: usize, _: usize, code: ULONG) {
    if code != RUN {
        return arrive("control", request);
    }
    let mut buffer: PVOID = ptr::null_mut();
    let mut length = 0;
    let _status = wdf!(WdfRequestRetrieveInputBuffer, request, 1, &raw mut buffer, &raw mut length);
    // SAFETY: the framework returned a buffer of this length.
    let script = String::from_utf8_lossy(unsafe { slice::from_raw_parts(buffer.cast(), length) });
    run(&script, ';');
    wdf!(WdfRequestComplete, request, STATUS_SUCCESS);
}

/// `EvtDriverDeviceAdd`. The words of the setup before a semicolon select properties of the device.
pub extern "C" fn add(_: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let (words, setup) = text_of(&SETUP).split_once(';').unwrap_or_else(|| (text_of(&SETUP), ""));
    let has = |word| words.split_whitespace().any(|present| present == word);
    if has("files") || has("nofiles") {
        let mut files = sized!(WDF_FILEOBJECT_CONFIG {
            EvtDeviceFileCreate: Some(create),
            EvtFileClose: Some(close),
            EvtFileCleanup: Some(cleanup),
            // `WdfFileObjectNotRequired`, or `WdfFileObjectWdfCannotUseFsContexts`
            FileObjectClass: if has("files") { 4 } else { 1 }
        });
        wdf!(WdfDeviceInitSetFileObjectConfig, init, &raw mut files, WDF_NO_OBJECT_ATTRIBUTES);
    }
    if has("gone") {
        let mut requests = attributes();
        requests.EvtCleanupCallback = Some(gone);
        requests.EvtDestroyCallback = has("destroyed").then_some(destroyed);
        wdf!(WdfDeviceInitSetRequestAttributes, init, &raw mut requests);
    }
    if has("caller") {
        wdf!(WdfDeviceInitSetIoInCallerContextCallback, init, Some(caller));
    }
    if has("filter") {
        wdf!(WdfFdoInitSetFilter, init);
    }
    if has("nopolicy") {
        wdf!(WdfDeviceInitSetPowerPolicyOwnership, init, 0);
    }
    if has("named") {
        let name: Vec<u16> = r"\Device\KmdfCase".encode_utf16().collect();
        let name = text(&name);
        show_failure(wdf!(WdfDeviceInitAssignName, init, &raw const name));
    }
    let mut device: WDFDEVICE = ptr::null_mut();
    check!(wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, &raw mut device));
    let link = counted(&LINK);
    check!(wdf!(WdfDeviceCreateSymbolicLink, device, &raw const link));
    set("d0", device);
    run("queue q7 2 control main", ';');
    run(setup, ';');
    STATUS_SUCCESS
}

/// Returns a counted string.
const fn text(units: &[u16]) -> UNICODE_STRING {
    let length = size_of_val(units) as u16;
    UNICODE_STRING { Length: length, MaximumLength: length, Buffer: units.as_ptr().cast_mut() }
}

/// Creates the control device `words[1]` with the name `words[2]` and, if it is given, the symbolic link
/// `words[3]`.
fn control_device(words: &[&str]) {
    const SDDL: [u16; 15] = utf16(b"D:P(A;;GA;;;SY)");
    let [name, link] = [words[2], words[3]].map(|word| word.encode_utf16().collect::<Vec<u16>>());
    let driver: WDFDRIVER = wdf!(WdfDeviceGetDriver, get("d0"));
    let sddl = counted(&SDDL);
    let mut init = wdf!(WdfControlDeviceInitAllocate, driver, &raw const sddl);
    let name = text(&name);
    show_failure(wdf!(WdfDeviceInitAssignName, init, &raw const name));
    let mut device: WDFDEVICE = ptr::null_mut();
    let status = wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, &raw mut device);
    if !init.is_null() {
        wdf!(WdfDeviceInitFree, init);
    }
    show(status);
    set(words[1], device);
    if status == STATUS_SUCCESS && !link.is_empty() {
        let link = text(&link);
        show(wdf!(WdfDeviceCreateSymbolicLink, device, &raw const link));
    }
}

/// Prints the results of calls about children of a bus device.
fn children() {
    let device: WDFDEVICE = get("d0");
    let init = wdf!(WdfPdoInitAllocate, device);
    let mut id = text(&LINK);
    for _ in 0..2 {
        show(wdf!(WdfPdoInitAddDeviceText, init, &raw const id, &raw const id, 0x409));
    }
    id.Length -= 1;
    show(wdf!(WdfPdoInitAssignDeviceID, init, &raw const id));
    let mut length = 0;
    show(wdf!(WdfFdoInitQueryProperty, init, 1, 0, ptr::null_mut(), &raw mut length));
    wdf!(WdfDeviceInitFree, init);
    wdk::println!("{}", wdf!(WdfPdoGetParent, device).is_null());
    show(wdf!(WdfPdoMarkMissing, device));
}

/// Prints the statuses of calls that the framework refuses.
fn statuses() {
    let device: WDFDEVICE = get("d0");
    let mut own = attributes();
    own.ParentObject = device.cast();
    let mut key: WDFKEY = ptr::null_mut();
    show(wdf!(WdfDeviceOpenRegistryKey, device, 1, 0x2_0019, &raw mut own, &raw mut key));
    let mut target: WDFIOTARGET = ptr::null_mut();
    show_failure(wdf!(WdfIoTargetCreate, device, WDF_NO_OBJECT_ATTRIBUTES, &raw mut target));
    let mut length = 0;
    show(wdf!(WdfIoTargetQueryTargetProperty, target, 1, 0, ptr::null_mut(), &raw mut length));
    let mut provider = sized!(WDF_WMI_PROVIDER_CONFIG {
        Guid: wdk_sys::GUID { Data1: 1, ..wdk_sys::GUID::default() }
    });
    let mut handle: WDFWMIPROVIDER = ptr::null_mut();
    for _ in 0..2 {
        show(wdf!(
            WdfWmiProviderCreate, device, &raw mut provider, WDF_NO_OBJECT_ATTRIBUTES,
            &raw mut handle
        ));
    }
    // A provider is not deleted.
    wdf!(WdfObjectDelete, handle.cast());
    wdk::println!("{}", wdf!(WdfWmiProviderIsEnabled, handle, 2));
}

/// Creates a timer with the passive execution level.
fn create_timer() {
    let mut config = sized!(WDF_TIMER_CONFIG { EvtTimerFunc: Some(timer) });
    let mut own = attributes();
    own.ParentObject = get("d0");
    own.ExecutionLevel = 2;
    let mut handle: WDFTIMER = ptr::null_mut();
    show_failure(wdf!(WdfTimerCreate, &raw mut config, &raw mut own, &raw mut handle));
    set("d7", handle);
}

/// Creates the queue `words[1]` of the type `words[2]`, with the callbacks and properties in the
/// other words.
fn queue(words: &[&str]) {
    let mut config = sized!(WDF_IO_QUEUE_CONFIG { DispatchType: number(words[2]) as i32 });
    let parallel = wdk_sys::_WDF_IO_QUEUE_DISPATCH_TYPE::WdfIoQueueDispatchParallel;
    if config.DispatchType == parallel {
        config.Settings.Parallel.NumberOfPresentedRequests = ULONG::MAX;
    }
    let mut own = attributes();
    let mut handle: WDFQUEUE = ptr::null_mut();
    let mut to = &raw mut handle;
    for word in &words[3..] {
        match *word {
            "read" => config.EvtIoRead = Some(read),
            "write" => config.EvtIoWrite = Some(write),
            "control" => config.EvtIoDeviceControl = Some(control),
            "default" => config.EvtIoDefault = Some(default),
            "canceled" => config.EvtIoCanceledOnQueue = Some(queue_canceled),
            "stop" => config.EvtIoStop = Some(stop),
            "resume" => config.EvtIoResume = Some(resume),
            "zero" => config.AllowZeroLengthRequests = 1,
            "power" => config.PowerManaged = 1,
            "usual" => config.PowerManaged = 2,
            "main" => config.DefaultQueue = 1,
            "lock" => own.SynchronizationScope = 3,
            "passive" => own.ExecutionLevel = 2,
            "nowhere" => to = ptr::null_mut(),
            number => {
                config.Settings.Parallel.NumberOfPresentedRequests = self::number(number) as u32;
            }
        }
    }
    let status = wdf!(WdfIoQueueCreate, get("d0"), &raw mut config, &raw mut own, to);
    set(words[1], handle);
    show_failure(status);
}

/// Returns a descriptor of a memory object, of a mapped buffer if the word is a number, or of no
/// buffer.
fn descriptor(word: &str) -> WDF_MEMORY_DESCRIPTOR {
    static BUFFER: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
    let mut descriptor = WDF_MEMORY_DESCRIPTOR { Type: 1, ..WDF_MEMORY_DESCRIPTOR::default() };
    if word.starts_with('m') {
        descriptor.Type = 3;
        descriptor.u.HandleType.Memory = get(word);
    } else if number(word) != 0 {
        descriptor.u.BufferType.Length = number(word) as u32;
        descriptor.u.BufferType.Buffer = BUFFER.as_ptr().cast_mut().cast();
    }
    descriptor
}

/// Opens the target `words[1]`: `name` is the simulated device, `own` is the driver's device, and
/// `absent` and `nowhere` name devices that do not exist.
fn open(words: &[&str]) {
    let mut parameters = sized!(WDF_IO_TARGET_OPEN_PARAMS { Type: 1 });
    match words[2] {
        "name" | "absent" | "nowhere" => {
            parameters.Type = 2;
            parameters.TargetDeviceName = match words[2] {
                "absent" => counted(&ABSENT),
                "nowhere" => counted(&NOWHERE),
                _ => counted(&LOWER),
            };
            parameters.DesiredAccess = wdk_sys::GENERIC_READ;
        }
        "again" => parameters.Type = 3,
        "own" => parameters.TargetDeviceObject = wdf!(WdfDeviceWdmGetDeviceObject, get("d0")),
        _ => {}
    }
    show_failure(wdf!(WdfIoTargetOpen, get(words[1]), &raw mut parameters));
}

/// Retrieves a buffer, and prints the status, the length and whether there is an address.
macro_rules! buffer {
    ($name:ident, $words:expr) => {{
        let mut buffer: PVOID = ptr::without_provenance_mut(7);
        let mut length = 7;
        let minimum = number($words[2]);
        let status = wdf!($name, get($words[1]), minimum, &raw mut buffer, &raw mut length);
        wdk::println!("{status:x} {length} {}", !buffer.is_null());
    }};
}

/// Retrieves an object, and prints the status. The object receives the name `words[2]`.
macro_rules! retrieve {
    ($words:expr, $name:ident, $($argument:expr),+) => {{
        let mut object = ptr::null_mut();
        show(wdf!($name, $($argument),+, &raw mut object));
        set($words[2], object);
    }};
}

/// Runs calls that are separated by a character.
fn run(script: &str, separator: char) {
    for call in script.split(separator) {
        let mut words = [""; 10];
        let count = call.split_whitespace().zip(&mut words).map(|(word, at)| *at = word).count();
        if count > 0 {
            run_one(call, &words, count);
        }
    }
}

#[allow(clippy::too_many_lines, clippy::cognitive_complexity, reason = "one arm for each function")]
fn run_one(call: &str, words: &[&str; 10], count: usize) {
    let [what, first, second, third, ..] = *words;
    let request: WDFREQUEST = get(first);
    let queue_of: WDFQUEUE = get(first);
    let target: WDFIOTARGET = get(first);
    let none: WDFCONTEXT = ptr::null_mut();
    let status = number(second) as NTSTATUS;
    match what {
        "on" => {
            let script = call.trim_start().splitn(3, ' ').nth(2).unwrap_or_default();
            if let Some(place) = EVENTS.iter().position(|name| *name == first) {
                store(&SCRIPTS[place], script);
            }
        }
        "mark" => wdf!(WdfRequestMarkCancelable, request, Some(canceled)),
        "markex" => show(wdf!(WdfRequestMarkCancelableEx, request, Some(canceled))),
        "unmark" => show(wdf!(WdfRequestUnmarkCancelable, request)),
        "canceled" => wdk::println!("{}", wdf!(WdfRequestIsCanceled, request)),
        "complete" => {
            set(first, none);
            if third.is_empty() {
                wdf!(WdfRequestComplete, request, status);
            } else {
                wdf!(WdfRequestCompleteWithInformation, request, status, number(third) as u64);
            }
        }
        "information" => wdf!(WdfRequestSetInformation, request, number(second) as u64),
        "input" => buffer!(WdfRequestRetrieveInputBuffer, words),
        "output" => buffer!(WdfRequestRetrieveOutputBuffer, words),
        "unsafein" => buffer!(WdfRequestRetrieveUnsafeUserInputBuffer, words),
        "unsafeout" => buffer!(WdfRequestRetrieveUnsafeUserOutputBuffer, words),
        "inmem" => retrieve!(words, WdfRequestRetrieveInputMemory, request),
        "outmem" => retrieve!(words, WdfRequestRetrieveOutputMemory, request),
        "inmdl" => retrieve!(words, WdfRequestRetrieveInputWdmMdl, request),
        "outmdl" => retrieve!(words, WdfRequestRetrieveOutputWdmMdl, request),
        "lock" => {
            let mut memory: WDFMEMORY = ptr::null_mut();
            let length = number(second);
            show(wdf!(
                WdfRequestProbeAndLockUserBufferForRead, request, 4096 as PVOID, length,
                &raw mut memory
            ));
        }
        "parameters" => {
            let mut parameters = parameters();
            parameters.Size -= number(second) as u16;
            wdf!(WdfRequestGetParameters, request, &raw mut parameters);
            wdk::println!("{}", parameters.Type);
        }
        "file" => wdk::println!("{}", !wdf!(WdfRequestGetFileObject, request).is_null()),
        "queueof" => wdk::println!("{}", !wdf!(WdfRequestGetIoQueue, request).is_null()),
        "forward" => show_failure(wdf!(WdfRequestForwardToIoQueue, request, get(second))),
        "parent" => {
            let mut options = sized!(WDF_REQUEST_FORWARD_OPTIONS { Flags: number(third) as u32 });
            if third.is_empty() {
                options.Size = 0;
            }
            show(wdf!(
                WdfRequestForwardToParentDeviceIoQueue,
                request,
                get(second),
                &raw mut options
            ));
        }
        "requeue" => show(wdf!(WdfRequestRequeue, request)),
        "ack" => wdf!(WdfRequestStopAcknowledge, request, status as u8),
        "enqueue" => show(wdf!(WdfDeviceEnqueueRequest, get("d0"), request)),
        "ref" => wdf!(WdfObjectReferenceActual, get(first), none, 0, ptr::null_mut()),
        // The reference is released only once, although the script of `gone` runs for each request.
        "deref" => {
            let object: WDFOBJECT = get(first);
            set(first, none);
            if !object.is_null() {
                wdf!(WdfObjectDereferenceActual, object, none, 0, ptr::null_mut());
            }
        }
        "delete" => wdf!(WdfObjectDelete, get(first)),
        // The object has the passive execution level, and belongs to the request.
        "child" => {
            let mut object: WDFOBJECT = ptr::null_mut();
            let mut own = attributes();
            own.ParentObject = request.cast();
            own.ExecutionLevel = 2;
            own.EvtCleanupCallback = Some(gone);
            show_failure(wdf!(WdfObjectCreate, &raw mut own, &raw mut object));
        }
        "high" => {
            let rest = call.trim_start().split_once(' ').unwrap_or_default().1;
            at_irql(2, || run(rest, '|'));
        }
        "queue" => queue(&words[..count]),
        "route" => {
            show_failure(wdf!(WdfDeviceConfigureRequestDispatching, get("d0"), queue_of, status));
        }
        "start" => wdf!(WdfIoQueueStart, queue_of),
        "stop" => wdf!(WdfIoQueueStop, queue_of, Some(state), none),
        "stops" => wdf!(WdfIoQueueStopSynchronously, queue_of),
        "purge" => wdf!(WdfIoQueuePurge, queue_of, Some(state), none),
        "purges" => wdf!(WdfIoQueuePurgeSynchronously, queue_of),
        "stoppurge" => wdf!(WdfIoQueueStopAndPurge, queue_of, Some(state), none),
        "stoppurges" => wdf!(WdfIoQueueStopAndPurgeSynchronously, queue_of),
        "drain" => wdf!(WdfIoQueueDrain, queue_of, Some(state), none),
        "drains" => wdf!(WdfIoQueueDrainSynchronously, queue_of),
        "state" => {
            let mut counts = [0; 2];
            let [waiting, held] = &mut counts;
            let state = wdf!(WdfIoQueueGetState, queue_of, waiting, held);
            wdk::println!("{state} {} {}", counts[0], counts[1]);
        }
        "ready" => {
            let callback: wdk_sys::PFN_WDF_IO_QUEUE_STATE =
                if second.is_empty() { Some(ready) } else { None };
            show(wdf!(WdfIoQueueReadyNotify, queue_of, callback, none));
        }
        "next" => retrieve!(words, WdfIoQueueRetrieveNextRequest, queue_of),
        "byfile" => {
            let file = wdf!(WdfRequestGetFileObject, get(third));
            retrieve!(words, WdfIoQueueRetrieveRequestByFileObject, queue_of, file);
        }
        "find" => retrieve!(
            words,
            WdfIoQueueFindRequest,
            queue_of,
            get(third),
            ptr::null_mut(),
            ptr::null_mut()
        ),
        "found" => retrieve!(words, WdfIoQueueRetrieveFoundRequest, queue_of, get(third)),
        "memory" => {
            let mut memory: WDFMEMORY = ptr::null_mut();
            let mut own = attributes();
            own.ParentObject = get("d0");
            let length = number(second);
            show_failure(wdf!(
                WdfMemoryCreate,
                &raw mut own,
                512,
                0,
                length,
                &raw mut memory,
                ptr::null_mut()
            ));
            set(first, memory);
        }
        // The driver creates a memory object for the input of the request.
        "wrap" => {
            let mut buffer: PVOID = ptr::null_mut();
            let mut length = 0;
            show_failure(wdf!(
                WdfRequestRetrieveInputBuffer, request, 1, &raw mut buffer, &raw mut length
            ));
            let mut memory: WDFMEMORY = ptr::null_mut();
            let mut own = attributes();
            own.ParentObject = request.cast();
            show_failure(wdf!(
                WdfMemoryCreatePreallocated, &raw mut own, buffer, length, &raw mut memory
            ));
            set(second, memory);
        }
        "target" => {
            let mut handle: WDFIOTARGET = ptr::null_mut();
            show_failure(wdf!(
                WdfIoTargetCreate,
                get("d0"),
                WDF_NO_OBJECT_ATTRIBUTES,
                &raw mut handle
            ));
            set(first, handle);
        }
        "local" => set(first, wdf!(WdfDeviceGetIoTarget, get("d0"))),
        "open" => open(words),
        "shut" => wdf!(WdfIoTargetClose, target),
        "shutquery" => wdf!(WdfIoTargetCloseForQueryRemove, target),
        "begin" => show(wdf!(WdfIoTargetStart, target)),
        "halt" => wdf!(WdfIoTargetStop, target, status),
        "clear" => wdf!(WdfIoTargetPurge, target, status),
        "tstate" => wdk::println!("{}", wdf!(WdfIoTargetGetState, target)),
        "new" => {
            let mut handle: WDFREQUEST = ptr::null_mut();
            let mut own = attributes();
            own.ParentObject = get(if third.is_empty() { "d0" } else { third });
            show_failure(wdf!(WdfRequestCreate, &raw mut own, get(second), &raw mut handle));
            set(first, handle);
        }
        // The words are the request, the target, the code, the output, and the offset and length in
        // the output.
        "format" => {
            let mut part =
                WDFMEMORY_OFFSET { BufferOffset: number(words[5]), BufferLength: number(words[6]) };
            let part = if words[5].is_empty() { ptr::null_mut() } else { &raw mut part };
            let code = number(third) as u32;
            show_failure(wdf!(
                WdfIoTargetFormatRequestForIoctl,
                get(second),
                request,
                code,
                ptr::null_mut(),
                ptr::null_mut(),
                get(words[4]),
                part
            ));
        }
        "current" => wdf!(WdfRequestFormatRequestUsingCurrentType, request),
        "routine" => wdf!(WdfRequestSetCompletionRoutine, request, Some(done), none),
        // The words are the request, the target, the flags, and the timeout in units of 100 ns.
        "send" => {
            let mut options = sized!(WDF_REQUEST_SEND_OPTIONS {
                Flags: number(third) as u32,
                Timeout: -(number(words[4]) as i64)
            });
            let options = if third.is_empty() { ptr::null_mut() } else { &raw mut options };
            let sent = wdf!(WdfRequestSend, request, get(second), options);
            let status = if sent == 0 { wdf!(WdfRequestGetStatus, request) } else { 0 };
            wdk::println!("sent {sent} {status:x}");
        }
        // The words are the target, the code, the output, and the size and flags of the options.
        "control" => {
            let mut bytes = 7;
            let mut output = descriptor(third);
            let output = if third == "-" { ptr::null_mut() } else { &raw mut output };
            let mut options = WDF_REQUEST_SEND_OPTIONS {
                Size: number(words[4]) as u32,
                Flags: number(words[5]) as u32,
                Timeout: -1000,
            };
            let options = if words[4].is_empty() { ptr::null_mut() } else { &raw mut options };
            let code = number(second) as u32;
            let status = wdf!(
                WdfIoTargetSendIoctlSynchronously,
                target,
                ptr::null_mut(),
                code,
                ptr::null_mut(),
                output,
                options,
                &raw mut bytes
            );
            wdk::println!("{status:x} {bytes}");
        }
        "cancelsent" => wdk::println!("{}", wdf!(WdfRequestCancelSentRequest, request)),
        "status" => show(wdf!(WdfRequestGetStatus, request)),
        "reuse" => {
            let mut parameters = sized!(WDF_REQUEST_REUSE_PARAMS {
                Flags: number(second) as u32,
                Status: number(third) as NTSTATUS
            });
            show(wdf!(WdfRequestReuse, request, &raw mut parameters));
        }
        "change" => show(wdf!(WdfRequestChangeTarget, request, get(second))),
        // Starts a timer of 5 ms.
        "timer" => {
            let mut config = sized!(WDF_TIMER_CONFIG { EvtTimerFunc: Some(timer) });
            let mut own = attributes();
            own.ParentObject = get("d0");
            let mut handle: WDFTIMER = ptr::null_mut();
            show_failure(wdf!(WdfTimerCreate, &raw mut config, &raw mut own, &raw mut handle));
            let _was_set = wdf!(WdfTimerStart, handle, -50_000);
        }
        "controldevice" => control_device(words),
        "passivetimer" => create_timer(),
        "children" => children(),
        "statuses" => statuses(),
        "stopidle" => show(wdf!(WdfDeviceStopIdleNoTrack, get("d0"), 0)),
        "marknull" => wdf!(WdfRequestMarkCancelable, request, None),
        "starttimer" => wdk::println!("{}", wdf!(WdfTimerStart, get("d7"), 0)),
        "stoptimer" => wdk::println!("{}", wdf!(WdfTimerStop, get("d7"), 1)),
        "irql" => wdk::println!("{}", nt!(KeGetCurrentIrql)),
        "delay" => {
            let start = counter();
            while counter() - start < 2_000_000 {
                core::hint::spin_loop();
            }
        }
        other => wdk::println!("{other}?"),
    }
}
