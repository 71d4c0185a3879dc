//! What the plug-and-play manager asks a device that works.

use super::{
    super::{context::Context, handles, io::devices},
    minor::pnp,
    sent::{Outcome, Request, send},
};
use crate::ground::{
    arena::Block,
    pnp_abi::{DeviceCapabilities, DeviceRelations},
    rule::Rule,
};

/// `PNP_DEVICE_FAILED`.
pub const FAILED: u64 = 0x4;

/// Asks a device that has started what it can do, for its state, and for its children. Returns the state.
pub fn query_started(context: &Context, physical: u64) -> u64 {
    let size = u16::try_from(size_of::<DeviceCapabilities>()).unwrap_or(0);
    let asked = DeviceCapabilities {
        size,
        version: 1,
        flags: 0,
        address: u32::MAX,
        number: u32::MAX,
        states: [0; 7],
        system_wake: 0,
        device_wake: 0,
        latency_1: 0,
        latency_2: 0,
        latency_3: 0,
    };
    let memory = Block::zeroed(size_of::<DeviceCapabilities>());
    context.write(memory.address(), &asked);
    let request = Request {
        parameters: [memory.address(), 0, 0, 0],
        ..Request::pnp(pnp::QUERY_CAPABILITIES)
    };
    send(context, physical, &request);
    let state = query_state(context, physical);
    query_relations(context, physical, BUS_RELATIONS);
    state
}

/// Asks for a device's state. A device whose drivers do not tell works.
pub fn query_state(context: &Context, physical: u64) -> u64 {
    let outcome = send(context, physical, &Request::pnp(pnp::QUERY_STATE));
    if outcome.status.is_success() {
        outcome.information
    } else {
        0
    }
}

/// `BusRelations` and `RemovalRelations`.
const BUS_RELATIONS: u32 = 0;
pub const REMOVAL_RELATIONS: u32 = 3;

/// Asks for the relations of a device, and frees what the drivers return. The plug-and-play manager of
/// this kernel loads no drivers for the children that a driver without the framework reports.
pub fn query_relations(context: &Context, physical: u64, kind: u32) {
    let request = Request {
        parameters: [u64::from(kind), 0, 0, 0],
        ..Request::pnp(pnp::QUERY_RELATIONS)
    };
    let Outcome {
        status,
        information,
    } = send(context, physical, &request);
    if !status.is_success() || information == 0 {
        return;
    }
    let relations: DeviceRelations = context.read(information);
    let first = std::mem::offset_of!(DeviceRelations, objects) as u64;
    for number in 0..u64::from(relations.count) {
        let at = information.wrapping_add(first).wrapping_add(8 * number);
        let object: u64 = context.read(at);
        if !devices::is_device(context, object) {
            context.stop(
                Rule::ObjectMisused,
                format!(
                    "a driver returned 0x{object:016X} for IRP_MN_QUERY_DEVICE_RELATIONS, which is not \
                     a device object"
                ),
            );
        }
        handles::dereference(context, object);
    }
    free(context, information, "IRP_MN_QUERY_DEVICE_RELATIONS");
}

/// Frees what a driver returned for a request.
fn free(context: &Context, memory: u64, request: &str) {
    if context
        .pool()
        .free(memory, context, context.call())
        .is_err()
    {
        context.stop(
            Rule::BadFree,
            format!(
                "a driver returned 0x{memory:016X} for {request}, which is not a pool block; the \
                 plug-and-play manager frees it"
            ),
        );
    }
}
