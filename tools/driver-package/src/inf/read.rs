//! Reads INF files ("General Syntax Rules for INF Files" in Microsoft's driver documentation).

use std::collections::HashMap;

use super::encoding::{Encoding, Source};

/// The reason why a file's text is not valid INF syntax.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A non-ASCII character in a file that is not UTF-16.
    #[error(
        "line {line}, column {column}: not an ASCII character; write it in ASCII, or save the INF file as UTF-16"
    )]
    NotAscii {
        /// The line, counting from 1.
        line: usize,
        /// The column, counting from 1.
        column: usize,
    },
    /// A section name without its closing bracket.
    #[error("line {line}: the section name has no closing ]")]
    SectionName {
        /// The line, counting from 1.
        line: usize,
    },
    /// An entry before the first section.
    #[error("line {line}: expected a section before this line")]
    NoSection {
        /// The line, counting from 1.
        line: usize,
    },
    /// A quotation mark without its counterpart.
    #[error("line {line}: the closing quotation mark is missing")]
    QuotationMark {
        /// The line, counting from 1.
        line: usize,
    },
    /// A continuation backslash at the end of the file.
    #[error("line {line}: the file ends after the line's continuation mark")]
    Continued {
        /// The line, counting from 1.
        line: usize,
    },
    /// A string without a name.
    #[error("line {line}: expected `name = string`")]
    UnnamedString {
        /// The line, counting from 1.
        line: usize,
    },
    /// A string that is defined twice.
    #[error("line {line}: the string {name} is defined twice")]
    StringTwice {
        /// The line, counting from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// A percent sign without its counterpart.
    #[error("line {line}: the closing percent sign is missing in {text}")]
    PercentSign {
        /// The line, counting from 1.
        line: usize,
        /// The value with the unpaired percent sign.
        text: String,
    },
    /// A name between percent signs that `[Strings]` does not define.
    #[error("line {line}: [Strings] does not define {name}")]
    NoString {
        /// The line, counting from 1.
        line: usize,
        /// The name.
        name: String,
    },
}

/// An INF file.
#[derive(Debug)]
pub struct Inf {
    sections: Vec<Section>,
    /// In a file that is not UTF-16, the lines whose comments contain non-ASCII characters.
    foreign_comments: Vec<usize>,
}

/// A section. Sections with the same name are merged.
#[derive(Debug)]
pub struct Section {
    /// The name as first written.
    pub name: String,
    /// The first line, counting from 1.
    pub line: usize,
    /// The section's entries.
    pub entries: Vec<Entry>,
}

/// A line in a section.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The line, counting from 1.
    pub line: usize,
    /// The text before the equals sign.
    pub key: Option<String>,
    /// The values after the equals sign, or all values if there is none.
    pub values: Vec<String>,
}

impl Entry {
    /// Returns a value, or an empty string if the entry has too few values.
    #[must_use]
    pub fn value(&self, at: usize) -> &str {
        self.values.get(at).map_or("", String::as_str)
    }
}

