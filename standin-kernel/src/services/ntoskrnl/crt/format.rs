//! The format strings of `DbgPrint` and of the C runtime's printing routines.

use crate::ground::memory::{self, BadAddress};
use crate::services::ntoskrnl::context::Context;

/// The arguments after a format, in slots of eight bytes. On 64-bit Windows, a `va_list` is the
/// address of the next slot.
pub struct Arguments(u64);

impl Arguments {
    /// Returns the arguments at this address, which is a `va_list`.
    pub const fn at(address: u64) -> Self {
        Self(address)
    }

    fn next(&mut self) -> Result<u64, BadAddress> {
        let value = memory::read(self.0)?;
        self.0 = self.0.wrapping_add(8);
        Ok(value)
    }
}

/// The character width of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Bytes in a code page.
    Narrow,
    /// UTF-16 units.
    Wide,
}

/// A piece of formatted output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Characters from a narrow format or string.
    Narrow(Vec<u8>),
    /// Characters from a wide format or string.
    Wide(Vec<u16>),
}

/// The result of formatting.
pub struct Formatted {
    /// The output.
    pub pieces: Vec<Piece>,
    /// Set if a directive converts between wide and narrow characters. This is allowed only at
    /// `PASSIVE_LEVEL`, because the conversion tables are pageable.
    pub converts: bool,
}

/// The maximum length of one directive's output. A driver's width or precision can be any number.
const LONGEST: usize = 0x1_0000;

/// The argument size that a directive's modifier specifies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Default,
    Char,
    Short,
    Long,
    LongLong,
    Pointer,
    Wide,
}

/// A directive without its conversion.
struct Directive {
    left: bool,
    sign: Option<u8>,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    size: Size,
}

/// Reads the units of a format string.
struct Reader<'format> {
    units: &'format [u16],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        let unit = self.units.get(self.at)?;
        Some(u8::try_from(*unit).unwrap_or(b'?'))
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, text: &str) -> bool {
        let rest = self.units.get(self.at..).unwrap_or_default();
        let matches = rest.len() >= text.len()
            && rest.iter().zip(text.bytes()).all(|(unit, byte)| *unit == u16::from(byte));
        if matches {
            self.at += text.len();
        }
        matches
    }

    fn number(&mut self) -> usize {
        let mut value = 0_usize;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            self.at += 1;
            value = value.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
        }
        value
    }
}

/// Formats arguments. `width` is the width of the format string's characters.
///
/// # Errors
///
/// Returns an error if an argument, or a string to which an argument points, cannot be read.
pub fn format(
    format: &[u16],
    width: Width,
    arguments: &mut Arguments,
) -> Result<Formatted, BadAddress> {
    let mut out = Formatted { pieces: Vec::new(), converts: false };
    let mut reader = Reader { units: format, at: 0 };
    while reader.at < format.len() {
        let rest = format.get(reader.at..).unwrap_or_default();
        let plain = rest.iter().position(|unit| *unit == u16::from(b'%'));
        let plain = plain.unwrap_or(rest.len());
        if plain > 0 {
            let text = rest.get(..plain).unwrap_or_default();
            out.push_units(text, width);
            reader.at += plain;
            continue;
        }
        reader.at += 1;
        if reader.take("%") {
            out.push_text("%", width);
            continue;
        }
        let directive = directive(&mut reader, arguments)?;
        let Some(conversion) = reader.next() else {
            break;
        };
        convert(&mut out, &directive, conversion, width, arguments)?;
    }
    Ok(out)
}

