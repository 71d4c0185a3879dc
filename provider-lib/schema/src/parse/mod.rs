//! The parser of declarations in Rust source.

mod ad_hoc;
mod attributes;
mod autologger;
mod configure;
mod event;
mod items;
mod library;
mod module;
mod settings;
mod source;
mod words;

use std::collections::HashSet;

use proc_macro2::TokenStream;

pub use self::{
    ad_hoc::{AdHoc, Limit, ad_hoc},
    attributes::can_be_provider,
    configure::predicates,
    source::{source, source_in, unseen},
};
use self::{
    event::event,
    items::{declared_names, leave_out_users, own_types, put_item},
    module::{Entry, Module, uses},
    settings::Settings,
};
use crate::{Evaluate, Provider, check, errors::Errors};

/// Parses a provider from the arguments of `#[provider(…)]` and the module. `configuration`
/// evaluates the module's `#[cfg(…)]`.
///
/// # Errors
///
/// Returns all errors of the declaration, each at its token.
pub fn provider(
    arguments: TokenStream,
    module: TokenStream,
    configuration: &dyn Evaluate,
) -> syn::Result<Provider> {
    let (provider, error) = provider_without_faulty_events(arguments, module, configuration)?;
    error.map_or(Ok(provider), Err)
}

/// Parses a provider as [`provider`] does, but omits the events that have errors, and returns
/// these errors. So code that uses the other events compiles without further errors.
///
/// # Errors
///
/// Returns all errors of the declaration if any of them is outside the events.
pub fn provider_without_faulty_events(
    arguments: TokenStream,
    module: TokenStream,
    configuration: &dyn Evaluate,
) -> syn::Result<(Provider, Option<syn::Error>)> {
    let settings: Settings = syn::parse2(arguments)?;
    let mut module: Module = syn::parse2(module)?;
    configure::configure(&mut module, configuration)?;
    let mut errors = Errors::default();
    let name_span = settings.name_span;
    let mut provider = Provider {
        guid: settings.guid,
        name: settings.name,
        group: settings.group,
        traits: settings.traits,
        encoding: settings.encoding,
        hooks: settings.hooks,
        binary_tracking: settings.binary_tracking,
        statistics: settings.statistics,
        debugger: settings.debugger,
        stripes: settings.stripes,
        manifest: settings.manifest,
        autologger: None,
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
    let own = own_types(&module.entries);
    let mut functions = Vec::new();
    let mut faulty = HashSet::new();
    let mut of_events = Errors::default();
    for entry in module.entries {
        match entry {
            Entry::Function(function) => functions.push(function),
            Entry::Item(item) => {
                let names = declared_names(&item);
                if errors.take(put_item(&mut provider, item, &own)).is_none() {
                    faulty.extend(names);
                }
            }
            Entry::Refused(error) => of_events.push(error),
        }
    }
    leave_out_users(&mut provider, &mut faulty);
    functions.retain(|function| !uses(function, &faulty));
    // Events come last because they refer to the other items.
    for function in functions {
        if let Some(event) = of_events.take(event(&function, &provider, &own)) {
            provider.events.push(event);
        }
    }
    errors.take(library::complete(&mut provider));
    // The session's filters name keywords.
    if errors.is_empty()
        && let Some(written) = settings.autologger
    {
        provider.autologger = errors.take(written.resolve(&provider));
    }
    errors.take(check::name(&provider, name_span));
    check::keep_valid_events(&mut provider, &mut of_events);
    check::provider(&provider, &mut errors);
    if errors.is_empty() {
        return Ok((provider, of_events.into_inner()));
    }
    of_events.append(errors);
    of_events.finish((provider, None))
}
