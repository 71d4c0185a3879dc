//! The definitions in the data from the WDK headers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use serde_json::Value;

use crate::{BASE, compact};

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data").join(name);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("the data are JSON")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}: no text"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = value.as_object().expect("an object");
    entries.iter().map(|(name, value)| (name.as_str(), value))
}

/// Returns the set that contains an entry, according to the entry's features.
fn set_of(features: &Value) -> &str {
    match features {
        Value::String(one) => one,
        _ => list(features).first().map_or(BASE, text),
    }
}

/// Returns a type in the notation of the sources, in which `long` is 32 bits wide.
fn kind(short: &Value) -> String {
    let words: Vec<String> = compact(text(short))
        .split_inclusive(|one: char| !one.is_alphanumeric() && one != '_')
        .map(|word| {
            let end = word.trim_end_matches(|one: char| !one.is_alphanumeric() && one != '_');
            let rest = &word[end.len()..];
            match end {
                "c_long" | "mutc_long" | "constc_long" => end.replace("c_long", "i32") + rest,
                "c_ulong" | "mutc_ulong" | "constc_ulong" => end.replace("c_ulong", "u32") + rest,
                _ => word.to_owned(),
            }
        })
        .collect();
    words.concat()
}

fn parameters(function: &Value) -> String {
    let mut all: Vec<String> = list(&function["params"])
        .iter()
        .map(|one| format!("{}:{}", text(&one[0]), kind(&one[1])))
        .collect();
    if function["variadic"] == true {
        all.push("...".to_owned());
    }
    let result = match &function["ret"] {
        Value::Null => String::new(),
        result => format!("->{}", kind(result)),
    };
    format!("({}){result}", all.join(","))
}

fn pointer(name: &str, function: &Value) -> String {
    let parameters = parameters(function);
    format!("type {name} = Option<unsafeextern\"C\"fn{parameters}>")
}

/// Returns the lines of an enumeration. `changed` holds its values with KMDF 1.33.
fn enumeration(name: &str, one: &Value, changed: &Value, lines: &mut BTreeSet<String>) {
    lines.insert(format!("mod {name}: type Type = {}", kind(&one["type"])));
    for (value_name, value) in entries(&one["values"]) {
        let condition = if changed[value_name].is_null() { "" } else { "[not(kmdf_1_33)] " };
        lines.insert(format!("{condition}{name}::{value_name} = {value}"));
    }
    for (value_name, value) in changed.as_object().into_iter().flatten() {
        lines.insert(format!("[kmdf_1_33] {name}::{value_name} = {value}"));
    }
}

/// Returns true for a field that bindgen generates, without an offset assertion.
fn is_added_by_bindgen(field: &str) -> bool {
    field.starts_with("__bindgen_anon_")
        || field.starts_with("__bindgen_padding_")
        || field == "_bindgen_align"
        || field == "bindgen_union_field"
        || field.starts_with("_bitfield_")
}

/// Returns the lines of a structure or union.
fn composite(keyword: &str, name: &str, one: &Value, condition: &str, to: &mut BTreeSet<String>) {
    let words = |value: &Value| -> Vec<String> {
        list(value).iter().map(|word| compact(text(word))).collect()
    };
    let mut repr = words(&one["repr"]).join(",");
    if repr.is_empty() {
        repr.push('C');
    }
    let opaque = one["opaque"] == true;
    let fields: Vec<String> = list(&one["fields"])
        .iter()
        .map(|field| {
            let hidden = opaque && field[0] == "_unused";
            let visibility = if hidden { "" } else { "pub " };
            format!("{visibility}{}:{}", text(&field[0]), kind(&field[1]))
        })
        .collect();
    let derive = words(&one["derive"]).join(",");
    to.insert(format!(
        "{condition}{keyword} {name} repr({repr}) derive({derive}) {{{}}}",
        fields.join("; ")
    ));
    if !opaque {
        let mut layout = format!("{condition}layout {name},{},{}", one["size"], one["align"]);
        for field in list(&one["fields"]) {
            if !is_added_by_bindgen(text(&field[0])) {
                write!(layout, ",{}={}", text(&field[0]), field[2]).expect("a string grows");
            }
        }
        to.insert(layout);
    }
    if one["default"] == "zeroed" {
        to.insert(format!("{condition}zeroed {name}"));
    }
    for unit in list(&one["fields"]) {
        let Some(storage) = text(&unit[1]).strip_prefix("__BindgenBitfieldUnit<") else {
            continue;
        };
        let unit = text(&unit[0]);
        let mut line = format!(
            "{condition}bits {name}{unit}{}new{unit}",
            compact(storage.trim_end_matches('>'))
        );
        for bits in list(&one["bits"]).iter().filter(|bits| bits[1] == unit) {
            let field = text(&bits[0]);
            write!(
                line,
                "{field}set_{field}{field}_rawset_{field}_raw{}{}{{{}}}{}",
                bits[2],
                bits[3],
                kind(&bits[4]),
                text(&bits[5])
            )
            .expect("a string grows");
        }
        to.insert(line);
    }
}

/// Returns the names of the framework's function pointer types.
fn framework_pointers() -> BTreeSet<String> {
    entries(&read("functions.json")["kmdf"])
        .filter_map(|(_, function)| function["pfn"].as_str())
        .map(str::to_owned)
        .collect()
}

