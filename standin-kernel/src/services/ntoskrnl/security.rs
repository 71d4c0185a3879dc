//! Security identifiers, access lists and security descriptors, and checks of privileges.
//!
//! A process of a test has the privileges that are enabled for every user: those to pass folders, to
//! impersonate, and to create global objects. The system has all.

use super::context::{Context, Entries};
use crate::{
    execution::{
        identity::Identity,
        routine::{Routine, low_byte, low_half},
    },
    ground::{irql::Irql, status::NtStatus},
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const APC: Irql = Irql::APC_LEVEL;
const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("SeSinglePrivilegeCheck", PASSIVE, Routine::Two(has_privilege)),
    ("RtlInitializeSid", APC, Routine::Three(initialize_sid)),
    ("RtlSubAuthoritySid", HIGH, Routine::Two(sub_authority)),
    ("RtlCreateAcl", APC, Routine::Three(create_acl)),
    ("RtlAddAccessAllowedAce", APC, Routine::Four(add_allowed)),
    ("RtlCreateSecurityDescriptor", APC, Routine::Two(create_descriptor)),
    ("RtlValidSecurityDescriptor", APC, Routine::One(is_valid_descriptor)),
    ("RtlLengthSecurityDescriptor", APC, Routine::One(length_of_descriptor)),
    ("RtlSetDaclSecurityDescriptor", APC, Routine::Four(set_dacl)),
    ("RtlSetOwnerSecurityDescriptor", APC, Routine::Three(set_sid::<OWNER>)),
    ("RtlSetGroupSecurityDescriptor", APC, Routine::Three(set_sid::<GROUP>)),
    ("RtlGetDaclSecurityDescriptor", APC, Routine::Four(get_acl::<DACL>)),
    ("RtlGetSaclSecurityDescriptor", APC, Routine::Four(get_acl::<SACL>)),
    ("RtlGetOwnerSecurityDescriptor", APC, Routine::Three(get_sid::<OWNER>)),
    ("RtlGetGroupSecurityDescriptor", APC, Routine::Three(get_sid::<GROUP>)),
    ("RtlAbsoluteToSelfRelativeSD", APC, Routine::Three(to_self_relative)),
];

/// Returns whether the caller has a privilege, which is a number.
fn has_privilege(context: &Context, privilege: u64, mode: u64) -> u64 {
    /// `SeChangeNotifyPrivilege`, `SeImpersonatePrivilege` and `SeCreateGlobalPrivilege`.
    const OF_ALL: [u64; 3] = [23, 29, 30];
    let is_kernel = low_byte(mode) == 0 || context.identity().process == Identity::SYSTEM.process;
    u64::from(is_kernel || OF_ALL.contains(&privilege))
}

/// `STATUS_UNKNOWN_REVISION`, `STATUS_REVISION_MISMATCH`, `STATUS_INVALID_SID`, `STATUS_INVALID_SECURITY_DESCR`,
/// `STATUS_ALLOTTED_SPACE_EXCEEDED`, `STATUS_BAD_DESCRIPTOR_FORMAT` and `STATUS_INVALID_ACL`.
const UNKNOWN_REVISION: NtStatus = NtStatus::from_bits(0xC000_0058);
const REVISION_MISMATCH: NtStatus = NtStatus::from_bits(0xC000_0059);
const INVALID_SID: NtStatus = NtStatus::from_bits(0xC000_0078);
pub const INVALID_DESCRIPTOR: NtStatus = NtStatus::from_bits(0xC000_0079);
const NO_SPACE: NtStatus = NtStatus::from_bits(0xC000_0099);
const BAD_FORMAT: NtStatus = NtStatus::from_bits(0xC000_00E7);
const INVALID_ACL: NtStatus = NtStatus::from_bits(0xC000_0077);

/// The most sub-authorities of an identifier.
const MOST_SUB_AUTHORITIES: u8 = 15;

