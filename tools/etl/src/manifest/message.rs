//! Messages of events.

use crate::decode::Fields;

/// Puts fields into a message: `%1` to `%99` stand for fields, optionally with
/// a format between exclamation marks, which is not applied; `%n`, `%t`, `%r`
/// and `%b` for white space; `%` before another character for that character.
/// A number without a field stays as it is.
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
        let value = number
            .parse::<usize>()
            .ok()
            .and_then(|number| fields.get(number.checked_sub(1)?));
        if let Some((_, value)) = value {
            out.push_str(&value.in_sentence());
            rest = without_format(tail);
        } else {
            out.push('%');
            out.push_str(number);
            rest = tail;
        }
    }
    out.push_str(rest);
    out
}

/// What follows a format between exclamation marks.
fn without_format(text: &str) -> &str {
    text.strip_prefix('!')
        .and_then(|format| format.split_once('!'))
        .map_or(text, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Value;

    fn filled(message: &str) -> String {
        let fields: Fields = vec![
            ("a".into(), Value::Text("one".to_owned())),
            ("b".into(), Value::UInt(2)),
        ];
        fill(message, &fields)
    }

    #[test]
    fn numbers_stand_for_fields() {
        assert_eq!(filled("%1 and %2"), "one and 2");
        assert_eq!(filled("%2!04x!|%1!s!!"), "2|one!");
        assert_eq!(filled("%10 %3 %0"), "%10 %3 %0");
    }

    #[test]
    fn other_sequences_are_white_space_or_themselves() {
        assert_eq!(filled("100%%%n%t%.%!"), "100%\n\t.!");
        assert_eq!(filled("é%é"), "éé");
        assert_eq!(filled("end%"), "end%");
    }
}
