//! Memory objects: buffers with a handle.

use super::{
    Entries, Routine, driver, lock_framework,
    object::{self, Kind, create, read_attributes},
    request::{self, RequestData},
};
use crate::{
    memory,
    pool::Block,
    status::NtStatus,
    thread::{self, Thread},
};

/// A memory object.
pub struct MemoryData {
    address: u64,
    size: u64,
    /// The memory, where the framework allocated it.
    block: Option<Block>,
}

impl MemoryData {
    /// Memory that is another's: the driver's, or a request's.
    pub const fn of_others(address: u64, size: u64) -> Self {
        Self {
            address,
            size,
            block: None,
        }
    }

    /// The address of `length` bytes at `offset`, if there are so many.
    fn part(&self, offset: u64, length: u64) -> Option<u64> {
        let end = offset.checked_add(length)?;
        (end <= self.size).then(|| self.address + offset)
    }
}

pub const ENTRIES: Entries = &[
    ("WdfMemoryCreate", Routine::Seven(memory_create)),
    (
        "WdfMemoryCreatePreallocated",
        Routine::Five(memory_create_preallocated),
    ),
    ("WdfMemoryGetBuffer", Routine::Three(memory_get_buffer)),
    ("WdfMemoryAssignBuffer", Routine::Four(memory_assign_buffer)),
    ("WdfMemoryCopyToBuffer", Routine::Five(memory_copy_to)),
    ("WdfMemoryCopyFromBuffer", Routine::Five(memory_copy_from)),
    (
        "WdfRequestRetrieveInputMemory",
        Routine::Three(retrieve_input_memory),
    ),
    (
        "WdfRequestRetrieveOutputMemory",
        Routine::Three(retrieve_output_memory),
    ),
];

/// Makes a memory object, the driver's unless the attributes say otherwise.
fn make(thread: &Thread, data: MemoryData, attributes: u64) -> Result<u64, NtStatus> {
    let attributes = read_attributes(thread, attributes);
    let parent = driver::driver_of(thread);
    create(thread, Kind::Memory(data), attributes.as_ref(), parent)
}

extern "win64" fn memory_create(
    _globals: u64,
    attributes: u64,
    _pool_type: u64,
    _tag: u64,
    size: u64,
    handle: u64,
    buffer: u64,
) -> u64 {
    let thread = thread::current();
    let Some(length) = usize::try_from(size).ok().filter(|length| *length != 0) else {
        return NtStatus::INVALID_PARAMETER.to_register();
    };
    let block = Block::zeroed(length);
    let address = block.address();
    let data = MemoryData {
        address,
        size,
        block: Some(block),
    };
    match make(&thread, data, attributes) {
        Ok(made) => {
            thread.write(handle, &made);
            if buffer != 0 {
                thread.write(buffer, &address);
            }
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn memory_create_preallocated(
    _globals: u64,
    attributes: u64,
    buffer: u64,
    size: u64,
    handle: u64,
) -> u64 {
    let thread = thread::current();
    if buffer == 0 || size == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    match make(&thread, MemoryData::of_others(buffer, size), attributes) {
        Ok(made) => {
            thread.write(handle, &made);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn memory_get_buffer(_globals: u64, handle: u64, size: u64) -> u64 {
    let thread = thread::current();
    let (address, length) =
        thread.with::<MemoryData, _>(handle, |memory| (memory.address, memory.size));
    if size != 0 {
        thread.write(size, &length);
    }
    address
}

/// Only memory that the driver gave can be replaced.
extern "win64" fn memory_assign_buffer(_globals: u64, handle: u64, buffer: u64, size: u64) -> u64 {
    let thread = thread::current();
    let status = thread.with::<MemoryData, _>(handle, |memory| {
        if buffer == 0 || size == 0 {
            return NtStatus::INVALID_PARAMETER;
        }
        if memory.block.is_some() {
            return NtStatus::INVALID_DEVICE_REQUEST;
        }
        *memory = MemoryData::of_others(buffer, size);
        NtStatus::SUCCESS
    });
    status.to_register()
}

/// Where a copy to or from a memory object reads or writes in it.
fn place_of_copy(
    thread: &Thread,
    handle: u64,
    offset: u64,
    length: u64,
) -> Result<(u64, usize), NtStatus> {
    let part = thread.with::<MemoryData, _>(handle, |memory| memory.part(offset, length));
    let count = usize::try_from(length).map_err(|_| NtStatus::INTEGER_OVERFLOW)?;
    if count == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    part.map(|address| (address, count))
        .ok_or(NtStatus::BUFFER_TOO_SMALL)
}

fn copy(thread: &Thread, from: u64, to: u64, count: usize) {
    let copied = memory::read_bytes(from, count).and_then(|bytes| memory::write_bytes(to, &bytes));
    if let Err(error) = copied {
        thread.stop_for_address(error);
    }
}

extern "win64" fn memory_copy_to(
    _globals: u64,
    handle: u64,
    offset: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    let thread = thread::current();
    match place_of_copy(&thread, handle, offset, length) {
        Ok((from, count)) => {
            copy(&thread, from, buffer, count);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn memory_copy_from(
    _globals: u64,
    handle: u64,
    offset: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    let thread = thread::current();
    match place_of_copy(&thread, handle, offset, length) {
        Ok((to, count)) => {
            copy(&thread, buffer, to, count);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn retrieve_input_memory(_globals: u64, request: u64, memory: u64) -> u64 {
    retrieve(&thread::current(), request, memory, RequestData::input).to_register()
}

extern "win64" fn retrieve_output_memory(_globals: u64, request: u64, memory: u64) -> u64 {
    retrieve(&thread::current(), request, memory, RequestData::output).to_register()
}

/// Hands out a memory object for a buffer of a request's: the same one each time,
/// and gone with the request.
fn retrieve(
    thread: &Thread,
    request: u64,
    memory: u64,
    buffer: impl FnOnce(&RequestData) -> (u64, u64),
) -> NtStatus {
    let Some((address, size)) = request::buffer_of(thread, request, buffer) else {
        return NtStatus::INVALID_DEVICE_REQUEST;
    };
    if size == 0 {
        return NtStatus::BUFFER_TOO_SMALL;
    }
    let known = object::children::<MemoryData>(thread, request)
        .into_iter()
        .find(|child| {
            lock_framework(thread.shared())
                .get::<MemoryData>(*child)
                .is_ok_and(|data| (data.address, data.size) == (address, size))
        });
    let handle = if let Some(handle) = known {
        handle
    } else {
        let kind = Kind::Memory(MemoryData::of_others(address, size));
        match create(thread, kind, None, Some(request)) {
            Ok(handle) => handle,
            Err(status) => return status,
        }
    };
    thread.write(memory, &handle);
    NtStatus::SUCCESS
}
