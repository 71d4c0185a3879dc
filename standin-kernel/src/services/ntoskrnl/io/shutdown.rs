//! The shutdown of the system, and the requests that notify drivers.

use std::collections::HashSet;

use super::{
    irp::{self, call_driver},
    lifetime::notified_of_shutdown,
    stacks,
};
use crate::{
    execution::{coroutine::wait_until, routine::At},
    ground::{NtStatus, abi::DeviceObject, rule::Rule},
    services::ntoskrnl::context::Context,
};

/// `IRP_MJ_SHUTDOWN`.
const SHUTDOWN: u8 = 16;

#[derive(Default)]
struct Ended(HashSet<u64>);

/// Sends a request to each device whose driver is notified of the shutdown, last registered first.
pub fn shut_down(context: &Context) {
    for notified in notified_of_shutdown(context) {
        send(context, notified.device);
    }
}

fn send(context: &Context, device: u64) {
    let top = stacks::top_of(context, device);
    let stack_size = context.read::<DeviceObject>(top).stack_size;
    let request = irp::create(context, stack_size, Some(ended));
    irp::update_next(context, request, |location| {
        location.major_function = SHUTDOWN;
        location.device_object = top;
    });
    let status = call_driver(context, At::new(top), At::new(request));
    let has_ended = || context.state().get::<Ended>().0.contains(&request);
    if status == NtStatus::PENDING {
        wait_until(context, None, has_ended);
    }
    if !context.state().get::<Ended>().0.remove(&request) {
        context.stop(
            Rule::RequestNotCompleted,
            format!(
                "the driver returned {status} for IRP_MJ_SHUTDOWN and did not complete the request"
            ),
        );
    }
}

fn ended(context: &Context, request: u64) {
    context.state().get::<Ended>().0.insert(request);
}
