//! The messages of events.

use std::ops::Range;

use syn::{LitStr, ext::IdentExt as _};

use crate::{
    Field, FieldType, Shape, attribute,
    errors::{bail, error},
};

/// The valid sequences in a message.
const SUPPORTED: &str = "supported: `%1` to `%99` for a field, with a format as in `%1!x!`, `%%` for \
                         a percent sign, `%n`, `%r`, `%t` and `%b` for white space, `%!` for an \
                         exclamation mark, `%0` for the end";

/// The most UTF-16 units of a message: the size in bytes of a `MESSAGE_RESOURCE_ENTRY`, a `u16`, includes
/// a header of 4 bytes, a line break, the NUL and padding to a multiple of 4.
const MAX_UNITS: usize = (u16::MAX as usize / 4 * 4 - 4) / 2 - 3;

/// Checks that every `%` of an event's message begins a valid sequence, that the message has no insertion
/// of Rust's syntax, and that it fits in a message table.
///
/// # Errors
///
/// Returns an error at the `%`, if the compiler reports its position inside the literal, or else at
/// the literal.
pub fn check(message: &LitStr, fields: &[Field]) -> syn::Result<()> {
    attribute::printable(message)?;
    let text = message.value();
    let units = text.encode_utf16().count();
    if units > MAX_UNITS {
        bail!(
            message.span(),
            "the message has {units} UTF-16 units, but a message table holds at most {MAX_UNITS}; shorten it",
        );
    }
    let Some((at, what)) = mistake(&text, fields).or_else(|| of_rust(&text, fields)) else {
        return Ok(());
    };
    // Columns count from 1, like the compiler's.
    let column = text.get(..at.start).map_or(0, |text| text.chars().count()) + 1;
    Err(error!(place(message, &text, at), "column {column} of the message: {what}"))
}

/// Returns the first insertion in the syntax of Rust, such as `{}`, `{0}`, `{size}` or `{size:x}`, and its
/// range in bytes. Other text in braces is shown as it is.
fn of_rust(text: &str, fields: &[Field]) -> Option<(Range<usize>, String)> {
    let mut next = 0;
    for (at, _) in text.match_indices('{') {
        let Some(inside) =
            text.get(at + 1..).and_then(|rest| rest.split_once('}')).map(|one| one.0)
        else {
            break;
        };
        let (name, format) = inside.split_once(':').unwrap_or((inside, ""));
        let of_format = |one: char| one.is_ascii_alphanumeric() || "<>^+-#?.$*".contains(one);
        let number = if name.is_empty() {
            next += 1;
            Some(next)
        } else if let Ok(index) = name.parse::<usize>() {
            Some(index + 1)
        } else {
            fields.iter().position(|field| field.ident.unraw() == name).map(|at| at + 1)
        };
        if let Some(number) = number.filter(|_| format.chars().all(of_format)) {
            let what =
                format!("`{{{inside}}}` is shown as it is; write `%{number}` for a field's value");
            return Some((at..at + inside.len() + 2, what));
        }
    }
    None
}

/// Returns the mistake in a field's format, which is one of `FormatMessage`.
fn wrong_format(number: usize, format: &str, field: &Field) -> Option<String> {
    let rest = format.trim_start_matches(['-', '+', ' ', '#', '0']);
    let rest = rest.trim_start_matches(|one: char| one.is_ascii_digit() || one == '.');
    let sizes = ["ll", "l", "h", "I32", "I64", "I", "w"];
    let kind = sizes.iter().find_map(|size| rest.strip_prefix(size)).unwrap_or(rest);
    if !["c", "C", "d", "i", "o", "u", "x", "X", "s", "S", "p"].contains(&kind) {
        return Some(format!(
            "`!{format}!` is not a format of `%{number}`; write a conversion of printf for integers or \
             strings, such as `%{number}!x!` or `%{number}!s!`, or `%{number}` alone"
        ));
    }
    let is_text =
        matches!(&field.kind, FieldType::Values(scalar, _, Shape::One) if scalar.is_text());
    (is_text && !["s", "S"].contains(&kind)).then(|| {
        format!("`!{format}!` is a format of numbers, and `%{number}` is text; write `%{number}`")
    })
}

/// Returns the first mistake in a message, and its range in bytes.
fn mistake(text: &str, all: &[Field]) -> Option<(Range<usize>, String)> {
    let fields = all.len();
    let mut at = 0;
    while let Some(before) = text.get(at..).and_then(|rest| rest.find('%')) {
        let start = at + before;
        let after = text.get(start + 1..).unwrap_or_default();
        let digits = after.bytes().take(2).take_while(u8::is_ascii_digit).count();
        let (number, tail) = after.split_at(digits);
        at = start + 1 + digits;
        if digits > 0 {
            let number: usize = number.parse().unwrap_or(0);
            if number > fields {
                return Some((start..at, missing(number, fields)));
            }
            if number > 0
                && let Some(format) = tail.strip_prefix('!')
            {
                let Some((format, _)) = format.split_once('!') else {
                    let what = format!(
                        "the format of `%{number}` has no end; write `%{number}!x!`, or \
                         `%{number}%!` for an exclamation mark after the field"
                    );
                    return Some((start..at, what));
                };
                at += format.len() + 2;
                let field = all.get(number - 1)?;
                if let Some(what) = wrong_format(number, format, field) {
                    return Some((start..at, what));
                }
            }
            continue;
        }
        let shown = match after.chars().next() {
            Some('%' | 'n' | 'r' | 't' | 'b' | '!') => {
                at += 1;
                continue;
            }
            // FormatMessage's documentation lists `% ` and `%.`; the percent sign is not shown.
            Some(' ') => "`% ` stands for a space alone".to_owned(),
            Some('.') => "`%.` stands for a period alone".to_owned(),
            Some(other) => format!("`%{other}` stands for nothing"),
            None => "`%` at the end stands for nothing".to_owned(),
        };
        let what = format!("{shown}; write `%%` for a percent sign ({SUPPORTED})");
        return Some((start..at, what));
    }
    None
}

