//! I/O queues.

use std::collections::VecDeque;

use super::{
    Entries, Routine,
    device::{DeviceData, device_of},
    lock_framework,
    object::{Kind, create, read_attributes},
    request::{self, RequestData, RequestKind},
};
use crate::{
    abi::IoQueueConfig,
    status::NtStatus,
    thread::{self, Thread},
    verifier::Rule,
};

/// `WDF_IO_QUEUE_DISPATCH_TYPE`.
const SEQUENTIAL: u32 = 1;
const PARALLEL: u32 = 2;

/// A queue.
pub struct QueueData {
    config: IoQueueConfig,
    waiting: VecDeque<u64>,
    /// Requests that the driver holds.
    presented: usize,
}

pub const ENTRIES: Entries = &[
    ("WdfIoQueueCreate", Routine::Five(queue_create)),
    ("WdfIoQueueGetDevice", Routine::Two(get_device)),
];

extern "win64" fn queue_create(
    _globals: u64,
    device: u64,
    config: u64,
    attributes: u64,
    queue: u64,
) -> u64 {
    let thread = thread::current();
    let config: IoQueueConfig = thread.read(config);
    if config.size as usize != size_of::<IoQueueConfig>() {
        return NtStatus::INFO_LENGTH_MISMATCH.to_register();
    }
    if config.dispatch_type != SEQUENTIAL && config.dispatch_type != PARALLEL {
        let call = thread.call();
        thread.stop(
            Rule::NotProvided,
            format!(
                "WdfIoQueueCreate was called from {} for dispatch type {}; the stand-in kernel \
                 provides parallel and sequential queues",
                thread.shared().place(call.return_address),
                config.dispatch_type
            ),
        );
    }
    let is_default = config.default_queue != 0;
    let taken = thread.with::<DeviceData, _>(device, |device| device.default_queue.is_some());
    if is_default && taken {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    let attributes = read_attributes(&thread, attributes);
    let kind = Kind::Queue(Box::new(QueueData {
        config,
        waiting: VecDeque::new(),
        presented: 0,
    }));
    match create(&thread, kind, attributes.as_ref(), Some(device)) {
        Ok(handle) => {
            if is_default {
                thread.with::<DeviceData, _>(device, |device| device.default_queue = Some(handle));
            }
            if queue != 0 {
                thread.write(queue, &handle);
            }
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn get_device(_globals: u64, queue: u64) -> u64 {
    let thread = thread::current();
    thread.with::<QueueData, _>(queue, |_| ());
    device_of(&thread, queue).unwrap_or(0)
}

/// Puts a request in a queue, and presents what the queue then lets through.
pub fn enqueue(thread: &Thread, queue: u64, request: u64) {
    thread.with::<QueueData, _>(queue, |queue| queue.waiting.push_back(request));
    present(thread, queue);
}

/// A request of this queue was completed.
pub fn completed(thread: &Thread, queue: u64) {
    let known = lock_framework(thread.shared())
        .get::<QueueData>(queue)
        .map(|queue| queue.presented = queue.presented.saturating_sub(1))
        .is_ok();
    if known {
        present(thread, queue);
    }
}

/// Presents requests to the driver while the queue's dispatch type allows.
fn present(thread: &Thread, queue: u64) {
    loop {
        let Some(device) = device_of(thread, queue) else {
            return;
        };
        if !thread.with::<DeviceData, _>(device, |device| device.is_in_d0()) {
            return;
        }
        let next = thread.with::<QueueData, _>(queue, |queue| {
            if queue.config.dispatch_type == SEQUENTIAL && queue.presented > 0 {
                return None;
            }
            let request = queue.waiting.pop_front()?;
            queue.presented += 1;
            Some((request, queue.config))
        });
        let Some((request, config)) = next else {
            return;
        };
        deliver(thread, queue, request, &config);
    }
}

/// Calls the queue's callback for the request's kind, or completes a request
/// that it has none for.
fn deliver(thread: &Thread, queue: u64, request: u64, config: &IoQueueConfig) {
    let (kind, input, output) = thread.with::<RequestData, _>(request, |data| {
        (data.kind(), data.input_length(), data.output_length())
    });
    let (name, callback, arguments) = match kind {
        RequestKind::Read => ("EvtIoRead", config.io_read, [queue, request, output, 0, 0]),
        RequestKind::Write => ("EvtIoWrite", config.io_write, [queue, request, input, 0, 0]),
        RequestKind::DeviceControl { code } => (
            "EvtIoDeviceControl",
            config.io_device_control,
            [queue, request, output, input, u64::from(code)],
        ),
        RequestKind::Create => ("EvtIoDefault", config.io_default, [queue, request, 0, 0, 0]),
    };
    // Without leave to present them, empty reads and writes are done by the framework.
    let empty = match kind {
        RequestKind::Read => output == 0,
        RequestKind::Write => input == 0,
        _ => false,
    };
    if empty && config.allow_zero_length == 0 {
        request::complete(thread, request, NtStatus::SUCCESS, Some(0));
    } else if callback != 0 {
        thread.call_driver(name, callback, arguments);
    } else if config.io_default != 0 {
        thread.call_driver("EvtIoDefault", config.io_default, [queue, request]);
    } else {
        request::complete(thread, request, NtStatus::INVALID_DEVICE_REQUEST, None);
    }
}

/// Cancels what waits in the device's queues.
pub fn purge(thread: &Thread, device: u64) {
    let waiting: Vec<u64> = {
        let mut framework = lock_framework(thread.shared());
        let queues = framework.all::<QueueData>();
        queues
            .into_iter()
            .filter(|queue| framework.ancestor::<DeviceData>(*queue) == Some(device))
            .collect::<Vec<_>>()
            .into_iter()
            .flat_map(|queue| {
                framework.get::<QueueData>(queue).map_or_else(
                    |_| VecDeque::new(),
                    |queue| core::mem::take(&mut queue.waiting),
                )
            })
            .collect()
    };
    for request in waiting {
        request::complete(thread, request, NtStatus::CANCELLED, Some(0));
    }
}
