//! Files of the Registry Editor (`.reg`).

use super::number::number;
use crate::{
    execution::strings::text_bytes,
    ground::{NtResult, NtStatus},
    services::managers::registry::{store::Registry, value::RegistryValue},
};

/// The first line of a file.
const HEADER: &str = "Windows Registry Editor Version 5.00";
/// The first line of a file that is encoded in a code page.
const OLD_HEADER: &str = "REGEDIT4";

/// The root keys with which paths start in a file, and the corresponding paths in the kernel.
const ROOTS: [(&str, &str); 4] = [
    ("HKEY_LOCAL_MACHINE", r"\Registry\Machine"),
    ("HKLM", r"\Registry\Machine"),
    ("HKEY_USERS", r"\Registry\User"),
    ("HKU", r"\Registry\User"),
];

/// The registry changes in a Registry Editor file, for
/// [`Kernel::import_registry`](crate::Kernel::import_registry).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryFile(Vec<Change>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// A key is created.
    Create(String),
    /// A key is deleted with all keys below it.
    Delete(String),
    /// A value of a key is set.
    Set(String, String, RegistryValue),
    /// A value of a key is deleted.
    Remove(String, String),
}

/// The error for a Registry Editor file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct RegistryFileError {
    /// The number of the line, from 1.
    pub line: usize,
    /// A description of the problem.
    pub message: String,
}

impl RegistryFile {
    /// Parses a file in UTF-16 with a byte order mark, as the Registry Editor writes it, or in UTF-8.
    ///
    /// # Errors
    ///
    /// Returns an error with the line number if the Registry Editor would reject the file, or if a
    /// path does not start with `HKEY_LOCAL_MACHINE` or `HKEY_USERS`.
    pub fn parse(bytes: &[u8]) -> Result<Self, RegistryFileError> {
        let at = |line: usize| move |message: String| RegistryFileError { line, message };
        let text = decode(bytes).map_err(at(1))?;
        let mut lines = logical_lines(&text).into_iter();
        match lines.next() {
            Some((_, first)) if first == HEADER => {}
            Some((line, first)) if first == OLD_HEADER => {
                let message =
                    format!("`{OLD_HEADER}` is an obsolete format; export the keys as `{HEADER}`");
                return Err(at(line)(message));
            }
            other => {
                let line = other.map_or(1, |(line, _)| line);
                return Err(at(line)(format!("the file must start with `{HEADER}`")));
            }
        }
        let mut changes = Vec::new();
        let mut key = None;
        for (line, text) in lines {
            if let Some(path) = text.strip_prefix('[') {
                let path = path
                    .strip_suffix(']')
                    .ok_or_else(|| at(line)(format!("`{text}` has no closing `]`")))?;
                if let Some(path) = path.strip_prefix('-') {
                    changes.push(Change::Delete(full_path(path).map_err(at(line))?));
                    key = None;
                } else {
                    let path = full_path(path).map_err(at(line))?;
                    changes.push(Change::Create(path.clone()));
                    key = Some(path);
                }
                continue;
            }
            let (name, value) = value_line(&text).map_err(at(line))?;
            let Some(key) = &key else {
                let message =
                    format!("the value `{name}` is not in a key; write `[KEY]` before it");
                return Err(at(line)(message));
            };
            changes.push(match value {
                Some(value) => Change::Set(key.clone(), name, value),
                None => Change::Remove(key.clone(), name),
            });
        }
        Ok(Self(changes))
    }