/// Parses a directive's flags, width, precision and size.
fn directive(reader: &mut Reader<'_>, arguments: &mut Arguments) -> Result<Directive, BadAddress> {
    let mut directive = Directive {
        left: false,
        sign: None,
        alternate: false,
        zero: false,
        width: 0,
        precision: None,
        size: Size::Default,
    };
    loop {
        match reader.peek() {
            Some(b'-') => directive.left = true,
            Some(b'+') => directive.sign = Some(b'+'),
            Some(b' ') => directive.sign = directive.sign.or(Some(b' ')),
            Some(b'#') => directive.alternate = true,
            Some(b'0') => directive.zero = true,
            _ => break,
        }
        reader.at += 1;
    }
    if reader.take("*") {
        let value = as_int(arguments.next()?);
        directive.left |= value < 0;
        directive.width = usize::try_from(value.unsigned_abs()).unwrap_or(LONGEST);
    } else {
        directive.width = reader.number();
    }
    if reader.take(".") {
        directive.precision = if reader.take("*") {
            usize::try_from(as_int(arguments.next()?)).ok()
        } else {
            Some(reader.number())
        };
    }
    directive.width = directive.width.min(LONGEST);
    directive.precision = directive.precision.map(|digits| digits.min(LONGEST));
    directive.size = size(reader);
    Ok(directive)
}

fn size(reader: &mut Reader<'_>) -> Size {
    let mut size = Size::Default;
    loop {
        size = if reader.take("I64") || reader.take("ll") || reader.take("j") {
            Size::LongLong
        } else if reader.take("I32") {
            Size::Long
        } else if reader.take("I") || reader.take("z") || reader.take("t") {
            Size::Pointer
        } else if reader.take("hh") {
            Size::Char
        } else if reader.take("h") {
            Size::Short
        } else if reader.take("l") || reader.take("L") {
            Size::Long
        } else if reader.take("w") {
            Size::Wide
        } else {
            return size;
        };
    }
}

const fn as_int(value: u64) -> i32 {
    ((value & 0xFFFF_FFFF) as u32).cast_signed()
}

/// Prints an argument according to its conversion.
fn convert(
    out: &mut Formatted,
    directive: &Directive,
    conversion: u8,
    width: Width,
    arguments: &mut Arguments,
) -> Result<(), BadAddress> {
    let size = directive.size;
    let other = match width {
        Width::Narrow => Width::Wide,
        Width::Wide => Width::Narrow,
    };
    // A modifier determines the width. If there is none, a lower-case letter means the width of the
    // format string, and an upper-case letter means the other width.
    let text_width = match (size, conversion.is_ascii_uppercase()) {
        (Size::Short | Size::Char, _) => Width::Narrow,
        (Size::Long | Size::LongLong | Size::Wide, _) => Width::Wide,
        (_, false) => width,
        (_, true) => other,
    };
    match conversion {
        b'd' | b'i' => {
            let value = match size {
                Size::LongLong | Size::Pointer => arguments.next()?.cast_signed(),
                Size::Short => i64::from(((arguments.next()? & 0xFFFF) as u16).cast_signed()),
                Size::Char => i64::from(((arguments.next()? & 0xFF) as u8).cast_signed()),
                _ => i64::from(as_int(arguments.next()?)),
            };
            let sign = if value < 0 { Some(b'-') } else { directive.sign };
            let digits = value.unsigned_abs().to_string();
            out.number(directive, sign, "", &digits, width);
        }
        b'u' | b'o' | b'x' | b'X' => {
            let value = arguments.next()?;
            let value = match size {
                Size::LongLong | Size::Pointer => value,
                Size::Short => value & 0xFFFF,
                Size::Char => value & 0xFF,
                _ => value & 0xFFFF_FFFF,
            };
            let (prefix, digits) = match conversion {
                b'u' => ("", value.to_string()),
                b'o' => ("0", format!("{value:o}")),
                b'x' => ("0x", format!("{value:x}")),
                _ => ("0X", format!("{value:X}")),
            };
            let prefix = if directive.alternate && value != 0 { prefix } else { "" };
            out.number(directive, None, prefix, &digits, width);
        }
        b'p' | b'P' => {
            let digits = format!("{:016X}", arguments.next()?);
            out.padded(directive, Piece::Narrow(digits.into_bytes()), width);
        }
        b'c' | b'C' => {
            let value = arguments.next()?;
            let piece = match text_width {
                Width::Narrow => Piece::Narrow(vec![(value & 0xFF) as u8]),
                Width::Wide => Piece::Wide(vec![(value & 0xFFFF) as u16]),
            };
            out.text(directive, piece, width);
        }
        b's' | b'S' => {
            let address = arguments.next()?;
            let limit = directive.precision.unwrap_or(LONGEST);
            let piece = match (address, text_width) {
                (0, _) => Piece::Narrow(clipped(b"(null)", limit)),
                (_, Width::Narrow) => Piece::Narrow(memory::read_c_string(address, limit)?),
                (_, Width::Wide) => Piece::Wide(wide_string(address, limit)?),
            };
            out.text(directive, piece, width);
        }
        b'Z' => {
            // If there is no modifier, the argument is an ANSI string for both widths.
            let is_wide = matches!(size, Size::Wide | Size::Long);
            let piece = counted(arguments.next()?, is_wide, directive.precision)?;
            out.text(directive, piece, width);
        }
        // Storing the count through the pointer is not supported, but the pointer still occupies a
        // slot.
        b'n' => {
            arguments.next()?;
        }
        // The kernel does not print floating-point numbers, but the argument still occupies a slot.
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
            arguments.next()?;
            out.push_text(&char::from(conversion).to_string(), width);
        }
        other => out.push_text(&char::from(other).to_string(), width),
    }
    Ok(())
}

