//! The parser of events.

use std::collections::HashSet;

use etw_wire::winmeta;
use proc_macro2::Span;
use syn::{
    Attribute, FnArg, Ident, LitInt, LitStr, Pat, Signature, Token,
    parse::{Parse, ParseStream},
    spanned::Spanned as _,
};

use super::{
    module::Function,
    settings::encoding,
    words::{arguments, item, literal, number},
};
use crate::{
    Encoding, Event, Field, FieldType, Level, Provider, Shape, attribute,
    errors::{Tokens, bail, error, quoted, undeclared},
    message,
    types::{FieldOptions, ungrouped},
};

/// Parses a field. `own` contains the names of the declaration's types.
pub fn field(
    ident: &Ident,
    written: &syn::Type,
    attributes: &[Attribute],
    own: &HashSet<Ident>,
) -> syn::Result<Field> {
    let options = FieldOptions::parse(attributes)?;
    let written = ungrouped(written);
    let kind = FieldType::parse(&written, &options, own)?;
    let form = match &kind {
        FieldType::Values(scalar, format, shape) => options.form.form(*scalar, *format, *shape)?,
        FieldType::Named(_) => options.form.of_named(Shape::One)?,
        FieldType::Structures(_, shape) => options.form.of_named(*shape)?,
    };
    Ok(Field {
        form,
        name: options.name.unwrap_or_else(|| attribute::pascal_case(&ident.to_string())),
        ident: ident.clone(),
        written,
        kind,
        tag: options.tag,
        docs: options.docs,
    })
}

/// The arguments of `#[event(…)]`, which refer to other items by name.
#[derive(Default)]
struct EventSettings {
    id: Option<(u16, Span)>,
    version: Option<(u8, Span)>,
    level: Option<Level>,
    own_level: Option<Ident>,
    keyword: Option<Vec<Ident>>,
    task: Option<Ident>,
    opcode: Option<Ident>,
    channel: Option<Ident>,
    encoding: Option<Encoding>,
    name: Option<String>,
    message: Option<LitStr>,
    tag: Option<(u32, Span)>,
}

/// The accepted forms, for error messages.
const ID: &str = "an event's id, a number from 0 to 65535, as in `id = 1`";
const VERSION: &str = "an event's version, a number from 0 to 255, as in `version = 1`";
const KEYWORD: &str = "declare it as `#[keyword] pub const READ: Keyword = Keyword::bit(0);`, and write \
                       `keyword = READ`, `READ | WRITE` or `none`";
const TASK: &str =
    "declare it as `#[tasks] enum Task { Transfer = 1 }`, and write `task = Transfer`";
pub const OPCODE: &str = "write a standard one, such as `opcode = Start`, or declare it as `#[opcodes] \
                          enum Opcode { Split = 10 }`, and write `opcode = Split`";
const CHANNEL: &str = "declare it as `#[channels] enum Channel { #[channel(Operational)] Operational = \
                       16 }`, and write `channel = Operational`";

/// The supported levels, for error messages.
const LEVELS: &str = "supported: `Critical`, `Error`, `Warning`, `Info`, `Verbose`, `LogAlways`, or a \
                      number from 16 to 255";

/// Parses the names of an event's keywords.
fn keywords(input: ParseStream<'_>) -> syn::Result<Vec<Ident>> {
    let mut words = vec![item(input, "a keyword", KEYWORD)?];
    while !input.is_empty() && !input.peek(Token![,]) {
        let word = words.last().map(ToString::to_string).unwrap_or_default();
        if !input.peek(Token![|]) || input.peek(Token![||]) {
            bail!(input.span(), "keywords are joined by `|`, as in `keyword = {word} | OTHER`");
        }
        input.parse::<Token![|]>()?;
        words.push(item(input, "a keyword", KEYWORD)?);
    }
    Ok(words)
}

