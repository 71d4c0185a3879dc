//! The form that a field's attributes add to its type: the presentation, the length or count before
//! it, and bytes or text of a fixed length.

use etw_wire::{InType, OutType, TlgOutType};
use proc_macro2::Span;
use syn::{
    Attribute, Expr, ExprLit, Ident, Lit, Token,
    parse::{Parse, ParseStream},
};

use super::{
    format::Format,
    shape::Shape,
    table::{Representation, Scalar},
};
use crate::{
    attribute,
    errors::{Tokens, bail, error, quoted},
};

/// The advice on writing a `usize` with fewer bytes.
const NARROWER: &str = "a `usize` or `isize` is 64 bits wide in an event on every machine, and \
                        narrower with, for example, `#[repr(u32)] size: usize`";

/// The types that `#[repr(…)]` accepts.
const SIZED: [Scalar; 8] = [
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
];

/// The form of a field, from its attributes.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// The presentation: `#[out_type = "win:HexInt64"]`.
    pub out_type: Option<OutType>,
    /// The field that contains the value's length or count: `#[length(u8)]`, `#[count(u32)]`.
    /// Without the attribute, that field is a `u16`.
    pub counter: Option<Counter>,
    /// True if the bytes contain their own length, without a separate field: `#[counted] &[u8]`.
    pub counted: bool,
    /// The form of an array that is written as one block: `#[bytes] [u8; 6]`, `#[text] [u16; 8]`.
    pub block: Option<Block>,
    /// The integer type that a `usize` or `isize` is written as: `#[repr(u32)] usize`.
    pub sized: Option<Scalar>,
    /// The location of the presentation.
    out_type_span: Option<Span>,
    /// The location of an attribute that only manifests can express.
    manifest_span: Option<Span>,
}

/// A field that contains a length or a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The type: `U8`, `U16`, `U32` or `U64`.
    pub scalar: Scalar,
    /// The name. By default, it is the value's name followed by `Length` or `Count`.
    pub name: Option<String>,
    /// The earlier field that contains it: `#[count(field = count)]`. Several values can share it.
    pub field: Option<Ident>,
}

/// A value of a fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Bytes.
    Bytes,
    /// Text.
    Text,
}

impl Form {
    /// Returns the manifest's `inType` and `outType` for a field with values of a type.
    #[must_use]
    pub fn manifest(&self, scalar: Scalar, format: Format) -> (InType, OutType) {
        let scalar = self.sized.unwrap_or(scalar);
        let (in_type, out_type) = match (self.block, scalar) {
            (Some(Block::Bytes), _) => (InType::Binary, OutType::HexBinary),
            (Some(Block::Text), Scalar::U16) => (InType::UnicodeString, OutType::String),
            (Some(Block::Text), _) => (InType::AnsiString, OutType::String),
            (None, _) => scalar.manifest(format),
        };
        // The length is a separate field.
        let in_type = match in_type {
            InType::Binary if self.counted => InType::CountedBinary,
            InType::CountedAnsiString if self.counter.is_some() => InType::AnsiString,
            InType::CountedUnicodeString if self.counter.is_some() => InType::UnicodeString,
            other => other,
        };
        (in_type, self.out_type.unwrap_or(out_type))
    }

    /// Returns the types in `TraceLogging` metadata for a field with values of a type.
    ///
    /// # Errors
    ///
    /// Returns an error if `TraceLogging` does not support the presentation.
    pub fn tracelogging(
        &self,
        scalar: Scalar,
        format: Format,
    ) -> syn::Result<(InType, TlgOutType)> {
        let scalar = self.sized.unwrap_or(scalar);
        let (in_type, usual) = scalar.tracelogging(format);
        let (_, usual_in_manifests) = scalar.manifest(format);
        let Some(out_type) = self.out_type.filter(|one| *one != usual_in_manifests) else {
            return Ok((in_type, usual));
        };
        let out_type = in_tracelogging(in_type, out_type).ok_or_else(|| {
            error!(
                self.out_type_span.unwrap_or_else(Span::call_site),
                "TraceLogging does not have the presentation `{}`; remove the attribute or use \
                 `encoding = manifest`",
                out_type.name(),
            )
        })?;
        Ok((in_type, out_type))
    }

    /// Checks that `TraceLogging` supports the form.
    pub(crate) fn check_tracelogging(&self) -> syn::Result<()> {
        self.manifest_span.map_or(Ok(()), |span| {
            Err(error!(
                span,
                "only manifest events can have this attribute, because TraceLogging has one form \
                 of lengths and counts; remove it or use `encoding = manifest`",
            ))
        })
    }

