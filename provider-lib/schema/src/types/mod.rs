//! Field types: the types that a declaration can use, and their codes in both encodings.

use std::collections::HashSet;

use proc_macro2::Span;
use quote::ToTokens as _;
use syn::{
    Attribute, Expr, ExprLit, GenericArgument, Ident, Lit, PathArguments, Type, TypeArray,
    TypePath, TypeReference, TypeSlice,
};

pub use self::form::{Block, Counter, Form};
pub use self::format::Format;
pub use self::shape::Shape;
pub use self::table::{Representation, Row, Scalar, Text};
use crate::{
    attribute,
    errors::{Tokens, bail, error, quoted},
};

mod form;
mod format;
mod shape;
mod table;

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// One or more values of a type of the table.
    Values(Scalar, Format, Shape),
    /// A type that the declaration contains: a map or a structure.
    Named(Ident),
    /// An array of a structure that the declaration contains; its shape is not `One`.
    Structures(Ident, Shape),
}

/// Returns the names of the table's types, which a declaration must not give to its own types.
pub fn type_names() -> impl Iterator<Item = &'static str> {
    Scalar::ALL.iter().map(|scalar| scalar.name())
}

/// The attributes of a field.
#[derive(Debug, Default)]
pub struct FieldOptions {
    pub format: Format,
    pub format_span: Option<Span>,
    pub array: Option<Span>,
    pub name: Option<String>,
    pub tag: u32,
    pub docs: Vec<String>,
    pub form: form::Attributes,
}

impl FieldOptions {
    pub fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut options = Self::default();
        let mut given = Vec::new();
        for attribute in attributes {
            let Some(word) = attribute.path().get_ident() else {
                return Err(unknown(attribute));
            };
            if word != "doc" {
                if given.contains(&word) {
                    bail!(word.span(), "`{word}` is given twice; remove one of them");
                }
                given.push(word);
            }
            if options.form.take(word, attribute)? {
                continue;
            }
            let format = match word.to_string().as_str() {
                "doc" => {
                    options.docs.append(&mut attribute::doc(attribute)?);
                    continue;
                }
                "name" => {
                    options.name = Some(attribute::name(attribute)?);
                    continue;
                }
                "tag" => {
                    options.tag = attribute::tag(attribute)?;
                    continue;
                }
                "array" => {
                    attribute.meta.require_path_only()?;
                    options.array = Some(word.span());
                    continue;
                }
                "hex" => Format::Hex,
                "json" => Format::Json,
                "xml" => Format::Xml,
                "address" => Format::Address,
                _ => return Err(unknown(attribute)),
            };
            attribute.meta.require_path_only()?;
            if options.format_span.is_some() {
                bail!(
                    word.span(),
                    "a field can have one of `hex`, `json`, `xml` and `address`; remove the others",
                );
            }
            options.format = format;
            options.format_span = Some(word.span());
        }
        Ok(options)
    }
}

fn unknown(attribute: &Attribute) -> syn::Error {
    error!(
        Tokens(attribute.path()),
        "a field cannot have this attribute; supported: `hex`, `json`, `xml`, `address`, `array`, \
         `out_type = \"…\"`, `length(…)`, `count(…)`, `counted`, `bytes`, `text`, `repr(…)`, `name \
         = \"…\"` and `tag = 0x…`",
    )
}

impl FieldType {
    /// Parses a type, given the options in the field's attributes.
    pub(crate) fn parse(
        written: &Type,
        options: &FieldOptions,
        own: &HashSet<Ident>,
    ) -> syn::Result<Self> {
        let resolved = resolve(written, options, own, false)?;
        if let Some(span) = options.array
            && !matches!(resolved, Resolved::Values(_, Shape::Counted))
        {
            bail!(
                span,
                "`array` applies to `&[u8]` and `&[u16]`, which are bytes and text without it; \
                 remove the attribute",
            );
        }
        let (scalar, shape) = match resolved {
            Resolved::Values(scalar, shape) => (scalar, shape),
            Resolved::Named(name, shape) => {
                if let Some(span) = options.format_span {
                    bail!(
                        span,
                        "the format of the map or structure `{name}` cannot be changed; remove \
                         this attribute",
                    );
                }
                return Ok(match shape {
                    Shape::One => Self::Named(name),
                    shape => Self::Structures(name, shape),
                });
            }
        };
        let span = options.format_span.unwrap_or_else(Span::call_site);
        let is_text = matches!(options.format, Format::Json | Format::Xml);
        let fits = scalar.has_format(options.format) && (!is_text || shape == Shape::One);
        if !fits {
            bail!(
                span,
                "the attribute does not apply to the field's type: `hex` applies to integers, \
                 `json` and `xml` to strings that are not NUL-terminated, `address` to `Pointer`",
            );
        }
        if shape != Shape::One && scalar == Scalar::Pointer && options.format != Format::Address {
            bail!(
                Tokens(written),
                "a field cannot be an array of `Pointer` without `#[address]`, because the event \
                 would contain the addresses; add the attribute to write them",
            );
        }
        if shape != Shape::One && !scalar.repeats(options.format) {
            bail!(
                Tokens(written),
                "a field cannot be an array of `{}`, whose bytes in memory differ from those in \
                 the event; use an array of integers",
                scalar.name(),
            );
        }
        Ok(Self::Values(scalar, options.format, shape))
    }
}