/// Splits a line at a character that is not inside quotation marks.
fn split_outside_quotes(text: &str, at: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut quoted = false;
    for (place, character) in text.char_indices() {
        if character == '"' {
            quoted = !quoted;
        } else if character == at && !quoted {
            parts.push(&text[start..place]);
            start = place + character.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Takes off the quotation marks. A value can have several quoted parts: `"Parameters\"%Name%`.
fn unquote(text: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    let mut rest = text.trim().chars().peekable();
    while let Some(one) = rest.next() {
        if one != '"' {
            out.push(one);
        } else if quoted && rest.next_if_eq(&'"').is_some() {
            out.push('"');
        } else {
            quoted = !quoted;
        }
    }
    out
}

impl Inf {
    /// Reads the text of an INF file that is not UTF-16.
    ///
    /// # Errors
    ///
    /// Fails at the first line with invalid INF syntax.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        Self::parse(text, false)
    }

    /// Reads an INF file in any encoding.
    ///
    /// # Errors
    ///
    /// Fails at the first line with invalid INF syntax.
    pub fn read_source(source: &Source) -> Result<Self, ReadError> {
        Self::parse(&source.text, matches!(source.encoding, Encoding::Utf16 { .. }))
    }

    fn parse(text: &str, is_wide: bool) -> Result<Self, ReadError> {
        let is_foreign = |character: char| !is_wide && !character.is_ascii();
        let mut sections: Vec<Section> = Vec::new();
        let mut foreign_comments = Vec::new();
        let mut current = None;
        let mut continued: Option<(usize, String)> = None;
        for (number, line) in (1..).zip(text.lines()) {
            let without_comment = split_outside_quotes(line, ';')[0];
            if let Some(place) = without_comment.find(is_foreign) {
                return Err(ReadError::NotAscii { line: number, column: place + 1 });
            }
            if line.contains(is_foreign) {
                foreign_comments.push(number);
            }
            let without_comment = without_comment.trim();
            let (number, whole) = match continued.take() {
                Some((first, before)) => (first, before + without_comment),
                None => (number, without_comment.to_owned()),
            };
            if let Some(before) = whole.strip_suffix('\\') {
                continued = Some((number, before.to_owned()));
                continue;
            }
            if whole.is_empty() {
                continue;
            }
            if let Some(name) = whole.strip_prefix('[') {
                let Some(name) = name.strip_suffix(']') else {
                    return Err(ReadError::SectionName { line: number });
                };
                let known =
                    sections.iter().position(|section| section.name.eq_ignore_ascii_case(name));
                current = Some(known.unwrap_or(sections.len()));
                if known.is_none() {
                    sections.push(Section {
                        name: name.to_owned(),
                        line: number,
                        entries: Vec::new(),
                    });
                }
                continue;
            }
            let Some(section) = current.and_then(|at| sections.get_mut(at)) else {
                return Err(ReadError::NoSection { line: number });
            };
            if whole.matches('"').count() % 2 == 1 {
                return Err(ReadError::QuotationMark { line: number });
            }
            let equals = split_outside_quotes(&whole, '=');
            let (key, values) = match equals.as_slice() {
                [_] => (None, whole.as_str()),
                [key, ..] => (Some(unquote(key)), whole[key.len() + 1..].trim()),
                [] => continue,
            };
            section.entries.push(Entry {
                line: number,
                key,
                values: split_outside_quotes(values, ',').into_iter().map(unquote).collect(),
            });
        }
        if let Some((line, _)) = continued {
            return Err(ReadError::Continued { line });
        }
        Ok(Self { sections: Self::expand(sections)?, foreign_comments })
    }

    /// Replaces `%name%` with the string of that name.
    fn expand(mut sections: Vec<Section>) -> Result<Vec<Section>, ReadError> {
        let mut strings = HashMap::new();
        if let Some(section) =
            sections.iter().find(|section| section.name.eq_ignore_ascii_case("Strings"))
        {
            for entry in &section.entries {
                let Some(key) = &entry.key else {
                    return Err(ReadError::UnnamedString { line: entry.line });
                };
                let known = strings.insert(key.to_ascii_lowercase(), entry.value(0).to_owned());
                if known.is_some() {
                    return Err(ReadError::StringTwice { line: entry.line, name: key.clone() });
                }
            }
        }
        for section in &mut sections {
            for entry in &mut section.entries {
                let line = entry.line;
                for text in entry.key.iter_mut().chain(&mut entry.values) {
                    *text = expand(text, &strings, line)?;
                }
            }
        }
        Ok(sections)
    }

    /// Returns the lines whose comments contain non-ASCII characters, if the file is not UTF-16.
    #[must_use]
    pub fn foreign_comments(&self) -> &[usize] {
        &self.foreign_comments
    }

    /// Returns the sections.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Returns the section with this name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name.eq_ignore_ascii_case(name))
    }

    /// Returns the first entry of a section with this key.
    #[must_use]
    pub fn entry(&self, section: &str, key: &str) -> Option<&Entry> {
        let has_key = |entry: &&Entry| {
            let found = entry.key.as_deref();
            found.is_some_and(|found| found.eq_ignore_ascii_case(key))
        };
        self.section(section)?.entries.iter().find(has_key)
    }

    /// Returns the first value of the first entry with this key.
    #[must_use]
    pub fn value(&self, section: &str, key: &str) -> Option<&str> {
        self.entry(section, key).map(|entry| entry.value(0))
    }
}

/// Replaces `%name%` with the string of that name. Numbers refer to folders and are kept.
fn expand(text: &str, strings: &HashMap<String, String>, line: usize) -> Result<String, ReadError> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let Some((name, after)) = after.split_once('%') else {
            return Err(ReadError::PercentSign { line, text: text.to_owned() });
        };
        if name.is_empty() {
            out.push('%');
        } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push('%');
            out.push_str(name);
            out.push('%');
        } else if let Some(string) = strings.get(&name.to_ascii_lowercase()) {
            out.push_str(string);
        } else {
            return Err(ReadError::NoString { line, name: name.to_owned() });
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Parses a decimal or hexadecimal number in an INF file.
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    hexadecimal.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let inf = Inf::read(
            "[A] ; a comment\r\nkey = \"one; \"\"1\"\"\",%two%, \\\r\n  three\r\n%13%\\x\r\n\
             \"a,\\\"%two%\"; b\"\r\n\
             [Strings]\r\nTwo=\"2 = two\"\r\n[a]\r\nmore\r\n",
        )
        .unwrap();
        let section = inf.section("A").unwrap();
        assert_eq!(section.entries[0].key.as_deref(), Some("key"));
        assert_eq!(section.entries[0].values, ["one; \"1\"", "2 = two", "three"]);
        assert_eq!(section.entries[1].values, ["%13%\\x"]);
        assert_eq!(section.entries[1].line, 4);
        assert_eq!(section.entries[2].values, ["a,\\2 = two; b"]);
        assert_eq!(section.entries[3].values, ["more"]);
    }

    #[test]
    fn comments_may_have_any_characters_and_values_only_in_utf_16() {
        let text = "; \u{2013}\n[A] ; \u{fc}\nx = \"a;b\" ;;\u{e9}\n";
        let inf = Inf::read(text).unwrap();
        assert_eq!(inf.foreign_comments(), [1, 2, 3]);
        assert_eq!(inf.value("A", "x"), Some("a;b"));
        let text = "; \u{2013}\n[A]\nx = M\u{fc}ller\n".to_owned();
        let mut source = Source { text, encoding: Encoding::Utf16 { big_endian: false } };
        let inf = Inf::read_source(&source).unwrap();
        assert_eq!(inf.value("A", "x"), Some("M\u{fc}ller"));
        assert_eq!(inf.foreign_comments(), [0; 0]);
        for encoding in [Encoding::Utf8, Encoding::Ansi] {
            source.encoding = encoding;
            let error = Inf::read_source(&source).unwrap_err();
            assert_eq!(error, ReadError::NotAscii { line: 3, column: 6 });
        }
        // A semicolon in quotation marks does not start a comment.
        let error = Inf::read("[A]\nx = \"; \u{fc}\"\n").unwrap_err();
        assert_eq!(error, ReadError::NotAscii { line: 2, column: 8 });
    }

    #[test]
    fn malformed_inf_files_are_rejected_with_the_line() {
        for (text, message) in [
            ("x = 1", "line 1: expected a section before this line"),
            ("[A\nx", "line 1: the section name has no closing ]"),
            ("[A]\nx = \"1", "line 2: the closing quotation mark is missing"),
            ("[A]\nx = %y%", "line 2: [Strings] does not define y"),
            ("[A]\nx = %y", "line 2: the closing percent sign is missing in %y"),
            ("[A]\nx = 1,\\", "line 2: the file ends after the line's continuation mark"),
            (
                "[A]\nx = \u{fc}",
                "line 2, column 5: not an ASCII character; write it in ASCII, or save the INF file as UTF-16",
            ),
            ("[Strings]\na=1\nA=2", "line 3: the string A is defined twice"),
        ] {
            assert_eq!(Inf::read(text).unwrap_err().to_string(), message);
        }
    }
}
