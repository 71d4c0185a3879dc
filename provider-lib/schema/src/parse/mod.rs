//! The parser of declarations in Rust source.

mod ad_hoc;
mod event;
mod items;
mod module;
mod settings;
mod source;

use proc_macro2::TokenStream;

pub(crate) use self::event::undeclared;
pub use self::{
    ad_hoc::{AdHoc, ad_hoc},
    source::source,
};
use self::{
    event::event,
    items::put_item,
    module::{Entry, Module},
    settings::Settings,
};
use crate::{Provider, check, errors::Errors};

/// Parses a provider from the arguments of `#[provider(…)]` and the module.
///
/// # Errors
///
/// Returns all errors of the declaration, each at its token.
pub fn provider(arguments: TokenStream, module: TokenStream) -> syn::Result<Provider> {
    let settings: Settings = syn::parse2(arguments)?;
    let module: Module = syn::parse2(module)?;
    let mut errors = Errors::default();
    let mut provider = Provider {
        guid: settings.guid,
        name: settings.name,
        group: settings.group,
        traits: settings.traits,
        encoding: settings.encoding,
        hooks: settings.hooks,
        binary_tracking: settings.binary_tracking,
        manifest: settings.manifest,
        module: module.ident,
        visibility: module.visibility,
        attributes: module.attributes,
        keywords: Vec::new(),
        tasks: Vec::new(),
        opcodes: Vec::new(),
        task_opcodes: Vec::new(),
        levels: Vec::new(),
        channels: Vec::new(),
        maps: Vec::new(),
        structures: Vec::new(),
        events: Vec::new(),
        others: Vec::new(),
    };
    let mut functions = Vec::new();
    for entry in module.entries {
        match entry {
            Entry::Function(function) => functions.push(function),
            Entry::Item(item) => {
                errors.take(put_item(&mut provider, item));
            }
        }
    }
    // Events come last because they refer to the other items.
    for function in functions {
        if let Some(event) = errors.take(event(&function, &provider)) {
            provider.events.push(event);
        }
    }
    check::provider(&provider, &mut errors);
    errors.finish(provider)
}
