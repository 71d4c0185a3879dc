//! The types of fields: what a declaration may name, and how each is described in
//! both encodings.

use proc_macro2::Span;
use syn::{
    Attribute, Expr, ExprLit, Ident, Lit, Type, TypeArray, TypePath, TypeReference, TypeSlice,
};

pub use self::format::Format;
pub use self::table::{Representation, Row, Scalar, Text};
use crate::attribute;

mod format;
mod table;

/// How many values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// One.
    One,
    /// Always as many.
    Fixed(u16),
    /// As many as the event has.
    Counted,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// One or several values of a type of this crate's.
    Values(Scalar, Format, Shape),
    /// A type that the declaration makes: a map or a structure.
    Named(Ident),
}

/// Returns the names that a declaration cannot give types of its own.
pub fn type_names() -> impl Iterator<Item = &'static str> {
    Scalar::ALL.iter().map(|scalar| scalar.name())
}

/// What the attributes on a field say.
#[derive(Debug, Default)]
pub struct FieldOptions {
    pub format: Format,
    pub format_span: Option<Span>,
    pub array: Option<Span>,
    pub name: Option<String>,
    pub tag: u32,
    pub docs: Vec<String>,
}

impl FieldOptions {
    pub fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut options = Self::default();
        for attribute in attributes {
            let Some(word) = attribute.path().get_ident() else {
                return Err(unknown(attribute));
            };
            let format = match word.to_string().as_str() {
                "doc" => {
                    options.docs.extend(attribute::doc(attribute));
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
            options.format = format;
            options.format_span = Some(word.span());
        }
        Ok(options)
    }
}

fn unknown(attribute: &Attribute) -> syn::Error {
    syn::Error::new_spanned(
        attribute.path(),
        "a field has no such attribute; there are `hex`, `json`, `xml`, `address`, `array`, \
         `name = \"…\"` and `tag = 0x…`",
    )
}

impl FieldType {
    /// Reads a type, with what the field's attributes say of it.
    pub(crate) fn parse(written: &Type, options: &FieldOptions) -> syn::Result<Self> {
        let (scalar, shape) = match resolve(written, options)? {
            Ok(values) => values,
            Err(name) => {
                if let Some(span) = options.format_span {
                    return Err(syn::Error::new(
                        span,
                        "a map or a structure is shown as it is declared; remove this",
                    ));
                }
                return Ok(Self::Named(name));
            }
        };
        let span = options.format_span.unwrap_or_else(Span::call_site);
        let is_text = matches!(options.format, Format::Json | Format::Xml);
        let fits = scalar.has_format(options.format) && (!is_text || shape == Shape::One);
        if !fits {
            return Err(syn::Error::new(
                span,
                "the attribute does not fit the field's type: `hex` is for integers, `json` and \
                 `xml` for text that is not NUL-terminated, `address` for a `Pointer`",
            ));
        }
        if shape != Shape::One && !scalar.row().repeats {
            return Err(syn::Error::new_spanned(
                written,
                format!(
                    "there are no arrays of `{}`: its bytes in memory are not what an event has; \
                     make an array of integers of it",
                    scalar.name()
                ),
            ));
        }
        Ok(Self::Values(scalar, options.format, shape))
    }
}

/// The scalar and the shape of a type, or the name of one that must be the
/// declaration's own.
fn resolve(written: &Type, options: &FieldOptions) -> syn::Result<Result<(Scalar, Shape), Ident>> {
    match written {
        Type::Reference(TypeReference {
            elem,
            mutability: None,
            ..
        }) => match &**elem {
            Type::Slice(TypeSlice { elem, .. }) => {
                let scalar = element(elem)?;
                Ok(Ok(match (scalar, options.array) {
                    (Scalar::U8, None) => (Scalar::Bytes, Shape::One),
                    (Scalar::U16, None) => (Scalar::Utf16, Shape::One),
                    _ => (scalar, Shape::Counted),
                }))
            }
            other => resolve(other, options),
        },
        Type::Array(TypeArray { elem, len, .. }) => {
            let Expr::Lit(ExprLit {
                lit: Lit::Int(count),
                ..
            }) = len
            else {
                return Err(syn::Error::new_spanned(
                    len,
                    "the length of an array is part of the event's layout: write it as a number",
                ));
            };
            let count: u16 = count.base10_parse().unwrap_or(0);
            if count == 0 {
                return Err(syn::Error::new_spanned(
                    len,
                    "an array of a fixed length has 1 to 65,535 elements",
                ));
            }
            Ok(Ok((element(elem)?, Shape::Fixed(count))))
        }
        Type::Path(TypePath { qself: None, path }) => {
            let Some(last) = path.segments.last() else {
                return Err(no_field_type(written));
            };
            let name = last.ident.to_string();
            match (Scalar::from_name(&name), name.as_str()) {
                (Some(scalar), _) => Ok(Ok((scalar, Shape::One))),
                (None, "f32" | "f64") => Err(syn::Error::new_spanned(
                    written,
                    format!(
                        "write `{}`, which has the number's bits: kernel code keeps off the \
                         registers that `{name}` is passed in",
                        name.to_uppercase()
                    ),
                )),
                (None, "u128" | "i128" | "isize" | "char" | "String" | "Vec") => {
                    Err(no_field_type(written))
                }
                // It may have a lifetime, as a structure that borrows has.
                (None, _) if path.segments.len() == 1 => Ok(Err(last.ident.clone())),
                (None, _) => Err(no_field_type(written)),
            }
        }
        _ => Err(no_field_type(written)),
    }
}

fn element(written: &Type) -> syn::Result<Scalar> {
    if let Type::Path(TypePath { qself: None, path }) = written
        && let Some(last) = path.segments.last()
        && let Some(scalar) = Scalar::from_name(&last.ident.to_string())
    {
        return Ok(scalar);
    }
    let names: Vec<_> = Scalar::ALL
        .iter()
        .filter(|scalar| scalar.row().repeats)
        .map(|scalar| format!("`{}`", scalar.name()))
        .collect();
    Err(syn::Error::new_spanned(
        written,
        format!(
            "not the type of an array's elements; there are {}",
            names.join(", ")
        ),
    ))
}

fn no_field_type(written: &Type) -> syn::Error {
    let names: Vec<_> = Scalar::ALL
        .iter()
        .map(|scalar| {
            let row = scalar.row();
            if row.rust.starts_with('&') || row.rust.ends_with("<'_>") {
                format!("`&{}`", row.name)
            } else {
                format!("`{}`", row.name)
            }
        })
        .collect();
    syn::Error::new_spanned(
        written,
        format!(
            "not the type of a field; there are {}, arrays (`[u32; 4]`, `&[u32]`), and the maps \
             and structures that the declaration makes",
            names.join(", ")
        ),
    )
}

/// An error for a name that no map or structure has.
pub fn undeclared(name: &Ident) -> syn::Error {
    syn::Error::new(
        name.span(),
        format!(
            "`{name}` is no type of a field, and the declaration has no map or structure of that \
             name; it could have `#[map] enum {name} {{ … }}`"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, options: &FieldOptions) -> Result<FieldType, String> {
        let written: Type = syn::parse_str(text).unwrap();
        FieldType::parse(&written, options).map_err(|error| error.to_string())
    }

    #[test]
    fn slices_are_bytes_text_or_arrays() {
        let plain = FieldOptions::default();
        let array = FieldOptions {
            array: Some(Span::call_site()),
            ..FieldOptions::default()
        };
        let values = |scalar, shape| Ok(FieldType::Values(scalar, Format::Default, shape));
        assert_eq!(parsed("&[u8]", &plain), values(Scalar::Bytes, Shape::One));
        assert_eq!(parsed("&[u8]", &array), values(Scalar::U8, Shape::Counted));
        assert_eq!(parsed("&[u16]", &plain), values(Scalar::Utf16, Shape::One));
        assert_eq!(
            parsed("&[u32]", &plain),
            values(Scalar::U32, Shape::Counted)
        );
        assert_eq!(
            parsed("[u8; 6]", &plain),
            values(Scalar::U8, Shape::Fixed(6))
        );
        for bad in [
            "&[bool]",
            "[u8; 0]",
            "[u8; 70000]",
            "&mut u8",
            "f64",
            "String",
            "&[&str]",
            "(u8, u8)",
        ] {
            assert!(parsed(bad, &plain).is_err(), "{bad}");
        }
    }
}
