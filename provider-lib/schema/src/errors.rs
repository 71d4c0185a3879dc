//! Collects the errors of a declaration.

use std::collections::HashSet;

use proc_macro2::Span;
use syn::Ident;

/// A list of errors, all of which are reported.
#[derive(Default)]
pub struct Errors(Option<syn::Error>);

impl Errors {
    pub fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.push(syn::Error::new(span, message));
    }

    pub fn append(&mut self, other: Self) {
        if let Some(errors) = other.0 {
            self.push(errors);
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub fn finish<T>(self, value: T) -> syn::Result<T> {
        self.into_inner().map_or(Ok(value), Err)
    }

    /// Returns the errors. Keeps only the first at each token, because the others result from it.
    pub fn into_inner(self) -> Option<syn::Error> {
        let mut kept = Self::default();
        let mut seen = HashSet::new();
        for error in self.0? {
            let span = error.span();
            let (start, end) = (span.start(), span.end());
            // An error about the declaration as a whole has no token.
            let is_whole = start == end;
            if is_whole || seen.insert((start, end)) {
                kept.push(error);
            }
        }
        kept.0
    }
}

/// Returns the error for an undeclared name, listing the declared names.
pub fn undeclared(what: &str, word: &Ident, names: impl Iterator<Item = String>) -> syn::Error {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let declared = if names.is_empty() {
        "the provider declares none".to_owned()
    } else {
        format!("declared: {}", names.join(", "))
    };
    syn::Error::new(word.span(), format!("the {what} `{word}` is not declared; {declared}"))
}
