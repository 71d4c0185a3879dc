//! The state and the notes of an import.

use std::collections::{BTreeMap, HashMap, HashSet};

use etw_manifest::{Manifest, Position, Provider, printable};
use proc_macro2::TokenStream;
use quote::quote;

use super::names::{pascal, unique_type};

/// A part of a manifest that a declaration cannot express.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}:{}: {}", at.line, at.column, printable(what))]
pub struct Note {
    /// The position in the manifest.
    pub at: Position,
    /// The explanation.
    pub what: String,
}

/// Writes the declaration of one provider.
pub struct Writer<'a> {
    pub manifest: &'a Manifest,
    pub provider: &'a Provider,
    pub notes: &'a mut Vec<Note>,
    /// The types of maps, by the map and the integer type of its values.
    pub maps: BTreeMap<(usize, &'static str), String>,
    /// The structures.
    pub structures: Vec<TokenStream>,
    /// The names of types.
    pub idents: HashSet<String>,
    /// The names of values: keywords and maps, because a map's type is also a function.
    pub values: HashSet<String>,
    /// The names of maps in the declaration's manifest, with the map's index.
    pub map_names: HashMap<String, usize>,
}

impl Writer<'_> {
    pub fn note(&mut self, at: Position, what: impl Into<String>) {
        let what = what.into();
        self.notes.push(Note { at, what });
    }

    pub fn value(&self, message: Option<usize>) -> Option<&str> {
        let text = self.manifest.texts.get(message?)?;
        Some(text.value.as_str())
    }

    /// Returns a string as a doc comment.
    pub fn describe(&self, message: Option<usize>) -> TokenStream {
        let Some(description) = self.value(message) else {
            return TokenStream::new();
        };
        // Characters that would end or reorder the comment are escaped.
        let description = description.replace(['\n', '\r'], " ");
        let description = format!(" {}", printable(&description).trim());
        quote!(#[doc = #description])
    }

    /// Returns the type that represents a map as an integer of a width.
    pub fn map(&mut self, map: usize, width: &'static str) -> String {
        if let Some(known) = self.maps.get(&(map, width)) {
            return known.clone();
        }
        let usual = pascal(&self.provider.maps[map].name);
        let mut name = unique_type(&usual, &mut self.idents);
        let own = &self.provider.maps[map].name;
        let keeps_name =
            !own.is_empty() && *self.map_names.entry(own.clone()).or_insert(map) == map;
        let is_taken =
            |name: &String, names: &HashMap<String, usize>| !keeps_name && names.contains_key(name);
        while is_taken(&name, &self.map_names) || !self.values.insert(name.clone()) {
            name = unique_type(&usual, &mut self.idents);
        }
        if !keeps_name {
            self.map_names.insert(name.clone(), map);
        }
        self.maps.insert((map, width), name.clone());
        name
    }
}
