//! Parses TMF files: a line for each GUID, and then the text and arguments of each message.

use std::sync::Arc;

use etw_wire::Guid;

use super::item::{Item, Style};

/// The maximum number of defects to report for one TMF file.
pub const MAX_DEFECTS: usize = 100;
/// The maximum number of lines of a message's text.
const MAX_TEXT_LINES: usize = 64;
/// The maximum number of arguments of a message.
const MAX_ARGUMENTS: usize = 256;

/// The format of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The GUID of the source file's messages.
    pub guid: Guid,
    /// The message's number in the source file.
    pub number: u16,
    /// The name of the component.
    pub component: Arc<str>,
    /// The name of the source file, if the TMF file contains it.
    pub source: Option<Arc<str>>,
    /// The message's name: the name of the source file and the line number.
    pub name: Arc<str>,
    /// The function that writes the message, if the TMF file names it.
    pub function: Option<Arc<str>>,
    /// The level's name, if the TMF file contains it.
    pub level: Option<Arc<str>>,
    /// The flag's name, if the TMF file contains it.
    pub flags: Option<Arc<str>>,
    /// The text with placeholders such as `%10!s!`.
    pub text: String,
    /// All `KEY=value` words after the text.
    pub(super) keys: Vec<(String, Arc<str>)>,
    /// The arguments, in data order.
    pub(super) arguments: Vec<Argument>,
}

/// An argument of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The number in the argument's placeholders.
    pub number: u16,
    /// The expression in the source code, or a generated name; unique within the message.
    pub name: Arc<str>,
    pub item: Item,
    /// The notation of a number.
    pub style: Style,
}

/// An unusable part of a TMF file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct Defect {
    /// The line number, counting from 1.
    pub line: usize,
    /// The kind of defect.
    pub kind: DefectKind,
}

/// The kinds of defects in a TMF file or an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefectKind {
    /// A line that is not recognized.
    #[error("expected a GUID with the name of a component, `#typev`, `{{`, `}}` or a comment")]
    Unexpected,
    /// A message precedes the GUID that it belongs to.
    #[error("no GUID precedes the message")]
    NoGuid,
    /// A message is malformed.
    #[error("expected `#typev NAME NUMBER \"TEXT\"`, with a number below 65,536")]
    Message,
    /// An argument is malformed.
    #[error("expected an argument as `NAME, TYPE -- NUMBER`")]
    Argument,
    /// A message has too many arguments.
    #[error("the message has more than {MAX_ARGUMENTS} arguments")]
    TooManyArguments,
}

/// A GUID line.
#[derive(Clone)]
struct Origin {
    guid: Guid,
    component: Arc<str>,
    source: Option<Arc<str>>,
}

/// Returns the formats in a TMF file's text, and the first defects.
pub fn parse(text: &str) -> (Vec<Format>, Vec<Defect>) {
    let mut formats: Vec<Format> = Vec::new();
    let mut defects = Vec::new();
    let mut complain = |line: usize, kind| {
        if defects.len() < MAX_DEFECTS {
            defects.push(Defect { line: line + 1, kind });
        }
    };
    let mut origin: Option<Origin> = None;
    // Set while the last format's arguments are read; false if that format is malformed.
    let mut inside: Option<bool> = None;
    let mut usable = false;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let trimmed = line.trim();
        match trimmed {
            "" => {}
            "{" => inside = Some(usable),
            "}" => inside = None,
            _ if inside.is_some() => {
                let argument = argument(trimmed).ok_or(DefectKind::Argument);
                let format = formats.last_mut().filter(|_| inside == Some(true));
                let added = format.map_or(Ok(()), |format| add_argument(format, argument));
                if let Err(kind) = added {
                    complain(number, kind);
                    // The end of the arguments is unknown.
                    if inside == Some(true) {
                        formats.pop();
                    }
                    inside = Some(false);
                }
            }
            _ if trimmed.starts_with("//") => {}
            _ if trimmed.starts_with('#') => {
                let mut whole = trimmed.to_owned();
                let mut more = lines.clone();
                let mut read = 1;
                // A message's text can contain line breaks.
                let has_text = whole.contains('"');
                while has_text && text_of(&whole).is_none() && read < MAX_TEXT_LINES {
                    let Some((_, next)) = more.next() else {
                        break;
                    };
                    whole.push('\n');
                    whole.push_str(next);
                    read += 1;
                }
                let format = origin.as_ref().map_or(Err(DefectKind::NoGuid), |origin| {
                    message(&whole, origin).ok_or(DefectKind::Message)
                });
                usable = format.is_ok();
                match format {
                    Ok(format) => {
                        formats.push(format);
                        lines = more;
                    }
                    Err(kind) => complain(number, kind),
                }
            }
            _ => match guid_line(trimmed) {
                Some(found) => origin = Some(found),
                None => complain(number, DefectKind::Unexpected),
            },
        }
    }
    formats.iter_mut().for_each(finish);
    (formats, defects)
}

