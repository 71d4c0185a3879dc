//! Calls the framework's functions by their names.
//!
//! Microsoft's macro of wdk-macros takes the path of the file with the functions' types as a
//! literal. The published wdk-sys writes a macro with that path into a file when it is built;
//! the compiler puts the hash of such a file into debug information, so that the same source
//! would make another image in each folder. This macro has the path without a file.

use proc_macro::{Delimiter, Group, Literal, Punct, Spacing, TokenStream, TokenTree};

/// The types of the framework's functions.
const TYPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wdk-sys/src/types.rs");

/// Calls a function of the framework by its name. The result is the function's.
///
/// What it expands to stands in an `unsafe` block of its caller, who sees to it that the
/// arguments are what the function's documentation asks for, and that the driver is bound to
/// the framework.
#[proc_macro]
pub fn call_unsafe_wdf_function_binding(arguments: TokenStream) -> TokenStream {
    let mut call: TokenStream = "::wdk_sys::__proc_macros::call_unsafe_wdf_function_binding!"
        .parse()
        .unwrap_or_default();
    let mut all = TokenStream::from(TokenTree::from(Literal::string(TYPES)));
    all.extend([TokenTree::from(Punct::new(',', Spacing::Alone))]);
    all.extend(arguments);
    call.extend([TokenTree::from(Group::new(Delimiter::Parenthesis, all))]);
    call
}
