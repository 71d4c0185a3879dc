//! The text of public items, without bodies, documentation and private parts.

use std::{collections::BTreeMap, fmt::Write as _};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{
    Attribute, Block, Expr, Field, Fields, ImplItem, Item, ItemImpl, ItemMacro, Signature,
    TraitItem, Type, TypeInfer, Visibility, parse_quote, token,
};

use super::reach::{Public, reach};
use crate::modules::{Crate, Found, Id, defined, is_hidden};

/// The attributes that are part of an API.
const KEPT: [&str; 9] = [
    "cfg",
    "deprecated",
    "derive",
    "must_use",
    "non_exhaustive",
    "proc_macro",
    "proc_macro_attribute",
    "proc_macro_derive",
    "repr",
];

/// The length of the longest constant value that is shown.
const MAX_VALUE: usize = 60;

/// Returns the Rust text of every public item, by its path.
pub fn entries(modules: &Crate, library: &str) -> BTreeMap<String, String> {
    let reached = reach(modules, library);
    // A definition can have several paths; its implementations are listed with the first.
    let mut first: BTreeMap<&Found, &str> = BTreeMap::new();
    for (path, public) in &reached {
        if let Public::Item(found) = public {
            first.entry(found).or_insert(path);
        }
    }
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    for (path, public) in &reached {
        let name = path.rsplit("::").next().unwrap_or(path);
        let text = match public {
            Public::Module => format!("pub mod {name} {{}}\n"),
            Public::Foreign(from) => format!("pub use {};\n", from.join("::")),
            Public::Item(found) => match first.get(found) {
                Some(first) if first != path => format!("pub use {first};\n"),
                _ => definition(modules, found),
            },
        };
        entries.insert(path.clone(), text);
    }
    for (id, module) in modules.modules.iter().enumerate() {
        for item in &module.items {
            let Item::Impl(item) = item else { continue };
            let Some(path) = owner(modules, id, item, &first) else {
                continue;
            };
            if let (Some(item), Some(entry)) = (implementation(item), entries.get_mut(path)) {
                entry.push_str(&printed(item));
            }
        }
    }
    entries
}

/// Returns the path of an implementation's type or, failing that, of its trait.
fn owner<'a>(
    modules: &Crate,
    id: Id,
    item: &ItemImpl,
    first: &BTreeMap<&Found, &'a str>,
) -> Option<&'a str> {
    let find = |path: &syn::Path| {
        let names: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let found = modules.resolve(id, &names)?;
        first.get(&found).copied()
    };
    let mut of = &*item.self_ty;
    while let Type::Reference(reference) = of {
        of = &reference.elem;
    }
    let of_type = match of {
        Type::Path(path) => find(&path.path),
        _ => None,
    };
    of_type.or_else(|| find(&item.trait_.as_ref()?.1))
}

/// Returns the text of a definition.
fn definition(modules: &Crate, found: &Found) -> String {
    let items = &modules.modules[found.module].items;
    let Some(name) = &found.item else {
        return String::new();
    };
    if let Some(item) = items.iter().find(|item| defined(item).contains(name)) {
        return match item {
            Item::Macro(item) => rules(name, item),
            item => printed(stripped(item.clone())),
        };
    }
    // A macro defines the item: the first whose call names it.
    let calls = items.iter().filter_map(|item| match item {
        Item::Macro(item) if names(item.mac.tokens.clone(), name) => Some(item),
        _ => None,
    });
    calls.take(1).map(|call| printed(Item::Macro(call.clone()))).collect()
}

