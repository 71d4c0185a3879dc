//! The compile-time configuration: `#[cfg(…)]` and `#[cfg_attr(…)]`.
//!
//! The compiler does not evaluate these attributes inside a module before it passes the module to
//! an attribute macro, and a build script runs outside the compiler. Both decide with [`Evaluate`],
//! so that the code and the resources have the same events.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{
    Ident, LitBool, LitStr, Token,
    ext::IdentExt as _,
    parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

use crate::errors::{Tokens, error};

/// Decides whether a predicate of `#[cfg(…)]` is true.
pub trait Evaluate {
    /// Returns whether the predicate is true.
    ///
    /// # Errors
    ///
    /// Returns an error at the predicate if its value cannot be known.
    fn evaluate(&self, predicate: &TokenStream) -> syn::Result<bool>;
}

/// The configuration options whose values are known outside the compiler.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// The options that are known to be set or unset.
    options: BTreeMap<(String, Option<String>), bool>,
    /// The names whose unlisted options are all known to be unset.
    closed: BTreeSet<String>,
}

impl Configuration {
    /// Returns a configuration whose options are all unknown.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an option, `name` or `name = "value"`, or marks it as unset.
    pub fn set(&mut self, name: &str, value: Option<&str>, is_set: bool) {
        let option = (name.to_owned(), value.map(str::to_owned));
        self.options.insert(option, is_set);
    }

    /// Marks every option of this name that is not set explicitly as unset.
    pub fn close(&mut self, name: &str) {
        self.closed.insert(name.to_owned());
    }

    /// Returns whether an option is set, or `None` if this is not known.
    fn is_set(&self, name: &str, value: Option<&str>) -> Option<bool> {
        let option = (name.to_owned(), value.map(str::to_owned));
        let known = self.options.get(&option).copied();
        known.or_else(|| self.closed.contains(name).then_some(false))
    }

    /// Returns the predicate's value, or the position and the text of an unknown option.
    fn truth(&self, predicate: &Predicate) -> Result<bool, (Span, String)> {
        match predicate {
            Predicate::Literal(truth) => Ok(*truth),
            Predicate::Not(inside) => self.truth(inside).map(|truth| !truth),
            Predicate::All(inside) => self.join(inside, false),
            Predicate::Any(inside) => self.join(inside, true),
            Predicate::Other(name) => Err((name.span(), format!("{name}(…)"))),
            Predicate::Option(name, value) => {
                let text = name.unraw().to_string();
                let value = value.as_ref().map(LitStr::value);
                self.is_set(&text, value.as_deref()).ok_or_else(|| {
                    let value = value.map(|value| format!(" = {value:?}"));
                    (name.span(), format!("{text}{}", value.unwrap_or_default()))
                })
            }
        }
    }

    /// Returns `decisive` if any predicate has this value, whatever the others' values.
    fn join(&self, inside: &[Predicate], decisive: bool) -> Result<bool, (Span, String)> {
        let mut unknown = None;
        for predicate in inside {
            match self.truth(predicate) {
                Ok(truth) if truth == decisive => return Ok(decisive),
                Ok(_) => {}
                Err(option) => unknown = unknown.or(Some(option)),
            }
        }
        unknown.map_or(Ok(!decisive), Err)
    }
}

impl Evaluate for Configuration {
    fn evaluate(&self, predicate: &TokenStream) -> syn::Result<bool> {
        let predicate: Predicate = syn::parse2(predicate.clone())?;
        self.truth(&predicate).map_err(|(span, option)| {
            let name = option.split(' ').next();
            let advice = match name {
                Some("debug_assertions" | "panic") => {
                    "cargo does not tell build scripts the profile's value; use a feature of the \
                     package"
                }
                _ => {
                    "known are the package's features and the target's properties, such as `feature = \
                     \"name\"` and `target_arch = \"x86_64\"`; use a feature, or tell the build script \
                     with `Image::cfg`"
                }
            };
            error!(
                span,
                "`cfg({option})` is unknown outside the compiler, which would let the image's \
                 resources differ from its code: {advice}",
            )
        })
    }
}

/// A predicate of `#[cfg(…)]`.
enum Predicate {
    Literal(bool),
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
    Option(Ident, Option<LitStr>),
    /// A predicate that only the compiler evaluates, such as `version("1.90")`.
    Other(Ident),
}

