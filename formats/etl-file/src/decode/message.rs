//! Messages of events.

use super::{Fields, Value};

/// Inserts fields into a message: `%1` to `%99` stand for fields, optionally with a printf format
/// between exclamation marks (`%1!08x!`); `%n`, `%t`, `%r` and `%b` for white space; `%` before
/// another character for that character, and `%0` for the end. A number without a field is left
/// unchanged.
pub fn fill(message: &str, fields: &Fields) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let digits = after.bytes().take(2).take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            let mut chars = after.chars();
            match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('b') => out.push(' '),
                Some(other) => out.push(other),
                None => out.push('%'),
            }
            rest = chars.as_str();
            continue;
        }
        let (number, tail) = after.split_at(digits);
        if number == "0" {
            // The rest, including the line break, is not shown.
            return out;
        }
        let value =
            number.parse::<usize>().ok().and_then(|number| fields.get(number.checked_sub(1)?));
        if let Some((_, value)) = value {
            let (format, behind) = format_of(tail);
            out.push_str(&show(value, format));
            rest = behind;
        } else {
            out.push('%');
            out.push_str(number);
            rest = tail;
        }
    }
    out.push_str(rest);
    out
}

/// Returns a format between exclamation marks, and the text after it.
fn format_of(text: &str) -> (Option<&str>, &str) {
    text.strip_prefix('!')
        .and_then(|format| format.split_once('!'))
        .map_or((None, text), |(format, rest)| (Some(format), rest))
}

/// Returns a formatted value. If the format is invalid or does not fit the value, returns the value
/// as it appears in a sentence.
fn show(value: &Value, format: Option<&str>) -> String {
    format
        .and_then(Format::parse)
        .and_then(|format| format.apply(value))
        .unwrap_or_else(|| value.in_sentence())
}

/// A printf conversion specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "printf has five flags")]
struct Format {
    /// `-`: pad on the right.
    left: bool,
    /// `+`: always show a sign.
    sign: bool,
    /// A space: show a space instead of a plus sign.
    space: bool,
    /// `#`: `0x` before hexadecimal digits.
    prefix: bool,
    /// `0`: zeros instead of spaces.
    zeros: bool,
    /// The minimum number of characters.
    width: usize,
    /// The minimum number of digits of a number, or the maximum number of characters of a string.
    precision: Option<usize>,
    /// The conversion, such as `d` or `x`.
    kind: char,
}

/// The limit of widths and precisions, which come from files.
const MAX_WIDTH: usize = 1024;

impl Format {
    fn parse(text: &str) -> Option<Self> {
        let mut format = Self::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match first {
                '-' => format.left = true,
                '+' => format.sign = true,
                ' ' => format.space = true,
                '#' => format.prefix = true,
                '0' => format.zeros = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        let number = |rest: &mut &str| {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, behind) = rest.split_at(digits);
            *rest = behind;
            number.parse::<usize>().ok().map(|one| one.min(MAX_WIDTH))
        };
        format.width = number(&mut rest).unwrap_or(0);
        if let Some(behind) = rest.strip_prefix('.') {
            rest = behind;
            format.precision = Some(number(&mut rest).unwrap_or(0));
        }
        // Sizes describe C's arguments; a field has its own size.
        for size in ["I64", "I32", "ll", "hh", "I", "l", "h", "w", "j", "z", "t"] {
            if let Some(behind) = rest.strip_prefix(size) {
                rest = behind;
                break;
            }
        }
        let mut last = rest.chars();
        format.kind = last.next()?;
        let known = "diuxXopcCsSeEfFgG".contains(format.kind);
        (known && last.next().is_none()).then_some(format)
    }

