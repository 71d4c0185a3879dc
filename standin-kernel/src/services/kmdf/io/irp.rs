//! The IRPs and MDLs of requests, for drivers that access them below the framework.

use std::collections::HashMap;

use zerocopy::{FromZeros, IntoBytes};

use crate::{
    ground::{
        abi::{Irp, IrpStack, Mdl},
        arena::Block,
        memory,
    },
    services::{
        kmdf::{
            file_object,
            state::{
                device::{DeviceData, device_of},
                device_object::own,
                framework::Context,
                request::{METHOD_BUFFERED, METHOD_MASK, METHOD_NEITHER, RequestData, RequestKind},
            },
        },
        managers::create_parameters::SecurityContext,
    },
};

/// The number of stack locations in an IRP: the driver's and the next lower driver's.
const LOCATIONS: usize = 2;

/// The indices in an IRP's tail of the thread, the current stack location and the file.
const THREAD: usize = 4;
const STACK: usize = 8;
const FILE: usize = 9;

/// `WdfDeviceIoDirect`.
const IO_DIRECT: u32 = 3;

/// A request's IRP (once a driver has requested it), its MDLs, and the security context of a create
/// request.
#[derive(Default)]
pub struct Blocks {
    irp: Option<Block>,
    mdls: Vec<(u64, Block)>,
    security: Option<SecurityContext>,
}

/// The requests, indexed by IRP address.
#[derive(Default)]
struct Irps(HashMap<u64, u64>);

/// Returns the request to which an IRP belongs.
pub fn request_of(context: &Context, irp: u64) -> Option<u64> {
    let request = context.framework().part::<Irps>().0.get(&irp).copied()?;
    context.framework().exists(request).then_some(request)
}

/// Removes the IRP of a request that is being deleted from the index.
pub fn forget_irp(context: &Context, request: u64) {
    let mut framework = context.framework();
    framework.part::<Irps>().0.retain(|_, owner| *owner != request);
}

/// Writes to memory that the kernel allocated.
fn fill(address: u64, bytes: &[u8]) {
    let written = memory::write_bytes(address, bytes);
    debug_assert!(written.is_ok(), "the kernel's own memory is writable");
}

/// Returns the address of a request's IRP, which is created on the first call.
pub fn irp_of(context: &Context, request: u64) -> u64 {
    let known = context.with::<RequestData, _>(request, |request| {
        let blocks = request.parts.get::<Blocks>();
        blocks.irp.as_ref().map(Block::address)
    });
    if let Some(known) = known {
        return known;
    }
    let device = device_of(context, request);
    let is_direct = device.is_some_and(|device| {
        context.with::<DeviceData, _>(device, |device| device.init.io_type == IO_DIRECT)
    });
    let device = device.map_or(0, |device| own(context, device));
    let file = context.with::<RequestData, _>(request, |request| request.file);
    let file = file.map_or(0, |file| file_object::of_file(context, file));
    let block = Block::zeroed(size_of::<Irp>() + LOCATIONS * size_of::<IrpStack>());
    let address = block.address();
    let stack = address + size_of::<Irp>() as u64;
    let size = u16::try_from(size_of::<Irp>() + LOCATIONS * size_of::<IrpStack>());
    context.with::<RequestData, _>(request, |data| {
        let mut irp = Irp::new_zeroed();
        // IO_TYPE_IRP
        irp.kind = 6;
        irp.size = size.unwrap_or(u16::MAX);
        irp.io_status.information = data.information;
        // The mode is UserMode, unless a driver sent the request.
        irp.requestor_mode = u8::from(data.is_from_user);
        irp.cancel = u8::from(data.cancelled);
        irp.stack_count = 2;
        let current = if data.is_created { 3 } else { 2 };
        irp.current_location = current;
        let place = stack + (u64::from(current) - 1) * size_of::<IrpStack>() as u64;
        irp.tail[STACK] = place;
        irp.tail[THREAD] = data.thread;
        irp.tail[FILE] = file;
        if !data.is_created {
            let buffers = buffers_of(data, is_direct);
            irp.associated_irp = buffers.system;
            irp.mdl_address = buffers.mdl;
            irp.user_buffer = buffers.user;
            let mut location = location_of(data);
            location.device_object = device;
            location.file_object = file;
            fill(place, location.as_bytes());
        }
        fill(address, irp.as_bytes());
        data.parts.get::<Blocks>().irp = Some(block);
    });
    context.framework().part::<Irps>().0.insert(address, request);
    address
}

/// The buffer addresses in an IRP.
struct Buffers {
    system: u64,
    mdl: u64,
    user: u64,
}

