//! Repairs text that is not well-formed XML, for decoders.
//!
//! Tools that export manifests do not always escape their output: `"`, `<` and `&` in attributes,
//! and characters that XML does not allow. Authors write `--` in comments. Any of these makes a
//! parser reject the whole document.

/// Repaired text, and the characters that were taken literally.
pub struct Repaired {
    /// The well-formed text. Its line numbers match the original.
    pub text: String,
    /// The line and the characters of each repair.
    pub places: Vec<(usize, String)>,
    /// The offsets, in the original text, of the first `--` in each comment that contains one.
    /// These comments are dropped.
    pub comments: Vec<usize>,
}

/// Escapes characters that are accidentally markup, and replaces characters that XML forbids.
pub fn repair(text: &str) -> Repaired {
    let mut out = Repaired {
        text: String::with_capacity(text.len() + text.len() / 64),
        places: Vec::new(),
        comments: Vec::new(),
    };
    let mut rest = text;
    let mut line = 1;
    while let Some(at) = rest.find('<') {
        let (content, markup) = rest.split_at(at);
        out.push_text(content, None, &mut line);
        let skipped = [COMMENT, ("<![CDATA[", "]]>"), ("<?", "?>")]
            .into_iter()
            .find(|(start, _)| markup.starts_with(start));
        let end = skipped.and_then(|(start, end)| {
            let inside = markup.get(start.len()..)?;
            Some(start.len() + inside.find(end)? + end.len())
        });
        if let Some(end) = end {
            let (whole, after) = markup.split_at(end);
            if let Some(at) = forbidden_hyphens(markup) {
                out.comments.push(text.len() - markup.len() + at);
                let lines = whole.matches('\n').count();
                out.text.extend(std::iter::repeat_n('\n', lines));
            } else {
                out.text.push_str(whole);
            }
            line += whole.matches('\n').count();
            rest = after;
        } else {
            rest = out.push_tag(markup, &mut line);
        }
    }
    out.push_text(rest, None, &mut line);
    out
}

/// Returns the offset of the first `--` in the comment at the start of `text`, if XML forbids it.
fn forbidden_hyphens(text: &str) -> Option<usize> {
    let inside = text.strip_prefix(COMMENT.0)?;
    // The first hyphen of `--->` counts, too.
    let at = inside.find("--")?;
    let ends = inside.get(at..).is_some_and(|rest| rest.starts_with(COMMENT.1));
    (!ends && inside.contains(COMMENT.1)).then_some(COMMENT.0.len() + at)
}

/// The start and the end of a comment.
const COMMENT: (&str, &str) = ("<!--", "-->");

impl Repaired {
    /// Appends text outside markup, or an attribute's value in quotation marks.
    fn push_text(&mut self, text: &str, quote: Option<char>, line: &mut usize) {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = first.len_utf8();
            let escaped = match first {
                '&' => (!is_entity(rest)).then_some("&amp;"),
                '<' => Some("&lt;"),
                '"' if quote == Some('"') => Some("&quot;"),
                '\'' if quote == Some('\'') => Some("&apos;"),
                '\t' | '\n' | '\r' => None,
                '\0'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => Some("\u{FFFD}"),
                _ => None,
            };
            if first == '\n' {
                *line += 1;
            }
            let (this, after) = rest.split_at(length);
            match escaped {
                Some(escaped) => {
                    self.places.push((*line, this.to_owned()));
                    self.text.push_str(escaped);
                }
                None => self.text.push_str(this),
            }
            rest = after;
        }
    }

    /// Appends a tag and returns the text after it.
    fn push_tag<'a>(&mut self, tag: &'a str, line: &mut usize) -> &'a str {
        let mut rest = tag;
        loop {
            // Up to the next attribute's value, or the end of the tag.
            let Some(at) = rest.find(['"', '\'', '>']) else {
                *line += rest.matches('\n').count();
                self.text.push_str(rest);
                return "";
            };
            let (before, after) = rest.split_at(at + 1);
            *line += before.matches('\n').count();
            self.text.push_str(before);
            if before.ends_with('>') {
                return after;
            }
            let quote = if before.ends_with('"') { '"' } else { '\'' };
            let Some(end) = value_end(after, quote) else {
                self.text.push_str(after);
                return "";
            };
            let (value, behind) = after.split_at(end);
            self.push_text(value, Some(quote), line);
            rest = behind;
            if let Some(closed) = rest.strip_prefix(quote) {
                self.text.push(quote);
                rest = closed;
            }
        }
    }
}