fn missing(number: usize, fields: usize) -> String {
    match fields {
        0 => format!(
            "it refers to %{number}, but the event has no fields; add the field, or write \
             `%%` for a percent sign"
        ),
        1 => format!(
            "it refers to %{number}, but the event has one field, %1; add the field, or \
             change the number"
        ),
        _ => format!(
            "it refers to %{number}, but the event has {fields} fields, %1 to %{fields}; \
             add the field, or change the number"
        ),
    }
}

/// Returns the position of part of a literal, if the compiler reports it and the source text equals
/// the value; otherwise, returns the literal's position.
fn place(message: &LitStr, text: &str, at: Range<usize>) -> proc_macro2::Span {
    let literal = message.token();
    let source = literal.to_string();
    source
        .find(text)
        .and_then(|before| literal.subspan(before + at.start..before + at.end))
        .unwrap_or_else(|| message.span())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an integer field and, if `count` is 2, a field of text.
    fn fields(count: usize) -> Vec<Field> {
        let written = ["", "size: u32", "size: u32, text: &str"][count];
        let source = format!(
            "#[provider(name = \"A\")] mod a {{ #[event(level = Info, keyword = none)] fn e({written}); }}"
        );
        crate::parse::source(&source).unwrap().remove(0).events.remove(0).fields
    }

    fn checked(message: &str, count: usize) -> Result<(), String> {
        let fields = &fields(count);
        let message = LitStr::new(message, proc_macro2::Span::call_site());
        check(&message, fields).map_err(|error| error.to_string())
    }

    #[expect(clippy::literal_string_with_formatting_args, reason = "mistakes in messages")]
    #[test]
    fn every_percent_sign_stands_for_something() {
        for good in [
            "", "%1 of %2", "%1!08x!, 100%%", "%n%t%r%b%2%!", "%2!s!!", "%1%0", "%%1",
            "%1!-08.4I64X!%1!d!%2!ls!", "{other} {", "{ size } {\"a\": %1}",
            // The characters after a format, an insertion or `%%` are text.
            "%1!x!%2", "%0!", "%%%1%%", "%1%n",
        ] {
            assert_eq!(checked(good, 2), Ok(()), "{good}");
        }
        for (bad, column, part) in [
            ("%3", 1, "%3"),
            ("é %9", 3, "%9"),
            ("%1!08x", 1, "%1"),
            ("100% off", 4, "%"),
            ("100%", 4, "%"),
            ("%%%s", 3, "%"),
            ("50%.", 3, "%"),
            ("%10", 1, "%10"),
            ("%1!x!%3", 6, "%3"),
            ("%1!08x!%3", 8, "%3"),
            ("%1!%!", 1, "%1!%!"),
            ("%1!q!", 1, "%1!q!"),
            ("%1!f!", 1, "%1!f!"),
            ("%2!d!", 1, "%2!d!"),
            ("%n%s", 3, "%"),
            ("%1%3", 3, "%3"),
            ("%99%", 1, "%99"),
        ] {
            let (place, _) = mistake(bad, &fields(2)).unwrap();
            assert_eq!(&bad[place], part, "{bad}");
            let error = checked(bad, 2).unwrap_err();
            let start = format!("column {column} of the message: ");
            assert!(error.starts_with(&start), "{bad}: {error}");
        }
        for (bad, fields, text) in [
            ("%1", 0, "the event has no fields; "),
            ("%2", 1, "the event has one field, %1; "),
            ("%3", 2, "the event has 2 fields, %1 to %2; "),
            ("%1!x", 1, "the format of `%1` has no end; write `%1!x!`"),
            ("%s", 1, "`%s` stands for nothing; "),
            ("%", 1, "`%` at the end stands for nothing; "),
            ("a\0b", 0, "the text contains the control character U+0000; remove it"),
            ("a\u{FFFE}b", 0, "the text contains U+FFFE, which is not a character; remove it"),
            ("100% sure", 1, "`% ` stands for a space alone; write `%%` for a percent sign "),
            ("50%.", 1, "`%.` stands for a period alone; write `%%` for a percent sign "),
            ("%1!q!", 1, "`!q!` is not a format of `%1`; write a conversion of printf"),
            ("%2!d!", 2, "`!d!` is a format of numbers, and `%2` is text; write `%2`"),
            ("a {}", 1, "column 3 of the message: `{}` is shown as it is; write `%1` for a field"),
            ("{size} {text:?}", 2, "`{size}` is shown as it is; write `%1`"),
            ("{0:#x}", 1, "`{0:#x}` is shown as it is; write `%1`"),
            (&"x".repeat(MAX_UNITS + 1), 0, "shorten it"),
        ] {
            let error = checked(bad, fields).unwrap_err();
            assert!(error.contains(text), "{bad}: {error}");
        }
    }
}
