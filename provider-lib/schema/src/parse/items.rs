//! The parser of keywords, tasks, opcodes, channels, maps and structures.

use std::collections::HashSet;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{
    Attribute, Expr, ExprLit, GenericParam, Generics, Ident, Item, Lit, Token, Type,
    ext::IdentExt as _,
    parse::{Parse, ParseStream},
    spanned::Spanned as _,
};

use super::{attributes::can_be_provider, event::field, module::Entry, words::constant_of};
use crate::{
    Channel, ChannelSettings, Field, FieldType, Isolation, Keyword, MIN_LOG_SIZE, Map, MapKind,
    Named, Provider, Scalar, Shape, Structure, TaskOpcodes, attribute,
    errors::{Tokens, bail, error},
    types::shown,
};

/// Removes the attribute with this name and returns it.
fn take_attribute(attributes: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    let at = attributes.iter().position(|attribute| attribute.path().is_ident(name))?;
    Some(attributes.remove(at))
}

/// Returns the names of the maps and structures among a module's items. They take precedence over
/// field types of the same name.
pub fn own_types(entries: &[Entry]) -> HashSet<Ident> {
    let has = |attributes: &[Attribute], names: &[&str]| {
        attributes.iter().any(|attribute| names.iter().any(|name| attribute.path().is_ident(name)))
    };
    entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Item(Item::Enum(item)) if has(&item.attrs, &["map", "bitmap"]) => {
                Some(attribute::plain(&item.ident))
            }
            Entry::Item(Item::Struct(item)) if has(&item.attrs, &["structure"]) => {
                Some(attribute::plain(&item.ident))
            }
            _ => None,
        })
        .collect()
}

/// Returns the names with which other items refer to an item or its variants.
pub fn declared_names(item: &Item) -> Vec<Ident> {
    match item {
        Item::Const(item) => vec![attribute::plain(&item.ident)],
        Item::Struct(item) => vec![attribute::plain(&item.ident)],
        Item::Enum(item) => {
            let is_list = item.attrs.iter().any(|attribute| {
                let lists = ["tasks", "opcodes", "levels", "channels"];
                lists.iter().any(|name| attribute.path().is_ident(name))
            });
            if is_list {
                item.variants.iter().map(|variant| attribute::plain(&variant.ident)).collect()
            } else {
                vec![attribute::plain(&item.ident)]
            }
        }
        _ => Vec::new(),
    }
}

/// Removes the structures and opcode lists that refer to faulty items, because their errors would
/// only repeat the items' errors. Adds their names to the faulty items.
pub fn leave_out_users(provider: &mut Provider, faulty: &mut HashSet<Ident>) {
    loop {
        let before = faulty.len();
        provider.structures.retain(|structure| {
            let is_faulty = structure.fields.iter().any(|field| match &field.kind {
                FieldType::Named(name) | FieldType::Structures(name, _) => faulty.contains(name),
                FieldType::Values(..) => false,
            });
            if is_faulty {
                faulty.insert(structure.ident.clone());
            }
            !is_faulty
        });
        if faulty.len() == before {
            break;
        }
    }
    let (kept, others) = std::mem::take(&mut provider.task_opcodes)
        .into_iter()
        .partition(|list: &TaskOpcodes| !faulty.contains(&list.task));
    provider.task_opcodes = kept;
    let others = others.into_iter().flat_map(|list: TaskOpcodes| list.opcodes);
    faulty.extend(others.map(|opcode| opcode.ident));
}

/// The Rust types whose names the declaration's types cannot have, so that its code is readable.
const PRIMITIVES: [&str; 17] = [
    "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "str", "u128", "u16",
    "u32", "u64", "u8", "usize",
];

/// Refuses a map or structure that has the name of a Rust type.
fn own_name(ident: &Ident) -> syn::Result<()> {
    if PRIMITIVES.iter().any(|name| ident == name) {
        bail!(ident.span(), "`{ident}` is a type of Rust; choose another name");
    }
    Ok(())
}

