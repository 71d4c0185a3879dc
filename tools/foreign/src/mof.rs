//! Writes the C header for the classes in a MOF file, to the extent that the samples use it.
//!
//! On Windows, mofcomp compiles the file and wmimofck writes the header: for each class, its GUID,
//! a structure of its data items in id order, their sizes and ids, and, for each method, its number
//! and a structure of its parameters.

use std::{collections::BTreeMap, fmt::Write as _, iter::Peekable, vec::IntoIter};

use anyhow::{Context, Result, bail};

/// A word, a string or a character of a MOF file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

/// A class, data item, method or parameter.
#[derive(Debug, Default)]
struct Item {
    /// The first argument of each qualifier, by lower-case name.
    qualifiers: BTreeMap<String, String>,
    kind: String,
    name: String,
    /// The number of elements, if it is an array.
    count: Option<String>,
    /// The parameters, if it is a method.
    parameters: Option<Vec<Self>>,
}

impl Item {
    fn number(&self, qualifier: &str) -> Option<u32> {
        self.qualifiers.get(qualifier)?.parse().ok()
    }

    fn is_text(&self) -> bool {
        self.kind.eq_ignore_ascii_case("string")
    }
}

/// A class and its members.
type Class = (Item, Vec<Item>);

/// Returns the header of a MOF file.
///
/// # Errors
///
/// Fails if the text's form differs from the samples' files.
pub fn header(text: &str) -> Result<String> {
    let mut tokens = tokens(text).into_iter().peekable();
    let mut classes: Vec<Class> = Vec::new();
    while tokens.peek().is_some() {
        classes.push(class(&mut tokens)?);
    }
    let names: BTreeMap<String, String> =
        classes.iter().map(|(class, _)| (class.name.clone(), header_name(class))).collect();
    let mut out = String::from("#pragma once\n");
    for (class, members) in &classes {
        write_class(class, members, &names, &mut out)?;
    }
    Ok(out)
}

/// Returns a class's C name.
fn header_name(class: &Item) -> String {
    let named = class.qualifiers.get("headername");
    named.unwrap_or(&class.name).clone()
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(first) = rest.chars().next() {
        let after = |from: &'_ str, end: &str| -> usize {
            from.find(end).map_or(from.len(), |at| at + end.len())
        };
        let length = if rest.starts_with("//") || first == '#' {
            after(rest, "\n")
        } else if rest.starts_with("/*") {
            after(rest, "*/")
        } else if first == '"' {
            let mut is_escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, one)| {
                let is_end = *one == '"' && !is_escaped;
                is_escaped = *one == '\\' && !is_escaped;
                is_end
            });
            let end = end.map_or(rest.len(), |(at, _)| at);
            tokens.push(Token::Text(rest.get(1..end).unwrap_or_default().to_owned()));
            (end + 1).min(rest.len())
        } else if first.is_alphanumeric() || first == '_' {
            let end =
                rest.find(|one: char| !one.is_alphanumeric() && one != '_').unwrap_or(rest.len());
            tokens.push(Token::Word(rest.get(..end).unwrap_or_default().to_owned()));
            end
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Sign(first));
            }
            first.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    tokens
}

type Tokens = Peekable<IntoIter<Token>>;

fn sign(tokens: &mut Tokens, wanted: char) -> Result<()> {
    match tokens.next() {
        Some(Token::Sign(found)) if found == wanted => Ok(()),
        other => bail!("expected `{wanted}`, found {other:?}"),
    }
}

fn takes(tokens: &mut Tokens, wanted: char) -> bool {
    tokens.next_if_eq(&Token::Sign(wanted)).is_some()
}

fn word(tokens: &mut Tokens) -> Result<String> {
    match tokens.next() {
        Some(Token::Word(word)) => Ok(word),
        other => bail!("expected a name, found {other:?}"),
    }
}

/// Reads optional qualifiers: `[name, name(argument), name{a, b} : flavor]`.
fn qualifiers(tokens: &mut Tokens) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    if !takes(tokens, '[') {
        return Ok(all);
    }
    loop {
        let name = word(tokens)?.to_lowercase();
        let mut argument = String::new();
        if takes(tokens, '(') || takes(tokens, '{') {
            let mut is_first = true;
            loop {
                match tokens.next().context("the file ends in a qualifier")? {
                    Token::Sign(')' | '}') => break,
                    Token::Word(text) | Token::Text(text) if is_first => {
                        argument = text;
                        is_first = false;
                    }
                    _ => {}
                }
            }
        }
        all.insert(name, argument);
        while takes(tokens, ':') {
            while matches!(tokens.peek(), Some(Token::Word(_))) {
                tokens.next();
            }
        }
        if takes(tokens, ']') {
            return Ok(all);
        }
        sign(tokens, ',')?;
    }
}

