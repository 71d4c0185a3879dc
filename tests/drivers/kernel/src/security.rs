//! Security identifiers, access lists and security descriptors.

use wdk_sys::{LUID, PVOID};

use crate::{
    call::{NULL, at, call, field, pointer, same},
    variables::object_type,
};

pub fn run() {
    /// `SeDebugPrivilege`.
    const DEBUG: LUID = LUID { LowPart: 20, HighPart: 0 };
    same!(call!(SeSinglePrivilegeCheck, DEBUG, 0), true);
    same!(call!(SeSinglePrivilegeCheck, DEBUG, 1), true);
    let mut authority = [0_u8, 0, 0, 0, 0, 5];
    let mut sid = [0_u32; 4];
    same!(call!(RtlInitializeSid, &mut sid, &mut authority, 2), 0);
    for (number, value) in [(0_u64, 32_u32), (1, 544)] {
        let place = call!(RtlSubAuthoritySid, &mut sid, number);
        // SAFETY: the identifier has two sub-authorities.
        unsafe { place.write(value) };
    }
    same!(call!(RtlLengthSid, &mut sid), 16);
    let mut acl = [0_u8; 40];
    same!(call!(RtlCreateAcl, &mut acl, 4, 2), 0xC000_0023_u32);
    same!(call!(RtlCreateAcl, &mut acl, 40, 2), 0);
    let add = |acl: PVOID, sid: PVOID| call!(RtlAddAccessAllowedAce, acl, 2, 0x1F_01FF, sid);
    same!(add(at(&mut acl), at(&mut sid)), 0);
    same!(acl[..12] == [2, 0, 40, 0, 1, 0, 0, 0, 0, 0, 24, 0], true);
    same!(add(at(&mut acl), at(&mut sid)), 0xC000_0099_u32);
    descriptors(at(&mut acl), at(&mut sid));
    token(call!(PsGetCurrentProcess).cast(), true);
    let (current, mut handle) = ([pointer(usize::MAX), pointer(usize::MAX - 1)], NULL);
    same!(call!(ZwOpenProcessTokenEx, current[0], 8, 0x200, &mut handle), 0);
    same!(call!(ZwClose, handle), 0);
    same!(call!(ZwOpenThreadTokenEx, current[1], 8, 0, 0x200, &mut handle), 0xC000_007C_u32);
    let (mut flags, mut level) = ([0_u8; 2], 0_u32);
    let (first, second) = {
        let [first, second] = &mut flags;
        (first, second)
    };
    let thread = call!(KeGetCurrentThread);
    same!(call!(PsReferenceImpersonationToken, thread, first, second, &mut level), 0);
}