/// Refuses parameters of a structure other than lifetimes. A type parameter could have the name of a map or
/// structure, and so replace it in the structure's fields.
fn only_lifetimes(generics: &Generics) -> syn::Result<()> {
    let mut parameters = generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Lifetime(_) => None,
        GenericParam::Type(parameter) => Some(&parameter.ident),
        GenericParam::Const(parameter) => Some(&parameter.ident),
    });
    if let Some(name) = parameters.next() {
        bail!(
            name.span(),
            "a structure can have lifetime parameters only; remove `{name}`, and name the types of \
             the fields, as in `struct Place<'a> {{ x: u32, name: &'a str }}`",
        );
    }
    generics.where_clause.as_ref().map_or(Ok(()), |clause| {
        Err(error!(
            clause.where_token.span,
            "a structure cannot have a `where` clause, because its parameters are lifetimes; \
             remove the clause",
        ))
    })
}

/// Refuses a reference to a value of fixed size, because the generated member would be the value itself.
fn values_only(field: &Field) -> syn::Result<()> {
    let is_value =
        matches!(field.kind, FieldType::Named(_) | FieldType::Values(_, _, Shape::Fixed(_)));
    if let Type::Reference(reference) = &field.written
        && is_value
    {
        bail!(
            Tokens(&field.written),
            "a structure stores this member by value; write `{}`",
            shown(&reference.elem),
        );
    }
    Ok(())
}

/// Returns whether tokens contain an attribute with one of these names.
fn mentions(tokens: TokenStream, names: &[&str]) -> bool {
    let mut follows_hash = false;
    tokens.into_iter().any(|token| {
        let is_found = match &token {
            TokenTree::Group(group) => {
                let first = group.stream().into_iter().next();
                let is_named = matches!(&first, Some(TokenTree::Ident(word)) if names.iter().any(|name| word == name));
                follows_hash && is_named || mentions(group.stream(), names)
            }
            _ => false,
        };
        follows_hash = matches!(&token, TokenTree::Punct(one) if one.as_char() == '#');
        is_found
    })
}

/// Adds an item that is not part of the declaration, unless it has one of its attributes.
fn put_other(provider: &mut Provider, item: Item) -> syn::Result<()> {
    const FORMS: [(&str, &str); 9] = [
        ("keyword", "`#[keyword] pub const READ: Keyword = Keyword::bit(0);`"),
        ("tasks", "`#[tasks] enum Task { Transfer = 1 }`"),
        ("opcodes", "`#[opcodes] enum Opcode { Split = 10 }`"),
        ("levels", "`#[levels] enum Level { Packets = 16 }`"),
        ("channels", "`#[channels] enum Channel { #[channel(Operational)] Operational = 16 }`"),
        ("map", "`#[map] pub enum Kind { Read = 1 }`"),
        ("bitmap", "`#[bitmap] pub enum Flags { Cached = 1 << 0 }`"),
        ("structure", "`#[structure] pub struct Place { x: u32 }`"),
        ("event", "`#[event(level = Info, keyword = READ)] pub fn name(field: u32);`"),
    ];
    // A constant that combines keywords is the module's own.
    if let Item::Const(constant) = &item
        && let Type::Path(path) = &*constant.ty
        && path.path.segments.last().is_some_and(|last| last.ident == "Keyword")
        && let Expr::Call(call) = &*constant.expr
        && let Expr::Path(called) = &*call.func
        && called.path.segments.last().is_some_and(|last| last.ident == "bit")
    {
        bail!(
            constant.ident.span(),
            "the constant `{0}` is no keyword of the provider without its attribute; write `#[keyword] pub \
             const {0}: Keyword = …;`",
            constant.ident,
        );
    }
    if let Item::Mod(module) = &item
        && let Some((_, items)) = &module.content
        && !can_be_provider(module)
        && items
            .iter()
            .filter(|item| !matches!(item, Item::Mod(inner) if can_be_provider(inner)))
            .any(|item| mentions(item.to_token_stream(), &FORMS.map(|(name, _)| name)))
    {
        bail!(
            module.ident.span(),
            "the macro does not read the declarations in the module `{}`; move them to the provider's \
             module, or make it a provider of its own beside this one",
            module.ident,
        );
    }
    for attribute in attribute::of_item(&item) {
        let path = attribute.path();
        if let Some((name, form)) = FORMS.iter().find(|(name, _)| path.is_ident(name)) {
            bail!(Tokens(path), "`#[{name}]` does not apply to this item; write {form}");
        }
    }
    provider.others.push(item);
    Ok(())
}

