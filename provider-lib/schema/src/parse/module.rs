//! The syntax of the module under `#[provider]`.

use syn::{
    Attribute, Ident, Item, Signature, Token, Visibility, braced,
    parse::{Parse, ParseStream},
};

/// The module under `#[provider]`. Its events are functions without a body, which is no valid Rust
/// outside macros.
pub struct Module {
    pub attributes: Vec<Attribute>,
    pub visibility: Visibility,
    pub ident: Ident,
    pub entries: Vec<Entry>,
}

pub enum Entry {
    Function(Function),
    Item(Item),
}

/// `pub fn event(field: type);`
pub struct Function {
    pub attributes: Vec<Attribute>,
    pub visibility: Visibility,
    pub signature: Signature,
}

impl Parse for Module {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
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
        attributes.extend(inside.call(Attribute::parse_inner)?);
        let mut entries = Vec::new();
        while !inside.is_empty() {
            entries.push(inside.parse()?);
        }
        Ok(Self {
            attributes,
            visibility,
            ident,
            entries,
        })
    }
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let ahead = input.fork();
        let _attributes = ahead.call(Attribute::parse_outer)?;
        let _visibility: Visibility = ahead.parse()?;
        if ahead.peek(Token![fn]) {
            let _signature: Signature = ahead.parse()?;
            if ahead.peek(Token![;]) {
                let function = Function {
                    attributes: input.call(Attribute::parse_outer)?,
                    visibility: input.parse()?,
                    signature: input.parse()?,
                };
                input.parse::<Token![;]>()?;
                return Ok(Self::Function(function));
            }
        }
        input.parse().map(Self::Item)
    }
}
