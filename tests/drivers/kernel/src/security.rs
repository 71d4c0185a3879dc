//! Security identifiers, access lists and security descriptors.

use crate::{
    call::{at, boolean, call, low, same},
    namespace::kind,
};

pub fn run() {
    same!(boolean(call!("SeSinglePrivilegeCheck", 20, 0)), true);
    same!(boolean(call!("SeSinglePrivilegeCheck", 20, 1)), true);
    let mut authority = [0_u8, 0, 0, 0, 0, 5];
    let mut sid = [0_u32; 4];
    same!(low(call!("RtlInitializeSid", at(&mut sid), at(&mut authority), 2)), 0);
    for (number, value) in [(0_u64, 32_u32), (1, 544)] {
        let place = call!("RtlSubAuthoritySid", at(&mut sid), number);
        // SAFETY: the identifier has two sub-authorities.
        unsafe { (place as *mut u32).write(value) };
    }
    same!(low(call!("RtlLengthSid", at(&mut sid))), 16);
    let mut acl = [0_u8; 40];
    same!(low(call!("RtlCreateAcl", at(&mut acl), 4, 2)), 0xC000_0023);
    same!(low(call!("RtlCreateAcl", at(&mut acl), 40, 2)), 0);
    let add = |acl: u64, sid: u64| low(call!("RtlAddAccessAllowedAce", acl, 2, 0x1F_01FF, sid));
    same!(add(at(&mut acl), at(&mut sid)), 0);
    same!(acl[..12] == [2, 0, 40, 0, 1, 0, 0, 0, 0, 0, 24, 0], true);
    same!(add(at(&mut acl), at(&mut sid)), 0xC000_0099);
    descriptors(at(&mut acl), at(&mut sid));
    token(call!("PsGetCurrentProcess"), true);
    let (current, mut handle) = ([u64::MAX, u64::MAX - 1], 0_u64);
    same!(low(call!("ZwOpenProcessTokenEx", current[0], 8, 0x200, at(&mut handle))), 0);
    same!(low(call!("ZwClose", handle)), 0);
    let opened = call!("ZwOpenThreadTokenEx", current[1], 8, 0, 0x200, at(&mut handle));
    same!(low(opened), 0xC000_007C);
    let (mut flags, mut level) = ([0_u8; 2], 0_u32);
    let (first, second) = (at(&mut flags), at(&mut flags) + 1);
    let thread = call!("KeGetCurrentThread");
    same!(call!("PsReferenceImpersonationToken", thread, first, second, at(&mut level)), 0);
}

