//! The `WdfIoQueue*` routines that create and describe a queue.

use std::collections::VecDeque;

use super::dispatch::dispatch;
use crate::{
    execution::routine::{At, Callback, Handle, Memory, Out, routine},
    ground::{
        NtResult, NtStatus,
        abi::{IoQueueConfig, ObjectAttributes},
    },
    services::kmdf::{
        lifetime::{create_from, discard},
        state::{
            device::{DeviceData, get_device},
            framework::{Context, Entries},
            queue::{MANUAL, Notify, PARALLEL, Power, QueueData, check},
        },
        synchronization::presentation,
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfIoQueueCreate", queue_create),
    routine("WdfIoQueueGetDevice", get_device::<QueueData>),
    routine("WdfIoQueueGetState", get_state),
    routine("WdfIoQueueStart", start),
    routine("WdfIoQueueReadyNotify", ready_notify),
];

/// Reads a configuration. Returns `None` if its size is not the size in any headers.
fn read_config(context: &Context, address: u64) -> Option<IoQueueConfig> {
    /// The structure's sizes up to KMDF 1.7 and 1.9.
    const OLD: [usize; 2] = [80, 88];
    let mut config: IoQueueConfig = context.read_sized(address, &OLD).ok()?;
    // Before the limit was introduced, parallel queues had no limit.
    if config.size as usize == OLD[0] && config.dispatch_type == PARALLEL {
        config.settings = u32::MAX;
    }
    Some(config)
}

fn queue_create(
    context: &Context,
    device: Handle<DeviceData>,
    config: At<IoQueueConfig>,
    attributes: At<ObjectAttributes>,
    queue: Out<QueueData>,
) -> NtResult {
    const USE_DEFAULT: u32 = 2;
    const INVALID_PARAMETER_4: NtStatus = NtStatus::from_bits(0xC000_00F2);
    let config = read_config(context, config.0).ok_or(NtStatus::INFO_LENGTH_MISMATCH)?;
    let is_default = config.default_queue != 0;
    if !is_default && queue.0 == 0 {
        return Err(INVALID_PARAMETER_4);
    }
    let (taken, is_initialized, is_control, is_filter, in_d0) = device.with(context, |device| {
        let (is_control, is_filter) = (device.is_control(), device.init.is_filter);
        let taken = device.default_queue.is_some();
        (taken, device.is_initialized(), is_control, is_filter, device.is_in_d0())
    });
    if is_default && is_initialized {
        return Err(NtStatus::INVALID_DEVICE_STATE);
    }
    check(&config)?;
    if is_default && taken {
        return Err(NtStatus::UNSUCCESSFUL);
    }
    let is_power_managed = !is_control
        && match config.power_managed {
            0 => false,
            USE_DEFAULT => !is_filter,
            _ => true,
        };
    let data = QueueData {
        config,
        waiting: VecDeque::new(),
        presented: Vec::new(),
        canceled: VecDeque::new(),
        cancelable: VecDeque::new(),
        accepts: true,
        dispatches: true,
        power: if in_d0 || !is_power_managed { Power::On } else { Power::Off },
        is_notifying: false,
        is_power_managed,
        is_routed: false,
        is_shut_down: false,
        cancels: false,
        became_ready: false,
        ready: None,
        idle: None,
        purged: None,
        dispatching: Vec::new(),
    };
    let made = create_from(context, data, attributes.0, Some(device.0)).and_then(|queue| {
        presentation::check_queue(context, queue)
            .map(|()| queue)
            .inspect_err(|_| discard(context, queue))
    });
    let handle = made?;
    if is_default {
        device.with(context, |device| device.default_queue = Some(handle));
    }
    context.write_optional(queue.0, &handle);
    Ok(())
}

fn get_state(
    context: &Context,
    queue: Handle<QueueData>,
    waiting: At<u32>,
    presented: At<u32>,
) -> u32 {
    const ACCEPTS: u32 = 1;
    const DISPATCHES: u32 = 2;
    const NONE_WAIT: u32 = 4;
    const DRIVER_HAS_NONE: u32 = 8;
    const PNP_HELD: u32 = 16;
    let (state, counts) = queue.with(context, |queue| {
        let bits = [
            (queue.accepts, ACCEPTS),
            (queue.dispatches, DISPATCHES),
            (queue.waiting.is_empty(), NONE_WAIT),
            (queue.presented.is_empty(), DRIVER_HAS_NONE),
            (queue.power != Power::On, PNP_HELD),
        ];
        let state = bits.iter().filter(|(is_set, _)| *is_set);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (
            state.map(|(_, bit)| *bit).sum::<u32>(),
            [(waiting, count(queue.waiting.len())), (presented, count(queue.presented.len()))],
        )
    });
    for (address, count) in counts {
        context.write_optional(address.0, &count);
    }
    state
}

fn start(context: &Context, queue: Handle<QueueData>) {
    queue.with(context, |queue| {
        queue.accepts = !queue.is_shut_down;
        queue.dispatches = true;
        queue.cancels = false;
        queue.became_ready |= !queue.waiting.is_empty();
    });
    dispatch(context, queue.0);
}

fn ready_notify(
    context: &Context,
    queue: Handle<QueueData>,
    callback: Callback,
    argument: Memory,
) -> NtStatus {
    let is_taken = queue.with(context, |queue| {
        let is_setting = callback != Callback(0);
        if queue.config.dispatch_type != MANUAL
            || queue.ready.is_some() == is_setting
            || (!is_setting && queue.dispatches)
        {
            return false;
        }
        queue.ready = is_setting.then_some(Notify { function: callback.0, argument: argument.0 });
        true
    });
    if !is_taken {
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    dispatch(context, queue.0);
    NtStatus::SUCCESS
}
