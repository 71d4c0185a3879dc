//! The functions that put events together.
//!
//! Such a function is out of line, and shared by all events of a provider that have the
//! same types of fields: a write site only passes values. That keeps write sites small,
//! and keeps what they cost while nobody listens down to the check.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::Ident;
use wdk_etw_schema::{Encoding, Format, Layout, Leaf, Piece, Representation, Text, Wire, Wired};

use crate::names;

/// The function's name for the value of the field at a place.
fn argument(field: usize) -> Ident {
    format_ident!("a{field}", span = Span::mixed_site())
}

/// A local for what belongs to a leaf.
fn local(prefix: &str, leaf: usize) -> Ident {
    format_ident!("{prefix}{leaf}", span = Span::mixed_site())
}

/// The value of a leaf.
fn value(leaf: &Leaf) -> TokenStream {
    let argument = argument(leaf.field);
    let members = leaf.path.iter().skip(1);
    quote!(#argument #(.#members)*)
}

/// The value of a leaf as it lies in a block.
fn in_block(leaf: &Leaf) -> TokenStream {
    let value = value(leaf);
    match leaf.wire {
        Wire::Map(_) => quote!(#value.0),
        Wire::CountedIpv6 => quote!(#value.octets()),
        Wire::Plain(scalar, format) => match scalar.row().representation {
            Representation::Cast64 => quote!((#value as u64)),
            Representation::Cast8 => quote!((#value as u8)),
            Representation::Pointer if format == Format::Address => quote!(#value.address()),
            Representation::Pointer => quote!(#value.hidden()),
            Representation::BigEndian16 => quote!(#value.0.to_be_bytes()),
            Representation::Octets4 | Representation::Octets16 => quote!(#value.octets()),
            // The others do not lie in a block.
            Representation::Memory(_)
            | Representation::Counted(_)
            | Representation::Terminated(_)
            | Representation::Sid
            | Representation::SocketAddr => value,
        },
        _ => value,
    }
}

/// The bytes of what lies apart, and where they may be cut.
fn bytes(leaf: &Leaf) -> Option<(TokenStream, TokenStream)> {
    let value = value(leaf);
    let characters = quote!(::wdk_etw::__macro::Cut::Characters);
    let units = |size: usize| quote!(::wdk_etw::__macro::Cut::Units(#size));
    Some(match leaf.wire {
        Wire::Text(text) | Wire::Terminated(text) => match text {
            Text::Str => (quote!(#value.as_bytes()), characters),
            Text::CStr => (quote!(#value.to_bytes()), characters),
            Text::Utf16 => (quote!(::wdk_etw::__macro::bytes_of(#value)), units(2)),
            Text::UnicodeString => (
                quote!(::wdk_etw::__macro::bytes_of(#value.units())),
                units(2),
            ),
            Text::Bytes => (value, units(1)),
        },
        Wire::Counted(scalar) => (
            quote!(::wdk_etw::__macro::bytes_of(#value)),
            units(scalar.size().unwrap_or(1)),
        ),
        _ => return None,
    })
}

/// Whether a write cuts what there is no room for, or has seen that there is room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    Cuts,
    Fits,
}

/// Makes the bytes of what lies apart.
fn prepare(at: usize, leaf: &Leaf, care: Care) -> TokenStream {
    let text = local("t", at);
    let value = value(leaf);
    if let Some((bytes, cut)) = bytes(leaf) {
        if care == Care::Fits {
            return quote!(let #text: &[u8] = #bytes;);
        }
        // An event with so many fields has too many pieces.
        let field = u16::try_from(leaf.field).unwrap_or(u16::MAX);
        return quote! {
            let #text: &[u8] = write.fit(#bytes, room, #field, #cut);
            let room = room.wrapping_sub(#text.len());
        };
    }
    match leaf.wire {
        Wire::Fixed(..) => quote! {
            let #text: &[u8] = ::wdk_etw::__macro::bytes_of(#value.as_slice());
        },
        Wire::Sid => quote!(let #text: &[u8] = #value.as_bytes();),
        Wire::SocketAddr => {
            let socket = local("s", at);
            quote! {
                let #socket = ::wdk_etw::__macro::SocketBytes::new(&#value);
                let #text: &[u8] = #socket.as_bytes();
            }
        }
        _ => TokenStream::new(),
    }
}

/// A part of a block.
fn part(wired: Wired, layout: &Layout) -> TokenStream {
    match wired {
        Wired::Value(at) => in_block(&layout.leaves[at]),
        Wired::Length(at) => {
            let text = local("t", at);
            match layout.leaves[at].wire {
                Wire::CountedIpv6 => quote!(16_u16),
                Wire::Counted(scalar) => {
                    let scalar = names::scalar(scalar);
                    quote!(::wdk_etw::__macro::count::<#scalar>(#text))
                }
                _ => quote!(::wdk_etw::__macro::length(#text)),
            }
        }
        Wired::Nul(at) => match layout.leaves[at].wire {
            Wire::Terminated(text) if text.unit() == 2 => quote!(0_u16),
            _ => quote!(0_u8),
        },
    }
}

/// Several parts without padding between them.
fn block(parts: &[Wired], layout: &Layout) -> TokenStream {
    match parts {
        [] => quote!(()),
        [last] => part(*last, layout),
        [first, rest @ ..] => {
            let first = part(*first, layout);
            let rest = block(rest, layout);
            quote!(::wdk_etw::__macro::Packed(#first, #rest))
        }
    }
}

/// A function that writes events of some layout.
pub struct Writer<'a> {
    pub name: Ident,
    /// The types of its parameters.
    pub parameters: &'a [TokenStream],
    pub layout: &'a Layout,
    pub encoding: Encoding,
    /// The provider, if it is not a parameter.
    pub provider: Option<TokenStream>,
}

impl Writer<'_> {
    /// The functions: one for what fits and what the masks alone decide, which is nearly
    /// every event, and one for the rest. The first calls nothing but ETW, so it saves no
    /// registers.
    pub fn expand(&self) -> TokenStream {
        let Self { layout, .. } = self;
        let provider = self.provider.clone().unwrap_or_else(|| quote!(provider));
        let careful_name = format_ident!("{}_with_care", self.name);
        let prepare_all = |care| {
            let leaves = layout.leaves.iter().enumerate();
            leaves
                .map(|(at, leaf)| prepare(at, leaf, care))
                .collect::<TokenStream>()
        };
        let room = layout.room;
        let (fitting, cutting) = (prepare_all(Care::Fits), prepare_all(Care::Cuts));
        let (hand_over, hand_over_with_care) =
            (self.hand_over(Care::Fits), self.hand_over(Care::Cuts));
        let careful = self.function(
            &careful_name,
            &quote! {
                let ::core::option::Option::Some(write) = #provider.begin(event) else {
                    return ::wdk_etw::NtStatus::SUCCESS;
                };
                let room: usize = #room;
                #cutting
                #hand_over_with_care
            },
        );
        let lengths: Vec<_> = layout
            .leaves
            .iter()
            .enumerate()
            .filter(|(_, leaf)| bytes(leaf).is_some())
            .map(|(at, _)| local("t", at))
            .collect();
        let too_long = lengths
            .split_first()
            .map(|(first, rest)| quote!(|| #first.len() #(.saturating_add(#rest.len()))* > #room));
        let provider_argument = self.provider.is_none().then(|| quote!(provider,));
        let arguments = (0..self.parameters.len()).map(argument);
        let quick = self.function(
            &self.name,
            &quote! {
                #fitting
                if #provider.needs_care() #too_long {
                    return #careful_name(#provider_argument event, options, #(#arguments),*);
                }
                let ::core::option::Option::Some(write) = #provider.enter(event) else {
                    return ::wdk_etw::NtStatus::SUCCESS;
                };
                #hand_over
            },
        );
        quote!(#quick #careful)
    }

    fn function(&self, name: &Ident, body: &TokenStream) -> TokenStream {
        let parameters = self.parameters;
        let arguments = (0..parameters.len()).map(argument);
        let provider = self
            .provider
            .is_none()
            .then(|| quote!(provider: &::wdk_etw::Provider,));
        let described = self.encoding == Encoding::TraceLogging;
        quote! {
            #[cold]
            #[inline(never)]
            #[allow(
                clippy::all, clippy::pedantic, clippy::nursery, non_snake_case, unused_variables,
            )]
            fn #name<O: ::wdk_etw::__macro::Options>(
                #provider
                event: ::wdk_etw::__macro::EventRef<#described>,
                options: O,
                #(#arguments: #parameters,)*
            ) -> ::wdk_etw::NtStatus {
                #body
            }
        }
    }

    /// Makes the pieces and calls ETW.
    fn hand_over(&self, care: Care) -> TokenStream {
        let mut blocks = TokenStream::new();
        let mut pieces = Vec::new();
        for (at, piece) in self.layout.pieces.iter().enumerate() {
            match piece {
                Piece::Block(parts) => {
                    let local = local("b", at);
                    let block = block(parts, self.layout);
                    blocks.extend(quote!(let #local = #block;));
                    pieces.push(quote!(::wdk_etw::EventDataDescriptor::of(&#local)));
                }
                Piece::Apart(leaf) => {
                    let text = local("t", *leaf);
                    pieces.push(quote!(::wdk_etw::EventDataDescriptor::fitting(#text)));
                }
            }
        }
        let leading = match self.encoding {
            Encoding::TraceLogging => quote!(write.traits(), write.description(),),
            Encoding::Manifest => TokenStream::new(),
        };
        let finish = match care {
            Care::Fits => quote!(finish),
            Care::Cuts => quote!(finish_with_care),
        };
        quote! {
            #blocks
            write.#finish(&options, &[#leading #(#pieces),*])
        }
    }
}
