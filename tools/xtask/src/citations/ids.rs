//! The grammar of ids, and of the numbers that should be ids.
//!
//! | id | defined in |
//! |---|---|
//! | ETW-2.14, ETL-2.1 | the behaviour of ETW, the format of .etl files |
//! | V04 | the verifier's rules: V and two digits |
//! | O8 | unspecified behaviour: O and one or two digits |
//! | R-T4 | the requirements |
//!
//! An id stands alone: no letter, digit, `/`, `-` or `_` touches it. In a string literal,
//! the short ones, V04 and O8, count only where they are the whole literal or stand in
//! parentheses.
//!
//! A bare number is a section's where it begins an entry of a list in parentheses, as in
//! `(N.N, N.N: why)`, or where a comment begins with it and has no words of its own, as in
//! `// N.N, N.N`.

use super::{
    markdown,
    passage::{Kind, Passage, extension_of},
};

/// An anchor that defines an id.
#[derive(Debug, PartialEq, Eq)]
pub struct Definition {
    /// The id, as it is cited.
    pub id: String,
    /// The line that the anchor is in, counted from 1.
    pub line: usize,
    /// True if the id follows the anchor, so that readers see it.
    pub is_labelled: bool,
}

/// Returns the ids that a reference document defines.
pub fn definitions(text: &str) -> Vec<Definition> {
    let mut definitions = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        for (start, _) in line.match_indices("<a id=") {
            let anchor = line.get(start..).and_then(markdown::anchor);
            let Some((anchor, after)) = anchor else {
                continue;
            };
            let id = anchor.to_ascii_uppercase();
            if Id::at_start(&id).is_none_or(|found| found.text.len() != id.len()) {
                continue;
            }
            let label = after.trim_start_matches("</a>").trim_start_matches('*');
            let is_labelled = Id::at_start(label).is_some_and(|found| found.text == id);
            definitions.push(Definition { id, line: number, is_labelled });
        }
    }
    definitions
}

/// An id at the start of a string.
struct Id<'a> {
    text: &'a str,
    /// True if the id is short, such as V04 or O8, and could be another word in code.
    is_short: bool,
}

impl<'a> Id<'a> {
    fn at_start(text: &'a str) -> Option<Self> {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (length, is_short) =
            if let Some(rest) = text.strip_prefix("ETW-").or_else(|| text.strip_prefix("ETL-")) {
                (4 + dotted(rest)?.len(), false)
            } else if let Some(rest) = text.strip_prefix("R-") {
                let section = rest.bytes().next().filter(u8::is_ascii_uppercase)?;
                let number = digits(rest.strip_prefix(char::from(section))?);
                (3 + Some(number).filter(|number| *number > 0)?, false)
            } else if let Some(rest) = text.strip_prefix('V') {
                (1 + Some(digits(rest)).filter(|number| *number == 2)?, true)
            } else if let Some(rest) = text.strip_prefix('O') {
                let number = digits(rest);
                let is_number = (1..=2).contains(&number) && !rest.starts_with('0');
                (1 + Some(number).filter(|_| is_number)?, true)
            } else {
                return None;
            };
        let (id, after) = text.split_at_checked(length)?;
        let mut after = after.chars();
        let touched = match after.next() {
            Some('-') => after.next().is_some_and(char::is_alphanumeric),
            Some(letter) => letter.is_alphanumeric() || letter == '_',
            None => false,
        };
        (!touched).then_some(Self { text: id, is_short })
    }
}

/// Returns the dotted number that a string begins with: `2`, `2.14`, `6.5.7`.
fn dotted(text: &str) -> Option<&str> {
    let mut end = text.bytes().take_while(u8::is_ascii_digit).count();
    if end == 0 {
        return None;
    }
    while let Some(rest) = text.get(end..).and_then(|rest| rest.strip_prefix('.')) {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            break;
        }
        end += 1 + digits;
    }
    text.get(..end)
}

