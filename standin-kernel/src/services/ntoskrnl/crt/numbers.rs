//! The C runtime's routines that read and write numbers, and its random numbers.

use super::strings::{INVALID, RANGE, read, step, write, write_string};
use crate::{
    execution::routine::{Routine, low_half},
    ground::irql::Irql,
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("atoi", HIGH, Routine::One(to_int::<false>)),
    ("atol", HIGH, Routine::One(to_int::<false>)),
    ("_wtoi", HIGH, Routine::One(to_int::<true>)),
    ("_wtol", HIGH, Routine::One(to_int::<true>)),
    ("_atoi64", HIGH, Routine::One(to_int_64::<false>)),
    ("_wtoi64", HIGH, Routine::One(to_int_64::<true>)),
    ("strtol", HIGH, Routine::Three(to_long::<false, true>)),
    ("strtoul", HIGH, Routine::Three(to_long::<false, false>)),
    ("wcstol", HIGH, Routine::Three(to_long::<true, true>)),
    ("wcstoul", HIGH, Routine::Three(to_long::<true, false>)),
    ("_itoa", HIGH, Routine::Three(from_int::<false>)),
    ("_itow", HIGH, Routine::Three(from_int::<true>)),
    ("_itoa_s", HIGH, Routine::Four(from_int_safely::<false>)),
    ("_itow_s", HIGH, Routine::Four(from_int_safely::<true>)),
    ("_ltoa_s", HIGH, Routine::Four(from_int_safely::<false>)),
    ("_ltow_s", HIGH, Routine::Four(from_int_safely::<true>)),
    ("_ultoa_s", HIGH, Routine::Four(from_unsigned_safely::<false>)),
    ("_ultow_s", HIGH, Routine::Four(from_unsigned_safely::<true>)),
    ("_i64toa_s", HIGH, Routine::Four(from_int_64_safely::<false>)),
    ("_i64tow_s", HIGH, Routine::Four(from_int_64_safely::<true>)),
    ("_ui64toa_s", HIGH, Routine::Four(from_unsigned_64_safely::<false>)),
    ("_ui64tow_s", HIGH, Routine::Four(from_unsigned_64_safely::<true>)),
    ("rand", HIGH, Routine::Zero(random)),
    ("srand", HIGH, Routine::One(seed)),
];

/// A number as it was read.
struct Number {
    is_negative: bool,
    /// The magnitude, or the largest one if it does not fit.
    magnitude: u64,
    /// The number of characters.
    length: u64,
}

/// Reads a number after spaces and a sign. `base` is 0 for a base that a prefix selects.
fn parse<const WIDE: bool>(context: &Context, address: u64, base: u32) -> Option<Number> {
    let character = |number: u64| char::from_u32(u32::from(read::<WIDE>(context, address, number)));
    let is =
        |number: u64, these: &[char]| character(number).is_some_and(|one| these.contains(&one));
    let mut at = 0;
    while is(at, &['\t', '\n', '\u{b}', '\u{c}', '\r', ' ']) {
        at += 1;
    }
    let is_negative = is(at, &['-']);
    if is_negative || is(at, &['+']) {
        at += 1;
    }
    let mut base = base;
    let digit = |number: u64, base: u32| character(number).and_then(|one| one.to_digit(base));
    let has_prefix = is(at, &['0']) && is(at + 1, &['x', 'X']) && digit(at + 2, 16).is_some();
    if has_prefix && (base == 0 || base == 16) {
        base = 16;
        at += 2;
    } else if base == 0 {
        base = if is(at, &['0']) { 8 } else { 10 };
    }
    let start = at;
    let mut magnitude = 0_u64;
    while let Some(value) = digit(at, base) {
        let next = magnitude.checked_mul(u64::from(base));
        let next = next.and_then(|next| next.checked_add(u64::from(value)));
        magnitude = next.unwrap_or(u64::MAX);
        at += 1;
    }
    (at > start).then_some(Number { is_negative, magnitude, length: at })
}

/// Reads a number, which is wrapped to the type's size as Windows' kernel does.
fn to_int<const WIDE: bool>(context: &Context, address: u64) -> u64 {
    u64::from(low_half(to_int_64::<WIDE>(context, address)))
}

fn to_int_64<const WIDE: bool>(context: &Context, address: u64) -> u64 {
    parse::<WIDE>(context, address, 10).map_or(0, |number| {
        if number.is_negative { number.magnitude.wrapping_neg() } else { number.magnitude }
    })
}

