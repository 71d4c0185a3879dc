//! From Rust source to a provider.

use proc_macro2::{Span, TokenStream};
use syn::{
    Attribute, Expr, ExprLit, FnArg, Ident, Item, Lit, LitByteStr, LitInt, LitStr, Pat, Path,
    Signature, Token, Visibility, braced, parenthesized,
    parse::{Parse, ParseStream, Parser as _},
    punctuated::Punctuated,
    spanned::Spanned as _,
};

use crate::{
    Channel, Encoding, Event, Field, FieldType, Guid, Hooks, Keyword, Level, Map, MapKind, Named,
    Provider, STANDARD_LEVELS, STANDARD_OPCODES, Scalar, Structure, Trait, attribute, check,
    types::FieldOptions,
};

/// Reads a provider: what stands in `#[provider(…)]`, and the module under it.
///
/// # Errors
///
/// Everything that is wrong with it, each at its token.
pub fn provider(arguments: TokenStream, module: TokenStream) -> syn::Result<Provider> {
    let settings: Settings = syn::parse2(arguments)?;
    let module: Module = syn::parse2(module)?;
    let mut errors = Errors::default();
    let mut provider = Provider {
        guid: settings.guid,
        name: settings.name,
        group: settings.group,
        traits: settings.traits,
        encoding: settings.encoding,
        hooks: settings.hooks,
        binary_tracking: settings.binary_tracking,
        module: module.ident,
        visibility: module.visibility,
        attributes: module.attributes,
        keywords: Vec::new(),
        tasks: Vec::new(),
        opcodes: Vec::new(),
        channels: Vec::new(),
        maps: Vec::new(),
        structures: Vec::new(),
        events: Vec::new(),
        others: Vec::new(),
    };
    let mut functions = Vec::new();
    for entry in module.entries {
        match entry {
            Entry::Function(function) => functions.push(function),
            Entry::Item(item) => {
                errors.take(put_item(&mut provider, item));
            }
        }
    }
    // Events come last: they name what the rest declares.
    for function in functions {
        if let Some(event) = errors.take(event(&function, &provider)) {
            provider.events.push(event);
        }
    }
    check::provider(&provider, &mut errors);
    errors.finish(provider)
}

/// Errors, all of which are reported.
#[derive(Default)]
pub struct Errors(Option<syn::Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.push(syn::Error::new(span, message));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    fn finish<T>(self, value: T) -> syn::Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}

/// What stands in `#[provider(…)]`.
struct Settings {
    name: String,
    guid: Guid,
    group: Option<Guid>,
    traits: Vec<Trait>,
    encoding: Option<Encoding>,
    hooks: Hooks,
    binary_tracking: bool,
}

fn guid(text: &LitStr) -> syn::Result<Guid> {
    Guid::parse(&text.value()).map_err(|error| syn::Error::new(text.span(), error))
}

