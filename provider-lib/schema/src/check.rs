//! What must hold between the parts of a declaration.

use std::collections::{HashMap, HashSet};

use proc_macro2::Span;
use syn::Ident;

use crate::{
    Encoding, Field, FieldType, Layout, Provider, Structure,
    errors::Errors,
    tracelogging::{self, Types},
};

/// Channels that keywords have bits for.
const MOST_CHANNELS: usize = 8;

/// Everything that must hold.
pub fn provider(provider: &Provider, errors: &mut Errors) {
    unique(
        provider
            .keywords
            .iter()
            .map(|keyword| (keyword.bit, keyword.bit_span, &keyword.ident)),
        "keyword",
        "bit",
        errors,
    );
    unique(
        provider
            .tasks
            .iter()
            .map(|task| (task.value, task.value_span, &task.ident)),
        "task",
        "number",
        errors,
    );
    unique(
        provider
            .opcodes
            .iter()
            .map(|opcode| (opcode.value, opcode.value_span, &opcode.ident)),
        "opcode",
        "number",
        errors,
    );
    unique(
        provider.channels.iter().map(|channel| {
            let named = &channel.named;
            (named.value, named.value_span, &named.ident)
        }),
        "channel",
        "number",
        errors,
    );
    if let Some(channel) = provider.channels.get(MOST_CHANNELS) {
        errors.at(
            channel.named.value_span,
            "a provider has 8 channels at most: each has one of the keywords' highest 8 bits",
        );
    }
    for map in &provider.maps {
        unique(
            map.entries
                .iter()
                .map(|entry| (entry.value, entry.value_span, &entry.ident)),
            "entry",
            "value",
            errors,
        );
    }
    names(provider, errors);
    let known = errors.is_empty();
    for structure in &provider.structures {
        if let Err(error) = fields(&structure.fields) {
            errors.push(error);
        }
        declared(&structure.fields, provider, errors);
        if holds(structure, structure, provider, 0) {
            errors.at(
                structure.ident.span(),
                "the structure holds itself; an event's layout has an end",
            );
        }
    }
    events(provider, errors);
    // Layouts are of use only when what they are made of is right.
    if known && errors.is_empty() {
        layouts(provider, errors);
    }
}

/// What the macro makes besides the events and keywords.
const MADE: &[&str] = &["register", "unregister", "PROVIDER", "ID", "GROUP"];

/// Nothing is called what something else is that the macro makes.
fn names(provider: &Provider, errors: &mut Errors) {
    let events = provider.events.iter().map(|event| &event.ident);
    let keywords = provider.keywords.iter().map(|keyword| &keyword.ident);
    let mut seen = HashSet::new();
    for ident in events.chain(keywords) {
        if MADE.iter().any(|made| ident == made) {
            errors.at(
                ident.span(),
                format!("the macro makes something that is called `{ident}`; choose another name"),
            );
        } else if !seen.insert(ident) {
            errors.at(
                ident.span(),
                format!("there is something that is called `{ident}` already; choose another name"),
            );
        }
    }
}

/// Whether a structure is inside another, at whatever depth.
fn holds(inner: &Structure, outer: &Structure, provider: &Provider, depth: usize) -> bool {
    depth <= provider.structures.len()
        && outer.fields.iter().any(|field| match &field.kind {
            FieldType::Named(name) => provider
                .structures
                .iter()
                .find(|structure| structure.ident == *name)
                .is_some_and(|found| {
                    found.ident == inner.ident || holds(inner, found, provider, depth + 1)
                }),
            FieldType::Values(..) => false,
        })
}

/// No two of them have the same value.
fn unique<'a, T: std::hash::Hash + Eq + std::fmt::Display>(
    entries: impl Iterator<Item = (T, Span, &'a Ident)>,
    what: &str,
    value: &str,
    errors: &mut Errors,
) {
    let mut seen = HashMap::new();
    for (number, span, ident) in entries {
        let message = format!("the {value} {number} is that of the {what} ");
        if let Some(first) = seen.insert(number, ident) {
            errors.at(span, format!("{message}`{first}` already; choose another"));
        }
    }
}

/// The types that fields name are there.
fn declared(fields: &[Field], provider: &Provider, errors: &mut Errors) {
    let types = Types::of(provider);
    for field in fields {
        if let FieldType::Named(name) = &field.kind
            && types.map(name).is_none()
            && types.structure(name).is_none()
        {
            errors.push(crate::types::undeclared(name));
        }
    }
}

/// Fields' names are different.
pub fn fields(fields: &[Field]) -> syn::Result<()> {
    let mut seen = HashSet::new();
    for field in fields {
        if !seen.insert(&field.name) {
            return Err(syn::Error::new(
                field.ident.span(),
                format!(
                    "there is a field called `{}` already; rename one",
                    field.name
                ),
            ));
        }
    }
    Ok(())
}

fn events(provider: &Provider, errors: &mut Errors) {
    let mut ids = HashMap::new();
    for event in &provider.events {
        if let Err(error) = fields(&event.fields) {
            errors.push(error);
        }
        declared(&event.fields, provider, errors);
        // Id 0 is what `TraceLogging` events have that are known by their names.
        if event.encoding == Encoding::TraceLogging && event.id == 0 {
            continue;
        }
        if let Some(first) = ids.insert((event.id, event.version), &event.ident) {
            errors.at(
                event.id_span,
                format!(
                    "the event `{first}` has id {} and version {} already, which stand for one \
                     layout for ever; choose another id, or raise the version",
                    event.id, event.version
                ),
            );
        }
        if let Some(field) = event
            .fields
            .iter()
            .find(|field| event.encoding == Encoding::Manifest && field.tag != 0)
        {
            errors.at(
                field.ident.span(),
                "tags travel with events that describe themselves; use `encoding = tracelogging`",
            );
        }
    }
}

fn layouts(provider: &Provider, errors: &mut Errors) {
    let types = Types::of(provider);
    for event in &provider.events {
        let described = match event.encoding {
            Encoding::Manifest => Ok(0),
            Encoding::TraceLogging => {
                tracelogging::description(&event.name, event.tag, &event.fields, types)
                    .map(|block| block.len())
            }
        };
        let layout = described.and_then(|described| {
            Layout::of(
                &event.fields,
                event.encoding,
                types,
                described,
                event.ident.span(),
            )
        });
        if let Err(error) = layout {
            errors.push(error);
        }
    }
}