/// Adds an item of the module to the provider.
pub fn put_item(provider: &mut Provider, item: Item, own: &HashSet<Ident>) -> syn::Result<()> {
    match item {
        Item::Const(mut item) => {
            if take_attribute(&mut item.attrs, "keyword").is_some() {
                provider.keywords.push(keyword(&item)?);
                return Ok(());
            }
            put_other(provider, Item::Const(item))?;
        }
        Item::Enum(mut item) => {
            if take_attribute(&mut item.attrs, "tasks").is_some() {
                provider.tasks.extend(named(&item, 1..=u32::from(u16::MAX), "task")?);
            } else if let Some(attribute) = take_attribute(&mut item.attrs, "opcodes") {
                let opcodes = named(&item, 10..=239, "opcode")?;
                match attribute.meta {
                    syn::Meta::Path(_) => provider.opcodes.extend(opcodes),
                    _ => provider
                        .task_opcodes
                        .push(TaskOpcodes { task: task_of(&attribute)?, opcodes }),
                }
            } else if take_attribute(&mut item.attrs, "levels").is_some() {
                provider.levels.extend(named(&item, 16..=255, "level")?);
            } else if take_attribute(&mut item.attrs, "channels").is_some() {
                channels(provider, &item)?;
            } else if take_attribute(&mut item.attrs, "map").is_some() {
                provider.maps.push(map(&mut item, MapKind::Value)?);
            } else if take_attribute(&mut item.attrs, "bitmap").is_some() {
                provider.maps.push(map(&mut item, MapKind::Bits)?);
            } else {
                put_other(provider, Item::Enum(item))?;
            }
        }
        Item::Struct(mut item) => {
            if take_attribute(&mut item.attrs, "structure").is_none() {
                return put_other(provider, Item::Struct(item));
            }
            own_name(&item.ident)?;
            attribute::only(&item.attrs, &["doc"], "structures")?;
            only_lifetimes(&item.generics)?;
            let mut fields = Vec::new();
            for field in &item.fields {
                let Some(ident) = &field.ident else {
                    bail!(
                        field.ty.span(),
                        "the fields of a structure must have names, as in `struct Place {{ x: u32 \
                         }}`",
                    );
                };
                let field = self::field(ident, &field.ty, &field.attrs, own)?;
                values_only(&field)?;
                fields.push(field);
            }
            provider.structures.push(Structure {
                docs: attribute::docs(&item.attrs)?,
                ident: attribute::plain(&item.ident),
                visibility: item.vis,
                generics: item.generics,
                in_library: false,
                fields,
            });
        }
        other => put_other(provider, other)?,
    }
    Ok(())
}

/// Parses the task in `#[opcodes(task = Request)]`.
fn task_of(attribute: &Attribute) -> syn::Result<Ident> {
    attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
        let word: Ident = input.parse()?;
        if word != "task" {
            bail!(
                word.span(),
                "unknown argument `{word}` of opcodes; write `#[opcodes(task = …)]` for the \
                 opcodes of a task, or `#[opcodes]`",
            );
        }
        input.parse::<syn::Token![=]>()?;
        input.parse()
    })
}

