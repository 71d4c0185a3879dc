//! The declarations in a Rust source file.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Item, ItemMod, Meta, spanned::Spanned as _};

use super::{
    attributes::{can_be_provider, is_provider},
    configure::keep,
    provider,
};
use crate::{
    Configuration, Provider, attribute,
    errors::{Errors, Tokens, bail},
};

/// Parses the providers that a Rust source file declares, including those in nested modules.
///
/// # Errors
///
/// Returns all errors of the file and its declarations, each with its source location.
pub fn source(text: &str) -> syn::Result<Vec<Provider>> {
    source_in(text, &Configuration::new())
}

/// Parses the providers that a Rust source file declares in this configuration.
///
/// # Errors
///
/// Returns all errors of the file and its declarations, each with its source location, and an error
/// at each `#[cfg(…)]` of a declaration whose value the configuration does not determine.
pub fn source_in(text: &str, configuration: &Configuration) -> syn::Result<Vec<Provider>> {
    let mut file = syn::parse_file(text)?;
    let mut providers = Vec::new();
    collect(&file.items, configuration, &mut providers)?;
    if !providers.is_empty() && !keep(&mut file.attrs, configuration)? {
        providers.clear();
    }
    Ok(providers)
}

/// Returns the source locations of the providers that [`source`] does not find: those in macros, in
/// functions and in the modules of other providers. Skips items that the configuration disables.
///
/// # Errors
///
/// Returns the file's first syntax error.
pub fn unseen(text: &str, configuration: &Configuration) -> syn::Result<Vec<Span>> {
    let mut found = Vec::new();
    unseen_in(&syn::parse_file(text)?.items, configuration, &mut found);
    Ok(found)
}

fn unseen_in(items: &[Item], configuration: &Configuration, found: &mut Vec<Span>) {
    for item in items {
        let mut attributes = attribute::of_item(item).to_vec();
        if matches!(keep(&mut attributes, configuration), Ok(false)) {
            continue;
        }
        match item {
            Item::Mod(ItemMod { content: Some((_, items)), .. }) => {
                let is_provider = matches!(item, Item::Mod(module) if can_be_provider(module));
                if is_provider {
                    let inside = items.iter().map(quote::ToTokens::to_token_stream);
                    inside.for_each(|tokens| declared_in(tokens, found));
                } else {
                    unseen_in(items, configuration, found);
                }
            }
            other => declared_in(other.to_token_stream(), found),
        }
    }
}

/// Finds attributes with the arguments of a provider before modules in tokens.
fn declared_in(tokens: TokenStream, found: &mut Vec<Span>) {
    let mut follows_hash = false;
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        if let TokenTree::Group(group) = &token {
            if follows_hash && declares(group.stream()) {
                if is_module(tokens.clone()) {
                    found.push(group.span());
                }
            } else {
                declared_in(group.stream(), found);
            }
        }
        follows_hash = matches!(&token, TokenTree::Punct(one) if one.as_char() == '#');
    }
}

/// Returns whether an item's tokens after one of its attributes declare a module: others can have an
/// attribute of this name from another crate.
fn is_module(tokens: impl Iterator<Item = TokenTree>) -> bool {
    let is_head = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() != Delimiter::Brace,
        TokenTree::Punct(one) => one.as_char() != ';',
        TokenTree::Ident(_) | TokenTree::Literal(_) => true,
    };
    tokens.take_while(is_head).any(|token| matches!(token, TokenTree::Ident(word) if word == "mod"))
}

/// Returns whether an attribute contains `provider(name …)`, directly or in `cfg_attr`.
fn declares(attribute: TokenStream) -> bool {
    let mut follows_provider = false;
    attribute.into_iter().any(|token| {
        let is_declared = match &token {
            TokenTree::Group(group) => {
                let mut inside = group.stream().into_iter();
                let is_name = |token| matches!(token, TokenTree::Ident(word) if word == "name");
                declares(group.stream()) || follows_provider && inside.any(is_name)
            }
            _ => false,
        };
        follows_provider = matches!(&token, TokenTree::Ident(word) if word == "provider");
        is_declared
    })
}

fn collect(
    items: &[Item],
    configuration: &Configuration,
    providers: &mut Vec<Provider>,
) -> syn::Result<()> {
    for item in items {
        let Item::Mod(module) = item else { continue };
        if can_be_provider(module) {
            let mut module = module.clone();
            if !keep(&mut module.attrs, configuration)? {
                continue;
            }
            if let Some(at) = module.attrs.iter().position(is_provider) {
                providers.push(declaration(module, at, configuration)?);
            }
        } else if let Some((_, items)) = &module.content {
            let mut inside = Vec::new();
            collect(items, configuration, &mut inside)?;
            // The conditions of other modules are irrelevant.
            if !inside.is_empty() && keep(&mut module.attrs.clone(), configuration)? {
                providers.append(&mut inside);
            }
        }
    }
    Ok(())
}

