//! The requests that the Plug and Play manager and the power manager send to a device stack, and the
//! rules for the drivers in the stack.

use std::collections::HashMap;

use super::minor::{self, PNP, SYSTEM_CONTROL};
use crate::{
    execution::{coroutine::wait_until, routine::At},
    ground::{
        NtStatus,
        abi::{DeviceObject, Irp},
        rule::Rule,
    },
    services::ntoskrnl::{
        context::Context,
        io::{
            irp::{self, call_driver},
            stacks,
        },
    },
};

/// A request to a device stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// The major function.
    pub major: u8,
    /// The minor function.
    pub minor: u8,
    /// The parameters.
    pub parameters: [u64; 4],
    /// `Irp->IoStatus.Information`.
    pub information: u64,
}

impl Request {
    /// Returns a Plug and Play request without parameters.
    pub const fn pnp(minor: u8) -> Self {
        Self { major: PNP, minor, parameters: [0; 4], information: 0 }
    }

    /// Returns the name of the request.
    pub fn name(&self) -> String {
        minor::name(self.major, self.minor)
    }
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status with which the request was completed.
    pub status: NtStatus,
    /// `Irp->IoStatus.Information`.
    pub information: u64,
}

/// A request that is in progress or complete.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Set if the request has reached the bus, at the bottom of the stack.
    has_reached_bus: bool,
    /// Set if the driver called `IoMarkIrpPending`.
    is_marked: bool,
    outcome: Option<Outcome>,
}

/// The requests that were sent, by address.
#[derive(Default)]
struct Sent(HashMap<u64, Progress>);

/// Records that a request has reached the bus, at the bottom of the stack.
pub fn note_reached(context: &Context, irp: u64) {
    if let Some(sent) = context.state().get::<Sent>().0.get_mut(&irp) {
        sent.has_reached_bus = true;
    }
}

/// Allocates a request for the top of a device's stack, with the initial status that means that no
/// driver has handled it. Returns the request's address, and the device at the top.
pub fn allocate(
    context: &Context,
    device: u64,
    request: &Request,
    ended: irp::Ended,
) -> (u64, u64) {
    let top = stacks::top_of(context, device);
    let stack_size = context.read::<DeviceObject>(top).stack_size;
    let irp = irp::create(context, stack_size, Some(ended));
    context.update(irp, |value: &mut Irp| {
        value.io_status.status = NtStatus::NOT_SUPPORTED.bits();
        value.io_status.information = request.information;
    });
    irp::update_next(context, irp, |location| {
        location.major_function = request.major;
        location.minor_function = request.minor;
        location.parameters = request.parameters;
        location.device_object = top;
    });
    (irp, top)
}

/// Sends a request to the top of a device's stack, and waits for its completion.
pub fn send(context: &Context, device: u64, request: &Request) -> Outcome {
    let (irp, top) = allocate(context, device, request, ended);
    let progress = Progress::default();
    context.state().get::<Sent>().0.insert(irp, progress);
    let returned = call_driver(context, At::new(top), At::new(irp));
    let has_ended = || outcome_of(context, irp).is_some();
    if returned == NtStatus::PENDING {
        wait_until(context, None, has_ended);
    }
    let progress = context.with_state(|Sent(all)| all.remove(&irp)).unwrap_or_default();
    let outcome = progress.outcome.unwrap_or_else(|| {
        let name = request.name();
        let why = if returned == NtStatus::PENDING {
            "no remaining work completes it"
        } else {
            "neither completed it nor passed it down the stack"
        };
        context.stop(
            Rule::RequestNotCompleted,
            format!("the driver returned {returned} for {name}, and {why}"),
        )
    });
    if let Some(broken) = broken(request, returned, &progress, outcome) {
        context.stop(Rule::RequestMisused, broken);
    }
    outcome
}

fn outcome_of(context: &Context, irp: u64) -> Option<Outcome> {
    context.with_state(|Sent(all)| all.get(&irp)?.outcome)
}