/// Returns a type without the groups around it and its parts. A fragment of `macro_rules!` is a group.
pub fn ungrouped(written: &Type) -> Type {
    let inside = |element: &Type| Box::new(ungrouped(element));
    match written {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(group) => ungrouped(&group.elem),
        Type::Reference(one) => {
            Type::Reference(TypeReference { elem: inside(&one.elem), ..one.clone() })
        }
        Type::Slice(one) => Type::Slice(TypeSlice { elem: inside(&one.elem), ..one.clone() }),
        Type::Array(one) => Type::Array(TypeArray { elem: inside(&one.elem), ..one.clone() }),
        other => other.clone(),
    }
}

/// Returns a type as source text, for an error message that proposes it. Between tokens, a space follows
/// a semicolon, a comma, and a word before another word, a reference or a bracket.
pub fn shown(written: &Type) -> String {
    let tokens = written.to_token_stream().to_string();
    let is_word = |one: char| one.is_alphanumeric() || one == '_';
    let mut text = String::new();
    for part in tokens.split_whitespace() {
        let follows_word = text.ends_with(is_word);
        let needs_space = text.ends_with([',', ';'])
            || follows_word && part.starts_with(|one| is_word(one) || "'&[(*".contains(one));
        if needs_space {
            text.push(' ');
        }
        text.push_str(part);
    }
    text
}

/// A type of the table or of the declaration, and the number of its values.
enum Resolved {
    Values(Scalar, Shape),
    Named(Ident, Shape),
}

