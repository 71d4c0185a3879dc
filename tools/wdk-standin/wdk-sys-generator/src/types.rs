//! Types: structures, unions, enumerations, aliases and function pointers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use crate::{
    data::{Change, Composite, Data, DefaultKind, Enumeration, FUNCTIONS, Signature},
    error::Error,
    text::{BASE, feature, heading, rust_type, set_of, signature},
};

/// The prefixes of fields that bindgen generates without assertions.
const BINDGEN_PREFIXES: [&str; 5] = [
    "__bindgen_anon_", "__bindgen_padding_", "_bindgen_align", "_bitfield_", "bindgen_union_field",
];

/// The attribute of an item that KMDF 1.33 replaces, and the attribute of its replacement.
const BEFORE_33: &str = "#[cfg(not(kmdf_1_33))]\n";
const SINCE_33: &str = "#[cfg(kmdf_1_33)]\n";

/// Returns the source of the framework's functions: their enumeration and their function pointer
/// types.
pub fn framework(data: &Data) -> Result<String, Error> {
    let mut text = heading("The framework's functions");
    let functions = data.types.enumerations.get(FUNCTIONS).ok_or_else(|| Error::Entry {
        name: FUNCTIONS.to_owned(),
        what: "not in the data".to_owned(),
    })?;
    text += &enumeration(data, FUNCTIONS, functions)?;
    for name in framework_pointers(data) {
        let pointer = data.types.pointers.get(name).ok_or_else(|| Error::Entry {
            name: name.to_owned(),
            what: "types.json has no such function pointer".to_owned(),
        })?;
        let set = set_of(name, &pointer.feature)?;
        if set != BASE {
            let _ = writeln!(text, "#[cfg(feature = \"{}\")]", feature(set));
        }
        text += &function_pointer(name, pointer);
    }
    Ok(text)
}

/// Returns the names of the framework's function pointer types.
fn framework_pointers(data: &Data) -> BTreeSet<&str> {
    let functions = data.functions.kmdf.values();
    functions.filter_map(|one| one.pfn.as_deref()).collect()
}

/// Returns the source of a set's types.
pub fn types(data: &Data, set: &str) -> Result<String, Error> {
    let mut items = BTreeMap::new();
    for (keyword, all) in [("struct", &data.types.structures), ("union", &data.types.unions)] {
        for (name, one) in all {
            if set_of(name, &one.feature)? == set {
                items.insert(name.as_str(), composite_with_changes(data, keyword, name, one)?);
            } else if set == BASE && one.opaque_without_feature {
                let feature = one.feature.join("").replace('_', "-");
                let hidden = opaque(name);
                items.insert(name, format!("#[cfg(not(feature = \"{feature}\"))]\n{hidden}"));
            }
        }
    }
    for (name, one) in &data.types.enumerations {
        if name != FUNCTIONS && set_of(name, &one.feature)? == set {
            items.insert(name, enumeration(data, name, one)?);
        }
    }
    let framework = framework_pointers(data);
    for (name, one) in &data.types.pointers {
        if !framework.contains(name.as_str()) && set_of(name, &one.feature)? == set {
            items.insert(name, function_pointer(name, one));
        }
    }
    for (name, one) in &data.types.aliases {
        if set_of(name, &one.feature)? == set {
            let target = rust_type(&one.target);
            let text = if one.is_use {
                format!("pub use self::{target} as {name};\n")
            } else {
                format!("pub type {name} = {target};\n")
            };
            items.insert(name, text);
        }
    }
    Ok(items.into_values().collect())
}

fn function_pointer(name: &str, pointer: &Signature) -> String {
    let signature = signature(&pointer.params, false, pointer.ret.as_deref());
    format!("pub type {name} = ::core::option::Option<unsafe extern \"C\" fn{signature}>;\n")
}

