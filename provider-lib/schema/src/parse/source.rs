//! The declarations in a Rust source file.

use quote::ToTokens as _;
use syn::{Attribute, Item, ItemMod, Meta};

use super::provider;
use crate::Provider;

/// Parses the providers that a Rust source file declares, including those in nested modules.
///
/// # Errors
///
/// Returns all errors of the file and its declarations, each with its source location.
pub fn source(text: &str) -> syn::Result<Vec<Provider>> {
    let file = syn::parse_file(text)?;
    let mut providers = Vec::new();
    collect(&file.items, &mut providers)?;
    Ok(providers)
}

/// Returns whether an attribute is `#[provider]`, with any path.
fn is_provider(attribute: &Attribute) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|last| last.ident == "provider")
}

fn collect(items: &[Item], providers: &mut Vec<Provider>) -> syn::Result<()> {
    for item in items {
        let Item::Mod(module) = item else { continue };
        match module.attrs.iter().position(is_provider) {
            Some(at) => providers.push(declaration(module, at)?),
            None => {
                if let Some((_, items)) = &module.content {
                    collect(items, providers)?;
                }
            }
        }
    }
    Ok(())
}

fn declaration(module: &ItemMod, attribute: usize) -> syn::Result<Provider> {
    let mut module = module.clone();
    let arguments = match module.attrs.remove(attribute).meta {
        Meta::List(list) => list.tokens,
        other => {
            return Err(syn::Error::new_spanned(
                other,
                "the provider has no name; write `#[provider(name = \"Contoso.Driver\")]`",
            ));
        }
    };
    provider(arguments, module.into_token_stream())
}

#[cfg(test)]
mod tests {
    use super::source;

    #[test]
    fn declarations_in_nested_modules_are_found() {
        let providers = source(
            r#"
            mod trace {
                #[wdk_etw::provider(name = "A")]
                mod one {
                    /// It happened.
                    #[event(level = Info, keyword = none)]
                    pub fn happened(#[hex] code: u32, text: &str);
                }
            }
            #[provider(name = "B")]
            pub mod two {}
            fn other() {}
            "#,
        )
        .unwrap();
        let names: Vec<&str> = providers.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["A", "B"]);
        assert_eq!(providers[0].events[0].fields.len(), 2);
    }

    #[test]
    fn errors_have_source_locations() {
        let error = source(
            "#[provider(name = \"A\")]\nmod one {\n    #[event(level = Loud)]\n    fn x();\n}",
        )
        .unwrap_err();
        let start = error.span().start();
        assert_eq!((start.line, start.column), (3, 20));
        assert!(source("#[provider]\nmod one {}").is_err());
        assert!(source("fn (").is_err());
    }
}
