//! Security identifiers, access lists and security descriptors.

use wdk_sys::{LUID, PVOID};

use crate::{
    call::{NULL, at, call, field, pointer, same},
    names::with_string,
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
    sessions();
    accounts(at(&mut sid));
    filters(at(&mut acl), at(&mut sid));
    clients();
}

/// The names of accounts.
fn accounts(admins: PVOID) {
    const TOO_SMALL: u32 = 0xC000_0023;
    let (mut name, mut domain) = ([0_u16; 16], [0_u16; 16]);
    let (mut name_size, mut domain_size, mut kind) = (0_u32, 0_u32, 0_u32);
    let mut of_name = [32 << 16, at(&mut name) as u64];
    let mut of_domain = [32 << 16, at(&mut domain) as u64];
    let mut look = |sid: PVOID, name: PVOID, domain: PVOID| {
        let sizes = (at(&mut name_size), at(&mut domain_size));
        let status = call!(SecLookupAccountSid, sid, sizes.0, name, sizes.1, domain, &mut kind);
        (status, field::<u32>(sizes.0, 0), field::<u32>(sizes.1, 0))
    };
    same!(look(admins, NULL, NULL) == (TOO_SMALL as i32, 28, 14), true);
    same!(look(admins, at(&mut of_name), at(&mut of_domain)) == (0, 28, 14), true);
    same!(kind, 4);
    same!(name[..14] == *b"Administrators".map(u16::from).as_slice(), true);
    same!(domain[..7] == *b"BUILTIN".map(u16::from).as_slice(), true);
    same!(of_name[0] & 0xFFFF, 28);
    let mut unknown = [1_u8, 1, 0, 0, 0, 0, 0, 5, 99, 0, 0, 0];
    let mut sizes = [0_u32; 2];
    let [first, second] = &mut sizes;
    let name = at(&mut of_name);
    let status = call!(SecLookupAccountSid, &mut unknown, first, name, second, NULL, &mut kind);
    same!(status, 0xC000_0073_u32);
    let (mut sid, mut sid_size) = ([0_u32; 4], 16_u32);
    let status = with_string(br"builtin\administrators", |name| {
        let domain = at(&mut of_domain);
        let (size, kind) = (&mut sid_size, &mut kind);
        let room = &mut domain_size;
        call!(SecLookupAccountName, name, size, at(&mut sid), kind, room, domain)
    });
    same!(status, 0);
    same!(call!(RtlEqualSid, &mut sid, admins), true);
    let mut size = 0_u32;
    same!(call!(SecLookupWellKnownSid, 26, &mut sid, 15, &mut size), TOO_SMALL);
    same!(size, 16);
    same!(call!(SecLookupWellKnownSid, 26, &mut sid, 16, &mut size), 0);
    same!(call!(RtlEqualSid, &mut sid, admins), true);
}

/// Logon sessions, whose ends a driver can ask for.
fn sessions() {
    const unsafe extern "C" fn terminated(_id: *mut LUID) -> wdk_sys::NTSTATUS {
        0
    }
    let (mut system, mut unknown) = (0x3E7_u64, 0x1234_5678_u64);
    same!(call!(SeMarkLogonSessionForTerminationNotification, &mut system), 0);
    same!(call!(SeMarkLogonSessionForTerminationNotification, &mut unknown), 0xC000_0225_u32);
    same!(call!(SeRegisterLogonSessionTerminatedRoutine, Some(terminated)), 0);
    same!(call!(SeUnregisterLogonSessionTerminatedRoutine, Some(terminated)), 0);
    same!(call!(SeUnregisterLogonSessionTerminatedRoutine, Some(terminated)), 0xC000_0225_u32);
}

