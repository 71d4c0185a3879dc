//! Imports the fields of events and structures.

use std::collections::HashSet;

use etw_manifest::{InType, OutType, Property, PropertyKind, Size};
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens as _, quote};

use super::{
    names::{ident, pascal, rename, snake, unique, unique_type},
    types::{
        Type, block, borrowed, bytes, counted_text, is_in_memory, max_of, plain, repeats, scalar,
        shown, written,
    },
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
        let lifetime = self.kind.has_lifetime.then(|| quote!(<'a>));
        quote!(#attributes #rename pub #ident: #reference #inner #lifetime)
    }
}

/// Returns whether the field at an index contains another field's count or length.
fn is_counted_by(property: &Property, at: usize) -> bool {
    property.count == Size::Field(at) || property.length == Size::Field(at)
}

/// Returns the number of fields whose count or length the field at an index contains.
fn uses(properties: &[Property], at: usize) -> usize {
    let all = properties.iter();
    all.filter(|property| is_counted_by(property, at)).count()
}

/// Returns the index of the field that contains a field's count or length.
const fn counter_of(property: &Property) -> Option<usize> {
    match (property.count, property.length) {
        (Size::Field(at), _) | (_, Size::Field(at)) => Some(at),
        _ => None,
    }
}

/// Returns the attribute for the length or count before a field, if it is not the default.
fn counter_right_before(counter: &Property, property: &Property) -> Result<TokenStream, String> {
    let width = match &counter.kind {
        PropertyKind::Data { in_type, .. } if counter.count == Size::None => match in_type {
            InType::Int8 | InType::UInt8 => "u8",
            InType::Int16 | InType::UInt16 => "u16",
            InType::Int32 | InType::UInt32 | InType::HexInt32 => "u32",
            InType::Int64 | InType::UInt64 | InType::HexInt64 | InType::Pointer => "u64",
            _ => "",
        },
        _ => "",
    };
    if width.is_empty() {
        return Err(format!(
            "`{}` is the count or length of `{}`, but it is not a single integer",
            counter.name, property.name
        ));
    }
    let (attribute, usual) = match property.count {
        Size::None => ("length", format!("{}Length", property.name)),
        _ => ("count", format!("{}Count", property.name)),
    };
    let mut arguments = Vec::new();
    if width != "u16" {
        arguments.push(ident(width).into_token_stream());
    }
    // A length or count cannot have an empty name either.
    if counter.name != usual && !counter.name.is_empty() {
        let name = counter.name.replace('\0', " ");
        arguments.push(quote!(name = #name));
    }
    // Only bytes, addresses and arrays have a length or count without an attribute.
    let is_text = matches!(
        &property.kind,
        PropertyKind::Data { in_type: InType::AnsiString | InType::UnicodeString, .. }
    );
    if arguments.is_empty() && is_text {
        arguments.push(quote!(u16));
    }
    let attribute = ident(attribute);
    Ok(if arguments.is_empty() {
        TokenStream::new()
    } else {
        quote!(#[#attribute(#(#arguments),*)])
    })
}

/// Returns the attribute for a count or length in an earlier, separate field.
fn counter_before(
    properties: &[Property],
    before: usize,
    declared: Option<&Declared>,
    property: &Property,
) -> Result<TokenStream, String> {
    let name = properties.get(before).map_or("", |one| one.name.as_str());
    let declared = declared.filter(|declared| {
        let kind = declared.kind.inner.to_string();
        !declared.kind.is_borrowed && ["u8", "u16", "u32", "u64"].contains(&kind.as_str())
    });
    let Some(declared) = declared else {
        return Err(format!(
            "`{name}`, the count or length of `{}`, is not a single unsigned integer",
            property.name
        ));
    };
    let attribute = match property.count {
        Size::None => ident("length"),
        _ => ident("count"),
    };
    let field = ident(&declared.ident);
    Ok(quote!(#[#attribute(field = #field)]))
}

impl Writer<'_> {
    /// Returns the fields of an event or a structure, and the number of the declared field for each
    /// template field. Fails with the reason if the fields cannot be declared.
    pub fn fields(
        &mut self,
        properties: &[Property],
        owner: &str,
        is_member: bool,
    ) -> Result<(Vec<Declared>, Vec<usize>), String> {
        let mut fields: Vec<Declared> = Vec::new();
        let mut numbers = Vec::new();
        let mut taken = HashSet::new();
        let mut at = 0;
        while let Some(property) = properties.get(at) {
            // A count or length right before the only field that uses it becomes part of it.
            let (property, before) = match properties.get(at + 1) {
                Some(next) if is_counted_by(next, at) && uses(properties, at) == 1 => {
                    (next, Some(property))
                }
                _ => (property, None),
            };
            let taken_up = if before.is_some() { 2 } else { 1 };
            at += taken_up;
            numbers.extend(std::iter::repeat_n(fields.len() + 1, taken_up));
            let size = match (before, counter_of(property)) {
                (Some(before), _) => Some(counter_right_before(before, property)?),
                (None, Some(earlier)) => {
                    let number = numbers.get(earlier).and_then(|number| number.checked_sub(1));
                    let declared = number.and_then(|number| fields.get(number));
                    if is_member {
                        return Err(format!(
                            "the count or length of `{}` is not in the field right before it, or of \
                             several members",
                            property.name
                        ));
                    }
                    Some(counter_before(properties, earlier, declared, property)?)
                }
                (None, None) => None,
            };
            let mut kind = self.field(property, size.is_some(), owner)?;
            // Only a length right before a `SocketAddr` can be its length.
            if before.is_none() && size.is_some() && kind.inner.to_string() == "SocketAddr" {
                let name = OutType::SocketAddress.name();
                kind = written(quote!(#[out_type = #name]), quote!([u8]));
            }
            kind.attributes = [size.unwrap_or_default(), kind.attributes].into_iter().collect();
            let ident = unique(&snake(&property.name), &mut taken);
            fields.push(Declared { rename: rename(&ident, &property.name), ident, kind });
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
                "the count or length of the member `{name}` is not a member of its structure"
            ));
        }
        let (in_type, out_type, map) = match &property.kind {
            PropertyKind::Struct(members) => {
                return self.structure(property, members, owner);
            }
            PropertyKind::Unknown { in_type, .. } => {
                return Err(format!("`{name}` has the unknown inType {in_type}"));
            }
            PropertyKind::Data { in_type, out_type, map, .. } => (*in_type, *out_type, *map),
        };
        let sized = match (in_type, property.length) {
            (InType::Binary, Size::Fixed(16) | Size::None) if out_type == OutType::Ipv6 => {
                Some(plain(quote!(Ipv6Addr)))
            }
            (InType::Binary | InType::UnicodeString | InType::AnsiString, Size::Fixed(length)) => {
                Some(block(in_type, out_type, length))
            }
            (InType::Binary, Size::Field(_) | Size::Outer(_)) => Some(bytes(out_type)),
            (_, Size::Field(_) | Size::Outer(_)) => counted_text(in_type, out_type),
            (_, Size::Fixed(_) | Size::None) => None,
        };
        if let Some(sized) = sized {
            if property.count != Size::None {
                let what = in_type.name().unwrap_or_default();
                return Err(format!("`{name}` is an array of {what} with a `length`"));
            }
            return Ok(sized);
        }
        let width = match in_type {
            InType::UInt8 => Some("u8"),
            InType::UInt16 => Some("u16"),
            InType::UInt32 | InType::HexInt32 => Some("u32"),
            _ => None,
        };
        if let (Some(map), Some(width), Size::None) = (map, width, property.count)
            && self.has_entries(map, width)
        {
            let inner = ident(&self.map(map, width)).into_token_stream();
            let of_map = if in_type == InType::HexInt32 { InType::UInt32 } else { in_type };
            let usual = of_map.out_types().first();
            let is_possible = of_map.out_types().contains(&out_type);
            let shown_as = out_type.name();
            let attribute =
                (is_possible && usual != Some(&out_type)).then(|| quote!(#[out_type = #shown_as]));
            return Ok(shown(quote!(#attribute), inner));
        }
        let kind = scalar(in_type, out_type).ok_or_else(|| {
            format!("`{name}` is a {} without a length", in_type.name().unwrap_or_default())
        })?;
        match property.count {
            Size::None => Ok(kind),
            _ if !repeats(&kind) => {
                Err(format!("`{name}` is an array of {}", in_type.name().unwrap_or_default()))
            }
            Size::Fixed(count) => {
                let (inner, count) = (kind.inner, Literal::u16_unsuffixed(count));
                Ok(shown(kind.attributes, quote!([#inner; #count])))
            }
            Size::Field(_) | Size::Outer(_) => {
                // Without the attribute, slices of these types would be bytes or text.
                let inner = kind.inner;
                let is_text = matches!(inner.to_string().as_str(), "u8" | "u16");
                let array = is_text.then(|| quote!(#[array]));
                let attributes = kind.attributes;
                Ok(written(quote!(#attributes #array), quote!([#inner])))
            }
        }
    }

    /// Returns whether any entry of a map fits in an integer of this width.
    fn has_entries(&self, map: usize, width: &str) -> bool {
        let mut items = self.provider.maps[map].items.iter();
        items.any(|item| item.value <= max_of(width))
    }

    /// Returns whether a structure in an array can have this member.
    fn is_of_element(&self, member: &Declared) -> bool {
        let kind = &member.kind;
        let name = kind.inner.to_string();
        !kind.is_borrowed
            && !kind.has_lifetime
            && (is_in_memory(&name) || self.maps.values().any(|map| *map == name))
    }

    fn structure(
        &mut self,
        property: &Property,
        members: &[Property],
        owner: &str,
    ) -> Result<Type, String> {
        let name = &property.name;
        let (fields, _) = self.fields(members, owner, true)?;
        if fields.is_empty() {
            return Err(format!("the structure `{name}` has no members"));
        }
        if property.count != Size::None
            && let Some(other) = fields.iter().find(|member| !self.is_of_element(member))
        {
            return Err(format!(
                "`{name}` is an array of structures, and the bytes of their member `{}` in memory \
                 differ from those in the event",
                other.ident
            ));
        }
        let name = unique_type(&pascal(&format!("{owner}_{name}")), &mut self.idents);
        let name = ident(&name);
        let borrows = fields.iter().any(|field| field.kind.is_borrowed || field.kind.has_lifetime);
        let lifetime = borrows.then(|| quote!(<'a>));
        let members = fields.iter().map(Declared::member);
        self.structures.push(quote! {
            #[structure]
            pub struct #name #lifetime { #(#members,)* }
        });
        let elided = borrows.then(|| quote!(<'_>));
        Ok(match property.count {
            Size::None => plain(quote!(#name #elided)),
            Size::Fixed(count) => {
                let count = Literal::u16_unsuffixed(count);
                plain(quote!([#name; #count]))
            }
            Size::Field(_) | Size::Outer(_) => borrowed(quote!([#name])),
        })
    }
}
