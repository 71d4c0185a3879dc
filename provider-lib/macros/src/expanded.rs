//! Compares the expansions of two events, one of each encoding, with the files that `docs/architecture.md`
//! shows.

use std::{env, fs, mem};

use syn::{
    Attribute, File, Item, ItemMod, Path, PathSegment,
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

    fn visit_path_mut(&mut self, path: &mut Path) {
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

/// Returns the code of an event, in a module.
fn expanded(declaration: &str) -> String {
    let (arguments, module) = declaration.split_once('\n').unwrap();
    let arguments = arguments.strip_prefix("#[wdk_etw::provider(").unwrap().strip_suffix(")]");
    let provider = parse::provider(
        arguments.unwrap().parse().unwrap(),
        module.parse().unwrap(),
        &Configuration::new(),
    );
    let mut module: ItemMod =
        syn::parse2(crate::provider::expand(&provider.unwrap()).unwrap()).unwrap();
    module.content.as_mut().unwrap().1.retain(is_of_an_event);
    Shortened.visit_item_mod_mut(&mut module);
    prettyplease::unparse(&File { shebang: None, attrs: Vec::new(), items: vec![module.into()] })
}

#[test]
fn the_documentation_shows_the_expansion_of_an_event_of_each_encoding() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/expanded");
    for (file, attributes) in EVENTS {
        let declaration = format!(
            "#[wdk_etw::provider(name = \"Contoso.Driver\")]\nmod trace {{\n    \
             #[event({attributes}level = Info, keyword = none)]\n    \
             pub fn read(offset: u64, bytes: u32, file: &str);\n}}\n"
        );
        let commented: String = declaration
            .lines()
            .map(|line| format!("//     {line}").trim_end().to_owned() + "\n")
            .collect();
        let text = format!(
            "// The code that the macro generates for the event of this declaration, without the provider's own items\n\
             // and attributes for lints and inlining; `::core::primitive::u64` is `u64`, and `::wdk_etw::__macro::Write`\n\
             // is `Write`. `cargo xtask renew expanded` writes this file.\n//\n\
             {commented}\n{}",
            expanded(&declaration)
        );
        let path = folder.join(file);
        if env::var_os(RENEW).is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{file} is out of date: `cargo xtask renew expanded` writes it");
    }
}
