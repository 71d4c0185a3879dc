//! Compares values with the text that denotes them.

use std::net::{IpAddr, SocketAddr};

use etw_wire::Guid;

use super::time::OtherTime;
use etl_file::decode::Value;
use etl_file::internals::show::Hex;

/// The minimum number of digits after the decimal point of a rounded number.
const ROUNDED_DIGITS: usize = 6;

/// Returns true if text denotes a value. Text in an unknown form counts as different.
pub(super) fn is_same(value: &Value, text: &str) -> bool {
    let bare = text.trim();
    match value {
        Value::Null => bare.is_empty(),
        Value::Int(number) => is_signed(*number, bare),
        Value::UInt(number)
        | Value::Hex(number)
        | Value::ProcessId(number)
        | Value::ThreadId(number)
        | Value::Pointer(number)
        | Value::Code { address: number, .. } => is_unsigned(*number, bare),
        Value::Port(port) => is_unsigned((*port).into(), bare),
        Value::HResult(code) if is_signed(code.cast_signed().into(), bare) => true,
        Value::NtStatus(code) | Value::HResult(code) | Value::Win32Error(code) => {
            let code = u64::from(*code);
            is_unsigned(code, bare)
                || codes(bare).any(|stated| stated == code)
                || value.status_name().is_some_and(|name| name == bare)
        }
        Value::Float(number) => {
            bare.parse().is_ok_and(|other: f32| is_float(*number, other))
                || is_rounded(f64::from(*number), bare)
        }
        Value::Double(number) => {
            bare.parse().is_ok_and(|other: f64| is_double(*number, other))
                || is_rounded(*number, bare)
        }
        Value::Bool(truth) => {
            bare.eq_ignore_ascii_case(if *truth { "true" } else { "false" })
                || is_unsigned(u64::from(*truth), bare)
        }
        Value::Text(own) => line_ends(own) == line_ends(text),
        Value::Binary(bytes) => {
            let digits = without_0x(bare).unwrap_or(bare);
            digits.eq_ignore_ascii_case(&Hex(bytes).to_string())
        }
        Value::Guid(guid) => is_guid(*guid, bare),
        Value::FileTime(time) => OtherTime::parse(bare).is_some_and(|other| other.is(*time)),
        Value::SystemTime(time) => {
            OtherTime::parse(bare).is_some_and(|other| other.is_system_time(*time))
        }
        Value::Sid(sid) => bare.eq_ignore_ascii_case(&sid.to_string()),
        Value::Ipv4(address) => bare.parse() == Ok(IpAddr::V4(*address)),
        Value::Ipv6(address) => bare.parse() == Ok(IpAddr::V6(*address)),
        Value::SocketAddress(address) => bare.parse::<SocketAddr>() == Ok(*address),
        Value::Named { value, signed, name } => {
            is_name(name, bare)
                || if *signed {
                    is_signed(value.cast_signed(), bare)
                } else {
                    is_unsigned(*value, bare)
                }
        }
        // Arrays and structures are compared element by element.
        Value::Array(_) | Value::Struct(_) => false,
    }
}

/// Returns the code that the system's description denotes, if the text does not contain the code.
/// The descriptions depend on the system and its language.
pub(super) fn described_code(value: &Value, text: &str) -> Option<u32> {
    let (Value::NtStatus(code) | Value::HResult(code) | Value::Win32Error(code)) = value else {
        return None;
    };
    let is_sentence = text.chars().any(char::is_alphabetic)
        && (text.trim().contains(char::is_whitespace) || !text.is_ascii());
    (is_sentence && codes(text).next().is_none()).then_some(*code)
}

/// Returns the hexadecimal codes in text such as `Unknown HResult Error code: 0xddcd`.
fn codes(text: &str) -> impl Iterator<Item = u64> {
    text.split(|one: char| !one.is_ascii_alphanumeric())
        .filter_map(|word| hexadecimal(without_0x(word)?))
}

/// Returns true if text is this GUID, with or without braces, in upper or lower case.
pub(super) fn is_guid(guid: Guid, text: &str) -> bool {
    text.trim().parse() == Ok(guid)
}