fn clipped(bytes: &[u8], limit: usize) -> Vec<u8> {
    bytes.get(..limit).unwrap_or(bytes).to_vec()
}

/// Returns the units of a wide string, up to its end or the limit.
pub fn wide_string(address: u64, limit: usize) -> Result<Vec<u16>, BadAddress> {
    let mut units = Vec::new();
    let mut at = address;
    while units.len() < limit {
        match memory::read::<u16>(at)? {
            0 => break,
            unit => units.push(unit),
        }
        at = at.wrapping_add(2);
    }
    Ok(units)
}

/// Returns the characters of a counted string.
fn counted(address: u64, is_wide: bool, precision: Option<usize>) -> Result<Piece, BadAddress> {
    let limit = precision.unwrap_or(usize::MAX);
    if address == 0 {
        return Ok(Piece::Narrow(clipped(b"(null)", limit)));
    }
    let length = usize::from(memory::read::<u16>(address)?);
    let buffer: u64 = memory::read(address.wrapping_add(8))?;
    if buffer == 0 {
        return Ok(Piece::Narrow(clipped(b"(null)", limit)));
    }
    let bytes = memory::read_bytes(buffer, length)?;
    if !is_wide {
        return Ok(Piece::Narrow(clipped(&bytes, limit)));
    }
    let units = bytes.chunks_exact(2).take(limit);
    Ok(Piece::Wide(units.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()))
}

impl Piece {
    const fn len(&self) -> usize {
        match self {
            Self::Narrow(bytes) => bytes.len(),
            Self::Wide(units) => units.len(),
        }
    }
}

impl Formatted {
    fn push_units(&mut self, units: &[u16], width: Width) {
        self.pieces.push(match width {
            // The units of a narrow format string are its bytes.
            Width::Narrow => Piece::Narrow(units.iter().map(|unit| (unit & 0xFF) as u8).collect()),
            Width::Wide => Piece::Wide(units.to_vec()),
        });
    }

    fn push_text(&mut self, text: &str, width: Width) {
        let units: Vec<u16> = text.bytes().map(u16::from).collect();
        self.push_units(&units, width);
    }

    fn fill(&mut self, text: &str, count: usize, width: Width) {
        if count > 0 {
            self.push_text(&text.repeat(count), width);
        }
    }

