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

/// Returns whether `::` after these tokens begins a path.
fn begins_path(before: &[TokenTree]) -> bool {
    match before {
        // A lifetime, as in `&'static ::wdk_etw::Provider`.
        [.., TokenTree::Punct(quote), TokenTree::Ident(_)] if quote.as_char() == '\'' => true,
        [.., TokenTree::Ident(word)] => BEFORE_PATHS.contains(&word.to_string().as_str()),
        _ => true,
    }
}

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
                    && begins_path(&replaced[..replaced.len() - 2]) =>
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
            // The links in documentation.
            TokenTree::Literal(text) if matches!(&replaced[..], [.., TokenTree::Ident(word), _] if word == "doc") =>
            {
                let path = path.to_string().replace(' ', "");
                let linked = text.to_string().replace("::wdk_etw", &path);
                replaced.push(linked.parse().unwrap_or(text).into());
            }
            other => replaced.push(other),
        }
    }
    replaced.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn only_paths_of_the_library_are_replaced() {
        let code = quote! {
            fn f(a: &'static ::wdk_etw::A, b: &mut ::wdk_etw::B) -> [::wdk_etw::C; 1] { return ::wdk_etw::D; }
            use other::wdk_etw::E;
        };
        let expected = quote! {
            fn f(a: &'static $crate::A, b: &mut $crate::B) -> [$crate::C; 1] { return $crate::D; }
            use other::wdk_etw::E;
        };
        assert_eq!(replace(code, &quote!($crate)).to_string(), expected.to_string());
    }

    fn names_library(code: TokenStream) -> bool {
        code.into_iter().any(|token| match token {
            TokenTree::Group(group) => names_library(group.stream()),
            TokenTree::Literal(text) => text.to_string().contains("::wdk_etw"),
            other => other.to_string() == "wdk_etw",
        })
    }

    #[test]
    fn expansions_have_no_other_path_of_the_library() {
        let fields = quote! {
            a: u8, #[repr(u8)] b: usize, c: &str, d: &CStr, e: Arguments<'_>, f: HexDump<'_>, g: Sid<'_>,
            h: SocketAddr, i: [Guid; 2], j: &[NtStatus], k: UnicodeString<'_>, l: Pointer, m: Ipv6Addr
        };
        let declared = crate::configured::provider(
            quote!(
                name = "A",
                group = "faaf2f61-9b26-4591-9bb1-b9b8bae2d34c",
                statistics,
                debugger,
                on_enable = h
            ),
            quote! {
                mod trace {
                    #[keyword] const READ: Keyword = Keyword::bit(0);
                    #[map] enum Kind { One = 1 }
                    #[bitmap] enum Bits { One = 1 }
                    #[structure] struct Place { x: u32, kind: Kind }
                    #[structure] struct Name<'a> { text: &'a str, unicode: UnicodeString<'a>, dump: HexDump<'a> }
                    #[event(level = Info, keyword = READ)]
                    fn described(#fields, n: Name<'_>, o: &[Place], p: Bits);
                    #[event(id = 1, level = Info, keyword = READ)]
                    fn listed(#fields, n: u32, #[count(field = n)] o: &[u32]);
                }
            },
        );
        let at_call = wdk_etw_schema::parse::ad_hoc(quote! {
            P, "E", level = runtime(l), keyword = K | L, once, activity = a,
            { a: &str = "", b: HexDump<'_> = b, c: Arguments<'_> = c }
        });
        let at_call = at_call.and_then(|event| crate::ad_hoc::expand(&event));
        for code in [declared, at_call] {
            let code = code.unwrap();
            assert!(names_library(code.clone()));
            assert!(!names_library(replace(code.clone(), &quote!(other))), "{code}");
        }
    }
}