/// Returns the ids that a passage cites, with their lines.
pub(super) fn cited(passage: &Passage) -> Vec<(usize, String)> {
    let text = &passage.text;
    let mut found = Vec::new();
    let mut line = passage.line;
    let mut depth = 0_usize;
    let mut before = ' ';
    let mut skip = 0;
    for (offset, letter) in text.char_indices() {
        match letter {
            '\n' => line += 1,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let stands_alone = !(before.is_alphanumeric() || "-_/".contains(before));
        before = letter;
        if offset < skip || !stands_alone {
            continue;
        }
        if let Some(id) = text.get(offset..).and_then(Id::at_start) {
            skip = offset + id.text.len();
            let is_meant = !id.is_short
                || passage.kind != Kind::Literal
                || depth > 0
                || id.text.len() == text.len();
            if is_meant {
                found.push((line, id.text.to_owned()));
            }
        }
    }
    found
}

/// Returns the documents of `docs` that a comment names by their paths, with their lines.
pub(super) fn documents(passage: &Passage) -> Vec<(usize, &str)> {
    if passage.kind != Kind::Comment {
        return Vec::new();
    }
    let is_part = |letter: char| letter.is_alphanumeric() || "/-_.".contains(letter);
    let lines = passage.text.lines().zip(passage.line..);
    lines
        .flat_map(|(text, line)| {
            text.split(|letter| !is_part(letter)).map(move |word| (line, word))
        })
        .map(|(line, word)| (line, word.trim_end_matches('.')))
        .filter(|(_, word)| word.starts_with("docs/") && extension_of(word) == "md")
        .collect()
}

/// Returns the sections that a passage cites by their numbers alone, with their lines.
pub(super) fn bare(passage: &Passage) -> Vec<(usize, String)> {
    if passage.kind == Kind::Literal {
        return bare_in(&passage.text, passage.line);
    }
    let mut found = Vec::new();
    for (line, block) in markdown::prose(&passage.text) {
        let line = passage.line + line - 1;
        if passage.kind == Kind::Comment && block.split([',', ';']).all(is_section) {
            found.extend(block.split([',', ';']).map(|entry| (line, entry.trim().to_owned())));
        }
        found.extend(bare_in(&block, line));
    }
    found
}

/// Returns the sections that a string cites in its lists in parentheses.
fn bare_in(text: &str, line: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (open, _) in text.match_indices('(') {
        let Some(list) = text.get(open + 1..).and_then(|rest| rest.split(')').next()) else {
            continue;
        };
        for entry in list.split([',', ';']) {
            let Some(number) = section_at_start(entry.trim_start()) else {
                continue;
            };
            let after = entry.trim_start().get(number.len()..).unwrap_or_default();
            let has_three_parts = number.matches('.').count() == 2;
            let ends = after.trim().is_empty() || after.starts_with(':');
            let is_range = after.strip_prefix(" to ").is_some_and(is_section);
            let is_sentence = has_three_parts && after.starts_with(' ');
            if ends || is_range || is_sentence {
                let before = text.get(..open).unwrap_or_default();
                let line = line + before.matches('\n').count();
                found.push((line, number.to_owned()));
            }
        }
    }
    found
}

/// Returns true for a section's number and nothing else.
fn is_section(text: &str) -> bool {
    let text = text.trim();
    section_at_start(text).is_some_and(|number| number.len() == text.len())
}

/// Returns the number of a section that a string begins with: two or three parts, each of one or
/// two digits without leading zeros.
fn section_at_start(text: &str) -> Option<&str> {
    let number = dotted(text)?;
    let parts: Vec<&str> = number.split('.').collect();
    let is_section = matches!(parts.len(), 2 | 3)
        && parts.iter().all(|part| part.len() <= 2 && !part.starts_with('0'));
    let after = text.get(number.len()..)?.chars().next();
    (is_section && !after.is_some_and(char::is_alphanumeric)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::{Definition, bare, cited, definitions};
    use crate::citations::passage::{Kind, Passage};

    fn passage(kind: Kind, text: &str) -> Passage {
        Passage { line: 1, kind, text: text.to_owned() }
    }

    fn ids(kind: Kind, text: &str) -> Vec<String> {
        let cited = cited(&passage(kind, text));
        cited.into_iter().map(|(_, id)| id).collect()
    }

    #[test]
    fn ids_stand_alone() {
        let text = "ETW-2.14. (R-T4, O8; `V04`) V4 O257 /O2 -O1 NR-T4 R-T4-like V044 ETW-x \
                    ETW-6.5.7: V40/V41";
        let expected = ["ETW-2.14", "R-T4", "O8", "V04", "ETW-6.5.7", "V40"];
        assert_eq!(ids(Kind::Comment, text), expected);
    }

    #[test]
    fn short_ids_of_literals_are_whole_or_in_parentheses() {
        assert_eq!(ids(Kind::Literal, "V04"), ["V04"]);
        assert_eq!(ids(Kind::Literal, "no handle (V12)"), ["V12"]);
        assert_eq!(ids(Kind::Literal, "<string id='O1' V10=3/>"), [""; 0]);
        assert_eq!(ids(Kind::Literal, "see R-T4 and ETW-2.1"), ["R-T4", "ETW-2.1"]);
    }

    /// Returns the bare sections of a string in which `<` stands for `(`, so that this file does
    /// not cite them itself.
    fn numbers(kind: Kind, text: &str) -> Vec<String> {
        let text = text.replace('<', "(");
        let bare = bare(&passage(kind, &text));
        bare.into_iter().map(|(_, number)| number).collect()
    }

    #[test]
    fn bare_sections_are_distinguished_from_other_numbers() {
        for text in ["2.14", "6.4.2, 6.4.8"] {
            assert_eq!(numbers(Kind::Comment, text).join(", "), text);
        }
        for (text, number) in [
            ("So it is <2.14).", "2.14"),
            ("So it is <null;\n6.5.7).", "6.5.7"),
            ("So <1.3.26: never false)", "1.3.26"),
            ("So <3.6.4 names both)", "3.6.4"),
            ("So <5.9 to 5.11)", "5.9"),
        ] {
            assert_eq!(numbers(Kind::Comment, text), [number], "{text}");
            assert_eq!(numbers(Kind::Document, text), [number], "{text}");
        }
        assert_eq!(numbers(Kind::Literal, "cannot <6.1.11)"), ["6.1.11"]);
        for text in [
            "KMDF 1.31",
            "layout version <1.5 or 2.0)",
            "<10.0.19041) <0.5) <127.0.0.1:80) <1.0) <2.5 s)",
            "`f<1.5)`",
            "```\nf<1.5)\n```",
            "Rust 1.95",
        ] {
            assert_eq!(numbers(Kind::Comment, text), [""; 0], "{text}");
        }
        assert_eq!(numbers(Kind::Literal, "1.25"), [""; 0]);
    }

    #[test]
    fn definitions_are_anchors_that_show_their_ids() {
        let text = "- <a id=\"etw-2.14\"></a>**ETW-2.14** A.\n\
                    | <a id=\"v04\"></a>V40 | <a id=\"other\"></a> |\n";
        let expected = [("ETW-2.14", 1, true), ("V04", 2, false)];
        assert_eq!(
            definitions(text),
            expected.map(|(id, line, is_labelled)| Definition {
                id: id.to_owned(),
                line,
                is_labelled,
            })
        );
    }
}
