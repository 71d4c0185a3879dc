//! Access checks: the caller's security context, and access control lists.

use super::{
    impersonation,
    security_descriptors::{DACL, DACL_PRESENT, OWNER, descriptor, parts},
    token_objects::{self, BAD_IMPERSONATION_LEVEL, IMPERSONATES, Token},
};
use crate::{
    execution::routine::{At, routine},
    ground::{
        NtResult, NtStatus,
        opaque::{GenericMapping, SecurityDescriptor, SecuritySubjectContext},
    },
    services::{
        managers::tokens,
        ntoskrnl::{
            context::{Context, Entries},
            ob::handles,
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
/// The right that the holders of `SeTakeOwnershipPrivilege` have.
const WRITE_OWNER: u32 = 0x0008_0000;
const ACCESS_SYSTEM_SECURITY: u32 = 0x0100_0000;

/// `STATUS_PRIVILEGE_NOT_HELD`.
const PRIVILEGE_NOT_HELD: NtStatus = NtStatus::from_bits(0xC000_0061);

/// Captures the caller as a `SECURITY_SUBJECT_CONTEXT`: the client's token and its impersonation level, if
/// the thread impersonates a client, the process's token, and the process's id.
fn capture(context: &Context, at: At<SecuritySubjectContext>) {
    let process = context.identity().process;
    let client = impersonation::current(context);
    if let Some(client) = client {
        handles::reference(context, At::new(client.token));
    }
    let (token, level) =
        client.map_or((0, 0), |client| (client.token, u64::from(client.level.unsigned_abs())));
    context.write(at.0, &[token, level, tokens::of_process(process), u64::from(process)]);
}

const fn lock(_context: &Context, _at: At<SecuritySubjectContext>) {}

/// Releases a captured security context.
fn release(context: &Context, at: At<SecuritySubjectContext>) {
    let client: u64 = context.read(at.0);
    if client != 0 {
        handles::dereference(context, At::new(client));
    }
    context.write(at.0, &[0_u64; 4]);
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

/// Returns the rights among `wanted` that an access control list grants to security identifiers, of which
/// some can only be denied access. Its entries are evaluated in order. If there is no list, all rights are
/// granted.
fn granted(
    list: Option<&[u8]>,
    wanted: u32,
    owner: bool,
    all: &[(Vec<u8>, bool)],
    map: [u32; 4],
) -> u32 {
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
        let is_meant = |(one, allows): &(Vec<u8>, bool)| {
            entry.sid.starts_with(one) && (*allows || !entry.allows)
        };
        if !all.iter().any(is_meant) {
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

/// Returns the rights that the restricting identifiers of a token have, which limit its access.
fn restricted_rights(token: &Token, of: impl Fn(&[(Vec<u8>, bool)]) -> u32) -> u32 {
    let Some(restricted) = &token.restricted else {
        return u32::MAX;
    };
    let all = restricted.iter().map(|(one, _)| (one.clone(), true));
    of(&all.collect::<Vec<_>>())
}

/// Returns a program's access to an object with a security descriptor.
fn access_of(
    context: &Context,
    at: u64,
    subject: u64,
    [desired, previous]: [u32; 2],
    mapping: [u32; 4],
) -> NtResult<u32> {
    /// `SeSecurityPrivilege` and `SeTakeOwnershipPrivilege`.
    const SECURITY: u64 = 8;
    const TAKE_OWNERSHIP: u64 = 9;
    let [client, level, primary, _]: [u64; 4] = context.read(subject);
    if primary == 0 {
        context.stop_for_misuse(
            "with a security context that neither SeCaptureSubjectContext nor the I/O manager filled in",
        );
    }
    let token = token_objects::at(context, if client == 0 { primary } else { client });
    if client != 0 && level & 0xFFFF_FFFF < IMPERSONATES.unsigned_abs().into() {
        return Err(BAD_IMPERSONATION_LEVEL);
    }
    let by_privilege = if token.has(TAKE_OWNERSHIP) { WRITE_OWNER } else { 0 };
    if desired & ACCESS_SYSTEM_SECURITY != 0 && !token.has(SECURITY) {
        return Err(PRIVILEGE_NOT_HELD);
    }
    let found = descriptor(context, at).ok_or(NtStatus::ACCESS_DENIED)?;
    let parts = parts(context, &found).ok_or(NtStatus::ACCESS_DENIED)?;
    let owns = |all: &[(Vec<u8>, bool)]| {
        let owner = parts.get(OWNER);
        all.iter().any(|(one, allows)| *allows && owner == Some(one))
    };
    let list = parts.get(DACL).filter(|list| found.control & DACL_PRESENT != 0 && !list.is_empty());
    let wanted = desired & !previous & !ACCESS_SYSTEM_SECURITY;
    let list = list.map(Vec::as_slice);
    let of = |all: &[(Vec<u8>, bool)]| granted(list, wanted, owns(all), all, mapping);
    let own = of(&token.identifiers());
    let now = own & restricted_rights(&token, of) | wanted & by_privilege;
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
