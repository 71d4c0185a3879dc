//! The expansion of `event!`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{BinOp, Expr, ExprBinary, Ident};
use wdk_etw_schema::{
    Encoding, Layout,
    parse::{AdHoc, Limit},
    tracelogging, ungrouped,
};

use crate::{
    mirror, names,
    writer::{Writer, in_order, passed},
};

/// Returns the expression for an event's keywords, in which `|` is a function that constants can call.
fn joined(keywords: &Expr) -> TokenStream {
    match ungrouped(keywords) {
        Expr::Binary(ExprBinary { left, op: BinOp::BitOr(_), right, .. }) => {
            let (left, right) = (joined(left), joined(right));
            quote!(::wdk_etw::Keyword::union(#left, #right))
        }
        other => quote!(#other),
    }
}

/// Generates the event, its check and its write.
pub fn expand(event: &AdHoc) -> syn::Result<TokenStream> {
    let types = event.types();
    let metadata = tracelogging::event_metadata(&event.name, event.tag, &event.fields, types)?;
    let layout =
        Layout::of(&event.fields, Encoding::TraceLogging, types, metadata.len(), event.span)?;
    let parameters: Vec<_> =
        event.fields.iter().map(|field| names::parameter(field, &TokenStream::new())).collect();
    let parameters = passed(&layout, &parameters);
    let writer = Writer {
        name: Ident::new("__wdk_etw_write", Span::mixed_site()),
        parameters: &parameters,
        layout: &layout,
        encoding: Encoding::TraceLogging,
        provider: None,
        may_count: true,
        start: mirror::start(&event.name, &event.fields),
    }
    .expand();
    let AdHoc { provider, opcode, limit, values, .. } = event;
    let level = event.level.0;
    let keyword = event.keyword.as_ref().map_or_else(|| quote!(::wdk_etw::Keyword::NONE), joined);
    let size = metadata.len();
    let metadata = proc_macro2::Literal::byte_string(&metadata);
    let options = if event.options.is_empty() {
        quote!(::wdk_etw::__macro::Plain)
    } else {
        let set = event.options.iter().map(|(name, value)| quote!(.#name(#value)));
        quote!(&::wdk_etw::WriteOptions::new()#(#set)*)
    };
    let (limit, admits) = match limit {
        None => (None, None),
        Some(Limit::Named(limit)) => (
            None,
            Some(quote_spanned!(Span::mixed_site() => && {
                // A temporary value would admit every occurrence; the compiler refuses its address.
                if false {
                    let _ = &raw const #limit;
                }
                ::wdk_etw::Provider::admits(__wdk_etw_provider, &#limit)
            })),
        ),
        Some(other) => {
            let (value, admits) = match other {
                Limit::Every(count) => (quote!(__every(#count)), quote!(admits)),
                Limit::Once | Limit::Named(_) => (quote!(once()), quote!(admits_once)),
            };
            (
                Some(quote! {
                    static __WDK_ETW_LIMIT: ::wdk_etw::RateLimit = ::wdk_etw::RateLimit::#value;
                }),
                Some(quote_spanned! { Span::mixed_site() =>
                    && ::wdk_etw::Provider::#admits(__wdk_etw_provider, &__WDK_ETW_LIMIT)
                }),
            )
        }
    };
    let of_write = quote_spanned!(Span::mixed_site() => __wdk_etw_options);
    let of_event = quote_spanned!(Span::mixed_site() => ::wdk_etw::__macro::EventBlob::tracelogging(__wdk_etw_event));
    // A block, because a reference to an operator's left side is another value, and a member of a packed
    // structure is copied.
    let in_block = |(at, value)| {
        if layout.by_reference.contains(&at) { quote!({ #value }) } else { quote!(#value) }
    };
    let values: Vec<_> = values.iter().enumerate().map(in_block).collect();
    let arguments = in_order(&layout, &of_event, &of_write, &passed(&layout, &values));
    let own_keyword = quote!(const { #keyword });
    let (own_level, mut options) = (quote!(::wdk_etw::Level(#level)), options);
    let level =
        event.runtime_level.as_ref().map_or_else(|| own_level.clone(), ToTokens::to_token_stream);
    let keyword = event
        .runtime_keyword
        .as_ref()
        .map_or_else(|| own_keyword.clone(), ToTokens::to_token_stream);
    if event.runtime_level.is_some() || event.runtime_keyword.is_some() {
        options = quote_spanned!(Span::mixed_site() => ::wdk_etw::__macro::Runtime {
            options: #options, level: __wdk_etw_level, keyword: __wdk_etw_keyword,
        });
    }
    Ok(quote_spanned! { Span::mixed_site() => {
        #writer
        #limit
        let __wdk_etw_provider: &::wdk_etw::Provider = &#provider;
        let __wdk_etw_level: ::wdk_etw::Level = #level;
        let __wdk_etw_keyword: ::wdk_etw::Keyword = #keyword;
        if (::core::cfg!(debug_assertions) && ::wdk_etw::Provider::prints(__wdk_etw_provider)
            || ::wdk_etw::Provider::is_enabled_fast(
                __wdk_etw_provider, __wdk_etw_level, __wdk_etw_keyword,
            )) #admits {
            // A constant, because a `static` cannot name `Self`.
            let __wdk_etw_event: &'static ::wdk_etw::__macro::EventBlob<#size> = const {
                &::wdk_etw::__macro::EventBlob::new(
                    ::wdk_etw::EventDescriptor::new(0, 0, #own_level, #own_keyword)
                        .with_channel(::wdk_etw::Channel::TRACELOGGING)
                        .with_opcode(::wdk_etw::Opcode(#opcode)),
                    *#metadata,
                )
            };
            // Before the fields, as in `emit!`: the first field may be an earlier argument.
            let __wdk_etw_options = #options;
            // The provider counts the failure; `event!` returns no result.
            let __wdk_etw_status = __wdk_etw_write(__wdk_etw_provider, #arguments);
        }
    }})
}