/// Returns an enumeration as a module of constants.
fn enumeration(data: &Data, name: &str, one: &Enumeration) -> Result<String, Error> {
    let empty = BTreeMap::new();
    let changed = match data.types.changes.get(name) {
        Some(Change::Enum { changed_values }) => changed_values,
        _ => &empty,
    };
    let mut text = format!("pub mod {name} {{\n    pub type Type = {};\n", rust_type(&one.kind));
    for (value_name, value) in &one.values {
        let now = changed.get(value_name);
        if now.is_some() {
            let _ = write!(text, "    {BEFORE_33}");
        }
        let value = integer(name, value)?;
        let _ = writeln!(text, "    pub const {value_name}: Type = {value};");
    }
    for (value_name, value) in changed {
        let value = integer(name, value)?;
        let _ = write!(text, "    {SINCE_33}");
        let _ = writeln!(text, "    pub const {value_name}: Type = {value};");
    }
    text += "}\n";
    Ok(text)
}

/// Returns an integer from the data.
pub fn integer(name: &str, value: &serde_json::Value) -> Result<i128, Error> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)).ok_or_else(|| {
        Error::Entry { name: name.to_owned(), what: format!("expected an integer, not {value}") }
    })
}

/// Returns a type that the headers declare without its fields.
fn opaque(name: &str) -> String {
    format!("#[repr(C)]\n#[derive(Debug)]\npub struct {name} {{\n    _unused: [u8; 0],\n}}\n")
}

/// Returns a structure or union and, if KMDF 1.33 changes it, its other form.
fn composite_with_changes(
    data: &Data,
    keyword: &str,
    name: &str,
    one: &Composite,
) -> Result<String, Error> {
    let Some(Change::Struct { size, align, fields }) = data.types.changes.get(name) else {
        return composite(keyword, name, one, "");
    };
    let now = Composite { size: *size, align: *align, fields: fields.clone(), ..one.clone() };
    Ok(composite(keyword, name, one, BEFORE_33)? + &composite(keyword, name, &now, SINCE_33)?)
}

/// Returns a structure or union with its assertions, default and accessors, all with the attribute
/// `condition`.
fn composite(keyword: &str, name: &str, one: &Composite, condition: &str) -> Result<String, Error> {
    let mut text = String::from(condition);
    let repr: Vec<&str> = one.repr.iter().flat_map(|part| part.split(',')).collect();
    let _ = writeln!(text, "#[repr({})]", repr.join(", "));
    if !one.derive.is_empty() {
        let _ = writeln!(text, "#[derive({})]", one.derive.join(", "));
    }
    let _ = writeln!(text, "pub {keyword} {name} {{");
    for (field, kind, _) in &one.fields {
        let visibility = if one.opaque && field == "_unused" { "" } else { "pub " };
        let _ = writeln!(text, "    {visibility}{field}: {},", rust_type(kind));
    }
    text += "}\n";
    // In the headers, the type has no layout, so bindgen asserts none.
    if !one.opaque {
        let _ = write!(text, "{condition}layout!({name}, {}, {}", one.size, one.align);
        for (field, _, offset) in &one.fields {
            if !BINDGEN_PREFIXES.iter().any(|prefix| field.starts_with(prefix)) {
                let _ = write!(text, ", {field} = {offset}");
            }
        }
        text += ");\n";
    }
    if one.default == Some(DefaultKind::Zeroed) {
        let _ = writeln!(text, "{condition}zeroed!({name});");
    }
    text += &bit_fields(name, one, condition)?;
    Ok(text)
}

/// Returns the accessors for a type's bit fields.
fn bit_fields(name: &str, one: &Composite, condition: &str) -> Result<String, Error> {
    let mut text = String::new();
    for (unit, kind, _) in &one.fields {
        let Some(storage) =
            kind.strip_prefix("__BindgenBitfieldUnit<").and_then(|kind| kind.strip_suffix('>'))
        else {
            continue;
        };
        let number = unit.strip_prefix("_bitfield_").ok_or_else(|| Error::Entry {
            name: name.to_owned(),
            what: format!("the unit {unit} has no number"),
        })?;
        let _ = writeln!(text, "{condition}bits! {{ {name} {unit} {storage} new_bitfield_{number}");
        for bits in one.bits.iter().filter(|bits| bits.1 == *unit) {
            let (field, offset, width, kind, raw) = (&bits.0, bits.2, bits.3, &bits.4, &bits.5);
            let kind = rust_type(kind);
            let _ = writeln!(
                text,
                "    {field} set_{field} {field}_raw set_{field}_raw {offset} {width} {{{kind}}} \
                 {raw}"
            );
        }
        text += "}\n";
    }
    Ok(text)
}