/// Parses `pub const READ: Keyword = Keyword::bit(0);`, or a mask of one bit.
fn keyword(item: &syn::ItemConst) -> syn::Result<Keyword> {
    attribute::only(&item.attrs, &["doc", "name"], "keywords")?;
    let expression = attribute::ungrouped(&item.expr);
    let refuse = || {
        error!(
            expression.span(),
            "the keyword `{}` must be one of the bits 0 to 47, written as `Keyword::bit(3)` or as \
             a mask such as `0x8`; bits 48 to 63 are reserved for Microsoft",
            item.ident,
        )
    };
    let number = |expression: &Expr| match attribute::ungrouped(expression) {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse::<u64>().ok(),
        _ => None,
    };
    let bit = match expression {
        Expr::Call(call) => {
            let (Expr::Path(path), Some(argument), 1) =
                (&*call.func, call.args.first(), call.args.len())
            else {
                return Err(refuse());
            };
            if path.path.segments.last().is_none_or(|last| last.ident != "bit") {
                return Err(refuse());
            }
            if !matches!(attribute::ungrouped(argument), Expr::Lit(_)) {
                bail!(
                    argument.span(),
                    "the bit of the keyword `{}` must be a number, because the macro reads the source and \
                     cannot evaluate a constant; write, for example, `Keyword::bit(3)`",
                    item.ident,
                );
            }
            number(argument)
        }
        Expr::Lit(_) => number(expression)
            .filter(|mask| mask.is_power_of_two())
            .map(|mask| u64::from(mask.trailing_zeros())),
        _ => None,
    };
    let bit = bit.filter(|bit| *bit < 48).ok_or_else(refuse)?;
    let mut name = attribute::pascal_case(&item.ident.to_string());
    for attribute in &item.attrs {
        if attribute.path().is_ident("name") {
            name = attribute::name(attribute)?;
        }
    }
    Ok(Keyword {
        ident: attribute::plain(&item.ident),
        name,
        bit: u32::try_from(bit).map_err(|_| refuse())?,
        bit_span: expression.span(),
        visibility: item.vis.clone(),
        docs: attribute::docs(&item.attrs)?,
    })
}

/// Parses the variants of an enum, each of which must have a value in `range`.
fn named<T: TryFrom<u32>>(
    item: &syn::ItemEnum,
    range: std::ops::RangeInclusive<u32>,
    what: &str,
) -> syn::Result<Vec<Named<T>>> {
    attribute::only(&item.attrs, &["doc"], "enums")?;
    let mut entries = Vec::new();
    for variant in &item.variants {
        let known: &[&str] = match what {
            "channel" => &["doc", "name", "channel"],
            _ => &["doc", "name"],
        };
        attribute::only(&variant.attrs, known, "variants")?;
        if !variant.fields.is_empty() {
            bail!(
                Tokens(&variant.fields),
                "the {what} `{0}` has fields; it is a name for a number: `{0} = {1}`",
                variant.ident,
                range.start(),
            );
        }
        let refuse = |span| {
            error!(
                span,
                "the {what} `{0}` must have a value from {1} to {2}, as in `{0} = {1}`",
                variant.ident,
                range.start(),
                range.end(),
            )
        };
        let Some((_, expression)) = &variant.discriminant else {
            return Err(refuse(variant.ident.span()));
        };
        let number = constant(expression)
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| range.contains(number))
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| refuse(expression.span()))?;
        let mut name = attribute::pascal_case(&variant.ident.to_string());
        for attribute in &variant.attrs {
            if attribute.path().is_ident("name") {
                name = match what {
                    // Viewers show nothing for such a value.
                    MAP_ENTRY => attribute::text(attribute)?,
                    _ => attribute::name(attribute)?,
                };
            }
        }
        entries.push(Named {
            ident: attribute::plain(&variant.ident),
            name,
            value: number,
            value_span: expression.span(),
            docs: attribute::docs(&variant.attrs)?,
        });
    }
    Ok(entries)
}

/// The term for a map's entry in messages.
const MAP_ENTRY: &str = "map entry";

/// Returns whether a value is written as a mask: in hexadecimal or binary, or as bits joined by
/// `|`. In a bit map, a decimal number may be a bit number by mistake.
fn is_mask(expression: &Expr) -> bool {
    match attribute::ungrouped(expression) {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => {
            let text = number.to_string();
            text.starts_with("0x") || text.starts_with("0b")
        }
        Expr::Binary(binary) => matches!(binary.op, syn::BinOp::BitOr(_)),
        _ => false,
    }
}