fn class(tokens: &mut Tokens) -> Result<Class> {
    let qualifiers = qualifiers(tokens)?;
    let kind = word(tokens)?;
    if kind != "class" {
        bail!("expected `class`, found `{kind}`");
    }
    let name = word(tokens)?;
    if takes(tokens, ':') {
        word(tokens)?;
    }
    sign(tokens, '{')?;
    let mut members = Vec::new();
    while !takes(tokens, '}') {
        members.push(member(tokens)?);
        sign(tokens, ';')?;
    }
    sign(tokens, ';')?;
    let class = Item { qualifiers, kind, name, ..Item::default() };
    Ok((class, members))
}

/// Reads a data item, method or parameter.
fn member(tokens: &mut Tokens) -> Result<Item> {
    let mut item = Item {
        qualifiers: qualifiers(tokens)?,
        kind: word(tokens)?,
        name: word(tokens)?,
        ..Item::default()
    };
    if takes(tokens, '(') {
        let mut parameters = Vec::new();
        while !takes(tokens, ')') {
            parameters.push(member(tokens)?);
            takes(tokens, ',');
        }
        item.parameters = Some(parameters);
    } else if takes(tokens, '[') {
        // An array whose length is another item ends the structure.
        item.count = Some(if takes(tokens, ']') {
            "1".to_owned()
        } else {
            let count = word(tokens)?;
            sign(tokens, ']')?;
            count
        });
    }
    Ok(item)
}

/// Returns the C type, and the number of elements if the type itself is an array.
fn c_type(item: &Item, names: &BTreeMap<String, String>) -> Result<(String, Option<String>)> {
    let plain = match item.kind.to_lowercase().as_str() {
        "boolean" => "BOOLEAN",
        "uint8" => "UCHAR",
        "sint8" => "CHAR",
        "uint16" => "USHORT",
        "sint16" => "SHORT",
        "uint32" => "ULONG",
        "sint32" => "LONG",
        "uint64" => "ULONGLONG",
        "sint64" => "LONGLONG",
        "datetime" => return Ok(("WCHAR".to_owned(), Some("25".to_owned()))),
        _ => {
            let class = names.get(&item.kind);
            let class = class.with_context(|| format!("`{}` is not a type", item.kind))?;
            return Ok((class.clone(), None));
        }
    };
    Ok((plain.to_owned(), None))
}

fn write_class(
    class: &Item,
    members: &[Item],
    names: &BTreeMap<String, String>,
    out: &mut String,
) -> Result<()> {
    let name = header_name(class);
    if let Some(guid) = class.qualifiers.get("guid") {
        let values = guid_values(guid).with_context(|| format!("`{guid}` is not a GUID"))?;
        let (first, last) = values.split_at(3);
        let (first, last) = (first.join(", "), last.join(", "));
        let _ = write!(
            out,
            "#define {name}Guid {{ {first}, {{ {last} }} }}\nDEFINE_GUID({name}_GUID, {first}, {last});\n"
        );
    }
    let mut data: Vec<&Item> =
        members.iter().filter(|item| item.number("wmidataid").is_some()).collect();
    data.sort_by_key(|item| item.number("wmidataid"));
    write_structure(&name, &data, names, out)?;
    for item in members {
        let (Some(parameters), Some(number)) = (&item.parameters, item.number("wmimethodid"))
        else {
            continue;
        };
        let _ = writeln!(out, "#define {} {number}", item.name);
        for direction in ["in", "out"] {
            let chosen: Vec<&Item> =
                parameters.iter().filter(|one| one.qualifiers.contains_key(direction)).collect();
            let structure = format!("{}_{}", item.name, direction.to_uppercase());
            write_structure(&structure, &chosen, names, out)?;
        }
    }
    Ok(())
}

