//! Time conversions. The system's time zone is UTC.

use crate::{
    execution::routine::{At, routine},
    ground::abi::TimeFields,
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("RtlTimeToSecondsSince1970", to_seconds::<YEAR_1970>),
    routine("RtlTimeToSecondsSince1980", to_seconds::<YEAR_1980>),
    routine("RtlSecondsSince1970ToTime", from_seconds::<YEAR_1970>),
    routine("RtlSecondsSince1980ToTime", from_seconds::<YEAR_1980>),
    routine("RtlTimeToTimeFields", to_time_fields),
    routine("RtlTimeFieldsToTime", from_time_fields),
];

/// The start of each of these years, in seconds since 1601.
const YEAR_1970: i64 = 11_644_473_600;

const YEAR_1980: i64 = 11_960_006_400;

/// A second in units of 100 ns.
const SECOND: i64 = 10_000_000;

/// Stores the number of whole seconds between a year's start and a time. Returns whether the number
/// fits in 32 bits.
fn to_seconds<const START: i64>(context: &Context, time: At<i64>, seconds: At<u32>) -> bool {
    let elapsed = u32::try_from(time.read(context).div_euclid(SECOND) - START);
    if let Ok(elapsed) = elapsed {
        seconds.write(context, elapsed);
    }
    elapsed.is_ok()
}

fn from_seconds<const START: i64>(context: &Context, seconds: u32, time: At<i64>) {
    let seconds = i64::from(seconds) + START;
    time.write(context, seconds * SECOND);
}

/// The number of days before each month of a common year.
const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Durations in units of 100 ns.
const MILLISECOND: i64 = 10_000;

const DAY: i64 = 86_400_000 * MILLISECOND;

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns the number of days from 1601-01-01 to the first day of a year.
const fn days_before(year: i64) -> i64 {
    let past = year - 1;
    let leaps = past / 4 - past / 100 + past / 400 - (1600 / 4 - 1600 / 100 + 1600 / 400);
    (year - 1601) * 365 + leaps
}

fn days_in(year: i64, month: usize) -> i64 {
    let days = DAYS.get(month - 1).copied().unwrap_or(0);
    days + i64::from(month == 2 && is_leap(year))
}

fn to_time_fields(context: &Context, time: At<i64>, fields: At<TimeFields>) {
    let time = time.read(context).max(0);
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
    fields.write(context, value);
}

fn from_time_fields(context: &Context, fields: At<TimeFields>, time: At<i64>) -> bool {
    let value = fields.read(context);
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
        return false;
    }
    let before = BEFORE_MONTH.get(month - 1).copied().unwrap_or(0);
    let leap_day = i64::from(month > 2 && is_leap(year));
    let days = days_before(year) + before + leap_day + i64::from(value.day) - 1;
    let seconds = (i64::from(value.hour) * 60 + i64::from(value.minute)) * 60;
    let milliseconds = (seconds + i64::from(value.second)) * 1000 + i64::from(value.milliseconds);
    time.write(context, days * DAY + milliseconds * MILLISECOND);
    true
}
