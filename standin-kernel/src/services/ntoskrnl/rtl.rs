//! Routines of the run-time library: memory, times, versions, bits and security identifiers.

use super::context::{Context, Entries};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{abi::TimeFields, irql::Irql, status::NtStatus},
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const APC: Irql = Irql::APC_LEVEL;
const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("RtlCompareMemory", HIGH, Routine::Three(compare_memory)),
    ("RtlCompareMemoryUlong", HIGH, Routine::Three(compare_words)),
    ("RtlCopyMemory", HIGH, Routine::Three(move_memory)),
    ("RtlMoveMemory", HIGH, Routine::Three(move_memory)),
    ("RtlFillMemory", HIGH, Routine::Three(fill_memory)),
    ("RtlZeroMemory", HIGH, Routine::Two(zero_memory)),
    ("RtlTimeToTimeFields", HIGH, Routine::Two(to_time_fields)),
    ("RtlTimeFieldsToTime", HIGH, Routine::Two(from_time_fields)),
    ("RtlGetVersion", PASSIVE, Routine::One(get_version)),
    ("PsGetVersion", PASSIVE, Routine::Four(ps_get_version)),
    ("RtlIsNtDdiVersionAvailable", HIGH, Routine::One(is_version_available)),
    ("RtlIsServicePackVersionInstalled", HIGH, Routine::One(is_service_pack_installed)),
    ("RtlFindLeastSignificantBit", HIGH, Routine::One(least_significant_bit)),
    ("RtlFindMostSignificantBit", HIGH, Routine::One(most_significant_bit)),
    ("RtlValidSid", APC, Routine::One(is_valid_sid)),
    ("RtlLengthSid", HIGH, Routine::One(length_of_sid)),
    ("RtlLengthRequiredSid", APC, Routine::One(length_required)),
    ("RtlCopySid", APC, Routine::Three(copy_sid)),
    ("RtlEqualSid", HIGH, Routine::Two(equal_sids)),
];

/// Returns the number of bytes that are equal from the start on.
fn compare_memory(context: &Context, one: u64, other: u64, length: u64) -> u64 {
    let [one, other] = [one, other].map(|at| context.bytes(at, length));
    let equal = one.iter().zip(&other).take_while(|(one, other)| one == other);
    equal.count() as u64
}

/// Returns the size of the words that are equal to a pattern, from the start on.
fn compare_words(context: &Context, at: u64, length: u64, pattern: u64) -> u64 {
    let bytes = context.bytes(at, length & !3);
    let pattern = low_half(pattern).to_le_bytes();
    let words = bytes.chunks_exact(4);
    4 * words.take_while(|word| *word == pattern).count() as u64
}

fn move_memory(context: &Context, to: u64, from: u64, length: u64) -> u64 {
    context.write_bytes(to, &context.bytes(from, length));
    to
}

fn fill_memory(context: &Context, to: u64, length: u64, value: u64) -> u64 {
    /// The bytes of one step.
    const STEP: u64 = 0x1_0000;
    let mut at = to;
    let mut left = length;
    while left > 0 {
        let now = left.min(STEP);
        let step = vec![(value & 0xFF) as u8; usize::try_from(now).unwrap_or(0)];
        context.write_bytes(at, &step);
        at = at.wrapping_add(now);
        left -= now;
    }
    to
}

fn zero_memory(context: &Context, to: u64, length: u64) -> u64 {
    fill_memory(context, to, length, 0)
}

/// The days of a common year before each month.
const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/// 100 ns units.
const MILLISECOND: i64 = 10_000;
const DAY: i64 = 86_400_000 * MILLISECOND;

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns the days from 1601-01-01 to the first day of a year.
const fn days_before(year: i64) -> i64 {
    let past = year - 1;
    let leaps = past / 4 - past / 100 + past / 400 - (1600 / 4 - 1600 / 100 + 1600 / 400);
    (year - 1601) * 365 + leaps
}

fn days_in(year: i64, month: usize) -> i64 {
    let days = DAYS.get(month - 1).copied().unwrap_or(0);
    days + i64::from(month == 2 && is_leap(year))
}

fn to_time_fields(context: &Context, time: u64, fields: u64) -> u64 {
    let time: i64 = context.read(time);
    let time = time.max(0);
    let mut day = time / DAY;
    // 1601-01-01 was a Monday.
    let weekday = (day + 1) % 7;
    let mut year = 1601 + day / 366;
    while days_before(year + 1) <= day {
        year += 1;
    }
    day -= days_before(year);
    let mut month = 1;
    while day >= days_in(year, month) {
        day -= days_in(year, month);
        month += 1;
    }
    let milliseconds = time % DAY / MILLISECOND;
    let small = |value: i64| i16::try_from(value).unwrap_or(i16::MAX);
    let value = TimeFields {
        year: small(year),
        month: i16::try_from(month).unwrap_or(0),
        day: small(day + 1),
        hour: small(milliseconds / 3_600_000),
        minute: small(milliseconds / 60_000 % 60),
        second: small(milliseconds / 1000 % 60),
        milliseconds: small(milliseconds % 1000),
        weekday: small(weekday),
    };
    context.write(fields, &value);
    0
}