    fn apply(self, value: &Value) -> Option<String> {
        match self.kind {
            's' | 'S' => {
                let text = value.in_sentence();
                let most = self.precision.unwrap_or(usize::MAX);
                let cut: String = text.chars().take(most).collect();
                Some(self.pad(&cut, ""))
            }
            'c' | 'C' => {
                let character = char::from_u32(u32::try_from(integer(value)?).ok()?)?;
                Some(self.pad(&character.to_string(), ""))
            }
            'd' | 'i' => {
                let number = integer(value)?;
                let sign = match (number < 0, self.sign, self.space) {
                    (true, ..) => "-",
                    (_, true, _) => "+",
                    (_, _, true) => " ",
                    _ => "",
                };
                Some(self.pad(&self.digits(&number.unsigned_abs().to_string()), sign))
            }
            'u' => Some(self.pad(&self.digits(&unsigned(value)?.to_string()), "")),
            'o' => Some(self.pad(&self.digits(&format!("{:o}", unsigned(value)?)), "")),
            'x' | 'p' => {
                let prefix = if self.prefix { "0x" } else { "" };
                Some(self.pad(&self.digits(&format!("{:x}", unsigned(value)?)), prefix))
            }
            'X' => {
                let prefix = if self.prefix { "0X" } else { "" };
                Some(self.pad(&self.digits(&format!("{:X}", unsigned(value)?)), prefix))
            }
            _ => {
                const PRECISION: usize = 6;
                let number = float(value)?;
                let places = self.precision.unwrap_or(PRECISION);
                let digits = match self.kind {
                    'f' | 'F' => format!("{:.places$}", number.abs()),
                    _ => format!("{}", number.abs()),
                };
                let sign = if number.is_sign_negative() { "-" } else { "" };
                Some(self.pad(&digits, sign))
            }
        }
    }

    /// Pads digits to the precision.
    fn digits(self, digits: &str) -> String {
        let least = self.precision.unwrap_or(1);
        let zeros = least.saturating_sub(digits.len());
        "0".repeat(zeros) + digits
    }

    /// Pads a string to the format's width.
    fn pad(self, text: &str, sign: &str) -> String {
        let length = text.chars().count() + sign.len();
        let missing = self.width.saturating_sub(length);
        let is_number = !matches!(self.kind, 's' | 'S' | 'c' | 'C');
        if self.left {
            format!("{sign}{text}{}", " ".repeat(missing))
        } else if self.zeros && is_number && self.precision.is_none() {
            format!("{sign}{}{text}", "0".repeat(missing))
        } else {
            format!("{}{sign}{text}", " ".repeat(missing))
        }
    }
}

/// Returns a value as a number.
fn integer(value: &Value) -> Option<i128> {
    Some(match value {
        Value::Int(number) => i128::from(*number),
        Value::Named { value: number, signed: true, .. } => i128::from(number.cast_signed()),
        Value::UInt(number)
        | Value::Hex(number)
        | Value::Pointer(number)
        | Value::ProcessId(number)
        | Value::ThreadId(number)
        | Value::Code { address: number, .. }
        | Value::Named { value: number, .. } => i128::from(*number),
        Value::NtStatus(number) | Value::HResult(number) | Value::Win32Error(number) => {
            i128::from(*number)
        }
        Value::Port(number) => i128::from(*number),
        Value::Bool(on) => i128::from(*on),
        _ => return None,
    })
}