impl Parse for Predicate {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(LitBool) {
            return Ok(Self::Literal(input.parse::<LitBool>()?.value()));
        }
        let name = input.call(Ident::parse_any)?;
        if input.parse::<Option<Token![=]>>()?.is_some() {
            return Ok(Self::Option(name, Some(input.parse()?)));
        }
        if !input.peek(syn::token::Paren) {
            return Ok(Self::Option(name, None));
        }
        let inside;
        parenthesized!(inside in input);
        let parts = |inside: ParseStream<'_>| {
            let parts = Punctuated::<Self, Token![,]>::parse_terminated(inside)?;
            Ok::<Vec<Self>, syn::Error>(parts.into_iter().collect())
        };
        match name.to_string().as_str() {
            "all" => Ok(Self::All(parts(&inside)?)),
            "any" => Ok(Self::Any(parts(&inside)?)),
            "not" => {
                let not = inside.parse()?;
                inside.parse::<Option<Token![,]>>()?;
                Ok(Self::Not(Box::new(not)))
            }
            _ => {
                inside.parse::<TokenStream>()?;
                Ok(Self::Other(name))
            }
        }
    }
}

/// The predicates that the compiler evaluated.
///
/// An attribute macro obtains them as follows: it adds `#[cfg_attr(predicate, doc = "…")]` for each
/// predicate and another attribute macro to the module. The compiler evaluates attributes from left
/// to right, and the second macro sees which of the markers remain.
#[derive(Debug, Default)]
pub struct Evaluated(BTreeMap<String, bool>);

/// The beginning of a marker's text, before the predicate's index.
const MARKER: &str = "__wdk_etw_cfg_";

impl Evaluated {
    /// Returns the attributes that make the compiler evaluate predicates.
    #[must_use]
    pub fn markers(predicates: &[TokenStream]) -> TokenStream {
        let markers = predicates.iter().enumerate().map(|(at, predicate)| {
            let marker = format!("{MARKER}{at}");
            quote!(#[cfg_attr(#predicate, doc = #marker)])
        });
        markers.collect()
    }

    /// Removes the markers from a module's attributes, and returns the predicates' values.
    pub fn take(predicates: &[TokenStream], attributes: &mut Vec<syn::Attribute>) -> Self {
        let mut found = BTreeSet::new();
        attributes.retain(|attribute| {
            let text = attribute
                .path()
                .is_ident("doc")
                .then(|| crate::attribute::doc(attribute).ok()?.pop())
                .flatten();
            let at = text
                .as_deref()
                .and_then(|text| text.strip_prefix(MARKER))
                .and_then(|at| at.parse::<usize>().ok());
            found.extend(at);
            at.is_none()
        });
        let values = predicates.iter().enumerate();
        Self(values.map(|(at, predicate)| (key(predicate), found.contains(&at))).collect())
    }
}

impl Evaluate for Evaluated {
    fn evaluate(&self, predicate: &TokenStream) -> syn::Result<bool> {
        self.0.get(&key(predicate)).copied().ok_or_else(|| {
            error!(Tokens(predicate), "the compiler did not evaluate this predicate")
        })
    }
}

/// Returns a predicate's text without white space, which depends on the tokens' origin.
pub fn key(predicate: &TokenStream) -> String {
    let text = predicate.to_string();
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_matters_only_where_it_decides() {
        let mut known = Configuration::new();
        known.set("feature", Some("a"), true);
        known.close("feature");
        known.close("test");
        known.set("custom", None, false);
        let truth = |text: &str| {
            let predicate: TokenStream = text.parse().unwrap();
            known.evaluate(&predicate).map_err(|error| error.to_string())
        };
        for (predicate, expected) in [
            ("true", true),
            ("false", false),
            ("feature = \"a\"", true),
            ("feature = \"b\"", false),
            ("not(feature = \"b\")", true),
            ("all()", true),
            ("any()", false),
            ("custom", false),
            ("any(other, feature = \"a\")", true),
            ("all(other, test)", false),
            ("all(feature = \"a\", not(test),)", true),
        ] {
            assert_eq!(truth(predicate), Ok(expected), "{predicate}");
        }
        for (predicate, option) in [
            ("other", "`cfg(other)`"),
            ("all(other, feature = \"a\")", "`cfg(other)`"),
            ("not(custom = \"x\")", "`cfg(custom = \"x\")`"),
            ("version(\"1.90\")", "`cfg(version(…))`"),
        ] {
            let error = truth(predicate).unwrap_err();
            assert!(error.starts_with(option), "{error}");
        }
        assert!(truth("feature = a").is_err());
    }
}
