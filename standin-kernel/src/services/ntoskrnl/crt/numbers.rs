//! The C runtime's routines that parse and format numbers, and its random numbers.

use super::strings::{INVALID, RANGE, Unit, read, step, write, write_string};
use crate::{
    execution::routine::{Argument, At, low_half, routine},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("atoi", to_int::<u8>),
    routine("atol", to_int::<u8>),
    routine("_wtoi", to_int::<u16>),
    routine("_wtol", to_int::<u16>),
    routine("_atoi64", to_int_64::<u8>),
    routine("_wtoi64", to_int_64::<u16>),
    routine("strtol", to_long::<u8>),
    routine("strtoul", to_unsigned::<u8>),
    routine("wcstol", to_long::<u16>),
    routine("wcstoul", to_unsigned::<u16>),
    routine("_itoa", from_int::<u8>),
    routine("_itow", from_int::<u16>),
    routine("_itoa_s", from_safely::<u8, i32>),
    routine("_itow_s", from_safely::<u16, i32>),
    routine("_ltoa_s", from_safely::<u8, i32>),
    routine("_ltow_s", from_safely::<u16, i32>),
    routine("_ultoa_s", from_safely::<u8, u32>),
    routine("_ultow_s", from_safely::<u16, u32>),
    routine("_i64toa_s", from_safely::<u8, i64>),
    routine("_i64tow_s", from_safely::<u16, i64>),
    routine("_ui64toa_s", from_safely::<u8, u64>),
    routine("_ui64tow_s", from_safely::<u16, u64>),
    routine("rand", random),
    routine("srand", seed),
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
fn parse<C: Unit>(context: &Context, address: u64, base: u32) -> Option<Number> {
    let character = |number: u64| char::from_u32(u32::from(read::<C>(context, address, number)));
    let is =
        |number: u64, these: &[char]| character(number).is_some_and(|one| these.contains(&one));
    let mut at = 0;
    let spaces = ['\t', '\n', '\u{b}', '\u{c}', '\r', ' ', '\u{a0}'];
    let spaces = if C::WIDE { &spaces[..] } else { &spaces[..6] };
    while is(at, spaces) {
        at += 1;
    }
    let is_negative = is(at, &['-']);
    if is_negative || is(at, &['+']) {
        at += 1;
    }
    let mut base = base;
    let digit = |number: u64, base: u32| character(number).and_then(|one| digit_of(one, base));
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

/// The digits 0 of the scripts whose digits are numbers in wide strings.
const ZEROS: [u32; 17] = [
    0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0, 0xF20,
    0x1040, 0x17E0, 0x1810, 0xFF10,
];

/// Returns the value of a digit.
fn digit_of(character: char, base: u32) -> Option<u32> {
    character.to_digit(base).or_else(|| {
        let mut values = ZEROS.iter().filter_map(|zero| u32::from(character).checked_sub(*zero));
        values.find(|value| *value < 10.min(base))
    })
}

/// Parses a number. As in the Windows kernel, it wraps around if it exceeds an `int`, and not if it exceeds
/// 64 bits.
fn to_int<C: Unit>(context: &Context, address: At<C>) -> i32 {
    low_half(to_int_64::<C>(context, address)).cast_signed()
}

fn to_int_64<C: Unit>(context: &Context, address: At<C>) -> u64 {
    parse::<C>(context, address.0, 10).map_or(0, |number| {
        let magnitude = i64::try_from(number.magnitude).unwrap_or(i64::MAX);
        let value = if number.is_negative { magnitude.wrapping_neg() } else { magnitude };
        value.cast_unsigned()
    })
}

/// Parses a number, and stores the address of its end. Returns 0 if there is no number. See
/// [`parse`].
fn parse_to_end<C: Unit>(context: &Context, address: u64, end: At<u64>, base: i32) -> Number {
    let base = base_of(base).or_else(|| (base == 0).then_some(0));
    let number = base.and_then(|base| parse::<C>(context, address, base));
    let number = number.unwrap_or(Number { is_negative: false, magnitude: 0, length: 0 });
    end.write_optional(context, address.wrapping_add(number.length.wrapping_mul(step::<C>())));
    number
}

/// Parses a `long`. On overflow, returns the nearest `long`.
fn to_long<C: Unit>(context: &Context, address: At<C>, end: At<u64>, base: i32) -> i32 {
    let Number { is_negative, magnitude, .. } = parse_to_end::<C>(context, address.0, end, base);
    let (value, nearest) = if is_negative {
        (0_i32.checked_sub_unsigned(u32::try_from(magnitude).unwrap_or(u32::MAX)), i32::MIN)
    } else {
        (i32::try_from(magnitude).ok(), i32::MAX)
    };
    value.unwrap_or(nearest)
}

/// Parses an `unsigned long`. On overflow, returns the largest `unsigned long`.
fn to_unsigned<C: Unit>(context: &Context, address: At<C>, end: At<u64>, base: i32) -> u32 {
    let Number { is_negative, magnitude, .. } = parse_to_end::<C>(context, address.0, end, base);
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

fn from_int<C: Unit>(context: &Context, value: i32, string: At<C>, base: i32) -> At<C> {
    if let Some(base) = base_of(base).filter(|_| !string.is_null()) {
        write_string::<C>(context, string.0, 0, digits(value, base));
    }
    string
}

fn from_safely<C: Unit, T: Integer>(
    context: &Context,
    value: T,
    string: At<C>,
    size: u64,
    base: i32,
) -> i32 {
    if string.is_null() || size == 0 {
        return INVALID;
    }
    let Some(base) = base_of(base) else {
        write::<C>(context, string.0, 0, &[0]);
        return INVALID;
    };
    let units = digits(value, base);
    if units.len() as u64 >= size {
        write::<C>(context, string.0, 0, &[0]);
        return RANGE;
    }
    write_string::<C>(context, string.0, 0, units);
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
