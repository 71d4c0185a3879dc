//! The routine that asks for a property of a device.

use crate::{
    execution::routine::{Routine, low_half},
    ground::{irql::Irql, status::NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[("IoGetDeviceProperty", Irql::PASSIVE_LEVEL, Routine::Five(get))];

/// Stores a property of the device of a physical `DEVICE_OBJECT`, and its length.
fn get(
    context: &Context,
    physical: u64,
    property: u64,
    length: u64,
    buffer: u64,
    needed: u64,
) -> u64 {
    let found = context.devices().property(physical, low_half(property));
    let found = found.unwrap_or_else(|| {
        context.stop_for_misuse(&format!(
            "with 0x{physical:016X}, which is not the physical device object of a device"
        ))
    });
    let bytes = match found {
        Ok(bytes) => bytes,
        Err(status) => {
            context.write(needed, &0_u32);
            return status.to_register();
        }
    };
    context.write(needed, &u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    if (low_half(length) as usize) < bytes.len() {
        return NtStatus::BUFFER_TOO_SMALL.to_register();
    }
    context.write_bytes(buffer, &bytes);
    NtStatus::SUCCESS.to_register()
}
