//! The proc macros of `wdk-etw`. That crate documents them.

mod ad_hoc;
mod configured;
mod names;
mod provider;
mod writer;

use proc_macro::TokenStream;

/// Generates a provider and its events from the declaration in a module.
#[proc_macro_attribute]
pub fn provider(arguments: TokenStream, module: TokenStream) -> TokenStream {
    configured::provider(arguments.into(), module.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Declares and writes a `TraceLogging` event in one place.
#[proc_macro]
pub fn event(tokens: TokenStream) -> TokenStream {
    wdk_etw_schema::parse::ad_hoc(tokens.into())
        .and_then(|event| ad_hoc::expand(&event))
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