    /// Checks the form of a field whose type is a map or, if `map` is `None`, a structure.
    pub(crate) fn check_named(&self, map: Option<Scalar>) -> syn::Result<()> {
        let Some((out_type, span)) = self.out_type.zip(self.out_type_span) else {
            return Ok(());
        };
        let Some(scalar) = map else {
            bail!(
                span,
                "a structure cannot have a presentation; remove this attribute, or put it on a \
                 member",
            );
        };
        let (in_type, _) = scalar.manifest(Format::Default);
        fits(out_type, in_type, span)
    }
}

/// Returns the `TraceLogging` code of a manifest's presentation, if it has one.
const fn in_tracelogging(in_type: InType, out_type: OutType) -> Option<TlgOutType> {
    use {OutType as Out, TlgOutType as Tlg};
    Some(match (out_type, in_type) {
        (Out::HexInt32, InType::HexInt32)
        | (Out::HexInt64, InType::HexInt64)
        | (
            Out::DateTime
            | Out::Byte
            | Out::UnsignedByte
            | Out::Short
            | Out::UnsignedShort
            | Out::Int
            | Out::UnsignedInt
            | Out::Float
            | Out::Double
            | Out::Guid
            | Out::HexBinary,
            _,
        )
        | (
            Out::String,
            InType::AnsiString
            | InType::CountedAnsiString
            | InType::UnicodeString
            | InType::CountedUnicodeString
            | InType::Sid,
        )
        | (Out::Boolean, InType::Boolean)
        | (Out::Long, InType::Int64)
        | (Out::UnsignedLong, InType::UInt64) => Tlg::Default,
        (Out::String, _) => Tlg::String,
        (Out::Long, _) => Tlg::Signed,
        (Out::UnsignedLong, _) => Tlg::Unsigned,
        (Out::Boolean, _) => Tlg::Boolean,
        (Out::HexInt8 | Out::HexInt16 | Out::HexInt32 | Out::HexInt64, _) => Tlg::Hex,
        (Out::Pid, _) => Tlg::Pid,
        (Out::Tid, _) => Tlg::Tid,
        (Out::Port, _) => Tlg::Port,
        (Out::Ipv4, _) => Tlg::Ipv4,
        (Out::Ipv6, _) => Tlg::Ipv6,
        (Out::SocketAddress, _) => Tlg::SocketAddress,
        (Out::Xml, _) => Tlg::Xml,
        (Out::Json, _) => Tlg::Json,
        (Out::Utf8, _) => Tlg::Utf8,
        (Out::Win32Error, _) => Tlg::Win32Error,
        (Out::NtStatus, _) => Tlg::NtStatus,
        (Out::HResult, _) => Tlg::HResult,
        (Out::DateTimeCultureInsensitive, _) => Tlg::DateTimeCultureInsensitive,
        (Out::DateTimeUtc, _) => Tlg::DateTimeUtc,
        (Out::Pkcs7WithTypeInfo, _) => Tlg::Pkcs7WithTypeInfo,
        (Out::CodePointer, _) => Tlg::CodePointer,
        (Out::CimDateTime | Out::EtwTime | Out::ErrorCode, _) => return None,
    })
}

/// The attributes that specify a form.
#[derive(Debug, Default)]
pub struct Attributes {
    out_type: Option<(OutType, Span)>,
    counter: Option<(Ident, Counter)>,
    counted: Option<Ident>,
    block: Option<(Ident, Block)>,
    /// The attribute's name, its argument, and the type that it names.
    sized: Option<(Ident, Ident, Scalar)>,
}

