//! The state of an import, and what it says of the manifest.

use std::collections::{BTreeMap, HashSet};

use etw_manifest::{Manifest, Position, Provider, printable};
use proc_macro2::TokenStream;
use quote::quote;

/// Something of a manifest that a declaration cannot say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {}", at.line, at.column, printable(what))]
pub struct Note {
    /// Where it stands in the manifest.
    pub at: Position,
    /// What it is.
    pub what: String,
}

/// Writes the declaration of one provider.
pub struct Writer<'a> {
    pub manifest: &'a Manifest,
    pub provider: &'a Provider,
    pub notes: &'a mut Vec<Note>,
    /// The types that maps have become, by the map and the integer that travels.
    pub maps: BTreeMap<(usize, &'static str), String>,
    /// Structures.
    pub structures: Vec<TokenStream>,
    /// Names of types.
    pub idents: HashSet<String>,
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

    /// A doc comment of a text.
    pub fn describe(&self, message: Option<usize>) -> TokenStream {
        let Some(description) = self.value(message) else {
            return TokenStream::new();
        };
        // What would end the comment, or turn it around, is written out.
        let description = description.replace(['\n', '\r'], " ");
        let description = format!(" {}", printable(&description).trim());
        quote!(#[doc = #description])
    }
}