/// Returns the value of a constant expression without names.
fn constant(expression: &Expr) -> Option<u64> {
    constant_of(expression, &|_| None)
}

/// The kind of a channel that is a Windows log.
const IMPORT: &str = "Import";

/// The kinds of channels.
const CHANNELS: [&str; 5] = ["Admin", "Operational", "Analytic", "Debug", IMPORT];
/// The kinds of channels, for error messages.
const KINDS: &str = "`Admin`, `Operational`, `Analytic`, `Debug`, and `Import` for a Windows log";

/// The names of a channel's settings.
const SETTINGS: &str =
    "`enabled`, `isolation`, `access`, `max_size`, `retention` and `auto_backup`";

/// The arguments of `#[channel(…)]`: the kind, and the settings.
struct ChannelArguments {
    kind: String,
    settings: ChannelSettings,
    /// The source location of `auto_backup`.
    backup: Option<Span>,
}

impl Parse for ChannelArguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let kind: Ident = input
            .parse()
            .map_err(|error| error!(error.span(), "expected the channel's kind, {KINDS}"))?;
        if !CHANNELS.iter().any(|known| kind == known) {
            bail!(kind.span(), "unknown kind of channel `{kind}`; supported: {KINDS}");
        }
        let mut arguments =
            Self { kind: kind.to_string(), settings: ChannelSettings::default(), backup: None };
        let mut known = HashSet::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let setting: Ident = input.call(Ident::parse_any)?;
            let name = setting.to_string();
            if kind == IMPORT {
                bail!(
                    setting.span(),
                    "`{name}` cannot be set for a Windows log, because Windows configures it; \
                     write `#[channel({IMPORT})]`",
                );
            }
            if !known.insert(name) {
                bail!(setting.span(), "the setting `{setting}` is given twice; remove one");
            }
            arguments.set(&setting, input)?;
        }
        let Self { kind, settings, backup } = &arguments;
        if let (Some(span), Some(why)) = (*backup, settings.refused_backup(kind)) {
            bail!(span, "the channel cannot have `auto_backup = true`: {why}");
        }
        Ok(arguments)
    }
}

impl ChannelArguments {
    /// Parses the value of a setting.
    fn set(&mut self, setting: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        let settings = &mut self.settings;
        let name = setting.to_string();
        if !["enabled", "isolation", "access", "max_size", "retention", "auto_backup"]
            .contains(&name.as_str())
        {
            bail!(setting.span(), "unknown setting `{name}` of a channel; supported: {SETTINGS}");
        }
        let example = match name.as_str() {
            "isolation" => "`isolation = System`, or `Application` or `Custom`".to_owned(),
            "access" => "`access = \"O:BAG:SYD:(A;;0x7;;;BA)\"`, a security descriptor in SDDL \
                         without percent signs"
                .to_owned(),
            "max_size" => format!("`max_size = {MIN_LOG_SIZE}` or more, in bytes"),
            _ => format!("`{name} = true`, or `false`"),
        };
        let refuse = |span| error!(span, "expected {example}");
        input.parse::<Token![=]>().map_err(|error| refuse(error.span()))?;
        let value: Expr = input.parse().map_err(|error| refuse(error.span()))?;
        let refused = || refuse(value.span());
        let flag = || match &value {
            Expr::Lit(ExprLit { lit: Lit::Bool(flag), .. }) => Ok(Some(flag.value)),
            _ => Err(refused()),
        };
        match name.as_str() {
            "enabled" => settings.enabled = flag()?,
            "retention" => settings.retention = flag()?,
            "auto_backup" => {
                settings.auto_backup = flag()?;
                self.backup = Some(setting.span());
            }
            "isolation" => {
                let Expr::Path(path) = &value else { return Err(refused()) };
                let named = Isolation::ALL.into_iter().find(|one| path.path.is_ident(one.name()));
                settings.isolation = Some(named.ok_or_else(refused)?);
            }
            "access" => match &value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. })
                    if ChannelSettings::is_sddl(&text.value()) =>
                {
                    settings.access = Some(text.value());
                }
                _ => return Err(refused()),
            },
            _ => {
                let size = constant(&value).filter(|size| *size >= MIN_LOG_SIZE);
                settings.max_size = Some(size.ok_or_else(refused)?);
            }
        }
        Ok(())
    }
}