/// Writes a structure, and the sizes of its members and of the whole structure.
fn write_structure(
    name: &str,
    items: &[&Item],
    names: &BTreeMap<String, String>,
    out: &mut String,
) -> Result<()> {
    let Some(last) = items.last() else {
        return Ok(());
    };
    let mut sizes = String::new();
    // Text has no fixed length: the text and everything after it are data after the structure.
    let fixed = items.iter().position(|item| item.is_text());
    let (items, behind) = items.split_at(fixed.unwrap_or(items.len()));
    let _ = writeln!(out, "typedef struct _{name} {{");
    for item in items {
        let (kind, inner) = c_type(item, names)?;
        let (of, one) = (name, &item.name);
        let (mut dimensions, mut factors) = (String::new(), String::new());
        for count in item.count.iter().chain(&inner) {
            let _ = write!(dimensions, "[{count}]");
            let _ = write!(factors, " * {count}");
        }
        let _ = writeln!(out, "    {kind} {one}{dimensions};");
        let _ = writeln!(sizes, "#define {of}_{one}_SIZE (sizeof({kind}){factors})");
        if let Some(id) = item.number("wmidataid") {
            let _ = writeln!(sizes, "#define {of}_{one}_ID {id}");
        }
    }
    if !behind.is_empty() {
        let _ = writeln!(out, "    CHAR VariableData[1];");
        for item in behind {
            if let Some(id) = item.number("wmidataid") {
                let _ = writeln!(sizes, "#define {name}_{}_ID {id}", item.name);
            }
        }
        let _ = write!(out, "}} {name}, *P{name};\n{sizes}");
        return Ok(());
    }
    let _ = write!(
        out,
        "}} {name}, *P{name};\n{sizes}#define {name}_SIZE \
         (FIELD_OFFSET({name}, {last}) + {name}_{last}_SIZE)\n",
        last = last.name
    );
    Ok(())
}

/// Returns the eleven numbers of a GUID.
pub fn guid_values(guid: &str) -> Option<Vec<String>> {
    let digits: String = guid.chars().filter(|one| !matches!(one, '{' | '}' | '-')).collect();
    let is_valid = digits.len() == 32 && digits.chars().all(|one| one.is_ascii_hexdigit());
    if !is_valid {
        return None;
    }
    let mut values = Vec::new();
    let mut rest = digits.as_str();
    for length in [8, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2] {
        let (value, after) = rest.split_at(length);
        values.push(format!("0x{value}"));
        rest = after;
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOF: &str = r#"#pragma autorecover
        // A comment that contains [ and ".
        [WMI, HeaderName("Part"), Description("a \"part\"") : amended,
         guid("{01020304-0506-0708-090A-0B0C0D0E0F10}")]
        class Vendor_Part { [WmiDataId(1), read] uint8 First; };
        /* class No {}; */
        [WMI, Dynamic, Provider("WmiProv"), guid("11020304-0506-0708-090A-0B0C0D0E0F10")]
        class Whole : Base {
            [key, read] string InstanceName;
            [WmiDataId(2)] Vendor_Part Parts[4];
            [WmiDataId(1)] boolean Is;
            [Implemented, WmiMethodId(3)] void Change([in] uint32 To, [out] sint64 From);
        };
        [WMI, guid("21020304-0506-0708-090A-0B0C0D0E0F10"), WmiEnum{"0=no" "1=yes", "2=perhaps"}]
        class Named { [WmiDataId(1)] uint32 Length; [WmiDataId(2)] string Name; };"#;

    #[test]
    fn structures_follow_the_ids() {
        let header = header(MOF).unwrap();
        let lines: Vec<&str> = header.lines().collect();
        assert_eq!(
            lines[1..4],
            [
                "#define PartGuid { 0x01020304, 0x0506, 0x0708, { 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, \
                 0x0F, 0x10 } }",
                "DEFINE_GUID(Part_GUID, 0x01020304, 0x0506, 0x0708, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, \
                 0x0F, 0x10);",
                "typedef struct _Part {",
            ]
        );
        for line in [
            "#define Part_SIZE (FIELD_OFFSET(Part, First) + Part_First_SIZE)",
            "    Part Parts[4];",
            "#define Whole_Parts_SIZE (sizeof(Part) * 4)",
            "#define Whole_Parts_ID 2",
            "#define Whole_SIZE (FIELD_OFFSET(Whole, Parts) + Whole_Parts_SIZE)",
            "#define Change 3",
            "typedef struct _Change_IN {",
            "    LONGLONG From;",
            "    CHAR VariableData[1];",
            "#define Named_Name_ID 2",
        ] {
            assert!(lines.contains(&line), "{line}: {header}");
        }
        let place = |line: &str| lines.iter().position(|one| one.trim() == line).unwrap();
        assert!(place("BOOLEAN Is;") < place("Part Parts[4];"));
        assert!(!header.contains("InstanceName") && !header.contains("No"));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for (text, sentence) in [
            ("class A { uint8 x }", "expected `;`"),
            ("struct A {};", "expected `class`"),
            ("class A { [WmiDataId(1)] Other x; };", "`Other` is not a type"),
            ("[guid(\"x\")] class A {};", "`x` is not a GUID"),
            ("[guid(\"x", "the file ends in a qualifier"),
        ] {
            let error = header(text).unwrap_err().to_string();
            assert!(error.contains(sentence), "{text}: {error}");
        }
    }
}