/// Parses a level: a standard name, or a number for a level that the provider defines. `also` ends the
/// message about another expression.
pub fn level(input: ParseStream<'_>, also: &str) -> syn::Result<Level> {
    if input.peek(LitInt) {
        let number: LitInt = input.parse()?;
        return match number.base10_parse::<u8>() {
            Ok(own @ 16..) => Ok(Level(own)),
            Ok(0) => Err(error!(
                number.span(),
                "level 0 passes the level of every session; write `LogAlways` to choose it",
            )),
            _ => Err(error!(
                number.span(),
                "a level must be a name or 16 to 255: levels 1 to 5 have the names `Critical`, \
                 `Error`, `Warning`, `Info` and `Verbose`, and levels 6 to 15 are reserved for \
                 Microsoft",
            )),
        };
    }
    if is_path(input) {
        let path: syn::Path = input.parse()?;
        let level = path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        let level = similar_level(&level).unwrap_or(&level);
        bail!(
            path.segments.first().map_or_else(Span::call_site, |first| first.ident.span()),
            "a level must be named without a path; write `level = {level}`; {LEVELS}{also}",
        );
    }
    let word: Ident =
        input.parse().map_err(|_| input.error(format!("expected a level; {LEVELS}{also}")))?;
    standard_level(&word).ok_or_else(|| unknown_level(&word, &[], also))
}

/// Returns whether a path of several words follows, such as `Level::Info`.
fn is_path(input: ParseStream<'_>) -> bool {
    input.peek(Ident) && input.peek2(Token![::]) || input.peek(Token![::])
}

fn standard_level(word: &Ident) -> Option<Level> {
    let known = winmeta::LEVELS.iter().find(|known| word == known.ident)?;
    Some(Level(known.value))
}

/// Returns the standard level whose constant in `Level` or whose name in lower case this is.
fn similar_level(word: &str) -> Option<&'static str> {
    const OTHERS: [(&str, &str); 6] = [
        ("debug", "verbose"),
        ("fatal", "critical"),
        ("information", "info"),
        ("informational", "info"),
        ("trace", "verbose"),
        ("warn", "warning"),
    ];
    let word = word.replace('_', "").to_lowercase();
    let word = OTHERS.iter().find(|(other, _)| *other == word).map_or(&*word, |(_, known)| known);
    winmeta::LEVELS.iter().map(|known| known.ident).find(|known| known.eq_ignore_ascii_case(word))
}

fn unknown_level(word: &Ident, own: &[crate::Named<u8>], also: &str) -> syn::Error {
    let own = quoted(own.iter().map(|level| &level.ident));
    let declared = if own.is_empty() { String::new() } else { format!("declared: {own}; ") };
    let similar = similar_level(&word.to_string())
        .map_or_else(String::new, |known| format!("write `level = {known}`; "));
    error!(word.span(), "unknown level `{word}`; {similar}{declared}{LEVELS}{also}")
}

/// Returns the event's level: a standard level, or one that the provider declares.
fn level_of(settings: &EventSettings, provider: &Provider) -> syn::Result<Option<Level>> {
    let Some(word) = &settings.own_level else {
        return Ok(settings.level);
    };
    let mut own = provider.levels.iter();
    own.find(|level| level.ident == *word)
        .map(|level| Some(Level(level.value)))
        .ok_or_else(|| unknown_level(word, &provider.levels, ""))
}

impl Parse for EventSettings {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut settings = Self::default();
        arguments(input, |word| {
            if !input.peek(Token![=])
                && let Some(first) = settings.keyword.iter().flatten().next()
            {
                bail!(
                    word.span(),
                    "`{word}` has no value; keywords are joined by `|`: write `keyword = {first} | {word}`",
                );
            }
            input.parse::<Token![=]>()?;
            match word.to_string().as_str() {
                "id" => settings.id = Some(number(input, ID)?),
                "version" => settings.version = Some(number(input, VERSION)?),
                "level" => match input.fork().parse::<Ident>() {
                    Ok(word) if standard_level(&word).is_none() && !is_path(input) => {
                        settings.own_level = Some(input.parse()?);
                    }
                    _ => settings.level = Some(level(input, "")?),
                },
                "keyword" => settings.keyword = Some(keywords(input)?),
                "task" => settings.task = Some(item(input, "a task", TASK)?),
                "opcode" => settings.opcode = Some(item(input, "an opcode", OPCODE)?),
                "channel" => settings.channel = Some(item(input, "a channel", CHANNEL)?),
                "encoding" => settings.encoding = Some(encoding(&input.parse()?)?),
                "name" => {
                    let name = literal(input, "an event's name", "name = \"Started\"")?;
                    settings.name = Some(attribute::name_of(&name)?);
                }
                "message" => {
                    let form = "message = \"Read %1 bytes\"";
                    settings.message = Some(literal(input, "an event's message", form)?);
                }
                "tag" => {
                    let number: LitInt = input.parse()?;
                    settings.tag = Some((attribute::tag_of(&number)?, number.span()));
                }
                _ => {
                    bail!(
                        word.span(),
                        "unknown argument `{word}` of an event; supported: `id`, `version`, \
                         `level`, `keyword`, `task`, `opcode`, `channel`, `encoding`, `name`, \
                         `message`, `tag`",
                    );
                }
            }
            Ok(())
        })?;
        Ok(settings)
    }
}