/// Checks the primary token of a process: the system's, or another process's.
pub fn token(process: PVOID, is_system: bool) {
    /// `TokenUser`, `TokenGroups`, `TokenPrivileges`, `TokenType`, `TokenStatistics` and
    /// `TokenIntegrityLevel`.
    const CLASSES: [u64; 6] = [1, 2, 3, 8, 10, 25];
    let token = call!(PsReferencePrimaryToken, process);
    same!(call!(SeTokenIsAdmin, token), is_system);
    same!(call!(SeTokenIsRestricted, token), false);
    same!(call!(SeTokenType, token), 1);
    let (mut session, mut logon) = (9_u32, 0_u64);
    same!(call!(SeQuerySessionIdToken, token, &mut session), 0);
    same!(session == 0, is_system);
    same!(call!(SeQueryAuthenticationIdToken, token, &mut logon), 0);
    same!(logon == 0x3E7, is_system);
    let query = |class: u64| {
        let mut found = NULL;
        (call!(SeQueryInformationToken, token, class, &mut found), found)
    };
    same!(query(999).0, 0xC000_0003_u32);
    let integrity = if is_system { 0x4000 } else { 0x2000 };
    same!(query(CLASSES[5]) == (0, pointer(integrity)), true);
    let [user, groups, privileges, kind_of, statistics] =
        [0, 1, 2, 3, 4].map(|index: usize| query(CLASSES[index]).1);
    let word = |block: PVOID, offset: usize| field::<u64>(block, offset);
    same!(word(user, 0) == user as u64 + 16 && word(user, 8) == 0, true);
    // The identifier is S-1-5-18, or S-1-5-21 with four more sub-authorities.
    let parts: u64 = if is_system { 1 } else { 5 };
    same!(word(user, 16), 1 | parts << 8 | 5 << 56);
    same!(word(user, 24) & 0xFFFF_FFFF, if is_system { 18 } else { 21 });
    let count = word(groups, 0);
    same!(count, if is_system { 4 } else { 5 });
    same!(word(groups, 8), groups as u64 + 8 + 16 * count);
    same!(word(groups, 16), if is_system { 0xE } else { 7 });
    same!(word(statistics, 8), logon);
    same!(word(statistics, 40), count | word(privileges, 0) << 32);
    same!(word(kind_of, 0) & 0xFFFF_FFFF, 1);
    for block in [user, groups, privileges, kind_of, statistics] {
        call!(ExFreePool, block);
    }
    let (mut handle, mut buffer, mut needed) = (NULL, [0_u64; 16], 0_u32);
    let token_type = object_type("SeTokenObjectType");
    let to = at(&mut handle);
    same!(call!(ObOpenObjectByPointer, token, 0x200, NULL, 8, token_type, 0, to), 0);
    let mut by_handle = |class: u64, length: u64| {
        let (to, needed) = (at(&mut buffer), at(&mut needed));
        call!(ZwQueryInformationToken, handle, class, to, length, needed)
    };
    same!(by_handle(8, 3), 0xC000_0023_u32);
    same!(by_handle(8, 4), 0);
    same!(by_handle(25, 128), 0);
    same!((buffer[1], needed) == (0x60, 28), true);
    same!(buffer[0], at(&mut buffer) as u64 + 16);
    same!(buffer[3] & 0xFFFF_FFFF, integrity);
    same!(call!(ZwClose, handle), 0);
    call!(PsDereferencePrimaryToken, token);
}

fn descriptors(acl: PVOID, sid: PVOID) {
    let mut descriptor = [0xEE_u64; 5];
    let descriptor = at(&mut descriptor);
    same!(call!(RtlCreateSecurityDescriptor, descriptor, 2), 0xC000_0058_u32);
    same!(call!(RtlCreateSecurityDescriptor, descriptor, 1), 0);
    same!(call!(RtlLengthSecurityDescriptor, descriptor), 40);
    let (mut present, mut found, mut default) = (9_u8, NULL, 9_u8);
    let places = [at(&mut present), at(&mut found), at(&mut default)];
    let dacl = |of: PVOID| {
        let [present, found, default] = places;
        call!(RtlGetDaclSecurityDescriptor, of, present, found, default)
    };
    same!(dacl(descriptor), 0);
    same!(present, 0);
    same!(call!(RtlSetDaclSecurityDescriptor, descriptor, 1, acl, 0), 0);
    same!(call!(RtlSetOwnerSecurityDescriptor, descriptor, sid, 1), 0);
    same!(dacl(descriptor), 0);
    same!((present, found, default) == (1, acl, 0), true);
    same!(call!(RtlLengthSecurityDescriptor, descriptor), 40 + 40 + 16);
    let mut relative = [0_u8; 80];
    let mut length = 10_u32;
    let convert =
        |to: PVOID, length: &mut u32| call!(RtlAbsoluteToSelfRelativeSD, descriptor, to, length);
    same!(convert(at(&mut relative), &mut length), 0xC000_0023_u32);
    same!(length, 76);
    same!(convert(at(&mut relative), &mut length), 0);
    same!(relative[..4] == [1, 0, 5, 0x80], true);
    let of = at(&mut relative);
    same!(call!(RtlValidSecurityDescriptor, of), true);
    same!(call!(RtlLengthSecurityDescriptor, of), 76);
    let (mut owner, mut default) = (NULL, 0_u8);
    let status = call!(RtlGetOwnerSecurityDescriptor, of, &mut owner, &mut default);
    same!((status, owner, default) == (0, of.wrapping_byte_add(60), 1), true);
    same!(call!(RtlSetOwnerSecurityDescriptor, of, sid, 0), 0xC000_0079_u32);
}
