//! Removes the parts of a module that are disabled in a configuration.

use std::cell::RefCell;

use proc_macro2::TokenStream;
use syn::{Attribute, FnArg, Item, Meta, Token, parse::Parser as _, punctuated::Punctuated};

use super::module::{Entry, Module};
use crate::configuration::{Evaluate, key};

/// The attributes that give an item a role in the declaration. The macro leaves the attributes of
/// other items for the compiler to evaluate.
const ROLES: &[&str] =
    &["keyword", "tasks", "opcodes", "levels", "channels", "map", "bitmap", "structure", "event"];

/// Evaluates the attributes of a module's items and their parts.
pub fn configure(module: &mut Module, configuration: &dyn Evaluate) -> syn::Result<()> {
    let mut kept = Vec::new();
    for mut entry in std::mem::take(&mut module.entries) {
        if is_kept(&mut entry, configuration)? {
            kept.push(entry);
        }
    }
    module.entries = kept;
    Ok(())
}

fn is_kept(entry: &mut Entry, configuration: &dyn Evaluate) -> syn::Result<bool> {
    match entry {
        Entry::Function(function) => {
            if !keep(&mut function.attributes, configuration)? {
                return Ok(false);
            }
            let inputs = &mut function.signature.inputs;
            *inputs = kept(std::mem::take(inputs), configuration, |argument| match argument {
                FnArg::Typed(argument) => &mut argument.attrs,
                FnArg::Receiver(receiver) => &mut receiver.attrs,
            })?;
        }
        Entry::Item(Item::Const(item)) if has_role(&item.attrs) => {
            return keep(&mut item.attrs, configuration);
        }
        Entry::Item(Item::Enum(item)) if has_role(&item.attrs) => {
            if !keep(&mut item.attrs, configuration)? {
                return Ok(false);
            }
            let variants = &mut item.variants;
            *variants =
                kept(std::mem::take(variants), configuration, |variant| &mut variant.attrs)?;
        }
        Entry::Item(Item::Struct(item)) if has_role(&item.attrs) => {
            if !keep(&mut item.attrs, configuration)? {
                return Ok(false);
            }
            if let syn::Fields::Named(fields) = &mut item.fields {
                let named = &mut fields.named;
                *named = kept(std::mem::take(named), configuration, |field| &mut field.attrs)?;
            }
        }
        Entry::Refused(_) | Entry::Item(_) => {}
    }
    Ok(true)
}

/// Returns the elements of a list that are enabled in the configuration.
fn kept<T>(
    list: Punctuated<T, Token![,]>,
    configuration: &dyn Evaluate,
    attributes: impl Fn(&mut T) -> &mut Vec<Attribute>,
) -> syn::Result<Punctuated<T, Token![,]>> {
    let mut kept = Punctuated::new();
    for mut element in list {
        if keep(attributes(&mut element), configuration)? {
            kept.push(element);
        }
    }
    Ok(kept)
}

/// Returns whether one of the attributes gives an item a role in some configuration.
fn has_role(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if !attribute.path().is_ident("cfg_attr") {
            return ROLES.iter().any(|role| attribute.path().is_ident(role));
        }
        conditional(attribute).is_ok_and(|(_, inside)| has_role(&inside))
    })
}

/// Returns the predicate and the attributes of `#[cfg_attr(predicate, attributes)]`.
fn conditional(attribute: &Attribute) -> syn::Result<(TokenStream, Vec<Attribute>)> {
    let parts = |input: syn::parse::ParseStream<'_>| {
        let mut predicate = TokenStream::new();
        while !input.is_empty() && !input.peek(Token![,]) {
            let token: proc_macro2::TokenTree = input.parse()?;
            predicate.extend([token]);
        }
        input.parse::<Option<Token![,]>>()?;
        let inside = Punctuated::<Meta, Token![,]>::parse_terminated(input)?;
        Ok((predicate, inside))
    };
    let (predicate, inside) = parts.parse2(attribute.meta.require_list()?.tokens.clone())?;
    let inside = inside.into_iter().map(|meta| Attribute { meta, ..attribute.clone() });
    Ok((predicate, inside.collect()))
}

/// Evaluates and removes `#[cfg(…)]` and `#[cfg_attr(…)]`, and returns whether the item with the
/// attributes is enabled.
pub fn keep(attributes: &mut Vec<Attribute>, configuration: &dyn Evaluate) -> syn::Result<bool> {
    let mut kept = Vec::new();
    for attribute in std::mem::take(attributes) {
        if attribute.path().is_ident("cfg") {
            if !configuration.evaluate(&attribute.meta.require_list()?.tokens)? {
                return Ok(false);
            }
        } else if attribute.path().is_ident("cfg_attr") {
            let (predicate, mut inside) = conditional(&attribute)?;
            if configuration.evaluate(&predicate)? {
                if !keep(&mut inside, configuration)? {
                    return Ok(false);
                }
                kept.append(&mut inside);
            }
        } else {
            kept.push(attribute);
        }
    }
    *attributes = kept;
    Ok(true)
}

/// Collects predicates, treating each as true.
#[derive(Default)]
struct Collector(RefCell<Vec<TokenStream>>);

impl Evaluate for Collector {
    fn evaluate(&self, predicate: &TokenStream) -> syn::Result<bool> {
        let mut known = self.0.borrow_mut();
        if !known.iter().any(|other| key(other) == key(predicate)) {
            known.push(predicate.clone());
        }
        Ok(true)
    }
}

/// Returns the distinct predicates in a module.
///
/// # Errors
///
/// Returns the module's first syntax error.
pub fn predicates(module: TokenStream) -> syn::Result<Vec<TokenStream>> {
    let mut module: Module = syn::parse2(module)?;
    let collector = Collector::default();
    configure(&mut module, &collector)?;
    Ok(collector.0.into_inner())
}
