//! Formats numbers, bytes and times without `core::fmt`, which would dominate the run time.

use jiff::Timestamp;

use super::Escaped;
use crate::time::FileTime;

/// The two hexadecimal digits of each byte.
const DIGITS: [[u8; 2]; 256] = {
    let digit = b"0123456789abcdef";
    let mut all = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        all[byte] = [digit[byte >> 4], digit[byte & 15]];
        byte += 1;
    }
    all
};

/// Appends bytes as hexadecimal digits, two per byte.
pub fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.extend_from_slice(&DIGITS[usize::from(*byte)]);
    }
}

/// Appends a number in decimal.
pub fn decimal(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number in hexadecimal after `0x`, with at least `width` digits.
pub fn hexadecimal(number: u64, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0x");
    let mut digits = [0; 16];
    for (to, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        to.copy_from_slice(&DIGITS[usize::from(byte)]);
    }
    let significant = 16 - (number.leading_zeros() / 4) as usize;
    let shown = significant.max(width).clamp(1, 16);
    out.extend_from_slice(digits.get(16 - shown..).unwrap_or_default());
}

/// The order of a GUID's bytes in its text. The first three fields are little-endian.
const ORDER: [&[usize]; 5] = [&[3, 2, 1, 0], &[5, 4], &[7, 6], &[8, 9], &[10, 11, 12, 13, 14, 15]];

/// Appends a GUID in lower case with hyphens.
pub fn guid(guid: etw_wire::Guid, out: &mut Vec<u8>) {
    let bytes = guid.to_bytes();
    for (part, order) in ORDER.into_iter().enumerate() {
        if part != 0 {
            out.push(b'-');
        }
        for at in order {
            if let Some(byte) = bytes.get(*at) {
                out.extend_from_slice(&DIGITS[usize::from(*byte)]);
            }
        }
    }
}

/// Writes times, and caches the text of the last second.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// The time from which times are counted in seconds; `None` for absolute times.
    origin: Option<FileTime>,
    /// The second since 1601 whose text is cached.
    second: Option<i64>,
    /// The text of the second, without its fraction.
    text: String,
}

/// Appends text on one line, with escaped control characters; see [`Escaped`].
pub fn escaped(text: &str, out: &mut Vec<u8>) {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        out.extend_from_slice(text.as_bytes());
    } else {
        out.extend_from_slice(Escaped(text).to_string().as_bytes());
    }
}

/// The number of 100 ns units in a second.
const SECOND: i64 = 10_000_000;

impl Times {
    /// Returns a writer of times as seconds since `origin`, or of absolute times if it is `None`.
    #[must_use]
    pub fn since(origin: Option<FileTime>) -> Self {
        Self { origin, ..Self::default() }
    }

    /// Returns true if times are seconds since an origin.
    #[must_use]
    pub const fn are_relative(&self) -> bool {
        self.origin.is_some()
    }

    /// Appends a time in the format of [`FileTime`], or as seconds with seven decimal places.
    pub fn write(&mut self, time: FileTime, out: &mut Vec<u8>) {
        if let Some(origin) = self.origin {
            let units = i128::from(time.raw()) - i128::from(origin.raw());
            let (sign, units) = (if units < 0 { "-" } else { "" }, units.unsigned_abs());
            let second = u128::from(SECOND.unsigned_abs());
            let text = format!("{sign}{}.{:07}", units / second, units % second);
            out.extend_from_slice(text.as_bytes());
            return;
        }
        let second = time.raw().div_euclid(SECOND);
        if self.second != Some(second) {
            let start = FileTime::from_raw(second.saturating_mul(SECOND));
            if let Ok(start) = Timestamp::from_nanosecond(start.unix_nanos()) {
                self.text = start.strftime("%Y-%m-%dT%H:%M:%S.").to_string();
            } else {
                self.second = None;
                out.extend_from_slice(time.to_string().as_bytes());
                return;
            }
            self.second = Some(second);
        }
        out.extend_from_slice(self.text.as_bytes());
        let mut fraction = time.raw().rem_euclid(SECOND);
        let mut digits = [b'0'; 7];
        for digit in digits.iter_mut().rev() {
            *digit = u8::try_from(fraction % 10).map_or(b'0', |number| b'0' + number);
            fraction /= 10;
        }
        out.extend_from_slice(&digits);
        out.push(b'Z');
    }
}

/// Appends a JSON string with its quotation marks.
pub fn json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    json_escaped(text, out);
    out.push(b'"');
}

/// Appends the content of a JSON string.
pub fn json_escaped(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0C => b'f',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(bytes.get(copied..at).unwrap_or_default());
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            out.extend_from_slice(b"00");
            out.extend_from_slice(&DIGITS[usize::from(*byte)]);
        }
        copied = at + 1;
    }
    out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use etw_wire::Guid;

    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_have_the_form_of_core_fmt() {
        for number in [0, 1, 0xF, 0x10, 0xABC, 0x1234_5678_9ABC_DEF0, u64::MAX] {
            let shown = text(|out| hexadecimal(number, 1, out));
            assert_eq!(shown, format!("{number:#x}"));
            let shown = text(|out| hexadecimal(number, 8, out));
            assert_eq!(shown, format!("{number:#010x}"));
        }
        assert_eq!(text(|out| hex(&[0, 0x5A, 0xFF], out)), "005aff");
        let known = Guid::from_u128(0x0123_4567_89ab_cdef_0246_8ace_1357_9bdf);
        assert_eq!(text(|out| guid(known, out)), known.to_string());
    }

    #[test]
    fn times_have_the_form_of_file_time() {
        let mut times = Times::default();
        let raw = [0, 1, -1, 9_999_999, 10_000_000, i64::MAX, i64::MIN, -116_444_736];
        let second = 132_264_173_104_203_138;
        for raw in raw.into_iter().chain([second, second + 1, second + SECOND]) {
            let time = FileTime::from_raw(raw);
            let shown = text(|out| times.write(time, out));
            assert_eq!(shown, time.to_string(), "{raw}");
        }
    }

    #[test]
    fn times_since_an_origin_are_seconds() {
        let origin = 132_264_173_104_203_138;
        let mut times = Times::since(Some(FileTime::from_raw(origin)));
        for (units, expected) in [
            (0, "0.0000000"),
            (1, "0.0000001"),
            (-1, "-0.0000001"),
            (25_000_000, "2.5000000"),
            (-36_000 * SECOND, "-36000.0000000"),
        ] {
            let shown = text(|out| times.write(FileTime::from_raw(origin + units), out));
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn strings_have_the_form_of_serde_json() {
        for string in ["", "plain", "\"\\/\n\r\t\u{8}\u{c}\0\u{1f}\u{7f}é\u{2028}x"] {
            let shown = text(|out| json_string(string, out));
            assert_eq!(shown, serde_json::to_string(string).unwrap());
        }
    }
}
