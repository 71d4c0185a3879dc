//! Numbers and text in the formats of C's `printf`.

use crate::read::PointerSize;

/// The maximum width and precision.
pub const MAX_WIDTH: usize = 1024;

/// An argument in every form that a placeholder can need.
#[derive(Clone, Debug, Default)]
pub struct Argument {
    pub text: Option<String>,
    /// The number and its size in bytes.
    pub number: Option<(u64, u8)>,
    pub float: Option<f64>,
}

/// The format of a placeholder: the text between the exclamation marks.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of C's printf")]
pub struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    pub conversion: char,
}

impl Spec {
    /// Parses a format such as `08x`, `I64d`, `-10s` or `.2f`.
    pub fn parse(text: &str) -> Option<Self> {
        let flags = text.len() - text.trim_start_matches(['-', '+', ' ', '#', '0']).len();
        let (flags, rest) = text.split_at_checked(flags)?;
        let (width, rest) = digits(rest)?;
        let (precision, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (precision, rest) = digits(rest)?;
                (Some(precision), rest)
            }
            None => (None, rest),
        };
        // The argument's type determines its size, so the length modifiers are skipped.
        let lengths = ["I64", "I32", "I", "hh", "h", "ll", "l", "L", "w", "z", "j", "t"];
        let letters = lengths
            .iter()
            .find_map(|length| rest.strip_prefix(length).filter(|rest| !rest.is_empty()));
        let mut letters = letters.unwrap_or(rest).chars();
        let conversion = letters.next()?;
        letters.next().is_none().then_some(())?;
        Some(Self {
            left: flags.contains('-'),
            plus: flags.contains('+'),
            space: flags.contains(' '),
            alternate: flags.contains('#'),
            zero: flags.contains('0'),
            width,
            precision,
            conversion,
        })
    }
}

/// Reads a number, and returns it with the rest of the text.
fn digits(text: &str) -> Option<(usize, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(length)?;
    let number = digits
        .bytes()
        .fold(0_usize, |sum, digit| (sum * 10 + usize::from(digit - b'0')).min(MAX_WIDTH));
    Some((number, rest))
}

/// Writes an argument.
pub fn put(argument: &Argument, spec: &Spec, pointer: PointerSize, out: &mut String) {
    match spec.conversion {
        's' | 'S' | 'Z' => {
            let text = argument.text.clone().unwrap_or_else(|| plain(argument));
            let text = match spec.precision {
                Some(most) => text.chars().take(most).collect(),
                None => text,
            };
            pad(&text, spec, out);
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' => match argument.float {
            Some(number) => float(number, spec, out),
            None => pad(&plain(argument), spec, out),
        },
        conversion => match argument.number {
            Some((number, size)) => integer(number, size, conversion, spec, pointer, out),
            None => pad(&plain(argument), spec, out),
        },
    }
}

/// Returns an argument in the default format.
fn plain(argument: &Argument) -> String {
    let number = argument.number.map(|(number, size)| signed(number, size).to_string());
    let text = argument.text.clone().or(number);
    let float = argument.float.map(|number| number.to_string());
    text.or(float).unwrap_or_default()
}

fn integer(
    number: u64,
    size: u8,
    conversion: char,
    spec: &Spec,
    pointer: PointerSize,
    out: &mut String,
) {
    let of_digits = |digits: String| match spec.precision {
        Some(least) => format!("{digits:0>least$}"),
        None => digits,
    };
    let prefix = |prefix| {
        if spec.alternate && number != 0 { prefix } else { "" }
    };
    let (sign, digits) = match conversion {
        'x' => (prefix("0x"), of_digits(format!("{number:x}"))),
        'X' => (prefix("0X"), of_digits(format!("{number:X}"))),
        'o' => (prefix("0"), of_digits(format!("{number:o}"))),
        'u' => ("", of_digits(number.to_string())),
        'p' => ("", format!("{number:0width$X}", width = 2 * pointer.bytes())),
        'c' | 'C' => {
            let code = u32::try_from(number).ok().and_then(char::from_u32);
            let code = code.unwrap_or(char::REPLACEMENT_CHARACTER);
            pad(code.encode_utf8(&mut [0; 4]), spec, out);
            return;
        }
        _ => {
            let number = signed(number, size);
            let sign = match number {
                ..0 => "-",
                _ if spec.plus => "+",
                _ if spec.space => " ",
                _ => "",
            };
            (sign, of_digits(number.unsigned_abs().to_string()))
        }
    };
    with_sign(sign, &digits, spec.precision.is_none(), spec, out);
}

/// Writes a sign or prefix, then digits. `zeros` allows zeros between them.
fn with_sign(sign: &str, digits: &str, zeros: bool, spec: &Spec, out: &mut String) {
    if spec.zero && !spec.left && zeros {
        out.push_str(sign);
        let used = sign.len() + digits.len();
        out.extend(std::iter::repeat_n('0', spec.width.saturating_sub(used)));
        out.push_str(digits);
    } else {
        pad(&format!("{sign}{digits}"), spec, out);
    }
}

fn float(number: f64, spec: &Spec, out: &mut String) {
    let sign = match number.is_sign_negative() {
        true => "-",
        false if spec.plus => "+",
        false if spec.space => " ",
        false => "",
    };
    let size = number.abs();
    if !size.is_finite() {
        pad(&format!("{sign}{size}"), spec, out);
        return;
    }
    let precision = spec.precision.unwrap_or(6);
    let digits = match spec.conversion {
        'e' | 'E' => exponential(size, precision),
        'g' | 'G' => general(size, precision.max(1), spec.alternate),
        _ => format!("{size:.precision$}"),
    };
    let digits = if spec.conversion.is_ascii_uppercase() { digits.to_uppercase() } else { digits };
    with_sign(sign, &digits, true, spec, out);
}

/// Writes a number as C's `%e` does, with a sign and at least two digits in the exponent.
fn exponential(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) =
        exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Writes a number as C's `%g` does: with an exponent if necessary, and without trailing zeros.
fn general(number: f64, precision: usize, keep_zeros: bool) -> String {
    let text = exponential(number, precision - 1);
    let exponent = text.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    let exponent = exponent.unwrap_or(0);
    let trim = |digits: &str| {
        if keep_zeros || !digits.contains('.') {
            return digits.to_owned();
        }
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match usize::try_from(exponent) {
        Ok(exponent) if exponent < precision => {
            trim(&format!("{number:.digits$}", digits = precision - 1 - exponent))
        }
        Err(_) if exponent >= -4 => {
            let digits = precision - 1 + exponent.unsigned_abs() as usize;
            trim(&format!("{number:.digits$}"))
        }
        _ => {
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
            format!("{}e{exponent}", trim(digits))
        }
    }
}

fn pad(text: &str, spec: &Spec, out: &mut String) {
    let fill = spec.width.saturating_sub(text.chars().count());
    let fill = std::iter::repeat_n(' ', fill);
    if spec.left {
        out.push_str(text);
        out.extend(fill);
    } else {
        out.extend(fill);
        out.push_str(text);
    }
}

/// Sign-extends a number of `size` bytes.
pub fn signed(number: u64, size: u8) -> i64 {
    let unused = 64 - 8 * u32::from(size.clamp(1, 8));
    (number << unused).cast_signed() >> unused
}
