//! Access checks: the caller's security context, and access control lists.
//!
//! The system is an administrator. A test's process belongs to a local user who is not an
//! administrator.

use super::security_descriptors::{DACL, DACL_PRESENT, OWNER, descriptor, parts};
use crate::{
    execution::{
        identity::Identity,
        routine::{At, low_half, routine},
    },
    ground::{
        NtResult, NtStatus,
        opaque::{GenericMapping, SecurityDescriptor, SecuritySubjectContext},
    },
    services::{
        managers::tokens,
        ntoskrnl::{
            context::{Context, Entries},
            well_known,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("SeCaptureSubjectContext", capture),
    routine("SeLockSubjectContext", lock),
    routine("SeUnlockSubjectContext", lock),
    routine("SeReleaseSubjectContext", release),
    routine("SeAccessCheck", check),
];

/// The rights that represent other rights.
const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
const READ_CONTROL: u32 = 0x0002_0000;
const WRITE_DAC: u32 = 0x0004_0000;
/// The right that the holders of `SeTakeOwnershipPrivilege` have, such as the system.
const WRITE_OWNER: u32 = 0x0008_0000;
const ACCESS_SYSTEM_SECURITY: u32 = 0x0100_0000;

/// `STATUS_PRIVILEGE_NOT_HELD`.
const PRIVILEGE_NOT_HELD: NtStatus = NtStatus::from_bits(0xC000_0061);

/// The offsets of a token and the process id in a `SECURITY_SUBJECT_CONTEXT`.
const TOKEN: u64 = 16;
const PROCESS: u64 = 24;

/// Captures the caller as a `SECURITY_SUBJECT_CONTEXT`.
fn capture(context: &Context, at: At<SecuritySubjectContext>) {
    let process = context.identity().process;
    context.write(at.0, &[0, 0, tokens::of_process(process), u64::from(process)]);
}

const fn lock(_context: &Context, _at: At<SecuritySubjectContext>) {}

/// Releases a captured security context.
fn release(context: &Context, at: At<SecuritySubjectContext>) {
    context.write(at.0, &[0_u64; 4]);
}

/// Returns the security identifier of a process's user: the system's, or a local user's.
pub fn user_of(process: u32) -> Vec<u8> {
    let is_system = process == Identity::SYSTEM.process;
    well_known::identifier(5, if is_system { &[18] } else { &[21, 1, 2, 3, 1001] })
}

/// Returns the groups of a process, with their attributes. Administrators come first.
pub fn groups_of(process: u32) -> Vec<(Vec<u8>, u32)> {
    /// `SE_GROUP_MANDATORY`, `SE_GROUP_ENABLED_BY_DEFAULT` and `SE_GROUP_ENABLED`.
    const MANDATORY: u32 = 7;
    /// As above, but with `SE_GROUP_OWNER` instead of `SE_GROUP_MANDATORY`.
    const OWNER: u32 = 0xE;
    // The system belongs to the administrators; a user belongs to the users and to the interactive
    // users.
    let own: &[(&[u32], u32)] = if process == Identity::SYSTEM.process {
        &[(&[32, 544], OWNER)]
    } else {
        &[(&[32, 545], MANDATORY), (&[4], MANDATORY)]
    };
    let own = own.iter().map(|(parts, attributes)| (well_known::identifier(5, parts), *attributes));
    // All processes belong to everyone, the authenticated users, and the local users.
    let all = [(1, 0), (5, 11), (2, 0)];
    let all = all.map(|(authority, part)| (well_known::identifier(authority, &[part]), MANDATORY));
    own.chain(all).collect()
}

/// Returns the security identifiers of a process.
fn identifiers(process: u32) -> Vec<Vec<u8>> {
    let groups = groups_of(process).into_iter().map(|(identifier, _)| identifier);
    groups.chain([user_of(process)]).collect()
}

/// An entry of an access control list that allows or denies rights.
struct Entry<'a> {
    allows: bool,
    mask: u32,
    sid: &'a [u8],
}

/// Returns the entries of an access control list that allow or deny rights to the object itself.
fn entries(list: &[u8]) -> Vec<Entry<'_>> {
    const HEADER: usize = 8;
    const INHERIT_ONLY: u8 = 0x8;
    let mut all = Vec::new();
    let mut rest = list.get(HEADER..).unwrap_or_default();
    while let [kind, flags, low, high, ..] = *rest {
        let size = usize::from(u16::from_le_bytes([low, high]));
        let Some(entry) = rest.get(..size).filter(|_| size >= HEADER) else {
            break;
        };
        rest = rest.get(size..).unwrap_or_default();
        let (Some(mask), Some(sid)) = (entry.get(4..8), entry.get(HEADER..)) else {
            break;
        };
        let mask = mask.try_into().map_or(0, u32::from_le_bytes);
        if kind <= 1 && flags & INHERIT_ONLY == 0 {
            all.push(Entry { allows: kind == 0, mask, sid });
        }
    }
    all
}

