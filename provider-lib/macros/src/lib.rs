//! The proc macros of `wdk-etw`, whose documentation covers them.

mod ad_hoc;
mod configured;
#[cfg(test)]
mod expanded;
mod library;
mod mirror;
mod names;
mod provider;
mod writer;

use proc_macro::TokenStream;
use quote::ToTokens as _;

/// Generates a provider and its events from the declaration in a module.
#[proc_macro_attribute]
pub fn provider(arguments: TokenStream, module: TokenStream) -> TokenStream {
    let arguments = arguments.into();
    library::path(&arguments)
        .and_then(|path| {
            let code = configured::provider(arguments, module.into())?;
            Ok(match path {
                Some(path) => library::replace(code, &path.into_token_stream()),
                None => code,
            })
        })
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Declares a `TraceLogging` event and writes it. The first token is the library's name.
#[proc_macro]
pub fn event(tokens: TokenStream) -> TokenStream {
    let mut tokens = proc_macro2::TokenStream::from(tokens).into_iter();
    let library = tokens.next().into_token_stream();
    wdk_etw_schema::parse::ad_hoc(tokens.collect())
        .and_then(|event| Ok(library::replace(ad_hoc::expand(&event)?, &library)))
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