/// Returns true if tokens contain a name.
fn names(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(found) => found == name,
        TokenTree::Group(group) => names(group.stream(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Returns the patterns that a macro accepts.
fn rules(name: &str, item: &ItemMacro) -> String {
    let mut text = format!("macro_rules! {name}\n");
    let mut is_pattern = true;
    for token in item.mac.tokens.clone() {
        if let TokenTree::Group(group) = token {
            if is_pattern {
                let _ = writeln!(text, "    {group}");
            }
            is_pattern = !is_pattern;
        }
    }
    text
}

fn printed(item: Item) -> String {
    prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items: vec![item] })
}

fn keep(attributes: &mut Vec<Attribute>) {
    attributes.retain(|attribute| {
        let path = attribute.path();
        KEPT.iter().any(|kept| path.is_ident(kept))
    });
}

/// Removes everything from an item that is not part of the API.
fn stripped(mut item: Item) -> Item {
    match &mut item {
        Item::Const(item) => shorten(&mut item.expr),
        Item::Static(item) => shorten(&mut item.expr),
        Item::Fn(item) => empty(&mut item.sig, &mut item.block),
        Item::Struct(item) => fields(&mut item.fields),
        Item::Union(item) => named(&mut item.fields.named),
        Item::Enum(item) => {
            for variant in &mut item.variants {
                keep(&mut variant.attrs);
                for field in &mut variant.fields {
                    keep(&mut field.attrs);
                }
            }
        }
        Item::Trait(item) => {
            item.items.retain(|item| match item {
                TraitItem::Fn(item) => !is_hidden(&item.attrs),
                TraitItem::Const(item) => !is_hidden(&item.attrs),
                _ => true,
            });
            for item in &mut item.items {
                match item {
                    TraitItem::Fn(item) => {
                        keep(&mut item.attrs);
                        if let Some(block) = &mut item.default {
                            empty(&mut item.sig, block);
                        }
                    }
                    TraitItem::Const(item) => keep(&mut item.attrs),
                    TraitItem::Type(item) => keep(&mut item.attrs),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    let attributes = match &mut item {
        Item::Const(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        Item::Fn(item) => &mut item.attrs,
        Item::Static(item) => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        Item::Trait(item) => &mut item.attrs,
        Item::Type(item) => &mut item.attrs,
        Item::Union(item) => &mut item.attrs,
        _ => return item,
    };
    keep(attributes);
    item
}

/// Returns the part of an implementation that belongs to the API, if there is one.
fn implementation(item: &ItemImpl) -> Option<Item> {
    if is_hidden(&item.attrs) {
        return None;
    }
    let mut item = item.clone();
    keep(&mut item.attrs);
    let is_of_trait = item.trait_.is_some();
    item.items.retain(|item| {
        let (visibility, attributes) = match item {
            // The trait fixes the signatures of its functions.
            ImplItem::Fn(item) if !is_of_trait => (&item.vis, &item.attrs),
            ImplItem::Const(item) => (&item.vis, &item.attrs),
            ImplItem::Type(item) => (&item.vis, &item.attrs),
            _ => return false,
        };
        (is_of_trait || matches!(visibility, Visibility::Public(_))) && !is_hidden(attributes)
    });
    for item in &mut item.items {
        match item {
            ImplItem::Fn(item) => {
                keep(&mut item.attrs);
                empty(&mut item.sig, &mut item.block);
            }
            ImplItem::Const(item) => {
                keep(&mut item.attrs);
                shorten(&mut item.expr);
            }
            ImplItem::Type(item) => keep(&mut item.attrs),
            _ => {}
        }
    }
    (is_of_trait || !item.items.is_empty()).then_some(Item::Impl(item))
}

/// Removes a function's body and the attributes of its arguments.
fn empty(signature: &mut Signature, block: &mut Block) {
    block.stmts.clear();
    for input in &mut signature.inputs {
        match input {
            syn::FnArg::Receiver(input) => input.attrs.clear(),
            syn::FnArg::Typed(input) => input.attrs.clear(),
        }
    }
}

/// Replaces a long value by a placeholder.
fn shorten(value: &mut Expr) {
    if value.to_token_stream().to_string().len() > MAX_VALUE {
        *value = parse_quote!(_);
    }
}

fn fields(fields: &mut Fields) {
    match fields {
        Fields::Named(fields) => named(&mut fields.named),
        Fields::Unnamed(fields) => {
            for field in &mut fields.unnamed {
                keep(&mut field.attrs);
                if !matches!(field.vis, Visibility::Public(_)) {
                    hide(field);
                }
            }
        }
        Fields::Unit => {}
    }
}

/// Replaces the private fields by one placeholder.
fn named(fields: &mut syn::punctuated::Punctuated<Field, token::Comma>) {
    let (public, private): (Vec<Field>, Vec<Field>) = std::mem::take(fields)
        .into_iter()
        .partition(|field| matches!(field.vis, Visibility::Public(_)) && !is_hidden(&field.attrs));
    fields.extend(public);
    if let Some(mut field) = private.into_iter().next() {
        hide(&mut field);
        field.ident = Some(parse_quote!(private));
        fields.push(field);
    }
    for field in fields {
        keep(&mut field.attrs);
    }
}

fn hide(field: &mut Field) {
    field.attrs.clear();
    field.vis = Visibility::Inherited;
    field.ty = Type::Infer(TypeInfer { underscore_token: token::Underscore::default() });
}
