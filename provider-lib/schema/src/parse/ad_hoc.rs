//! Events that are declared at their call site, with `event!`.

use std::collections::HashSet;

use etw_wire::winmeta;
use proc_macro2::{Span, TokenStream};
use syn::{
    Attribute, Expr, Ident, LitStr, Token, braced, parenthesized,
    parse::{ParseStream, Parser as _},
    token,
};

use super::{
    event::{field, level, without_keyword, without_level},
    library,
    words::{Given, item},
};
use crate::{
    Field, FieldType, Level, Structure, attribute, check,
    errors::{bail, error, undeclared},
    tracelogging::Types,
};

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
    /// The expression in `level = runtime(…)`; `level` is then ignored.
    pub runtime_level: Option<Expr>,
    /// The expression in `keyword = runtime(…)`; `keyword` is then ignored.
    pub runtime_keyword: Option<Expr>,
    /// The event's opcode.
    pub opcode: u8,
    /// The event's tag.
    pub tag: u32,
    /// The rate limit.
    pub limit: Option<Limit>,
    /// The options of the write, such as `activity` and `flags`, with their values.
    pub options: Vec<(Ident, Expr)>,
    /// The fields.
    pub fields: Vec<Field>,
    /// The library's structures that the fields use.
    pub structures: Vec<Structure>,
    /// The fields' values.
    pub values: Vec<Expr>,
    /// The source location of the name.
    pub span: Span,
}

impl AdHoc {
    /// Returns the structures of the event's fields.
    #[must_use]
    pub fn types(&self) -> Types<'_> {
        Types { structures: &self.structures, ..Types::default() }
    }
}

/// A rate limit.
#[derive(Debug)]
pub enum Limit {
    /// `every = 100`, a constant expression.
    Every(Expr),
    /// `once`.
    Once,
    /// `limit = LIMIT`, the driver's own limit.
    Named(Expr),
}

/// Parses `runtime(…)`, or returns `None` if something else follows.
fn runtime(input: ParseStream<'_>) -> syn::Result<Option<Expr>> {
    let ahead = input.fork();
    if !ahead.parse::<Ident>().is_ok_and(|word| word == "runtime") || !ahead.peek(token::Paren) {
        return Ok(None);
    }
    input.parse::<Ident>()?;
    let inside;
    parenthesized!(inside in input);
    inside.parse().map(Some)
}

/// The options of a write that `event!` accepts, which are methods of `WriteOptions`.
const OPTIONS: [&str; 5] = ["activity", "related", "starts", "flags", "except_sessions"];

/// The form of a level that is not a constant, for error messages.
const RUNTIME: &str = "; write `level = runtime(…)` for a level that is known only at run time";

/// Parses the arguments of `event!`.
///
/// # Errors
///
/// Returns the first error, at its token.
pub fn ad_hoc(tokens: TokenStream) -> syn::Result<AdHoc> {
    parse_ad_hoc.parse2(tokens)
}

/// Parses the rest of a rate-limit argument, or returns `None` if it is another argument.
fn parse_limit(word: &Ident, input: ParseStream<'_>) -> syn::Result<Option<Limit>> {
    if word == "once" {
        return Ok(Some(Limit::Once));
    }
    let limit = match word.to_string().as_str() {
        "every" => Limit::Every,
        "limit" => Limit::Named,
        _ => return Ok(None),
    };
    input.parse::<Token![=]>()?;
    Ok(Some(limit(input.parse()?)))
}

/// Returns the library's structures that the fields use; `event!` supports no others.
fn structures_of(fields: &mut [Field]) -> syn::Result<Vec<Structure>> {
    let structures = library::of_fields(fields)?;
    for field in &*fields {
        if let FieldType::Named(name) = &field.kind
            && !structures.iter().any(|one| one.ident == *name)
        {
            bail!(
                name.span(),
                "the type `{name}` is not a field type, and `event!` does not know the maps and \
                 structures of a declaration; write a map's number, as in `kind: u32 = kind.0`, or \
                 declare the event in the provider's module",
            );
        }
    }
    Ok(structures)
}

/// Sets the event's rate limit, or returns an error if it already has one.
fn set_limit(limit: &mut Option<Limit>, word: &Ident, new: Limit) -> syn::Result<()> {
    if limit.replace(new).is_some() {
        bail!(
            word.span(),
            "an event can have only one rate limit: `every = …`, `once` or `limit = …`; remove the \
             others",
        );
    }
    Ok(())
}

