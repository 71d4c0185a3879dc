//! The memory ranges in request formats.

use crate::{
    ground::{
        NtResult, NtStatus,
        abi::{Mdl, MemoryDescriptor, MemoryOffset},
    },
    services::kmdf::{
        lifetime::hold,
        object::memory::MemoryData,
        state::{framework::Context, outgoing::Buffer},
    },
};

/// Returns the range of a memory object for a request's format. A null handle denotes an empty
/// range.
pub fn of_memory(context: &Context, memory: u64, offset: u64) -> NtResult<Buffer> {
    if memory == 0 {
        return Ok(Buffer::default());
    }
    let (start, size) = context.with::<MemoryData, _>(memory, |memory| memory.range());
    if offset == 0 {
        return Ok(Buffer { address: start, length: size, memory: Some((memory, 0)) });
    }
    let part: MemoryOffset = context.read(offset);
    // A length of 0 means the rest of the memory.
    let rest = size.checked_sub(part.buffer_offset).ok_or(NtStatus::INTEGER_OVERFLOW)?;
    let length = match part.buffer_length {
        0 => rest,
        length if length <= rest => length,
        _ => return Err(NtStatus::INTEGER_OVERFLOW),
    };
    Ok(Buffer {
        address: start.wrapping_add(part.buffer_offset),
        length,
        memory: Some((memory, part.buffer_offset)),
    })
}

/// Returns the range of a `WDF_MEMORY_DESCRIPTOR`. A null pointer denotes an empty range.
pub fn of_descriptor(context: &Context, address: u64) -> NtResult<Buffer> {
    /// `WDF_MEMORY_DESCRIPTOR_TYPE`.
    const BUFFER: u32 = 1;
    const MDL: u32 = 2;
    const HANDLE: u32 = 3;
    if address == 0 {
        return Ok(Buffer::default());
    }
    let descriptor: MemoryDescriptor = context.read(address);
    let [first, second] = descriptor.u;
    let low = second & 0xFFFF_FFFF;
    match descriptor.kind {
        BUFFER | MDL | HANDLE if first == 0 => Err(NtStatus::INVALID_PARAMETER),
        BUFFER => Ok(Buffer { address: first, length: low, memory: None }),
        MDL => of_mdl(context, first, low),
        HANDLE => of_memory(context, first, second),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

/// Returns the range of an MDL, if the driver has mapped the MDL or the MDL's memory is non-paged
/// pool.
fn of_mdl(context: &Context, address: u64, length: u64) -> NtResult<Buffer> {
    /// `MDL_MAPPED_TO_SYSTEM_VA` and `MDL_SOURCE_IS_NONPAGED_POOL`.
    const MAPPED: i16 = 0x5;
    let mdl: Mdl = context.read(address);
    if mdl.mdl_flags & MAPPED == 0 {
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    let available = u64::from(mdl.byte_count);
    let length = if length == 0 { available } else { length };
    if length > available {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    Ok(Buffer { address: mdl.mapped_system_va, length, memory: None })
}

/// References the memory object of a range, while a request's format refers to it.
pub fn keep(context: &Context, buffer: &Buffer) {
    if let Some((memory, _)) = buffer.memory {
        hold(context, memory);
    }
}
