//! Finds the modules that implement types' functions, methods and constants.

use std::collections::{BTreeMap, BTreeSet};

use syn::{ImplItem, Item, ItemImpl, TraitItem, Type};

use super::{
    names::Found,
    tree::{Crate, Id},
};

/// The inherent functions, methods and constants of a crate's types.
pub struct Methods {
    /// The types that define each name.
    by_name: BTreeMap<String, BTreeMap<Found, Method>>,
    /// The names that the crate's traits define.
    of_traits: BTreeSet<String>,
}

/// A type's function, method or constant.
#[derive(Default)]
struct Method {
    /// The modules with the defining `impl`s.
    modules: BTreeSet<Id>,
    /// The number of arguments after the receiver.
    arguments: usize,
}

impl Methods {
    /// Collects the names in all modules of a crate.
    pub fn collect(all: &Crate) -> Self {
        let mut found = Self { by_name: BTreeMap::new(), of_traits: BTreeSet::new() };
        for id in 0..all.modules.len() {
            for item in &all.modules[id].items {
                match item {
                    Item::Impl(item) if item.trait_.is_none() => found.add(all, id, item),
                    Item::Trait(item) => {
                        let functions = item.items.iter().filter_map(|item| match item {
                            TraitItem::Fn(item) => Some(item.sig.ident.to_string()),
                            _ => None,
                        });
                        found.of_traits.extend(functions);
                    }
                    _ => {}
                }
            }
        }
        found
    }

    fn add(&mut self, all: &Crate, id: Id, item: &ItemImpl) {
        let Some(of) = all.type_of(id, item) else {
            return;
        };
        for item in &item.items {
            let (name, parameters) = match item {
                ImplItem::Fn(item) => (&item.sig.ident, item.sig.inputs.len()),
                ImplItem::Const(item) => (&item.ident, 0),
                _ => continue,
            };
            let types = self.by_name.entry(name.to_string()).or_default();
            let method = types.entry(of.clone()).or_default();
            method.modules.insert(id);
            method.arguments = parameters.saturating_sub(1);
        }
    }

    /// Returns the modules that define a name for a type.
    pub fn of_type(&self, of: &Found, name: &str) -> BTreeSet<Id> {
        let method = self.by_name.get(name).and_then(|types| types.get(of));
        method.map_or_else(BTreeSet::new, |method| method.modules.clone())
    }

    /// Returns the modules that implement a method, if the method is outside its type's module and
    /// has this number of arguments, and no other type or trait in the crate has a method with that
    /// name.
    pub fn of_any(&self, name: &str, arguments: usize) -> BTreeSet<Id> {
        let types = self.by_name.get(name).filter(|types| types.len() == 1);
        let only = types.and_then(|types| types.iter().next());
        match only {
            Some((of, method))
                if method.arguments == arguments && !self.of_traits.contains(name) =>
            {
                let elsewhere = |module: &Id| *module != of.module;
                method.modules.iter().copied().filter(elsewhere).collect()
            }
            Some(_) | None => BTreeSet::new(),
        }
    }
}

impl Crate {
    /// Returns the type of an `impl` if the crate defines it.
    pub fn type_of(&self, id: Id, item: &ItemImpl) -> Option<Found> {
        let Type::Path(of) = &*item.self_ty else {
            return None;
        };
        let path: Vec<String> =
            of.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.resolve(id, &path)
    }
}