/// Parses `{ field: type = value, … }`.
fn put_fields(
    input: ParseStream<'_>,
    fields: &mut Vec<Field>,
    values: &mut Vec<Expr>,
) -> syn::Result<()> {
    let inside;
    braced!(inside in input);
    while !inside.is_empty() {
        let attributes = inside.call(Attribute::parse_outer)?;
        let ident: Ident = inside.parse()?;
        let without = |what| {
            move |error: syn::Error| {
                error!(error.span(), "expected the field's {what}, as in `{{ length: u32 = 1 }}`")
            }
        };
        inside.parse::<Token![:]>().map_err(without("type"))?;
        let written: syn::Type = inside.parse()?;
        inside.parse::<Token![=]>().map_err(without("value"))?;
        values.push(inside.parse()?);
        fields.push(field(&ident, &written, &attributes, &HashSet::new())?);
        if !inside.is_empty() {
            inside.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

/// Parses the provider.
fn provider(input: ParseStream<'_>) -> syn::Result<Expr> {
    let ahead = input.fork().parse::<Expr>();
    if !matches!(ahead, Ok(ref written) if !matches!(written, Expr::Lit(_))) {
        return Err(input.error(
            "expected the provider, before the event's name: `event!(trace::PROVIDER, \"Name\", level = Info, \
             keyword = none)`",
        ));
    }
    input.parse()
}

/// Parses the event's name.
fn event_name(input: ParseStream<'_>) -> syn::Result<LitStr> {
    input.parse().map_err(|error| {
        error!(
            error.span(),
            "expected the event's name, a string literal because it is part of the event's \
             constant metadata: `event!(PROVIDER, \"Name\", level = Info, keyword = none)`",
        )
    })
}

/// Parses the name of an argument.
fn argument(input: ParseStream<'_>, given: &mut Given) -> syn::Result<Ident> {
    let word: Ident = input.parse()?;
    if input.peek(Token![:]) {
        bail!(
            word.span(),
            "the fields of an event are in braces: write `{{ {word}: type = value, … }}`",
        );
    }
    given.once(&word)?;
    Ok(word)
}

fn parse_ad_hoc(input: ParseStream<'_>) -> syn::Result<AdHoc> {
    let provider = provider(input)?;
    input.parse::<Token![,]>()?;
    let name = event_name(input)?;
    let mut event_level = None;
    let mut keyword = None;
    let (mut runtime_level, mut runtime_keyword) = (None, None);
    let mut event_opcode = 0;
    let mut tag = 0;
    let mut limit = None;
    let mut options = Vec::new();
    let mut given = Given::default();
    let mut fields = Vec::new();
    let mut values = Vec::new();
    while !input.is_empty() {
        input.parse::<Token![,]>()?;
        if input.is_empty() {
            break;
        }
        if input.peek(token::Brace) {
            put_fields(input, &mut fields, &mut values)?;
            continue;
        }
        let word = argument(input, &mut given)?;
        if let Some(new) = parse_limit(&word, input)? {
            set_limit(&mut limit, &word, new)?;
            continue;
        }
        input.parse::<Token![=]>()?;
        match word.to_string().as_str() {
            "level" => {
                runtime_level = runtime(input)?;
                let known =
                    if runtime_level.is_some() { Ok(Level(0)) } else { level(input, RUNTIME) };
                event_level = Some(known?);
            }
            "keyword" => {
                runtime_keyword = runtime(input)?;
                if runtime_keyword.is_some() {
                    keyword = Some(None);
                    continue;
                }
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
            option if OPTIONS.contains(&option) => options.push((word, input.parse()?)),
            _ => {
                bail!(
                    word.span(),
                    "unknown argument `{word}` of an event; supported: `level`, `keyword`, \
                     `opcode`, `tag`, `activity`, `related`, `starts`, `flags`, `except_sessions`, \
                     `every`, `once`, `limit`, and the fields `{{ field: type = value, … }}`",
                );
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
    let structures = structures_of(&mut fields)?;
    Ok(AdHoc {
        provider,
        name: attribute::name_of(&name)?,
        level,
        keyword,
        runtime_level,
        runtime_keyword,
        opcode: event_opcode,
        tag,
        limit,
        options,
        fields,
        structures,
        values,
        span: name.span(),
    })
}
