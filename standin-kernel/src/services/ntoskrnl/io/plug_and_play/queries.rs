//! The queries that the Plug and Play manager sends to a started device.

use zerocopy::FromZeros;

use super::{
    minor::{PNP, pnp},
    sent::{Outcome, Request, send},
};
use crate::{
    execution::routine::At,
    ground::{
        abi::{DeviceCapabilities, DeviceRelations},
        arena::Block,
        rule::Rule,
    },
    services::ntoskrnl::{context::Context, io::devices, ob::handles},
};

/// `PNP_DEVICE_FAILED`.
pub const FAILED: u64 = 0x4;

/// Queries a newly started device for its capabilities, state and children. Returns the state.
pub fn query_started(context: &Context, physical: u64) -> u64 {
    let size = u16::try_from(size_of::<DeviceCapabilities>()).unwrap_or(0);
    let asked = DeviceCapabilities {
        size,
        version: 1,
        address: u32::MAX,
        ui_number: u32::MAX,
        ..DeviceCapabilities::new_zeroed()
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

/// Queries a device's state. If no driver sets the state, the device counts as working.
pub fn query_state(context: &Context, physical: u64) -> u64 {
    let outcome = send(context, physical, &Request::pnp(pnp::QUERY_STATE));
    if outcome.status.is_success() { outcome.information } else { 0 }
}

/// `BusRelations` and `RemovalRelations`.
const BUS_RELATIONS: u32 = 0;
pub const REMOVAL_RELATIONS: u32 = 3;

/// Queries a device's relations. The stand-in kernel's Plug and Play manager loads no drivers for
/// children that a WDM driver reports.
pub fn query_relations(context: &Context, physical: u64, kind: u32) {
    let request =
        Request { parameters: [u64::from(kind), 0, 0, 0], ..Request::pnp(pnp::QUERY_RELATIONS) };
    ask(context, physical, &request);
}

/// Sends a request, and frees the memory that the drivers return. Returns the outcome, and the
/// bytes of that memory.
pub fn ask(context: &Context, physical: u64, request: &Request) -> (Outcome, Vec<u8>) {
    let outcome = send(context, physical, request);
    let is_answered = outcome.status.is_success() && outcome.information != 0;
    let minor = request.minor;
    if request.major != PNP || !is_answered || !pnp::ANSWERS.contains(&minor) {
        return (outcome, Vec::new());
    }
    let memory = outcome.information;
    if minor == pnp::QUERY_RELATIONS {
        release_relations(context, memory);
    }
    let size = context.pool().size(memory).unwrap_or(0);
    let bytes = context.bytes(memory, size as u64);
    if context.pool().free(memory, context, context.call()).is_err() {
        context.stop(
            Rule::BadFree,
            format!(
                "a driver returned 0x{memory:016X} for {}, which is not a pool block; the Plug and \
                 Play manager frees it",
                request.name()
            ),
        );
    }
    (outcome, bytes)
}

/// Releases the references to the devices that a driver returned.
fn release_relations(context: &Context, relations: u64) {
    const FIRST: u64 = std::mem::offset_of!(DeviceRelations, objects) as u64;
    let count = context.read::<DeviceRelations>(relations).count;
    for number in 0..u64::from(count) {
        let at = relations.wrapping_add(FIRST).wrapping_add(8 * number);
        let object: u64 = context.read(at);
        if !devices::is_device(context, object) {
            context.stop(
                Rule::ObjectMisused,
                format!(
                    "a driver returned 0x{object:016X} for IRP_MN_QUERY_DEVICE_RELATIONS, which is not a \
                     device object"
                ),
            );
        }
        handles::dereference(context, At::new(object));
    }
}
