//! The structures of the WDK's headers that the kernel accesses.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use super::Result;

/// A structure that structures.txt lists.
struct Listed<'a> {
    rust_name: &'a str,
    /// A field of the members that the kernel accesses of the structure's unnamed unions.
    view: Option<&'a str>,
    documentation: &'a str,
}

/// A field's Rust type and its size in bytes.
struct Layout {
    rust_type: String,
    size: u64,
}

/// A field of a structure, at an offset in bytes.
struct Field<'a> {
    name: &'a str,
    header_type: &'a str,
    offset: u64,
    layout: Layout,
}

/// The generator's input.
struct Structures<'a> {
    types: &'a Value,
    listed: BTreeMap<&'a str, Listed<'a>>,
}

/// Returns the definitions of the structures in a list.
pub fn generate(types: &Value, list: &str) -> Result<String> {
    let structures = Structures { types, listed: parse(list)? };
    let mut text = String::new();
    for (name, listed) in &structures.listed {
        structures.define(&mut text, name, listed)?;
    }
    Ok(text)
}

/// Parses structures.txt, whose comment describes its lines.
fn parse(list: &str) -> Result<BTreeMap<&str, Listed<'_>>> {
    let mut listed = BTreeMap::new();
    let rows = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    for row in rows {
        let mut words = row.splitn(3, ' ');
        let (Some(name), Some(rust_name)) = (words.next(), words.next()) else {
            return Err(
                format!("structures.txt: not `NAME[:FIELD] RUST_NAME [TEXT]`: {row}").into()
            );
        };
        let (name, view) = match name.split_once(':') {
            Some((name, view)) => (name, Some(view)),
            None => (name, None),
        };
        let documentation = words.next().unwrap_or_default();
        if listed.insert(name, Listed { rust_name, view, documentation }).is_some() {
            return Err(format!("structures.txt has {name} twice").into());
        }
    }
    Ok(listed)
}

impl<'a> Structures<'a> {
    fn define(&self, text: &mut String, name: &str, listed: &Listed) -> Result<()> {
        let size = self.types["struct"][name]["size"].as_u64();
        let size = size.ok_or_else(|| format!("structures.txt has {name}, which no header has"))?;
        let mut fields = Vec::new();
        self.flatten(name, 0, listed.view, &mut fields)?;
        let rust_name = listed.rust_name;
        let (mut end, mut checks) = (0, String::new());
        let documentation = format!("`{}`. {}", name.trim_start_matches('_'), listed.documentation);
        writeln!(text, "/// {}", documentation.trim_end())?;
        writeln!(text, "#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]")?;
        writeln!(text, "#[repr(C)]\npub struct {rust_name} {{")?;
        for Field { name: field, header_type, offset, layout } in &fields {
            pad(text, name, end, *offset)?;
            let rust_field = snake_case(field);
            writeln!(text, "/// `{field}`, of the type `{header_type}`.")?;
            writeln!(text, "pub {rust_field}: {},", layout.rust_type)?;
            write!(checks, "assert!(offset_of!({rust_name}, {rust_field}) == {offset});")?;
            end = offset + layout.size;
        }
        pad(text, name, end, size)?;
        writeln!(text, "}}")?;
        writeln!(
            text,
            "const _: () = {{ assert!(size_of::<{rust_name}>() == {size}); {checks} }};"
        )?;
        writeln!(text, "impl Pointee for {rust_name} {{ const NAME: &'static str = {name:?}; }}")?;
        writeln!(text, "impl Default for {rust_name} {{")?;
        writeln!(text, "fn default() -> Self {{ FromZeros::new_zeroed() }}\n}}")?;
        Ok(())
    }

    /// Adds a structure's fields and those of its unnamed members.
    fn flatten(
        &self,
        name: &str,
        start: u64,
        view: Option<&str>,
        fields: &mut Vec<Field<'a>>,
    ) -> Result<()> {
        for (field, header_type, offset) in self.members(name) {
            let offset = start + offset;
            if field.starts_with("__bindgen_anon") {
                match self.viewed(header_type, view) {
                    Some(("", structure)) => self.flatten(structure, offset, view, fields)?,
                    Some((name, header_type)) => {
                        let layout = self.layout(header_type)?;
                        fields.push(Field { name, header_type, offset, layout });
                    }
                    None => self.flatten(header_type, offset, view, fields)?,
                }
            } else if field != "_bindgen_align"
                && !field.starts_with("__bindgen_padding")
                && !header_type.starts_with("__IncompleteArrayField")
            {
                let layout = self.layout(header_type)?;
                fields.push(Field { name: field, header_type, offset, layout });
            }
        }
        Ok(())
    }

    /// Returns the accessed member of a union: its name, which is empty for an unnamed structure, and its type.
    fn viewed(&self, union: &str, view: Option<&str>) -> Option<(&'a str, &'a str)> {
        if self.types["union"][union].is_null() {
            return None;
        }
        let has_view = |(name, kind, _): &(&str, &str, u64)| {
            view == Some(*name) || self.members(kind).any(|(inner, ..)| view == Some(inner))
        };
        let chosen = self.members(union).find(has_view).or_else(|| self.members(union).next())?;
        let (name, header_type, _) = chosen;
        Some((if name.starts_with("__bindgen_anon") { "" } else { name }, header_type))
    }