fn initialize_sid(context: &Context, sid: u64, authority: u64, count: u64) -> u64 {
    let count = (count & 0xFF) as u8;
    if count > MOST_SUB_AUTHORITIES {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let authority: [u8; 6] = context.read(authority);
    context.write(sid, &[1, count]);
    context.write(sid.wrapping_add(2), &authority);
    NtStatus::SUCCESS.to_register()
}

/// Returns the address of a sub-authority.
const fn sub_authority(_context: &Context, sid: u64, number: u64) -> u64 {
    sid.wrapping_add(8).wrapping_add(4 * (number & 0xFFFF_FFFF))
}

/// Returns the bytes of an identifier, or `None` if it is not valid.
fn sid_bytes(context: &Context, sid: u64) -> Option<Vec<u8>> {
    let [revision, count]: [u8; 2] = context.read(sid);
    let is_valid = revision & 0xF == 1 && count <= MOST_SUB_AUTHORITIES;
    is_valid.then(|| context.read_bytes(sid, 8 + 4 * usize::from(count)))
}

/// Returns the bytes of an access list, or `None` if it is not valid.
fn acl_bytes(context: &Context, acl: u64) -> Option<Vec<u8>> {
    let [revision, _]: [u8; 2] = context.read(acl);
    let size: u16 = context.read(acl.wrapping_add(2));
    let is_valid = (2..=4).contains(&revision) && size >= ACL_HEADER;
    is_valid.then(|| context.read_bytes(acl, usize::from(size)))
}

/// The size of an access list's header.
const ACL_HEADER: u16 = 8;

fn create_acl(context: &Context, acl: u64, length: u64, revision: u64) -> u64 {
    let length = low_half(length);
    if length < u32::from(ACL_HEADER) {
        return NtStatus::BUFFER_TOO_SMALL.to_register();
    }
    let revision = low_half(revision);
    let Some(size) = u16::try_from(length).ok().filter(|_| (2..=4).contains(&revision)) else {
        return NtStatus::INVALID_PARAMETER.to_register();
    };
    context.write(acl, &[(revision & 0xFF) as u8, 0]);
    context.write(acl.wrapping_add(2), &[size & !3, 0, 0]);
    NtStatus::SUCCESS.to_register()
}

/// Appends an entry that allows an identifier an access.
fn add_allowed(context: &Context, acl: u64, revision: u64, mask: u64, sid: u64) -> u64 {
    /// The size of an entry before its identifier, and the offset of the number of entries.
    const ENTRY: usize = 8;
    const COUNT: u64 = 4;
    let Some(sid) = sid_bytes(context, sid) else {
        return INVALID_SID.to_register();
    };
    let Some(list) = acl_bytes(context, acl) else {
        return INVALID_ACL.to_register();
    };
    let of_list = list.first().copied().unwrap_or(0);
    let revision = low_half(revision);
    if !(2..=4).contains(&revision) || u32::from(of_list) > 4 {
        return REVISION_MISMATCH.to_register();
    }
    let count: u16 = context.read(acl.wrapping_add(COUNT));
    let field = |at: usize| {
        let pair = list.get(at..at + 2).unwrap_or(&[0, 0]);
        usize::from(u16::from_le_bytes([pair[0], pair[1]]))
    };
    let mut end = usize::from(ACL_HEADER);
    for _ in 0..count {
        let size = field(end + 2);
        if size < ENTRY || end + size > list.len() {
            return INVALID_ACL.to_register();
        }
        end += size;
    }
    let size = ENTRY + sid.len();
    let Some(size_field) = u16::try_from(size).ok().filter(|_| end + size <= list.len()) else {
        return NO_SPACE.to_register();
    };
    let mut entry = vec![0, 0];
    entry.extend(size_field.to_le_bytes());
    entry.extend(low_half(mask).to_le_bytes());
    entry.extend(sid);
    context.write_bytes(acl.wrapping_add(end as u64), &entry);
    let revision = of_list.max((revision & 0xFF) as u8);
    context.write(acl, &revision);
    context.write(acl.wrapping_add(COUNT), &count.wrapping_add(1));
    NtStatus::SUCCESS.to_register()
}

/// The parts of a descriptor, by their places after its first eight bytes, or after four in one that is
/// self-relative.
pub const OWNER: usize = 0;
pub const GROUP: usize = 1;
pub const SACL: usize = 2;
pub const DACL: usize = 3;

/// Bits of a descriptor's control word.
pub const DACL_PRESENT: u16 = 0x4;
pub const SACL_PRESENT: u16 = 0x10;
const SELF_RELATIVE: u16 = 0x8000;

/// Returns the bit of a part that is a default.
const fn defaulted(part: usize) -> u16 {
    match part {
        OWNER => 0x1,
        GROUP => 0x2,
        SACL => 0x20,
        _ => 0x8,
    }
}

/// A descriptor.
pub struct Descriptor {
    pub control: u16,
    /// The addresses of the parts, or 0.
    parts: [u64; 4],
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

fn create_descriptor(context: &Context, at: u64, revision: u64) -> u64 {
    if low_half(revision) != 1 {
        return UNKNOWN_REVISION.to_register();
    }
    context.write(at, &[1_u64, 0, 0, 0, 0]);
    NtStatus::SUCCESS.to_register()
}

/// Returns the bytes of a descriptor's parts, or `None` if one is not valid.
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

fn is_valid_descriptor(context: &Context, at: u64) -> u64 {
    let found = descriptor(context, at);
    u64::from(found.is_some_and(|one| parts(context, &one).is_some()))
}

/// The sizes of the two forms without their parts.
const ABSOLUTE: usize = 40;
const RELATIVE: usize = 20;

/// Returns the size of parts, each of which is padded to four bytes.
fn size_of_parts(parts: &[Vec<u8>; 4]) -> usize {
    parts.iter().map(|part| part.len().next_multiple_of(4)).sum()
}

fn length_of_descriptor(context: &Context, at: u64) -> u64 {
    let Some(found) = descriptor(context, at) else {
        return 0;
    };
    let header = if found.control & SELF_RELATIVE == 0 { ABSOLUTE } else { RELATIVE };
    let parts = parts(context, &found).unwrap_or_default();
    (header + size_of_parts(&parts)) as u64
}

/// Stores a part and the bits of the control word. Only an absolute descriptor can be changed.
fn set(context: &Context, at: u64, part: usize, address: u64, bits: [u16; 2]) -> NtStatus {
    let Some(found) = descriptor(context, at) else {
        return UNKNOWN_REVISION;
    };
    if found.control & SELF_RELATIVE != 0 {
        return INVALID_DESCRIPTOR;
    }
    let [cleared, now] = bits;
    let control = found.control & !cleared | now;
    context.write(at.wrapping_add(2), &control);
    context.write(at.wrapping_add(8 + 8 * part as u64), &address);
    NtStatus::SUCCESS
}

const fn bit_if(value: u64, bit: u16) -> u16 {
    if low_byte(value) == 0 { 0 } else { bit }
}

fn set_dacl(context: &Context, at: u64, present: u64, acl: u64, is_default: u64) -> u64 {
    let default = defaulted(DACL);
    if low_byte(present) == 0 {
        return set(context, at, DACL, 0, [DACL_PRESENT | default, 0]).to_register();
    }
    let now = DACL_PRESENT | bit_if(is_default, default);
    set(context, at, DACL, acl, [default, now]).to_register()
}

fn set_sid<const PART: usize>(context: &Context, at: u64, sid: u64, is_default: u64) -> u64 {
    let default = defaulted(PART);
    let now = bit_if(is_default, default);
    set(context, at, PART, sid, [default, now]).to_register()
}

fn get_sid<const PART: usize>(context: &Context, at: u64, sid: u64, is_default: u64) -> u64 {
    let Some(found) = descriptor(context, at) else {
        return UNKNOWN_REVISION.to_register();
    };
    context.write(sid, &found.parts[PART]);
    let default = u8::from(found.control & defaulted(PART) != 0);
    context.write(is_default, &default);
    NtStatus::SUCCESS.to_register()
}

fn get_acl<const PART: usize>(
    context: &Context,
    at: u64,
    present: u64,
    acl: u64,
    is_default: u64,
) -> u64 {
    let Some(found) = descriptor(context, at) else {
        return UNKNOWN_REVISION.to_register();
    };
    let bit = if PART == DACL { DACL_PRESENT } else { SACL_PRESENT };
    let is_present = found.control & bit != 0;
    context.write(present, &u8::from(is_present));
    if is_present {
        context.write(acl, &found.parts[PART]);
        let default = u8::from(found.control & defaulted(PART) != 0);
        context.write(is_default, &default);
    }
    NtStatus::SUCCESS.to_register()
}

/// Copies an absolute descriptor and its parts into one buffer.
fn to_self_relative(context: &Context, at: u64, to: u64, length: u64) -> u64 {
    let Some(found) = descriptor(context, at).filter(|one| one.control & SELF_RELATIVE == 0) else {
        return BAD_FORMAT.to_register();
    };
    let Some(parts) = parts(context, &found) else {
        return INVALID_DESCRIPTOR.to_register();
    };
    let bytes = self_relative(found.control, &parts);
    let room: u32 = context.read(length);
    context.write(length, &u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    if usize::try_from(room).unwrap_or(0) < bytes.len() {
        return NtStatus::BUFFER_TOO_SMALL.to_register();
    }
    context.write_bytes(to, &bytes);
    NtStatus::SUCCESS.to_register()
}

/// Returns a self-relative descriptor with these bits of the control word and these parts.
pub fn self_relative(control: u16, parts: &[Vec<u8>; 4]) -> Vec<u8> {
    let mut bytes = vec![1, 0];
    bytes.extend((control | SELF_RELATIVE).to_le_bytes());
    let mut data: Vec<u8> = Vec::new();
    let mut offsets = [0_u32; 4];
    // The parts' places are those of Windows: the lists, then the owner and the group.
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
