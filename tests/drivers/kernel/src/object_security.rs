//! The security descriptors of objects, and access checks.

use wdk_sys::{
    NTSTATUS, PVOID, STATUS_ACCESS_DENIED, STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_OWNER,
    STATUS_INVALID_SECURITY_DESCR, STATUS_OBJECT_TYPE_MISMATCH,
};

use crate::{
    call::{NULL, at, boolean, call, driver, same},
    variables::object_type,
};

/// `OWNER_SECURITY_INFORMATION` and `DACL_SECURITY_INFORMATION`.
const OWNER: u64 = 1;
const DACL: u64 = 4;

/// The groups of administrators and of users: `S-1-5-32-544` and `-545`.
const ADMINISTRATORS: [u32; 4] = [0x0201, 0x0500_0000, 32, 544];
const USERS: [u32; 4] = [0x0201, 0x0500_0000, 32, 545];

/// `SECURITY_DESCRIPTOR`, absolute.
type Descriptor = [u64; 5];

pub fn run() {
    same!(call!(IoIsWdmVersionAvailable, 1, 0x30), true);
    same!(call!(IoIsWdmVersionAvailable, 6, 0), true);
    same!(call!(IoIsWdmVersionAvailable, 6, 1), false);
    let mut device = NULL;
    same!(call!(IoCreateDevice, driver(), 0, NULL, 0x22, 0, 0, &mut device), 0);
    let mut handle = NULL;
    let process = call!(IoGetCurrentProcess);
    let types = [device, process.cast()].map(|object| {
        let kind = object_type("IoDeviceObjectType");
        call!(ObOpenObjectByPointer, object, 0x200, NULL, 0xF_0000, kind, 0, &mut handle)
    });
    same!(types[1], STATUS_OBJECT_TYPE_MISMATCH);
    same!(types[0], 0);
    of_object(device, handle);
    same!(call!(ZwClose, handle), 0);
    call!(IoDeleteDevice, device);
    others();
    captured();
    access();
}

/// Opens objects of other types: the driver, and an event whose first handle is closed.
fn others() {
    let open = |object: PVOID, handle: &mut PVOID| {
        call!(ObOpenObjectByPointer, object, 0x200, NULL, 0xF_0000, NULL, 0, handle)
    };
    let (mut handle, mut event, mut again) = (NULL, NULL, NULL);
    same!(open(driver().cast(), &mut handle), 0);
    same!(call!(ZwClose, handle), 0);
    same!(call!(ZwCreateEvent, &mut handle, 0x1F_0003, NULL, 1, 0), 0);
    same!(call!(ObReferenceObjectByHandle, handle, 0, NULL, 0, &mut event, NULL), 0);
    same!(call!(ZwClose, handle), 0);
    same!(open(event, &mut again), 0);
    call!(ObfDereferenceObject, event);
    same!(call!(ZwSetEvent, again, NULL), 0);
    same!(call!(ZwClose, again), 0);
}

/// Runs a function with a descriptor that has an owner and a list of one entry.
fn with_list(run: impl FnOnce(PVOID, PVOID)) {
    let (mut sid, mut acl) = (ADMINISTRATORS, [0_u64; 8]);
    same!(call!(RtlCreateAcl, &mut acl, 64, 2), 0);
    same!(call!(RtlAddAccessAllowedAce, &mut acl, 2, 0x12_0001, &mut sid), 0);
    let mut descriptor: Descriptor = [0; 5];
    let to = at(&mut descriptor);
    same!(call!(RtlCreateSecurityDescriptor, to, 1), 0);
    same!(call!(RtlSetDaclSecurityDescriptor, to, 1, &mut acl, 0), 0);
    run(to, at(&mut sid));
}

fn of_object(device: PVOID, handle: PVOID) {
    let mut buffer = [0_u32; 64];
    let mut needed = 0_u32;
    let mut query = |information: u64, length: u64, buffer: &mut [u32; 64]| {
        let to = at(buffer);
        let status = call!(ZwQuerySecurityObject, handle, information, to, length, &mut needed);
        (status, needed)
    };
    // No caller has set this default descriptor: an owner, and a list of three entries.
    same!(query(OWNER, 10, &mut buffer) == (STATUS_BUFFER_TOO_SMALL, 36), true);
    same!(query(OWNER, 256, &mut buffer) == (0, 36), true);
    same!(buffer[5..9] == ADMINISTRATORS, true);
    same!(buffer[4], 0);
    with_list(|descriptor, owner| {
        let set = |information: u64| call!(ZwSetSecurityObject, handle, information, descriptor);
        same!(set(OWNER), STATUS_INVALID_OWNER);
        same!(set(DACL), 0);
        same!(query(DACL, 256, &mut buffer) == (0, 20 + 64), true);
        same!(buffer[0], 0x8004_0001_u32);
        // These bytes are the list with its only entry.
        same!(buffer[5..8] == [0x0040_0002, 1, 0x0018_0000], true);
        same!(call!(RtlSetOwnerSecurityDescriptor, descriptor, owner, 0), 0);
        same!(set(OWNER | DACL), 0);
        let mut unknown: Descriptor = [9; 5];
        let status = call!(ZwSetSecurityObject, handle, DACL, &mut unknown);
        same!(status, STATUS_INVALID_SECURITY_DESCR);
    });
    let (mut found, mut is_allocated) = (NULL, 9_u8);
    let got = call!(ObGetObjectSecurity, device, &mut found, &mut is_allocated);
    same!((got, is_allocated) == (0, 1), true);
    same!(call!(RtlLengthSecurityDescriptor, found), 20 + 64 + 16 + 12);
    call!(ObReleaseObjectSecurity, found, is_allocated);
}

