//! The patterns with which file names are compared.

use crate::{
    execution::{
        routine::{At, routine},
        strings::units,
    },
    ground::abi::UnicodeString,
    services::ntoskrnl::{
        context::{Context, Entries},
        crt::letters::upcase,
    },
};

pub const ENTRIES: Entries = &[routine("FsRtlIsNameInExpression", is_name_in_expression)];

/// `DOS_STAR`, `DOS_QM` and `DOS_DOT`, with the meanings that these characters have in MS-DOS.
const DOS_STAR: u8 = b'<';
const DOS_QM: u8 = b'>';
const DOS_DOT: u8 = b'"';

/// Compares a name with a pattern. To ignore case, only the name is converted: drivers pass patterns in upper
/// case.
fn is_name_in_expression(
    context: &Context,
    expression: At<UnicodeString>,
    name: At<UnicodeString>,
    ignores_case: bool,
    table: At<u16>,
) -> bool {
    let read = |at: u64| {
        let string: UnicodeString = context.read(at);
        units(&context.read_bytes(string.buffer, string.length.into()))
    };
    let (expression, mut name) = (read(expression.0), read(name.0));
    if ignores_case {
        for unit in &mut name {
            let entry = table.0.wrapping_add(u64::from(*unit) * 2);
            *unit = if table.is_null() { upcase(*unit) } else { context.read(entry) };
        }
    }
    is_match(&expression, &name)
}

/// Compares a name with a pattern.
pub fn is_match(expression: &[u16], name: &[u16]) -> bool {
    if expression.is_empty() || name.is_empty() {
        return expression.is_empty() && name.is_empty();
    }
    let special = |unit: u16| u8::try_from(unit).unwrap_or(0);
    let last_dot = name.iter().rposition(|unit| special(*unit) == b'.');
    // The places in the pattern that the beginning of the name leads to.
    let mut places = vec![false; expression.len() + 1];
    places[0] = true;
    for (number, unit) in name.iter().enumerate() {
        let is_dot = special(*unit) == b'.';
        let mut following = vec![false; places.len()];
        // Set if the place before is one that can also stand for nothing.
        let mut is_reached = false;
        for (place, wanted) in expression.iter().enumerate() {
            if !places[place] && !is_reached {
                continue;
            }
            let wildcard = special(*wanted);
            // For `DOS_STAR`, all dots but the last are like other characters.
            let ends = wildcard == DOS_STAR && Some(number) == last_dot;
            let repeats = matches!(wildcard, b'*' | DOS_STAR) && !ends;
            is_reached = repeats || ends || (wildcard == DOS_QM && is_dot);
            following[place] |= repeats;
            following[place + 1] |= ends
                || !is_reached
                    && match wildcard {
                        b'?' | DOS_QM => true,
                        DOS_DOT => is_dot,
                        _ => wanted == unit,
                    };
        }
        places = following;
    }
    let may_be_nothing = |unit: &u16| [b'*', DOS_STAR, DOS_QM, DOS_DOT].contains(&special(*unit));
    let rest =
        expression.iter().rposition(|unit| !may_be_nothing(unit)).map_or(0, |place| place + 1);
    places[rest..].contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (expression, matching, others) in [
            ("", &[""][..], &["a"][..]),
            ("*", &["a", ".", "a.b"], &[""]),
            ("A?C*.SYS", &["ABC.SYS", "ABCD.SYS"], &["AC.SYS", "ABC.SYSX", "abc.sys"]),
            ("*?", &["a", "abc"], &[""]),
            ("*.C.D", &["A.B.C.D", ".C.D"], &["A.B.C"]),
            ("A*AB*ABC", &["AABABC", "AABABCABDABC"], &["AABAB"]),
            ("N<EXE", &["N.EXE", "NAME.EXE", "NAMEEXE"], &["NAME.EX"]),
            ("N<", &["NAME"], &["NAME.EXE"]),
            ("N<.EXE", &["N.A.EXE"], &["N.EXE.A"]),
            ("N<\"*", &["N", "N.", "NAME", "NAME.A.B"], &["M"]),
            ("N>M.E", &["NAM.E"], &["NM.E"]),
            ("N>>.E", &["N.E", "NA.E", "NAM.E"], &["NAME.E"]),
            ("N\"E", &["N.E"], &["NE", "NAE"]),
            ("N.E\"", &["N.E", "N.E."], &["N.EA"]),
        ] {
            let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
            for (names, expected) in [(matching, true), (others, false)] {
                for name in names {
                    let found = is_match(&units(expression), &units(name));
                    assert_eq!(found, expected, "{expression:?} {name:?}");
                }
            }
        }
        // The time grows with the product of the lengths only.
        let long = |text: &str, count| text.encode_utf16().collect::<Vec<_>>().repeat(count);
        assert!(is_match(&long("*", 3_000), &long("a", 3_000)));
        assert!(!is_match(&[long("<*", 1_500), long("b", 1)].concat(), &long("a", 3_000)));
    }
}