/// Checks the primary token of a process: the system's, or another process's.
pub fn token(process: u64, is_system: bool) {
    /// `TokenUser`, `TokenGroups`, `TokenPrivileges`, `TokenType`, `TokenStatistics` and
    /// `TokenIntegrityLevel`.
    const CLASSES: [u64; 6] = [1, 2, 3, 8, 10, 25];
    let token = call!("PsReferencePrimaryToken", process);
    same!(boolean(call!("SeTokenIsAdmin", token)), is_system);
    same!(boolean(call!("SeTokenIsRestricted", token)), false);
    same!(low(call!("SeTokenType", token)), 1);
    let (mut session, mut logon) = (9_u32, 0_u64);
    same!(low(call!("SeQuerySessionIdToken", token, at(&mut session))), 0);
    same!(session == 0, is_system);
    same!(low(call!("SeQueryAuthenticationIdToken", token, at(&mut logon))), 0);
    same!(logon == 0x3E7, is_system);
    let query = |class: u64| {
        let mut found = 0_u64;
        (low(call!("SeQueryInformationToken", token, class, at(&mut found))), found)
    };
    same!(query(999).0, 0xC000_0003);
    let integrity = if is_system { 0x4000 } else { 0x2000 };
    same!(query(CLASSES[5]) == (0, integrity), true);
    let [user, groups, privileges, kind_of, statistics] =
        [0, 1, 2, 3, 4].map(|index: usize| query(CLASSES[index]).1);
    // SAFETY: the blocks contain the structures of their classes.
    let word = |at: u64| unsafe { (at as *const u64).read_unaligned() };
    same!(word(user) == user + 16 && word(user + 8) == 0, true);
    // The identifier is S-1-5-18, or S-1-5-21 with four more sub-authorities.
    let parts: u64 = if is_system { 1 } else { 5 };
    same!(word(user + 16), 1 | parts << 8 | 5 << 56);
    same!(word(user + 24) & 0xFFFF_FFFF, if is_system { 18 } else { 21 });
    let count = word(groups);
    same!(count, if is_system { 4 } else { 5 });
    same!(word(groups + 8), groups + 8 + 16 * count);
    same!(word(groups + 16), if is_system { 0xE } else { 7 });
    same!(word(statistics + 8), logon);
    same!(word(statistics + 40), count | word(privileges) << 32);
    same!(word(kind_of) & 0xFFFF_FFFF, 1);
    for block in [user, groups, privileges, kind_of, statistics] {
        call!("ExFreePool", block);
    }
    let (mut handle, mut buffer, mut needed) = (0_u64, [0_u64; 16], 0_u32);
    let its_kind = kind("SeTokenObjectType");
    let to = at(&mut handle);
    same!(low(call!("ObOpenObjectByPointer", token, 0x200, 0, 8, its_kind, 0, to)), 0);
    let mut by_handle = |class: u64, length: u64| {
        let (to, needed) = (at(&mut buffer), at(&mut needed));
        low(call!("ZwQueryInformationToken", handle, class, to, length, needed))
    };
    same!(by_handle(8, 3), 0xC000_0023);
    same!(by_handle(8, 4), 0);
    same!(by_handle(25, 128), 0);
    same!((buffer[1], needed) == (0x60, 28), true);
    same!(buffer[0], at(&mut buffer) + 16);
    same!(buffer[3] & 0xFFFF_FFFF, integrity);
    same!(low(call!("ZwClose", handle)), 0);
    call!("PsDereferencePrimaryToken", token);
}

fn descriptors(acl: u64, sid: u64) {
    let mut descriptor = [0xEE_u64; 5];
    let descriptor = at(&mut descriptor);
    same!(low(call!("RtlCreateSecurityDescriptor", descriptor, 2)), 0xC000_0058);
    same!(low(call!("RtlCreateSecurityDescriptor", descriptor, 1)), 0);
    same!(low(call!("RtlLengthSecurityDescriptor", descriptor)), 40);
    let (mut present, mut found, mut default) = (9_u8, 0_u64, 9_u8);
    let places = [at(&mut present), at(&mut found), at(&mut default)];
    let dacl = |of: u64| {
        let [present, found, default] = places;
        low(call!("RtlGetDaclSecurityDescriptor", of, present, found, default))
    };
    same!(dacl(descriptor), 0);
    same!(present, 0);
    same!(low(call!("RtlSetDaclSecurityDescriptor", descriptor, 1, acl, 0)), 0);
    same!(low(call!("RtlSetOwnerSecurityDescriptor", descriptor, sid, 1)), 0);
    same!(dacl(descriptor), 0);
    same!((present, found, default) == (1, acl, 0), true);
    same!(low(call!("RtlLengthSecurityDescriptor", descriptor)), 40 + 40 + 16);
    let mut relative = [0_u8; 80];
    let mut length = 10_u32;
    let convert = |to: u64, length: &mut u32| {
        low(call!("RtlAbsoluteToSelfRelativeSD", descriptor, to, at(length)))
    };
    same!(convert(at(&mut relative), &mut length), 0xC000_0023);
    same!(length, 76);
    same!(convert(at(&mut relative), &mut length), 0);
    same!(relative[..4] == [1, 0, 5, 0x80], true);
    let of = at(&mut relative);
    same!(boolean(call!("RtlValidSecurityDescriptor", of)), true);
    same!(low(call!("RtlLengthSecurityDescriptor", of)), 76);
    let (mut owner, mut default) = (0_u64, 0_u8);
    let status = call!("RtlGetOwnerSecurityDescriptor", of, at(&mut owner), at(&mut default));
    same!((low(status), owner, default) == (0, of + 60, 1), true);
    same!(low(call!("RtlSetOwnerSecurityDescriptor", of, sid, 0)), 0xC000_0079);
}
