//! Security identifiers, access lists and security descriptors.

use crate::call::{at, boolean, call, low, same};

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
