//! Memory objects: buffers with a handle.

use crate::{
    execution::routine::{At, Handle, Memory, Out, routine},
    ground::{NtResult, NtStatus, abi::ObjectAttributes, arena::Block, irql::Irql, memory},
    services::kmdf::{
        binding::driver_of,
        lifetime::{create, create_from, give, read_attributes, validate},
        state::{
            framework::{BadHandle, Context, Data, Entries},
            request::RequestData,
        },
    },
};

/// A memory object.
pub struct MemoryData {
    address: u64,
    size: u64,
    /// The memory, if the framework allocated it.
    #[expect(dead_code, reason = "the memory lives as long as the object")]
    block: Option<Block>,
    /// Set if the driver can give the object another buffer.
    is_assignable: bool,
    /// Set if the framework created the object for a request's buffer.
    is_of_request: bool,
}

impl MemoryData {
    /// A buffer of a request.
    pub const fn of_request(address: u64, size: u64) -> Self {
        Self { address, size, block: None, is_assignable: false, is_of_request: true }
    }

    /// Returns whether the framework created the object for a request's buffer.
    pub const fn is_of_request(&self) -> bool {
        self.is_of_request
    }

    /// Returns the address and the size in bytes.
    pub const fn range(&self) -> (u64, u64) {
        (self.address, self.size)
    }

    /// Returns the address of `length` bytes at `offset`, if the memory is large enough.
    pub fn part(&self, offset: u64, length: u64) -> Option<u64> {
        let end = offset.checked_add(length)?;
        // The address may come from a driver, so the sum may wrap around.
        (end <= self.size).then(|| self.address.wrapping_add(offset))
    }
}

impl Data for MemoryData {
    const NAME: &'static str = "WDFMEMORY";
}

pub const ENTRIES: Entries = &[
    routine("WdfMemoryCreate", memory_create),
    routine("WdfMemoryCreatePreallocated", memory_create_preallocated),
    routine("WdfLookasideListCreate", lookaside_create),
    routine("WdfMemoryCreateFromLookaside", memory_create_from_lookaside),
    routine("WdfMemoryGetBuffer", memory_get_buffer),
    routine("WdfMemoryAssignBuffer", memory_assign_buffer),
    routine("WdfMemoryCopyToBuffer", memory_copy::<true>),
    routine("WdfMemoryCopyFromBuffer", memory_copy::<false>),
    routine("WdfRequestRetrieveInputMemory", retrieve_input_memory),
    routine("WdfRequestRetrieveOutputMemory", retrieve_output_memory),
];

/// Creates a memory object. Its parent is the driver unless the attributes specify another object.
fn make(context: &Context, data: MemoryData, attributes: u64) -> NtResult<u64> {
    create_from(context, data, attributes, driver_of(context))
}

/// The maximum size of a memory object. If a driver requests more, the call fails as on a kernel
/// without enough pool.
const MAX_SIZE: u64 = 1 << 30;

/// Allocates memory of a nonzero size.
fn allocate(size: u64) -> NtResult<MemoryData> {
    if size == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let length = usize::try_from(size).ok().filter(|_| size <= MAX_SIZE);
    let length = length.ok_or(NtStatus::INSUFFICIENT_RESOURCES)?;
    let block = Block::try_zeroed(length).ok_or(NtStatus::INSUFFICIENT_RESOURCES)?;
    let (address, block) = (block.address(), Some(block));
    Ok(MemoryData { address, size, block, is_assignable: false, is_of_request: false })
}

/// Creates a memory object that contains these bytes, for a driver.
pub fn make_filled(context: &Context, bytes: &[u8], attributes: u64) -> NtResult<u64> {
    let data = allocate(bytes.len() as u64)?;
    context.write_bytes(data.address, bytes);
    make(context, data, attributes)
}

/// A lookaside list: a source of memory objects of one size.
pub struct LookasideData {
    size: u64,
    /// The attributes of the memory objects.
    attributes: Option<ObjectAttributes>,
}

impl Data for LookasideData {
    const NAME: &'static str = "WDFLOOKASIDE";
}

fn lookaside_create(
    context: &Context,
    attributes: At<ObjectAttributes>,
    size: u64,
    pool: u32,
    memory_attributes: At<ObjectAttributes>,
    _tag: u32,
    lookaside: Out<LookasideData>,
) -> NtResult {
    /// `PagedPool` and its variants have this bit set.
    const PAGED: u32 = 1;
    if pool & PAGED != 0 {
        context.check_irql(Irql::APC_LEVEL, "for paged pool", "it");
    }
    if size == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let memory_attributes = read_attributes(context, memory_attributes.0);
    if let Some(attributes) = &memory_attributes {
        validate(context, attributes, MemoryData::CHOICES)?;
    }
    let data = LookasideData { size, attributes: memory_attributes };
    let created = create_from(context, data, attributes.0, driver_of(context));
    give(context, created, lookaside.0)
}