fn encoding(word: &Ident) -> syn::Result<Encoding> {
    match word.to_string().as_str() {
        "manifest" => Ok(Encoding::Manifest),
        "tracelogging" => Ok(Encoding::TraceLogging),
        _ => Err(syn::Error::new(
            word.span(),
            "an encoding is `manifest` or `tracelogging`",
        )),
    }
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut name: Option<LitStr> = None;
        let mut written_guid = None;
        let mut group = None;
        let mut traits = Vec::new();
        let mut default_encoding = None;
        let mut hooks = Hooks::default();
        let mut binary_tracking = false;
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            match word.to_string().as_str() {
                "trait_" => traits.push(custom_trait(input)?),
                "binary_tracking" => binary_tracking = true,
                "name" => name = Some(value(input)?),
                "guid" => written_guid = Some(guid(&value(input)?)?),
                "group" => group = Some(guid(&value(input)?)?),
                "encoding" => default_encoding = Some(encoding(&value(input)?)?),
                "on_enable" => hooks.on_enable = Some(value::<Path>(input)?),
                "on_disable" => hooks.on_disable = Some(value(input)?),
                "on_capture_state" => hooks.on_capture_state = Some(value(input)?),
                _ => {
                    return Err(syn::Error::new(
                        word.span(),
                        "a provider has `name`, `guid`, `group`, `trait_(type, b\"data\")`, \
                         `encoding`, `binary_tracking`, `on_enable`, `on_disable` and \
                         `on_capture_state`",
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let Some(name) = name else {
            return Err(syn::Error::new(
                Span::call_site(),
                "a provider has a name: `name = \"Company.Component\"`",
            ));
        };
        let text = attribute::name_of(&name)?;
        let guid = match written_guid {
            Some(guid) => guid,
            None => Guid::of_name(&text).map_err(|error| syn::Error::new(name.span(), error))?,
        };
        let size = crate::traits::size(&text, group.is_some(), &traits);
        if size > crate::MOST_TRAITS {
            return Err(syn::Error::new(
                name.span(),
                format!(
                    "the provider's traits have {size} bytes, and 255 is the most, since they \
                     travel with every event; shorten the name or the custom traits"
                ),
            ));
        }
        Ok(Self {
            name: text,
            guid,
            group,
            traits,
            encoding: default_encoding,
            hooks,
            binary_tracking,
        })
    }
}

fn value<T: Parse>(input: ParseStream<'_>) -> syn::Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// `(128, b"data")`.
fn custom_trait(input: ParseStream<'_>) -> syn::Result<Trait> {
    let inside;
    parenthesized!(inside in input);
    let kind: LitInt = inside.parse()?;
    inside.parse::<Token![,]>()?;
    let data = if inside.peek(LitStr) {
        inside.parse::<LitStr>()?.value().into_bytes()
    } else {
        inside.parse::<LitByteStr>()?.value()
    };
    inside.parse::<Option<Token![,]>>()?;
    if !inside.is_empty() {
        return Err(inside.error("a trait is its type and its data: `trait_(128, b\"data\")`"));
    }
    match kind.base10_parse() {
        Ok(number @ 128..) => Ok(Trait { kind: number, data }),
        Ok(1) => Err(syn::Error::new(
            kind.span(),
            "type 1 is the provider's group: write `group = \"…\"`",
        )),
        _ => Err(syn::Error::new(
            kind.span(),
            "a custom trait's type is 128 to 255; the others are Microsoft's",
        )),
    }
}

/// The module under `#[provider]`. Events have no body, which only a macro can read.
struct Module {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    ident: Ident,
    entries: Vec<Entry>,
}

enum Entry {
    Function(Function),
    Item(Item),
}

/// `pub fn event(field: type);`
struct Function {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    signature: Signature,
}

impl Parse for Module {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        input.parse::<Token![mod]>()?;
        let ident = input.parse()?;
        if input.peek(Token![;]) {
            return Err(input.error(
                "put the provider's module in line: `mod trace { … }`; the macro cannot read \
                 another file",
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

/// Takes the attribute of this name away; whether it was there.
fn take_attribute(attributes: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    let at = attributes
        .iter()
        .position(|attribute| attribute.path().is_ident(name))?;
    Some(attributes.remove(at))
}

fn put_item(provider: &mut Provider, item: Item) -> syn::Result<()> {
    match item {
        Item::Const(mut item) => {
            if take_attribute(&mut item.attrs, "keyword").is_some() {
                provider.keywords.push(keyword(&item)?);
                return Ok(());
            }
            provider.others.push(Item::Const(item));
        }
        Item::Enum(mut item) => {
            if take_attribute(&mut item.attrs, "tasks").is_some() {
                provider
                    .tasks
                    .extend(named(&item, 1..=u32::from(u16::MAX), "a task")?);
            } else if take_attribute(&mut item.attrs, "opcodes").is_some() {
                provider
                    .opcodes
                    .extend(named(&item, 10..=239, "an opcode of the provider's own")?);
            } else if take_attribute(&mut item.attrs, "channels").is_some() {
                channels(provider, &item)?;
            } else if take_attribute(&mut item.attrs, "map").is_some() {
                provider.maps.push(map(&mut item, MapKind::Value)?);
            } else if take_attribute(&mut item.attrs, "bitmap").is_some() {
                provider.maps.push(map(&mut item, MapKind::Bits)?);
            } else {
                provider.others.push(Item::Enum(item));
            }
        }
        Item::Struct(mut item) => {
            if take_attribute(&mut item.attrs, "structure").is_none() {
                provider.others.push(Item::Struct(item));
                return Ok(());
            }
            let mut fields = Vec::new();
            for field in &item.fields {
                let Some(ident) = &field.ident else {
                    return Err(syn::Error::new(
                        field.ty.span(),
                        "a structure's fields have names: `struct Place { x: u32 }`",
                    ));
                };
                fields.push(self::field(ident, &field.ty, &field.attrs)?);
            }
            provider.structures.push(Structure {
                docs: attribute::docs(&item.attrs),
                ident: item.ident,
                visibility: item.vis,
                generics: item.generics,
                fields,
            });
        }
        other => provider.others.push(other),
    }
    Ok(())
}

/// `pub const READ: Keyword = Keyword::bit(0);`, or a mask of one bit.
fn keyword(item: &syn::ItemConst) -> syn::Result<Keyword> {
    let expression = &*item.expr;
    let refuse = || {
        syn::Error::new(
            expression.span(),
            "a keyword is one of the bits 0 to 47: `Keyword::bit(3)`, or a mask such as `0x8`; \
             bits 48 to 63 are Microsoft's",
        )
    };
    let number = |expression: &Expr| match expression {
        Expr::Lit(ExprLit {
            lit: Lit::Int(number),
            ..
        }) => number.base10_parse::<u64>().ok(),
        _ => None,
    };
    let bit = match expression {
        Expr::Call(call) => {
            let (Expr::Path(path), Some(argument), 1) =
                (&*call.func, call.args.first(), call.args.len())
            else {
                return Err(refuse());
            };
            if path
                .path
                .segments
                .last()
                .is_none_or(|last| last.ident != "bit")
            {
                return Err(refuse());
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
        ident: item.ident.clone(),
        name,
        bit: u32::try_from(bit).map_err(|_| refuse())?,
        bit_span: expression.span(),
        visibility: item.vis.clone(),
        docs: attribute::docs(&item.attrs),
    })
}

/// The variants of an enum, each with a value in a range.
fn named<T: TryFrom<u32>>(
    item: &syn::ItemEnum,
    range: std::ops::RangeInclusive<u32>,
    what: &str,
) -> syn::Result<Vec<Named<T>>> {
    let mut entries = Vec::new();
    for variant in &item.variants {
        let refuse = |span| {
            syn::Error::new(
                span,
                format!(
                    "{what} has a number from {} to {}: `{} = …`",
                    range.start(),
                    range.end(),
                    variant.ident
                ),
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
                name = attribute::name(attribute)?;
            }
        }
        entries.push(Named {
            ident: variant.ident.clone(),
            name,
            value: number,
            value_span: expression.span(),
            docs: attribute::docs(&variant.attrs),
        });
    }
    Ok(entries)
}

/// A number, or a number shifted by another.
fn constant(expression: &Expr) -> Option<u64> {
    match expression {
        Expr::Lit(ExprLit {
            lit: Lit::Int(number),
            ..
        }) => number.base10_parse().ok(),
        Expr::Binary(binary) => {
            let (left, right) = (constant(&binary.left)?, constant(&binary.right)?);
            match binary.op {
                syn::BinOp::Shl(_) => left.checked_shl(u32::try_from(right).ok()?),
                _ => None,
            }
        }
        Expr::Paren(inside) => constant(&inside.expr),
        _ => None,
    }
}

fn channels(provider: &mut Provider, item: &syn::ItemEnum) -> syn::Result<()> {
    let entries = named::<u8>(item, 16..=255, "a channel of the provider's own")?;
    for (named, variant) in entries.into_iter().zip(&item.variants) {
        let kind = variant
            .attrs
            .iter()
            .find(|attribute| attribute.path().is_ident("channel"))
            .map(Attribute::parse_args::<Ident>)
            .transpose()?;
        let kind = match kind {
            Some(kind) => {
                let name = kind.to_string();
                if !["Admin", "Operational", "Analytic", "Debug"].contains(&name.as_str()) {
                    return Err(syn::Error::new(
                        kind.span(),
                        "a channel is `Admin`, `Operational`, `Analytic` or `Debug`",
                    ));
                }
                name
            }
            None => {
                return Err(syn::Error::new(
                    variant.ident.span(),
                    "say what kind of channel it is: `#[channel(Operational)]`, or `Admin`, \
                     `Analytic` or `Debug`",
                ));
            }
        };
        provider.channels.push(Channel { named, kind });
    }
    Ok(())
}

fn map(item: &mut syn::ItemEnum, kind: MapKind) -> syn::Result<Map> {
    let mut scalar = Scalar::U32;
    if let Some(repr) = take_attribute(&mut item.attrs, "repr") {
        let word: Ident = repr.parse_args()?;
        scalar = match word.to_string().as_str() {
            "u8" => Scalar::U8,
            "u16" => Scalar::U16,
            "u32" => Scalar::U32,
            _ => {
                return Err(syn::Error::new(
                    word.span(),
                    "a map's values are `u8`, `u16` or `u32`",
                ));
            }
        };
    }
    let most = match scalar {
        Scalar::U8 => u32::from(u8::MAX),
        Scalar::U16 => u32::from(u16::MAX),
        _ => u32::MAX,
    };
    let entries = named::<u32>(item, 0..=most, "an entry of a map")?;
    if entries.is_empty() {
        return Err(syn::Error::new(
            item.ident.span(),
            "a map has one entry at least",
        ));
    }
    for entry in &entries {
        if kind == MapKind::Bits && !entry.value.is_power_of_two() {
            return Err(syn::Error::new(
                entry.value_span,
                "an entry of a bit map is one bit: `1 << 3`",
            ));
        }
    }
    Ok(Map {
        ident: item.ident.clone(),
        visibility: item.vis.clone(),
        kind,
        scalar,
        entries,
        docs: attribute::docs(&item.attrs),
    })
}

fn field(ident: &Ident, written: &syn::Type, attributes: &[Attribute]) -> syn::Result<Field> {
    let options = FieldOptions::parse(attributes)?;
    let kind = FieldType::parse(written, &options)?;
    Ok(Field {
        name: options
            .name
            .unwrap_or_else(|| attribute::pascal_case(&ident.to_string())),
        ident: ident.clone(),
        written: written.clone(),
        kind,
        tag: options.tag,
        docs: options.docs,
    })
}

/// What stands in `#[event(…)]`, before it is looked up.
#[derive(Default)]
struct EventSettings {
    id: Option<(u16, Span)>,
    version: u8,
    level: Option<Level>,
    keyword: Option<Vec<(Ident, Span)>>,
    task: Option<Ident>,
    opcode: Option<Ident>,
    channel: Option<Ident>,
    encoding: Option<(Encoding, Span)>,
    name: Option<String>,
    message: Option<String>,
    tag: Option<(u32, Span)>,
}

/// A level by its name, or one of the provider's own.
fn level(input: ParseStream<'_>) -> syn::Result<Level> {
    if input.peek(LitInt) {
        let number: LitInt = input.parse()?;
        return match number.base10_parse::<u8>() {
            Ok(own @ 16..) => Ok(Level(own)),
            Ok(0) => Err(syn::Error::new(
                number.span(),
                "an event of level 0 passes every session's level; if that is what you want, \
                 write `LogAlways`",
            )),
            _ => Err(syn::Error::new(
                number.span(),
                "levels 1 to 5 have names (`Critical`, `Error`, `Warning`, `Info`, `Verbose`), 6 \
                 to 15 are Microsoft's, and 16 to 255 are the provider's own",
            )),
        };
    }
    let word: Ident = input.parse()?;
    STANDARD_LEVELS
        .iter()
        .find(|(name, _)| word == name)
        .map(|(_, level)| Level(*level))
        .ok_or_else(|| {
            syn::Error::new(
                word.span(),
                "a level is `Critical`, `Error`, `Warning`, `Info`, `Verbose`, `LogAlways`, or a \
                 number from 16 to 255",
            )
        })
}

impl Parse for EventSettings {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut settings = Self::default();
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            match word.to_string().as_str() {
                "id" => {
                    let number: LitInt = input.parse()?;
                    settings.id = Some((number.base10_parse()?, number.span()));
                }
                "version" => settings.version = input.parse::<LitInt>()?.base10_parse()?,
                "level" => settings.level = Some(level(input)?),
                "keyword" => {
                    let words = Punctuated::<Ident, Token![|]>::parse_separated_nonempty(input)?;
                    settings.keyword = Some(
                        words
                            .into_iter()
                            .map(|word| {
                                let span = word.span();
                                (word, span)
                            })
                            .collect(),
                    );
                }
                "task" => settings.task = Some(input.parse()?),
                "opcode" => settings.opcode = Some(input.parse()?),
                "channel" => settings.channel = Some(input.parse()?),
                "encoding" => {
                    let word: Ident = input.parse()?;
                    settings.encoding = Some((encoding(&word)?, word.span()));
                }
                "name" => settings.name = Some(attribute::name_of(&input.parse()?)?),
                "message" => settings.message = Some(input.parse::<LitStr>()?.value()),
                "tag" => {
                    let number: LitInt = input.parse()?;
                    settings.tag = Some((attribute::tag_of(&number)?, number.span()));
                }
                _ => {
                    return Err(syn::Error::new(
                        word.span(),
                        "an event has `id`, `version`, `level`, `keyword`, `task`, `opcode`, \
                         `channel`, `encoding`, `name`, `message` and `tag`",
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(settings)
    }
}

/// An undeclared name, with those that there are.
fn undeclared(what: &str, word: &Ident, names: impl Iterator<Item = String>) -> syn::Error {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let there = if names.is_empty() {
        "the provider declares none".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    syn::Error::new(
        word.span(),
        format!("no {what} is called `{word}`; {there}"),
    )
}

fn keyword_bits(words: &[(Ident, Span)], provider: &Provider) -> syn::Result<u64> {
    if let [(word, _)] = words
        && word == "none"
    {
        return Ok(0);
    }
    let mut bits = 0;
    for (word, _) in words {
        let keyword = provider
            .keywords
            .iter()
            .find(|keyword| keyword.ident == *word)
            .ok_or_else(|| {
                let names = provider
                    .keywords
                    .iter()
                    .map(|keyword| keyword.ident.to_string());
                undeclared("keyword", word, names)
            })?;
        bits |= 1 << keyword.bit;
    }
    Ok(bits)
}

fn opcode(word: &Ident, provider: &Provider) -> syn::Result<u8> {
    let standard = STANDARD_OPCODES.iter().find(|(name, _)| word == name);
    let own = provider.opcodes.iter().find(|opcode| opcode.ident == *word);
    standard
        .map(|(_, value)| *value)
        .or_else(|| own.map(|own| own.value))
        .ok_or_else(|| {
            let standard = STANDARD_OPCODES.iter().map(|(name, _)| (*name).to_owned());
            let own = provider
                .opcodes
                .iter()
                .map(|opcode| opcode.ident.to_string());
            undeclared("opcode", word, standard.chain(own))
        })
}

fn event(function: &Function, provider: &Provider) -> syn::Result<Event> {
    let signature = &function.signature;
    let ident = &signature.ident;
    let Some(attribute) = function
        .attributes
        .iter()
        .find(|attribute| attribute.path().is_ident("event"))
    else {
        return Err(syn::Error::new(
            ident.span(),
            "a function without a body is an event: say of which level and keyword, \
             `#[event(level = Info, keyword = …)]`",
        ));
    };
    for other in &function.attributes {
        let path = other.path();
        if !["event", "doc", "cfg", "allow", "expect"]
            .iter()
            .any(|name| path.is_ident(name))
        {
            return Err(syn::Error::new_spanned(
                path,
                "an event has no such attribute",
            ));
        }
    }
    if let Some(unsupported) = unsupported(signature) {
        return Err(syn::Error::new(
            unsupported,
            "an event is a plain function with fields: `fn name(field: type);`",
        ));
    }
    let settings: EventSettings = attribute.parse_args()?;
    let Some(level) = settings.level else {
        return Err(syn::Error::new(
            ident.span(),
            "say of which level the event is: `level = Info`; one that passes every session's \
             level is `LogAlways`",
        ));
    };
    let Some(words) = &settings.keyword else {
        return Err(syn::Error::new(
            ident.span(),
            "say what the event is about: `keyword = …`; one that passes every session's keywords \
             has `keyword = none`",
        ));
    };
    let keyword = keyword_bits(words, provider)?;
    let task = match &settings.task {
        None => 0,
        Some(word) => provider
            .tasks
            .iter()
            .find(|task| task.ident == *word)
            .map(|task| task.value)
            .ok_or_else(|| {
                undeclared(
                    "task",
                    word,
                    provider.tasks.iter().map(|task| task.ident.to_string()),
                )
            })?,
    };
    let opcode = settings
        .opcode
        .as_ref()
        .map_or(Ok(0), |word| opcode(word, provider))?;
    let channel = match &settings.channel {
        None => 0,
        Some(word) => provider
            .channels
            .iter()
            .find(|channel| channel.named.ident == *word)
            .map(|channel| channel.named.value)
            .ok_or_else(|| {
                let names = provider
                    .channels
                    .iter()
                    .map(|one| one.named.ident.to_string());
                undeclared("channel", word, names)
            })?,
    };
    let encoding = settings
        .encoding
        .map(|(encoding, _)| encoding)
        .or(provider.encoding)
        .unwrap_or(if settings.id.is_some() {
            Encoding::Manifest
        } else {
            Encoding::TraceLogging
        });
    if encoding == Encoding::Manifest && settings.id.is_none() {
        return Err(syn::Error::new(
            ident.span(),
            "an event in a manifest is known by its id: `id = 1`; one that describes itself has \
             `encoding = tracelogging`",
        ));
    }
    if let (Encoding::Manifest, Some((_, span))) = (encoding, settings.tag) {
        return Err(syn::Error::new(
            span,
            "tags travel with events that describe themselves; use `encoding = tracelogging`",
        ));
    }
    if let (Encoding::TraceLogging, Some(word)) = (encoding, &settings.channel) {
        return Err(syn::Error::new(
            word.span(),
            "an event that describes itself goes to no channel; use `encoding = manifest` and an \
             id",
        ));
    }
    let mut fields = Vec::new();
    for argument in &signature.inputs {
        let FnArg::Typed(argument) = argument else {
            return Err(syn::Error::new(argument.span(), "an event has no `self`"));
        };
        let Pat::Ident(name) = &*argument.pat else {
            return Err(syn::Error::new(
                argument.pat.span(),
                "a field has a name: `length: u32`",
            ));
        };
        fields.push(field(&name.ident, &argument.ty, &argument.attrs)?);
    }
    let (id, id_span) = settings.id.unwrap_or((0, ident.span()));
    Ok(Event {
        name: settings
            .name
            .unwrap_or_else(|| attribute::pascal_case(&ident.to_string())),
        ident: ident.clone(),
        visibility: function.visibility.clone(),
        docs: attribute::docs(&function.attributes),
        message: settings.message,
        encoding,
        id,
        id_span,
        version: settings.version,
        level,
        keyword,
        task,
        opcode,
        channel,
        tag: settings.tag.map_or(0, |(tag, _)| tag),
        fields,
    })
}

/// What an event's signature cannot have.
fn unsupported(signature: &Signature) -> Option<Span> {
    signature
        .asyncness
        .map(|word| word.span)
        .or_else(|| signature.unsafety.map(|word| word.span))
        .or_else(|| signature.constness.map(|word| word.span))
        .or_else(|| signature.abi.as_ref().map(syn::spanned::Spanned::span))
        .or_else(|| signature.variadic.as_ref().map(syn::spanned::Spanned::span))
        .or_else(|| match &signature.output {
            syn::ReturnType::Default => None,
            syn::ReturnType::Type(arrow, _) => Some(arrow.span()),
        })
        .or_else(|| signature.generics.lt_token.map(|token| token.span))
}

/// An event at its call site: `event!(PROVIDER, "Name", level = Info, keyword = …,
/// { field: type = value, … })`.
#[derive(Debug)]
pub struct AdHoc {
    /// The provider.
    pub provider: Expr,
    /// The event's name.
    pub name: String,
    /// Its level.
    pub level: Level,
    /// Its keywords: a constant expression, or none on purpose.
    pub keyword: Option<Expr>,
    /// Its opcode.
    pub opcode: u8,
    /// Its tag.
    pub tag: u32,
    /// What is said of the write: `activity`, `related`, `flags` and their values.
    pub options: Vec<(Ident, Expr)>,
    /// The fields.
    pub fields: Vec<Field>,
    /// Their values.
    pub values: Vec<Expr>,
    /// Where the name stands.
    pub span: Span,
}

/// Reads an event at its call site.
///
/// # Errors
///
/// What is wrong with it, at its token.
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
                let field = field(&ident, &written, &attributes)?;
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
                let word: Ident = input.parse()?;
                event_opcode = STANDARD_OPCODES
                    .iter()
                    .find(|(name, _)| word == name)
                    .map(|(_, value)| *value)
                    .ok_or_else(|| {
                        let names = STANDARD_OPCODES.iter().map(|(name, _)| (*name).to_owned());
                        undeclared("opcode", &word, names)
                    })?;
            }
            "tag" => tag = attribute::tag_of(&input.parse()?)?,
            "activity" | "related" | "flags" => options.push((word, input.parse()?)),
            _ => {
                return Err(syn::Error::new(
                    word.span(),
                    "an event has `level`, `keyword`, `opcode`, `tag`, `activity`, `related`, \
                     `flags`, and `{ field: type = value, … }`",
                ));
            }
        }
    }
    let Some(level) = event_level else {
        return Err(syn::Error::new(
            name.span(),
            "say of which level the event is: `level = Info`; one that passes every session's \
             level is `LogAlways`",
        ));
    };
    let Some(keyword) = keyword else {
        return Err(syn::Error::new(
            name.span(),
            "say what the event is about: `keyword = …`; one that passes every session's keywords \
             has `keyword = none`",
        ));
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
