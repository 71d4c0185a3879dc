//! Collects a check's diagnostics.

use std::{collections::HashSet, hash::Hash};

use etw_wire::winmeta::is_forbidden_in_names;

use crate::{
    error::{ManifestError, Rule},
    model::{Definition, Manifest, Position},
};

/// Collects the rules that a manifest violates.
pub struct Check<'a> {
    pub manifest: &'a Manifest,
    pub errors: Vec<ManifestError>,
}

/// Returns whether a name is valid for a provider or a channel: it has 1 to 255 characters, none
/// of them special in paths or XML.
#[must_use]
pub fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.chars().count()) && !name.contains(is_forbidden_in_names)
}

impl<'a> Check<'a> {
    pub fn refuse(&mut self, at: Position, rule: Rule) {
        self.errors.push(ManifestError { at, rule });
    }

    /// Reports the second of two definitions with the same key; `key` returns a definition's key,
    /// if it has one, and the key's text.
    pub fn unique<T: Definition + 'a, K: Eq + Hash>(
        &mut self,
        what: &'static str,
        items: impl IntoIterator<Item = &'a T>,
        key: impl Fn(&'a T) -> Option<(K, String)>,
    ) {
        let mut seen = HashSet::new();
        for item in items {
            if let Some((key, name)) = key(item)
                && !seen.insert(key)
            {
                self.refuse(item.at(), Rule::Duplicate { what, name });
            }
        }
    }

    pub fn unique_symbols<T: Definition + 'a>(&mut self, what: &'static str, items: &'a [T]) {
        self.unique(what, items, |item| item.symbol().map(|symbol| (symbol, symbol.clone())));
    }

    pub fn name(&mut self, what: &'static str, name: &str, at: Position, may_have_any: bool) {
        let is_long = !(1..=255).contains(&name.chars().count());
        if is_long || !may_have_any && !is_name(name) {
            self.refuse(at, Rule::Name { what, name: name.to_owned() });
        }
    }
}
