//! Imports the fields of events and structures.

use std::collections::HashSet;

use etw_manifest::{InType, OutType, Property, PropertyKind, Size};
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens as _, quote};

use super::{
    names::{ident, pascal, rename, snake, unique},
    types::{Type, borrowed, plain, repeats, scalar, shown, written},
    writer::Writer,
};

/// A field of a declaration.
pub struct Declared {
    rename: TokenStream,
    ident: String,
    kind: Type,
}

impl Declared {
    /// Returns the field as a parameter of an event's function.
    pub fn parameter(&self) -> TokenStream {
        let (attributes, rename, inner) = (&self.kind.attributes, &self.rename, &self.kind.inner);
        let ident = ident(&self.ident);
        let reference = self.kind.is_borrowed.then(|| quote!(&));
        quote!(#attributes #rename #ident: #reference #inner)
    }

    /// Returns the field as a member of a structure.
    fn member(&self) -> TokenStream {
        let (attributes, rename, inner) = (&self.kind.attributes, &self.rename, &self.kind.inner);
        let ident = ident(&self.ident);
        let reference = self.kind.is_borrowed.then(|| quote!(&'a));
        quote!(#attributes #rename pub #ident: #reference #inner)
    }
}

impl Writer<'_> {
    /// Returns the fields of an event or a structure, and for each of the template's fields the
    /// number of the declared field. Fails with the reason if the fields cannot be declared.
    pub fn fields(
        &mut self,
        properties: &[Property],
        owner: &str,
    ) -> Result<(Vec<Declared>, Vec<usize>), String> {
        let mut fields = Vec::new();
        let mut numbers = Vec::new();
        let mut taken = HashSet::new();
        let mut at = 0;
        while let Some(property) = properties.get(at) {
            // A count or length right before its field becomes part of that field.
            let (property, counted) = match properties.get(at + 1) {
                Some(next) if next.count == Size::Field(at) || next.length == Size::Field(at) => {
                    (next, Some(property))
                }
                _ => (property, None),
            };
            let taken_up = if counted.is_some() { 2 } else { 1 };
            at += taken_up;
            numbers.extend(std::iter::repeat_n(fields.len() + 1, taken_up));
            if let Some(counter) = counted {
                let is_u16 = matches!(
                    &counter.kind,
                    PropertyKind::Data { in_type, map: None, .. } if *in_type == InType::UInt16
                );
                if !is_u16 || counter.count != Size::None {
                    return Err(format!(
                        "`{}` is the count or length of `{}`, but it is not a single \
                         win:UInt16 value",
                        counter.name, property.name
                    ));
                }
            }
            let kind = self.field(property, counted.is_some(), owner)?;
            let ident = unique(&snake(&property.name), &mut taken);
            fields.push(Declared {
                rename: rename(&ident, &property.name),
                ident,
                kind,
            });
        }
        Ok((fields, numbers))
    }

    fn field(
        &mut self,
        property: &Property,
        is_counted: bool,
        owner: &str,
    ) -> Result<Type, String> {
        let name = &property.name;
        let is_elsewhere = |size| match size {
            Size::Field(_) => !is_counted,
            Size::Outer(_) => true,
            Size::None | Size::Fixed(_) => false,
        };
        let other_count = is_elsewhere(property.count);
        let other_length = is_elsewhere(property.length);
        if other_count || other_length {
            return Err(format!(
                "the count or length of `{name}` is not in the field right before it"
            ));
        }
        let (in_type, out_type, map) = match &property.kind {
            PropertyKind::Struct(members) => {
                if property.count != Size::None {
                    return Err(format!("`{name}` is an array of structures"));
                }
                return self.structure(name, members, owner);
            }
            PropertyKind::Unknown { in_type, .. } => {
                return Err(format!("`{name}` has the unknown inType {in_type}"));
            }
            PropertyKind::Data {
                in_type,
                out_type,
                map,
                ..
            } => (*in_type, *out_type, *map),
        };
        let bytes = match (in_type, property.length) {
            (InType::Binary, Size::Fixed(16) | Size::None) if out_type == OutType::Ipv6 => {
                Some(plain(quote!(Ipv6Addr)))
            }
            (InType::Binary, Size::Fixed(length)) => {
                let length = Literal::u16_unsuffixed(length);
                Some(plain(quote!([u8; #length])))
            }
            (InType::Binary, Size::Field(_) | Size::Outer(_)) => {
                Some(borrowed(if out_type == OutType::SocketAddress {
                    quote!(SocketAddr)
                } else {
                    quote!([u8])
                }))
            }
            (_, Size::None) => None,
            _ => return Err(format!("`{name}` is a string with a `length`")),
        };
        if let Some(bytes) = bytes {
            if property.count != Size::None {
                return Err(format!("`{name}` is an array of byte strings"));
            }
            return Ok(bytes);
        }
        let width = match in_type {
            InType::UInt8 => Some("u8"),
            InType::UInt16 => Some("u16"),
            InType::UInt32 | InType::HexInt32 => Some("u32"),
            _ => None,
        };
        if let (Some(map), Some(width), Size::None) = (map, width, property.count) {
            // A declaration's map leaves out masks with several bits.
            let has_entries = self.provider.maps[map]
                .items
                .iter()
                .any(|item| !self.provider.maps[map].is_bits || item.value.is_power_of_two());
            if has_entries {
                return Ok(plain(ident(&self.map(map, width)).into_token_stream()));
            }
        }
        if map.is_some() {
            let what = format!(
                "field `{name}`: a declaration cannot express its value map, which was dropped"
            );
            self.note(property.at, what);
        }
        let kind = scalar(in_type, out_type).ok_or_else(|| {
            format!(
                "`{name}` is a {} without a length",
                in_type.name().unwrap_or_default()
            )
        })?;
        match property.count {
            Size::None => Ok(kind),
            _ if !repeats(&kind) => Err(format!(
                "`{name}` is an array of {}",
                in_type.name().unwrap_or_default()
            )),
            Size::Fixed(count) => {
                let (inner, count) = (kind.inner, Literal::u16_unsuffixed(count));
                Ok(shown(kind.attributes, quote!([#inner; #count])))
            }
            Size::Field(_) | Size::Outer(_) => {
                // Without the attribute, slices of these types would be bytes and text.
                let inner = kind.inner;
                let is_text = matches!(inner.to_string().as_str(), "u8" | "u16");
                let array = is_text.then(|| quote!(#[array]));
                let attributes = kind.attributes;
                Ok(written(quote!(#attributes #array), quote!([#inner])))
            }
        }
    }

    fn structure(&mut self, name: &str, members: &[Property], owner: &str) -> Result<Type, String> {
        let (fields, _) = self.fields(members, owner)?;
        let name = unique(&pascal(&format!("{owner}_{name}")), &mut self.idents);
        let name = ident(&name);
        let borrows = fields.iter().any(|field| field.kind.is_borrowed);
        let lifetime = borrows.then(|| quote!(<'a>));
        let members = fields.iter().map(Declared::member);
        self.structures.push(quote! {
            #[structure]
            pub struct #name #lifetime { #(#members,)* }
        });
        let elided = borrows.then(|| quote!(<'_>));
        Ok(plain(quote!(#name #elided)))
    }
}
