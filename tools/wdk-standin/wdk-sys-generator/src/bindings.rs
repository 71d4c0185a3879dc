//! Constants, variables and functions.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use crate::{
    data::{Change, Constant, Data, FUNCTION_TABLE, Function, KERNEL, Static},
    error::Error,
    text::{BASE, feature, rust_type, set_of, signature},
    types::integer,
};

/// The condition under which routines are imported from the modules that export them.
const LINKS: &str =
    "all(target_os = \"windows\", not(any(test, feature = \"suppress-wdk-linking\")))";

/// The library whose variables the stand-in's entry code defines, and the condition under which it
/// does not. The entry code's names are mangled, because a driver would export variables that Rust
/// code defines under fixed names.
const ENTRY_LIBRARY: &str = "WdfDriverEntry.lib";
const NO_ENTRY: &str = "#[cfg(feature = \"suppress-wdk-linking\")]\n";

/// The constant that a driver's metadata determines. It is written by hand.
const MINIMUM_VERSION: &str = "WdfMinimumVersionRequired";

/// The headers whose routines are in a static library of the WDK. A driver imports them as if from
/// a module with the library's name, so that the driver can be linked and the stand-in kernel can
/// report a called routine's name. Windows has no such module.
const STATIC_LIBRARIES: [(&str, &str); 2] = [("usbdlib.h", "usbdex.lib"), ("vhf.h", "vhfkm.lib")];

/// The prefixes of kernel routines whose module is missing from the data; they are declared in the
/// kernel's headers. Other routines without a module are only declared, as in the published
/// bindings.
const KERNEL_PREFIXES: [&str; 9] = ["Ex", "FsRtl", "Io", "Ke", "Mm", "Nt", "Rtl", "Se", "Vsl"];
const KERNEL_HEADERS: [&str; 3] = ["ntddk.h", "ntifs.h", "wdm.h"];

/// Returns the source of a set's constants, and of the variables that other modules define.
pub fn constants(data: &Data, set: &str) -> Result<String, Error> {
    let mut text = String::new();
    for (name, one) in &data.constants {
        if set_of(name, &one.feature)? != set || name == MINIMUM_VERSION {
            continue;
        }
        let first = value(name, one)?;
        let kind = rust_type(&one.kind);
        if let Some(Change::Const { value }) = data.types.changes.get(name) {
            let _ = write!(
                text,
                "#[cfg(not(kmdf_1_33))]\npub const {name}: {kind} = {first};\n\
                 #[cfg(kmdf_1_33)]\npub const {name}: {kind} = {value};\n"
            );
        } else {
            let _ = writeln!(text, "pub const {name}: {kind} = {first};");
        }
    }
    let mut modules: BTreeMap<&str, String> = BTreeMap::new();
    for (name, one) in &data.statics {
        if set_of(name, &one.feature)? != set {
            continue;
        }
        // The others are declared without a module, as in the published bindings. Kernel variables
        // need the import library; other variables need a static library that the driver must link.
        let module = one.from.as_deref().filter(|from| *from == ENTRY_LIBRARY);
        let block = modules.entry(module.unwrap_or_default()).or_default();
        for (condition, symbol) in symbols(data, name, one) {
            let _ = match condition {
                Some(condition) => {
                    writeln!(block, "    #[cfg_attr({condition}, link_name = \"{symbol}\")]")
                }
                None => writeln!(block, "    #[link_name = \"{symbol}\"]"),
            };
        }
        let mutable = if one.mutable { "mut " } else { "" };
        let kind = rust_type(&one.kind);
        let _ = writeln!(block, "    pub static {mutable}{name}: {kind};");
    }
    text += &blocks(&modules);
    Ok(text)
}

/// Returns the symbols of a variable whose symbol differs from its name, each with the condition
/// under which it applies.
fn symbols<'a>(
    data: &'a Data,
    name: &str,
    one: &'a Static,
) -> Vec<(Option<&'static str>, &'a String)> {
    match (&one.link_name, data.types.changes.get(name)) {
        (Some(before), Some(Change::Static { link_name })) => {
            vec![(Some("not(kmdf_1_33)"), before), (Some("kmdf_1_33"), link_name)]
        }
        (Some(symbol), _) => vec![(None, symbol)],
        (None, _) => Vec::new(),
    }
}

