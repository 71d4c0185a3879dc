//! Comparisons of the system version with a version that a driver requires.

use super::version::{MAJOR, MINOR, SUITE, WORKSTATION, build_number};
use crate::{
    execution::routine::{At, routine},
    ground::{NtResult, NtStatus, opaque::OsVersionInfoEx},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("VerSetConditionMask", set_condition),
    routine("RtlVerifyVersionInfo", verify),
    routine("IoIsWdmVersionAvailable", is_version_available),
];

/// `STATUS_REVISION_MISMATCH`.
const MISMATCH: NtStatus = NtStatus::from_bits(0xC000_0059);

/// The parts of a version, as bits of a type mask. The three-bit condition for bit n is at bit 3n.
const MINOR_VERSION: u32 = 0x1;

const MAJOR_VERSION: u32 = 0x2;
const BUILD_NUMBER: u32 = 0x4;
const PLATFORM: u32 = 0x8;
const PACK_MINOR: u32 = 0x10;
const PACK_MAJOR: u32 = 0x20;
const SUITE_NAME: u32 = 0x40;
const PRODUCT_TYPE: u32 = 0x80;

/// The conditions, such as `VER_EQUAL`. The last two apply to suites.
const EQUAL: u8 = 1;

const GREATER: u8 = 2;
const GREATER_EQUAL: u8 = 3;
const LESS: u8 = 4;
const LESS_EQUAL: u8 = 5;
const AND: u8 = 6;
const OR: u8 = 7;

/// Adds a condition, for the highest part in a type mask, to a mask of conditions.
const fn set_condition(_context: &Context, mask: u64, kind: u32, condition: u8) -> u64 {
    let kind = kind & 0xFF;
    let condition = condition & 7;
    let Some(part) = kind.checked_ilog2() else {
        return mask;
    };
    if condition == 0 {
        return mask;
    }
    mask | (condition as u64) << (3 * part)
}

const fn condition_of(mask: u64, part: u32) -> u8 {
    (mask >> (3 * part.trailing_zeros()) & 7) as u8
}

const fn holds(condition: u8, ours: u32, wanted: u32) -> bool {
    match condition {
        EQUAL => ours == wanted,
        GREATER => ours > wanted,
        GREATER_EQUAL => ours >= wanted,
        LESS => ours < wanted,
        LESS_EQUAL => ours <= wanted,
        _ => false,
    }
}

/// Compares versions. Later parts count only if the earlier parts are equal. An ordering condition
/// on the first part applies to all parts; equality conditions apply to individual parts.
fn version_holds(conditions: &[(u8, u32, u32)]) -> bool {
    let mut order = EQUAL;
    for (number, (condition, ours, wanted)) in conditions.iter().enumerate() {
        if order == EQUAL {
            order = *condition;
        }
        let is_last = number + 1 == conditions.len();
        if ours != wanted || is_last {
            return holds(order, *ours, *wanted);
        }
        if !matches!(order, EQUAL | GREATER | GREATER_EQUAL | LESS | LESS_EQUAL) {
            return false;
        }
    }
    true
}

fn verify(context: &Context, information: At<OsVersionInfoEx>, kind: u32, mask: u64) -> NtResult {
    /// `VER_PLATFORM_WIN32_NT`.
    const NT: u32 = 2;
    /// The offset of the service pack version.
    const PACK: u64 = 276;
    if kind == 0 || mask == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let [_size, major, minor, build, platform]: [u32; 5] = context.read(information.0);
    let [pack_major, pack_minor, suite]: [u16; 3] = context.read(information.0.wrapping_add(PACK));
    let product: u8 = context.read(information.0.wrapping_add(PACK + 6));
    let single = [
        (PRODUCT_TYPE, u32::from(WORKSTATION), u32::from(product)),
        (PLATFORM, NT, platform),
        (BUILD_NUMBER, build_number(), build),
    ];
    let is_right = |(part, ours, wanted): (u32, u32, u32)| {
        kind & part == 0 || holds(condition_of(mask, part), ours, wanted)
    };
    let is_suite_right = kind & SUITE_NAME == 0
        || match condition_of(mask, SUITE_NAME) {
            AND => suite & SUITE == suite,
            OR => suite & SUITE != 0 || suite == 0,
            _ => false,
        };
    let version: Vec<_> = [
        (MAJOR_VERSION, MAJOR, major),
        (MINOR_VERSION, MINOR, minor),
        (PACK_MAJOR, 0, u32::from(pack_major)),
        (PACK_MINOR, 0, u32::from(pack_minor)),
    ]
    .into_iter()
    .filter(|(part, ..)| kind & part != 0)
    .map(|(part, ours, wanted)| (condition_of(mask, part), ours, wanted))
    .collect();
    if single.into_iter().all(is_right) && is_suite_right && version_holds(&version) {
        Ok(())
    } else {
        Err(MISMATCH)
    }
}

/// The WDM version: `WDM_MAJORVERSION` and `WDM_MINORVERSION` in the headers since Windows Vista.
const WDM: (u8, u8) = (6, 0);

fn is_version_available(_context: &Context, major: u8, minor: u8) -> bool {
    (major, minor) <= WDM
}
