//! Security identifiers, access control lists and security descriptors in a driver's memory.

use crate::{ground::NtStatus, services::ntoskrnl::context::Context};

pub const INVALID_DESCRIPTOR: NtStatus = NtStatus::from_bits(0xC000_0079);

/// The maximum number of sub-authorities in an identifier.
pub const MAX_SUB_AUTHORITIES: u8 = 15;

/// Returns the bytes of an identifier, or `None` if it is invalid.
pub fn sid_bytes(context: &Context, sid: u64) -> Option<Vec<u8>> {
    let [revision, count]: [u8; 2] = context.read(sid);
    let is_valid = revision & 0xF == 1 && count <= MAX_SUB_AUTHORITIES;
    is_valid.then(|| context.read_bytes(sid, 8 + 4 * usize::from(count)))
}

/// Returns the bytes of an access control list, or `None` if it is invalid.
pub fn acl_bytes(context: &Context, acl: u64) -> Option<Vec<u8>> {
    let [revision, _]: [u8; 2] = context.read(acl);
    let size: u16 = context.read(acl.wrapping_add(2));
    let is_valid = (2..=4).contains(&revision) && size >= ACL_HEADER;
    is_valid.then(|| context.read_bytes(acl, usize::from(size)))
}

/// The size of an access control list's header.
pub const ACL_HEADER: u16 = 8;

/// The parts of a descriptor, by the index of their fields. The fields follow the first eight bytes
/// or, in a self-relative descriptor, the first four bytes.
pub const OWNER: usize = 0;

pub const GROUP: usize = 1;
pub const SACL: usize = 2;
pub const DACL: usize = 3;

/// The bits of a descriptor's control word.
pub const DACL_PRESENT: u16 = 0x4;

pub const SACL_PRESENT: u16 = 0x10;
pub const SELF_RELATIVE: u16 = 0x8000;

/// A descriptor.
pub struct Descriptor {
    pub control: u16,
    /// The addresses of the parts, or 0.
    pub parts: [u64; 4],
}

/// Returns a descriptor, or `None` if its revision is unknown.
pub fn descriptor(context: &Context, at: u64) -> Option<Descriptor> {
    let [revision, _]: [u8; 2] = context.read(at);
    let control: u16 = context.read(at.wrapping_add(2));
    let parts = if control & SELF_RELATIVE != 0 {
        let offsets: [u32; 4] = context.read(at.wrapping_add(4));
        offsets.map(|offset| match offset {
            0 => 0,
            offset => at.wrapping_add(u64::from(offset)),
        })
    } else {
        context.read(at.wrapping_add(8))
    };
    (revision == 1).then_some(Descriptor { control, parts })
}

/// Returns the bytes of a descriptor's parts, or `None` if a part is invalid.
pub fn parts(context: &Context, descriptor: &Descriptor) -> Option<[Vec<u8>; 4]> {
    let [owner, group, sacl, dacl] = descriptor.parts;
    let of = |at: u64, is_present: bool, read: fn(&Context, u64) -> Option<Vec<u8>>| {
        if at == 0 || !is_present { Some(Vec::new()) } else { read(context, at) }
    };
    let has = |bit: u16| descriptor.control & bit != 0;
    Some([
        of(owner, true, sid_bytes)?,
        of(group, true, sid_bytes)?,
        of(sacl, has(SACL_PRESENT), acl_bytes)?,
        of(dacl, has(DACL_PRESENT), acl_bytes)?,
    ])
}

pub const RELATIVE: usize = 20;

/// Returns a self-relative descriptor with these control bits and parts.
pub fn self_relative(control: u16, parts: &[Vec<u8>; 4]) -> Vec<u8> {
    let mut bytes = vec![1, 0];
    bytes.extend((control | SELF_RELATIVE).to_le_bytes());
    let mut data: Vec<u8> = Vec::new();
    let mut offsets = [0_u32; 4];
    // The order of the parts is as on Windows: the lists, then the owner and the group.
    for part in [SACL, DACL, OWNER, GROUP] {
        let (Some(part), Some(offset)) = (parts.get(part), offsets.get_mut(part)) else {
            continue;
        };
        if !part.is_empty() {
            *offset = u32::try_from(RELATIVE + data.len()).unwrap_or(0);
            data.extend(part);
            data.resize(data.len().next_multiple_of(4), 0);
        }
    }
    bytes.extend(offsets.into_iter().flat_map(u32::to_le_bytes));
    bytes.extend(data);
    bytes
}