fn channels(provider: &mut Provider, item: &syn::ItemEnum) -> syn::Result<()> {
    let entries = named::<u8>(item, 8..=255, "channel")?;
    for (named, variant) in entries.into_iter().zip(&item.variants) {
        let arguments = variant
            .attrs
            .iter()
            .find(|attribute| attribute.path().is_ident("channel"))
            .map(Attribute::parse_args::<ChannelArguments>)
            .transpose()?;
        let Some(ChannelArguments { kind, settings, .. }) = arguments else {
            bail!(
                variant.ident.span(),
                "the channel `{}` has no kind; add `#[channel(Operational)]`, or `Admin`, \
                 `Analytic` or `Debug`",
                variant.ident,
            );
        };
        let of_windows = etw_wire::winmeta::CHANNELS.iter();
        let of_windows = of_windows.filter(|one| !one.name.starts_with("Trace"));
        let imported = of_windows.clone().find(|one| one.value == named.value);
        if (kind == IMPORT) != imported.is_some() || named.value < 16 && imported.is_none() {
            let names: Vec<String> =
                of_windows.map(|one| format!("{} ({})", one.name, one.value)).collect();
            bail!(
                named.value_span,
                "the channel `{}` cannot have the value {}: a channel of the provider has a value \
                 from 16 to 255, and one with `#[channel({IMPORT})]` is a Windows log: {}",
                named.ident,
                named.value,
                names.join(", "),
            );
        }
        let mut named = named;
        if let Some(imported) = imported {
            imported.name.clone_into(&mut named.name);
        }
        provider.channels.push(Channel { named, kind, settings });
    }
    Ok(())
}

fn map(item: &mut syn::ItemEnum, kind: MapKind) -> syn::Result<Map> {
    own_name(&item.ident)?;
    let scalar = match take_attribute(&mut item.attrs, "repr") {
        None => Scalar::U32,
        Some(repr) => {
            let word: Ident = repr.parse_args()?;
            match word.to_string().as_str() {
                "u8" => Scalar::U8,
                "u16" => Scalar::U16,
                "u32" => Scalar::U32,
                _ => {
                    bail!(
                        word.span(),
                        "a map cannot have the type `{word}`; supported: `u8`, `u16`, `u32`",
                    );
                }
            }
        }
    };
    let max = match scalar {
        Scalar::U8 => u32::from(u8::MAX),
        Scalar::U16 => u32::from(u16::MAX),
        _ => u32::MAX,
    };
    let name = take_attribute(&mut item.attrs, "name")
        .map(|attribute| attribute::name(&attribute))
        .transpose()?;
    let entries = named::<u32>(item, 0..=max, MAP_ENTRY)?;
    if entries.is_empty() {
        bail!(item.ident.span(), "the map `{}` is empty; add at least one entry", item.ident);
    }
    for (entry, variant) in entries.iter().zip(&item.variants) {
        let written = variant.discriminant.as_ref();
        let is_mask = written.is_some_and(|(_, expression)| is_mask(expression));
        if kind == MapKind::Bits && !entry.value.is_power_of_two() && !is_mask {
            bail!(
                entry.value_span,
                "the entry `{}` of a bit map must be a single bit, such as `1 << 3`, or a mask of \
                 several bits, such as `0xC0` or `1 << 6 | 1 << 7`",
                entry.ident,
            );
        }
    }
    Ok(Map {
        name: name.unwrap_or_else(|| attribute::plain(&item.ident).to_string()),
        ident: attribute::plain(&item.ident),
        visibility: item.vis.clone(),
        kind,
        scalar,
        entries,
        docs: attribute::docs(&item.attrs)?,
    })
}