/// Returns the offset of the quotation mark that ends an attribute's value: the first one before
/// the end of the tag or before another attribute.
fn value_end(text: &str, quote: char) -> Option<usize> {
    let quotes = text.match_indices(quote).map(|(at, _)| at);
    // A value ends on its line, so that a missing quotation mark does not swallow the rest of the
    // document.
    let line = text.find('\n').unwrap_or(text.len());
    let mut first = None;
    for at in quotes {
        if first.is_some() && at > line {
            break;
        }
        first.get_or_insert(at);
        if is_end(text.get(at + 1..).unwrap_or_default()) {
            return Some(at);
        }
    }
    first
}

/// Returns true if the text can follow a value in a tag.
fn is_end(text: &str) -> bool {
    let trimmed = text.trim_start();
    if ["/>", ">", "?>"].iter().any(|end| trimmed.starts_with(end)) {
        return true;
    }
    let name = trimmed.trim_start_matches(|c: char| c.is_alphanumeric() || "_:.-".contains(c));
    let after = name.trim_start().strip_prefix('=');
    let is_value = after.is_some_and(|after| after.trim_start().starts_with(['"', '\'']));
    trimmed.len() < text.len() && name.len() < trimmed.len() && is_value
}

/// Returns true if `text` starts with an entity or character reference that XML defines.
fn is_entity(text: &str) -> bool {
    let Some(name) = text.find(';').and_then(|end| text.get(1..end.min(11))) else {
        return false;
    };
    let code = name
        .strip_prefix("#x")
        .map(|digits| u32::from_str_radix(digits, 16))
        .or_else(|| name.strip_prefix('#').map(str::parse));
    let is_named = matches!(name, "amp" | "lt" | "gt" | "quot" | "apos");
    code.map_or(is_named, |code| {
        code.ok()
            .and_then(char::from_u32)
            .is_some_and(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(text: &str) -> (String, Vec<(usize, String)>) {
        let Repaired { text, places, .. } = repair(text);
        (text, places)
    }

    #[test]
    fn well_formed_text_stays_as_it_is() {
        let text = "<?xml version=\"1.0\"?>\n<!-- a \" < & -->\n<a b=\"&lt;&#xA;\" c='\"' >x &amp; y\
                    <![CDATA[<]]></a>";
        assert_eq!(repaired(text), (text.to_owned(), Vec::new()));
    }

    #[test]
    fn markup_in_values_is_taken_literally() {
        let text = "<a>\n<m v=\"0x1\" s=\"$(x\"No <mode>\" & more)\"/>\n</a>";
        let (out, places) = repaired(text);
        let expected = "<a>\n<m v=\"0x1\" s=\"$(x&quot;No &lt;mode>&quot; &amp; more)\"/>\n</a>";
        assert_eq!(out, expected);
        let found: Vec<&str> = places.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(found, ["\"", "<", "\"", "&"]);
        assert!(places.iter().all(|(line, _)| *line == 2));
    }

    #[test]
    fn characters_that_xml_lacks_are_replaced() {
        let (out, places) = repaired("<a b=\"x\u{1}y&#x1;&nbsp;\"/>");
        assert_eq!(out, "<a b=\"x\u{FFFD}y&amp;#x1;&amp;nbsp;\"/>");
        assert_eq!(places.len(), 3);
    }

    #[test]
    fn comments_with_two_hyphens_are_left_out_and_their_lines_kept() {
        for (comment, at) in [
            ("<!-- a\n -- b\n-->", Some(8)),
            ("<!--+-----+\n\n-->", Some(5)),
            ("<!-- a\n\n--->", Some(8)),
            ("<!-- a -\n\n-->", None),
            ("<!---\n\n-->", None),
        ] {
            let Repaired { text, comments, .. } = repair(&format!("<a>{comment}</a>"));
            let expected = if at.is_some() { "\n\n" } else { comment };
            assert_eq!(text, format!("<a>{expected}</a>"));
            assert_eq!(comments, at.map(|at| 3 + at).into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn text_that_ends_in_a_tag_is_kept() {
        for text in ["<", "<a", "<a b=", "<a b=\"", "<a b=\"x", "<!--", "<a b='x\ny"] {
            assert!(repaired(text).0.starts_with('<'), "{text}");
        }
    }
}