/// Returns the type of a field.
fn resolve(
    written: &Type,
    options: &FieldOptions,
    own: &HashSet<Ident>,
    is_referent: bool,
) -> syn::Result<Resolved> {
    match written {
        Type::Reference(TypeReference { elem, mutability: None, .. }) => match &**elem {
            Type::Slice(TypeSlice { elem, .. }) => {
                Ok(match (element(elem, own, Shape::Counted)?, options.array) {
                    (Resolved::Values(Scalar::U8, _), None) => {
                        Resolved::Values(Scalar::Bytes, Shape::One)
                    }
                    (Resolved::Values(Scalar::U16, _), None) => {
                        Resolved::Values(Scalar::Utf16, Shape::One)
                    }
                    (element, _) => element,
                })
            }
            other => without_reference(written, other, resolve(other, options, own, true)?),
        },
        Type::Array(TypeArray { elem, len, .. }) => {
            let Expr::Lit(ExprLit { lit: Lit::Int(count), .. }) = attribute::ungrouped(len) else {
                bail!(
                    Tokens(len),
                    "the length of an array must be an integer literal, as in `[u32; 4]`, because \
                     it is part of the event's layout and a macro cannot evaluate constants",
                );
            };
            let count: u16 = count.base10_parse().unwrap_or(0);
            if count == 0 {
                bail!(Tokens(len), "an array of a fixed length must have 1 to 65,535 elements");
            }
            element(elem, own, Shape::Fixed(count))
        }
        Type::Path(TypePath { qself: None, path }) => {
            let Some(last) = path.segments.last() else {
                return Err(no_field_type(written));
            };
            let ident = attribute::plain(&last.ident);
            let is_own = path.segments.len() == 1 && own.contains(&ident);
            let name = ident.to_string();
            if is_own || Scalar::from_name(&name).is_some() {
                only_lifetimes(path)?;
            }
            if is_own {
                return Ok(Resolved::Named(ident, Shape::One));
            }
            if Scalar::from_name(&name).is_none()
                && let Some(error) = of_others(&ident)
            {
                return Err(error);
            }
            match (Scalar::from_name(&name), name.as_str()) {
                (Some(Scalar::Str | Scalar::CStr), _) if !is_referent => Err(error!(
                    Tokens(written),
                    "a field cannot have the type `{name}`, whose size is unknown; write \
                         `&{name}`",
                )),
                (Some(scalar), _) => Ok(Resolved::Values(scalar, Shape::One)),
                (None, "f32" | "f64") => Err(error!(
                    Tokens(written),
                    "a field cannot have the type `{name}`, because kernel code must not use \
                     floating-point registers; use `{}`, which contains the number's bits",
                    name.to_uppercase(),
                )),
                (None, "u128" | "i128" | "char") => Err(no_field_type(written)),
                (None, "Option") => Err(optional(written)),
                // The path may have a lifetime, because structures can borrow.
                (None, _) if path.segments.len() == 1 && only_lifetimes(path).is_ok() => {
                    Ok(Resolved::Named(ident, Shape::One))
                }
                (None, _) => Err(no_field_type(written)),
            }
        }
        Type::Ptr(_) => Err(error!(
            Tokens(written),
            "a field cannot be a raw pointer; write `Pointer`, whose event says only whether the \
             address is null, or `#[address] Pointer`, whose event has the address",
        )),
        Type::Reference(TypeReference { elem, mutability: Some(_), .. }) => {
            let referent = shown(elem);
            let or_value = match &**elem {
                Type::Path(_) => format!(" or `{referent}`"),
                _ => String::new(),
            };
            Err(error!(
                Tokens(written),
                "a field cannot be a mutable reference, because an event is only read; write \
                 `&{referent}`{or_value}",
            ))
        }
        Type::Slice(_) => Err(error!(
            Tokens(written),
            "a field cannot be a slice without a reference, whose size is unknown; write `&{}`",
            shown(written),
        )),
        _ => Err(no_field_type(written)),
    }
}

/// Refuses a reference to a type that an event takes by value, and a reference to a reference.
fn without_reference(written: &Type, referent: &Type, resolved: Resolved) -> syn::Result<Resolved> {
    let is_value = matches!(
        &resolved,
        Resolved::Values(scalar, Shape::One) if !scalar.row().rust.starts_with('&')
    );
    if is_value || matches!(referent, Type::Reference(_)) {
        bail!(
            Tokens(written),
            "an event takes this field without the reference; write `{}`",
            shown(referent),
        );
    }
    Ok(resolved)
}

/// Refuses arguments in a type's path other than lifetimes, because no field type has a type parameter.
fn only_lifetimes(path: &syn::Path) -> syn::Result<()> {
    for segment in &path.segments {
        let is_fine = match &segment.arguments {
            PathArguments::None => true,
            PathArguments::AngleBracketed(list) => {
                list.args.iter().all(|argument| matches!(argument, GenericArgument::Lifetime(_)))
            }
            PathArguments::Parenthesized(_) => false,
        };
        if !is_fine {
            bail!(
                Tokens(&segment.arguments),
                "the type of a field can have lifetimes as arguments only; remove the others from \
                 `{}`",
                segment.ident,
            );
        }
    }
    Ok(())
}

/// Returns the array of a shape with elements of this type.
fn element(written: &Type, own: &HashSet<Ident>, shape: Shape) -> syn::Result<Resolved> {
    if let Type::Path(TypePath { qself: None, path }) = written
        && let Some(last) = path.segments.last()
    {
        let ident = attribute::plain(&last.ident);
        let scalar = Scalar::from_name(&ident.to_string());
        let resolved = if path.segments.len() == 1 && own.contains(&ident) {
            Some(Resolved::Named(ident, shape))
        } else {
            scalar.map(|scalar| Resolved::Values(scalar, shape))
        };
        if let Some(resolved) = resolved {
            return only_lifetimes(path).map(|()| resolved);
        }
    }
    let names = Scalar::ALL.iter().filter(|scalar| scalar.row().repeats);
    let names = quoted(names.map(|scalar| scalar.name()));
    Err(error!(
        Tokens(written),
        "an array cannot have elements of this type; supported: {names}, and the declaration's \
         structures of these",
    ))
}

fn optional(written: &Type) -> syn::Error {
    error!(
        Tokens(written),
        "a field cannot be an `Option`, because an event always has the same fields; write a value \
         that means `None`, as in `size.unwrap_or(0)`, or declare another event without the field",
    )
}

