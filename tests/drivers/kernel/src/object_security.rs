//! The security descriptors of objects, and access checks.

use crate::{
    call::{at, boolean, call, driver, low, same},
    exports::object_type,
};

const NOT_THE_TYPE: u32 = 0xC000_0024;
const TOO_SMALL: u32 = 0xC000_0023;
const DENIED: u32 = 0xC000_0022;
const INVALID_DESCRIPTOR: u32 = 0xC000_0079;
const INVALID_OWNER: u32 = 0xC000_005A;

/// `OWNER_SECURITY_INFORMATION` and `DACL_SECURITY_INFORMATION`.
const OWNER: u64 = 1;
const DACL: u64 = 4;

/// The groups of administrators and of users: `S-1-5-32-544` and `-545`.
const ADMINISTRATORS: [u32; 4] = [0x0201, 0x0500_0000, 32, 544];
const USERS: [u32; 4] = [0x0201, 0x0500_0000, 32, 545];

/// `SECURITY_DESCRIPTOR`, absolute.
type Descriptor = [u64; 5];

pub fn run() {
    same!(boolean(call!("IoIsWdmVersionAvailable", 1, 0x30)), true);
    same!(boolean(call!("IoIsWdmVersionAvailable", 6, 0)), true);
    same!(boolean(call!("IoIsWdmVersionAvailable", 6, 1)), false);
    let mut device = 0_u64;
    let created = call!("IoCreateDevice", driver(), 0, 0, 0x22, 0, 0, at(&mut device));
    same!(low(created), 0);
    let mut handle = 0_u64;
    let process = call!("IoGetCurrentProcess");
    let types = [device, process].map(|object| {
        let kind = object_type("IoDeviceObjectType");
        low(call!("ObOpenObjectByPointer", object, 0x200, 0, 0xF_0000, kind, 0, at(&mut handle)))
    });
    same!(types[1], NOT_THE_TYPE);
    same!(types[0], 0);
    of_object(device, handle);
    same!(low(call!("ZwClose", handle)), 0);
    call!("IoDeleteDevice", device);
    others();
    captured();
    access();
}

/// Opens objects of other types: the driver, and an event whose first handle is closed.
fn others() {
    let open = |object: u64, handle: &mut u64| {
        low(call!("ObOpenObjectByPointer", object, 0x200, 0, 0xF_0000, 0, 0, at(handle)))
    };
    let (mut handle, mut event, mut again) = (0_u64, 0_u64, 0_u64);
    same!(open(driver(), &mut handle), 0);
    same!(low(call!("ZwClose", handle)), 0);
    let created = call!("ZwCreateEvent", at(&mut handle), 0x1F_0003, 0, 1, 0);
    same!(low(created), 0);
    let referenced = call!("ObReferenceObjectByHandle", handle, 0, 0, 0, at(&mut event), 0);
    same!(low(referenced), 0);
    same!(low(call!("ZwClose", handle)), 0);
    same!(open(event, &mut again), 0);
    call!("ObfDereferenceObject", event);
    same!(low(call!("ZwSetEvent", again, 0)), 0);
    same!(low(call!("ZwClose", again)), 0);
}

/// Runs a function with a descriptor that has an owner and a list of one entry.
fn with_list(run: impl FnOnce(u64, u64)) {
    let (mut sid, mut acl) = (ADMINISTRATORS, [0_u64; 8]);
    same!(low(call!("RtlCreateAcl", at(&mut acl), 64, 2)), 0);
    let added = call!("RtlAddAccessAllowedAce", at(&mut acl), 2, 0x12_0001, at(&mut sid));
    same!(low(added), 0);
    let mut descriptor: Descriptor = [0; 5];
    let to = at(&mut descriptor);
    same!(low(call!("RtlCreateSecurityDescriptor", to, 1)), 0);
    same!(low(call!("RtlSetDaclSecurityDescriptor", to, 1, at(&mut acl), 0)), 0);
    run(to, at(&mut sid));
}

fn of_object(device: u64, handle: u64) {
    let mut buffer = [0_u32; 64];
    let mut needed = 0_u32;
    let mut query = |information: u64, length: u64, buffer: &mut [u32; 64]| {
        let to = at(buffer);
        let status =
            call!("ZwQuerySecurityObject", handle, information, to, length, at(&mut needed));
        (low(status), needed)
    };
    // No caller has set this default descriptor: an owner, and a list of three entries.
    same!(query(OWNER, 10, &mut buffer) == (TOO_SMALL, 36), true);
    same!(query(OWNER, 256, &mut buffer) == (0, 36), true);
    same!(buffer[5..9] == ADMINISTRATORS, true);
    same!(buffer[4], 0);
    with_list(|descriptor, owner| {
        let set =
            |information: u64| low(call!("ZwSetSecurityObject", handle, information, descriptor));
        same!(set(OWNER), INVALID_OWNER);
        same!(set(DACL), 0);
        same!(query(DACL, 256, &mut buffer) == (0, 20 + 64), true);
        same!(buffer[0], 0x8004_0001_u32);
        // These bytes are the list with its only entry.
        same!(buffer[5..8] == [0x0040_0002, 1, 0x0018_0000], true);
        same!(low(call!("RtlSetOwnerSecurityDescriptor", descriptor, owner, 0)), 0);
        same!(set(OWNER | DACL), 0);
        let mut unknown: Descriptor = [9; 5];
        let status = call!("ZwSetSecurityObject", handle, DACL, at(&mut unknown));
        same!(low(status), INVALID_DESCRIPTOR);
    });
    let (mut found, mut is_allocated) = (0_u64, 9_u8);
    let got = call!("ObGetObjectSecurity", device, at(&mut found), at(&mut is_allocated));
    same!((low(got), is_allocated) == (0, 1), true);
    same!(low(call!("RtlLengthSecurityDescriptor", found)), 20 + 64 + 16 + 12);
    call!("ObReleaseObjectSecurity", found, u64::from(is_allocated));
}

