//! The names of files: their parts, wildcards and permitted characters.
//!
//! The system's code page has one byte for each character, so no byte leads another.

use crate::{
    execution::{
        routine::{At, routine},
        strings::units,
    },
    ground::{NtResult, NtStatus, abi::UnicodeString, opaque::AnsiString},
    services::ntoskrnl::{
        context::{Context, Entries},
        crt::{code_page, letters::upcase},
        rtl::expressions::is_match,
        variables::{FAT, HPFS, WILDCARD, legal_character},
    },
};

pub const ENTRIES: Entries = &[
    routine("FsRtlAreNamesEqual", are_equal),
    routine("FsRtlDissectDbcs", dissect_bytes),
    routine("FsRtlDissectName", dissect),
    routine("FsRtlDoesDbcsContainWildCards", bytes_have_wildcards),
    routine("FsRtlDoesNameContainWildCards", has_wildcards),
    routine("FsRtlIsDbcsInExpression", bytes_are_in_expression),
    routine("FsRtlIsFatDbcsLegal", is_legal_for::<true>),
    routine("FsRtlIsHpfsDbcsLegal", is_legal_for::<false>),
    routine("FsRtlRemoveDotsFromPath", remove_dots),
    routine("RtlIsValidOemCharacter", is_in_code_page),
];

/// `STATUS_IO_REPARSE_DATA_INVALID`: a path leads above its root.
const ABOVE_ROOT: NtStatus = NtStatus::from_bits(0xC000_0278);

/// Returns the bytes of a counted string.
fn bytes_of(context: &Context, string: u64) -> Vec<u8> {
    let string: UnicodeString = context.read(string);
    context.read_bytes(string.buffer, string.length.into())
}

fn units_of(context: &Context, string: At<UnicodeString>) -> Vec<u16> {
    units(&bytes_of(context, string.0))
}

fn are_equal(
    context: &Context,
    first: At<UnicodeString>,
    second: At<UnicodeString>,
    ignores_case: bool,
    table: At<u16>,
) -> bool {
    let convert = |unit: u16| {
        if table.is_null() {
            upcase(unit)
        } else {
            context.read(table.0.wrapping_add(u64::from(unit) * 2))
        }
    };
    let read = |string| {
        let mut units = units_of(context, string);
        if ignores_case {
            for unit in &mut units {
                *unit = convert(*unit);
            }
        }
        units
    };
    read(first) == read(second)
}

/// Stores the part of a path before the next backslash, and the part after it. Skips a backslash
/// at the beginning.
fn store_parts(context: &Context, path: u64, [first, rest]: [u64; 2], size: u16) {
    let path: UnicodeString = context.read(path);
    let bytes = context.read_bytes(path.buffer, path.length.into());
    let is_backslash = |unit: &[u8]| unit[0] == b'\\' && unit[1..].iter().all(|byte| *byte == 0);
    let is_separator: Vec<bool> = bytes.chunks_exact(size.into()).map(is_backslash).collect();
    let start = usize::from(is_separator.first() == Some(&true));
    let end = is_separator.iter().skip(start).position(|is| *is);
    let end = end.map_or(is_separator.len(), |count| start + count);
    let part = |from: usize, to: usize| {
        let of = |count: usize| u16::try_from(count).unwrap_or(0).saturating_mul(size);
        let length = of(to.saturating_sub(from));
        if length == 0 {
            return UnicodeString::default();
        }
        let buffer = path.buffer + u64::from(of(from));
        UnicodeString { length, maximum_length: length, buffer, ..Default::default() }
    };
    context.write(first, &part(start, end));
    context.write(rest, &part(end + 1, is_separator.len()));
}

fn dissect_bytes(
    context: &Context,
    path: At<AnsiString>,
    first: At<AnsiString>,
    rest: At<AnsiString>,
) {
    store_parts(context, path.0, [first.0, rest.0], 1);
}

fn dissect(
    context: &Context,
    path: At<UnicodeString>,
    first: At<UnicodeString>,
    rest: At<UnicodeString>,
) {
    store_parts(context, path.0, [first.0, rest.0], 2);
}

