//! Inserts arguments into the text of a message.

use std::sync::Arc;

use super::item::{ArgumentError, Item};
use super::tmf::Format;
use crate::code_page::CodePage;
use crate::cursor::Cursor;
use crate::decode::payload::Fields;
use crate::decode::printf::{Argument, Spec, put};
use crate::read::PointerSize;

/// The maximum length of a message's text, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// The values in a message's header that its text can refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The thread.
    pub thread: Option<u32>,
    /// The process.
    pub process: Option<u32>,
    /// The sequence number.
    pub sequence: Option<u32>,
    /// The pointer size of the arguments.
    pub pointer_size: PointerSize,
    /// The code page of 8-bit arguments.
    pub code_page: CodePage,
}

/// A message with its arguments inserted.
#[derive(Clone, Debug, PartialEq)]
pub struct Expanded {
    /// The text.
    pub text: String,
    /// The names and values of the arguments.
    pub fields: Fields,
    /// The bytes after the last argument.
    pub leftover: Vec<u8>,
    /// The reason why an argument could not be read.
    pub error: Option<ArgumentError>,
}

impl Format {
    /// Returns the level as a number, if it is a known name or a number.
    #[must_use]
    pub fn level_number(&self) -> Option<u8> {
        let level = self.level.as_deref()?;
        let name = level.strip_prefix("TRACE_LEVEL_").unwrap_or(level);
        Some(match name {
            "NONE" => 0,
            "CRITICAL" | "FATAL" => 1,
            "ERROR" => 2,
            "WARNING" => 3,
            "INFORMATION" | "INFO" => 4,
            "VERBOSE" => 5,
            other => other.strip_prefix("RESERVED").unwrap_or(other).parse().ok()?,
        })
    }

    /// Reads a message's arguments, and inserts them into its text. Drops the prefix `%0`, which
    /// tools replace with values from the header. A placeholder whose argument cannot be read stays
    /// unchanged.
    #[must_use]
    #[doc(hidden)]
    pub fn expand(&self, arguments: &[u8], header: Header) -> Expanded {
        let mut c = Cursor::new(arguments);
        let mut fields = Fields::new();
        let mut read: Vec<(u16, Argument)> = Vec::new();
        let mut error = None;
        for argument in &self.arguments {
            let number = argument.number;
            if let Item::Unknown(item) = &argument.item {
                let item = Arc::clone(item);
                error = Some(ArgumentError::UnknownType { number, item });
                break;
            }
            let mut ahead = c;
            let Header { pointer_size, code_page, .. } = header;
            let found = argument.item.read(&mut ahead, pointer_size, code_page, argument.style);
            let Some((value, shown)) = found else {
                error = Some(ArgumentError::Truncated { number });
                break;
            };
            c = ahead;
            fields.push((Arc::clone(&argument.name), value));
            read.push((number, shown));
        }
        Expanded { text: self.text_with(&read, header), fields, leftover: c.rest().to_vec(), error }
    }

    fn text_with(&self, read: &[(u16, Argument)], header: Header) -> String {
        let mut out = String::new();
        let mut rest = self.text.strip_prefix("%0").unwrap_or(&self.text);
        while let Some((before, after)) = rest.split_once('%') {
            out.push_str(before);
            rest = self.place(after, read, header, &mut out);
            if out.len() > MAX_TEXT {
                out.push('…');
                return out;
            }
        }
        out.push_str(rest);
        out
    }

    /// Writes the value of the placeholder whose percent sign precedes `after`, and returns the
    /// text after it.
    fn place<'t>(
        &self,
        after: &'t str,
        read: &[(u16, Argument)],
        header: Header,
        out: &mut String,
    ) -> &'t str {
        if let Some(key) = after.strip_prefix('!')
            && let Some((name, rest)) = key.split_once('!')
            && let Some(value) = self.key(name)
        {
            out.push_str(value);
            return rest;
        }
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = after.split_at_checked(digits).unwrap_or(("", after));
        if let Ok(number) = number.parse::<u16>() {
            let (spec, rest) = match rest.strip_prefix('!').and_then(|rest| rest.split_once('!')) {
                Some((spec, rest)) => (spec, rest),
                None => ("s", rest),
            };
            let found = read.iter().find(|(known, _)| *known == number);
            if number == 0 {
                return rest;
            }
            let of_header = self.of_header(number, header);
            let argument = found.map(|(_, argument)| argument).or(of_header.as_ref());
            if let Some(argument) = argument
                && let Some(spec) = Spec::parse(spec)
            {
                put(argument, &spec, header.pointer_size, out);
                return rest;
            }
        }
        // The escape sequences in messages.
        let escapes = [("%", "%"), ("n", "\n"), ("r", "\r"), ("t", "\t"), ("b", " "), (".", ".")];
        for (escape, text) in escapes {
            if let Some(rest) = after.strip_prefix(escape) {
                out.push_str(text);
                return rest;
            }
        }
        out.push('%');
        after
    }

    /// Returns the number of the line of the message in its source file, or 0.
    pub(super) fn line(&self) -> u32 {
        self.key("LINE").and_then(|line| line.parse().ok()).unwrap_or(0)
    }

    /// Returns the value of a key such as `FUNC`.
    pub(super) fn key(&self, name: &str) -> Option<&str> {
        let known = match name {
            "LEVEL" => self.level.as_deref(),
            "FLAGS" => self.flags.as_deref(),
            "FILE" => self.source.as_deref(),
            "COMPNAME" | "MOD" => Some(&*self.component),
            "TYP" => Some(&*self.name),
            "LINE" => {
                let digits = self.name.bytes().rev().take_while(u8::is_ascii_digit);
                let (_, line) = self.name.split_at_checked(self.name.len() - digits.count())?;
                Some(line)
            }
            _ => None,
        };
        let of_words = || {
            let found = self.keys.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| &**value)
        };
        known.or_else(of_words)
    }

    /// Returns the header value that a placeholder such as `%3!x!` stands for.
    fn of_header(&self, number: u16, header: Header) -> Option<Argument> {
        let text = |text: &str| Argument { text: Some(text.to_owned()), ..Argument::default() };
        let of_number =
            |number: u32| Argument { number: Some((number.into(), 4)), ..Argument::default() };
        match number {
            1 => Some(text(&self.component)),
            2 => Some(text(&self.name)),
            3 => header.thread.map(of_number),
            7 => header.sequence.map(of_number),
            8 => header.process.map(of_number),
            _ => None,
        }
    }
}