fn keyword_bits(words: &[Ident], provider: &Provider) -> syn::Result<u64> {
    if let [word] = words
        && word == "none"
    {
        return Ok(0);
    }
    let mut bits = 0;
    for word in words {
        let keywords = provider.keywords.iter().map(|keyword| (&keyword.ident, keyword.bit));
        bits |= 1 << declared("keyword", word, keywords)?;
    }
    Ok(bits)
}

/// Returns the value of a declared name.
fn declared<'a, T>(
    what: &str,
    word: &Ident,
    mut all: impl Iterator<Item = (&'a Ident, T)> + Clone,
) -> syn::Result<T> {
    let names = all.clone().map(|(ident, _)| ident);
    let found = all.find(|(ident, _)| *ident == word);
    found.map(|(_, value)| value).ok_or_else(|| undeclared(what, word, names))
}

/// Returns the opcodes of a task.
fn of_task<'a>(
    task: Option<&Ident>,
    provider: &'a Provider,
) -> impl Iterator<Item = &'a crate::Named<u8>> {
    let lists = provider.task_opcodes.iter();
    let task = task.cloned();
    lists.filter(move |list| task.as_ref() == Some(&list.task)).flat_map(|list| &list.opcodes)
}

/// Returns the value of an opcode, from the event's task, winmeta.xml or the provider.
fn opcode(word: &Ident, task: Option<&Ident>, provider: &Provider) -> syn::Result<u8> {
    if let Some(own) = of_task(task, provider).find(|opcode| opcode.ident == *word) {
        return Ok(own.value);
    }
    let standard = winmeta::OPCODES.iter().find(|known| word == known.ident);
    let own = provider.opcodes.iter().find(|opcode| opcode.ident == *word);
    if let (None, Some(own), Some(task)) = (standard, own, task)
        && let Some(other) = of_task(Some(task), provider).find(|other| other.value == own.value)
    {
        bail!(
            word.span(),
            "viewers would show the opcode `{word}` as `{0}`, which has the same number {1} in the \
             task `{task}`; write `opcode = {0}`, or choose another number",
            other.ident,
            own.value,
        );
    }
    standard.map(|known| known.value).or_else(|| own.map(|own| own.value)).ok_or_else(|| {
        let standard = winmeta::OPCODES.iter().map(|known| known.ident.to_owned());
        let own = provider.opcodes.iter().chain(of_task(task, provider));
        undeclared("opcode", word, standard.chain(own.map(|opcode| opcode.ident.to_string())))
    })
}

/// Parses an event of a provider whose other items have been parsed.
pub fn event(function: &Function, provider: &Provider, own: &HashSet<Ident>) -> syn::Result<Event> {
    let ident = &function.signature.ident;
    let settings = settings(function)?;
    let Some(level) = level_of(&settings, provider)? else {
        return Err(without_level(ident.span()));
    };
    let Some(words) = &settings.keyword else {
        return Err(without_keyword(ident.span()));
    };
    let task = settings.task.as_ref().map_or(Ok(0), |word| {
        declared("task", word, provider.tasks.iter().map(|task| (&task.ident, task.value)))
    })?;
    let channel = settings.channel.as_ref().map_or(Ok(0), |word| {
        let channels = provider.channels.iter().map(|channel| &channel.named);
        declared("channel", word, channels.map(|channel| (&channel.ident, channel.value)))
    })?;
    let (id, id_span) = settings.id.unwrap_or_else(|| (0, ident.span()));
    let encoding = encoding_of(&settings, ident, provider)?;
    if let (Some((_, span)), None) = (settings.version, settings.id) {
        bail!(
            span,
            "the event `{ident}` has a version, which tells apart events with the same id, and no \
             id; add, for example, `id = 1`, or remove the version",
        );
    }
    let fields = fields(&function.signature, own)?;
    if let Some(message) = &settings.message {
        message::check(message, &fields)?;
    }
    Ok(Event {
        level,
        keyword: keyword_bits(words, provider)?,
        task,
        opcode: settings
            .opcode
            .as_ref()
            .map_or(Ok(0), |word| opcode(word, settings.task.as_ref(), provider))?,
        channel,
        encoding,
        fields,
        name: settings.name.unwrap_or_else(|| attribute::pascal_case(&ident.to_string())),
        ident: ident.clone(),
        visibility: function.visibility.clone(),
        docs: attribute::docs(&function.attributes)?,
        message: settings.message.map(|message| message.value()),
        id,
        id_span,
        version: settings.version.map_or(0, |(version, _)| version),
        tag: settings.tag.map_or(0, |(tag, _)| tag),
    })
}

