//! The IRPs and MDLs of requests, for drivers that look below the framework.

use std::collections::HashMap;

use zerocopy::{FromZeros, IntoBytes};

use super::super::file_object;
use super::super::state::{
    device::device_of,
    device_object::own,
    framework::Context,
    request::{RequestData, RequestKind},
};
use crate::ground::{
    arena::Block,
    framework_abi::{Irp, Mdl, StackLocation},
    memory,
};

/// The stack locations of an IRP: the driver's, and the next lower one.
const LOCATIONS: usize = 2;

/// The IRP of a request, once a driver has asked for it, and the MDLs.
#[derive(Default)]
pub struct Blocks {
    irp: Option<Block>,
    mdls: Vec<(u64, Block)>,
}

/// The requests by their IRPs.
#[derive(Default)]
struct Irps(HashMap<u64, u64>);

/// Returns the request that an IRP belongs to.
pub fn request_of(context: &Context, irp: u64) -> Option<u64> {
    let request = context.framework().part::<Irps>().0.get(&irp).copied()?;
    context.framework().exists(request).then_some(request)
}

/// Forgets the IRP of a request that is being deleted.
pub fn forget_irp(context: &Context, request: u64) {
    let mut framework = context.framework();
    framework
        .part::<Irps>()
        .0
        .retain(|_, owner| *owner != request);
}

/// Writes to memory that the kernel allocated.
fn fill(address: u64, bytes: &[u8]) {
    let written = memory::write_bytes(address, bytes);
    debug_assert!(written.is_ok(), "the kernel's own memory is writable");
}

/// Returns the address of a request's IRP. It is created once.
pub fn irp_of(context: &Context, request: u64) -> u64 {
    let known = context.with::<RequestData, _>(request, |request| {
        let blocks = request.parts.get::<Blocks>();
        blocks.irp.as_ref().map(Block::address)
    });
    if let Some(known) = known {
        return known;
    }
    let device = device_of(context, request);
    let device = device.map_or(0, |device| own(context, device));
    let file = context.with::<RequestData, _>(request, |request| request.file);
    let file = file.map_or(0, |file| file_object::of_file(context, file));
    let block = Block::zeroed(size_of::<Irp>() + LOCATIONS * size_of::<StackLocation>());
    let address = block.address();
    let stack = address + size_of::<Irp>() as u64;
    let size = u16::try_from(size_of::<Irp>() + LOCATIONS * size_of::<StackLocation>());
    context.with::<RequestData, _>(request, |data| {
        let mut irp = Irp::new_zeroed();
        // IO_TYPE_IRP
        irp.kind = 6;
        irp.size = size.unwrap_or(u16::MAX);
        irp.io_status = [0, data.information];
        // UserMode, unless a driver sent the request.
        irp.requestor_mode = u8::from(data.is_from_user());
        irp.cancel = u8::from(data.cancelled);
        irp.stack_count = 2;
        let current = if data.is_created { 3 } else { 2 };
        irp.current_location = current;
        // Tail.Overlay.CurrentStackLocation
        let place = stack + (u64::from(current) - 1) * size_of::<StackLocation>() as u64;
        irp.tail[8] = place;
        if !data.is_created {
            let (input, output) = (data.input().0, data.output().0);
            if !data.is_neither {
                irp.associated_irp = data.buffer.address();
            }
            irp.user_buffer = output;
            let mut location = location_of(data, input);
            location.device_object = device;
            location.file_object = file;
            fill(place, location.as_bytes());
        }
        fill(address, irp.as_bytes());
        data.parts.get::<Blocks>().irp = Some(block);
    });
    context
        .framework()
        .part::<Irps>()
        .0
        .insert(address, request);
    address
}

/// Returns the stack location of a request that the driver received.
fn location_of(data: &RequestData, input: u64) -> StackLocation {
    let mut location = StackLocation::new_zeroed();
    let lengths = [data.output_length(), data.input_length()];
    let (major, parameters) = match data.kind {
        RequestKind::Create => (0, [0; 4]),
        RequestKind::Close => (2, [0; 4]),
        RequestKind::Read => (3, [lengths[0], 0, data.offset, 0]),
        RequestKind::Write => (4, [lengths[1], 0, data.offset, 0]),
        RequestKind::DeviceControl { code } => {
            let type_3 = if data.is_neither { input } else { 0 };
            (14, [lengths[0], lengths[1], u64::from(code), type_3])
        }
        RequestKind::InternalDeviceControl { code } => {
            let code = u64::from(code);
            let all = data.others.map_or_else(
                || [lengths[0], lengths[1], code, 0],
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

/// Returns the address of the IRP's `IoStatus.Information`, if the driver has asked for the IRP: there,
/// the driver may have set it.
pub fn information_address(request: &mut RequestData) -> Option<u64> {
    /// The offset of `IoStatus.Information` in an `IRP`.
    const INFORMATION: u64 = 56;
    let irp = request.parts.get::<Blocks>().irp.as_ref()?;
    Some(irp.address() + INFORMATION)
}

/// Returns the MDL of a buffer of a request. It is the same each time.
pub fn mdl_of(request: &mut RequestData, (start, length): (u64, u64)) -> u64 {
    /// `MDL_MAPPED_TO_SYSTEM_VA`, `MDL_PAGES_LOCKED` and `MDL_SOURCE_IS_NONPAGED_POOL`.
    const FLAGS: u16 = 7;
    const PAGE: u64 = 4096;
    let mdls = &mut request.parts.get::<Blocks>().mdls;
    if let Some((_, block)) = mdls.iter().find(|(known, _)| *known == start) {
        return block.address();
    }
    let offset = start % PAGE;
    let pages = (offset + length).div_ceil(PAGE);
    let size = size_of::<Mdl>() + 8 * usize::try_from(pages).unwrap_or(0);
    let block = Block::zeroed(size);
    let mut mdl = Mdl::new_zeroed();
    mdl.size = u16::try_from(size).unwrap_or(u16::MAX);
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
