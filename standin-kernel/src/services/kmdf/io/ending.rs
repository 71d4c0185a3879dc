//! The completion and cancellation of requests.

use super::irp::{forget_irp, information_address};
use crate::{
    ground::{NtStatus, memory, rule::Rule},
    services::kmdf::{
        lifetime,
        lifetime::tell,
        object::memory::MemoryData,
        state::{
            framework::Context,
            queue::QueueData,
            request::{Completion, Ended, EndedRequests, RequestData, RequestKind, describe},
        },
    },
};

/// Completes a request for the driver.
pub fn complete(context: &Context, handle: u64, status: NtStatus, information: Option<u64>) {
    let ended = context
        .framework()
        .part::<EndedRequests>()
        .0
        .get(&handle)
        .map(|ended| ended.description.clone());
    if let Some(description) = ended {
        context.stop_call(
            Rule::RequestCompletedTwice,
            &format!("for {description}, which is already completed"),
        );
    }
    must_own(context, handle);
    must_not_be_cancelable(context, handle);
    must_not_be_created(context, handle);
    must_fit(context, handle, status, information);
    release_format(context, handle);
    end(context, handle, of_system(status), information);
}

/// Returns the status with which the framework completes a request in place of one of its own
/// statuses, which only the framework and its drivers know.
const fn of_system(status: NtStatus) -> NtStatus {
    /// The facility of the framework's statuses, and the bit mask of the facility in a status.
    const FACILITY: u32 = 0x0020_0000;
    const FACILITY_BITS: u32 = 0x0FFF_0000;
    const DEVICE_BUSY: NtStatus = NtStatus::from_bits(0x8000_0011);
    const INTERNAL_ERROR: NtStatus = NtStatus::from_bits(0xC000_00E5);
    if status.bits() & FACILITY_BITS != FACILITY {
        return status;
    }
    match status.bits() {
        // STATUS_WDF_PAUSED and STATUS_WDF_BUSY.
        0xC020_0203 | 0xC020_0204 => DEVICE_BUSY,
        // STATUS_WDF_INTERNAL_ERROR.
        0xC020_0201 => INTERNAL_ERROR,
        // STATUS_WDF_NOT_ENOUGH_MAP_REGISTERS.
        0xC020_0214 => NtStatus::INSUFFICIENT_RESOURCES,
        _ => NtStatus::INVALID_DEVICE_REQUEST,
    }
}

/// Bugchecks if a driver successfully completes a request with more bytes than fit in the request's
/// buffer, as the framework's verifier does. Device controls are checked only if a process sent
/// them and they have an output buffer: without one, the information can be the number of input
/// bytes used.
fn must_fit(context: &Context, handle: u64, status: NtStatus, information: Option<u64>) {
    let too_many = context.with::<RequestData, _>(handle, |request| {
        let room = match request.kind {
            RequestKind::Read => request.output_length(),
            RequestKind::Write => request.input_length(),
            RequestKind::DeviceControl { .. }
                if request.is_from_user && request.output_length() > 0 =>
            {
                request.output_length()
            }
            _ => return None,
        };
        let information = information.unwrap_or_else(|| information_of(request));
        (status.is_success() && information > room).then(|| (information, room, describe(request)))
    });
    if let Some((information, room, description)) = too_many {
        context.stop_call(Rule::RequestMisused, &format!("for {description} with {information} bytes as the information, but its buffer is only {room} bytes long"));
    }
}

/// Bugchecks if the driver, or another request that is formatted with them, still references the
/// memory objects that the framework gave the driver for the request's buffers. The request is
/// already cleaned up, and its children are destroyed unless they are referenced.
fn must_not_be_referenced(context: &Context, handle: u64) {
    let is_referenced = {
        let mut framework = context.framework();
        let memory = framework.children::<MemoryData>(handle);
        memory.into_iter().any(|child| {
            framework.get::<MemoryData>(child).is_ok_and(|memory| memory.is_of_request())
        })
    };
    if is_referenced {
        let description = context.with::<RequestData, _>(handle, |request| describe(request));
        context.stop_call(Rule::RequestMisused, &format!("for {description}, whose WDFMEMORY is still referenced; release the references, and first complete the requests that are formatted with it"));
    }
}

/// Releases the memory objects in a request's format, and removes the format.
pub fn release_format(context: &Context, request: u64) {
    let format = context.with::<RequestData, _>(request, |data| data.outgoing.format.take());
    let Some(format) = format else {
        return;
    };
    let buffers = [format.input, format.output];
    for buffer in buffers.iter().chain(format.others.iter().flatten()) {
        if let Some((memory, _)) = buffer.memory {
            lifetime::release(context, memory);
        }
    }
}

/// Bugchecks if the driver created the request itself, because no sender waits for its completion.
fn must_not_be_created(context: &Context, handle: u64) {
    if context.with::<RequestData, _>(handle, |request| request.is_created) {
        context.stop_call(
            Rule::RequestMisused,
            "for a request that the driver created; only its receiver can complete it",
        );
    }
}

