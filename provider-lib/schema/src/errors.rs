//! Collects the errors of a declaration.

use std::{collections::HashSet, fmt::Display};

use proc_macro2::Span;
use quote::ToTokens;
use syn::Ident;

/// The place of an error: a location, or all tokens of a syntax node.
pub trait Place {
    fn error(self, message: impl Display) -> syn::Error;
}

impl Place for Span {
    fn error(self, message: impl Display) -> syn::Error {
        syn::Error::new(self, message)
    }
}

/// The tokens of a syntax node as the place of an error.
pub struct Tokens<T>(pub T);

impl<T: ToTokens> Place for Tokens<T> {
    fn error(self, message: impl Display) -> syn::Error {
        syn::Error::new_spanned(self.0, message)
    }
}

/// Creates an error at a place, with a message as in `format!`.
macro_rules! error {
    ($place:expr, $($message:tt)*) => {
        $crate::errors::Place::error($place, format_args!($($message)*))
    };
}

/// Returns an error at a place, with a message as in `format!`.
macro_rules! bail {
    ($($arguments:tt)*) => {
        return Err($crate::errors::error!($($arguments)*))
    };
}

pub(crate) use {bail, error};

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

/// Returns names in backquotes, separated by commas.
pub fn quoted(names: impl IntoIterator<Item = impl Display>) -> String {
    let names = names.into_iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the error for an undeclared name, listing the declared names.
pub fn undeclared(
    what: &str,
    word: &Ident,
    names: impl IntoIterator<Item = impl Display>,
) -> syn::Error {
    let names = quoted(names);
    if names.is_empty() {
        return error!(
            word.span(),
            "the {what} `{word}` is not declared; the provider declares none"
        );
    }
    error!(word.span(), "the {what} `{word}` is not declared; declared: {names}")
}
