//! Memory objects: buffers with a handle.

use super::{
    driver::driver_of,
    io::request_routines::buffer_of,
    object::{create, give, read_attributes},
    state::{
        framework::{Context, Data, Entries},
        request::RequestData,
    },
};
use crate::{
    execution::routine::Routine,
    ground::{
        abi::ObjectAttributes, arena::Block, irql::Irql, memory, rule::Rule, status::NtStatus,
    },
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
        Self { address, size, block: None }
    }

    /// Returns the address and the size in bytes.
    pub const fn range(&self) -> (u64, u64) {
        (self.address, self.size)
    }

    /// Returns the address of `length` bytes at `offset`, if the memory has that many.
    pub fn part(&self, offset: u64, length: u64) -> Option<u64> {
        let end = offset.checked_add(length)?;
        // The address of memory that a driver provided is the driver's.
        (end <= self.size).then(|| self.address.wrapping_add(offset))
    }
}

impl Data for MemoryData {
    const NAME: &'static str = "WDFMEMORY";
}

pub const ENTRIES: Entries = &[
    ("WdfMemoryCreate", Routine::Seven(memory_create)),
    ("WdfMemoryCreatePreallocated", Routine::Five(memory_create_preallocated)),
    ("WdfLookasideListCreate", Routine::Seven(lookaside_create)),
    ("WdfMemoryCreateFromLookaside", Routine::Three(memory_create_from_lookaside)),
    ("WdfMemoryGetBuffer", Routine::Three(memory_get_buffer)),
    ("WdfMemoryAssignBuffer", Routine::Four(memory_assign_buffer)),
    ("WdfMemoryCopyToBuffer", Routine::Five(memory_copy_to)),
    ("WdfMemoryCopyFromBuffer", Routine::Five(memory_copy_from)),
    ("WdfRequestRetrieveInputMemory", Routine::Three(retrieve_input_memory)),
    ("WdfRequestRetrieveOutputMemory", Routine::Three(retrieve_output_memory)),
];

/// Creates a memory object, whose parent is the driver unless the attributes name another.
fn make(context: &Context, data: MemoryData, attributes: u64) -> Result<u64, NtStatus> {
    let attributes = read_attributes(context, attributes);
    let parent = driver_of(context);
    create(context, data, attributes.as_ref(), parent)
}

/// The most memory that one object has. A driver that asks for more gets what a kernel without so
/// much pool returns.
const MAX_SIZE: u64 = 1 << 30;

/// Allocates memory of a size that is not 0.
fn allocate(size: u64) -> Result<MemoryData, NtStatus> {
    if size == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let length = usize::try_from(size).ok().filter(|_| size <= MAX_SIZE);
    let length = length.ok_or(NtStatus::INSUFFICIENT_RESOURCES)?;
    let block = Block::try_zeroed(length).ok_or(NtStatus::INSUFFICIENT_RESOURCES)?;
    Ok(MemoryData { address: block.address(), size, block: Some(block) })
}

/// Creates a memory object with these bytes for a driver.
pub fn make_filled(context: &Context, bytes: &[u8], attributes: u64) -> Result<u64, NtStatus> {
    let data = allocate(bytes.len() as u64)?;
    context.write_bytes(data.address, bytes);
    make(context, data, attributes)
}

/// A lookaside list: memory objects of one size.
pub struct LookasideData {
    size: u64,
    /// The attributes of the memory objects.
    attributes: Option<ObjectAttributes>,
}

impl Data for LookasideData {
    const NAME: &'static str = "WDFLOOKASIDE";
}

fn lookaside_create(context: &Context, arguments: [u64; 7]) -> u64 {
    /// `PagedPool` and its variants have this bit.
    const PAGED: u64 = 1;
    let [_globals, attributes, size, pool, memory_attributes, _tag, lookaside] = arguments;
    let call = context.call();
    if pool & PAGED != 0 && call.irql > Irql::APC_LEVEL {
        context.stop(
            Rule::IrqlTooHigh,
            format!(
                "{} was called for paged pool at {} from {}; the highest IRQL for it is {}",
                call.name,
                call.irql,
                context.caller(),
                Irql::APC_LEVEL
            ),
        );
    }
    if size == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let data = LookasideData { size, attributes: read_attributes(context, memory_attributes) };
    let attributes = read_attributes(context, attributes);
    let parent = driver_of(context);
    let created = create(context, data, attributes.as_ref(), parent);
    give(context, created, lookaside)
}

fn memory_create_from_lookaside(
    context: &Context,
    _globals: u64,
    lookaside: u64,
    memory: u64,
) -> u64 {
    let (size, attributes) =
        context.with::<LookasideData, _>(lookaside, |list| (list.size, list.attributes));
    let parent = driver_of(context);
    let created =
        allocate(size).and_then(|data| create(context, data, attributes.as_ref(), parent));
    give(context, created, memory)
}

fn memory_create(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, attributes, _pool_type, _tag, size, handle, buffer] = arguments;
    let data = match allocate(size) {
        Ok(data) => data,
        Err(status) => return status.to_register(),
    };
    let address = data.address;
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
    part.map(|address| (address, count)).ok_or(NtStatus::BUFFER_TOO_SMALL)
}

fn copy(context: &Context, from: u64, to: u64, count: usize) {
    let copied = memory::read_bytes(from, count).and_then(|bytes| memory::write_bytes(to, &bytes));
    context.checked(copied);
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
