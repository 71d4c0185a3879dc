//! The C runtime's routines that parse and format numbers, and its random numbers.

use super::strings::{INVALID, RANGE, read, step, write, write_string};
use crate::{
    execution::routine::{Argument, At, Routine, low_half},
    ground::irql::Irql,
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("atoi", HIGH, Routine::of(to_int::<false>)),
    ("atol", HIGH, Routine::of(to_int::<false>)),
    ("_wtoi", HIGH, Routine::of(to_int::<true>)),
    ("_wtol", HIGH, Routine::of(to_int::<true>)),
    ("_atoi64", HIGH, Routine::of(to_int_64::<false>)),
    ("_wtoi64", HIGH, Routine::of(to_int_64::<true>)),
    ("strtol", HIGH, Routine::of(to_long::<false>)),
    ("strtoul", HIGH, Routine::of(to_unsigned::<false>)),
    ("wcstol", HIGH, Routine::of(to_long::<true>)),
    ("wcstoul", HIGH, Routine::of(to_unsigned::<true>)),
    ("_itoa", HIGH, Routine::of(from_int::<false>)),
    ("_itow", HIGH, Routine::of(from_int::<true>)),
    ("_itoa_s", HIGH, Routine::of(from_safely::<false, i32>)),
    ("_itow_s", HIGH, Routine::of(from_safely::<true, i32>)),
    ("_ltoa_s", HIGH, Routine::of(from_safely::<false, i32>)),
    ("_ltow_s", HIGH, Routine::of(from_safely::<true, i32>)),
    ("_ultoa_s", HIGH, Routine::of(from_safely::<false, u32>)),
    ("_ultow_s", HIGH, Routine::of(from_safely::<true, u32>)),
    ("_i64toa_s", HIGH, Routine::of(from_safely::<false, i64>)),
    ("_i64tow_s", HIGH, Routine::of(from_safely::<true, i64>)),
    ("_ui64toa_s", HIGH, Routine::of(from_safely::<false, u64>)),
    ("_ui64tow_s", HIGH, Routine::of(from_safely::<true, u64>)),
    ("rand", HIGH, Routine::of(random)),
    ("srand", HIGH, Routine::of(seed)),
];

/// A parsed number.
struct Number {
    is_negative: bool,
    /// The magnitude, or `u64::MAX` on overflow.
    magnitude: u64,
    /// The number of characters.
    length: u64,
}

/// Parses a number after spaces and a sign. If `base` is 0, a prefix selects the base.
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

/// Parses a number. As in the Windows kernel, it wraps around on overflow.
fn to_int<const WIDE: bool>(context: &Context, address: u64) -> i32 {
    low_half(to_int_64::<WIDE>(context, address)).cast_signed()
}

fn to_int_64<const WIDE: bool>(context: &Context, address: u64) -> u64 {
    parse::<WIDE>(context, address, 10).map_or(0, |number| {
        if number.is_negative { number.magnitude.wrapping_neg() } else { number.magnitude }
    })
}

/// Parses a number, and stores the address of its end. Returns 0 if there is no number. See
/// [`parse`].
fn parse_to_end<const WIDE: bool>(
    context: &Context,
    address: u64,
    end: At<u64>,
    base: i32,
) -> Number {
    let base = base_of(base).or_else(|| (base == 0).then_some(0));
    let number = base.and_then(|base| parse::<WIDE>(context, address, base));
    let number = number.unwrap_or(Number { is_negative: false, magnitude: 0, length: 0 });
    end.write_optional(context, address.wrapping_add(number.length.wrapping_mul(step::<WIDE>())));
    number
}

/// Parses a `long`. On overflow, returns the nearest `long`.
fn to_long<const WIDE: bool>(context: &Context, address: u64, end: At<u64>, base: i32) -> i32 {
    let Number { is_negative, magnitude, .. } = parse_to_end::<WIDE>(context, address, end, base);
    let (value, nearest) = if is_negative {
        (0_i32.checked_sub_unsigned(u32::try_from(magnitude).unwrap_or(u32::MAX)), i32::MIN)
    } else {
        (i32::try_from(magnitude).ok(), i32::MAX)
    };
    value.unwrap_or(nearest)
}

/// Parses an `unsigned long`. On overflow, returns the largest `unsigned long`.
fn to_unsigned<const WIDE: bool>(context: &Context, address: u64, end: At<u64>, base: i32) -> u32 {
    let Number { is_negative, magnitude, .. } = parse_to_end::<WIDE>(context, address, end, base);
    u32::try_from(magnitude)
        .map_or(u32::MAX, |value| if is_negative { value.wrapping_neg() } else { value })
}

/// Validates a base, which must be 2 to 36.
fn base_of(base: i32) -> Option<u32> {
    u32::try_from(base).ok().filter(|base| (2..=36).contains(base))
}

fn digits(value: impl Integer, base: u32) -> Vec<u16> {
    let (magnitude, is_negative) = value.parts(base);
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

/// A number that a routine formats.
trait Integer: Argument {
    /// Returns the magnitude and whether the number is negative. Only base 10 uses a sign; other
    /// bases use the two's complement.
    fn parts(self, base: u32) -> (u64, bool);
}

impl Integer for i32 {
    fn parts(self, base: u32) -> (u64, bool) {
        if base == 10 { i64::from(self).parts(base) } else { self.cast_unsigned().parts(base) }
    }
}

impl Integer for i64 {
    fn parts(self, base: u32) -> (u64, bool) {
        let is_negative = self < 0 && base == 10;
        (if is_negative { self.unsigned_abs() } else { self.cast_unsigned() }, is_negative)
    }
}

impl Integer for u32 {
    fn parts(self, _base: u32) -> (u64, bool) {
        (self.into(), false)
    }
}

impl Integer for u64 {
    fn parts(self, _base: u32) -> (u64, bool) {
        (self, false)
    }
}

fn from_int<const WIDE: bool>(context: &Context, value: i32, to: u64, base: i32) -> u64 {
    if let Some(base) = base_of(base).filter(|_| to != 0) {
        write_string::<WIDE>(context, to, 0, digits(value, base));
    }
    to
}

fn from_safely<const WIDE: bool, T: Integer>(
    context: &Context,
    value: T,
    to: u64,
    size: u64,
    base: i32,
) -> i32 {
    if to == 0 || size == 0 {
        return INVALID;
    }
    let Some(base) = base_of(base) else {
        write::<WIDE>(context, to, 0, &[0]);
        return INVALID;
    };
    let units = digits(value, base);
    if units.len() as u64 >= size {
        write::<WIDE>(context, to, 0, &[0]);
        return RANGE;
    }
    write_string::<WIDE>(context, to, 0, units);
    0
}

/// The state of the random number generator, or `None` before the first number.
#[derive(Default)]
struct Random(Option<u32>);

/// Returns a number below 2^15.
fn random(context: &Context) -> i32 {
    const FACTOR: u32 = 214_013;
    const SUMMAND: u32 = 2_531_011;
    let mut state = context.state();
    let random = state.get::<Random>();
    let next = random.0.unwrap_or(1).wrapping_mul(FACTOR).wrapping_add(SUMMAND);
    random.0 = Some(next);
    (next >> 16 & 0x7FFF).cast_signed()
}

fn seed(context: &Context, value: u32) {
    context.state().get::<Random>().0 = Some(value);
}
