//! The names of accounts, by their security identifiers: those of Windows, and the user of test processes.
//! On Windows, `ksecdd.sys` exports these routines.

use super::token_objects::Token;
use crate::{
    execution::{
        routine::{At, routine},
        strings::read_unicode_string,
    },
    ground::{NtResult, NtStatus, abi::UnicodeString, opaque::Sid},
    services::ntoskrnl::{
        context::{Context, Entries},
        well_known,
    },
};

pub const ENTRIES: Entries = &[
    routine("SecLookupAccountName", sid_of_account),
    routine("SecLookupAccountSid", account_of_sid),
    routine("SecLookupWellKnownSid", sid_of_type),
];

/// `STATUS_NONE_MAPPED`.
const NONE_MAPPED: NtStatus = NtStatus::from_bits(0xC000_0073);

/// `SidTypeUser`, `SidTypeAlias` and `SidTypeWellKnownGroup`.
const USER: i32 = 1;
const ALIAS: i32 = 4;
const GROUP: i32 = 5;

/// The accounts of Windows: the authority, the sub-authorities, the domain, the name, and the
/// `WELL_KNOWN_SID_TYPE`.
const ACCOUNTS: [(u8, &[u32], &str, &str, i32); 19] = [
    (0, &[0], "", "NULL SID", 0),
    (1, &[0], "", "Everyone", 1),
    (2, &[0], "", "LOCAL", 2),
    (3, &[0], "", "CREATOR OWNER", 3),
    (3, &[1], "", "CREATOR GROUP", 4),
    (5, &[1], "NT AUTHORITY", "DIALUP", 8),
    (5, &[2], "NT AUTHORITY", "NETWORK", 9),
    (5, &[3], "NT AUTHORITY", "BATCH", 10),
    (5, &[4], "NT AUTHORITY", "INTERACTIVE", 11),
    (5, &[6], "NT AUTHORITY", "SERVICE", 12),
    (5, &[7], "NT AUTHORITY", "ANONYMOUS LOGON", 13),
    (5, &[10], "NT AUTHORITY", "SELF", 16),
    (5, &[11], "NT AUTHORITY", "Authenticated Users", 17),
    (5, &[18], "NT AUTHORITY", "SYSTEM", 22),
    (5, &[19], "NT AUTHORITY", "LOCAL SERVICE", 23),
    (5, &[20], "NT AUTHORITY", "NETWORK SERVICE", 24),
    (5, &[32, 544], "BUILTIN", "Administrators", 26),
    (5, &[32, 545], "BUILTIN", "Users", 27),
    (5, &[32, 546], "BUILTIN", "Guests", 28),
];

/// An account.
struct Account {
    sid: Vec<u8>,
    domain: &'static str,
    name: &'static str,
    kind: i32,
}

/// Returns all accounts. The last is the user of test processes.
fn accounts() -> impl Iterator<Item = Account> {
    // Any process that is not the system's.
    let user = Token::of_process(u32::MAX).user();
    let known = ACCOUNTS.iter().map(|(authority, parts, domain, name, _)| Account {
        sid: well_known::identifier(*authority, parts),
        domain,
        name,
        kind: if *domain == "BUILTIN" { ALIAS } else { GROUP },
    });
    known.chain([Account { sid: user, domain: "COMPUTER", name: "User", kind: USER }])
}

/// Returns the number of bytes of a text in UTF-16.
fn size_of_text(text: &str) -> u32 {
    u32::try_from(2 * text.encode_utf16().count()).unwrap_or(u32::MAX)
}

/// Stores a text in a string, whose buffer is large enough.
fn store(context: &Context, string: At<UnicodeString>, text: &str) {
    if string.is_null() {
        return;
    }
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut value = string.read(context);
    context.write_bytes(value.buffer, &bytes);
    value.length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    string.write(context, value);
}

/// Returns whether a text fits into a string. A null string takes any text.
fn fits(context: &Context, string: At<UnicodeString>, text: &str) -> bool {
    string.is_null() || u32::from(string.read(context).maximum_length) >= size_of_text(text)
}

fn account_of_sid(
    context: &Context,
    sid: At<Sid>,
    name_size: At<u32>,
    name: At<UnicodeString>,
    domain_size: At<u32>,
    domain: At<UnicodeString>,
    kind: At<i32>,
) -> NtResult {
    let [_, count]: [u8; 2] = context.read(sid.0);
    let bytes = context.bytes(sid.0, 8 + 4 * u64::from(count));
    let found = accounts().find(|one| one.sid == bytes).ok_or(NONE_MAPPED)?;
    name_size.write(context, size_of_text(found.name));
    domain_size.write_optional(context, size_of_text(found.domain));
    if name.is_null() || !fits(context, name, found.name) || !fits(context, domain, found.domain) {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    store(context, name, found.name);
    store(context, domain, found.domain);
    kind.write(context, found.kind);
    Ok(())
}

/// Finds an account by its name, which a domain and a backslash can precede.
fn sid_of_account(
    context: &Context,
    name: At<UnicodeString>,
    sid_size: At<u32>,
    sid: At<Sid>,
    kind: At<i32>,
    domain_size: At<u32>,
    domain: At<UnicodeString>,
) -> NtResult {
    let given = read_unicode_string(context, name.0);
    let (of, name) =
        given.rsplit_once('\\').map_or((None, given.as_str()), |(of, name)| (Some(of), name));
    let found = accounts().find(|one| {
        one.name.eq_ignore_ascii_case(name)
            && of.is_none_or(|of| of.eq_ignore_ascii_case(one.domain))
    });
    let found = found.ok_or(NONE_MAPPED)?;
    let room = sid_size.read(context);
    let size = u32::try_from(found.sid.len()).unwrap_or(u32::MAX);
    sid_size.write(context, size);
    domain_size.write_optional(context, size_of_text(found.domain));
    if sid.is_null() || room < size || !fits(context, domain, found.domain) {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(sid.0, &found.sid);
    store(context, domain, found.domain);
    kind.write(context, found.kind);
    Ok(())
}

fn sid_of_type(context: &Context, kind: i32, sid: At<Sid>, room: u32, size: At<u32>) -> NtResult {
    /// `WinAuthenticationFreshKeyAuthSid`, the last type.
    const LAST: i32 = 118;
    let found = ACCOUNTS.iter().find(|(.., number)| *number == kind);
    if found.is_none() && (0..=LAST).contains(&kind) {
        context.stop_for_unprovided(&format!("for the WELL_KNOWN_SID_TYPE {kind}"));
    }
    let (authority, parts, ..) = found.ok_or(NtStatus::INVALID_PARAMETER)?;
    let bytes = well_known::identifier(*authority, parts);
    let needed = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    size.write_optional(context, needed);
    if sid.is_null() || room < needed {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(sid.0, &bytes);
    Ok(())
}