fn captured() {
    with_list(|descriptor, _| {
        let mut copy = 0_u64;
        let mut capture = |mode: u64, force: u64| {
            let to = at(&mut copy);
            (low(call!("SeCaptureSecurityDescriptor", descriptor, mode, 1, force, to)), copy)
        };
        same!(capture(0, 0) == (0, descriptor), true);
        let (status, copied) = capture(1, 0);
        same!(status, 0);
        same!(copied == descriptor, false);
        same!(low(call!("RtlLengthSecurityDescriptor", copied)), 20 + 64);
        call!("SeReleaseSecurityDescriptor", copied, 1, 0);
    });
}

fn access() {
    // `GENERIC_MAPPING` contains one right for each generic right, and all rights.
    let mut mapping = [1_u32, 2, 4, 0x12_000F];
    let mut subject = [0_u64; 4];
    call!("SeCaptureSubjectContext", at(&mut subject));
    same!(boolean(call!("SeTokenIsAdmin", subject[2])), true);
    same!(subject[3], 4);
    let mut check = |descriptor: u64, desired: u64, previous: u64, mode: u64| {
        let (mut granted, mut status) = (0x99_u32, 0x99_u32);
        let result = call!(
            "SeAccessCheck",
            descriptor,
            at(&mut subject),
            0,
            desired,
            previous,
            0,
            at(&mut mapping),
            mode,
            at(&mut granted),
            at(&mut status)
        );
        (boolean(result), granted, status)
    };
    with_list(|descriptor, _| {
        // The list grants read access to the system, which is an administrator.
        same!(check(descriptor, 0x8000_0000, 0, 1) == (true, 1, 0), true);
        same!(check(descriptor, 0x4000_0000, 0, 1) == (false, 0, DENIED), true);
        same!(check(descriptor, 3, 2, 1) == (true, 3, 0), true);
        same!(check(descriptor, 0x0200_0000, 0, 1) == (true, 0x12_0001, 0), true);
        // The kernel's own access is not checked.
        same!(check(descriptor, 0x4000_0000, 0, 0) == (true, 2, 0), true);
        same!(check(descriptor, 0x0200_0000, 0, 0) == (true, 0x12_000F, 0), true);
        // Access to an object with a null list is not checked either.
        same!(low(call!("RtlSetDaclSecurityDescriptor", descriptor, 1, 0, 0)), 0);
        same!(check(descriptor, 7, 0, 1) == (true, 7, 0), true);
    });
    lists(&mut check);
    call!("SeReleaseSubjectContext", at(&mut subject));
    same!(subject == [0; 4], true);
}

/// Checks access against lists with other entries.
fn lists(check: &mut impl FnMut(u64, u64, u64, u64) -> (bool, u32, u32)) {
    let (mut sid, mut acl) = (USERS, [0_u64; 8]);
    let mut descriptor: Descriptor = [0; 5];
    let to = at(&mut descriptor);
    same!(low(call!("RtlCreateSecurityDescriptor", to, 1)), 0);
    same!(low(call!("RtlCreateAcl", at(&mut acl), 64, 2)), 0);
    same!(low(call!("RtlSetDaclSecurityDescriptor", to, 1, at(&mut acl), 0)), 0);
    // An empty list grants no access to anyone; a list of other identifiers grants no access to the
    // system.
    same!(check(to, 1, 0, 1) == (false, 0, DENIED), true);
    same!(low(call!("RtlAddAccessAllowedAce", at(&mut acl), 2, 7, at(&mut sid))), 0);
    same!(check(to, 1, 0, 1) == (false, 0, DENIED), true);
    // An entry that denies access takes precedence over a later entry that allows access.
    let (mut administrators, mut list) = (ADMINISTRATORS, [0_u64; 10]);
    same!(low(call!("RtlCreateAcl", at(&mut list), 80, 2)), 0);
    for mask in [2, 3] {
        let added =
            call!("RtlAddAccessAllowedAce", at(&mut list), 2, mask, at(&mut administrators));
        same!(low(added), 0);
    }
    list[1] |= 1;
    same!(low(call!("RtlSetDaclSecurityDescriptor", to, 1, at(&mut list), 0)), 0);
    same!(check(to, 1, 0, 1) == (true, 1, 0), true);
    same!(check(to, 3, 0, 1) == (false, 0, DENIED), true);
    // The system is allowed to take ownership.
    same!(check(to, 0x8_0000, 0, 1) == (true, 0x8_0000, 0), true);
    // The owner is always allowed to read and change the list.
    same!(low(call!("RtlSetOwnerSecurityDescriptor", to, at(&mut administrators), 0)), 0);
    same!(check(to, 0x6_0000, 0, 1) == (true, 0x6_0000, 0), true);
}