fn no_field_type(written: &Type) -> syn::Error {
    let names = quoted(Scalar::ALL.iter().map(|scalar| {
        let row = scalar.row();
        let reference = if row.rust.starts_with('&') { "&" } else { "" };
        let lifetime = if row.rust.ends_with("<'_>") { "<'_>" } else { "" };
        format!("{reference}{}{lifetime}", row.name)
    }));
    error!(
        Tokens(written),
        "a field cannot have this type; supported: {names}, arrays (`[u32; 4]`, `&[u32]`), and the \
         maps and structures of the declaration",
    )
}

/// The types of the WDK and of Rust that drivers have values of, and the field types for them.
const OTHERS: [(&str, &str); 46] = [
    ("BOOLEAN", "bool"),
    ("BYTE", "u8"),
    ("CHAR", "i8"),
    ("DWORD", "u32"),
    ("GUID", "Guid"),
    ("HANDLE", "Pointer"),
    ("KIRQL", "u8"),
    ("LARGE_INTEGER", "i64"),
    ("LONG", "i32"),
    ("LONGLONG", "i64"),
    ("LUID", "Luid"),
    ("NTSTATUS", "NtStatus"),
    ("PSID", "Sid<'_>"),
    ("PVOID", "Pointer"),
    ("SIZE_T", "usize"),
    ("UCHAR", "u8"),
    ("ULONG", "u32"),
    ("ULONGLONG", "u64"),
    ("ULONG_PTR", "usize"),
    ("UNICODE_STRING", "UnicodeString<'_>"),
    ("USHORT", "u16"),
    ("WDFDEVICE", "Pointer"),
    ("PCUNICODE_STRING", "UnicodeString<'_>"),
    ("PUNICODE_STRING", "UnicodeString<'_>"),
    ("PCSTR", "&CStr"),
    ("PSTR", "&CStr"),
    ("PCHAR", "&CStr"),
    ("ANSI_STRING", "&[u8]"),
    ("PWSTR", UTF16),
    ("PCWSTR", UTF16),
    ("LPWSTR", UTF16),
    ("LPCWSTR", UTF16),
    ("PWCHAR", UTF16),
    ("WCHAR", "u16"),
    ("ULONG64", "u64"),
    ("LONG64", "i64"),
    ("PHYSICAL_ADDRESS", "i64"),
    ("CString", "&CStr"),
    ("U16CStr", UTF16),
    ("String", "&str"),
    ("Vec", "&[u8]` or another slice, such as `&[u32]"),
    ("NonNull", "Pointer"),
    ("AtomicPtr", "Pointer"),
    (
        "IpAddr",
        "SocketAddr` with a port of 0, or declare an event for each of `Ipv4Addr` and `Ipv6Addr",
    ),
    ("SocketAddrV4", "SocketAddr"),
    ("SocketAddrV6", "SocketAddr"),
];

/// The field type for a pointer to UTF-16 text that ends with a NUL.
const UTF16: &str = "Utf16CStr<'_>";

/// Returns the error for a type whose values have another field type, or `None` for another name.
fn of_others(name: &Ident) -> Option<syn::Error> {
    let text = name.to_string();
    if let Some((_, kind)) = OTHERS.iter().find(|(other, _)| text == *other) {
        return Some(error!(name.span(), "`{name}` is not a field type; write `{kind}`"));
    }
    let (kind, method) = if let Some(number) = text.strip_prefix("NonZero") {
        (number.to_lowercase(), "get()")
    } else if let Some(number) = text.strip_prefix("Atomic") {
        (number.to_lowercase(), "load(…)")
    } else if text == "Keyword" {
        ("u64".to_owned(), "bits()")
    } else {
        return None;
    };
    // `NonZero<u64>`
    let kind = if kind.is_empty() { "u64" } else { &kind };
    Scalar::from_name(kind).map(|_| {
        error!(
            name.span(),
            "`{name}` is not a field type; write `{kind}`, and pass the value that `{method}` returns",
        )
    })
}

/// Returns the error for a type name that the declaration does not contain.
pub fn undeclared(name: &Ident) -> syn::Error {
    error!(
        name.span(),
        "the type `{name}` is neither a field type nor a map or structure of the declaration; \
         declare it, for example as `#[map] enum {name} {{ … }}`",
    )
}