/// Reads a `long` or an `unsigned long`, and stores where it ends. A number that does not fit is the
/// nearest one that does.
fn to_long<const WIDE: bool, const SIGNED: bool>(
    context: &Context,
    address: u64,
    end: u64,
    base: u64,
) -> u64 {
    let base = low_half(base);
    let is_base = base == 0 || (2..=36).contains(&base);
    let number = is_base.then(|| parse::<WIDE>(context, address, base)).flatten();
    if end != 0 {
        let length = number.as_ref().map_or(0, |number| number.length);
        let at = address.wrapping_add(length.wrapping_mul(step::<WIDE>()));
        context.write(end, &at);
    }
    let Some(number) = number else {
        return 0;
    };
    let largest = match (SIGNED, number.is_negative) {
        (true, true) => 1 << 31,
        (true, false) => (1 << 31) - 1,
        (false, _) => u64::from(u32::MAX),
    };
    if number.magnitude > largest && !SIGNED {
        return largest;
    }
    let magnitude = number.magnitude.min(largest);
    let value = if number.is_negative { magnitude.wrapping_neg() } else { magnitude };
    u64::from(low_half(value))
}

/// Returns the digits of a number.
fn digits(magnitude: u64, is_negative: bool, base: u32) -> Vec<u16> {
    let mut units = Vec::new();
    let mut left = magnitude;
    loop {
        let digit = low_half(left % u64::from(base));
        let digit = char::from_digit(digit, base).map_or(0, u32::from);
        units.push(u16::try_from(digit).unwrap_or(0));
        left /= u64::from(base);
        if left == 0 {
            break;
        }
    }
    if is_negative {
        units.push(u16::from(b'-'));
    }
    units.reverse();
    units
}

/// Returns the sign and the magnitude of a signed number, whose sign only the base 10 shows.
const fn split(value: i64, base: u32, mask: u64) -> (u64, bool) {
    if value < 0 && base == 10 {
        (value.unsigned_abs(), true)
    } else {
        (value.cast_unsigned() & mask, false)
    }
}

fn int_of(value: u64) -> i64 {
    i64::from(low_half(value).cast_signed())
}

const LOW_HALF: u64 = 0xFFFF_FFFF;

fn from_int<const WIDE: bool>(context: &Context, value: u64, to: u64, base: u64) -> u64 {
    let base = low_half(base);
    if to == 0 || !(2..=36).contains(&base) {
        return to;
    }
    let (magnitude, is_negative) = split(int_of(value), base, LOW_HALF);
    write_string::<WIDE>(context, to, 0, digits(magnitude, is_negative, base));
    to
}

fn store<const WIDE: bool>(
    context: &Context,
    to: u64,
    size: u64,
    base: u64,
    parts: impl Fn(u32) -> (u64, bool),
) -> u64 {
    let base = low_half(base);
    if to == 0 || size == 0 {
        return INVALID;
    }
    if !(2..=36).contains(&base) {
        write::<WIDE>(context, to, 0, &[0]);
        return INVALID;
    }
    let (magnitude, is_negative) = parts(base);
    let units = digits(magnitude, is_negative, base);
    if units.len() as u64 >= size {
        write::<WIDE>(context, to, 0, &[0]);
        return RANGE;
    }
    write_string::<WIDE>(context, to, 0, units);
    0
}

fn from_int_safely<const WIDE: bool>(
    context: &Context,
    value: u64,
    to: u64,
    size: u64,
    base: u64,
) -> u64 {
    store::<WIDE>(context, to, size, base, |base| split(int_of(value), base, LOW_HALF))
}

fn from_unsigned_safely<const WIDE: bool>(
    context: &Context,
    value: u64,
    to: u64,
    size: u64,
    base: u64,
) -> u64 {
    store::<WIDE>(context, to, size, base, |_| (value & LOW_HALF, false))
}

fn from_int_64_safely<const WIDE: bool>(
    context: &Context,
    value: u64,
    to: u64,
    size: u64,
    base: u64,
) -> u64 {
    store::<WIDE>(context, to, size, base, |base| split(value.cast_signed(), base, u64::MAX))
}

fn from_unsigned_64_safely<const WIDE: bool>(
    context: &Context,
    value: u64,
    to: u64,
    size: u64,
    base: u64,
) -> u64 {
    store::<WIDE>(context, to, size, base, |_| (value, false))
}

/// The state of the random numbers, or `None` before the first one.
#[derive(Default)]
struct Random(Option<u32>);

/// Returns a number below 2^15.
fn random(context: &Context) -> u64 {
    const FACTOR: u32 = 214_013;
    const SUMMAND: u32 = 2_531_011;
    let mut state = context.state();
    let random = state.get::<Random>();
    let next = random.0.unwrap_or(1).wrapping_mul(FACTOR).wrapping_add(SUMMAND);
    random.0 = Some(next);
    u64::from(next >> 16 & 0x7FFF)
}

fn seed(context: &Context, value: u64) -> u64 {
    context.state().get::<Random>().0 = Some(low_half(value));
    0
}