/// Returns the format in an annotation's strings, without the first string.
pub fn parse_annotation<'s>(
    mut strings: impl Iterator<Item = &'s str>,
) -> Result<Format, DefectKind> {
    let origin = strings.next().and_then(guid_line);
    let origin = origin.ok_or(DefectKind::NoGuid)?;
    let line = strings.next().ok_or(DefectKind::Message)?;
    let mut format = message(line.trim(), &origin).ok_or(DefectKind::Message)?;
    for line in strings.map(str::trim) {
        match line {
            "" | "{" => {}
            // Words can follow that define who may see the message.
            "}" => break,
            _ if line.ends_with(':') => break,
            _ => add_argument(&mut format, argument(line).ok_or(DefectKind::Argument))?,
        }
    }
    finish(&mut format);
    Ok(format)
}

fn add_argument(
    format: &mut Format,
    argument: Result<Argument, DefectKind>,
) -> Result<(), DefectKind> {
    if format.arguments.len() >= MAX_ARGUMENTS {
        return Err(DefectKind::TooManyArguments);
    }
    format.arguments.push(argument?);
    Ok(())
}

/// Sorts the arguments in data order, and makes their names unique.
fn finish(format: &mut Format) {
    format.arguments.sort_by_key(|argument| argument.number);
    let names: Vec<Arc<str>> =
        format.arguments.iter().map(|argument| Arc::clone(&argument.name)).collect();
    for argument in &mut format.arguments {
        let same = names.iter().filter(|name| **name == argument.name);
        if same.count() > 1 {
            argument.name = format!("{}#{}", argument.name, argument.number).into();
        }
        if let Item::Integer { .. } = argument.item
            && let Some(style) = Style::in_text(&format.text, argument.number)
        {
            argument.style = style;
        }
    }
}

/// Reads a GUID line: the GUID, the name of the component, and words with the name of the source
/// file.
fn guid_line(line: &str) -> Option<Origin> {
    let (head, words) = line.split_once("//").unwrap_or((line, ""));
    let head = head.trim();
    let (guid, component) = head.split_once(char::is_whitespace).unwrap_or((head, ""));
    Some(Origin {
        guid: guid.parse().ok()?,
        component: component.trim().into(),
        source: keys(words).into_iter().find_map(|(key, value)| (key == "SRC").then_some(value)),
    })
}

/// Reads `KEY=value` words. A value can contain spaces; it ends before the next such word.
fn keys(words: &str) -> Vec<(String, Arc<str>)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for word in words.split_whitespace() {
        let key = word.split_once('=').filter(|(key, _)| {
            !key.is_empty() && key.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
        });
        match (key, found.last_mut()) {
            (Some((key, value)), _) => found.push((key.to_ascii_uppercase(), value.to_owned())),
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            (None, None) => {}
        }
    }
    found.retain(|(_, value)| !value.is_empty());
    let found = found.into_iter();
    found.map(|(key, value)| (key, value.into())).collect()
}

/// Splits the rest of a line after `#typev` into the words before the text, the text, and the
/// remainder.
fn text_of(line: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = line.split_once('"')?;
    // The text, and a comment after it, can contain quotation marks.
    let end = rest.find("\" //").or_else(|| rest.trim_end().strip_suffix('"').map(str::len))?;
    let (text, after) = rest.split_at_checked(end)?;
    Some((before, text, after.strip_prefix('"')?))
}

/// Reads a message without its arguments.
fn message(line: &str, origin: &Origin) -> Option<Format> {
    let (before, text, after) = text_of(line)?;
    let mut words = before.split_whitespace();
    if !words.next()?.starts_with("#type") {
        return None;
    }
    let name = words.next()?;
    let number = words.next()?.parse().ok()?;
    if words.next().is_some() {
        return None;
    }
    let keys = keys(after.trim_start().strip_prefix("//").unwrap_or_default());
    let key = |wanted: &[&str]| {
        let found = keys.iter().find(|(key, _)| wanted.contains(&key.as_str()));
        found.map(|(_, value)| Arc::clone(value))
    };
    Some(Format {
        guid: origin.guid,
        number,
        component: Arc::clone(&origin.component),
        source: origin.source.clone(),
        name: name.into(),
        function: key(&["FUNC"]),
        level: key(&["LEVEL", "TRACELEVEL"]),
        flags: key(&["FLAGS", "FLAG"]),
        text: text.to_owned(),
        keys,
        arguments: Vec::new(),
    })
}

/// Reads an argument: an expression, which can contain commas, a type and a number.
fn argument(line: &str) -> Option<Argument> {
    let (before, number) = line.rsplit_once("--").or_else(|| line.rsplit_once("//"))?;
    let number = number.trim().parse().ok()?;
    let before = before.trim_end();
    // The type starts at the last match from which it extends to the end.
    let starts = before.match_indices(", Item").map(|(at, _)| at);
    let (at, item) = starts.collect::<Vec<_>>().into_iter().rev().find_map(|at| {
        let (_, item) = before.split_at_checked(at + 2)?;
        Some((at, Item::parse(item)?))
    })?;
    let (name, _) = before.split_at_checked(at)?;
    Some(Argument { number, name: name.trim().into(), style: item.style(), item })
}