fn captured() {
    with_list(|descriptor, _| {
        let mut copy = NULL;
        let mut capture = |mode: u64, force: u64| {
            let to = at(&mut copy);
            (call!(SeCaptureSecurityDescriptor, descriptor, mode, 1, force, to), copy)
        };
        same!(capture(0, 0) == (0, descriptor), true);
        let (status, copied) = capture(1, 0);
        same!(status, 0);
        same!(copied == descriptor, false);
        same!(call!(RtlLengthSecurityDescriptor, copied), 20 + 64);
        call!(SeReleaseSecurityDescriptor, copied, 1, 0);
    });
}

fn access() {
    // `GENERIC_MAPPING` contains one right for each generic right, and all rights.
    let mut mapping = [1_u32, 2, 4, 0x12_000F];
    let mut subject = [NULL; 4];
    call!(SeCaptureSubjectContext, &mut subject);
    same!(call!(SeTokenIsAdmin, subject[2]), true);
    same!(subject[3], 4);
    let mut check = |descriptor: PVOID, desired: u64, previous: u64, mode: u64| {
        let (mut granted, mut status) = (0x99_u32, 0x99);
        let result = call!(
            SeAccessCheck, descriptor, &mut subject, 0, desired, previous, NULL, &mut mapping,
            mode, &mut granted, &mut status
        );
        (boolean(result), granted, status)
    };
    with_list(|descriptor, _| {
        // The list grants read access to the system, which is an administrator.
        same!(check(descriptor, 0x8000_0000, 0, 1) == (true, 1, 0), true);
        same!(check(descriptor, 0x4000_0000, 0, 1) == (false, 0, STATUS_ACCESS_DENIED), true);
        same!(check(descriptor, 3, 2, 1) == (true, 3, 0), true);
        same!(check(descriptor, 0x0200_0000, 0, 1) == (true, 0x12_0001, 0), true);
        // The kernel's own access is not checked.
        same!(check(descriptor, 0x4000_0000, 0, 0) == (true, 2, 0), true);
        same!(check(descriptor, 0x0200_0000, 0, 0) == (true, 0x12_000F, 0), true);
        // Access to an object with a null list is not checked either.
        same!(call!(RtlSetDaclSecurityDescriptor, descriptor, 1, NULL, 0), 0);
        same!(check(descriptor, 7, 0, 1) == (true, 7, 0), true);
    });
    lists(&mut check);
    call!(SeReleaseSubjectContext, &mut subject);
    same!(subject == [NULL; 4], true);
}

/// Checks access against lists with other entries.
fn lists(check: &mut impl FnMut(PVOID, u64, u64, u64) -> (bool, u32, NTSTATUS)) {
    let (mut sid, mut acl) = (USERS, [0_u64; 8]);
    let mut descriptor: Descriptor = [0; 5];
    let to = at(&mut descriptor);
    same!(call!(RtlCreateSecurityDescriptor, to, 1), 0);
    same!(call!(RtlCreateAcl, &mut acl, 64, 2), 0);
    same!(call!(RtlSetDaclSecurityDescriptor, to, 1, &mut acl, 0), 0);
    // An empty list grants no access to anyone; a list of other identifiers grants no access to the
    // system.
    same!(check(to, 1, 0, 1) == (false, 0, STATUS_ACCESS_DENIED), true);
    same!(call!(RtlAddAccessAllowedAce, &mut acl, 2, 7, &mut sid), 0);
    same!(check(to, 1, 0, 1) == (false, 0, STATUS_ACCESS_DENIED), true);
    // An entry that denies access takes precedence over a later entry that allows access.
    let (mut administrators, mut list) = (ADMINISTRATORS, [0_u64; 10]);
    same!(call!(RtlCreateAcl, &mut list, 80, 2), 0);
    for mask in [2, 3] {
        same!(call!(RtlAddAccessAllowedAce, &mut list, 2, mask, &mut administrators), 0);
    }
    list[1] |= 1;
    same!(call!(RtlSetDaclSecurityDescriptor, to, 1, &mut list, 0), 0);
    same!(check(to, 1, 0, 1) == (true, 1, 0), true);
    same!(check(to, 3, 0, 1) == (false, 0, STATUS_ACCESS_DENIED), true);
    // The system is allowed to take ownership.
    same!(check(to, 0x8_0000, 0, 1) == (true, 0x8_0000, 0), true);
    // The owner is always allowed to read and change the list.
    same!(call!(RtlSetOwnerSecurityDescriptor, to, &mut administrators, 0), 0);
    same!(check(to, 0x6_0000, 0, 1) == (true, 0x6_0000, 0), true);
}
