//! The routines that remove requests from queues for a driver, and put them into queues.

use super::{
    dispatch::{cancel_on_queue, dispatch},
    ending::{end, must_not_be_cancelable, must_own},
    request_routines::fill_parameters,
};
use crate::{
    execution::routine::{At, Handle, Out, routine},
    ground::{NtResult, NtStatus, abi::RequestParameters},
    services::kmdf::{
        lifetime,
        state::{
            device::device_of,
            file::FileData,
            framework::{Context, Entries},
            queue::{MANUAL, PARALLEL, Power, QueueData},
            request::{RequestData, Stop},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfIoQueueRetrieveNextRequest", retrieve_next),
    routine("WdfIoQueueRetrieveRequestByFileObject", retrieve_by_file),
    routine("WdfIoQueueFindRequest", find_request),
    routine("WdfIoQueueRetrieveFoundRequest", retrieve_found),
    routine("WdfRequestForwardToIoQueue", forward),
    routine("WdfRequestRequeue", requeue),
];

/// Presents the first waiting request that `is_wanted` selects to the driver.
fn retrieve(
    context: &Context,
    queue: u64,
    mut is_wanted: impl FnMut(u64, &RequestData) -> bool,
) -> NtResult<u64> {
    context.with::<QueueData, _>(queue, |queue| {
        if queue.config.dispatch_type == PARALLEL {
            Err(NtStatus::INVALID_DEVICE_STATE)
        } else if queue.power == Power::Off || !queue.dispatches {
            Err(NtStatus::WDF_PAUSED)
        } else {
            Ok(())
        }
    })?;
    loop {
        let (waiting, allows_empty) = context.with::<QueueData, _>(queue, |queue| {
            (queue.waiting.clone(), queue.config.allow_zero_length_requests != 0)
        });
        let found = waiting.into_iter().find(|request| {
            context.with::<RequestData, _>(*request, |data| is_wanted(*request, data))
        });
        let request = found.ok_or(NtStatus::NO_MORE_ENTRIES)?;
        let is_empty = context.with::<RequestData, _>(request, |data| data.is_empty());
        let is_handed_out = allows_empty || !is_empty;
        let was_waiting = context.with::<QueueData, _>(queue, |queue| {
            let before = queue.waiting.len();
            queue.waiting.retain(|waiting| *waiting != request);
            let was_waiting = queue.waiting.len() < before;
            if was_waiting && is_handed_out {
                queue.presented.push(request);
            }
            was_waiting
        });
        if !was_waiting {
            continue;
        }
        if !is_handed_out {
            end(context, request, NtStatus::SUCCESS, Some(0));
            continue;
        }
        context.with::<RequestData, _>(request, RequestData::set_presented);
        return Ok(request);
    }
}

/// Stores a request's handle for the driver, or returns the status that explains why there is no
/// request.
fn hand_out(context: &Context, found: NtResult<u64>, handle: u64) -> NtResult {
    context.write(handle, &found.unwrap_or(0));
    found.map(|_| ())
}

fn retrieve_next(
    context: &Context,
    queue: Handle<QueueData>,
    request: Out<RequestData>,
) -> NtResult {
    let found = retrieve(context, queue.0, |_, _| true);
    hand_out(context, found, request.0)
}

fn retrieve_by_file(
    context: &Context,
    queue: Handle<QueueData>,
    file: Handle<FileData>,
    request: Out<RequestData>,
) -> NtResult {
    file.check(context);
    let found = retrieve(context, queue.0, |_, data| data.file() == Some(file.0));
    hand_out(context, found, request.0)
}

fn retrieve_found(
    context: &Context,
    queue: Handle<QueueData>,
    found: Handle<RequestData>,
    request: Out<RequestData>,
) -> NtResult {
    if queue.with(context, |queue| queue.config.dispatch_type != MANUAL) {
        return hand_out(context, Err(NtStatus::INVALID_DEVICE_REQUEST), request.0);
    }
    let found = retrieve(context, queue.0, |handle, _| handle == found.0).map_err(|status| {
        if status == NtStatus::NO_MORE_ENTRIES { NtStatus::NOT_FOUND } else { status }
    });
    hand_out(context, found, request.0)
}

/// Finds the next waiting request after the request that was found before. The driver receives a
/// reference to the request, but does not own it.
fn find_request(
    context: &Context,
    queue: Handle<QueueData>,
    after: Handle<RequestData>,
    file: Handle<FileData>,
    parameters: At<RequestParameters>,
    request: Out<RequestData>,
) -> NtResult {
    let waiting = queue.with(context, |queue| {
        (queue.config.dispatch_type == MANUAL).then(|| queue.waiting.clone())
    });
    let Some(waiting) = waiting else {
        return hand_out(context, Err(NtStatus::INVALID_DEVICE_REQUEST), request.0);
    };
    if after.0 != 0 && !waiting.contains(&after.0) {
        return hand_out(context, Err(NtStatus::NOT_FOUND), request.0);
    }
    let skipped =
        waiting.iter().position(|waiting| *waiting == after.0).map_or(0, |place| place + 1);
    let found = waiting.into_iter().skip(skipped).find(|waiting| {
        file.0 == 0 || context.with::<RequestData, _>(*waiting, |data| data.file() == Some(file.0))
    });
    if let Some(found) = found {
        lifetime::add_reference(context, found);
        if !parameters.is_null() {
            fill_parameters(context, found, parameters.0);
        }
    }
    hand_out(context, found.ok_or(NtStatus::NO_MORE_ENTRIES), request.0)
}

/// Returns the queue of a request that the driver is moving to another queue.
fn take_back(context: &Context, request: u64) -> Option<u64> {
    must_own(context, request);
    must_not_be_cancelable(context, request);
    context.with::<RequestData, _>(request, |request| request.queue())
}

/// `WdfRequestForwardToIoQueue`.
pub fn forward(
    context: &Context,
    request: Handle<RequestData>,
    destination_queue: Handle<QueueData>,
) -> NtStatus {
    let accepts = destination_queue.with(context, |queue| queue.accepts);
    let from = take_back(context, request.0);
    let has_queue = request.with(context, |request| request.has_queue());
    let goes_elsewhere = device_of(context, request.0) != device_of(context, destination_queue.0);
    if from == Some(destination_queue.0) || !has_queue || goes_elsewhere {
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    if !accepts {
        return NtStatus::WDF_BUSY;
    }
    if let Some(from) = from {
        context.with::<QueueData, _>(from, |queue| queue.forget(request.0));
    }
    let is_cancelled = request.with(context, |data| {
        data.set_queue(destination_queue.0);
        data.is_cancelled()
    });
    if is_cancelled {
        cancel_on_queue(context, destination_queue.0, request.0);
    } else {
        destination_queue.with(context, |queue| queue.put_last(request.0));
        dispatch(context, destination_queue.0);
    }
    if let Some(from) = from {
        dispatch(context, from);
    }
    NtStatus::SUCCESS
}

/// `WdfRequestRequeue`: returns the request to the head of a manual queue.
pub fn requeue(context: &Context, request: Handle<RequestData>) -> NtResult {
    let queue = take_back(context, request.0).filter(|queue| {
        context.with::<QueueData, _>(*queue, |queue| queue.config.dispatch_type == MANUAL)
    });
    let queue = queue.ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
    put_back(context, queue, request.0);
    Ok(())
}

/// Returns a request from the driver to the head of its queue, unless it is canceled.
pub fn put_back(context: &Context, queue: u64, request: u64) {
    let is_cancelled = context.with::<RequestData, _>(request, |data| {
        data.stop = Stop::None;
        data.is_cancelled()
    });
    let cancels = context.with::<QueueData, _>(queue, |queue| {
        queue.forget(request);
        let cancels = is_cancelled || queue.cancels;
        if !cancels {
            queue.put_first(request);
        }
        cancels
    });
    if cancels {
        cancel_on_queue(context, queue, request);
    }
    dispatch(context, queue);
}