    /// Applies the changes to a registry.
    pub(super) fn apply(&self, registry: &Registry) -> NtResult {
        for change in &self.0 {
            match change {
                Change::Create(path) => {
                    registry.create_all(path)?;
                }
                Change::Delete(path) => {
                    // A key that does not exist does not need to be deleted.
                    if let Ok(key) = registry.open(None, path) {
                        registry.delete_all(key)?;
                    }
                }
                Change::Set(path, name, value) => registry.set_at(path, name, value.clone())?,
                Change::Remove(path, name) => {
                    let removed =
                        registry.open(None, path).and_then(|key| registry.remove_value(key, name));
                    if !matches!(removed, Ok(()) | Err(NtStatus::OBJECT_NAME_NOT_FOUND)) {
                        return removed;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Parses a command-line parameter: `NAME=TYPE:VALUE`.
///
/// # Errors
///
/// Returns a sentence that describes the problem.
pub fn parse_parameter(text: &str) -> Result<(String, RegistryValue), String> {
    let form =
        "write NAME=TYPE:VALUE, where TYPE is dword, qword, sz, expand_sz, multi_sz or binary";
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("`{text}` has no `=`; {form}"))?;
    let (kind, value) =
        value.split_once(':').ok_or_else(|| format!("`{text}` has no type; {form}"))?;
    let value = match kind {
        "dword" => RegistryValue::Dword(number(value)?),
        "qword" => RegistryValue::Qword(number(value)?),
        "sz" => RegistryValue::Text(value.to_owned()),
        "expand_sz" => RegistryValue::from_bytes(2, text_bytes(value)),
        "multi_sz" => {
            let texts = value.split('|').filter(|text| !text.is_empty());
            RegistryValue::Texts(texts.map(str::to_owned).collect())
        }
        "binary" => RegistryValue::Binary(
            digits(value)
                .ok_or_else(|| format!("`{value}` is not an even number of hexadecimal digits"))?,
        ),
        _ => return Err(format!("`{kind}` is not a value type; {form}")),
    };
    Ok((name.to_owned(), value))
}

/// Parses pairs of hexadecimal digits.
fn digits(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes().chunks(2).map(|pair| {
        let is_pair = pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
        let pair = std::str::from_utf8(pair).ok().filter(|_| is_pair)?;
        u8::from_str_radix(pair, 16).ok()
    });
    bytes.collect()
}

/// Decodes a file to a string.
fn decode(bytes: &[u8]) -> Result<String, String> {
    if let Some(units) = bytes.strip_prefix(&[0xFF, 0xFE]) {
        let pairs = units.chunks_exact(2);
        let is_whole = pairs.remainder().is_empty();
        let units: Vec<u16> = pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let text = String::from_utf16(&units).ok().filter(|_| is_whole);
        return text.ok_or_else(|| "the file is not UTF-16".to_owned());
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    String::from_utf8(bytes.to_vec())
        .map_err(|_| "the file is neither UTF-8 nor, with a byte order mark, UTF-16".to_owned())
}

/// Returns the lines with their numbers, without comments and empty lines. A line that ends with a
/// backslash continues on the next line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut unfinished: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        let (number, mut whole) = unfinished.take().unwrap_or((number + 1, String::new()));
        // A line that contains a whole string ends with a quotation mark, so it does not continue.
        if let Some(start) = line.strip_suffix('\\') {
            whole.push_str(start);
            unfinished = Some((number, whole));
        } else {
            whole.push_str(line);
            lines.push((number, whole));
        }
    }
    lines.extend(unfinished);
    lines
}

/// Returns a key's path in the kernel, given its path in a file.
fn full_path(path: &str) -> Result<String, String> {
    let (root, rest) = path.split_once('\\').unwrap_or((path, ""));
    let known = ROOTS.iter().find(|(name, _)| name.eq_ignore_ascii_case(root));
    match known {
        Some((_, start)) if rest.is_empty() => Ok((*start).to_owned()),
        Some((_, start)) => Ok(format!(r"{start}\{rest}")),
        None => Err(format!(
            "`{root}` is not available to drivers; a path must start with HKEY_LOCAL_MACHINE or \
             HKEY_USERS"
        )),
    }
}

/// Returns the name and the value in a line, or `None` for the value if the line deletes it.
fn value_line(line: &str) -> Result<(String, Option<RegistryValue>), String> {
    let (name, rest) = match line.strip_prefix('@') {
        Some(rest) => (String::new(), rest),
        None => quoted(line).ok_or_else(|| {
            format!(
                "`{line}` is neither a key in brackets nor a value with its name in quotation marks"
            )
        })?,
    };
    let data = rest.trim_start().strip_prefix('=').map(str::trim);
    let data = data.ok_or_else(|| format!("the value `{name}` has no `=` after its name"))?;
    if data == "-" {
        return Ok((name, None));
    }
    let value = if data.starts_with('"') {
        let Some((text, "")) = quoted(data) else {
            return Err(format!("the string of the value `{name}` has no closing quotation mark"));
        };
        RegistryValue::Text(text)
    } else {
        typed(&name, data)?
    };
    Ok((name, Some(value)))
}

/// Parses typed data such as `dword:0000002a` and `hex(7):61,00`.
fn typed(name: &str, data: &str) -> Result<RegistryValue, String> {
    let unknown = || {
        format!(
            "`{data}` is not valid value data; write \"text\", dword:0000002a, hex:01,02 or \
             hex(TYPE):01,02"
        )
    };
    let (kind, text) = data.split_once(':').ok_or_else(unknown)?;
    let kind = kind.trim().to_ascii_lowercase();
    if kind == "dword" {
        let is_digits = text.len() <= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(text, 16).ok().filter(|_| is_digits);
        return number.map(RegistryValue::Dword).ok_or_else(|| {
            format!("the value `{name}` is `{text}`; expected up to 8 hexadecimal digits")
        });
    }
    let kind = match kind.as_str() {
        "hex" => Some(3),
        other => other
            .strip_prefix("hex(")
            .and_then(|other| other.strip_suffix(')'))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok()),
    };
    let kind = kind.ok_or_else(unknown)?;
    let bytes: Option<Vec<u8>> = text
        .split(',')
        .map(str::trim)
        .filter(|byte| !byte.is_empty())
        .map(|byte| digits(byte).filter(|bytes| bytes.len() == 1))
        .map(|bytes| bytes.and_then(|bytes| bytes.first().copied()))
        .collect();
    let bytes = bytes.ok_or_else(|| {
        format!("the value `{name}` must be pairs of hexadecimal digits, separated by commas")
    })?;
    Ok(RegistryValue::from_bytes(kind, bytes))
}

/// Returns the string in quotation marks at the start of a line, and the rest of the line.
fn quoted(line: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = line.strip_prefix('"')?.chars();
    loop {
        match characters.next()? {
            '"' => return Some((text, characters.as_str())),
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"Windows Registry Editor Version 5.00

; What the driver reads.
[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\demo\Parameters]
@="the default"
"Number"=dword:0000002a
"Say \"hi\""="C:\\Windows"
"Bytes"=hex:01,02,\
  03
"List"=hex(7):61,00,00,00,00,00
"Large"=hex(b):01,00,00,00,00,00,00,00
"Gone"=-

[-HKEY_USERS\.DEFAULT\Gone]
"#;

    #[test]
    fn a_file_has_keys_and_values() {
        let key = r"\Registry\Machine\SYSTEM\CurrentControlSet\Services\demo\Parameters";
        let set =
            |name: &str, value: RegistryValue| Change::Set(key.to_owned(), name.to_owned(), value);
        let expected = RegistryFile(vec![
            Change::Create(key.to_owned()),
            set("", "the default".into()),
            set("Number", 42_u32.into()),
            set("Say \"hi\"", r"C:\Windows".into()),
            set("Bytes", vec![1, 2, 3].into()),
            set("List", RegistryValue::Texts(vec!["a".to_owned()])),
            set("Large", 1_u64.into()),
            Change::Remove(key.to_owned(), "Gone".to_owned()),
            Change::Delete(r"\Registry\User\.DEFAULT\Gone".to_owned()),
        ]);
        assert_eq!(RegistryFile::parse(FILE.as_bytes()), Ok(expected.clone()));
        let mut wide = vec![0xFF, 0xFE];
        wide.extend(FILE.encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(RegistryFile::parse(&wide), Ok(expected));
    }

    #[test]
    fn errors_name_the_line_and_the_cause() {
        let key = r"[HKEY_LOCAL_MACHINE\SOFTWARE\X]";
        for (lines, line, part) in [
            ("", 1, "must start with `Windows Registry Editor"),
            ("REGEDIT4", 1, "obsolete format"),
            ("[HKEY_CURRENT_USER\\X]", 2, "a path must start with HKEY_LOCAL_MACHINE"),
            ("[HKEY_LOCAL_MACHINE\\X", 2, "has no closing `]`"),
            ("\"X\"=dword:1", 2, "is not in a key"),
            ("@@\nX=1", 3, "neither a key in brackets nor a value"),
            ("@@\n\"X\" 1", 3, "has no `=`"),
            ("@@\n\"X\"=\"1", 3, "no closing quotation mark"),
            ("@@\n\"X\"=1", 3, "is not valid value data"),
            ("@@\n\"X\"=dword:123456789", 3, "expected up to 8 hexadecimal digits"),
            ("@@\n\"X\"=hex:1,2", 3, "pairs of hexadecimal digits"),
            ("@@\n\"X\"=hex(q):01", 3, "is not valid value data"),
        ] {
            let text = match lines {
                "" | "REGEDIT4" => lines.to_owned(),
                _ => format!("{HEADER}\n{}", lines.replace("@@", key)),
            };
            let error = RegistryFile::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
        assert!(RegistryFile::parse(&[0xFF, 0xFE, 0]).is_err());
        assert!(RegistryFile::parse(&[0xC0]).is_err());
    }

    #[test]
    fn parameters_have_a_name_a_type_and_a_value() {
        for (text, name, value) in [
            ("Depth=dword:0x10", "Depth", 16_u32.into()),
            ("Size=qword:5000000000", "Size", 5_000_000_000_u64.into()),
            ("Name=sz:a=b:c", "Name", "a=b:c".into()),
            ("Raw=binary:00ff", "Raw", vec![0, 255].into()),
            ("All=multi_sz:a|b", "All", RegistryValue::Texts(vec!["a".to_owned(), "b".to_owned()])),
            ("Path=expand_sz:%X%", "Path", RegistryValue::Other(2, text_bytes("%X%"))),
        ] {
            assert_eq!(parse_parameter(text), Ok((name.to_owned(), value)), "{text}");
        }
        for (text, part) in [
            ("Depth", "has no `=`"),
            ("Depth=4", "has no type"),
            ("Depth=number:4", "`number` is not a value type"),
            ("Depth=dword:4294967296", "is not a number, or is too large"),
            ("Depth=dword:", "is not a number, or is too large"),
            ("Raw=binary:0", "even number of hexadecimal digits"),
            ("Raw=binary:é", "even number of hexadecimal digits"),
        ] {
            let error = parse_parameter(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
