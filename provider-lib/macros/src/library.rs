//! The path of the library in generated code: `::wdk_etw`, unless the author gives another path.

use proc_macro2::{Group, TokenStream, TokenTree};
use syn::{
    Path, Token,
    ext::IdentExt as _,
    parse::{ParseStream, Parser as _},
};

/// Returns the path in the argument `crate = path`, if present.
pub fn path(arguments: &TokenStream) -> syn::Result<Option<Path>> {
    let parse = |input: ParseStream<'_>| {
        let mut path = None;
        while !input.is_empty() {
            if input.peek(Token![crate]) && input.peek2(Token![=]) {
                syn::Ident::parse_any(input)?;
                input.parse::<Token![=]>()?;
                path = Some(Path::parse_mod_style(input)?);
            } else {
                input.parse::<TokenTree>()?;
            }
        }
        Ok(path)
    };
    parse.parse2(arguments.clone())
}

/// Keywords that can precede a path beginning with `::`. After other words, `::` continues a path.
const BEFORE_PATHS: [&str; 8] = ["as", "dyn", "for", "impl", "in", "mut", "return", "use"];

/// Replaces `::wdk_etw` at the start of a path with another path.
pub fn replace(code: TokenStream, path: &TokenStream) -> TokenStream {
    let mut replaced: Vec<TokenTree> = Vec::new();
    let is_colon =
        |token: &TokenTree| matches!(token, TokenTree::Punct(one) if one.as_char() == ':');
    for token in code {
        match token {
            TokenTree::Ident(name)
                if name == "wdk_etw"
                    && replaced.len() >= 2
                    && replaced.iter().rev().take(2).all(is_colon)
                    && replaced.iter().rev().nth(2).is_none_or(|before| match before {
                        TokenTree::Ident(word) => BEFORE_PATHS.contains(&word.to_string().as_str()),
                        _ => true,
                    }) =>
            {
                replaced.truncate(replaced.len() - 2);
                replaced.extend(path.clone());
            }
            TokenTree::Group(group) => {
                let inside = replace(group.stream(), path);
                let mut new = Group::new(group.delimiter(), inside);
                new.set_span(group.span());
                replaced.push(new.into());
            }
            other => replaced.push(other),
        }
    }
    replaced.into_iter().collect()
}
