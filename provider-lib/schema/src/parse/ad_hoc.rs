//! Events that are declared at their call site, with `event!`.

use std::collections::HashSet;

use etw_wire::winmeta;
use proc_macro2::{Span, TokenStream};
use syn::{
    Attribute, Expr, Ident, LitStr, Token, braced,
    parse::{ParseStream, Parser as _},
};

use super::{
    event::{field, level, undeclared, without_keyword, without_level},
    words::{Given, item},
};
use crate::{Field, FieldType, Level, attribute, check};

/// An event that is declared at its call site: `event!(PROVIDER, "Name", level = Info,
/// keyword = …, { field: type = value, … })`.
#[derive(Debug)]
pub struct AdHoc {
    /// The provider.
    pub provider: Expr,
    /// The event's name.
    pub name: String,
    /// The event's level.
    pub level: Level,
    /// The event's keywords, a constant expression, or `None` for `keyword = none`.
    pub keyword: Option<Expr>,
    /// The event's opcode.
    pub opcode: u8,
    /// The event's tag.
    pub tag: u32,
    /// The options of the write, such as `activity` and `flags`, with their values.
    pub options: Vec<(Ident, Expr)>,
    /// The fields.
    pub fields: Vec<Field>,
    /// The fields' values.
    pub values: Vec<Expr>,
    /// The source location of the name.
    pub span: Span,
}

/// Parses the arguments of `event!`.
///
/// # Errors
///
/// Returns the first error, at its token.
pub fn ad_hoc(tokens: TokenStream) -> syn::Result<AdHoc> {
    parse_ad_hoc.parse2(tokens)
}

fn parse_ad_hoc(input: ParseStream<'_>) -> syn::Result<AdHoc> {
    let provider = input.parse()?;
    input.parse::<Token![,]>()?;
    let name: LitStr = input.parse()?;
    let mut event_level = None;
    let mut keyword = None;
    let mut event_opcode = 0;
    let mut tag = 0;
    let mut options = Vec::new();
    let mut given = Given::default();
    let mut fields = Vec::new();
    let mut values = Vec::new();
    while !input.is_empty() {
        input.parse::<Token![,]>()?;
        if input.is_empty() {
            break;
        }
        if input.peek(syn::token::Brace) {
            let inside;
            braced!(inside in input);
            while !inside.is_empty() {
                let attributes = inside.call(Attribute::parse_outer)?;
                let ident: Ident = inside.parse()?;
                inside.parse::<Token![:]>()?;
                let written: syn::Type = inside.parse()?;
                inside.parse::<Token![=]>()?;
                values.push(inside.parse()?);
                let field = field(&ident, &written, &attributes, &HashSet::new())?;
                if let FieldType::Named(name) = &field.kind {
                    return Err(crate::types::undeclared(name));
                }
                fields.push(field);
                if !inside.is_empty() {
                    inside.parse::<Token![,]>()?;
                }
            }
            continue;
        }
        let word: Ident = input.parse()?;
        given.once(&word)?;
        input.parse::<Token![=]>()?;
        match word.to_string().as_str() {
            "level" => event_level = Some(level(input)?),
            "keyword" => {
                let ahead = input.fork();
                let none = ahead.parse::<Ident>().is_ok_and(|word| word == "none");
                if none && (ahead.is_empty() || ahead.peek(Token![,])) {
                    input.parse::<Ident>()?;
                    keyword = Some(None);
                } else {
                    keyword = Some(Some(input.parse()?));
                }
            }
            "opcode" => {
                const FORM: &str = "write a standard one, such as `opcode = Start`";
                let word = item(input, "an opcode", FORM)?;
                event_opcode = winmeta::OPCODES
                    .iter()
                    .find(|known| word == known.ident)
                    .map(|known| known.value)
                    .ok_or_else(|| {
                        let names = winmeta::OPCODES.iter().map(|known| known.ident.to_owned());
                        undeclared("opcode", &word, names)
                    })?;
            }
            "tag" => tag = attribute::tag_of(&input.parse()?)?,
            "activity" | "related" | "starts" | "flags" => options.push((word, input.parse()?)),
            _ => {
                return Err(syn::Error::new(
                    word.span(),
                    format!(
                        "an event has no argument `{word}`; supported: `level`, `keyword`, \
                         `opcode`, `tag`, `activity`, `related`, `starts`, `flags`, and the fields \
                         `{{ field: type = value, … }}`"
                    ),
                ));
            }
        }
    }
    let Some(level) = event_level else {
        return Err(without_level(name.span()));
    };
    let Some(keyword) = keyword else {
        return Err(without_keyword(name.span()));
    };
    check::fields(&fields)?;
    Ok(AdHoc {
        provider,
        name: attribute::name_of(&name)?,
        level,
        keyword,
        opcode: event_opcode,
        tag,
        options,
        fields,
        values,
        span: name.span(),
    })
}