fn from_time_fields(context: &Context, fields: u64, time: u64) -> u64 {
    let value: TimeFields = context.read(fields);
    let year = i64::from(value.year);
    let month = usize::try_from(value.month).unwrap_or(0);
    let is_valid = (1601..=30827).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month.clamp(1, 12))).contains(&i64::from(value.day))
        && (0..24).contains(&value.hour)
        && (0..60).contains(&value.minute)
        && (0..60).contains(&value.second)
        && (0..1000).contains(&value.milliseconds);
    if !is_valid {
        return 0;
    }
    let before = BEFORE_MONTH.get(month - 1).copied().unwrap_or(0);
    let leap_day = i64::from(month > 2 && is_leap(year));
    let days = days_before(year) + before + leap_day + i64::from(value.day) - 1;
    let seconds = (i64::from(value.hour) * 60 + i64::from(value.minute)) * 60;
    let milliseconds = (seconds + i64::from(value.second)) * 1000 + i64::from(value.milliseconds);
    context.write(time, &(days * DAY + milliseconds * MILLISECOND));
    1
}

/// The version that this kernel has: Windows 10, version 2004, as its traces say.
pub const MAJOR: u32 = 10;
pub const MINOR: u32 = 0;
/// The build that traces name.
pub fn build_number() -> u32 {
    etl_file::LogFileHeader::default().os_build
}

/// `NTDDI_WIN10_VB`.
const DDI_VERSION: u32 = 0x0A00_0008;

/// `VER_SUITE_SINGLEUSERTS` and `VER_NT_WORKSTATION`.
pub const SUITE: u16 = 0x100;
pub const WORKSTATION: u8 = 1;

fn get_version(context: &Context, information: u64) -> u64 {
    /// `sizeof(OSVERSIONINFOW)` and `sizeof(OSVERSIONINFOEXW)`.
    const PLAIN: u32 = 276;
    const EXTENDED: u32 = 284;
    /// `VER_PLATFORM_WIN32_NT`.
    const PLATFORM: u32 = 2;
    let size: u32 = context.read(information);
    if size != PLAIN && size != EXTENDED {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let mut value = Vec::new();
    for number in [size, MAJOR, MINOR, build_number(), PLATFORM] {
        value.extend(number.to_le_bytes());
    }
    value.resize(PLAIN as usize, 0);
    if size == EXTENDED {
        value.extend([0; 4]);
        value.extend(SUITE.to_le_bytes());
        value.extend([WORKSTATION, 0]);
    }
    context.write_bytes(information, &value);
    NtStatus::SUCCESS.to_register()
}

/// Returns whether the kernel is a checked build, which it is not.
fn ps_get_version(context: &Context, major: u64, minor: u64, build: u64, pack: u64) -> u64 {
    for (at, value) in [(major, MAJOR), (minor, MINOR), (build, build_number())] {
        if at != 0 {
            context.write(at, &value);
        }
    }
    if pack != 0 {
        // An empty string: length, maximum length and buffer.
        context.write(pack, &[0_u64; 2]);
    }
    0
}

fn is_version_available(_context: &Context, version: u64) -> u64 {
    u64::from(low_half(version) <= DDI_VERSION)
}

/// Returns whether a service pack of the system's own version is installed. It has none.
fn is_service_pack_installed(_context: &Context, version: u64) -> u64 {
    let version = low_half(version);
    let is_own = version & 0xFFFF_0000 == DDI_VERSION & 0xFFFF_0000;
    u64::from(is_own && version & 0xFF00 == 0)
}

/// Returns a bit's number as a `CCHAR`, which is -1 if there is none.
fn bit(number: Option<u32>) -> u64 {
    number.map_or(0xFF, u64::from)
}

fn least_significant_bit(_context: &Context, set: u64) -> u64 {
    bit((set != 0).then(|| set.trailing_zeros()))
}

fn most_significant_bit(_context: &Context, set: u64) -> u64 {
    bit(set.checked_ilog2())
}

/// The maximum number of a security identifier's sub-authorities.
const MAX_SUB_AUTHORITIES: u8 = 15;

/// Returns the size of a security identifier with this number of sub-authorities.
const fn sid_size(count: u8) -> u64 {
    8 + 4 * count as u64
}

fn is_valid_sid(context: &Context, sid: u64) -> u64 {
    u64::from(is_sid(context, sid))
}

/// Returns whether an address is that of a security identifier.
pub fn is_sid(context: &Context, sid: u64) -> bool {
    if sid == 0 {
        return false;
    }
    let [revision, count]: [u8; 2] = context.read(sid);
    revision & 0xF == 1 && count <= MAX_SUB_AUTHORITIES
}

/// Returns the size of a security identifier.
pub fn length_of_sid(context: &Context, sid: u64) -> u64 {
    let [_, count]: [u8; 2] = context.read(sid);
    sid_size(count)
}

fn length_required(_context: &Context, count: u64) -> u64 {
    8_u64.wrapping_add(4 * u64::from(low_half(count))) & 0xFFFF_FFFF
}

fn copy_sid(context: &Context, room: u64, to: u64, sid: u64) -> u64 {
    let length = length_of_sid(context, sid);
    if u64::from(low_half(room)) < length {
        return NtStatus::BUFFER_TOO_SMALL.to_register();
    }
    context.write_bytes(to, &context.bytes(sid, length));
    NtStatus::SUCCESS.to_register()
}

fn equal_sids(context: &Context, one: u64, other: u64) -> u64 {
    let lengths = [one, other].map(|sid| length_of_sid(context, sid));
    let contents = || [one, other].map(|sid| context.bytes(sid, lengths[0]));
    u64::from(
        lengths[0] == lengths[1] && {
            let [one, other] = contents();
            one == other
        },
    )
}