/// Returns the source of a macro that assigns the symbol of the pointer to the framework's function
/// table.
pub fn table(data: &Data) -> String {
    let mut text =
        String::from("#[allow(unused_macros)]\nmacro_rules! table {\n    ($($item:tt)*) => {\n");
    if let Some(one) = data.statics.get(FUNCTION_TABLE) {
        text += "        // SAFETY: the symbol belongs to the WDK's entry library, which is not linked.\n";
        for (condition, symbol) in symbols(data, FUNCTION_TABLE, one) {
            let name = format!("unsafe(export_name = \"{symbol}\")");
            let _ = match condition {
                Some(condition) => writeln!(text, "        #[cfg_attr({condition}, {name})]"),
                None => writeln!(text, "        #[{name}]"),
            };
        }
    }
    text + "        $($item)*\n    };\n}\n"
}

/// Returns a constant's value as an expression.
fn value(name: &str, one: &Constant) -> Result<String, Error> {
    Ok(match (&one.value, one.kind.as_str()) {
        (Value::Null, _) => "::core::ptr::null_mut()".to_owned(),
        (Value::String(text), _) => format!("c{text:?}"),
        (number, "NTSTATUS") => {
            let wide = integer(name, number)?;
            let bits = u32::try_from(wide.rem_euclid(1 << 32))
                .map_err(|error| Error::Entry { name: name.to_owned(), what: error.to_string() })?;
            format!("0x{bits:08X}_u32.cast_signed()")
        }
        (number, _) => integer(name, number)?.to_string(),
    })
}

/// Returns the source of the module that contains a set's functions.
pub fn functions(data: &Data, set: &str) -> String {
    let mut modules: BTreeMap<&str, String> = BTreeMap::new();
    for (name, one) in data.functions.nt.iter().chain(&data.functions.feature) {
        if one.feature.as_deref().unwrap_or(BASE) != set {
            continue;
        }
        let block = modules.entry(module(name, one)).or_default();
        if one.must_use {
            *block += "    #[must_use]\n";
        }
        let signature = signature(&one.params, one.variadic, one.ret.as_deref());
        let _ = writeln!(block, "    pub fn {name}{signature};");
    }
    let (headers, name) = if set == BASE {
        ("ntifs.h and ntddk.h".to_owned(), "ntddk")
    } else {
        (format!("the headers of the feature `{}`", feature(set)), set)
    };
    let items = if modules.is_empty() {
        "    // The headers declare none.\n".to_owned()
    } else {
        format!("use crate::generated::types::*;\n{}", blocks(&modules))
    };
    format!("\n/// Functions of {headers}.\npub mod {name} {{\n{items}}}\n")
}

/// Returns the module from which a routine is imported, or an empty name if it is only declared.
pub fn module<'a>(name: &str, one: &'a Function) -> &'a str {
    match one.dll.as_deref() {
        // Since Windows 10 2004, both modules export the routine; ntoskrnl.lib is linked first.
        _ if name == "KeQueryPerformanceCounter" => KERNEL,
        // The name's spelling in import libraries.
        Some("hal.dll") => "HAL.dll",
        Some(dll) => dll,
        None if one.header == "storport.h" => "storport.sys",
        None if KERNEL_HEADERS.contains(&one.header.as_str()) && is_kernel_routine(name) => KERNEL,
        None => STATIC_LIBRARIES
            .iter()
            .find(|(header, _)| *header == one.header)
            .map_or("", |(_, library)| library),
    }
}

/// Returns true if a name is a kernel prefix followed by a capitalized word: `SeAccessCheck`, but
/// not `SetContextAttributesW`.
fn is_kernel_routine(name: &str) -> bool {
    KERNEL_PREFIXES.iter().any(|prefix| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    })
}

/// Returns a block of declarations for each module.
fn blocks(modules: &BTreeMap<&str, String>) -> String {
    let mut text = String::new();
    for (module, items) in modules {
        if *module == ENTRY_LIBRARY {
            text += NO_ENTRY;
        } else if !module.is_empty() {
            let _ = write!(
                text,
                "#[cfg_attr(\n    {LINKS},\n    link(name = \"{module}\", kind = \"raw-dylib\", \
                 modifiers = \"+verbatim\")\n)]\n"
            );
        }
        let _ = write!(text, "unsafe extern \"C\" {{\n{items}}}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_routines_are_recognized_by_their_names() {
        assert!(is_kernel_routine("IoTryQueueWorkItem"));
        assert!(is_kernel_routine("SeAccessCheckFromStateEx"));
        assert!(!is_kernel_routine("SetContextAttributesW"));
        assert!(!is_kernel_routine("HalPutDmaAdapter"));
    }
}
