//! The proc macros of `wdk-etw`, which documents them.

mod ad_hoc;
mod names;
mod provider;
mod writer;

use proc_macro::TokenStream;

/// Makes a module's declaration into a provider and its events.
#[proc_macro_attribute]
pub fn provider(arguments: TokenStream, module: TokenStream) -> TokenStream {
    wdk_etw_schema::parse::provider(arguments.into(), module.into())
        .and_then(|provider| provider::expand(&provider))
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Writes a `TraceLogging` event that is declared where it is written.
#[proc_macro]
pub fn event(tokens: TokenStream) -> TokenStream {
    wdk_etw_schema::parse::ad_hoc(tokens.into())
        .and_then(|event| ad_hoc::expand(&event))
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