    /// Returns the names, types and offsets of the fields of a structure or union.
    fn members(&self, name: &str) -> impl Iterator<Item = (&'a str, &'a str, u64)> + use<'a> {
        let types = self.types;
        let fields = ["struct", "union"].map(|group| types[group][name]["fields"].as_array());
        fields
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|field| Some((field[0].as_str()?, field[1].as_str()?, field[2].as_u64()?)))
    }

    /// Returns the layout of a header type. Addresses are `u64`; enumerations and `NTSTATUS` are `u32`; `CHAR`
    /// is `u8`, as it holds text and counts up to 255. A structure or union that is not listed is its only
    /// field or an array of integers.
    fn layout(&self, name: &str) -> Result<Layout> {
        let of = |rust_type: &str, size| Ok(Layout { rust_type: rust_type.to_owned(), size });
        if let Some(array) = name.strip_prefix('[').and_then(|array| array.strip_suffix(']')) {
            let (element, length) = array.rsplit_once("; ").ok_or("an array without a length")?;
            let element = self.layout(element)?;
            let size = element.size * length.parse::<u64>()?;
            return of(&format!("[{}; {length}]", element.rust_type), size);
        }
        if let Some(listed) = self.listed.get(name) {
            let size = self.types["struct"][name]["size"].as_u64().unwrap_or_default();
            return of(listed.rust_name, size);
        }
        let is_address = name.starts_with('*') || name.starts_with("Option<");
        if is_address || !self.types["fnptr"][name].is_null() {
            return of("u64", 8);
        }
        if name == "NTSTATUS" || name.ends_with("::Type") || !self.types["enum"][name].is_null() {
            return of("u32", 4);
        }
        let primitive = name.trim_start_matches("c_");
        match primitive.strip_prefix("__BindgenBitfieldUnit<").unwrap_or(primitive) {
            "schar" | "i8" => of("i8", 1),
            "char" | "uchar" | "u8" | "bool" | "[u8; 1]>" => of("u8", 1),
            "short" | "i16" => of("i16", 2),
            "ushort" | "u16" | "[u8; 2]>" => of("u16", 2),
            "int" | "long" | "i32" => of("i32", 4),
            "uint" | "ulong" | "u32" | "[u8; 4]>" => of("u32", 4),
            "longlong" | "i64" => of("i64", 8),
            "ulonglong" | "u64" | "usize" | "[u8; 8]>" => of("u64", 8),
            _ => self.aggregate(name),
        }
    }

    /// Returns the layout of a structure or union that is not listed, or of an alias.
    fn aggregate(&self, name: &str) -> Result<Layout> {
        let groups = ["struct", "union"].map(|group| &self.types[group][name]);
        let Some(found) = groups.into_iter().find(|found| !found.is_null()) else {
            let target = self.types["alias"][name][0].as_str();
            return self.layout(target.ok_or_else(|| format!("no header has the type {name}"))?);
        };
        let size = found["size"].as_u64().unwrap_or_default();
        let members: Vec<_> = self.members(name).collect();
        // LARGE_INTEGER is a number, too.
        let number = members.iter().find(|(field, ..)| *field == "QuadPart");
        let only = (members.len() == 1).then(|| members.first()).flatten();
        if let Some((_, kind, _)) = number.or(only) {
            let layout = self.layout(kind)?;
            if layout.size == size {
                return Ok(layout);
            }
        }
        let unit = found["align"].as_u64().unwrap_or(1).min(8);
        let (bits, length) = (8 * unit, size / unit);
        let array = format!("[u{bits}; {length}]");
        Ok(Layout { rust_type: if length == 1 { format!("u{bits}") } else { array }, size })
    }
}

/// Adds the padding between a field's end and the next field's offset.
fn pad(text: &mut String, structure: &str, end: u64, next: u64) -> Result<()> {
    let Some(length) = next.checked_sub(end) else {
        return Err(format!("fields of {structure} overlap at offset {next}").into());
    };
    if length > 0 {
        writeln!(text, "/// Padding.\npub padding_{end}: [u8; {length}],")?;
    }
    Ok(())
}

/// Returns the Rust name of a field.
fn snake_case(name: &str) -> String {
    if name == "Type" {
        return "kind".to_owned();
    }
    let characters: Vec<char> = name.trim_start_matches('_').chars().collect();
    let mut text = String::new();
    for (place, character) in characters.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|before| characters.get(before));
        let starts_word = characters.get(place + 1).is_some_and(char::is_ascii_lowercase);
        let is_boundary = character.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || before.is_ascii_uppercase() && starts_word
            });
        if is_boundary {
            text.push('_');
        }
        text.push(character.to_ascii_lowercase());
    }
    text
}
