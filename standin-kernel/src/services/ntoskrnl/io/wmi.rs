//! WMI for drivers that receive the events of other drivers: data block objects and their
//! callbacks. Other drivers' data blocks cannot be read or set.

use std::collections::BTreeMap;

use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{NtResult, NtStatus, abi::DeviceObject, arena::Block, irql::Irql, memory},
    services::{
        managers::wmi_events::WmiEvent,
        ntoskrnl::{
            context::{Context, Entries},
            ex::pool,
            ke::threads::queue_body,
            ob::handles,
        },
    },
};
use etl_file::Guid;

/// The exports, with the IRQL limits from their documentation.
pub const ENTRIES: Entries = &[
    routine("IoWMIDeviceObjectToProviderId", provider_id),
    routine("IoWMIOpenBlock", open),
    routine("IoWMISetNotificationCallback", set_callback),
];

/// `WMIGUID_QUERY`, `WMIGUID_SET`, `WMIGUID_NOTIFICATION` and `WMIGUID_EXECUTE`.
const QUERY: u32 = 0x01;
const SET: u32 = 0x02;
const NOTIFICATION: u32 = 0x04;
const EXECUTE: u32 = 0x10;

/// `STATUS_WMI_GUID_NOT_FOUND`.
const GUID_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_0295);
/// `IO_TYPE_DEVICE`.
const DEVICE: i16 = 3;
/// The size of a data block object. No header declares it.
const SIZE: usize = 0x60;

/// The open data block objects, by address.
#[derive(Default)]
struct Blocks(BTreeMap<u64, Opened>);

/// A data block that a driver opened.
struct Opened {
    guid: [u8; 16],
    access: u32,
    /// The routine for its events, and its context.
    callback: Option<(u64, u64)>,
    /// The return address of the call that opened it.
    caller: u64,
    _memory: Block,
}

fn provider_id(context: &Context, device: At<DeviceObject>) -> u32 {
    if memory::read::<i16>(device.0) != Ok(DEVICE) {
        context.stop_for_wrong(device.0, "a device object");
    }
    context.wmi_events().provider_of(device.0)
}

/// Opens a data block. If the data block is opened only for events, it does not have to exist,
/// because its provider can register later.
fn open(context: &Context, guid: At<Guid>, access: u32, object: At<u64>) -> NtResult {
    let guid: [u8; 16] = context.read(guid.0);
    object.write(context, 0);
    if access & NOTIFICATION == 0 {
        if access & (QUERY | SET | EXECUTE) != 0 {
            // In the stand-in kernel, no data block of a driver or the system can be read.
            return Err(GUID_NOT_FOUND);
        }
        return Err(NtStatus::ACCESS_DENIED);
    }
    let memory = Block::zeroed(SIZE);
    let address = memory.address();
    let opened = Opened {
        guid,
        access,
        callback: None,
        caller: context.call().return_address,
        _memory: memory,
    };
    context.state().get::<Blocks>().0.insert(address, opened);
    handles::own(context, address, close);
    handles::reference(context, At::new(address));
    object.write(context, address);
    Ok(())
}

/// Closes a data block object whose last reference was released.
fn close(context: &Context, object: u64) {
    context.state().get::<Blocks>().0.remove(&object);
    tell_watched(context);
}

/// Notifies providers of the data blocks for whose events callbacks are registered.
fn tell_watched(context: &Context) {
    let watched = context.with_state(|Blocks(blocks)| {
        let watched = blocks.values().filter(|one| one.callback.is_some());
        watched.map(|one| one.guid).collect()
    });
    context.wmi_events().watch(watched);
}

fn set_callback(
    context: &Context,
    object: Memory,
    callback: Callback,
    callback_context: Memory,
) -> NtResult {
    let result = context.with_state(|Blocks(blocks)| {
        blocks.get_mut(&object.0).map(|opened| match opened.callback {
            _ if opened.access & NOTIFICATION == 0 => Err(NtStatus::ACCESS_DENIED),
            Some(_) => Err(NtStatus::UNSUCCESSFUL),
            None => {
                opened.callback = Some((callback.0, callback_context.0));
                Ok(())
            }
        })
    });
    let Some(result) = result else {
        context.stop_for_wrong(object.0, "a data block object");
    };
    tell_watched(context);
    result
}

/// Delivers the oldest fired event: each callback runs on a kernel thread. Returns `false` if there
/// is no event.
pub fn deliver_one(context: &Context) -> bool {
    if context.irql() > Irql::PASSIVE_LEVEL {
        return false;
    }
    let Some(event) = context.wmi_events().take() else {
        return false;
    };
    if let Some(block) = event.block {
        pool::free_block(context, block);
    }
    let callbacks: Vec<(u64, u64)> = context.with_state(|Blocks(blocks)| {
        let of_guid = blocks.values().filter(|one| one.guid == event.guid());
        of_guid.filter_map(|one| one.callback).collect()
    });
    for (callback, callback_context) in callbacks {
        let WmiEvent { node, .. } = event.clone();
        queue_body(context, callback, move |context| {
            let memory = Block::zeroed(node.len());
            context.write_bytes(memory.address(), &node);
            let arguments = [memory.address(), callback_context];
            context.call_driver("the callback for WMI events", callback, arguments);
        });
    }
    true
}

/// Removes the data block objects that a driver opened, and returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    let left: BTreeMap<u64, Opened> = context
        .with_state(|Blocks(blocks)| blocks.extract_if(.., |_, one| belongs(one.caller)).collect());
    // The objects' memory is freed only after their addresses are no longer used.
    for object in left.keys() {
        handles::forget(context, *object);
    }
    tell_watched(context);
    left.len()
}