pub fn without_level(span: Span) -> syn::Error {
    error!(
        span,
        "the event has no level; add, for example, `level = Info` (`LogAlways` passes the level of \
         every session)",
    )
}

pub fn without_keyword(span: Span) -> syn::Error {
    error!(
        span,
        "the event has no keyword; add `keyword = …` (`keyword = none` passes the keywords of \
         every session)",
    )
}

/// Parses the event's attributes.
fn settings(function: &Function) -> syn::Result<EventSettings> {
    let signature = &function.signature;
    for attribute in &function.attributes {
        let path = attribute.path();
        if !path.is_ident("event") && !path.is_ident("doc") {
            bail!(
                Tokens(path),
                "an event cannot have this attribute; supported: `#[event(…)]` and doc comments",
            );
        }
    }
    if let Some(span) = unsupported(signature) {
        bail!(
            span,
            "an event must be a function without qualifiers, generics and return type: `fn \
             name(field: type);`",
        );
    }
    let mut attributes =
        function.attributes.iter().filter(|attribute| attribute.path().is_ident("event"));
    let attribute = attributes.next();
    if let Some(second) = attributes.next() {
        bail!(
            Tokens(second.path()),
            "the event `{}` has a second `#[event(…)]`; write all arguments in one",
            signature.ident,
        );
    }
    attribute.map_or_else(
        || {
            Err(error!(
                signature.ident.span(),
                "the event `{}` has no level and keyword; add `#[event(level = Info, keyword = \
                 …)]` (every function without a body is an event)",
                signature.ident,
            ))
        },
        Attribute::parse_args,
    )
}

/// Returns the event's encoding: its own, the provider's default or, without either, `Manifest` if
/// the event has an id.
fn encoding_of(
    settings: &EventSettings,
    ident: &Ident,
    provider: &Provider,
) -> syn::Result<Encoding> {
    let explicit = settings.encoding.or(provider.encoding);
    let encoding = explicit.unwrap_or_else(|| {
        if settings.id.is_some() { Encoding::Manifest } else { Encoding::TraceLogging }
    });
    match encoding {
        Encoding::Manifest => {
            if settings.id.is_none() {
                bail!(
                    ident.span(),
                    "the manifest event `{ident}` has no id; add, for example, `id = 1`, or use \
                     `encoding = tracelogging`",
                );
            }
            if let Some((_, span)) = settings.tag {
                bail!(
                    span,
                    "the manifest event `{ident}` has a tag, which only TraceLogging events can \
                     have; remove the tag or use `encoding = tracelogging`",
                );
            }
        }
        Encoding::TraceLogging => {
            if let Some(message) = &settings.message {
                bail!(
                    message.span(),
                    "the TraceLogging event `{ident}` has a message, which only manifest events \
                     can have; remove it, or use `encoding = manifest` and an id",
                );
            }
            if let Some(word) = &settings.channel {
                bail!(
                    word.span(),
                    "the TraceLogging event `{ident}` has a channel, which only manifest events \
                     can have; use `encoding = manifest` and an id",
                );
            }
        }
    }
    Ok(encoding)
}

fn fields(signature: &Signature, own: &HashSet<Ident>) -> syn::Result<Vec<Field>> {
    let mut fields = Vec::new();
    for argument in &signature.inputs {
        let FnArg::Typed(argument) = argument else {
            bail!(argument.span(), "an event cannot have the parameter `self`; remove it");
        };
        let Pat::Ident(name) = &*argument.pat else {
            bail!(argument.pat.span(), "a field must have a name, as in `length: u32`");
        };
        let words = [
            (name.mutability.map(|word| word.span), "mut"),
            (name.by_ref.map(|word| word.span), "ref"),
        ];
        if let Some((span, word)) = words.into_iter().find_map(|(span, word)| Some((span?, word))) {
            bail!(
                span,
                "a field cannot be `{word}`, because it is a name and a type; write `{}: …`",
                name.ident,
            );
        }
        fields.push(field(&name.ident, &argument.ty, &argument.attrs, own)?);
    }
    Ok(fields)
}

/// Returns the location of the first part of a signature that an event does not support.
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
