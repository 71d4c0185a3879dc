//! Routines for security descriptors, access control lists and security identifiers.

use crate::{
    execution::routine::{At, routine},
    ground::{
        NtResult, NtStatus,
        opaque::{Acl, SecurityDescriptor, Sid, SidIdentifierAuthority},
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        se::security_descriptors::{
            ACL_HEADER, DACL, DACL_PRESENT, GROUP, INVALID_DESCRIPTOR, MAX_SUB_AUTHORITIES, OWNER,
            RELATIVE, SACL, SACL_PRESENT, SELF_RELATIVE, acl_bytes, descriptor, parts,
            self_relative, sid_bytes,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("RtlInitializeSid", initialize_sid),
    routine("RtlSubAuthoritySid", sub_authority),
    routine("RtlCreateAcl", create_acl),
    routine("RtlAddAccessAllowedAce", add_allowed),
    routine("RtlCreateSecurityDescriptor", create_descriptor),
    routine("RtlValidSecurityDescriptor", is_valid_descriptor),
    routine("RtlLengthSecurityDescriptor", length_of_descriptor),
    routine("RtlSetDaclSecurityDescriptor", set_dacl),
    routine("RtlSetOwnerSecurityDescriptor", set_sid::<OWNER>),
    routine("RtlSetGroupSecurityDescriptor", set_sid::<GROUP>),
    routine("RtlGetDaclSecurityDescriptor", get_acl::<DACL>),
    routine("RtlGetSaclSecurityDescriptor", get_acl::<SACL>),
    routine("RtlGetOwnerSecurityDescriptor", get_sid::<OWNER>),
    routine("RtlGetGroupSecurityDescriptor", get_sid::<GROUP>),
    routine("RtlAbsoluteToSelfRelativeSD", to_self_relative),
];

/// `STATUS_UNKNOWN_REVISION`, `STATUS_REVISION_MISMATCH`, `STATUS_INVALID_SID`,
/// `STATUS_ALLOTTED_SPACE_EXCEEDED`, `STATUS_BAD_DESCRIPTOR_FORMAT` and `STATUS_INVALID_ACL`.
const UNKNOWN_REVISION: NtStatus = NtStatus::from_bits(0xC000_0058);
const REVISION_MISMATCH: NtStatus = NtStatus::from_bits(0xC000_0059);
const INVALID_SID: NtStatus = NtStatus::from_bits(0xC000_0078);
const NO_SPACE: NtStatus = NtStatus::from_bits(0xC000_0099);
const BAD_FORMAT: NtStatus = NtStatus::from_bits(0xC000_00E7);
const INVALID_ACL: NtStatus = NtStatus::from_bits(0xC000_0077);

fn initialize_sid(
    context: &Context,
    sid: At<Sid>,
    authority: At<SidIdentifierAuthority>,
    count: u8,
) -> NtResult {
    if count > MAX_SUB_AUTHORITIES {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let authority: [u8; 6] = context.read(authority.0);
    context.write(sid.0, &[1, count]);
    context.write(sid.0.wrapping_add(2), &authority);
    Ok(())
}

/// Returns the address of a sub-authority.
const fn sub_authority(_context: &Context, sid: At<Sid>, number: u32) -> At<u32> {
    At::new(sid.0.wrapping_add(8).wrapping_add(4 * number as u64))
}

fn create_acl(context: &Context, acl: At<Acl>, length: u32, revision: u32) -> NtResult {
    if length < u32::from(ACL_HEADER) {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    let size = u16::try_from(length).ok().filter(|_| (2..=4).contains(&revision));
    let size = size.ok_or(NtStatus::INVALID_PARAMETER)?;
    context.write(acl.0, &[(revision & 0xFF) as u8, 0]);
    context.write(acl.0.wrapping_add(2), &[size & !3, 0, 0]);
    Ok(())
}

/// Appends an access-allowed entry for a security identifier.
fn add_allowed(
    context: &Context,
    acl: At<Acl>,
    revision: u32,
    mask: u32,
    sid: At<Sid>,
) -> NtResult {
    /// The size of an entry before its identifier, and the offset of the entry count.
    const ENTRY: usize = 8;
    const COUNT: u64 = 4;
    let sid = sid_bytes(context, sid.0).ok_or(INVALID_SID)?;
    let list = acl_bytes(context, acl.0).ok_or(INVALID_ACL)?;
    let of_list = list.first().copied().unwrap_or(0);
    if !(2..=4).contains(&revision) || u32::from(of_list) > 4 {
        return Err(REVISION_MISMATCH);
    }
    let count: u16 = context.read(acl.0.wrapping_add(COUNT));
    let field = |at: usize| {
        let pair = list.get(at..at + 2).unwrap_or(&[0, 0]);
        usize::from(u16::from_le_bytes([pair[0], pair[1]]))
    };
    let mut end = usize::from(ACL_HEADER);
    for _ in 0..count {
        let size = field(end + 2);
        if size < ENTRY || end + size > list.len() {
            return Err(INVALID_ACL);
        }
        end += size;
    }
    let size = ENTRY + sid.len();
    let size_field = u16::try_from(size).ok().filter(|_| end + size <= list.len());
    let mut entry = vec![0, 0];
    entry.extend(size_field.ok_or(NO_SPACE)?.to_le_bytes());
    entry.extend(mask.to_le_bytes());
    entry.extend(sid);
    context.write_bytes(acl.0.wrapping_add(end as u64), &entry);
    let revision = of_list.max((revision & 0xFF) as u8);
    context.write(acl.0, &revision);
    context.write(acl.0.wrapping_add(COUNT), &count.wrapping_add(1));
    Ok(())
}

/// Returns the control bit that marks a part as defaulted.
const fn defaulted(part: usize) -> u16 {
    match part {
        OWNER => 0x1,
        GROUP => 0x2,
        SACL => 0x20,
        _ => 0x8,
    }
}

fn create_descriptor(context: &Context, at: At<SecurityDescriptor>, revision: u32) -> NtResult {
    if revision != 1 {
        return Err(UNKNOWN_REVISION);
    }
    context.write(at.0, &[1_u64, 0, 0, 0, 0]);
    Ok(())
}

fn is_valid_descriptor(context: &Context, at: At<SecurityDescriptor>) -> bool {
    let found = descriptor(context, at.0);
    found.is_some_and(|one| parts(context, &one).is_some())
}

/// The sizes of both descriptor forms, excluding the parts.
const ABSOLUTE: usize = 40;

/// Returns the total size of the parts, each padded to four bytes.
fn size_of_parts(parts: &[Vec<u8>; 4]) -> usize {
    parts.iter().map(|part| part.len().next_multiple_of(4)).sum()
}

fn length_of_descriptor(context: &Context, at: At<SecurityDescriptor>) -> u32 {
    let Some(found) = descriptor(context, at.0) else {
        return 0;
    };
    let header = if found.control & SELF_RELATIVE == 0 { ABSOLUTE } else { RELATIVE };
    let parts = parts(context, &found).unwrap_or_default();
    u32::try_from(header + size_of_parts(&parts)).unwrap_or(u32::MAX)
}

/// Stores a part and its control bits. Only an absolute descriptor can be changed.
fn set(context: &Context, at: u64, part: usize, address: u64, bits: [u16; 2]) -> NtResult {
    let found = descriptor(context, at).ok_or(UNKNOWN_REVISION)?;
    if found.control & SELF_RELATIVE != 0 {
        return Err(INVALID_DESCRIPTOR);
    }
    let [cleared, now] = bits;
    let control = found.control & !cleared | now;
    context.write(at.wrapping_add(2), &control);
    context.write(at.wrapping_add(8 + 8 * part as u64), &address);
    Ok(())
}

const fn bit_if(is_set: bool, bit: u16) -> u16 {
    if is_set { bit } else { 0 }
}

fn set_dacl(
    context: &Context,
    at: At<SecurityDescriptor>,
    present: bool,
    acl: At<Acl>,
    is_default: bool,
) -> NtResult {
    let default = defaulted(DACL);
    if !present {
        return set(context, at.0, DACL, 0, [DACL_PRESENT | default, 0]);
    }
    let now = DACL_PRESENT | bit_if(is_default, default);
    set(context, at.0, DACL, acl.0, [default, now])
}

fn set_sid<const PART: usize>(
    context: &Context,
    at: At<SecurityDescriptor>,
    sid: At<Sid>,
    is_default: bool,
) -> NtResult {
    let default = defaulted(PART);
    let now = bit_if(is_default, default);
    set(context, at.0, PART, sid.0, [default, now])
}

fn get_sid<const PART: usize>(
    context: &Context,
    at: At<SecurityDescriptor>,
    sid: At<u64>,
    is_default: At<u8>,
) -> NtResult {
    let found = descriptor(context, at.0).ok_or(UNKNOWN_REVISION)?;
    sid.write(context, found.parts[PART]);
    is_default.write(context, (found.control & defaulted(PART) != 0).into());
    Ok(())
}

fn get_acl<const PART: usize>(
    context: &Context,
    at: At<SecurityDescriptor>,
    present: At<u8>,
    acl: At<u64>,
    is_default: At<u8>,
) -> NtResult {
    let found = descriptor(context, at.0).ok_or(UNKNOWN_REVISION)?;
    let bit = if PART == DACL { DACL_PRESENT } else { SACL_PRESENT };
    let is_present = found.control & bit != 0;
    present.write(context, is_present.into());
    if is_present {
        acl.write(context, found.parts[PART]);
        is_default.write(context, (found.control & defaulted(PART) != 0).into());
    }
    Ok(())
}

/// Copies an absolute descriptor and its parts into one buffer.
fn to_self_relative(
    context: &Context,
    at: At<SecurityDescriptor>,
    destination: At<SecurityDescriptor>,
    length: At<u32>,
) -> NtResult {
    let found = descriptor(context, at.0).filter(|one| one.control & SELF_RELATIVE == 0);
    let found = found.ok_or(BAD_FORMAT)?;
    let parts = parts(context, &found).ok_or(INVALID_DESCRIPTOR)?;
    let bytes = self_relative(found.control, &parts);
    let room = length.read(context);
    length.write(context, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    if (room as usize) < bytes.len() {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(destination.0, &bytes);
    Ok(())
}
