//! The items that other crates can name, and their paths.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, Visibility};

use crate::modules::{Crate, Found, Id, ROOT, attributes, defined, has_attribute, is_hidden, used};

/// The target of a public path.
pub enum Public {
    /// A module of the crate.
    Module,
    /// An item of a module of the crate, by its name there.
    Item(Found),
    /// An item of another crate, by its path.
    Foreign(Vec<String>),
}

/// Returns all targets that other crates can name, by their paths.
pub fn reach(modules: &Crate, library: &str) -> BTreeMap<String, Public> {
    let mut reached = BTreeMap::new();
    walk(modules, ROOT, library, &mut BTreeSet::new(), &mut reached);
    // Exported macros are in the root, whichever module defines them.
    for (id, module) in modules.modules.iter().enumerate() {
        for item in &module.items {
            let Item::Macro(item) = item else { continue };
            let is_exported = has_attribute(&item.attrs, "macro_export");
            if let Some(name) = item.ident.as_ref().filter(|_| is_exported) {
                let found = Found { module: id, item: Some(name.to_string()) };
                reached.insert(format!("{library}::{name}"), Public::Item(found));
            }
        }
    }
    reached
}

/// Returns the public names that an item defines.
fn public_names(item: &Item) -> Vec<String> {
    let visibility = match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::TraitAlias(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Union(item) => &item.vis,
        _ => return Vec::new(),
    };
    if matches!(visibility, Visibility::Public(_)) && !is_hidden(attributes(item)) {
        defined(item)
    } else {
        Vec::new()
    }
}

fn walk(
    modules: &Crate,
    id: Id,
    path: &str,
    above: &mut BTreeSet<Id>,
    reached: &mut BTreeMap<String, Public>,
) {
    // A module that re-exports one of its ancestors is listed once.
    if !above.insert(id) {
        return;
    }
    let module = &modules.modules[id];
    for (name, child) in &module.children {
        if modules.modules[*child].is_public {
            let path = format!("{path}::{name}");
            reached.insert(path.clone(), Public::Module);
            walk(modules, *child, &path, above, reached);
        }
    }
    for item in &module.items {
        for name in public_names(item) {
            let found = Found { module: id, item: Some(name.clone()) };
            reached.insert(format!("{path}::{name}"), Public::Item(found));
        }
        let Item::Use(item) = item else { continue };
        if !matches!(item.vis, Visibility::Public(_)) {
            continue;
        }
        for used in used(item) {
            let found = modules.resolve(id, &used.path);
            let name = used.name.map(|name| format!("{path}::{name}"));
            match (found, name) {
                (Some(Found { module, item: None }), Some(path)) => {
                    reached.insert(path.clone(), Public::Module);
                    walk(modules, module, &path, above, reached);
                }
                (Some(found), Some(path)) => {
                    reached.insert(path, Public::Item(found));
                }
                (Some(found), None) => walk(modules, found.module, path, above, reached),
                (None, name) => {
                    let path = name.unwrap_or_else(|| format!("{path}::*"));
                    reached.insert(path, Public::Foreign(used.path));
                }
            }
        }
    }
    above.remove(&id);
}
