//! The routine that queries a device property.

use crate::{
    execution::routine::{At, Memory, routine},
    ground::{NtResult, NtStatus, abi::DeviceObject},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[routine("IoGetDeviceProperty", get)];

/// Stores a property of the device with this physical `DEVICE_OBJECT`, and the property's length.
fn get(
    context: &Context,
    physical: At<DeviceObject>,
    property: u32,
    length: u32,
    buffer: Memory,
    needed: At<u32>,
) -> NtResult {
    let found = context.devices().property(physical.0, property);
    // Only physical device objects are accepted.
    let found = found.ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
    let size = found.as_ref().map_or(0, Vec::len);
    needed.write(context, u32::try_from(size).unwrap_or(u32::MAX));
    let bytes = found?;
    if (length as usize) < bytes.len() {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(buffer.0, &bytes);
    Ok(())
}