/// Returns the buffer addresses that the I/O manager would pass in the IRP of a received request.
/// `is_direct` states whether the device uses direct I/O for reads and writes.
fn buffers_of(data: &mut RequestData, is_direct: bool) -> Buffers {
    let (input, output) = (data.input(), data.output());
    let of_buffer = |(address, length): (u64, u64)| if length == 0 { 0 } else { address };
    let system = data.buffer.address();
    match data.kind {
        RequestKind::Read | RequestKind::Write => {
            let own = if data.kind == RequestKind::Read { output } else { input };
            let user = of_buffer(own);
            Buffers {
                system: if data.is_neither || is_direct { 0 } else { user },
                mdl: if is_direct && user != 0 { mdl_of(data, own) } else { 0 },
                user,
            }
        }
        RequestKind::DeviceControl { code } | RequestKind::InternalDeviceControl { code } => {
            let user = of_buffer(output);
            match code & METHOD_MASK {
                METHOD_BUFFERED => {
                    Buffers { system: of_buffer((system, input.1.max(output.1))), mdl: 0, user }
                }
                METHOD_NEITHER => Buffers { system: 0, mdl: 0, user },
                _ => Buffers {
                    system: of_buffer(input),
                    mdl: if user == 0 { 0 } else { mdl_of(data, output) },
                    user,
                },
            }
        }
        RequestKind::Create | RequestKind::Cleanup | RequestKind::Close => {
            Buffers { system: 0, mdl: 0, user: 0 }
        }
    }
}

/// Returns the words of a create request's parameters, including its security context.
pub fn create_words(data: &mut RequestData) -> [u64; 4] {
    let (given, process) = (data.create, data.process);
    let security = &mut data.parts.get::<Blocks>().security;
    security.get_or_insert_with(|| SecurityContext::new(given, process)).words()
}

/// Returns the stack location of a request that the driver received.
fn location_of(data: &mut RequestData) -> IrpStack {
    let mut location = IrpStack::new_zeroed();
    let lengths = [data.output_length(), data.input_length()];
    let (major, parameters) = match data.kind {
        RequestKind::Create => (0, create_words(data)),
        RequestKind::Close => (2, [0; 4]),
        RequestKind::Read => (3, [lengths[0], 0, data.offset, 0]),
        RequestKind::Write => (4, [lengths[1], 0, data.offset, 0]),
        RequestKind::DeviceControl { code } => {
            let code = u64::from(code);
            (14, [lengths[0], lengths[1], code, type_3_input(data)])
        }
        RequestKind::InternalDeviceControl { code } => {
            let code = u64::from(code);
            let all = data.others.map_or_else(
                || [lengths[0], lengths[1], code, type_3_input(data)],
                |[first, second, fourth]| [first, second, code, fourth],
            );
            (15, all)
        }
        RequestKind::Cleanup => (18, [0; 4]),
    };
    location.major_function = major;
    location.parameters = parameters;
    location
}

/// Returns the input address for `METHOD_NEITHER`, or 0 for other methods.
const fn type_3_input(data: &RequestData) -> u64 {
    let (address, length) = data.input();
    if data.is_neither && length > 0 { address } else { 0 }
}

/// Returns the address of the IRP's `IoStatus.Information`, if the driver has requested the IRP and
/// so may have set the field.
pub fn information_address(request: &mut RequestData) -> Option<u64> {
    /// The offset of `IoStatus.Information` in an `IRP`.
    const INFORMATION: u64 = 56;
    let irp = request.parts.get::<Blocks>().irp.as_ref()?;
    Some(irp.address() + INFORMATION)
}

/// Returns the MDL of a request's buffer. Every call returns the same MDL.
pub fn mdl_of(request: &mut RequestData, (start, length): (u64, u64)) -> u64 {
    /// `MDL_MAPPED_TO_SYSTEM_VA`, `MDL_PAGES_LOCKED` and `MDL_SOURCE_IS_NONPAGED_POOL`.
    const FLAGS: i16 = 7;
    const PAGE: u64 = 4096;
    let mdls = &mut request.parts.get::<Blocks>().mdls;
    if let Some((_, block)) = mdls.iter().find(|(known, _)| *known == start) {
        return block.address();
    }
    let offset = start % PAGE;
    let pages = offset.saturating_add(length).div_ceil(PAGE);
    let size = size_of::<Mdl>() + 8 * usize::try_from(pages).unwrap_or(0);
    let block = Block::zeroed(size);
    let mut mdl = Mdl::new_zeroed();
    mdl.size = i16::try_from(size).unwrap_or(i16::MAX);
    mdl.mdl_flags = FLAGS;
    mdl.mapped_system_va = start;
    mdl.start_va = start - offset;
    mdl.byte_count = u32::try_from(length).unwrap_or(u32::MAX);
    mdl.byte_offset = u32::try_from(offset).unwrap_or(0);
    fill(block.address(), mdl.as_bytes());
    let address = block.address();
    mdls.push((start, block));
    address
}
