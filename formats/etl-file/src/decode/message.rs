//! The messages of events.

use super::printf::{Argument, Spec, put};
use super::{Fields, Value};
use crate::read::PointerSize;

/// Inserts fields into a message. `%1` to `%99` stand for fields, optionally with a printf format
/// between exclamation marks (`%1!08x!`); `%n`, `%t`, `%r` and `%b` stand for white space; `%0`
/// ends the message; `%` before any other character stands for that character. A number without a
/// field is left unchanged.
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
            // `%0` also ends the line, so the rest is not shown.
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

/// Returns the format between exclamation marks, and the text after it.
fn format_of(text: &str) -> (Option<&str>, &str) {
    text.strip_prefix('!')
        .and_then(|format| format.split_once('!'))
        .map_or((None, text), |(format, rest)| (Some(format), rest))
}

/// Returns a formatted value. If the format is invalid or does not fit the value, returns the plain
/// value.
fn show(value: &Value, format: Option<&str>) -> String {
    let formatted = || {
        let mut spec = Spec::parse(format?)?;
        let argument = match spec.conversion {
            's' | 'S' => Argument { text: Some(value.in_sentence()), ..Argument::default() },
            'c' | 'C' | 'd' | 'i' | 'u' | 'o' | 'x' | 'X' | 'p' => {
                let number = integer(value)?;
                if matches!(spec.conversion, 'c' | 'C') {
                    char::from_u32(number.0.try_into().ok()?)?;
                }
                Argument { number: Some(number), ..Argument::default() }
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                Argument { float: Some(float(value)?), ..Argument::default() }
            }
            _ => return None,
        };
        // The number of digits of a pointer is unknown without the pointer size.
        if spec.conversion == 'p' {
            spec.conversion = 'x';
        }
        let mut out = String::new();
        put(&argument, &spec, PointerSize::Eight, &mut out);
        Some(out)
    };
    formatted().unwrap_or_else(|| value.in_sentence())
}

/// Returns a value as a number with its size. A negative number that fits in 32 bits becomes a
/// 32-bit number, as in printf.
fn integer(value: &Value) -> Option<(u64, u8)> {
    let signed = |number: i64| {
        i32::try_from(number).map_or_else(
            |_| (number.cast_unsigned(), 8),
            |narrow| (narrow.cast_unsigned().into(), 4),
        )
    };
    Some(match value {
        Value::Int(number) => signed(*number),
        Value::Named { value: number, signed: true, .. } => signed(number.cast_signed()),
        Value::UInt(number)
        | Value::Hex(number)
        | Value::Pointer(number)
        | Value::ProcessId(number)
        | Value::ThreadId(number)
        | Value::Code { address: number, .. }
        | Value::Named { value: number, .. } => (*number, 8),
        Value::NtStatus(number) | Value::HResult(number) | Value::Win32Error(number) => {
            ((*number).into(), 8)
        }
        Value::Port(number) => ((*number).into(), 8),
        Value::Bool(on) => ((*on).into(), 8),
        _ => return None,
    })
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
    use super::super::printf::MAX_WIDTH;
    use super::*;

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

    /// Checks that a value is formatted as by C's printf.
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
        assert_shown("+08.2f", Value::Double(1.5), "+0001.50");
        assert_shown("e", Value::Double(1500.0), "1.500000e+03");
        assert_shown("g", Value::Double(0.5), "0.5");
        assert_shown("#x", Value::UInt(0), "0");
        assert_shown("#o", Value::UInt(8), "010");
        assert_shown("p", Value::Pointer(0xAB), "ab");
    }

    #[test]
    fn formats_that_fit_no_such_value_change_nothing() {
        assert_shown("x", Value::Text("abc".to_owned()), "abc");
        assert_shown("q", Value::UInt(1), "1");
        assert_shown("", Value::UInt(1), "1");
        assert_shown("dd", Value::UInt(1), "1");
        assert_shown("c", Value::Int(-1), "-1");
        // A width is applied as written, up to a limit.
        for wide in ["9999d", "99999999999999999999d"] {
            assert_eq!(filled(&format!("%2!{wide}!")).len(), MAX_WIDTH);
        }
        // Without a second exclamation mark, there is no format.
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
        // An invalid format is ignored; the value is shown without it.
        for format in ["5dx", "5d ", "5q", "5"] {
            assert_shown(format, Value::Int(7), "7");
        }
    }
}
