//! Compares expansions with files: those of two events, one of each encoding, which `docs/architecture.md`
//! shows, and the functions that write each form of field.

use std::{env, fmt::Write as _, fs, mem, path::Path};

use syn::{
    Attribute, File, Item, ItemMod, PathSegment,
    visit_mut::{self, VisitMut},
};
use wdk_etw_schema::{Configuration, parse};

/// The environment variable, set by `cargo xtask renew expanded`, that makes the test write the files before
/// it compares them.
const RENEW: &str = "WDK_ETW_RENEW";

/// The events' files, and their attributes in declarations.
const EVENTS: [(&str, &str); 2] =
    [("manifest-event.rs", "id = 1, "), ("tracelogging-event.rs", "")];

/// The items of a provider, which are the same with any events.
const OF_THE_PROVIDER: [&str; 5] = ["ID", "PROVIDER", "__WDK_ETW_TRAITS", "register", "unregister"];

/// Removes what a reader does not need: attributes for lints, inlining and documentation, and the first
/// segments of absolute paths.
struct Shortened;

impl VisitMut for Shortened {
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<Attribute>) {
        attributes.retain(|one| {
            let is_text = one.path().is_ident("doc") && one.meta.require_name_value().is_ok();
            is_text || ["cold", "must_use"].iter().any(|name| one.path().is_ident(name))
        });
    }

    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        visit_mut::visit_path_mut(self, path);
        if path.leading_colon.take().is_none() {
            return;
        }
        let is_module = |segment: &PathSegment| {
            ["core", "option", "primitive", "result", "wdk_etw", "__macro"]
                .iter()
                .any(|name| segment.ident == name)
        };
        path.segments = mem::take(&mut path.segments).into_iter().skip_while(is_module).collect();
    }
}

fn is_of_an_event(item: &Item) -> bool {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        _ => return true,
    };
    // The checks of the mode have the name `_`.
    name != "_" && !OF_THE_PROVIDER.iter().any(|one| name == one)
}

/// Returns the module that a declaration expands to, without what a reader does not need.
fn expanded(arguments: &str, module: &str) -> ItemMod {
    let provider =
        parse::provider(arguments.parse().unwrap(), module.parse().unwrap(), &Configuration::new());
    let mut module: ItemMod =
        syn::parse2(crate::provider::expand(&provider.unwrap()).unwrap()).unwrap();
    Shortened.visit_item_mod_mut(&mut module);
    module
}

fn printed(items: Vec<Item>) -> String {
    prettyplease::unparse(&File { shebang: None, attrs: Vec::new(), items })
}

/// Compares a text with a file, relative to this package's folder, or writes the file.
fn assert_is_in(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if env::var_os(RENEW).is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{file} is out of date: `cargo xtask renew expanded` writes it");
}

#[test]
fn the_documentation_shows_the_expansion_of_an_event_of_each_encoding() {
    for (file, attributes) in EVENTS {
        let arguments = "name = \"Contoso.Driver\"";
        let module = format!(
            "mod trace {{\n    #[event({attributes}level = Info, keyword = none)]\n    \
             pub fn read(offset: u64, bytes: u32, file: &str);\n}}"
        );
        let commented: String = format!("#[wdk_etw::provider({arguments})]\n{module}")
            .lines()
            .map(|line| format!("//     {line}").trim_end().to_owned() + "\n")
            .collect();
        let mut expanded = expanded(arguments, &module);
        expanded.content.as_mut().unwrap().1.retain(is_of_an_event);
        let text = format!(
            "// The code that the macro generates for the event of this declaration, without the provider's own items\n\
             // and attributes for lints and inlining; `::core::primitive::u64` is `u64`, and `::wdk_etw::__macro::Write`\n\
             // is `Write`. `cargo xtask renew expanded` writes this file.\n//\n\
             {commented}\n{}",
            printed(vec![expanded.into()])
        );
        assert_is_in(&format!("../../docs/expanded/{file}"), &text);
    }
}

/// Events with the forms of fields: what to look for in the functions that write them, the provider's
/// and the event's settings, and the fields.
const WRITERS: [(&str, &str, &str, &str); 11] = [
    (
        "A value in one register precedes the event, which stays in its register.",
        "",
        "",
        "a: u8, b: &str",
    ),
    ("A manifest event has no metadata.", "", ", id = 1", "a: u8, b: &str"),
    ("Only a provider with statistics counts its events.", ", statistics", "", "a: u8"),
    (
        "Only numbers of fewer bits are checked; the slow path limits them.",
        "",
        "",
        "#[repr(u16)] a: usize, #[repr(u64)] b: usize, #[repr(i8)] c: isize",
    ),
    (
        "The slow path cuts values that do not fit, between characters or elements.",
        "",
        ", id = 1",
        "#[length(u8)] a: &[u16], b: &str, c: &[u32], d: &[Place]",
    ),
    (
        "These values are passed whole.",
        "",
        "",
        "a: [u16; 3], b: &[Place; 2], c: Sid<'_>, d: SocketAddr",
    ),
    (
        "A count is that of the shortest value that it counts. The values are cut to the caller's numbers, \
         and on the slow path again after `fit`.",
        "",
        ", id = 1",
        "number: u8, other: u16, #[repr(u32)] size: usize, #[length(field = number)] a: &str, \
         #[count(field = size)] b: &[u64], #[length(field = number)] c: &[u16], d: &[u8]",
    ),
    (
        "A length in a field of its own counts characters.",
        "",
        ", id = 1",
        "#[length(u8)] a: &str, #[length(u32)] b: &[u16], c: &[u16], #[length(u16)] d: UnicodeString<'_>, \
         #[count(u8)] e: &[u64], f: &[Place], g: &[u8]",
    ),
    ("A NUL has the size of the text's code units.", "", "", "a: Utf16CStr<'_>, b: &CStr, c: u8"),
    (
        "Values are copied in their form.",
        "",
        "",
        "a: Pointer, #[address] b: Pointer, c: Kind, d: bool, e: usize, f: Port, g: Ipv4Addr, h: Ipv6Addr, \
         i: Place",
    ),
    (
        "A block has its parts in order, and its size.",
        "",
        "",
        "a: u8, b: u16, c: Guid, d: [u8; 3], e: u32",
    ),
];

#[test]
fn the_functions_that_write_each_form_of_field_are_those_of_the_file() {
    let mut text = "`cargo xtask renew expanded` writes this file.\n".to_owned();
    for (what, settings, attributes, fields) in WRITERS {
        let module = format!(
            "mod trace {{ #[map] enum Kind {{ A = 1 }} #[structure] struct Place {{ x: u8 }} \
             #[event(level = Info, keyword = none{attributes})] fn x({fields}); }}"
        );
        let mut items = expanded(&format!("name = \"Test\"{settings}"), &module).content.unwrap().1;
        items.retain(|item| matches!(item, Item::Fn(one) if one.sig.ident.to_string().starts_with("__write")));
        assert_eq!(items.len(), 2, "{fields}");
        let code = printed(items).replace("__wdk_etw_", "");
        writeln!(text, "\n// {what}\n// {settings}{attributes}: {fields}\n{code}").unwrap();
    }
    assert_is_in("tests/writers.txt", &text);
}