/// Stores the result of a completed request.
fn ended(context: &Context, irp: u64) {
    let value: Irp = context.read(irp);
    if let Some(sent) = context.state().get::<Sent>().0.get_mut(&irp) {
        sent.is_marked = value.pending_returned != 0;
        sent.outcome = Some(Outcome {
            status: NtStatus::from_bits(value.io_status.status),
            information: value.io_status.information,
        });
    }
}

/// Describes the drivers' violation, if they did not handle a request as its function requires.
fn broken(
    request: &Request,
    returned: NtStatus,
    progress: &Progress,
    outcome: Outcome,
) -> Option<String> {
    let name = request.name();
    let status = outcome.status;
    let is_pending = returned == NtStatus::PENDING;
    if is_pending && !progress.is_marked {
        return Some(format!(
            "the driver returned STATUS_PENDING for {name} without calling IoMarkIrpPending"
        ));
    }
    if !is_pending && progress.is_marked {
        return Some(format!(
            "the driver called IoMarkIrpPending for {name} and returned {returned} instead of \
             STATUS_PENDING"
        ));
    }
    if !is_pending && returned != status {
        return Some(format!(
            "the driver returned {returned} for {name}, which was completed with {status}"
        ));
    }
    if minor::must_succeed(request.major, request.minor) && !status.is_success() {
        return Some(format!(
            "the driver completed {name} with {status}; drivers must not fail it"
        ));
    }
    // Drivers pass down requests that they do not support or that they let succeed. WDM drivers
    // pass WMI requests down only if they do not support them.
    let is_all = request.major == SYSTEM_CONTROL;
    if !progress.has_reached_bus
        && !is_all
        && (status.is_success() || status == NtStatus::NOT_SUPPORTED)
    {
        return Some(format!(
            "the driver completed {name} with {status} instead of passing it down the stack; \
             function and filter drivers must pass it to the next lower driver"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Progress, Request, broken};
    use crate::{
        ground::NtStatus,
        services::ntoskrnl::io::plug_and_play::minor::{SYSTEM_CONTROL, pnp},
    };

    fn judge(
        minor: u8,
        returned: NtStatus,
        status: NtStatus,
        reached: bool,
        marked: bool,
    ) -> String {
        let progress = Progress { has_reached_bus: reached, is_marked: marked, outcome: None };
        let outcome = Outcome { status, information: 0 };
        broken(&Request::pnp(minor), returned, &progress, outcome).unwrap_or_default()
    }

    #[test]
    fn a_request_that_the_drivers_serve_well_breaks_nothing() {
        let (ok, pending) = (NtStatus::SUCCESS, NtStatus::PENDING);
        assert_eq!(judge(pnp::START, ok, ok, true, false), "");
        assert_eq!(judge(pnp::START, pending, ok, true, true), "");
        let refused = NtStatus::UNSUCCESSFUL;
        assert_eq!(judge(pnp::QUERY_REMOVE, refused, refused, false, false), "");
        let unknown = NtStatus::NOT_SUPPORTED;
        assert_eq!(judge(pnp::QUERY_ID, unknown, unknown, true, false), "");
    }

    #[test]
    fn each_broken_rule_is_named() {
        let (ok, pending) = (NtStatus::SUCCESS, NtStatus::PENDING);
        let bad = NtStatus::UNSUCCESSFUL;
        for (said, part) in [
            (judge(pnp::START, pending, ok, true, false), "IoMarkIrpPending"),
            (judge(pnp::START, ok, ok, true, true), "instead of STATUS_PENDING"),
            (judge(pnp::START, ok, bad, true, false), "which was completed with"),
            (judge(pnp::REMOVE, bad, bad, true, false), "must not fail it"),
            (judge(pnp::REMOVE, ok, ok, false, false), "passing it down"),
            (
                judge(
                    pnp::QUERY_ID,
                    NtStatus::NOT_SUPPORTED,
                    NtStatus::NOT_SUPPORTED,
                    false,
                    false,
                ),
                "passing it down",
            ),
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn a_driver_serves_requests_for_its_own_data_itself() {
        let request = Request { major: SYSTEM_CONTROL, ..Request::default() };
        let outcome = Outcome { status: NtStatus::SUCCESS, information: 0 };
        let progress = Progress::default();
        assert_eq!(broken(&request, NtStatus::SUCCESS, &progress, outcome), None);
    }
}