/// Bugchecks if the request is currently sent to a target, or was sent and forgotten.
pub fn must_not_be_under_way(context: &Context, handle: u64) {
    let description = context.with::<RequestData, _>(handle, |request| {
        request.outgoing.is_under_way().then(|| describe(request))
    });
    if let Some(description) = description {
        context.stop_call(
            Rule::RequestMisused,
            &format!("for {description}, which was sent to an I/O target and is not completed yet"),
        );
    }
}

/// Bugchecks if the driver does not own the request, or has sent it.
pub fn must_own(context: &Context, handle: u64) {
    must_not_be_under_way(context, handle);
    must_not_wait(context, handle);
}

/// Bugchecks if the request waits in a queue. The driver owns requests that do not wait, including
/// those that it has sent to an I/O target.
pub fn must_not_wait(context: &Context, handle: u64) {
    let (queue, description) =
        context.with::<RequestData, _>(handle, |request| (request.queue, describe(request)));
    let is_waiting = queue
        .is_some_and(|queue| context.is::<QueueData>(queue, |queue| queue.has_waiting(handle)));
    if is_waiting {
        context.stop_call(
            Rule::RequestMisused,
            &format!("for {description}, which is still in a queue; the driver does not own it"),
        );
    }
}

/// Bugchecks if the request is cancelable. For operations that do not allow cancelable requests.
pub fn must_not_be_cancelable(context: &Context, handle: u64) {
    let description = context.with::<RequestData, _>(handle, |request| {
        request.is_cancelable().then(|| describe(request))
    });
    if let Some(description) = description {
        context.stop_call(
            Rule::RequestMisused,
            &format!(
                "for {description}, which is cancelable; call WdfRequestUnmarkCancelable first"
            ),
        );
    }
}

/// Ends a request: cleans its object up, records the completion for its sender, dispatches its
/// queue, and destroys the object.
pub fn end(context: &Context, handle: u64, status: NtStatus, information: Option<u64>) {
    let (description, queue, file, upper, was_presented, is_forgotten) = context
        .with::<RequestData, _>(handle, |request| {
            let is_forgotten = request.outgoing.is_forgotten;
            let RequestData { queue, file, upper, presented, .. } = *request;
            (describe(request), queue, file, upper, presented, is_forgotten)
        });
    {
        let mut framework = context.framework();
        let ended = Ended { description, completion: None };
        framework.part::<EndedRequests>().0.insert(handle, ended);
        if !was_presented && let Some(object) = framework.objects.get_mut(&handle) {
            // The driver does not know the request.
            object.cleanup.clear();
            object.destroy.clear();
        }
    }
    let is_disposing = context.framework().is_disposing(handle);
    let is_later = !is_disposing && lifetime::must_wait(context, handle);
    let begins = !is_later && lifetime::empty(context, handle);
    if begins && !is_forgotten {
        must_not_be_referenced(context, handle);
    }
    record(context, handle, status, information);
    forget_irp(context, handle);
    if let Some(upper) = upper {
        tell(context, upper, |data| data.request_ended());
    }
    // The request occupies its queue until its sender knows the result.
    if let Some(queue) = queue {
        if let Ok(queue) = context.framework().get::<QueueData>(queue) {
            queue.forget(handle);
        }
        tell(context, queue, |data| data.request_ended());
    }
    if is_later {
        lifetime::delete_later(context, handle);
    } else if begins {
        lifetime::end(context, handle);
    }
    if let Some(file) = file {
        tell(context, file, |data| data.request_ended());
    }
}

/// Records the completion of a request that has ended. The sender is a driver's request or a test.
fn record(context: &Context, handle: u64, status: NtStatus, information: Option<u64>) {
    let (completion, upper) = context.with::<RequestData, _>(handle, |request| {
        let information = information.unwrap_or_else(|| information_of(request));
        // An error returns no data; a warning or success can return data.
        let returned = if status.0.cast_unsigned() >> 30 == 3 {
            0
        } else {
            usize::try_from(information).unwrap_or(usize::MAX).min(request.output_length)
        };
        let output = memory::read_bytes(request.output().0, returned).unwrap_or_default();
        (Completion { status, information, output }, request.upper)
    });
    let mut framework = context.framework();
    if let Some(upper) = upper.and_then(|upper| framework.get::<RequestData>(upper).ok()) {
        upper.outgoing.result = Some(completion);
    } else if let Some(ended) = framework.part::<EndedRequests>().0.get_mut(&handle) {
        ended.completion = Some(completion);
    }
}

/// Returns the number of bytes that a request has transferred, as set by the driver through the
/// framework's routine or in the IRP.
pub fn information_of(request: &mut RequestData) -> u64 {
    let in_irp = information_address(request).and_then(|address| memory::read(address).ok());
    in_irp.unwrap_or(request.information)
}

/// Sets the number of bytes that a request has transferred.
pub fn set_information_of(request: &mut RequestData, information: u64) {
    request.information = information;
    if let Some(address) = information_address(request) {
        let written = memory::write(address, &information);
        debug_assert!(written.is_ok(), "the kernel's own memory is writable");
    }
}