/// Parses text as a number: decimal, or hexadecimal after 0x.
pub(super) fn unsigned(text: &str) -> Option<u64> {
    let text = text.trim();
    match without_0x(text) {
        Some(digits) => hexadecimal(digits),
        // `parse` would accept a plus sign.
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

fn hexadecimal(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| u64::from_str_radix(digits, 16).ok())?
}

fn without_0x(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

fn is_unsigned(number: u64, text: &str) -> bool {
    unsigned(text) == Some(number)
}

/// Returns true if text is this signed number: in decimal, or as hexadecimal bits of a width that
/// holds the number.
fn is_signed(number: i64, text: &str) -> bool {
    let Some(digits) = without_0x(text) else {
        return text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit())
            && text.parse() == Ok(number);
    };
    let Some(bits) = hexadecimal(digits) else {
        return false;
    };
    if number >= 0 {
        return bits == number.cast_unsigned();
    }
    [8_u32, 16, 32, 64].into_iter().any(|width| {
        let unused = 64 - width;
        let fits = number << unused >> unused == number;
        fits && bits == number.cast_unsigned() << unused >> unused
    })
}

#[expect(clippy::float_cmp, reason = "a text that is read back has to be the same number")]
fn is_float(own: f32, other: f32) -> bool {
    own == other || own.is_nan() && other.is_nan()
}

#[expect(clippy::float_cmp, reason = "a text that is read back has to be the same number")]
fn is_double(own: f64, other: f64) -> bool {
    own == other || own.is_nan() && other.is_nan()
}

/// Returns true if text is this number, rounded to the digits after its decimal point.
fn is_rounded(number: f64, text: &str) -> bool {
    let Some((_, fraction)) = text.split_once('.') else {
        return false;
    };
    let is_plain = fraction.bytes().all(|byte| byte.is_ascii_digit());
    let digits = fraction.len();
    is_plain
        && (ROUNDED_DIGITS..=30).contains(&digits)
        && number.is_finite()
        && format!("{number:.digits$}") == text
}

/// Returns true if text is this name from a map. In the message compiler's resources, the strings
/// of maps end with a space. Vertical bars separate the names of bits.
fn is_name(name: &str, text: &str) -> bool {
    fn parts(text: &str) -> impl Iterator<Item = &str> {
        text.split('|').map(str::trim)
    }
    name.trim() == text || parts(name).eq(parts(text))
}

/// Returns text with line feeds as line ends. XML readers convert line ends in this way.
fn line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use etl_file::FileTime;
    use etl_file::decode::Sid;

    fn all(value: &Value, same: &[&str], different: &[&str]) {
        for text in same {
            assert!(is_same(value, text), "{value:?} is {text:?}");
        }
        for text in different {
            assert!(!is_same(value, text), "{value:?} is not {text:?}");
        }
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        let same = ["1234", "0x4d2", "0x4D2", "0x000004D2", "    1234", "0X4d2"];
        let different = ["1235", "0x1234", "4d2", "+1234", "1,234", "1234.0", "", "0x", "-1234"];
        for value in [
            Value::UInt(1234),
            Value::Hex(1234),
            Value::Pointer(1234),
            Value::ProcessId(1234),
            Value::ThreadId(1234),
            Value::Port(1234),
            Value::Win32Error(1234),
            Value::NtStatus(1234),
            Value::Int(1234),
        ] {
            all(&value, &same, &different);
        }
        all(
            &Value::UInt(u64::MAX),
            &["18446744073709551615", "0xFFFFFFFFFFFFFFFF"],
            &["-1", "0x1FFFFFFFFFFFFFFFF", "184467440737095516150"],
        );
        all(
            &Value::NtStatus(0xC000_0005),
            &["0xC0000005", "0xc0000005", "3221225477"],
            &["-1073741819", "C0000005", "0xFFFFFFFFC0000005"],
        );
    }

    #[test]
    fn status_codes_are_in_the_texts_of_tdh() {
        all(
            &Value::HResult(0xDDCD),
            &["Unknown HResult Error code: 0xddcd", "0xDDCD", "56781"],
            &["Unknown HResult Error code: 0xddce", "HResult Error 0xddcd0: x", "ddcd", "x"],
        );
        all(
            &Value::HResult(0x8007_0002),
            &["HResult Error 0x80070002: The file is missing.", "-2147024894", "2147942402"],
            &["HResult Error 0x80070003: The file is missing.", "The file is missing."],
        );
        all(
            &Value::NtStatus(0xC000_0005),
            &["Unknown NTSTATUS Error code: 0xc0000005", "STATUS_ACCESS_VIOLATION"],
            &["STATUS_ACCESS_DENIED", "Unknown NTSTATUS Error code: 0xc00000050", ""],
        );
        let win32 = Value::Win32Error(5);
        all(&win32, &["Unknown Win32 Error code: 0x5", "ERROR_ACCESS_DENIED"], &["Error 5"]);
        for (text, is_text) in [
            ("{Access} is 0x%p ", true),
            ("拒绝访问。", true),
            ("Code 0x6", false),
            ("6", false),
            ("x", false),
            (" x ", false),
            ("", false),
        ] {
            let expected = is_text.then_some(5);
            assert_eq!(described_code(&win32, text), expected, "{text:?}");
            assert_eq!(described_code(&Value::UInt(5), text), None);
        }
    }

    #[test]
    fn signed_numbers_in_hexadecimal_have_a_width() {
        all(
            &Value::Int(-2),
            &["-2", "0xFE", "0xFFFE", "0xfffffffe", "0xFFFFFFFFFFFFFFFE"],
            &["2", "254", "4294967294", "0xFFFFFE", "-0x2", "0x2", "--2"],
        );
        all(&Value::Int(-300), &["0xFED4"], &["0xD4", "0xFED5"]);
        all(&Value::Int(i64::MIN), &["-9223372036854775808", "0x8000000000000000"], &["0x80", "0"]);
    }

    #[test]
    fn truth_is_a_word_or_a_number() {
        all(&Value::Bool(true), &["true", "True", "1"], &["false", "2", "yes", "-1", ""]);
        all(&Value::Bool(false), &["false", "FALSE", "0", "0x0"], &["true", "1", ""]);
    }

    #[test]
    fn guids_need_no_braces_and_have_any_case() {
        let guid = Guid::from_u128(0x2f4c_8a60_7d1b_4c35_9e02_51a6_0b7c_d8e9);
        all(
            &Value::Guid(guid),
            &["2f4c8a60-7d1b-4c35-9e02-51a60b7cd8e9", "{2F4C8A60-7D1B-4C35-9E02-51A60B7CD8E9}"],
            &[
                "2f4c8a607d1b4c359e0251a60b7cd8e9", "{2f4c8a60-7d1b-4c35-9e02-51a60b7cd8e9",
                "2f4c8a60-7d1b-4c35-9e02-51a60b7cd8e8",
            ],
        );
    }

    #[test]
    fn text_is_the_same_but_for_line_ends() {
        let value = Value::Text("a\r\nb ".to_owned());
        all(&value, &["a\nb ", "a\r\nb ", "a\rb "], &["a\nb", " a\nb ", "A\nb ", "a b "]);
        all(&Value::Text(String::new()), &[""], &[" ", "null"]);
        // A number that is text has only one form.
        all(&Value::Text("16".to_owned()), &["16"], &["0x10", " 16", "16.0"]);
        all(&Value::Null, &["", " "], &["null", "0"]);
    }

    #[test]
    fn bytes_are_hexadecimal_digits() {
        let value = Value::Binary(vec![0x0A, 0xBC]);
        all(&value, &["0abc", "0ABC", "0x0ABC"], &["abc", "0a bc", "0A-BC", "Crw=", ""]);
        all(&Value::Binary(Vec::new()), &["", "0x"], &["00"]);
    }

    #[test]
    fn decimal_fractions_are_exact_or_rounded_to_six_digits() {
        all(&Value::Double(0.5), &["0.5", "0.500000", "5e-1"], &["0.6", "0,5", ".5.", ""]);
        let third = Value::Double(1.0 / 3.0);
        all(&third, &["0.3333333333333333", "0.333333"], &["0.33333", "0.333334", "0.3"]);
        all(&Value::Float(0.1), &["0.1", "0.100000", "0.10000000149011612"], &["0.100001"]);
        all(&Value::Double(f64::NAN), &["NaN", "nan"], &["0"]);
        all(&Value::Float(f32::NAN), &["NaN"], &["0"]);
        all(&Value::Double(0.5), &[], &["NaN"]);
        all(&Value::Float(0.5), &[], &["NaN"]);
        all(&Value::Double(f64::INFINITY), &["inf"], &["1.#INF00", "0.000000"]);
    }

    #[test]
    fn maps_are_a_name_or_a_number() {
        let named = |value, signed, name: &str| Value::Named { value, signed, name: name.into() };
        all(
            &named(1, false, "Write"),
            &["Write", "Write ", "1", "0x1"],
            &["write", "2", "Read", ""],
        );
        all(
            &named(3, false, "sync|direct"),
            &["sync|direct", "sync | direct", "3"],
            &["sync", "direct|sync"],
        );
        all(&named(u64::MAX, true, "None"), &["None", "-1", "0xFFFFFFFF"], &["1"]);
    }

    #[test]
    fn addresses_times_and_identifiers_have_their_usual_forms() {
        all(&Value::Ipv4(Ipv4Addr::new(10, 0, 0, 1)), &["10.0.0.1"], &["10.0.0.01", "0x0100000A"]);
        all(&Value::Ipv6(Ipv6Addr::LOCALHOST), &["::1", "0:0:0:0:0:0:0:1"], &["[::1]", "1"]);
        let socket = Value::SocketAddress("10.0.0.1:80".parse().unwrap());
        all(&socket, &["10.0.0.1:80"], &["10.0.0.1", "10.0.0.1:81"]);
        let sid = Value::Sid(Sid { revision: 1, authority: 5, subauthorities: vec![18] });
        all(&sid, &["S-1-5-18", "s-1-5-18"], &["S-1-5-19", "NT AUTHORITY\\SYSTEM"]);
        let time = Value::FileTime(FileTime::from_raw(134_117_966_451_234_567));
        all(&time, &["2026-01-02T03:04:05.123456700Z"], &["134117966451234567"]);
        let code = Value::Code { address: 0x10, place: "a.sys+0x10".into() };
        all(&code, &["0x10", "16"], &["a.sys+0x10"]);
        all(&Value::Array(Vec::new()), &[], &["", "[]"]);
    }
}
