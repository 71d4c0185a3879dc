//! Common buffers: memory that a driver and its device share.

use super::{
    bus::{Bus, PAGE},
    enabler::EnablerData,
};
use crate::{
    ground::{NtResult, NtStatus, abi::CommonBufferConfig, arena::Block},
    services::kmdf::{
        lifetime::{create, read_attributes},
        state::framework::{Context, Data, ObjectRoutine},
    },
};

/// The maximum length of a common buffer.
const MAX_LENGTH: u64 = 1 << 30;

/// A common buffer.
pub struct CommonBufferData {
    /// The memory block. The buffer starts at its first page boundary.
    _block: Block,
    /// The driver's address and the device's address.
    pub address: u64,
    pub bus: u64,
    pub length: u64,
}

impl Data for CommonBufferData {
    const NAME: &'static str = "WDFCOMMONBUFFER";
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(unmap);
}

/// Returns the alignment in bytes that a configuration requests.
pub fn alignment_of(context: &Context, config: u64) -> NtResult<u64> {
    let config: CommonBufferConfig = context.read(config);
    if config.size as usize != size_of::<CommonBufferConfig>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    // The constants in the headers are one less than the alignment.
    let alignment = u64::from(config.alignment_requirement) + 1;
    if alignment.is_power_of_two() { Ok(alignment) } else { Err(NtStatus::INVALID_PARAMETER) }
}

/// Creates a common buffer of `length` bytes. Its addresses are aligned to at least the size of a
/// page.
pub fn make(
    context: &Context,
    enabler: u64,
    length: u64,
    alignment: u64,
    attributes: u64,
) -> NtResult<u64> {
    let is_system = context.with::<EnablerData, _>(enabler, |data| data.is_system());
    if length == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let attributes = read_attributes(context, attributes);
    if attributes.is_some_and(|attributes| attributes.parent_object != 0) {
        return Err(NtStatus::WDF_PARENT_ASSIGNMENT_NOT_ALLOWED);
    }
    let alignment = alignment.max(PAGE);
    if is_system || length > MAX_LENGTH || alignment > MAX_LENGTH {
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    let size = usize::try_from(length + alignment).map_err(|_| NtStatus::INTEGER_OVERFLOW)?;
    let block = Block::zeroed(size);
    let address = block.address().next_multiple_of(alignment);
    let bus = context
        .framework()
        .part::<Bus>()
        .map(address, length, alignment)
        .ok_or(NtStatus::INSUFFICIENT_RESOURCES)?;
    let data = CommonBufferData { _block: block, address, bus, length };
    create(context, data, attributes.as_ref(), Some(enabler))
        .inspect_err(|_| context.framework().part::<Bus>().unmap(bus))
}

fn unmap(context: &Context, buffer: u64) {
    let bus = context.with::<CommonBufferData, _>(buffer, |data| data.bus);
    context.framework().part::<Bus>().unmap(bus);
}