fn memory_create_from_lookaside(
    context: &Context,
    lookaside: Handle<LookasideData>,
    memory: Out<MemoryData>,
) -> NtResult {
    let (size, attributes) = lookaside.with(context, |list| (list.size, list.attributes));
    let parent = driver_of(context);
    let created =
        allocate(size).and_then(|data| create(context, data, attributes.as_ref(), parent));
    give(context, created, memory.0)
}

fn memory_create(
    context: &Context,
    attributes: At<ObjectAttributes>,
    _pool_type: u32,
    _tag: u32,
    size: u64,
    handle: Out<MemoryData>,
    buffer: At<u64>,
) -> NtResult {
    let data = allocate(size)?;
    let address = data.address;
    let made = make(context, data, attributes.0)?;
    context.write(handle.0, &made);
    context.write_optional(buffer.0, &address);
    Ok(())
}

fn memory_create_preallocated(
    context: &Context,
    attributes: At<ObjectAttributes>,
    buffer: Memory,
    size: u64,
    handle: Out<MemoryData>,
) -> NtResult {
    context.require(buffer.0);
    if size == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let data = MemoryData {
        address: buffer.0,
        size,
        block: None,
        is_assignable: true,
        is_of_request: false,
    };
    let made = make(context, data, attributes.0)?;
    context.write(handle.0, &made);
    Ok(())
}

fn memory_get_buffer(context: &Context, handle: Handle<MemoryData>, size: At<u64>) -> Memory {
    let (address, length) = handle.with(context, |memory| (memory.address, memory.size));
    context.write_optional(size.0, &length);
    At::new(address)
}

/// Replaces the buffer, unless the framework allocated it.
fn memory_assign_buffer(
    context: &Context,
    handle: Handle<MemoryData>,
    buffer: Memory,
    size: u64,
) -> NtStatus {
    if !handle.with(context, |memory| memory.is_assignable) {
        context.stop_for_handle(&BadHandle {
            handle: handle.0,
            expected: "WDFMEMORY of WdfMemoryCreatePreallocated",
            found: Some("WDFMEMORY with a buffer that the framework allocated"),
        });
    }
    context.require(buffer.0);
    if size == 0 {
        return NtStatus::INVALID_PARAMETER;
    }
    handle.with(context, |memory| (memory.address, memory.size) = (buffer.0, size));
    NtStatus::SUCCESS
}

/// Copies bytes between a memory object and a driver's buffer.
fn memory_copy<const TO_BUFFER: bool>(
    context: &Context,
    handle: Handle<MemoryData>,
    offset: u64,
    buffer: Memory,
    length: u64,
) -> NtResult {
    let part = context.with::<MemoryData, _>(handle.0, |memory| memory.part(offset, length));
    context.require(buffer.0);
    let count = usize::try_from(length).map_err(|_| NtStatus::INTEGER_OVERFLOW)?;
    if count == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    // The status for a source that is too short differs from the status for a destination that is
    // too short.
    let short = if TO_BUFFER { NtStatus::BUFFER_TOO_SMALL } else { NtStatus::INVALID_BUFFER_SIZE };
    let place = part.ok_or(short)?;
    let (from, to) = if TO_BUFFER { (place, buffer.0) } else { (buffer.0, place) };
    let copied = memory::read_bytes(from, count).and_then(|bytes| memory::write_bytes(to, &bytes));
    context.checked(copied);
    Ok(())
}

fn retrieve_input_memory(
    context: &Context,
    request: Handle<RequestData>,
    memory: Out<MemoryData>,
) -> NtResult {
    retrieve(context, request.0, memory.0, RequestData::provided_input)
}

fn retrieve_output_memory(
    context: &Context,
    request: Handle<RequestData>,
    memory: Out<MemoryData>,
) -> NtResult {
    retrieve(context, request.0, memory.0, RequestData::provided_output)
}

/// Returns the memory object for a request's buffer. Every call returns the same object. It is
/// deleted with the request.
fn retrieve(
    context: &Context,
    request: u64,
    memory: u64,
    buffer: impl FnOnce(&mut RequestData) -> NtResult<(u64, u64)>,
) -> NtResult {
    let (address, size) = context.with(request, buffer)?;
    let children = context.framework().children::<MemoryData>(request);
    let known = children.into_iter().find(|child| {
        context
            .is::<MemoryData>(*child, |data| data.is_of_request && data.range() == (address, size))
    });
    let handle = if let Some(handle) = known {
        handle
    } else {
        let data = MemoryData::of_request(address, size);
        create(context, data, None, Some(request))?
    };
    context.write(memory, &handle);
    Ok(())
}
