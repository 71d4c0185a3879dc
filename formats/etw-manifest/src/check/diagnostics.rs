//! Collects a check's diagnostics.

use std::{collections::HashSet, hash::Hash};

use crate::{
    error::{ManifestError, Rule},
    model::{Manifest, Position},
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
    (1..=255).contains(&name.chars().count()) && !name.contains(is_forbidden)
}

/// The characters that a provider's or channel's name cannot contain.
fn is_forbidden(character: char) -> bool {
    character.is_control() || "><&\"|\\:'?*".contains(character)
}

impl<'a> Check<'a> {
    pub fn refuse(&mut self, at: Position, rule: Rule) {
        self.errors.push(ManifestError { at, rule });
    }

    /// Reports the second of two definitions with the same key.
    pub fn unique<K: Eq + Hash>(
        &mut self,
        what: &'static str,
        items: impl Iterator<Item = (K, String, Position)>,
    ) {
        let mut seen = HashSet::new();
        for (key, name, at) in items {
            if !seen.insert(key) {
                self.refuse(at, Rule::Duplicate { what, name });
            }
        }
    }

    pub fn unique_symbols(
        &mut self,
        what: &'static str,
        items: impl Iterator<Item = (Option<&'a String>, Position)>,
    ) {
        let symbols = items.filter_map(|(symbol, at)| Some((symbol?, at)));
        self.unique(what, symbols.map(|(symbol, at)| (symbol.clone(), symbol.clone(), at)));
    }

    pub fn name(&mut self, what: &'static str, name: &str, at: Position, may_have_any: bool) {
        let is_long = !(1..=255).contains(&name.chars().count());
        if is_long || !may_have_any && !is_name(name) {
            self.refuse(at, Rule::Name { what, name: name.to_owned() });
        }
    }
}