/// Returns the access of a program with the caller's token to an object whose list gives administrators all
/// rights.
fn access_of(acl: PVOID) -> (bool, u32) {
    let (mut descriptor, mut subject) = ([0_u64; 5], [0_u64; 4]);
    let mut mapping = [1_u32, 2, 4, 0x1F_01FF];
    let (mut access, mut status) = (0_u32, 0_u32);
    same!(call!(RtlCreateSecurityDescriptor, &mut descriptor, 1), 0);
    same!(call!(RtlSetDaclSecurityDescriptor, &mut descriptor, 1, acl, 0), 0);
    call!(SeCaptureSubjectContext, &mut subject);
    let is_granted = call!(
        SeAccessCheck, &mut descriptor, &mut subject, 0, 2, 0, NULL, &mut mapping, 1, &mut access,
        &mut status
    );
    call!(SeReleaseSubjectContext, &mut subject);
    (is_granted != 0, status)
}

/// Tokens without some of the rights of the system's, and a thread that acts with them.
fn filters(acl: PVOID, admins: PVOID) {
    const DENIED: u32 = 0xC000_0022;
    let (token, thread) =
        (call!(PsReferencePrimaryToken, call!(PsGetCurrentProcess)), call!(KeGetCurrentThread));
    let mut filtered = NULL;
    let filter = |flags: u32, disabled: PVOID, restricted: PVOID, to: PVOID| {
        call!(SeFilterToken, token, flags, disabled, NULL, restricted, to)
    };
    same!(filter(0x10, NULL, NULL, at(&mut filtered)), 0xC000_000D_u32);
    // The attributes of the identifiers that restrict must be 0, and those of the others do not matter.
    let mut marked = [1_u64, admins as u64, 4];
    same!(filter(0, NULL, at(&mut marked), at(&mut filtered)), 0xC000_000D_u32);
    same!(filter(1, at(&mut marked), NULL, at(&mut filtered)), 0);
    same!(call!(SeTokenIsAdmin, filtered), false);
    same!(call!(SeTokenIsRestricted, filtered), false);
    same!(call!(SeTokenType, filtered), 1);
    let mut found = NULL;
    same!(call!(SeQueryInformationToken, filtered, 3, &mut found), 0);
    // SeChangeNotifyPrivilege is left.
    same!(field::<u64>(found, 0), 1_u64 | 23 << 32);
    call!(ExFreePool, found);
    same!(call!(SeQueryInformationToken, filtered, 2, &mut found), 0);
    // SE_GROUP_OWNER and SE_GROUP_USE_FOR_DENY_ONLY.
    same!(field::<u64>(found, 16), 0x18);
    call!(ExFreePool, found);
    same!(access_of(acl) == (true, 0), true);
    same!(call!(PsImpersonateClient, thread, filtered, 1, 0, 2), 0);
    same!(access_of(acl) == (false, DENIED), true);
    call!(PsRevertToSelf);
    same!(access_of(acl) == (true, 0), true);
    call!(ObfDereferenceObject, filtered);
    // Identifiers that restrict a token limit what its groups allow.
    let mut everyone = [1_u8, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let mut groups = [1_u64, at(&mut everyone) as u64, 0];
    same!(filter(0, NULL, at(&mut groups), at(&mut filtered)), 0);
    same!(call!(SeTokenIsAdmin, filtered), true);
    same!(call!(SeTokenIsRestricted, filtered), true);
    same!(call!(PsImpersonateClient, thread, filtered, 1, 0, 2), 0);
    same!(access_of(acl) == (false, DENIED), true);
    // Only what restricts a token can restrict one that is made from it.
    let (mut twice, mut of_admins) = (NULL, [1_u64, admins as u64, 0]);
    let (given, to) = (at(&mut of_admins), at(&mut twice));
    same!(call!(SeFilterToken, filtered, 0, NULL, NULL, given, to), 0);
    same!(call!(SeTokenIsRestricted, twice), true);
    same!(call!(SeQueryInformationToken, twice, 11, &mut found), 0);
    same!(field::<u32>(found, 0), 0);
    call!(ExFreePool, found);
    call!(ObfDereferenceObject, twice);
    let mut state = [0_u64; 2];
    same!(call!(PsDisableImpersonation, thread, &mut state), true);
    same!(access_of(acl) == (true, 0), true);
    call!(PsRestoreImpersonation, thread, &mut state);
    same!(access_of(acl) == (false, DENIED), true);
    same!(call!(PsImpersonateClient, thread, NULL, 0, 0, 0), 0);
    call!(ObfDereferenceObject, filtered);
    levels(acl, token);
    call!(PsDereferencePrimaryToken, token);
}

/// The impersonation level limits a thread's use of its client.
fn levels(acl: PVOID, token: PVOID) {
    const DEBUG: LUID = LUID { LowPart: 20, HighPart: 0 };
    let (thread, current) = (call!(KeGetCurrentThread), pointer(usize::MAX - 1));
    let impersonate = |level: u32| call!(PsImpersonateClient, thread, token, 1, 0, level);
    let (mut handle, mut kind, mut needed) = (NULL, 0_u32, 0_u32);
    same!(impersonate(0), 0);
    let to = at(&mut handle);
    same!(call!(ZwOpenThreadTokenEx, current, 8, 0, 0x200, to), 0xC000_00A6_u32);
    same!(impersonate(1), 0);
    same!(access_of(acl) == (false, 0xC000_00A5), true);
    same!(call!(SeSinglePrivilegeCheck, DEBUG, 1), false);
    same!(impersonate(2), 0);
    same!(access_of(acl) == (true, 0), true);
    same!(call!(SeSinglePrivilegeCheck, DEBUG, 1), true);
    // A token that is copied when it is opened is one for impersonation.
    same!(call!(ZwOpenThreadTokenEx, current, 8, 0, 0x200, to), 0);
    same!(call!(ZwQueryInformationToken, handle, 8, &mut kind, 4, &mut needed), 0);
    same!(kind, 2);
    same!(call!(ZwClose, handle), 0);
    call!(PsRevertToSelf);
}

/// The security context of a client, with which a thread impersonates the client.
fn clients() {
    let thread = call!(KeGetCurrentThread);
    let (mut client, mut handle) = ([0_u64; 9], NULL);
    // SecurityIdentification, tracked statically.
    let mut quality = [12_u32, 1, 0];
    same!(call!(SeCreateClientSecurity, thread, &mut quality, 0, &mut client), 0);
    let copy: PVOID = pointer(client[2] as usize);
    same!((client[0], client[3] & 0xFF_FFFF) == (0xC | 1 << 32, 0), true);
    same!(call!(SeTokenType, copy), 2);
    same!(call!(SeImpersonateClientEx, &mut client, NULL), 0);
    let current = pointer(usize::MAX - 1);
    same!(call!(ZwOpenThreadTokenEx, current, 8, 0, 0x200, &mut handle), 0);
    let (mut level, mut needed) = (9_u32, 0_u32);
    same!(call!(ZwQueryInformationToken, handle, 9, &mut level, 4, &mut needed), 0);
    same!(level, 1);
    // A token that only identifies a client cannot become a primary token, and its level cannot rise.
    let mut second = NULL;
    same!(call!(ZwDuplicateToken, handle, 0, NULL, 0, 1, &mut second), 0xC000_00A5_u32);
    same!(call!(ZwDuplicateToken, handle, 0, NULL, 0, 2, &mut second), 0);
    same!(call!(ZwClose, second), 0);
    same!(call!(ZwClose, handle), 0);
    // A server cannot pass on a client that it can only identify.
    let mut other = [0_u64; 9];
    let status = call!(SeCreateClientSecurity, thread, &mut quality, 0, &mut other);
    same!(status, 0xC000_00A5_u32);
    call!(PsRevertToSelf);
    call!(ObfDereferenceObject, copy);
    // The token itself, tracked dynamically.
    let mut dynamic = [12_u32, 2, 1];
    let mut subject = [0_u64; 4];
    call!(SeCaptureSubjectContext, &mut subject);
    let status =
        call!(SeCreateClientSecurityFromSubjectContext, &mut subject, &mut dynamic, 1, &mut client);
    same!(status, 0);
    call!(SeReleaseSubjectContext, &mut subject);
    same!(client[3] & 0xFF_FFFF, 0x1_0001);
    call!(PsDereferencePrimaryToken, pointer(client[2] as usize));
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