/// Returns a value as an unsigned number. Like printf, takes the low 32 bits of a negative number
/// that fits in 32 bits.
fn unsigned(value: &Value) -> Option<u64> {
    let low = |number: i64| {
        i32::try_from(number)
            .map_or_else(|_| number.cast_unsigned(), |narrow| u64::from(narrow.cast_unsigned()))
    };
    match value {
        Value::Int(number) => Some(low(*number)),
        Value::Named { value, signed: true, .. } => Some(low(value.cast_signed())),
        other => u64::try_from(integer(other)?).ok(),
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(f64::from(*number)),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Value;

    fn filled(message: &str) -> String {
        let fields: Fields =
            vec![("a".into(), Value::Text("one".to_owned())), ("b".into(), Value::UInt(2))];
        fill(message, &fields)
    }

    #[test]
    fn numbers_stand_for_fields() {
        assert_eq!(filled("%1 and %2"), "one and 2");
        assert_eq!(filled("%2!04x!|%1!s!!"), "0002|one!");
        assert_eq!(filled("%10 %3 %0 more"), "%10 %3 ");
    }

    /// Returns a formatted value, as C's printf writes it.
    #[track_caller]
    fn assert_shown(format: &str, value: Value, expected: &str) {
        let message = format!("[%1!{format}!]");
        let fields: Fields = vec![("a".into(), value)];
        assert_eq!(fill(&message, &fields), format!("[{expected}]"), "{format}");
    }

    #[test]
    fn formats_are_applied() {
        assert_shown("d", Value::Int(-5), "-5");
        assert_shown("5d", Value::Int(-5), "   -5");
        assert_shown("-5d", Value::Int(-5), "-5   ");
        assert_shown("05d", Value::Int(-5), "-0005");
        assert_shown("+d", Value::UInt(5), "+5");
        assert_shown(" d", Value::UInt(5), " 5");
        assert_shown(".3d", Value::UInt(5), "005");
        assert_shown("u", Value::Named { value: 7, signed: false, name: "x".into() }, "7");
        assert_shown("x", Value::Int(-1), "ffffffff");
        assert_shown("x", Value::Int(i64::MIN), "8000000000000000");
        assert_shown("08X", Value::NtStatus(0xC000_0001), "C0000001");
        assert_shown("#x", Value::Hex(0x1f), "0x1f");
        assert_shown("#06x", Value::Hex(0x1f), "0x001f");
        assert_shown("I64x", Value::Pointer(0xFFFF_8000_0000_0000), "ffff800000000000");
        assert_shown("lu", Value::ProcessId(4), "4");
        assert_shown("o", Value::UInt(8), "10");
        assert_shown("c", Value::UInt(65), "A");
        assert_shown("s", Value::Text("abc".to_owned()), "abc");
        assert_shown("S", Value::Text("abc".to_owned()), "abc");
        assert_shown("5s", Value::Text("abc".to_owned()), "  abc");
        assert_shown("-5s", Value::Text("abc".to_owned()), "abc  ");
        assert_shown(".2s", Value::Text("abc".to_owned()), "ab");
        assert_shown("ws", Value::Text("abc".to_owned()), "abc");
        assert_shown("s", Value::UInt(12), "12");
        assert_shown(".2f", Value::Double(-1.5), "-1.50");
        assert_shown("f", Value::Float(0.5), "0.500000");
    }

    #[test]
    fn formats_that_fit_no_such_value_change_nothing() {
        assert_shown("x", Value::Text("abc".to_owned()), "abc");
        assert_shown("q", Value::UInt(1), "1");
        assert_shown("", Value::UInt(1), "1");
        assert_shown("dd", Value::UInt(1), "1");
        assert_shown("c", Value::Int(-1), "-1");
        assert_shown("99999999999999999999d", Value::UInt(1), "1");
        // A width applies unchanged, up to a limit.
        let wide = "9999d";
        assert_eq!(filled(&format!("%2!{wide}!")).len(), MAX_WIDTH);
        // No second mark: no format.
        assert_eq!(filled("%2!x"), "2!x");
    }

    #[test]
    fn other_sequences_are_white_space_or_themselves() {
        assert_eq!(filled("100%%%n%t%.%!"), "100%\n\t.!");
        assert_eq!(filled("é%é"), "éé");
        assert_eq!(filled("end%"), "end%");
    }

    #[test]
    fn every_value_that_is_a_number_is_formatted_as_one() {
        assert_shown("04d", Value::Port(80), "0080");
        assert_shown("02d", Value::Bool(true), "01");
        assert_shown("03d", Value::Win32Error(5), "005");
        let named = Value::Named { value: u64::MAX, signed: true, name: "None".into() };
        assert_shown("d", named, "-1");
    }

    #[test]
    fn zero_has_no_sign_and_a_kind_ends_its_format() {
        assert_shown("d", Value::Int(0), "0");
        assert_shown("+d", Value::Int(0), "+0");
        // Text that is not a format is left out.
        for format in ["5dx", "5d ", "5q", "5"] {
            assert_shown(format, Value::Int(7), "7");
        }
    }
}
