//! A macro that calls the framework's functions by name.
//!
//! Microsoft's macro in wdk-macros takes the path of the file with the functions' types as a
//! literal, which the published wdk-sys writes into a generated source file. The compiler puts that
//! file's hash into debug information, so the same source would produce different images in
//! different folders. This macro instead passes the path of a file that this crate's build script
//! writes.

use proc_macro::{Delimiter, Group, Literal, Punct, Spacing, TokenStream, TokenTree};

/// The types of the framework's functions.
const TYPES: &str = concat!(env!("OUT_DIR"), "/framework.rs");

/// Calls a framework function by name, and returns its result.
///
/// The expansion must be in an `unsafe` block, and the arguments must satisfy the function's
/// documentation. The driver must be bound to the framework.
#[proc_macro]
pub fn call_unsafe_wdf_function_binding(arguments: TokenStream) -> TokenStream {
    let mut call: TokenStream =
        "::wdk_sys::__proc_macros::call_unsafe_wdf_function_binding!".parse().unwrap_or_default();
    let mut all = TokenStream::from(TokenTree::from(Literal::string(TYPES)));
    all.extend([TokenTree::from(Punct::new(',', Spacing::Alone))]);
    all.extend(arguments);
    call.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, all))]);
    call
}
