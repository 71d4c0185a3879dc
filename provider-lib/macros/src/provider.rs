//! The expansion of `#[provider]`.

use std::collections::HashMap;

use proc_macro2::{Literal, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Ident, Path};
use wdk_etw_schema::{
    Encoding, Event, Layout, Map, MapKind, Provider, Structure, elements,
    tracelogging::{self, Types},
};

use crate::{
    mirror::{self, OfEvent},
    names,
    writer::{Writer, in_order, passed},
};

/// Returns the attribute that silences warnings in generated items. A driver need not use
/// everything that it declares.
fn quiet() -> TokenStream {
    quote! {
        #[allow(
            dead_code,
            non_camel_case_types,
            non_snake_case,
            non_upper_case_globals,
            private_interfaces,
            clippy::all,
            clippy::pedantic,
            clippy::nursery,
        )]
    }
}

/// Returns the attribute of a function that is inlined at write sites. It is not inlined in debug
/// builds, because there the locals of inlined functions do not share stack space.
fn inline() -> TokenStream {
    quote! {
        #[cfg_attr(debug_assertions, inline(never))]
        #[cfg_attr(not(debug_assertions), inline(always))]
    }
}

fn docs(lines: &[String]) -> TokenStream {
    let lines = lines.iter().map(|line| format!(" {line}"));
    quote!(#(#[doc = #lines])*)
}

/// Generates the module.
pub fn expand(provider: &Provider) -> syn::Result<TokenStream> {
    let Provider { module, visibility, attributes, others, .. } = provider;
    let quiet = quiet();
    let registration = registration(provider);
    let keywords = provider.keywords.iter().map(|keyword| {
        let docs = docs(&keyword.docs);
        let wdk_etw_schema::Keyword { ident, visibility, bit, .. } = keyword;
        quote! {
            #docs
            #quiet
            #visibility const #ident: ::wdk_etw::Keyword = ::wdk_etw::Keyword::bit::<#bit>();
        }
    });
    let maps = provider.maps.iter().map(|map| {
        let printed = provider.debugger.then(|| mirror::map(map));
        let map = self::map(map);
        quote!(#map #printed)
    });
    let elements = elements(provider);
    let structures =
        provider.structures.iter().filter(|structure| !structure.in_library).map(|one| {
            let is_element = elements.contains(&one.ident);
            let printed = provider.debugger.then(|| mirror::structure(one, is_element));
            let structure = structure(one, is_element)?;
            Ok(quote!(#structure #printed))
        });
    let structures = structures.collect::<syn::Result<TokenStream>>()?;
    let mut writers = Writers { provider, names: HashMap::new(), functions: TokenStream::new() };
    let mut events = TokenStream::new();
    for event in &provider.events {
        events.extend(writers.event(event)?);
    }
    let writers = writers.functions;
    Ok(quote! {
        #(#attributes)*
        #visibility mod #module {
            #(#others)*
            #registration
            #(#keywords)*
            #(#maps)*
            #structures
            #events
            #writers
        }
    })
}

fn registration(provider: &Provider) -> TokenStream {
    let quiet = quiet();
    let name = &provider.name;
    let guid = names::guid(provider.guid);
    let group = provider.group.map(|group| {
        let text = group.to_string();
        quote!(, group = #text)
    });
    let custom = provider.traits.iter().map(|one| {
        let kind = Literal::u8_unsuffixed(one.kind);
        let data = Literal::byte_string(&one.data);
        quote!(, #kind => *#data)
    });
    let hook = |path: &Option<Path>| {
        path.as_ref().map_or_else(
            || quote!(::core::option::Option::None),
            |path| quote!(::core::option::Option::Some(#path)),
        )
    };
    let hooks = &provider.hooks;
    let (on_enable, on_disable) = (hook(&hooks.on_enable), hook(&hooks.on_disable));
    let on_capture_state = hook(&hooks.on_capture_state);
    let group_constant = provider.group.map(|group| {
        let group = names::guid(group);
        quote! {
            /// The GUID of the provider's group.
            #quiet
            pub const GROUP: ::wdk_etw::Guid = #group;
        }
    });
    let without_traits = (!provider.sets_traits()).then(|| quote!(.without_traits()));
    let binary_tracking = provider.binary_tracking.then(|| quote!(.with_binary_tracking()));
    let mode = mode();
    let written = provider.statistics.then(|| {
        quote! {
            static __WDK_ETW_WRITTEN: ::wdk_etw::__macro::WrittenCounts = ::wdk_etw::__macro::WrittenCounts::new();
        }
    });
    let statistics = provider.statistics.then(|| quote!(.with_statistics(&__WDK_ETW_WRITTEN)));
    let debugger =
        provider.debugger.then(|| quote!(.with_debugger(::core::cfg!(debug_assertions))));
    let stripes = provider.stripes.map(|stripes| {
        let stripes = usize::from(stripes);
        quote!(<#stripes>)
    });
    let doc = format!(" The provider {name}, `{}`.", provider.guid);
    let unregister = unregister(provider);
    quote! {
        #mode

        static __WDK_ETW_TRAITS: ::wdk_etw::Traits = ::wdk_etw::traits!(#name #group #(#custom)*);

        #written

        /// The provider's GUID.
        #quiet
        pub const ID: ::wdk_etw::Guid = #guid;

        #group_constant

        #[doc = #doc]
        pub static PROVIDER: ::wdk_etw::__macro::StaticProvider #stripes =
            ::wdk_etw::__macro::StaticProvider::new(ID, &__WDK_ETW_TRAITS).with_hooks(::wdk_etw::__macro::Hooks {
                on_enable: #on_enable,
                on_disable: #on_disable,
                on_capture_state: #on_capture_state,
            }) #without_traits #binary_tracking #statistics #debugger;

        /// Registers the provider; see [`::wdk_etw::Provider::register`].
        ///
        /// # IRQL
        ///
        /// `PASSIVE_LEVEL`.
        ///
        /// # Errors
        ///
        /// Returns a [`::wdk_etw::RegisterError`].
        ///
        /// # Safety
        ///
        /// If this function returns [`Ok`], [`unregister`] must return [`Ok`] before the driver is
        /// unloaded: in `EvtDriverUnload`, and before `DriverEntry` returns an error.
        #quiet
        pub unsafe fn register()
        -> ::core::result::Result<::wdk_etw::Registered, ::wdk_etw::RegisterError> {
            // In a call stack, this name shows that the enclosing function is generated.
            #[inline(always)]
            unsafe fn __wdk_etw_provider()
            -> ::core::result::Result<::wdk_etw::Registered, ::wdk_etw::RegisterError> {
                // SAFETY: the caller upholds the same contract.
                unsafe { ::wdk_etw::Provider::register(&PROVIDER) }
            }
            // SAFETY: as above.
            unsafe { __wdk_etw_provider() }
        }

        #unregister
    }
}

/// Generates the function that unregisters the provider; it is unsafe without a rundown.
fn unregister(provider: &Provider) -> TokenStream {
    let quiet = quiet();
    let result = quote!(::core::result::Result<(), ::wdk_etw::UnregisterError>);
    let (safety, summary, attribute, call) = if provider.stripes == Some(0) {
        (
            quote!(unsafe),
            quote! {
                /// Unregisters the provider; see [`::wdk_etw::Provider::unregister_without_rundown`].
            },
            quote! {
                ///
                /// # Safety
                ///
                /// Except in the provider's own hooks, for which ETW waits, no write of this provider
                /// and no call of [`::wdk_etw::Provider::provider_enabled`] or
                /// [`::wdk_etw::Provider::event_enabled`] is in progress on any thread, and none begins
                /// before the function returns: in `EvtDriverUnload`, after the driver has stopped its
                /// timers, DPCs, work items and threads.
            },
            quote! {
                // SAFETY: the caller upholds the same contract.
                unsafe { ::wdk_etw::Provider::unregister_without_rundown(&PROVIDER) }
            },
        )
    } else {
        (
            quote!(),
            quote! {
                /// Unregisters the provider; see [`::wdk_etw::Provider::unregister`].
            },
            quote!(),
            quote!(::wdk_etw::Provider::unregister(&PROVIDER)),
        )
    };
    quote! {
        #summary
        ///
        /// # IRQL
        ///
        /// `PASSIVE_LEVEL`.
        ///
        /// # Errors
        ///
        /// Returns an [`::wdk_etw::UnregisterError`]. The provider then stays registered.
        #attribute
        #quiet
        pub #safety fn unregister() -> #result {
            #[inline(always)]
            fn __wdk_etw_provider() -> #result {
                #call
            }
            __wdk_etw_provider()
        }
    }
}

/// Generates the checks that `wdk-etw` is compiled for the mode in which this package runs.
/// `wdk-build` sets the driver model's name, and cargo a program's name.
fn mode() -> TokenStream {
    let is_program = std::env::var_os("CARGO_BIN_NAME").is_some();
    let program = is_program.then(|| {
        quote! {
            #[cfg(windows)]
            const _: () = ::wdk_etw::__macro::assert_user_mode(::wdk_etw::__macro::USER_MODE);
        }
    });
    quote! {
        #program

        #[allow(unexpected_cfgs)]
        const _: () = {
            #[cfg(any(driver_model__driver_type = "KMDF", driver_model__driver_type = "WDM"))]
            ::wdk_etw::__macro::assert_kernel_mode(::wdk_etw::__macro::USER_MODE);
            #[cfg(driver_model__driver_type = "UMDF")]
            ::wdk_etw::__macro::assert_user_mode(::wdk_etw::__macro::USER_MODE);
        };
    }
}

/// Generates a map's type: a number and not an enum, so that a field can have unnamed values.
fn map(map: &Map) -> TokenStream {
    let quiet = quiet();
    let docs_of_map = docs(&map.docs);
    let Map { ident, visibility, .. } = map;
    let scalar = names::scalar(map.scalar);
    let entries = map.entries.iter().map(|entry| {
        let docs = docs(&entry.docs);
        let ident = &entry.ident;
        let value = Literal::u32_unsuffixed(entry.value);
        quote! {
            #docs
            #[allow(non_upper_case_globals)]
            pub const #ident: Self = Self(#value);
        }
    });
    let union = (map.kind == MapKind::Bits).then(|| {
        quote! {
            impl ::core::ops::BitOr for #ident {
                type Output = Self;

                fn bitor(self, other: Self) -> Self {
                    Self(self.0 | other.0)
                }
            }
        }
    });
    quote! {
        ::wdk_etw::__macro::plain! {
            #docs_of_map
            #quiet
            #[derive(
                ::core::clone::Clone,
                ::core::marker::Copy,
                ::core::fmt::Debug,
                ::core::default::Default,
                ::core::cmp::PartialEq,
                ::core::cmp::Eq,
                ::core::hash::Hash,
            )]
            #visibility struct #ident(pub #scalar);
        }

        #quiet
        impl #ident {
            #(#entries)*
        }

        #union
    }
}

/// Generates a structure's type. The elements of arrays are plain data.
fn structure(structure: &Structure, is_element: bool) -> syn::Result<TokenStream> {
    let quiet = quiet();
    let docs_of_structure = docs(&structure.docs);
    let Structure { ident, visibility, generics, .. } = structure;
    let fields = structure.fields.iter().map(|field| {
        let docs = docs(&field.docs);
        let ident = &field.ident;
        let kind = names::member(field)?;
        Ok(quote!(#docs pub #ident: #kind,))
    });
    let fields = fields.collect::<syn::Result<TokenStream>>()?;
    let declaration = quote! {
        #docs_of_structure
        #quiet
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #visibility struct #ident #generics { #fields }
    };
    Ok(if is_element { quote!(::wdk_etw::__macro::plain!(#declaration);) } else { declaration })
}

/// Generates the functions of an event that `trace::event(…)` and `emit!` call to write it. Their
/// names have the span of the event's name, so that errors about arguments show the declaration.
fn calls(event: &Event, idents: &[Ident], types: &[TokenStream]) -> TokenStream {
    let (docs, inline) = (docs(&event.docs), inline());
    let options = Ident::new("options", Span::mixed_site());
    let call = Ident::new("__wdk_etw_call", event.ident.span());
    let emit = Ident::new("__wdk_etw_emit", event.ident.span());
    // The lint is for calls as statements; `traced` takes the function itself.
    let lint = (!idents.is_empty()).then(|| {
        let reason = format!(
            "this call evaluates the event's arguments even if no session enables it; write \
             `emit!({}(…))`",
            event.ident
        );
        quote!(#[must_use = #reason])
    });
    quote! {
        #docs
        ///
        /// A call of this function always evaluates the arguments. [`::wdk_etw::emit`]
        /// evaluates them only if a session enables the event.
        ///
        /// # IRQL
        ///
        /// Any. The arguments must be in system space and, above `APC_LEVEL`, in non-pageable
        /// memory; see [`EventDataDescriptor`](::wdk_etw::EventDataDescriptor).
        #inline
        #lint
        pub fn #call(#(#idents: #types),*) {
            if self::is_enabled() {
                // The provider counts the failure; this function returns no result.
                let __wdk_etw_result =
                    self::__wdk_etw_write(::wdk_etw::__macro::Plain, #(#idents),*);
            }
        }

        /// The event with the options of a write. Its method has one argument for each field, so
        /// that errors about `emit!` count only the fields.
        #[doc(hidden)]
        pub struct __WdkEtwWith<O>(O);

        #[doc(hidden)]
        #inline
        pub fn __wdk_etw_with<O: ::wdk_etw::__macro::Options>(
            #options: O,
        ) -> __WdkEtwWith<O> {
            __WdkEtwWith(#options)
        }

        impl<O: ::wdk_etw::__macro::Options> __WdkEtwWith<O> {
            #inline
            pub fn #emit(
                self,
                #(#idents: #types),*
            ) -> ::core::result::Result<(), ::wdk_etw::WriteError> {
                self::__wdk_etw_write(self.0, #(#idents),*)
            }
        }
    }
}

/// Generates the functions with which `emit!` applies a rate limit.
fn admits() -> TokenStream {
    // The provider's module.
    let (outer, inline) = (quote!(super), inline());
    quote! {
        #[doc(hidden)]
        #inline
        #[must_use]
        pub fn __admits(limit: &::wdk_etw::RateLimit) -> bool {
            ::wdk_etw::Provider::admits(&#outer::PROVIDER, limit)
        }

        #[doc(hidden)]
        #inline
        #[must_use]
        pub fn __admits_once(limit: &::wdk_etw::RateLimit) -> bool {
            ::wdk_etw::Provider::admits_once(&#outer::PROVIDER, limit)
        }
    }
}

/// The functions that write a provider's events, one per layout.
struct Writers<'a> {
    provider: &'a Provider,
    names: HashMap<String, Ident>,
    functions: TokenStream,
}

impl Writers<'_> {
    /// Returns the name of the function that writes events of this layout. Generates the function
    /// if it does not exist yet.
    fn writer(&mut self, event: &Event, layout: &Layout) -> Ident {
        let parameters: Vec<_> =
            event.fields.iter().map(|field| names::parameter(field, &TokenStream::new())).collect();
        let parameters = passed(layout, &parameters);
        // Events whose fields differ only in their format share a function.
        let key = format!(
            "{:?} {} {:?} {:?}",
            event.encoding,
            layout.room,
            layout
                .leaves
                .iter()
                .map(|leaf| (leaf.wire.without_format(), leaf.counter, leaf.counted_by))
                .collect::<Vec<_>>(),
            parameters.iter().map(ToString::to_string).collect::<Vec<_>>(),
        );
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let name = format_ident!("__write_{}", self.names.len(), span = Span::call_site());
        self.functions.extend(
            Writer {
                name: name.clone(),
                parameters: &parameters,
                layout,
                encoding: event.encoding,
                provider: Some(quote!(PROVIDER)),
                may_count: self.provider.statistics,
                start: TokenStream::new(),
            }
            .expand(),
        );
        self.names.insert(key, name.clone());
        name
    }

    fn event(&mut self, event: &Event) -> syn::Result<TokenStream> {
        let types = Types::of(self.provider);
        let metadata = match event.encoding {
            Encoding::Manifest => Vec::new(),
            Encoding::TraceLogging => {
                tracelogging::event_metadata(&event.name, event.tag, &event.fields, types)?
            }
        };
        let layout =
            Layout::of(&event.fields, event.encoding, types, metadata.len(), event.ident.span())?;
        let writer = self.writer(event, &layout);
        let (quiet, admits, inline) = (quiet(), admits(), inline());
        let Event { ident, visibility, id, version, task, opcode, .. } = event;
        let keyword = self.provider.keyword_mask(event);
        let level = event.level.0;
        // Channel 11 marks TraceLogging events, and channel 12 manifest events of a provider with
        // traits. The provider's own channels are above 15.
        let channel = match (event.encoding, event.channel) {
            (Encoding::TraceLogging, _) => 11_u8,
            (Encoding::Manifest, 0) if self.provider.sets_traits() => 12,
            (Encoding::Manifest, own) => own,
        };
        let kind = match event.encoding {
            Encoding::TraceLogging => quote!(tracelogging),
            Encoding::Manifest => quote!(manifest),
        };
        let size = metadata.len();
        let metadata = Literal::byte_string(&metadata);
        let idents = names::parameters(event);
        let options = Ident::new("options", Span::mixed_site());
        let blob = quote!(::wdk_etw::__macro::EventBlob::#kind(&__WDK_ETW_EVENT));
        let arguments = in_order(&layout, &blob, &quote!(#options), &passed(&layout, &idents));
        let types: Vec<_> =
            event.fields.iter().map(|field| names::parameter(field, &quote!(super::))).collect();
        let calls = calls(event, &idents, &types);
        // The provider's module.
        let outer = quote!(super);
        let printed = self.provider.debugger.then(|| OfEvent::new(event, &blob, &options, &idents));
        let OfEvent { or_printed, docs, printed_only, printed_too } = printed.unwrap_or_default();
        let of_module = format!(" The descriptor, check and write of the event `{}`.", event.name);
        Ok(quote! {
            #[doc(inline)]
            #[allow(unused_imports)]
            #visibility use self::#ident::__wdk_etw_call as #ident;

            #[doc = #of_module]
            #quiet
            #visibility mod #ident {
                #calls

                static __WDK_ETW_EVENT: ::wdk_etw::__macro::EventBlob<#size> =
                    ::wdk_etw::__macro::EventBlob::new(DESCRIPTOR, *#metadata);

                /// The event descriptor.
                pub const DESCRIPTOR: ::wdk_etw::EventDescriptor =
                    ::wdk_etw::EventDescriptor::new(
                        #id,
                        #version,
                        ::wdk_etw::Level(#level),
                        ::wdk_etw::Keyword::from_bits(#keyword),
                    )
                    .with_task(#task)
                    .with_opcode(::wdk_etw::Opcode(#opcode))
                    .with_channel(::wdk_etw::Channel(#channel));

                /// Returns whether a session enables the event, ignoring the match-all keywords;
                /// see [`is_enabled_fast`](::wdk_etw::Provider::is_enabled_fast).
                #docs
                #inline
                #[must_use]
                pub fn is_enabled() -> ::core::primitive::bool {
                    #or_printed ::wdk_etw::Provider::is_enabled_fast(
                        &#outer::PROVIDER,
                        ::wdk_etw::Level(#level),
                        ::wdk_etw::Keyword::from_bits(#keyword),
                    )
                }

                #admits

                /// Writes the event, or does nothing while the provider is not registered.
                /// `options` is a `&`[`WriteOptions`](::wdk_etw::WriteOptions).
                ///
                /// Check [`is_enabled`] first: it costs less than a write that ETW discards.
                ///
                /// # IRQL
                ///
                /// Any. The arguments must be in system space and, above `APC_LEVEL`, in
                /// non-pageable memory; see
                /// [`EventDataDescriptor`](::wdk_etw::EventDataDescriptor).
                ///
                /// # Errors
                ///
                /// Returns a [`WriteError`](::wdk_etw::WriteError). The provider also counts the
                /// failure.
                #inline
                pub fn write<O: ::wdk_etw::__macro::Options>(
                    #options: O,
                    #(#idents: #types),*
                ) -> ::core::result::Result<(), ::wdk_etw::WriteError> {
                    #printed_too
                    if !::wdk_etw::Provider::is_open(&#outer::PROVIDER) {
                        return ::core::result::Result::Ok(());
                    }
                    ::wdk_etw::WriteError::check(
                        #outer::#writer(#arguments),
                    )
                }

                #[doc(hidden)]
                #inline
                pub fn __wdk_etw_write<O: ::wdk_etw::__macro::Options>(
                    #options: O,
                    #(#idents: #types),*
                ) -> ::core::result::Result<(), ::wdk_etw::WriteError> {
                    #printed_only
                    ::wdk_etw::WriteError::check(
                        #outer::#writer(#arguments),
                    )
                }
            }
        })
    }
}