fn is_wildcard(unit: u16) -> bool {
    u8::try_from(unit).is_ok_and(|byte| legal_character(byte) & WILDCARD != 0)
}

/// Returns whether the last part of a path has wildcards.
fn has_wildcards(context: &Context, name: At<UnicodeString>) -> bool {
    let units = units_of(context, name).into_iter().rev();
    units.take_while(|unit| *unit != u16::from(b'\\')).any(is_wildcard)
}

fn bytes_have_wildcards(context: &Context, name: At<AnsiString>) -> bool {
    bytes_of(context, name.0).into_iter().any(|byte| is_wildcard(byte.into()))
}

/// Compares a name with a pattern. Both are in upper case.
fn bytes_are_in_expression(
    context: &Context,
    expression: At<AnsiString>,
    name: At<AnsiString>,
) -> bool {
    let read = |string: At<AnsiString>| -> Vec<u16> {
        bytes_of(context, string.0).into_iter().map(u16::from).collect()
    };
    is_match(&read(expression), &read(name))
}

/// The parts of a name that a caller permits.
#[derive(Clone, Copy)]
struct Permitted {
    wildcards: bool,
    path: bool,
    leading_backslash: bool,
}

/// Returns whether a name, or each part of a path, is legal.
fn is_legal(name: &[u8], permitted: Permitted, is_part_legal: fn(&[u8], bool) -> bool) -> bool {
    let name = match name {
        [] => return false,
        [b'\\'] => return permitted.leading_backslash,
        [b'\\', rest @ ..] if permitted.leading_backslash => rest,
        _ => name,
    };
    let is_legal = |part: &[u8]| {
        let is_dots = permitted.wildcards && matches!(part, b"." | b"..");
        is_dots || !part.is_empty() && is_part_legal(part, permitted.wildcards)
    };
    if permitted.path { name.split(|byte| *byte == b'\\').all(is_legal) } else { is_legal(name) }
}

fn has_only(name: &[u8], file_system: u8, wildcards: bool) -> bool {
    let mask = if wildcards { file_system | WILDCARD } else { file_system };
    name.iter().all(|byte| legal_character(*byte) & mask != 0)
}

fn is_pattern(name: &[u8]) -> bool {
    name.iter().any(|byte| is_wildcard((*byte).into()))
}

/// Returns whether a name has at most eight characters before its only dot, and three after it.
fn is_short_name(name: &[u8], wildcards: bool) -> bool {
    let mut parts = name.split(|byte| *byte == b'.');
    let mut is_part = |longest: usize, may_lack: bool| {
        parts.next().map_or(may_lack, |part| {
            (1..=longest).contains(&part.len()) && part.last() != Some(&b' ')
        })
    };
    let has_form = is_part(8, false) && is_part(3, true);
    let has_form = has_form && parts.next().is_none();
    // A pattern needs only permitted characters.
    (has_form || wildcards && is_pattern(name)) && has_only(name, FAT, wildcards)
}

fn is_long_name(name: &[u8], wildcards: bool) -> bool {
    let has_form = name.len() <= 255 && !matches!(name.last(), Some(b' ' | b'.'));
    (has_form || wildcards && is_pattern(name)) && has_only(name, HPFS, wildcards)
}

/// Returns whether a name is legal for FAT or, otherwise, for HPFS.
fn is_legal_for<const IS_FAT: bool>(
    context: &Context,
    name: At<AnsiString>,
    wildcards: bool,
    path: bool,
    leading_backslash: bool,
) -> bool {
    let permitted = Permitted { wildcards, path, leading_backslash };
    let is_part_legal = if IS_FAT { is_short_name } else { is_long_name };
    is_legal(&bytes_of(context, name.0), permitted, is_part_legal)
}

