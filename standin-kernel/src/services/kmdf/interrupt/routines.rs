//! The `WdfInterrupt*` routines.

use super::{
    delivery::{disable, enable, queue_interrupt_dpc, queue_interrupt_work, synchronize},
    lock::{acquire, release, try_acquire},
    state::InterruptData,
};
use crate::{
    execution::routine::{At, Callback, Handle, Memory, Out, routine},
    ground::{
        NtResult, NtStatus,
        abi::{InterruptConfig, InterruptInfo, InterruptPolicy, ObjectAttributes},
        arena::Block,
        memory,
        opaque::InterruptObject,
    },
    services::kmdf::{
        lifetime::{create, give, read_attributes},
        resource_lists::place_of,
        state::{
            device::{DeviceData, device_of},
            framework::{Context, Entries},
        },
        synchronization::presentation::serialization,
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfInterruptCreate", interrupt_create),
    routine("WdfInterruptGetDevice", get_device),
    routine("WdfInterruptGetInfo", get_info),
    routine("WdfInterruptWdmGetInterrupt", get_object),
    routine("WdfInterruptQueueDpcForIsr", queue_dpc_for_isr),
    routine("WdfInterruptQueueWorkItemForIsr", queue_work_item_for_isr),
    routine("WdfInterruptSynchronize", run_synchronized),
    routine("WdfInterruptAcquireLock", acquire_lock),
    routine("WdfInterruptReleaseLock", release_lock),
    routine("WdfInterruptTryToAcquireLock", try_to_acquire_lock),
    routine("WdfInterruptEnable", enable_again),
    routine("WdfInterruptDisable", disable_now),
    routine("WdfInterruptSetPolicy", set_policy),
    routine("WdfInterruptSetExtendedPolicy", set_extended_policy),
];

/// Reads a configuration. Older headers omit the last fields.
fn read_config(context: &Context, address: u64) -> NtResult<InterruptConfig> {
    /// The structure's sizes up to KMDF 1.9 and 1.11.
    const OLD: [usize; 2] = [56, 96];
    context.read_sized(address, &OLD).map_err(|_| NtStatus::INFO_LENGTH_MISMATCH)
}

fn interrupt_create(
    context: &Context,
    device: Handle<DeviceData>,
    config: At<InterruptConfig>,
    attributes: At<ObjectAttributes>,
    interrupt: Out<InterruptData>,
) -> NtResult {
    let made = check_config(context, device.0, config.0).and_then(|(config, chosen)| {
        let attributes = read_attributes(context, attributes.0);
        let associated = attributes
            .map(|attributes| attributes.parent_object)
            .filter(|parent| *parent != 0)
            .unwrap_or(device.0);
        if config.automatic_serialization == 0 && associated != device.0 {
            return Err(NtStatus::WDF_PARENT_ASSIGNMENT_NOT_ALLOWED);
        }
        let is_its = context.framework().exists(associated)
            && device_of(context, associated) == Some(device.0);
        if !is_its {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let is_serialized = config.automatic_serialization != 0;
        let is_passive = config.passive_handling != 0 || config.evt_interrupt_work_item != 0;
        let data = InterruptData {
            device: device.0,
            associated,
            config,
            serialization: serialization(context, associated, is_serialized, is_passive)?,
            line: None,
            chosen,
            is_connected: false,
            held: None,
            object: None,
        };
        create(context, data, attributes.as_ref(), Some(device.0))
    });
    give(context, made, interrupt.0)
}

/// Returns the address of a connected interrupt's `KINTERRUPT`, or null.
fn get_object(context: &Context, interrupt: Handle<InterruptData>) -> At<InterruptObject> {
    /// The size of the object. No header declares it.
    const SIZE: usize = 0x120;
    At::new(interrupt.with(context, |data| {
        if !data.is_connected {
            return 0;
        }
        let object = data.object.get_or_insert_with(|| Block::zeroed(SIZE));
        object.address()
    }))
}

fn check_config(
    context: &Context,
    device: u64,
    config: u64,
) -> Result<(InterruptConfig, Option<usize>), NtStatus> {
    let (is_function, is_prepared, is_started) = context.with::<DeviceData, _>(device, |device| {
        let is_function = !device.is_control() && device.init.child_of.is_none();
        (is_function, device.is_started, device.is_in_d0())
    });
    let config = read_config(context, config)?;
    if !is_function || is_started {
        return Err(NtStatus::INVALID_DEVICE_STATE);
    }
    let is_passive = config.passive_handling != 0;
    let is_valid = config.evt_interrupt_isr != 0
        && (config.evt_interrupt_dpc == 0 || config.evt_interrupt_work_item == 0)
        && (is_passive || config.wait_lock == 0)
        && (!is_passive || config.spin_lock == 0)
        && (is_passive || config.can_wake_device == 0)
        // The driver learns the resources, and whether they can wake the device, when it prepares the
        // hardware.
        && (is_prepared || config.can_wake_device == 0)
        && (is_prepared || config.interrupt_raw == 0 && config.interrupt_translated == 0);
    if !is_valid {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if is_prepared && (config.interrupt_raw == 0 || config.interrupt_translated == 0) {
        return Err(NtStatus::INVALID_DEVICE_STATE);
    }
    let chosen = if config.interrupt_translated == 0 {
        None
    } else {
        let place = place_of(context, device, config.interrupt_translated);
        Some(place.ok_or(NtStatus::INVALID_PARAMETER)?)
    };
    Ok((config, chosen))
}

fn get_device(context: &Context, interrupt: Handle<InterruptData>) -> Handle<DeviceData> {
    Handle::new(interrupt.with(context, |data| data.device))
}

fn get_info(context: &Context, interrupt: Handle<InterruptData>, info: At<InterruptInfo>) {
    /// The structure's size up to KMDF 1.7, without the processor group.
    const OLD: usize = 56;
    let size: u32 = context.read(info.0);
    let (line, irql) = interrupt.with(context, |data| (data.line, data.irql()));
    let length = size as usize;
    if length != size_of::<InterruptInfo>() && length != OLD {
        context.stop_for_size("WDF_INTERRUPT_INFO", size);
    }
    let mut filled: InterruptInfo = zerocopy::FromZeros::new_zeroed();
    filled.size = size;
    if let Some(line) = line {
        filled.target_processor_set = 1;
        filled.message_number = line.message;
        filled.vector = line.vector;
        filled.irql = irql.number();
        // LevelSensitive or Latched; active high or unknown polarity.
        filled.mode = u32::from(line.is_message);
        filled.message_signaled = u8::from(line.is_message);
        // CmResourceShareDeviceExclusive
        filled.share_disposition = 1;
    }
    let bytes = zerocopy::IntoBytes::as_bytes(&filled);
    let written = memory::write_bytes(info.0, bytes.get(..length).unwrap_or_default());
    context.checked(written);
}

fn queue_dpc_for_isr(context: &Context, interrupt: Handle<InterruptData>) -> bool {
    let has_dpc = interrupt.with(context, |data| data.config.evt_interrupt_dpc != 0);
    if !has_dpc {
        context.warn_of_misuse(|| "for an interrupt without EvtInterruptDpc".to_owned());
        return false;
    }
    queue_interrupt_dpc(context, interrupt.0)
}

fn queue_work_item_for_isr(context: &Context, interrupt: Handle<InterruptData>) -> bool {
    let has_item = interrupt.with(context, |data| data.config.evt_interrupt_work_item != 0);
    if !has_item {
        context.warn_of_misuse(|| "for an interrupt without EvtInterruptWorkItem".to_owned());
        return false;
    }
    queue_interrupt_work(context, interrupt.0)
}

fn run_synchronized(
    context: &Context,
    interrupt: Handle<InterruptData>,
    callback: Callback,
    argument: Memory,
) -> bool {
    interrupt.check(context);
    synchronize(context, interrupt.0, callback.0, argument.0)
}

fn acquire_lock(context: &Context, interrupt: Handle<InterruptData>) {
    acquire(context, interrupt.0);
}

fn release_lock(context: &Context, interrupt: Handle<InterruptData>) {
    release(context, interrupt.0);
}

fn try_to_acquire_lock(context: &Context, interrupt: Handle<InterruptData>) -> bool {
    try_acquire(context, interrupt.0)
}

/// Enables an interrupt that the driver has disabled. Normally, the framework enables interrupts.
fn enable_again(context: &Context, interrupt: Handle<InterruptData>) {
    let is_ready = interrupt.with(context, |data| data.line.is_some() && !data.is_connected);
    if is_ready {
        let _ = enable(context, interrupt.0);
    }
}

fn disable_now(context: &Context, interrupt: Handle<InterruptData>) {
    if interrupt.with(context, |data| data.is_connected) {
        disable(context, interrupt.0);
    }
}

/// Accepts a policy for choosing processors. The stand-in kernel does not choose.
fn set_policy(
    context: &Context,
    interrupt: Handle<InterruptData>,
    _policy: u32,
    _priority: u32,
    _processors: u64,
) {
    interrupt.check(context);
}

fn set_extended_policy(
    context: &Context,
    interrupt: Handle<InterruptData>,
    policy: At<InterruptPolicy>,
) {
    interrupt.check(context);
    let policy = policy.read(context);
    if policy.size as usize != size_of::<InterruptPolicy>() {
        context.stop_for_size("WDF_INTERRUPT_EXTENDED_POLICY", policy.size);
    }
}
