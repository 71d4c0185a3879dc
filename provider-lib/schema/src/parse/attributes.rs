//! The attribute that makes a module a provider.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Attribute, ItemMod};

/// Returns whether an attribute is `#[provider]`, under any path.
pub fn is_provider(attribute: &Attribute) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|last| last.ident == "provider")
}

/// Returns whether a module has `#[provider]` in some configuration.
#[must_use]
pub fn can_be_provider(module: &ItemMod) -> bool {
    module.attrs.iter().any(|attribute| {
        let is_conditional = attribute.path().is_ident("cfg_attr");
        is_provider(attribute) || (is_conditional && mentions_provider(attribute))
    })
}

/// Returns whether a `#[cfg_attr(…)]` contains the word `provider`.
fn mentions_provider(attribute: &Attribute) -> bool {
    fn mentions(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(word) => word == "provider",
            TokenTree::Group(group) => mentions(group.stream()),
            _ => false,
        })
    }
    mentions(attribute.meta.to_token_stream())
}
