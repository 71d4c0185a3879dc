//! Reading INF files ("General Syntax Rules for INF Files" of Microsoft's driver documentation).

use std::collections::HashMap;

/// Reasons why a text is not an INF file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A character that ANSI files do not share.
    #[error("line {line}, column {column}: INF files are ASCII or UTF-16")]
    NotAscii {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
    },
    /// A section's name without its closing bracket.
    #[error("line {line}: a section's name ends with ]")]
    SectionName {
        /// The line, counted from 1.
        line: usize,
    },
    /// An entry before the first section.
    #[error("line {line}: this is in no section")]
    NoSection {
        /// The line, counted from 1.
        line: usize,
    },
    /// A quotation mark that nothing closes.
    #[error("line {line}: a quotation mark is missing")]
    QuotationMark {
        /// The line, counted from 1.
        line: usize,
    },
    /// A backslash at the end of the file.
    #[error("line {line}: the file ends in the middle of this line")]
    Continued {
        /// The line, counted from 1.
        line: usize,
    },
    /// A string without a name.
    #[error("line {line}: a string has a name")]
    UnnamedString {
        /// The line, counted from 1.
        line: usize,
    },
    /// A string's name that another has.
    #[error("line {line}: there is a string {name} already")]
    StringTwice {
        /// The line, counted from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// A percent sign that nothing closes.
    #[error("line {line}: a percent sign is missing in {text}")]
    PercentSign {
        /// The line, counted from 1.
        line: usize,
        /// The value that it is missing in.
        text: String,
    },
    /// A name in percent signs that `[Strings]` does not have.
    #[error("line {line}: there is no string {name} in [Strings]")]
    NoString {
        /// The line, counted from 1.
        line: usize,
        /// The name.
        name: String,
    },
}

/// An INF file.
#[derive(Debug)]
pub struct Inf {
    sections: Vec<Section>,
}

/// A section. Sections of the same name are one.
#[derive(Debug)]
pub struct Section {
    /// Its name as it is written first.
    pub name: String,
    /// Where it starts, counted from 1.
    pub line: usize,
    /// What is in it.
    pub entries: Vec<Entry>,
}

/// A line of a section.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it is, counted from 1.
    pub line: usize,
    /// What stands before the equals sign.
    pub key: Option<String>,
    /// What stands behind it, or instead of it.
    pub values: Vec<String>,
}

impl Entry {
    /// Returns a value, or an empty text.
    #[must_use]
    pub fn value(&self, at: usize) -> &str {
        self.values.get(at).map_or("", String::as_str)
    }
}

/// A line without its comment, cut at a character outside quotes.
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

fn unquote(text: &str) -> String {
    let text = text.trim();
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .map_or_else(|| text.to_owned(), |inside| inside.replace("\"\"", "\""))
}

impl Inf {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first line that is not one of an INF file.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        let mut sections: Vec<Section> = Vec::new();
        let mut current = None;
        let mut continued: Option<(usize, String)> = None;
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(place) = line.find(|character: char| !character.is_ascii()) {
                return Err(ReadError::NotAscii {
                    line: number,
                    column: place + 1,
                });
            }
            let without_comment = split_outside_quotes(line, ';')[0].trim();
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
                let known = sections
                    .iter()
                    .position(|section| section.name.eq_ignore_ascii_case(name));
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
                values: split_outside_quotes(values, ',')
                    .into_iter()
                    .map(unquote)
                    .collect(),
            });
        }
        if let Some((line, _)) = continued {
            return Err(ReadError::Continued { line });
        }
        Self::expand(sections)
    }

    /// Puts strings in the place of their names.
    fn expand(mut sections: Vec<Section>) -> Result<Self, ReadError> {
        let mut strings = HashMap::new();
        if let Some(section) = sections
            .iter()
            .find(|section| section.name.eq_ignore_ascii_case("Strings"))
        {
            for entry in &section.entries {
                let Some(key) = &entry.key else {
                    return Err(ReadError::UnnamedString { line: entry.line });
                };
                let known = strings.insert(key.to_ascii_lowercase(), entry.value(0).to_owned());
                if known.is_some() {
                    return Err(ReadError::StringTwice {
                        line: entry.line,
                        name: key.clone(),
                    });
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
        Ok(Self { sections })
    }

    /// Returns the sections.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Returns a section by its name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| section.name.eq_ignore_ascii_case(name))
    }

    /// Returns the first entry of a section with a key.
    #[must_use]
    pub fn entry(&self, section: &str, key: &str) -> Option<&Entry> {
        let has_key = |entry: &&Entry| {
            let found = entry.key.as_deref();
            found.is_some_and(|found| found.eq_ignore_ascii_case(key))
        };
        self.section(section)?.entries.iter().find(has_key)
    }

    /// Returns the first value of the first entry with a key.
    #[must_use]
    pub fn value(&self, section: &str, key: &str) -> Option<&str> {
        self.entry(section, key).map(|entry| entry.value(0))
    }
}

/// Puts strings in the place of their names. Numbers are folders, and stay.
fn expand(text: &str, strings: &HashMap<String, String>, line: usize) -> Result<String, ReadError> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let Some((name, after)) = after.split_once('%') else {
            return Err(ReadError::PercentSign {
                line,
                text: text.to_owned(),
            });
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
            return Err(ReadError::NoString {
                line,
                name: name.to_owned(),
            });
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let inf = Inf::read(
            "[A] ; a comment\r\nkey = \"one; \"\"1\"\"\",%two%, \\\r\n  three\r\n%13%\\x\r\n\
             [Strings]\r\nTwo=\"2 = two\"\r\n[a]\r\nmore\r\n",
        )
        .unwrap();
        let section = inf.section("A").unwrap();
        assert_eq!(section.entries[0].key.as_deref(), Some("key"));
        assert_eq!(
            section.entries[0].values,
            ["one; \"1\"", "2 = two", "three"]
        );
        assert_eq!(section.entries[1].values, ["%13%\\x"]);
        assert_eq!(section.entries[1].line, 4);
        assert_eq!(section.entries[2].values, ["more"]);
    }

    #[test]
    fn what_is_no_inf_is_refused_with_its_line() {
        for (text, message) in [
            ("x = 1", "line 1: this is in no section"),
            ("[A\nx", "line 1: a section's name ends with ]"),
            ("[A]\nx = \"1", "line 2: a quotation mark is missing"),
            ("[A]\nx = %y%", "line 2: there is no string y in [Strings]"),
            ("[A]\nx = %y", "line 2: a percent sign is missing in %y"),
            (
                "[A]\nx = 1,\\",
                "line 2: the file ends in the middle of this line",
            ),
            (
                "[A]\nx = \u{fc}",
                "line 2, column 5: INF files are ASCII or UTF-16",
            ),
            ("[Strings]\na=1\nA=2", "line 3: there is a string A already"),
        ] {
            assert_eq!(Inf::read(text).unwrap_err().to_string(), message);
        }
    }
}
