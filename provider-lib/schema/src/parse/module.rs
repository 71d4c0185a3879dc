//! The syntax of the module under `#[provider]`.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{
    AttrStyle, Attribute, FnArg, Ident, Item, ItemFn, Signature, Token, Visibility, braced,
    parse::{Parse, ParseStream},
};

use crate::{attribute, errors::error};

/// The module under `#[provider]`. Its events are functions without a body, which are not valid
/// Rust outside macros.
pub struct Module {
    pub attributes: Vec<Attribute>,
    pub visibility: Visibility,
    pub ident: Ident,
    pub entries: Vec<Entry>,
}

pub enum Entry {
    Function(Function),
    Item(Item),
    /// An event with a syntax error.
    Refused(syn::Error),
}

/// `pub fn event(field: type);`
pub struct Function {
    pub attributes: Vec<Attribute>,
    pub visibility: Visibility,
    pub signature: Signature,
}

/// Returns whether an event refers to any of these items. Errors in an event that uses a faulty
/// item would only repeat the item's errors.
pub fn uses(function: &Function, items: &HashSet<Ident>) -> bool {
    fn mentions(tokens: TokenStream, items: &HashSet<Ident>) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(word) => items.contains(&attribute::plain(&word)),
            TokenTree::Group(group) => mentions(group.stream(), items),
            TokenTree::Punct(_) | TokenTree::Literal(_) => false,
        })
    }
    if items.is_empty() {
        return false;
    }
    let types = function.signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(field) => Some(field.ty.to_token_stream()),
        FnArg::Receiver(_) => None,
    });
    let attributes = function.attributes.iter().map(|one| one.meta.to_token_stream());
    types.chain(attributes).any(|tokens| mentions(tokens, items))
}

impl Parse for Module {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        if !input.peek(Token![mod]) {
            return Err(input.error(
                "`#[provider]` applies to a module, whose functions are the events; write `mod trace { … }`",
            ));
        }
        input.parse::<Token![mod]>()?;
        let ident = input.parse()?;
        if input.peek(Token![;]) {
            return Err(input.error(
                "the provider's module must be inline, because the macro cannot read another file: \
                 write `mod trace { … }`",
            ));
        }
        let inside;
        braced!(inside in input);
        // They are printed before the module.
        let inner = inside.call(Attribute::parse_inner)?.into_iter();
        attributes.extend(inner.map(|one| Attribute { style: AttrStyle::Outer, ..one }));
        let mut entries = Vec::new();
        while !inside.is_empty() {
            entries.push(inside.parse()?);
        }
        Ok(Self { attributes, visibility, ident, entries })
    }
}

/// Returns whether a function follows, with or without qualifiers.
fn is_function(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    // `const` can also begin a constant, and `unsafe` a block, an implementation or a trait.
    let _ = ahead.parse::<Option<Token![const]>>();
    let _ = ahead.parse::<Option<Token![async]>>();
    let _ = ahead.parse::<Option<Token![unsafe]>>();
    let _ = ahead.parse::<Option<syn::Abi>>();
    ahead.peek(Token![fn])
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let ahead = input.fork();
        let attributes = ahead.call(Attribute::parse_outer)?;
        let _visibility: Visibility = ahead.parse()?;
        if is_function(&ahead) {
            let signature: Signature = ahead.parse()?;
            if ahead.peek(Token![;]) {
                let function = Function {
                    attributes: input.call(Attribute::parse_outer)?,
                    visibility: input.parse()?,
                    signature: input.parse()?,
                };
                input.parse::<Token![;]>()?;
                return Ok(Self::Function(function));
            }
            let is_event = attributes.iter().any(|attribute| attribute.path().is_ident("event"));
            if is_event && ahead.peek(syn::token::Brace) {
                let error = error!(
                    ahead.span(),
                    "the event `{0}` has a body, which the macro generates; end the declaration \
                     with a semicolon instead: `fn {0}(…);`",
                    signature.ident,
                );
                input.parse::<ItemFn>()?;
                return Ok(Self::Refused(error));
            }
        }
        input.parse().map(Self::Item)
    }
}

#[cfg(test)]
mod tests {
    use super::Module;

    #[test]
    fn only_a_module_can_be_a_provider() {
        for item in ["struct S;", "pub fn f() {}", "#[cfg(x)] enum E {}"] {
            let error = syn::parse_str::<Module>(item).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains("write `mod trace { … }`")), "{item}");
        }
    }
}
