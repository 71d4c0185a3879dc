//! Memory objects: buffers with a handle.

use super::{
    driver::driver_of,
    io::request_routines::buffer_of,
    object::{create, read_attributes},
    state::{
        framework::{Context, Data, Entries},
        request::RequestData,
    },
};
use crate::{
    execution::routine::Routine,
    ground::{arena::Block, memory, status::NtStatus},
};

/// A memory object.
pub struct MemoryData {
    address: u64,
    size: u64,
    /// The memory, where the framework allocated it.
    block: Option<Block>,
}

impl MemoryData {
    /// Memory that belongs to the driver or to a request.
    pub const fn of_others(address: u64, size: u64) -> Self {
        Self {
            address,
            size,
            block: None,
        }
    }

    /// Returns the address of `length` bytes at `offset`, if the memory has that many.
    fn part(&self, offset: u64, length: u64) -> Option<u64> {
        let end = offset.checked_add(length)?;
        (end <= self.size).then(|| self.address + offset)
    }
}

impl Data for MemoryData {
    const NAME: &'static str = "WDFMEMORY";
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

/// Creates a memory object, whose parent is the driver unless the attributes name another.
fn make(context: &Context, data: MemoryData, attributes: u64) -> Result<u64, NtStatus> {
    let attributes = read_attributes(context, attributes);
    let parent = driver_of(context);
    create(context, data, attributes.as_ref(), parent)
}

fn memory_create(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, attributes, _pool_type, _tag, size, handle, buffer] = arguments;
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
    match make(context, data, attributes) {
        Ok(made) => {
            context.write(handle, &made);
            if buffer != 0 {
                context.write(buffer, &address);
            }
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn memory_create_preallocated(
    context: &Context,
    _globals: u64,
    attributes: u64,
    buffer: u64,
    size: u64,
    handle: u64,
) -> u64 {
    if buffer == 0 || size == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    match make(context, MemoryData::of_others(buffer, size), attributes) {
        Ok(made) => {
            context.write(handle, &made);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn memory_get_buffer(context: &Context, _globals: u64, handle: u64, size: u64) -> u64 {
    let (address, length) =
        context.with::<MemoryData, _>(handle, |memory| (memory.address, memory.size));
    if size != 0 {
        context.write(size, &length);
    }
    address
}

/// Replaces the buffer, which is possible only for memory that the driver provided.
fn memory_assign_buffer(
    context: &Context,
    _globals: u64,
    handle: u64,
    buffer: u64,
    size: u64,
) -> u64 {
    let status = context.with::<MemoryData, _>(handle, |memory| {
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

/// The range of a memory object that a copy reads or writes.
fn place_of_copy(
    context: &Context,
    handle: u64,
    offset: u64,
    length: u64,
) -> Result<(u64, usize), NtStatus> {
    let part = context.with::<MemoryData, _>(handle, |memory| memory.part(offset, length));
    let count = usize::try_from(length).map_err(|_| NtStatus::INTEGER_OVERFLOW)?;
    if count == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    part.map(|address| (address, count))
        .ok_or(NtStatus::BUFFER_TOO_SMALL)
}

fn copy(context: &Context, from: u64, to: u64, count: usize) {
    let copied = memory::read_bytes(from, count).and_then(|bytes| memory::write_bytes(to, &bytes));
    if let Err(error) = copied {
        context.stop_for_address(error);
    }
}

fn memory_copy_to(
    context: &Context,
    _globals: u64,
    handle: u64,
    offset: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    match place_of_copy(context, handle, offset, length) {
        Ok((from, count)) => {
            copy(context, from, buffer, count);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn memory_copy_from(
    context: &Context,
    _globals: u64,
    handle: u64,
    offset: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    match place_of_copy(context, handle, offset, length) {
        Ok((to, count)) => {
            copy(context, buffer, to, count);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn retrieve_input_memory(context: &Context, _globals: u64, request: u64, memory: u64) -> u64 {
    retrieve(context, request, memory, RequestData::input).to_register()
}

fn retrieve_output_memory(context: &Context, _globals: u64, request: u64, memory: u64) -> u64 {
    retrieve(context, request, memory, RequestData::output).to_register()
}

/// Returns the memory object for a request's buffer. It is the same object each time, and is
/// deleted with the request.
fn retrieve(
    context: &Context,
    request: u64,
    memory: u64,
    buffer: impl FnOnce(&RequestData) -> (u64, u64),
) -> NtStatus {
    let Some((address, size)) = buffer_of(context, request, buffer) else {
        return NtStatus::INVALID_DEVICE_REQUEST;
    };
    if size == 0 {
        return NtStatus::BUFFER_TOO_SMALL;
    }
    let children = context.framework().children::<MemoryData>(request);
    let known = children.into_iter().find(|child| {
        context
            .framework()
            .get::<MemoryData>(*child)
            .is_ok_and(|data| (data.address, data.size) == (address, size))
    });
    let handle = if let Some(handle) = known {
        handle
    } else {
        let data = MemoryData::of_others(address, size);
        match create(context, data, None, Some(request)) {
            Ok(handle) => handle,
            Err(status) => return status,
        }
    };
    context.write(memory, &handle);
    NtStatus::SUCCESS
}
