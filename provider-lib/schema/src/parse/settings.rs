//! The arguments of `#[provider(…)]`.

use etw_wire::limits::MAX_TRAITS_SIZE;
use proc_macro2::Span;
use syn::{
    Ident, LitByteStr, LitInt, LitStr, Path, Token,
    ext::IdentExt as _,
    parenthesized,
    parse::{Parse, ParseStream},
};

use super::{
    autologger,
    words::{Given, alone, guid, literal, value},
};
use crate::{
    Encoding, Guid, Hooks, Trait, attribute,
    errors::{bail, error},
};

/// The arguments of `#[provider(…)]`.
pub struct Settings {
    pub name: String,
    pub name_span: Span,
    pub guid: Guid,
    pub group: Option<Guid>,
    pub traits: Vec<Trait>,
    pub encoding: Option<Encoding>,
    pub hooks: Hooks,
    pub binary_tracking: bool,
    pub statistics: bool,
    pub debugger: bool,
    /// The number of stripes, or 0 without a rundown.
    pub stripes: Option<u8>,
    pub manifest: Option<String>,
    pub autologger: Option<autologger::Written>,
}

pub fn encoding(word: &Ident) -> syn::Result<Encoding> {
    match word.to_string().as_str() {
        "manifest" => Ok(Encoding::Manifest),
        "tracelogging" => Ok(Encoding::TraceLogging),
        _ => Err(error!(
            word.span(),
            "unknown encoding `{word}`; supported: `manifest`, `tracelogging`"
        )),
    }
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut given = Given::default();
        let mut name: Option<LitStr> = None;
        let mut written_guid = None;
        let mut group = None;
        let mut traits = Vec::new();
        let mut trait_spans = Vec::new();
        let mut default_encoding = None;
        let mut hooks = Hooks::default();
        let mut binary_tracking = false;
        let mut statistics = false;
        let mut debugger = false;
        let mut stripes = None;
        let mut without_rundown = None;
        let mut manifest: Option<LitStr> = None;
        let mut autologger = None;
        while !input.is_empty() {
            let word = argument(input)?;
            if word != "trait_" {
                given.once(&word)?;
            }
            match word.to_string().as_str() {
                "trait_" => {
                    custom_trait(input, &mut traits)?;
                    trait_spans.push(word.span());
                }
                "binary_tracking" => binary_tracking = alone(&word, input)?,
                "statistics" => statistics = alone(&word, input)?,
                "debugger" => debugger = alone(&word, input)?,
                "stripes" => stripes = Some(number_of_stripes(&value(input)?)?),
                "rundown" => {
                    let none: Ident = value(input)?;
                    if none != "none" {
                        bail!(none.span(), "write `rundown = none`, or nothing");
                    }
                    without_rundown = Some(word.clone());
                }
                "manifest" => {
                    manifest =
                        Some(text(input, "the manifest's path", "manifest = \"contoso.man\"")?);
                }
                "autologger" => autologger = Some(autologger::Written::parse(&word, input)?),
                // Handled by the macro itself.
                "crate" => absolute(&value(input)?)?,
                "name" => {
                    name = Some(text(input, "the provider's name", "name = \"Contoso.Driver\"")?);
                }
                "guid" => written_guid = Some(guid(&text(input, "a provider's GUID", GUID_FORM)?)?),
                "group" => group = Some(guid(&text(input, "a group's GUID", GROUP_FORM)?)?),
                "encoding" => default_encoding = Some(encoding(&value(input)?)?),
                "on_enable" => hooks.on_enable = Some(hook(&word, input)?),
                "on_disable" => hooks.on_disable = Some(hook(&word, input)?),
                "on_capture_state" => hooks.on_capture_state = Some(hook(&word, input)?),
                _ => {
                    bail!(
                        word.span(),
                        "unknown argument `{word}` of a provider; supported: `name`, `guid`, \
                         `group`, `trait_(type, b\"data\")`, `encoding`, `manifest`, `autologger`, \
                         `binary_tracking`, `statistics`, `debugger`, `stripes`, `rundown`, \
                         `on_enable`, `on_disable`, `on_capture_state`, `crate`",
                    );
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if let (Some(_), Some(rundown)) = (stripes, &without_rundown) {
            bail!(
                rundown.span(),
                "a provider without a rundown cannot have stripes; remove `stripes` or `rundown = \
                 none`",
            );
        }
        let Some(name) = name else {
            bail!(
                Span::call_site(),
                "the provider has no name; add `name = \"Company.Component\"`",
            );
        };
        let text = attribute::name_of(&name)?;
        let guid = match written_guid {
            Some(guid) => guid,
            None => Guid::of_name(&text).map_err(|error| error!(name.span(), "{error}"))?,
        };
        let written = traits.iter().zip(trait_spans).collect::<Vec<_>>();
        check_size(&name, crate::traits::size(&text, group.is_some(), &traits), &written)?;
        Ok(Self {
            name: text,
            name_span: name.span(),
            guid,
            group,
            traits,
            encoding: default_encoding,
            hooks,
            binary_tracking,
            statistics,
            debugger,
            stripes: without_rundown.map_or(stripes, |_| Some(0)),
            manifest: manifest.map(|path| path.value()),
            autologger,
        })
    }
}

/// Parses the name of an argument.
fn argument(input: ParseStream<'_>) -> syn::Result<Ident> {
    input.call(Ident::parse_any).map_err(|error| {
        error!(error.span(), "expected an argument, as in `name = \"Contoso.Driver\"`")
    })
}

/// The forms of GUIDs, for error messages.
const GUID_FORM: &str = "guid = \"ce5fa4ea-ab00-5402-8b76-9f76ac858fb5\"";
const GROUP_FORM: &str = "group = \"4f50731a-89cf-4782-b3e0-dce8c90476ba\"";

/// Parses `= "…"`.
fn text(input: ParseStream<'_>, what: &str, form: &str) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    literal(input, what, form)
}

/// Parses `= path`, the function for a kind of notification.
fn hook(word: &Ident, input: ParseStream<'_>) -> syn::Result<Path> {
    input.parse::<Token![=]>()?;
    let span = input.span();
    input.parse().map_err(|_| {
        error!(
            span,
            "`{word}` must name a function, because constants refer to it, which cannot contain a closure; \
             write `fn {word}(…) {{ … }}` outside the declaration and `{word} = super::{word}`",
        )
    })
}

/// Refuses a relative path of the library, because the generated code is in several modules.
fn absolute(path: &Path) -> syn::Result<()> {
    let first = path.segments.first().map(|first| &first.ident);
    first.filter(|first| *first == "self" || *first == "super").map_or(Ok(()), |first| {
        Err(error!(
            first.span(),
            "a relative path leads to different items in the modules that the macro generates; \
             begin it with `::` or `crate::`",
        ))
    })
}

/// Checks the size of a provider's traits. If it is too large, reports the error at the longest
/// part: the name or a custom trait.
fn check_size(name: &LitStr, size: usize, traits: &[(&Trait, Span)]) -> syn::Result<()> {
    if size <= MAX_TRAITS_SIZE {
        return Ok(());
    }
    let largest = traits.iter().max_by_key(|(one, _)| one.data.len());
    let cause = largest.filter(|(one, _)| one.data.len() > name.value().len());
    Err(error!(
        cause.map_or_else(|| name.span(), |(_, span)| *span),
        "the provider's traits are {size} bytes long, but ETW accepts at most {MAX_TRAITS_SIZE}; \
         shorten the name or the custom traits",
    ))
}

/// Parses and checks a number of stripes.
fn number_of_stripes(number: &LitInt) -> syn::Result<u8> {
    match number.base10_parse::<u8>() {
        Ok(stripes) if stripes.is_power_of_two() && stripes <= 64 => Ok(stripes),
        _ => Err(error!(
            number.span(),
            "a provider must have 1, 2, 4, 8, 16, 32 or 64 stripes; 1 is enough for a driver that \
             writes few events",
        )),
    }
}

/// Parses `(128, b"data")`, and adds it to the provider's custom traits.
fn custom_trait(input: ParseStream<'_>, traits: &mut Vec<Trait>) -> syn::Result<()> {
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
        return Err(inside.error(
            "a trait needs two arguments, its type and its data: `trait_(128, b\"data\")`",
        ));
    }
    match kind.base10_parse() {
        Ok(number @ 128..) => {
            if traits.iter().any(|other| other.kind == number) {
                bail!(
                    kind.span(),
                    "the provider already has a trait of the type {number}; choose another type, \
                     or join their data",
                );
            }
            traits.push(Trait { kind: number, data });
            Ok(())
        }
        Ok(1) => Err(error!(
            kind.span(),
            "trait type 1 is the provider's group; write `group = \"…\"` instead"
        )),
        _ => Err(error!(
            kind.span(),
            "the type of a custom trait must be 128 to 255; the others are reserved for Microsoft",
        )),
    }
}