fn declaration(
    mut module: ItemMod,
    attribute: usize,
    configuration: &Configuration,
) -> syn::Result<Provider> {
    let attribute = module.attrs.remove(attribute);
    let whole = attribute.span();
    let arguments = match attribute.meta {
        Meta::List(list) => list.tokens,
        other => {
            bail!(
                Tokens(other),
                "the provider has no name; write `#[provider(name = \"Contoso.Driver\")]`",
            );
        }
    };
    provider(arguments, module.into_token_stream(), configuration)
        .map_err(|error| with_places(error, whole))
}

/// Places an error about a whole declaration at its attribute, as the compiler does. Outside the
/// compiler, the error's span refers to no source text.
fn with_places(error: syn::Error, whole: Span) -> syn::Error {
    let mut errors = Errors::default();
    for error in error.clone() {
        if error.span().byte_range().is_empty() {
            errors.push(syn::Error::new(whole, error));
        } else {
            errors.push(error);
        }
    }
    errors.into_inner().unwrap_or(error)
}

#[cfg(test)]
mod tests {
    use super::{source, source_in, unseen};
    use crate::Configuration;

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

    const CONDITIONAL: &str = r#"
        #[cfg(feature = "etw")]
        mod outer {
            #[cfg_attr(feature = "etw", provider(name = "A"))]
            #[cfg(not(test))]
            mod one {
                #[cfg(feature = "more")]
                #[keyword]
                const MORE: Keyword = Keyword::bit(0);
                #[cfg(not(feature = "more"))]
                #[keyword]
                const MORE: Keyword = Keyword::bit(1);
                #[map]
                enum Kind { One = 1, #[cfg(feature = "more")] Two = 2 }
                #[structure]
                struct Place { x: u32, #[cfg(feature = "more")] y: u32 }
                #[cfg(unknown)]
                use other::Thing;
                #[event(level = Info, keyword = MORE)]
                fn always(a: u32, #[cfg(feature = "more")] #[cfg_attr(feature = "more", hex)] b: u32);
                #[cfg_attr(feature = "more", cfg(false))]
                #[event(level = Info, keyword = none)]
                fn less();
            }
        }
        #[cfg(unknown)]
        mod without_provider {}
    "#;

    #[test]
    fn conditions_are_evaluated() {
        let features = |features: &[&str]| {
            let mut configuration = Configuration::new();
            for feature in features {
                configuration.set("feature", Some(feature), true);
            }
            configuration.close("feature");
            configuration.close("test");
            source_in(CONDITIONAL, &configuration).unwrap()
        };
        assert!(features(&[]).is_empty());
        let counts = |features: &[crate::Provider]| {
            let [one] = features else { panic!("one provider") };
            let fields = one.events.iter().map(|event| event.fields.len());
            (
                one.keywords[0].bit,
                one.maps[0].entries.len(),
                one.structures[0].fields.len(),
                fields.collect::<Vec<_>>(),
            )
        };
        assert_eq!(counts(&features(&["etw"])), (1, 1, 1, vec![1, 0]));
        assert_eq!(counts(&features(&["etw", "more"])), (0, 2, 2, vec![2]));
        let error = source(CONDITIONAL).unwrap_err().to_string();
        assert!(error.contains("is unknown outside the compiler"), "{error}");
    }

    #[test]
    fn only_providers_of_the_build_are_unseen() {
        let mut configuration = Configuration::new();
        configuration.close("test");
        let provider = "#[wdk_etw::provider(name = \"A\")] #[cfg(unknown)] pub(crate) mod p {}";
        for (text, count) in [
            (format!("fn f() {{ {provider} }}"), 1),
            (format!("#[cfg(unknown)] mod m {{ made! {{ {provider} }} }}"), 1),
            (format!("#[cfg(test)] mod tests {{ fn f() {{ {provider} }} }}"), 0),
            (format!("#[cfg(test)] fn f() {{ {provider} }}"), 0),
            // Attributes of another crate.
            ("fn f() { #[other::provider(name = \"A\")] struct S { module: u8 } }".to_owned(), 0),
            ("#[provider(name = \"A\")] fn f() { mod inner {} }".to_owned(), 0),
            ("fn f() { #[provider(name = \"A\")] static S: u8 = 0; mod m {} }".to_owned(), 0),
        ] {
            assert_eq!(unseen(&text, &configuration).unwrap().len(), count, "{text}");
        }
    }

    #[test]
    fn a_files_own_condition_applies_to_its_declarations() {
        let mut configuration = Configuration::new();
        configuration.set("feature", Some("etw"), true);
        configuration.close("feature");
        let count = |condition: &str| {
            let text = format!("#![cfg({condition})]\n#[provider(name = \"A\")]\nmod one {{}}");
            source_in(&text, &configuration).unwrap().len()
        };
        assert_eq!(count("feature = \"etw\""), 1);
        assert_eq!(count("not(feature = \"etw\")"), 0);
        // A file without a declaration may have any condition.
        assert_eq!(source("#![cfg(unknown)]").unwrap().len(), 0);
    }
}
