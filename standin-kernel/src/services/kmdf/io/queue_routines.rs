//! The `WdfIoQueue*` routines that create and describe a queue.

use std::collections::VecDeque;

use super::dispatch::dispatch;
use crate::{
    execution::routine::Routine,
    ground::{abi::IoQueueConfig, status::NtStatus},
    services::kmdf::{
        object::{create, read_attributes},
        presentation,
        state::{
            device::{DeviceData, device_of},
            framework::{Context, Entries},
            queue::{MANUAL, Notify, PARALLEL, QueueData, check},
        },
    },
};

pub const ENTRIES: Entries = &[
    ("WdfIoQueueCreate", Routine::Five(queue_create)),
    ("WdfIoQueueGetDevice", Routine::Two(get_device)),
    ("WdfIoQueueGetState", Routine::Four(get_state)),
    ("WdfIoQueueStart", Routine::Two(start)),
    ("WdfIoQueueReadyNotify", Routine::Four(ready_notify)),
];

/// Reads a configuration, or returns `None` if its size is that of no headers.
fn read_config(context: &Context, address: u64) -> Option<IoQueueConfig> {
    /// The sizes up to KMDF 1.7 and to 1.9.
    const OLD: [usize; 2] = [80, 88];
    let mut config: IoQueueConfig = context.read_sized(address, &OLD).ok()?;
    // A parallel queue had no limit before it could have one.
    if config.size as usize == OLD[0] && config.dispatch_type == PARALLEL {
        config.presented_requests = u32::MAX;
    }
    Some(config)
}

fn queue_create(
    context: &Context,
    _globals: u64,
    device: u64,
    config: u64,
    attributes: u64,
    queue: u64,
) -> u64 {
    const USE_DEFAULT: u32 = 2;
    let Some(config) = read_config(context, config) else {
        return NtStatus::INFO_LENGTH_MISMATCH.to_register();
    };
    if let Err(status) = check(&config) {
        return status.to_register();
    }
    let is_default = config.default_queue != 0;
    let (taken, is_control, in_d0) = context.with::<DeviceData, _>(device, |device| {
        (device.default_queue.is_some(), device.is_control(), device.is_in_d0())
    });
    if is_default && taken {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    let is_power_managed = match config.power_managed {
        0 => false,
        USE_DEFAULT => !is_control,
        _ => true,
    };
    let attributes = read_attributes(context, attributes);
    let data = QueueData {
        config,
        waiting: VecDeque::new(),
        presented: Vec::new(),
        canceled: VecDeque::new(),
        accepts: true,
        dispatches: true,
        is_powered: in_d0 || !is_power_managed,
        is_power_managed,
        is_shut_down: false,
        cancels: false,
        became_ready: false,
        ready: None,
        idle: None,
        purged: None,
        dispatching: Vec::new(),
    };
    let made = create(context, data, attributes.as_ref(), Some(device)).and_then(|queue| {
        presentation::check_queue(context, queue)
            .map(|()| queue)
            .inspect_err(|_| context.framework().forget(queue))
    });
    match made {
        Ok(handle) => {
            if is_default {
                context.with::<DeviceData, _>(device, |device| device.default_queue = Some(handle));
            }
            if queue != 0 {
                context.write(queue, &handle);
            }
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn get_device(context: &Context, _globals: u64, queue: u64) -> u64 {
    context.with::<QueueData, _>(queue, |_| ());
    device_of(context, queue).unwrap_or(0)
}

fn get_state(context: &Context, _globals: u64, queue: u64, waiting: u64, presented: u64) -> u64 {
    const ACCEPTS: u64 = 1;
    const DISPATCHES: u64 = 2;
    const NONE_WAIT: u64 = 4;
    const DRIVER_HAS_NONE: u64 = 8;
    const PNP_HELD: u64 = 16;
    let (state, counts) = context.with::<QueueData, _>(queue, |queue| {
        let bits = [
            (queue.accepts, ACCEPTS),
            (queue.dispatches, DISPATCHES),
            (queue.waiting.is_empty(), NONE_WAIT),
            (queue.presented.is_empty(), DRIVER_HAS_NONE),
            (!queue.is_powered, PNP_HELD),
        ];
        let state = bits.iter().filter(|(is_set, _)| *is_set);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (
            state.map(|(_, bit)| *bit).sum::<u64>(),
            [(waiting, count(queue.waiting.len())), (presented, count(queue.presented.len()))],
        )
    });
    for (address, count) in counts {
        if address != 0 {
            context.write(address, &count);
        }
    }
    state
}

fn start(context: &Context, _globals: u64, queue: u64) -> u64 {
    context.with::<QueueData, _>(queue, |queue| {
        queue.accepts = !queue.is_shut_down;
        queue.dispatches = true;
        queue.cancels = false;
        queue.became_ready |= !queue.waiting.is_empty();
    });
    dispatch(context, queue);
    0
}

fn ready_notify(context: &Context, _globals: u64, queue: u64, callback: u64, argument: u64) -> u64 {
    let is_taken = context.with::<QueueData, _>(queue, |queue| {
        let is_setting = callback != 0;
        if queue.config.dispatch_type != MANUAL
            || queue.ready.is_some() == is_setting
            || (!is_setting && queue.dispatches)
        {
            return false;
        }
        queue.ready = is_setting.then_some(Notify { function: callback, argument });
        true
    });
    if !is_taken {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    dispatch(context, queue);
    NtStatus::SUCCESS.to_register()
}
