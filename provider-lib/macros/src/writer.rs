//! The functions that assemble and write events.
//!
//! Each function is out of line, and all events of a provider with the same field types share it: a
//! write site only passes values. So write sites are small, and cost only their check while no
//! session enables the event.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::Ident;
use wdk_etw_schema::{
    BlockPart, DataDescriptor, Encoding, Format, Layout, Leaf, Representation, Scalar, Text, Wire,
};

use crate::names;

/// Returns a name that no item of the author has: with a constant in scope, a parameter or local
/// variable of the same name would be a pattern.
pub fn reserved(name: &str) -> Ident {
    format_ident!("__wdk_etw_{name}", span = Span::mixed_site())
}

/// Returns the name of the function's parameter for a field.
pub fn argument(field: usize) -> Ident {
    reserved(&format!("a{field}"))
}

/// Returns the name of a local variable for a leaf or a block.
fn local(prefix: &str, leaf: usize) -> Ident {
    reserved(&format!("{prefix}{leaf}"))
}

/// Returns the expression for a leaf's value.
fn value(leaf: &Leaf) -> TokenStream {
    let argument = argument(leaf.field);
    let members = leaf.path.iter().skip(1);
    quote!(#argument #(.#members)*)
}

/// Returns the expression for a leaf's value in a block.
fn in_block(at: usize, leaf: &Leaf) -> TokenStream {
    let value = value(leaf);
    match leaf.wire {
        Wire::Map(_) => quote!(#value.0),
        Wire::Sized(scalar) => {
            let (number, scalar) = (local("v", at), names::scalar(scalar));
            quote!((#number as #scalar))
        }
        Wire::CountedIpv6 => quote!(::core::net::Ipv6Addr::octets(&#value)),
        Wire::Plain(scalar, format) => match scalar.row().representation {
            Representation::Cast64 => quote!((#value as ::core::primitive::u64)),
            Representation::Cast8 => quote!((#value as ::core::primitive::u8)),
            Representation::Pointer if format == Format::Address => {
                quote!(::wdk_etw::Pointer::address(#value))
            }
            Representation::Pointer => quote!(::wdk_etw::Pointer::hidden(#value)),
            Representation::BigEndian16 => quote!(::core::primitive::u16::to_be_bytes(#value.0)),
            Representation::Octets4 => quote!(::core::net::Ipv4Addr::octets(&#value)),
            Representation::Octets16 => quote!(::core::net::Ipv6Addr::octets(&#value)),
            // `Memory` is copied unchanged. The others are never in a block.
            Representation::Memory(_)
            | Representation::Counted(_)
            | Representation::Terminated(_)
            | Representation::Sid
            | Representation::SocketAddr => value,
        },
        // These are never in a block.
        Wire::Fixed(..)
        | Wire::FixedStructures(..)
        | Wire::Counted(_)
        | Wire::CountedStructures(_)
        | Wire::Text(_)
        | Wire::Terminated(_)
        | Wire::Sid
        | Wire::SocketAddr => value,
    }
}

/// Returns the expressions for the bytes of a leaf that can be cut, and for the cut positions.
fn bytes(at: usize, leaf: &Leaf) -> Option<(TokenStream, TokenStream)> {
    let value = value(leaf);
    let characters = quote!(::wdk_etw::__macro::Cut::Characters);
    let utf16 = quote!(::wdk_etw::__macro::Cut::Utf16);
    let units = |size: usize| quote!(::wdk_etw::__macro::Cut::Units(#size));
    Some(match leaf.wire {
        Wire::Text(text) | Wire::Terminated(text) => match text {
            Text::Str => (quote!(::core::primitive::str::as_bytes(#value)), characters),
            Text::CStr => (quote!(::core::ffi::CStr::to_bytes(#value)), characters),
            Text::Formatted => {
                let text = local("f", at);
                (quote!(::wdk_etw::__macro::Formatted::as_bytes(&#text)), characters)
            }
            Text::Utf16 => (quote!(::wdk_etw::__macro::bytes_of(#value)), utf16),
            // `UnicodeString` and `Utf16CStr` have this method. It takes `self` by value, so it
            // takes precedence over trait methods.
            Text::UnicodeString => (quote!(::wdk_etw::__macro::bytes_of(#value.units())), utf16),
            Text::Bytes => (value, units(1)),
        },
        Wire::Counted(scalar) => {
            (quote!(::wdk_etw::__macro::bytes_of(#value)), units(scalar.size().unwrap_or(1)))
        }
        Wire::CountedStructures(size) => {
            (quote!(::wdk_etw::__macro::bytes_of_size::<_, #size>(#value)), units(size))
        }
        Wire::Plain(..)
        | Wire::Sized(_)
        | Wire::Map(_)
        | Wire::Fixed(..)
        | Wire::FixedStructures(..)
        | Wire::Sid
        | Wire::CountedIpv6
        | Wire::SocketAddr => return None,
    })
}

/// The paths of a write: the fast path, after a check that all fields fit, and the slow path, which
/// cuts fields that do not fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Slow,
    Fast,
}

/// Returns the local variables for formatted strings.
fn formatted(layout: &Layout) -> impl Iterator<Item = (Ident, &Leaf)> {
    let leaves = layout.leaves.iter().enumerate();
    leaves
        .filter(|(_, leaf)| matches!(leaf.wire, Wire::Text(Text::Formatted)))
        .map(|(at, leaf)| (local("f", at), leaf))
}

/// Returns the index of a leaf's field in `FieldCut`. An event with more fields than this has too
/// many data descriptors.
fn field(leaf: &Leaf) -> u16 {
    u16::try_from(leaf.field).unwrap_or(u16::MAX)
}

/// Generates the local variable for the bytes of a leaf outside blocks.
fn prepare(at: usize, leaf: &Leaf, path: Path) -> TokenStream {
    let text = local("t", at);
    let value = value(leaf);
    if let Some((bytes, _)) = bytes(at, leaf) {
        return quote!(let #text: &[::core::primitive::u8] = #bytes;);
    }
    match leaf.wire {
        Wire::Sized(scalar) => prepare_sized(at, leaf, scalar, path),
        Wire::Fixed(..) => quote! {
            let #text: &[::core::primitive::u8] = ::wdk_etw::__macro::bytes_of(::wdk_etw::__macro::elements(&#value));
        },
        Wire::FixedStructures(size, _) => quote! {
            let #text: &[::core::primitive::u8] =
                ::wdk_etw::__macro::bytes_of_size::<_, #size>(
                    ::wdk_etw::__macro::elements(&#value),
                );
        },
        Wire::Sid => quote! {
            let #text: &[::core::primitive::u8] = ::wdk_etw::Sid::as_bytes(#value);
        },
        Wire::SocketAddr => {
            let socket = local("s", at);
            quote! {
                let #socket = ::wdk_etw::__macro::SocketBytes::new(&#value);
                let #text: &[::core::primitive::u8] =
                    ::wdk_etw::__macro::SocketBytes::as_bytes(&#socket);
            }
        }
        // These have a local variable above, or are in a block.
        Wire::Plain(..)
        | Wire::Map(_)
        | Wire::CountedIpv6
        | Wire::Counted(_)
        | Wire::CountedStructures(_)
        | Wire::Text(_)
        | Wire::Terminated(_) => TokenStream::new(),
    }
}

/// Generates the cut of a leaf's bytes to the room that the leaves before it left.
fn fit(at: usize, leaf: &Leaf) -> Option<TokenStream> {
    let (_, cut) = bytes(at, leaf)?;
    let (text, field) = (local("t", at), field(leaf));
    let (write, options, room) = (reserved("write"), reserved("options"), reserved("room"));
    let most = leaf
        .limit()
        .map_or_else(|| quote!(#room), |limit| quote!(::core::cmp::Ord::min(#room, #limit)));
    Some(quote! {
        let #text: &[::core::primitive::u8] = ::wdk_etw::__macro::Write::fit(
            &#write, &#options, #text, #most, #field, #cut,
        );
        let #room = #room.wrapping_sub(#text.len());
    })
}

/// Returns whether a `usize` or `isize` value may not fit in a type.
fn can_exceed(scalar: Scalar) -> bool {
    scalar.size() < Scalar::Usize.size()
}

/// Generates the local variable for a `usize` or `isize` that is written as a sized integer. On the
/// slow path it is the nearest number that fits in the integer's type.
fn prepare_sized(at: usize, leaf: &Leaf, scalar: Scalar, path: Path) -> TokenStream {
    let (number, value) = (local("v", at), value(leaf));
    if path == Path::Fast || !can_exceed(scalar) {
        return quote!(let #number = #value;);
    }
    let (write, options) = (reserved("write"), reserved("options"));
    let field = field(leaf);
    let scalar = names::scalar(scalar);
    // `clamp` is not used because it can panic.
    quote! {
        let #number = ::core::cmp::Ord::min(#value, #scalar::MAX as _);
        let #number = ::core::cmp::Ord::max(#number, #scalar::MIN as _);
        ::wdk_etw::__macro::Write::limited(
            &#write,
            &#options,
            #value as ::core::primitive::u64,
            #number as ::core::primitive::u64,
            #field,
        );
    }
}

/// Returns the condition that a number does not fit in its type in the event.
fn exceeds(at: usize, leaf: &Leaf) -> Option<TokenStream> {
    let Wire::Sized(scalar) = leaf.wire else {
        return None;
    };
    let number = local("v", at);
    let kept = names::scalar(scalar);
    let wide = names::scalar(if scalar.is_signed() { Scalar::Isize } else { Scalar::Usize });
    can_exceed(scalar).then(|| quote!((#number as #kept as #wide) != #number))
}

/// Returns whether a leaf is the length or count of another leaf.
fn is_counter(at: usize, layout: &Layout) -> bool {
    let mut leaves = layout.leaves.iter();
    leaves.any(|leaf| leaf.counted_by == Some(at))
}

/// The steps at which the numbers of length and count fields are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    Fast,
    /// On the slow path, before values are cut to the event's room.
    Asked,
    /// On the slow path, after that.
    Kept,
}

/// Generates the number that the event contains for a length or count field: the caller's number,
/// or the length of the shortest value that it counts. The other values are cut to this length.
fn counters(layout: &Layout, step: Count) -> TokenStream {
    let mut all = TokenStream::new();
    for (at, leaf) in layout.leaves.iter().enumerate() {
        if !is_counter(at, layout) {
            continue;
        }
        let count = local("n", at);
        let asked = match leaf.wire {
            _ if step == Count::Kept => count.to_token_stream(),
            Wire::Sized(_) => local("v", at).into_token_stream(),
            _ => value(leaf),
        };
        let counted: Vec<_> = layout
            .leaves
            .iter()
            .enumerate()
            .filter(|(_, other)| other.counted_by == Some(at))
            .filter_map(|(other, leaf)| {
                Some((local("t", other), leaf.unit(), bytes(other, leaf)?.1, field(leaf)))
            })
            .collect();
        let texts = counted.iter().map(|(text, ..)| text);
        let units = counted.iter().map(|(_, unit, ..)| unit);
        let cuts = counted.iter().map(|(_, _, cut, _)| cut);
        let divided = local("d", at);
        all.extend(quote! {
            let (#count, #divided) = ::wdk_etw::__macro::least(
                #asked as ::core::primitive::u64,
                &[#((#texts, #units, #cuts)),*],
            );
        });
        for (text, unit, cut, field) in &counted {
            let (write, options) = (reserved("write"), reserved("options"));
            let end = quote!(#count.wrapping_mul(#unit));
            let first = match step {
                Count::Fast => quote!(::wdk_etw::__macro::first(#text, #count, #unit)),
                Count::Asked => quote! {
                    ::wdk_etw::__macro::Write::first(&#write, &#options, #text, #end, #field, #cut)
                },
                Count::Kept => quote! {
                    ::wdk_etw::__macro::Write::shorten(&#write, &#options, #text, #end, #field)
                },
            };
            all.extend(quote!(let #text: &[::core::primitive::u8] = #first;));
        }
    }
    all
}

/// Returns the expression for a part of a block.
fn part(part: BlockPart, layout: &Layout) -> TokenStream {
    match part {
        BlockPart::Value(at) if is_counter(at, layout) => {
            let count = local("n", at);
            match layout.leaves[at].wire {
                Wire::Plain(scalar, _) | Wire::Sized(scalar) => {
                    let scalar = names::scalar(scalar);
                    quote!((#count as #scalar))
                }
                _ => in_block(at, &layout.leaves[at]),
            }
        }
        BlockPart::Value(at) => in_block(at, &layout.leaves[at]),
        BlockPart::Length(at) => {
            let text = local("t", at);
            let leaf = &layout.leaves[at];
            let length = match leaf.wire {
                Wire::CountedIpv6 => quote!(16_u16),
                Wire::Counted(scalar) => {
                    let scalar = names::scalar(scalar);
                    quote!(::wdk_etw::__macro::count::<#scalar>(#text))
                }
                Wire::CountedStructures(size) => {
                    quote!(::wdk_etw::__macro::count_of_size::<#size>(#text))
                }
                // A length in a separate field counts characters.
                Wire::Text(kind) if leaf.counter.is_some() && kind.unit() == 2 => {
                    quote!(::wdk_etw::__macro::count::<::core::primitive::u16>(#text))
                }
                Wire::Text(_) | Wire::SocketAddr => quote!(::wdk_etw::__macro::length(#text)),
                // The layout puts no length before such leaves.
                Wire::Plain(..)
                | Wire::Sized(_)
                | Wire::Map(_)
                | Wire::Fixed(..)
                | Wire::FixedStructures(..)
                | Wire::Terminated(_)
                | Wire::Sid => return TokenStream::new(),
            };
            match leaf.counter {
                None | Some(Scalar::U16) => length,
                Some(other) => {
                    let other = names::scalar(other);
                    quote!((#length as #other))
                }
            }
        }
        BlockPart::Nul(at) => match layout.leaves[at].wire {
            Wire::Terminated(text) if text.unit() == 2 => quote!(0_u16),
            Wire::Terminated(_) => quote!(0_u8),
            // The layout puts no NUL after such leaves.
            Wire::Plain(..)
            | Wire::Sized(_)
            | Wire::Map(_)
            | Wire::Fixed(..)
            | Wire::FixedStructures(..)
            | Wire::Counted(_)
            | Wire::CountedStructures(_)
            | Wire::Text(_)
            | Wire::Sid
            | Wire::CountedIpv6
            | Wire::SocketAddr => TokenStream::new(),
        },
    }
}

/// Blocks with more parts than this are divided, so that the nesting of their type stays far below
/// the compiler's `recursion_limit`.
const DIVIDED: usize = 32;

/// Returns the expression for the parts of a block, without padding between them.
fn block(parts: &[BlockPart], layout: &Layout) -> TokenStream {
    let (first, rest) = match parts {
        [] => return quote!(()),
        [last] => return part(*last, layout),
        [first, rest @ ..] if rest.len() < DIVIDED => (part(*first, layout), rest),
        _ => {
            let (first, rest) = parts.split_at(parts.len() / 2);
            (block(first, layout), rest)
        }
    };
    let rest = block(rest, layout);
    quote!(::wdk_etw::__macro::Packed(#first, #rest))
}

/// Returns the size of a block in bytes, according to the layout.
fn size(parts: &[BlockPart], layout: &Layout) -> usize {
    parts.iter().map(|part| part.size(&layout.leaves)).sum()
}

/// Returns the arguments (or the parameters) of a function that writes events of a layout, in the
/// function's order.
///
/// If the first field's value is in one register, the event is the second argument, as in the call
/// of `EtwWriteEx`, so that it can stay in its register.
pub fn in_order<T: ToTokens>(
    layout: &Layout,
    event: &TokenStream,
    options: &TokenStream,
    fields: &[T],
) -> TokenStream {
    let is_in_register =
        layout.leaves.iter().find(|leaf| leaf.field == 0 && leaf.path.len() == 1).is_some_and(
            |leaf| match leaf.wire {
                Wire::Plain(scalar, _) | Wire::Map(scalar) => {
                    scalar.size().is_some_and(|size| size <= 8)
                }
                Wire::Sized(_) => true,
                _ => false,
            },
        );
    match fields.split_first() {
        Some((first, rest)) if is_in_register => quote!(#first, #event, #options, #(#rest),*),
        _ => quote!(#event, #options, #(#fields),*),
    }
}

/// Returns the values of the fields, or the types of their parameters, as the function that writes
/// the event takes them: large structures by reference.
pub fn passed<T: ToTokens>(layout: &Layout, fields: &[T]) -> Vec<TokenStream> {
    fields
        .iter()
        .enumerate()
        .map(
            |(at, field)| {
                if layout.by_reference.contains(&at) { quote!(&#field) } else { quote!(#field) }
            },
        )
        .collect()
}

/// A function that writes the events of one layout.
pub struct Writer<'a> {
    pub name: Ident,
    /// The types of the fields' parameters.
    pub parameters: &'a [TokenStream],
    pub layout: &'a Layout,
    pub encoding: Encoding,
    /// The provider, or `None` if the function has a parameter for it.
    pub provider: Option<TokenStream>,
    /// True if the provider may count its events.
    pub may_count: bool,
    /// The start of the function, before its write.
    pub start: TokenStream,
}

impl Writer<'_> {
    /// Generates the function's two versions. The fast path handles events whose fields all fit
    /// while the masks are sufficient, which is nearly always; it calls only ETW, so it saves few
    /// registers. In all other cases it calls the slow path.
    pub fn expand(&self) -> TokenStream {
        let Self { layout, start, .. } = self;
        let by_parameter = reserved("provider");
        let (event, options) = (reserved("event"), reserved("options"));
        let (write, room_left) = (reserved("write"), reserved("room"));
        let provider = self
            .provider
            .as_ref()
            .map_or_else(|| quote!(#by_parameter), |provider| quote!(&#provider));
        let slow_name = format_ident!("{}_slow", self.name);
        let leaves = || layout.leaves.iter().enumerate();
        let prepare_all = |path, count| {
            let mut all: TokenStream = leaves().map(|(at, leaf)| prepare(at, leaf, path)).collect();
            all.extend(counters(layout, count));
            all
        };
        let room = layout.room;
        let prepare_fast = prepare_all(Path::Fast, Count::Fast);
        let mut prepare_slow = prepare_all(Path::Slow, Count::Asked);
        // Only after the counts: a value may fit without the elements after its count.
        prepare_slow.extend(leaves().filter_map(|(at, leaf)| fit(at, leaf)));
        prepare_slow.extend(counters(layout, Count::Kept));
        let (fast_body, slow_body) = (self.body(Path::Fast), self.body(Path::Slow));
        // Only once, and before the write begins, because formatting runs the values' own code.
        let format = formatted(layout).map(|(text, leaf)| {
            let value = value(leaf);
            quote!(let #text = ::wdk_etw::__macro::Formatted::new(#value);)
        });
        let format: TokenStream = format.collect();
        let texts: Vec<_> = formatted(layout).map(|(text, _)| text).collect();
        let slow = self.function(
            &slow_name,
            &quote!(#(#texts: &::wdk_etw::__macro::Formatted,)*),
            &quote! {
                let ::core::option::Option::Some(#write) =
                    ::wdk_etw::Provider::enter_slow(#provider, #event)
                else {
                    return ::wdk_etw::NtStatus::SUCCESS;
                };
                let #room_left: ::core::primitive::usize = #room;
                #prepare_slow
                #slow_body
            },
        );
        let cut: Vec<_> = leaves()
            .filter(|(at, leaf)| bytes(*at, leaf).is_some())
            .map(|(at, leaf)| (local("t", at), leaf.limit()))
            .collect();
        let too_long = cut.split_first().map(|((first, _), rest)| {
            let rest = rest.iter().map(|(text, _)| text);
            let above_limit = cut
                .iter()
                .filter_map(|(text, limit)| limit.map(|limit| quote!(|| #text.len() > #limit)));
            quote! {
                #first.len() #(.saturating_add(#rest.len()))* > #room #(#above_limit)*
            }
        });
        let mut outside: Vec<_> = leaves().filter_map(|(at, leaf)| exceeds(at, leaf)).collect();
        outside.extend(
            leaves()
                .filter(|(at, _)| is_counter(*at, layout))
                .map(|(at, _)| local("d", at).into_token_stream()),
        );
        outside.extend(too_long);
        let provider_argument = self.provider.is_none().then(|| quote!(#by_parameter,));
        let arguments: Vec<_> = (0..self.parameters.len()).map(argument).collect();
        let arguments = in_order(layout, &quote!(#event), &quote!(#options), &arguments);
        let call_slow = quote!(#slow_name(#provider_argument #(&#texts,)* #arguments));
        let cut_in_slow = (!outside.is_empty()).then(|| {
            quote! {
                if #(#outside)||* {
                    return #call_slow;
                }
            }
        });
        let fast = self.function(
            &self.name,
            &TokenStream::new(),
            &quote! {
                #start
                #format
                #prepare_fast
                #cut_in_slow
                let ::core::option::Option::Some(#write) =
                    ::wdk_etw::Provider::enter(#provider, #event)
                else {
                    return #call_slow;
                };
                #fast_body
            },
        );
        quote!(#fast #slow)
    }

    fn function(&self, name: &Ident, texts: &TokenStream, body: &TokenStream) -> TokenStream {
        let fields: Vec<_> = self
            .parameters
            .iter()
            .enumerate()
            .map(|(at, kind)| {
                let argument = argument(at);
                quote!(#argument: #kind)
            })
            .collect();
        let provider = self.provider.is_none().then(|| {
            let provider = reserved("provider");
            quote!(#provider: &::wdk_etw::Provider,)
        });
        let (event, options) = (reserved("event"), reserved("options"));
        let has_metadata = self.encoding == Encoding::TraceLogging;
        // Type names in macros are not hygienic.
        let options_type = reserved("Options");
        let parameters = in_order(
            self.layout,
            &quote!(#event: ::wdk_etw::__macro::EventRef<#has_metadata>),
            &quote!(#options: #options_type),
            &fields,
        );
        quote! {
            #[cold]
            #[inline(never)]
            #[allow(
                clippy::all, clippy::pedantic, clippy::nursery, non_camel_case_types, non_snake_case,
                unused_variables,
            )]
            fn #name<#options_type: ::wdk_etw::__macro::Options>(
                #provider
                #texts
                #parameters
            ) -> ::wdk_etw::NtStatus {
                #body
            }
        }
    }

    /// Generates the blocks, the data descriptors and the call to ETW.
    fn body(&self, path: Path) -> TokenStream {
        let (write, options) = (reserved("write"), reserved("options"));
        let mut blocks = TokenStream::new();
        let mut descriptors = Vec::new();
        for (at, descriptor) in self.layout.descriptors.iter().enumerate() {
            match descriptor {
                DataDescriptor::Block(parts) => {
                    let local = local("b", at);
                    let block = block(parts, self.layout);
                    blocks.extend(quote!(let #local = #block;));
                    let size = size(parts, self.layout);
                    descriptors
                        .push(quote!(::wdk_etw::__macro::block_of_size::<_, #size>(&#local)));
                }
                DataDescriptor::InPlace(leaf) => {
                    let text = local("t", *leaf);
                    descriptors.push(quote!(::wdk_etw::EventDataDescriptor::fitting(#text)));
                }
            }
        }
        let texts = formatted(self.layout).map(|(text, _)| text);
        let leading = match self.encoding {
            Encoding::TraceLogging => quote! {
                ::wdk_etw::__macro::Write::traits(&#write),
                ::wdk_etw::__macro::Write::event_metadata(&#write),
            },
            Encoding::Manifest => TokenStream::new(),
        };
        let finish = match path {
            Path::Fast if self.may_count => quote!(finish_counted),
            Path::Fast => quote!(finish),
            Path::Slow => quote!(finish_slow),
        };
        quote! {
            #blocks
            #(::wdk_etw::__macro::Write::count_cut(&#write, &#texts);)*
            ::wdk_etw::__macro::Write::#finish(&#write, &#options, &[#leading #(#descriptors),*])
        }
    }
}

#[cfg(test)]
mod tests;
