//! The routines for security descriptors, access lists and security identifiers.

use crate::{
    execution::routine::{Routine, low_byte, low_half},
    ground::{irql::Irql, status::NtStatus},
    services::ntoskrnl::{
        context::{Context, Entries},
        se::security_descriptors::{
            ACL_HEADER, DACL, DACL_PRESENT, GROUP, INVALID_DESCRIPTOR, MOST_SUB_AUTHORITIES, OWNER,
            RELATIVE, SACL, SACL_PRESENT, SELF_RELATIVE, acl_bytes, descriptor, parts,
            self_relative, sid_bytes,
        },
    },
};

const APC: Irql = Irql::APC_LEVEL;
const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
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

/// `STATUS_UNKNOWN_REVISION`, `STATUS_REVISION_MISMATCH`, `STATUS_INVALID_SID`, `STATUS_INVALID_SECURITY_DESCR`,
/// `STATUS_ALLOTTED_SPACE_EXCEEDED`, `STATUS_BAD_DESCRIPTOR_FORMAT` and `STATUS_INVALID_ACL`.
const UNKNOWN_REVISION: NtStatus = NtStatus::from_bits(0xC000_0058);

const REVISION_MISMATCH: NtStatus = NtStatus::from_bits(0xC000_0059);
const INVALID_SID: NtStatus = NtStatus::from_bits(0xC000_0078);
const NO_SPACE: NtStatus = NtStatus::from_bits(0xC000_0099);
const BAD_FORMAT: NtStatus = NtStatus::from_bits(0xC000_00E7);
const INVALID_ACL: NtStatus = NtStatus::from_bits(0xC000_0077);

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

/// Returns the bit of a part that is a default.
const fn defaulted(part: usize) -> u16 {
    match part {
        OWNER => 0x1,
        GROUP => 0x2,
        SACL => 0x20,
        _ => 0x8,
    }
}

fn create_descriptor(context: &Context, at: u64, revision: u64) -> u64 {
    if low_half(revision) != 1 {
        return UNKNOWN_REVISION.to_register();
    }
    context.write(at, &[1_u64, 0, 0, 0, 0]);
    NtStatus::SUCCESS.to_register()
}

fn is_valid_descriptor(context: &Context, at: u64) -> u64 {
    let found = descriptor(context, at);
    u64::from(found.is_some_and(|one| parts(context, &one).is_some()))
}

/// The sizes of the two forms without their parts.
const ABSOLUTE: usize = 40;

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