impl Attributes {
    /// Processes an attribute. Returns false if the attribute does not affect the form.
    pub fn take(&mut self, word: &Ident, attribute: &Attribute) -> syn::Result<bool> {
        match word.to_string().as_str() {
            "out_type" => self.out_type = Some(out_type(attribute)?),
            "length" | "count" => {
                self.counter = Some((word.clone(), attribute.parse_args()?));
            }
            "counted" => {
                attribute.meta.require_path_only()?;
                self.counted = Some(word.clone());
            }
            "bytes" | "text" => {
                attribute.meta.require_path_only()?;
                let block = if word == "text" { Block::Text } else { Block::Bytes };
                self.block = Some((word.clone(), block));
            }
            "repr" => {
                let (argument, scalar) = sized(attribute)?;
                self.sized = Some((word.clone(), argument, scalar));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the form of a field with values of a type, if the type supports it.
    pub fn form(&self, scalar: Scalar, format: Format, shape: Shape) -> syn::Result<Form> {
        if let Some((word, counter)) = &self.counter {
            let possible = match (scalar.row().representation, shape) {
                (_, Shape::Counted) => "count",
                (Representation::Counted(_) | Representation::SocketAddr, Shape::One) => "length",
                _ => "",
            };
            if matches!(scalar, Scalar::Usize | Scalar::Isize) && shape == Shape::One {
                bail!(word.span(), "`{word}` does not change the size of a number; {NARROWER}");
            }
            if word != possible {
                bail!(
                    word.span(),
                    "the attribute does not apply to the field's type: `length` applies to strings \
                     that are not NUL-terminated, bytes and `SocketAddr`, `count` to arrays of \
                     variable length",
                );
            }
            if let Some(field) = &counter.field
                && scalar == Scalar::SocketAddr
            {
                bail!(
                    field.span(),
                    "the length of a `SocketAddr` cannot be another field, because only the \
                     address itself has it; use `length(u8)`, `length(u16)`, or `&[u8]` with \
                     `out_type = \"win:SocketAddress\"`",
                );
            }
        }
        if let Some(word) = &self.counted {
            let is_bytes = matches!(scalar, Scalar::Bytes | Scalar::SocketAddr);
            if !is_bytes || self.counter.is_some() {
                bail!(
                    word.span(),
                    "`counted` applies to bytes and `SocketAddr` without `length`: they contain \
                     their length, and the manifest has no field for it; remove this attribute",
                );
            }
        }
        if let Some((word, block)) = &self.block {
            let is_possible = matches!(
                (scalar, block, shape),
                (Scalar::U8, _, Shape::Fixed(_)) | (Scalar::U16, Block::Text, Shape::Fixed(_))
            );
            if !is_possible || format != Format::Default {
                bail!(
                    word.span(),
                    "the attribute does not apply to the field's type: `bytes` applies to `[u8; \
                     N]`, `text` to `[u8; N]` and `[u16; N]`",
                );
            }
        }
        self.check_sized(scalar)?;
        let mut form = self.unchecked();
        if let Some((out_type, span)) = self.out_type {
            let (in_type, _) = form.manifest(scalar, format);
            let (plain, usual) = scalar.manifest(format);
            if !matches!(format, Format::Default | Format::Address)
                && plain == scalar.manifest(Format::Default).0
                && out_type != usual
            {
                bail!(
                    span,
                    "another attribute of the field says `{}`, and this one `{}`; remove one of them",
                    usual.name(),
                    out_type.name(),
                );
            }
            fits(out_type, in_type, span)?;
        }
        let counter = self.counter.as_ref().map(|(word, _)| word.span());
        let block = self.block.as_ref().map(|(word, _)| word.span());
        form.manifest_span = counter.or(block);
        Ok(form)
    }

    /// Checks that a field of a type can have the requested size.
    fn check_sized(&self, scalar: Scalar) -> syn::Result<()> {
        let Some((word, argument, sized)) = &self.sized else {
            return Ok(());
        };
        if !matches!(scalar, Scalar::Usize | Scalar::Isize) {
            bail!(
                word.span(),
                "`{word}` gives a `usize` or `isize` its size in the event, and does not apply to \
                 `{}`; remove this attribute",
                scalar.name(),
            );
        }
        let is_signed = scalar.is_signed();
        let is_possible = |one: &Scalar| one.is_signed() == is_signed;
        if is_possible(sized) {
            return Ok(());
        }
        Err(error!(
            argument.span(),
            "`{}` cannot have the type `{argument}` in the event; supported: {}",
            scalar.name(),
            listed(is_possible),
        ))
    }

    /// Returns the form of a field whose type is a map, a structure or an array of structures.
    pub fn of_named(&self, shape: Shape) -> syn::Result<Form> {
        let counter = self.counter.as_ref().map(|(word, _)| word);
        let is_count = |word: &&Ident| shape == Shape::Counted && *word == "count";
        let wrong = counter.filter(|word| !is_count(word));
        let block = self.block.as_ref().map(|(word, _)| word);
        let sized = self.sized.as_ref().map(|(word, ..)| word);
        if let Some(word) = wrong.or(block).or(self.counted.as_ref()).or(sized) {
            let what = match shape {
                Shape::One => "a map or a structure, which is a single value",
                Shape::Fixed(_) => "an array of a fixed length",
                Shape::Counted => "an array of structures, which can have `count`",
            };
            bail!(word.span(), "`{word}` does not apply to {what}; remove this attribute");
        }
        let mut form = self.unchecked();
        form.manifest_span = counter.map(Ident::span);
        Ok(form)
    }

    fn unchecked(&self) -> Form {
        Form {
            out_type: self.out_type.map(|(out_type, _)| out_type),
            counter: self.counter.as_ref().map(|(_, counter)| counter.clone()),
            counted: self.counted.is_some(),
            block: self.block.as_ref().map(|(_, block)| *block),
            sized: self.sized.as_ref().map(|(.., scalar)| *scalar),
            out_type_span: self.out_type.map(|(_, span)| span),
            manifest_span: None,
        }
    }
}

/// Returns the names of types that `#[repr(…)]` accepts.
fn listed(is_possible: impl Fn(&Scalar) -> bool) -> String {
    quoted(SIZED.iter().filter(|one| is_possible(one)).map(|one| one.name()))
}

/// Parses `#[repr(u32)]`.
fn sized(attribute: &Attribute) -> syn::Result<(Ident, Scalar)> {
    let argument: Ident = attribute.parse_args()?;
    SIZED
        .into_iter()
        .find(|scalar| argument == scalar.name())
        .map(|scalar| (argument.clone(), scalar))
        .ok_or_else(|| {
            error!(
                argument.span(),
                "a field cannot have the type `{argument}` in the event; supported: {}",
                listed(|_| true),
            )
        })
}

/// Parses `#[out_type = "win:HexInt64"]`.
fn out_type(attribute: &Attribute) -> syn::Result<(OutType, Span)> {
    let value = &attribute.meta.require_name_value()?.value;
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value else {
        bail!(
            Tokens(value),
            "a presentation must be a string literal: `out_type = \"win:HexInt64\"`",
        );
    };
    let known = OutType::from_name(&text.value()).ok_or_else(|| {
        error!(
            text.span(),
            "unknown presentation `{}`; supported: {}",
            text.value(),
            names(OutType::ALL),
        )
    })?;
    Ok((known, text.span()))
}

/// Checks that a value with an `inType` can have the presentation.
fn fits(out_type: OutType, in_type: InType, span: Span) -> syn::Result<()> {
    let possible = in_type.out_types();
    if possible.contains(&out_type) {
        return Ok(());
    }
    Err(error!(
        span,
        "the field's type cannot have the presentation `{}`; supported: {}",
        out_type.name(),
        names(possible),
    ))
}

fn names(out_types: &[OutType]) -> String {
    quoted(out_types.iter().map(|one| one.name()))
}

impl Parse for Counter {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut counter = Self { scalar: Scalar::U16, name: None, field: None };
        let mut others = None;
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            if word != "field" {
                others = Some(word.span());
            }
            match word.to_string().as_str() {
                "field" => {
                    input.parse::<Token![=]>()?;
                    counter.field = Some(input.parse()?);
                }
                "u8" => counter.scalar = Scalar::U8,
                "u16" => counter.scalar = Scalar::U16,
                "u32" => counter.scalar = Scalar::U32,
                "u64" => counter.scalar = Scalar::U64,
                "name" => {
                    input.parse::<Token![=]>()?;
                    counter.name = Some(attribute::name_of(&input.parse()?)?);
                }
                _ => {
                    bail!(
                        word.span(),
                        "unknown argument `{word}` of a length or count; supported: its type \
                         (`u8`, `u16`, `u32`, `u64`) and `name = \"…\"`, or `field = …`, an \
                         earlier field",
                    );
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if let (Some(_), Some(span)) = (&counter.field, others) {
            bail!(span, "an earlier field already has a type and a name; remove this argument");
        }
        Ok(counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every presentation is the same in both encodings, or not supported by `TraceLogging`.
    #[test]
    fn every_presentation_has_a_tracelogging_code_or_an_error() {
        for scalar in Scalar::ALL {
            for format in Format::ALL {
                if !scalar.has_format(*format) {
                    continue;
                }
                let (in_type, usual) = scalar.manifest(*format);
                for out_type in in_type.out_types() {
                    let form = Form { out_type: Some(*out_type), ..Form::default() };
                    let found = form.tracelogging(*scalar, *format);
                    // A presentation that is the type's default changes nothing.
                    if *out_type == usual {
                        assert_eq!(found.unwrap(), scalar.tracelogging(*format), "{scalar:?}");
                        continue;
                    }
                    let is_missing = matches!(out_type, OutType::EtwTime | OutType::ErrorCode);
                    assert_eq!(found.is_err(), is_missing, "{scalar:?} {out_type:?}");
                }
            }
        }
    }
}