/// Adds the specific rights that the generic rights in a mask represent.
fn mapped(mask: u32, mapping: [u32; 4]) -> u32 {
    let generic = [0x8000_0000, 0x4000_0000, 0x2000_0000, 0x1000_0000];
    let mut specific = mask & 0x0FFF_FFFF;
    for (bit, rights) in generic.into_iter().zip(mapping) {
        if mask & bit != 0 {
            specific |= rights;
        }
    }
    specific
}

/// Returns the rights among `wanted` that an access control list grants. Its entries are evaluated
/// in order. If there is no list, all rights are granted.
fn granted(list: Option<&[u8]>, wanted: u32, owner: bool, all: &[Vec<u8>], map: [u32; 4]) -> u32 {
    let mut allowed = if owner { READ_CONTROL | WRITE_DAC } else { 0 };
    let mut denied = 0;
    let Some(list) = list else {
        return if wanted & MAXIMUM_ALLOWED == 0 {
            wanted
        } else {
            wanted & !MAXIMUM_ALLOWED | mapped(0x1000_0000, map)
        };
    };
    for entry in entries(list) {
        // Other kinds of entries contain additional data after the identifier.
        if !all.iter().any(|one| entry.sid.starts_with(one)) {
            continue;
        }
        let mask = mapped(entry.mask, map);
        if entry.allows {
            allowed |= mask & !denied;
        } else {
            denied |= mask & !allowed;
        }
    }
    if wanted & MAXIMUM_ALLOWED == 0 { wanted & allowed } else { allowed }
}

fn check(
    context: &Context,
    at: At<SecurityDescriptor>,
    subject: At<SecuritySubjectContext>,
    _is_locked: bool,
    desired: u32,
    previous: u32,
    privileges: At<u64>,
    mapping: At<GenericMapping>,
    mode: i8,
    access: At<u32>,
    status: At<u32>,
) -> bool {
    let mapping: [u32; 4] = context.read(mapping.0);
    privileges.write_optional(context, 0);
    let desired = mapped(desired, mapping);
    let access_now = if mode == 0 {
        let all = if desired & MAXIMUM_ALLOWED == 0 { 0 } else { mapping[3] };
        Ok(desired & !MAXIMUM_ALLOWED | all | previous)
    } else if at.is_null() {
        Err(NtStatus::ACCESS_DENIED)
    } else {
        access_of(context, at.0, subject.0, [desired, previous], mapping)
    };
    access.write(context, access_now.unwrap_or(0));
    status.write(context, access_now.err().unwrap_or(NtStatus::SUCCESS).bits());
    access_now.is_ok()
}

/// Returns a program's access to an object with a security descriptor.
fn access_of(
    context: &Context,
    at: u64,
    subject: u64,
    [desired, previous]: [u32; 2],
    mapping: [u32; 4],
) -> NtResult<u32> {
    let token: u64 = context.read(subject.wrapping_add(TOKEN));
    if token == 0 {
        context.stop_for_misuse(
            "with a security context that neither SeCaptureSubjectContext nor the I/O manager filled in",
        );
    }
    let process = low_half(context.read(subject.wrapping_add(PROCESS)));
    let is_system = process == Identity::SYSTEM.process;
    let by_privilege = if is_system { WRITE_OWNER } else { 0 };
    if desired & ACCESS_SYSTEM_SECURITY != 0 && !is_system {
        return Err(PRIVILEGE_NOT_HELD);
    }
    let found = descriptor(context, at).ok_or(NtStatus::ACCESS_DENIED)?;
    let parts = parts(context, &found).ok_or(NtStatus::ACCESS_DENIED)?;
    let all = identifiers(process);
    let is_owner = parts.get(OWNER).is_some_and(|owner| all.contains(owner));
    let list = parts.get(DACL).filter(|list| found.control & DACL_PRESENT != 0 && !list.is_empty());
    let wanted = desired & !previous & !ACCESS_SYSTEM_SECURITY;
    let now =
        granted(list.map(Vec::as_slice), wanted, is_owner, &all, mapping) | wanted & by_privilege;
    let is_missing = if wanted & MAXIMUM_ALLOWED == 0 {
        wanted & !now != 0
    } else {
        now == 0 || wanted & !MAXIMUM_ALLOWED & !now != 0
    };
    if is_missing || (desired | previous) == 0 {
        return Err(NtStatus::ACCESS_DENIED);
    }
    Ok(now | previous | desired & ACCESS_SYSTEM_SECURITY)
}
