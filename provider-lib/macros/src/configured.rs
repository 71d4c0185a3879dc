//! `#[provider]` under the compiler's configuration.
//!
//! If the module has `#[cfg(…)]`, the macro runs twice: the first run makes the compiler evaluate
//! the predicates ([`Evaluated`]), and the second run receives the results.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Ident, Token,
    parse::{ParseStream, Parser as _},
};
use wdk_etw_schema::{Evaluated, parse};

use crate::provider::expand;

/// The argument that marks the second run.
const SECOND_RUN: &str = "__wdk_etw_configured";

/// Generates a provider, or the invocation of the second run.
pub fn provider(arguments: TokenStream, module: TokenStream) -> syn::Result<TokenStream> {
    let predicates = parse::predicates(module.clone())?;
    let (is_second, arguments) = split.parse2(arguments)?;
    if !is_second && !predicates.is_empty() {
        let markers = Evaluated::markers(&predicates);
        let word = Ident::new(SECOND_RUN, proc_macro2::Span::call_site());
        return Ok(quote! {
            #markers
            #[::wdk_etw::provider(#word, #arguments)]
            #module
        });
    }
    let (mut attributes, rest) = attributes.parse2(module)?;
    let evaluated = Evaluated::take(&predicates, &mut attributes);
    let module = attributes.iter().map(quote::ToTokens::to_token_stream).chain([rest]).collect();
    let (provider, error) = parse::provider_without_faulty_events(arguments, module, &evaluated)?;
    let mut expanded = expand(&provider)?;
    expanded.extend(error.map(|error| error.to_compile_error()));
    Ok(expanded)
}

/// Returns whether this is the second run, and the provider's own arguments.
fn split(input: ParseStream<'_>) -> syn::Result<(bool, TokenStream)> {
    let ahead = input.fork();
    let is_second = ahead.parse::<Ident>().is_ok_and(|word| word == SECOND_RUN);
    if is_second {
        input.parse::<Ident>()?;
        input.parse::<Token![,]>()?;
    }
    Ok((is_second, input.parse()?))
}

/// Returns a module's outer attributes, and the rest of the module.
fn attributes(input: ParseStream<'_>) -> syn::Result<(Vec<Attribute>, TokenStream)> {
    Ok((input.call(Attribute::parse_outer)?, input.parse()?))
}