/// Returns a path without the parts `.` and without each part before a part `..`; `None` if that
/// leads above the root.
fn without_dots(path: &[u16]) -> Option<Vec<u16>> {
    const DOT: u16 = b'.' as u16;
    const BACKSLASH: u16 = b'\\' as u16;
    let mut kept: Vec<&[u16]> = Vec::new();
    let is_absolute = path.first() == Some(&BACKSLASH);
    let relative = if is_absolute { &path[1..] } else { path };
    let mut ends_in_folder = false;
    for part in relative.split(|unit| *unit == BACKSLASH) {
        ends_in_folder = true;
        match part {
            [DOT] => {}
            [DOT, DOT] => {
                kept.pop()?;
            }
            _ => {
                kept.push(part);
                ends_in_folder = false;
            }
        }
    }
    let mut text = kept.join(&BACKSLASH);
    if is_absolute {
        text.insert(0, BACKSLASH);
    }
    if ends_in_folder && !kept.is_empty() {
        text.push(BACKSLASH);
    }
    Some(text)
}

fn remove_dots(context: &Context, path: At<u16>, length: u16, new_length: At<u16>) -> NtResult {
    let kept = without_dots(&units(&context.read_bytes(path.0, length.into())));
    let bytes: Vec<u8> = kept.ok_or(ABOVE_ROOT)?.into_iter().flat_map(u16::to_le_bytes).collect();
    context.write_bytes(path.0, &bytes);
    context.write(new_length.0, &u16::try_from(bytes.len()).unwrap_or(length));
    Ok(())
}

/// Converts a character to upper case in the code page, if the page has it.
fn is_in_code_page(context: &Context, character: At<u16>) -> bool {
    let unit: u16 = context.read(character.0);
    let upper = upcase(unit);
    let is_known = |unit| code_page::to_unit(code_page::to_byte(unit)) == unit;
    if !is_known(upper) {
        return false;
    }
    context.write(character.0, &upper);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fat_have_a_base_and_an_extension() {
        let all = Permitted { wildcards: false, path: true, leading_backslash: true };
        for (name, permitted, expected) in [
            ("A", all, true),
            ("ABCDEFGH.TXT", all, true),
            ("ABCDEFGHI", all, false),
            ("A.TEXT", all, false),
            ("A.B.C", all, false),
            ("A.", all, false),
            (".A", all, false),
            ("A .B", all, false),
            ("A+B", all, false),
            ("..", all, false),
            ("..", Permitted { wildcards: true, ..all }, true),
            ("A.B.C", Permitted { wildcards: true, ..all }, false),
            ("ABCDEFGHI*", Permitted { wildcards: true, ..all }, true),
            ("*.*.*", Permitted { wildcards: true, ..all }, true),
            ("", all, false),
            ("\\", all, true),
            ("\\A\\B.C", all, true),
            ("\\A\\\\B", all, false),
            ("\\A", Permitted { leading_backslash: false, ..all }, false),
            ("A\\B", Permitted { path: false, ..all }, false),
            ("A*.?", all, false),
            ("A*.?", Permitted { wildcards: true, ..all }, true),
        ] {
            assert_eq!(is_legal(name.as_bytes(), permitted, is_short_name), expected, "{name}");
        }
        let long = vec![b'a'; 255];
        assert!(is_legal(&long, all, is_long_name) && is_legal(b"a+b.c.d", all, is_long_name));
        assert!(!is_legal(&[&long[..], b"a"].concat(), all, is_long_name));
        assert!(!is_legal(b"a.", all, is_long_name));
    }

    #[test]
    fn dots_are_removed() {
        for (path, expected) in [
            (r"\a\.\b", Some(r"\a\b")),
            (r"\a\..\b", Some(r"\b")),
            (r"a\b\..\..", Some("")),
            (r"\a\b\..", Some(r"\a\")),
            (r"\a...b\.c", Some(r"\a...b\.c")),
            (r"\..", None),
            (r"a\..\..\b", None),
        ] {
            let path: Vec<u16> = path.encode_utf16().collect();
            let found = without_dots(&path).map(|kept| String::from_utf16_lossy(&kept));
            assert_eq!(found.as_deref(), expected, "{path:?}");
        }
    }
}