    /// Prints a number: its sign or prefix, and at least as many digits as the precision specifies.
    fn number(
        &mut self,
        directive: &Directive,
        sign: Option<u8>,
        prefix: &str,
        digits: &str,
        width: Width,
    ) {
        // With precision 0, the number 0 produces no digits.
        let digits = if directive.precision == Some(0) && digits == "0" { "" } else { digits };
        let mut head = sign.map_or_else(String::new, |sign| char::from(sign).to_string());
        head.push_str(prefix);
        let mut zeros = directive.precision.unwrap_or(0).saturating_sub(digits.len());
        let used = head.len() + zeros + digits.len();
        let padding = directive.width.saturating_sub(used);
        let by_zeros = directive.zero && !directive.left && directive.precision.is_none();
        if by_zeros {
            zeros += padding;
        } else if !directive.left {
            self.fill(" ", padding, width);
        }
        self.push_text(&head, width);
        self.fill("0", zeros, width);
        self.push_text(digits, width);
        if directive.left {
            self.fill(" ", padding, width);
        }
    }

    /// Prints a string whose character width may differ from the format string's.
    fn text(&mut self, directive: &Directive, piece: Piece, width: Width) {
        let is_wide = matches!(piece, Piece::Wide(_));
        self.converts |= is_wide != (width == Width::Wide);
        self.padded(directive, piece, width);
    }

    fn padded(&mut self, directive: &Directive, piece: Piece, width: Width) {
        let padding = directive.width.saturating_sub(piece.len());
        let filler = if directive.zero { "0" } else { " " };
        if directive.left {
            self.pieces.push(piece);
            self.fill(" ", padding, width);
        } else {
            self.fill(filler, padding, width);
            self.pieces.push(piece);
        }
    }

    /// Returns the output as the debugger output shows it.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut bytes = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Narrow(more) => bytes.extend_from_slice(more),
                Piece::Wide(units) => bytes.extend(String::from_utf16_lossy(units).into_bytes()),
            }
        }
        text.push_str(&String::from_utf8_lossy(&bytes));
        text
    }

    /// Returns the output in the system code page.
    pub fn to_narrow(&self) -> Vec<u8> {
        let bytes = |piece: &Piece| match piece {
            Piece::Narrow(bytes) => bytes.clone(),
            Piece::Wide(units) => {
                units.iter().map(|unit| super::code_page::to_byte(*unit)).collect()
            }
        };
        self.pieces.iter().flat_map(bytes).collect()
    }

    /// Returns the output as UTF-16 units.
    pub fn to_wide(&self) -> Vec<u16> {
        let units = |piece: &Piece| match piece {
            Piece::Narrow(bytes) => {
                bytes.iter().map(|byte| super::code_page::to_unit(*byte)).collect()
            }
            Piece::Wide(units) => units.clone(),
        };
        self.pieces.iter().flat_map(units).collect()
    }
}

