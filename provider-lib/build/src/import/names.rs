//! Converts a manifest's names to unique Rust names.

use std::collections::HashSet;

use heck::{ToSnakeCase as _, ToUpperCamelCase as _};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

use crate::declaration::xml_name;

/// Identifiers that a declaration cannot use: names in the generated code, and a keyword of a later
/// edition.
const RESERVED: &[&str] = &["gen", "register", "unregister"];

/// Returns whether a string is a valid Rust identifier.
fn is_ident(text: &str) -> bool {
    syn::parse_str::<Ident>(text).is_ok() && !RESERVED.contains(&text)
}

/// Keeps only ASCII letters, which every tool accepts; heck keeps letters of all scripts.
fn ascii(text: &str) -> String {
    let kept = text.chars().map(|character| {
        let is_part = character.is_ascii_alphanumeric();
        if is_part { character } else { '_' }
    });
    kept.collect()
}

/// Returns a name for a function, a field or a module.
pub fn snake(name: &str) -> String {
    let name = ascii(name).to_snake_case();
    if is_ident(&name) && !name.starts_with('_') {
        name
    } else if name.is_empty() {
        "n".to_owned()
    } else {
        format!("n_{name}")
    }
}

/// Returns a name for a constant.
pub fn shouting(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

/// Returns a name for a type or a variant.
pub fn pascal(name: &str) -> String {
    let name = ascii(name).to_upper_camel_case();
    if is_ident(&name) { name } else { format!("N{name}") }
}

/// Returns a unique name.
pub fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    numbered(name, "_", taken)
}

/// Returns a unique name for a type, in upper camel case.
pub fn unique_type(name: &str, taken: &mut HashSet<String>) -> String {
    let ends_with_digit = name.ends_with(|last: char| last.is_ascii_digit());
    numbered(name, if ends_with_digit { "V" } else { "" }, taken)
}

/// Returns a name that is not taken: the name itself, or the name with a number.
fn numbered(name: &str, between: &str, taken: &mut HashSet<String>) -> String {
    let others = (2..).map(|number| format!("{name}{between}{number}"));
    let mut all = std::iter::once(name.to_owned()).chain(others);
    all.find(|candidate| taken.insert(candidate.clone())).unwrap_or_default()
}

/// Returns a unique identifier for a definition, and the attribute that keeps its name. If another
/// definition already has the name, which happens only with damaged resources, the name is lost.
pub fn unique_named(
    base: &str,
    name: &str,
    idents: &mut HashSet<String>,
    names: &mut HashSet<String>,
) -> (String, TokenStream) {
    let mut ident = unique(base, idents);
    let key = |name: &str| xml_name(name).written;
    if !name.is_empty() && names.insert(key(name)) {
        let rename = rename(&ident, name);
        return (ident, rename);
    }
    while !names.insert(key(&wdk_etw_schema::pascal_case(&ident))) {
        ident = unique(base, idents);
    }
    (ident, TokenStream::new())
}

/// Returns the identifier for a name from this module; the names are always valid.
pub fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// Returns `#[name = "…"]`. Removes NULs, which only resources can contain, not manifests.
pub fn renamed(name: &str) -> TokenStream {
    let name = name.replace('\0', " ");
    quote!(#[name = #name])
}

/// Returns `#[name = "…"]` if the identifier alone would give a different name. Ignores empty
/// names.
pub fn rename(ident: &str, name: &str) -> TokenStream {
    if name.is_empty() || wdk_etw_schema::pascal_case(ident) == name {
        TokenStream::new()
    } else {
        renamed(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_in_rust() {
        for (name, expected) in [
            ("ReadComplete", "read_complete"),
            ("E_ONE_1", "e_one_1"),
            ("Disk IO", "disk_io"),
            ("type", "n_type"),
            ("Self", "n_self"),
            ("register", "n_register"),
            ("3Com", "n_3com"),
            ("", "n"),
            ("日本", "n"),
        ] {
            assert_eq!(snake(name), expected, "{name}");
        }
        for (name, expected) in
            [("read_complete", "ReadComplete"), ("Self", "NSelf"), ("3rd", "N3rd"), ("²", "N")]
        {
            assert_eq!(pascal(name), expected, "{name}");
        }
        assert_eq!(shouting("IoRead"), "IO_READ");
        let mut taken = HashSet::new();
        let names = ["a", "a", "a", "a_2"].map(|name| unique(name, &mut taken));
        assert_eq!(names, ["a", "a_2", "a_3", "a_2_2"]);
    }
}