/// The types of a set.
pub fn types(set: &str) -> BTreeSet<String> {
    let data = read("types.json");
    let changes = &data["kmdf_1_33"];
    let mut lines = BTreeSet::new();
    for keyword in ["struct", "union"] {
        for (name, one) in entries(&data[keyword]) {
            let home = set_of(&one["feature"]);
            if home == set && changes[name]["fields"].is_array() {
                composite(keyword, name, one, "[not(kmdf_1_33)] ", &mut lines);
                let mut now = one.clone();
                for (key, value) in entries(&changes[name]) {
                    if key != "kind" {
                        now[key] = value.clone();
                    }
                }
                composite(keyword, name, &now, "[kmdf_1_33] ", &mut lines);
            } else if home == set {
                composite(keyword, name, one, "", &mut lines);
            } else if set == BASE && one["opaque_without_feature"] == true {
                lines.insert(format!(
                    "[not(feature=\"{home}\")] struct {name} repr(C) derive(Debug) {{_unused:[u8;0]}}"
                ));
            }
        }
    }
    for (name, one) in entries(&data["enum"]) {
        if name != "_WDFFUNCENUM" && set_of(&one["feature"]) == set {
            enumeration(name, one, &changes[name]["changed_values"], &mut lines);
        }
    }
    for (name, one) in entries(&data["alias"]) {
        if set_of(&one[3]) == set {
            let target = kind(&one[0]);
            lines.insert(if one[2] == "use" {
                format!("use self::{target} as {name}")
            } else {
                format!("type {name} = {target}")
            });
        }
    }
    let framework = framework_pointers();
    for (name, one) in entries(&data["fnptr"]) {
        if set_of(&one["feature"]) == set && !framework.contains(name) {
            lines.insert(pointer(name, one));
        }
    }
    lines
}

/// The enumeration of the framework's functions, and the function pointer types.
pub fn framework() -> BTreeSet<String> {
    let data = read("types.json");
    let mut lines = BTreeSet::new();
    enumeration("_WDFFUNCENUM", &data["enum"]["_WDFFUNCENUM"], &Value::Null, &mut lines);
    for name in framework_pointers() {
        let one = &data["fnptr"][&name];
        let condition = match set_of(&one["feature"]) {
            BASE => String::new(),
            feature => format!("[feature=\"{feature}\"] "),
        };
        lines.insert(condition + &pointer(&name, one));
    }
    lines
}

/// The index of each function in the framework's table, and the length of the table.
pub fn function_indices() -> BTreeMap<String, i64> {
    let functions = read("functions.json");
    let table = &functions["kmdf"];
    let mut indices: BTreeMap<String, i64> = entries(table)
        .map(|(name, one)| (format!("{name}TableIndex"), one["index"].as_i64().unwrap()))
        .collect();
    let length = i64::try_from(indices.len()).unwrap();
    indices.insert("WdfFunctionTableNumEntries".to_owned(), length);
    indices
}

/// The constants of a set.
pub fn constants(set: &str) -> BTreeSet<String> {
    let newer = &read("types.json")["kmdf_1_33"];
    let data = read("constants.json");
    let mut lines = BTreeSet::new();
    for (name, one) in entries(&data["constants"]) {
        // The driver's metadata determines this one; another test checks that its possible values
        // are those in the data.
        if set_of(&one[3]) != set || name == "WdfMinimumVersionRequired" {
            continue;
        }
        let kind = compact(text(&one[0]));
        let changed = &newer[name]["value"];
        let condition = if changed.is_null() { "" } else { "[not(kmdf_1_33)] " };
        lines.insert(format!("{condition}{name}: {kind} = {}", one[1]));
        if !changed.is_null() {
            lines.insert(format!("[kmdf_1_33] {name}: {kind} = {changed}"));
        }
    }
    lines
}

/// The variables of a set.
pub fn variables(set: &str) -> BTreeSet<String> {
    let changes = &read("types.json")["kmdf_1_33"];
    let data = read("statics.json");
    let mut lines = BTreeSet::new();
    for (name, one) in entries(&data["statics"]) {
        if set_of(&one["feature"]) != set {
            continue;
        }
        let mutable = if one["mut"] == true { "mut " } else { "" };
        // The line does not name the module, because the import library determines the level of
        // indirection.
        let line = format!("{mutable}{name}: {} from ", kind(&one["type"]));
        match one["link_name"].as_str() {
            None => drop(lines.insert(line)),
            Some(symbol) => {
                let now = text(&changes[name]["link_name"]);
                lines.insert(format!("[not(kmdf_1_33)] {line} as {symbol}"));
                lines.insert(format!("[kmdf_1_33] {line} as {now}"));
            }
        }
    }
    lines
}

/// The variables of the entry library.
pub fn entry_variables() -> BTreeSet<String> {
    entries(&read("statics.json")["statics"])
        .filter(|(_, one)| one["from"] == "WdfDriverEntry.lib")
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Calls `each` with the functions of the kernel and of all features.
fn for_each_function(mut each: impl FnMut(&str, &Value)) {
    let data = read("functions.json");
    for part in ["nt", "feature"] {
        for (name, one) in entries(&data[part]) {
            each(name, one);
        }
    }
}

/// The functions of a set.
pub fn functions(set: &str) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for_each_function(|name, one| {
        if set_of(&one["feature"]) == set {
            let must_use = if one["must_use"] == true { "must_use " } else { "" };
            lines.insert(format!("{must_use}{name}{}", parameters(one)));
        }
    });
    lines
}

/// The header of each function, and the module that exports it.
pub fn modules() -> BTreeMap<String, (String, Option<String>)> {
    let mut all = BTreeMap::new();
    for_each_function(|name, one| {
        let header = one["header"].as_str().unwrap_or_default().to_owned();
        let module = one["dll"].as_str().map(str::to_owned);
        all.insert(name.to_owned(), (header, module));
    });
    all
}
