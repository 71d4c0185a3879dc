//! Requests: their stack locations, and their path down and up a device stack.

use std::{collections::HashMap, mem::offset_of};

use zerocopy::{Immutable, IntoBytes};

use super::devices;
pub use crate::services::ntoskrnl::live_irps::Ended;
use crate::{
    execution::routine::{At, routine},
    ground::{
        NtStatus,
        abi::{DeviceObject, DriverObject, Irp, IrpStack},
        rule::Rule,
    },
    services::{
        managers::{module_states::ModuleStates, pool::Tag},
        ntoskrnl::{
            context::{Context, Entries},
            live_irps,
            live_irps::Request,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("IoAllocateIrp", allocate),
    routine("IoAllocateIrpEx", allocate_for_device),
    routine("IoSizeOfIrpEx", size_for_device),
    routine("IoFreeIrp", free),
    routine("IoInitializeIrp", initialize),
    routine("IoInitializeIrpEx", initialize_for_device),
    routine("IoReuseIrp", reuse),
    routine("IofCallDriver", call_driver),
    routine("IofCompleteRequest", complete),
];

/// The sizes of a request and of a stack location.
const HEADER: u64 = size_of::<Irp>() as u64;
const LOCATION: u64 = size_of::<IrpStack>() as u64;
/// `IO_TYPE_IRP`.
const TYPE: i16 = 6;
/// The tag of allocated requests.
const TAG: Tag = Tag(u32::from_le_bytes(*b"Irp "));

/// `IRP_ALLOCATED_FIXED_SIZE`: the memory has room for up to [`LARGE`] stack locations.
const ALLOCATED_FIXED_SIZE: u8 = 4;
const LARGE: u8 = 8;

/// `STATUS_MORE_PROCESSING_REQUIRED`: stops the completion of the request.
const MORE_PROCESSING_REQUIRED: NtStatus = NtStatus::from_bits(0xC000_0016);
/// The bugcheck for a request without remaining stack locations, and the bugcheck for a request
/// that is completed twice.
const NO_MORE_IRP_STACK_LOCATIONS: u32 = 0x35;
const MULTIPLE_IRP_COMPLETE_REQUESTS: u32 = 0x44;

/// The indices in a request's tail of the thread, the current stack location and the file.
pub const THREAD: usize = 4;
pub const STACK: usize = 8;
pub const FILE: usize = 9;

/// The bits in a stack location's `Control` field.
pub mod control {
    pub const PENDING_RETURNED: u8 = 0x01;
    pub const INVOKE_ON_CANCEL: u8 = 0x20;
    pub const INVOKE_ON_SUCCESS: u8 = 0x40;
    pub const INVOKE_ON_ERROR: u8 = 0x80;
}

/// Stores only one field of a request, because other threads can change other fields concurrently.
pub fn store<T: IntoBytes + Immutable>(context: &Context, irp: u64, offset: usize, value: &T) {
    context.write(irp.wrapping_add(offset as u64), value);
}

/// Returns the offset of a word in a request's tail.
pub const fn tail(index: usize) -> usize {
    offset_of!(Irp, tail) + index * size_of::<u64>()
}

/// Stores the current stack location of a request.
fn store_location(context: &Context, irp: u64, value: &Irp) {
    let number = offset_of!(Irp, current_location);
    store(context, irp, number, &value.current_location);
    store(context, irp, tail(STACK), &value.tail[STACK]);
}

/// Creates a request with this number of stack locations.
pub fn create(context: &Context, stack_size: u8, ended: Option<Ended>) -> u64 {
    let size = HEADER + LOCATION * u64::from(stack_size);
    let Some(irp) = context.allocate(usize::try_from(size).unwrap_or(usize::MAX), TAG, false)
    else {
        return 0;
    };
    let flags = if stack_size <= LARGE { ALLOCATED_FIXED_SIZE } else { 0 };
    fill(context, irp, size, stack_size, flags);
    let request = Request { ended, if_not_kept: None, is_allocated: true, home: None };
    live_irps::add(context, irp, request);
    irp
}

/// Initializes a request's memory.
fn fill(context: &Context, irp: u64, size: u64, stack_size: u8, flags: u8) {
    let bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    context.write_bytes(irp, &bytes);
    context.update(irp, |value: &mut Irp| {
        value.kind = TYPE;
        value.size = (size & 0xFFFF) as u16;
        value.stack_count = stack_size;
        value.current_location = stack_size.wrapping_add(1);
        value.tail[STACK] = irp + HEADER + LOCATION * u64::from(stack_size);
        value.allocation_flags = flags;
        value.thread_list_entry = [irp.wrapping_add(offset_of!(Irp, thread_list_entry) as u64); 2];
    });
}

/// Returns the address of the next driver's stack location.
pub fn next_location(context: &Context, irp: u64) -> u64 {
    let value: Irp = context.read(irp);
    value.tail[STACK].wrapping_sub(LOCATION)
}

/// Changes the next driver's stack location.
pub fn update_next(context: &Context, irp: u64, change: impl FnOnce(&mut IrpStack)) {
    context.update(next_location(context, irp), change);
}

/// Frees a request that the I/O manager created.
pub fn discard(context: &Context, irp: u64) {
    live_irps::forget(context, irp);
    context.free_own(irp);
}

fn allocate(context: &Context, stack_size: i8, _quota: bool) -> At<Irp> {
    let stack_size = stack_size.cast_unsigned();
    if stack_size == 0 || stack_size > 127 {
        context.stop_for_misuse(&format!("for {stack_size} stack locations"));
    }
    At::new(create(context, stack_size, None))
}

/// Allocates a request for a device. The device determines only whether Windows adds space for its own
/// use.
fn allocate_for_device(
    context: &Context,
    _device: At<DeviceObject>,
    stack_size: i8,
    quota: bool,
) -> At<Irp> {
    allocate(context, stack_size, quota)
}

const fn size_for_device(_context: &Context, _device: At<DeviceObject>, stack_size: i8) -> u16 {
    ((HEADER + LOCATION * stack_size.cast_unsigned() as u64) & 0xFFFF) as u16
}

fn free(context: &Context, irp: At<Irp>) {
    let is_its =
        live_irps::find(context, irp.0).is_some_and(|one| one.is_allocated && one.ended.is_none());
    if !is_its {
        context.stop_for_wrong(irp.0, "a request from IoAllocateIrp");
    }
    must_be_back(context, irp.0);
    discard(context, irp.0);
}

fn initialize(context: &Context, irp: At<Irp>, size: u16, stack_size: i8) {
    let stack_size = stack_size.cast_unsigned();
    let needed = HEADER + LOCATION * u64::from(stack_size);
    if u64::from(size) < needed {
        context.stop_for_misuse(&format!("with {size} bytes; {needed} are required"));
    }
    if live_irps::find(context, irp.0).is_some_and(|one| one.is_allocated) {
        context.stop_for_misuse(
            "for a request from IoAllocateIrp, which only IoReuseIrp can prepare for reuse",
        );
    }
    must_be_back(context, irp.0);
    fill(context, irp.0, needed, stack_size, 0);
    let request = Request { ended: None, if_not_kept: None, is_allocated: false, home: None };
    live_irps::add(context, irp.0, request);
}

fn initialize_for_device(
    context: &Context,
    irp: At<Irp>,
    _device: At<DeviceObject>,
    size: u16,
    stack_size: i8,
) {
    initialize(context, irp, size, stack_size);
}

/// Bugchecks if drivers in a stack are still processing a request.
fn must_be_back(context: &Context, irp: u64) {
    if live_irps::find(context, irp).is_some_and(|one| one.home.is_some()) {
        context.stop_for_misuse("for a request that another driver owns and has not completed");
    }
}

fn reuse(context: &Context, irp: At<Irp>, status: NtStatus) {
    let value = irp.read(context);
    let is_own = live_irps::find(context, irp.0).is_some_and(|one| one.ended.is_none());
    if !is_own {
        context.stop_for_misuse("for a request that the driver did not allocate");
    }
    must_be_back(context, irp.0);
    let size = HEADER + LOCATION * u64::from(value.stack_count);
    let flags = value.allocation_flags & ALLOCATED_FIXED_SIZE;
    fill(context, irp.0, size, value.stack_count, flags);
    context.update(irp.0, |value: &mut Irp| value.io_status.status = status.bits());
}

/// Returns the name of a major function.
pub fn major_name(major: u8) -> &'static str {
    const NAMES: [&str; 28] = [
        "IRP_MJ_CREATE", "IRP_MJ_CREATE_NAMED_PIPE", "IRP_MJ_CLOSE", "IRP_MJ_READ", "IRP_MJ_WRITE",
        "IRP_MJ_QUERY_INFORMATION", "IRP_MJ_SET_INFORMATION", "IRP_MJ_QUERY_EA", "IRP_MJ_SET_EA",
        "IRP_MJ_FLUSH_BUFFERS", "IRP_MJ_QUERY_VOLUME_INFORMATION", "IRP_MJ_SET_VOLUME_INFORMATION",
        "IRP_MJ_DIRECTORY_CONTROL", "IRP_MJ_FILE_SYSTEM_CONTROL", "IRP_MJ_DEVICE_CONTROL",
        "IRP_MJ_INTERNAL_DEVICE_CONTROL", "IRP_MJ_SHUTDOWN", "IRP_MJ_LOCK_CONTROL",
        "IRP_MJ_CLEANUP", "IRP_MJ_CREATE_MAILSLOT", "IRP_MJ_QUERY_SECURITY", "IRP_MJ_SET_SECURITY",
        "IRP_MJ_POWER", "IRP_MJ_SYSTEM_CONTROL", "IRP_MJ_DEVICE_CHANGE", "IRP_MJ_QUERY_QUOTA",
        "IRP_MJ_SET_QUOTA", "IRP_MJ_PNP",
    ];
    NAMES.get(usize::from(major)).copied().unwrap_or("an unknown request")
}

/// Passes a request to a device's driver.
pub fn call_driver(context: &Context, device: At<DeviceObject>, irp: At<Irp>) -> NtStatus {
    must_be_request(context, irp.0);
    devices::must_be_device(context, device.0);
    let mut value = irp.read(context);
    let from = value.current_location;
    value.current_location = from.wrapping_sub(1);
    if value.current_location == 0 || value.current_location > value.stack_count {
        context.bugcheck(
            NO_MORE_IRP_STACK_LOCATIONS,
            [irp.0, 0, 0, 0],
            context.sentence("with a request that has no more stack locations"),
            &context.backtrace(),
        );
    }
    value.tail[STACK] = value.tail[STACK].wrapping_sub(LOCATION);
    store_location(context, irp.0, &value);
    live_irps::sent_from(context, irp.0, from);
    let location = context.update(value.tail[STACK], |location: &mut IrpStack| {
        location.device_object = device.0;
        *location
    });
    if let Some(dispatch) = devices::dispatch_of(context, device.0) {
        return dispatch(context, device.0, irp.0);
    }
    if devices::has_lost_driver(context, device.0) {
        context.stop_for_misuse(&format!(
            "for the device object 0x{device:016X}, whose driver was unloaded"
        ));
    }
    let driver = device.read(context).driver_object;
    let object: DriverObject = context.read(driver);
    let routine = object.major_function.get(usize::from(location.major_function)).copied();
    let default = context.state().get::<DefaultDispatch>().0;
    let Some(routine) = routine.filter(|routine| ![0, default].contains(routine)) else {
        return complete_as_invalid(context, irp.0, value);
    };
    let what = major_name(location.major_function);
    NtStatus::from_register(context.call_driver(what, routine, [device.0, irp.0]))
}

/// The address of the I/O manager's default dispatch routine.
#[derive(Default)]
struct DefaultDispatch(u64);

/// Stores the address of the default dispatch routine, which drivers find in a new driver object.
pub fn note_default_dispatch(state: &mut ModuleStates, address: u64) {
    state.get::<DefaultDispatch>().0 = address;
}

/// The I/O manager's default dispatch routine. A driver may call it through its driver object.
pub fn refuse(context: &Context, _device: At<DeviceObject>, irp: At<Irp>) -> u64 {
    must_be_request(context, irp.0);
    u64::from(complete_as_invalid(context, irp.0, irp.read(context)).bits())
}

/// Completes a request for which a driver has no routine.
fn complete_as_invalid(context: &Context, irp: u64, mut value: Irp) -> NtStatus {
    value.io_status.status = NtStatus::INVALID_DEVICE_REQUEST.bits();
    value.io_status.information = 0;
    store(context, irp, offset_of!(Irp, io_status), &value.io_status);
    complete_request(context, irp);
    NtStatus::INVALID_DEVICE_REQUEST
}

/// Bugchecks if no request is at the address, or if the request was completed or freed.
pub fn must_be_request(context: &Context, irp: u64) {
    if live_irps::find(context, irp).is_some() {
        return;
    }
    if context.call().name == "IofCompleteRequest" {
        context.bugcheck(
            MULTIPLE_IRP_COMPLETE_REQUESTS,
            [irp, 0, 0, 0],
            context.sentence(&format!(
                "with 0x{irp:016X}, which is not a request or was already completed"
            )),
            &context.backtrace(),
        );
    }
    context.stop_for_wrong(irp, "a request");
}

fn complete(context: &Context, irp: At<Irp>, _boost: i8) {
    must_be_request(context, irp.0);
    let value = irp.read(context);
    if value.io_status.status == NtStatus::PENDING.bits() || value.io_status.status == u32::MAX {
        context.stop_call(
            Rule::RequestMisused,
            &format!("for a request whose status is 0x{:08X}", value.io_status.status),
        );
    }
    if value.cancel_routine != 0 {
        context.stop_call(Rule::RequestMisused, "for a request that still has a cancel routine");
    }
    complete_request(context, irp.0);
}

/// Called with the address of the stack location when a request that this kernel keeps has
/// returned.
type CameBack = fn(&Context, u64);

/// The functions that handle requests that this kernel keeps, by the address of the stack location at
/// which each request returns.
#[derive(Default)]
struct Kept(HashMap<u64, CameBack>);

/// Keeps a request when the driver of a stack location completes it, and calls `back` instead of
/// completing it.
pub fn keep(context: &Context, location: u64, back: CameBack) {
    context.state().get::<Kept>().0.insert(location, back);
}

/// Passes a request back up its stack and completes it.
pub fn complete_request(context: &Context, irp: u64) {
    loop {
        let mut value: Irp = context.read(irp);
        let next = value.current_location.checked_add(1);
        let Some(next) = next.filter(|_| value.current_location <= value.stack_count) else {
            break;
        };
        let at = value.tail[STACK];
        let mut location: IrpStack = context.read(at);
        let flags = location.control;
        let routine = location.completion_routine;
        let completion_context = location.context;
        value.pending_returned = flags & control::PENDING_RETURNED;
        value.current_location = next;
        value.tail[STACK] = at.wrapping_add(LOCATION);
        let pending = offset_of!(Irp, pending_returned);
        store(context, irp, pending, &value.pending_returned);
        store_location(context, irp, &value);
        // The owner's completion routine can free or reuse the request.
        live_irps::back_at(context, irp, next);
        let is_success = NtStatus::from_bits(value.io_status.status).is_success();
        let kept = context.state().get::<Kept>().0.remove(&at);
        if let Some(back) = kept {
            back(context, at);
            return;
        }
        let wanted = (is_success && flags & control::INVOKE_ON_SUCCESS != 0)
            || (!is_success && flags & control::INVOKE_ON_ERROR != 0)
            || (value.cancel != 0 && flags & control::INVOKE_ON_CANCEL != 0);
        location.control = 0;
        context.write(at, &location);
        let is_above = value.current_location <= value.stack_count;
        if wanted && routine != 0 {
            let device = if is_above {
                context.read::<IrpStack>(value.tail[STACK]).device_object
            } else {
                0
            };
            let arguments = [device, irp, completion_context];
            let result = context.call_driver("the completion routine", routine, arguments);
            if NtStatus::from_register(result) == MORE_PROCESSING_REQUIRED {
                return;
            }
        } else if value.pending_returned != 0 && is_above {
            let mut above: IrpStack = context.read(value.tail[STACK]);
            above.control |= control::PENDING_RETURNED;
            context.write(value.tail[STACK], &above);
        }
    }
    match live_irps::find(context, irp).map(|one| one.ended.or(one.if_not_kept)) {
        Some(Some(ended)) => {
            ended(context, irp);
            discard(context, irp);
        }
        Some(None) => context.stop_call(
            Rule::RequestMisused,
            "for the driver's own request, whose completion routine must \
                 return STATUS_MORE_PROCESSING_REQUIRED",
        ),
        None => {}
    }
}