/// Returns the `va_list` for the current call of a variadic routine. `named` is the number of the
/// routine's named parameters.
pub fn variadic(context: &Context, named: u64) -> Arguments {
    let first = context.call().stack.wrapping_add(8);
    Arguments::at(first.wrapping_add(named * 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn print(text: &str, arguments: &[u64]) -> String {
        let mut arguments = Arguments::at(arguments.as_ptr() as u64);
        format(&units(text), Width::Narrow, &mut arguments).unwrap().to_text()
    }

    #[test]
    fn numbers_have_flags_widths_and_precisions() {
        let minus_5 = 0x1234_5678_FFFF_FFFB;
        for (text, argument, expected) in [
            ("%d|", minus_5, "-5|"),
            ("%i|", 7, "7|"),
            ("%u|", minus_5, "4294967291|"),
            ("%5d|", 42, "   42|"),
            ("%-5d|", 42, "42   |"),
            ("%05d|", minus_5, "-0005|"),
            ("%+d|", 3, "+3|"),
            ("% d|", 3, " 3|"),
            ("%.3d|", 5, "005|"),
            ("%5.3d|", minus_5, " -005|"),
            ("%05.3d|", 5, "  005|"),
            ("%.0d|", 0, "|"),
            ("%x|", 0xABC, "abc|"),
            ("%X|", 0xABC, "ABC|"),
            ("%#x|", 0xABC, "0xabc|"),
            ("%#x|", 0, "0|"),
            ("%#06X|", 0xAB, "0X00AB|"),
            ("%o|", 8, "10|"),
            ("%#o|", 8, "010|"),
            ("%hd|", 0x1_8000, "-32768|"),
            ("%hx|", 0x1_8000, "8000|"),
            ("%hhu|", 0x1FF, "255|"),
            ("%lld|", u64::MAX, "-1|"),
            ("%I64x|", 0x1_0000_0000, "100000000|"),
            ("%I64d|", u64::MAX, "-1|"),
            ("%I32d|", u64::MAX, "-1|"),
            ("%Ix|", 0x1_0000_0000, "100000000|"),
            ("%zu|", 0x1_0000_0000, "4294967296|"),
            ("%ld|", u64::MAX, "-1|"),
            ("%lx|", 0x1_0000_0000, "0|"),
            ("%p|", 0xFFFF_8000_0000_1234, "FFFF800000001234|"),
            ("%20p|", 0x12, "    0000000000000012|"),
            ("%c|", 0x41, "A|"),
            ("%3c|", 0x41, "  A|"),
            ("%C|", 0x41, "A|"),
            ("%%%d%%", 1, "%1%"),
        ] {
            assert_eq!(print(text, &[argument, 0]), expected, "{text}");
        }
        assert_eq!(print("%*d|%-*d|", &[4, 1, 3, 2]), "   1|2  |");
        assert_eq!(print("%*d|", &[(-4_i64).cast_unsigned(), 1]), "1   |");
        assert_eq!(print("%.*x|", &[4, 1]), "0001|");
    }

    #[test]
    fn strings_of_both_widths_are_printed() {
        let narrow = c"narrow".as_ptr() as u64;
        let wide_units: Vec<u16> = units("wide\0");
        let wide = wide_units.as_ptr() as u64;
        assert_eq!(print("%s|%S|", &[narrow, wide]), "narrow|wide|");
        assert_eq!(print("%hs|%ls|%ws|", &[narrow, wide, wide]), "narrow|wide|wide|");
        assert_eq!(print("%8s|%-8s|%.3s|", &[narrow, narrow, narrow]), "  narrow|narrow  |nar|");
        assert_eq!(print("%s|%wZ|", &[0, 0]), "(null)|(null)|");
        let counted = [0x0008_0006_u64, wide];
        let address = counted.as_ptr() as u64;
        assert_eq!(print("%wZ|%.2wZ|", &[address, address]), "wid|wi|");
        let ansi = [0x0008_0004_u64, narrow];
        let address = ansi.as_ptr() as u64;
        assert_eq!(print("%Z|%hZ|", &[address, address]), "narr|narr|");
        let mut arguments = [wide, narrow];
        let all = |arguments: &[u64; 2]| {
            let mut arguments = Arguments::at(arguments.as_ptr() as u64);
            format(&units("%s %S %d"), Width::Wide, &mut arguments)
        };
        let text = all(&arguments).unwrap();
        assert!(text.converts);
        assert_eq!(text.to_wide().get(..12), Some(&units("wide narrow ")[..]));
        arguments[1] = 8;
        assert!(all(&arguments).is_err());
    }

    #[test]
    fn what_is_not_printed_shifts_nothing() {
        assert_eq!(print("%f|%d|", &[0x3FF0_0000_0000_0000, 2]), "f|2|");
        assert_eq!(print("%n%d|", &[8, 2]), "2|");
        assert_eq!(print("%y%d|", &[2]), "y2|");
        assert_eq!(print("%d%", &[2]), "2");
        assert_eq!(print("%999999999999d", &[2]).len(), LONGEST);
    }
}
