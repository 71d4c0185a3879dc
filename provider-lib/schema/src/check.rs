//! Checks of the relations between the items of a declaration.

use std::collections::{HashMap, HashSet};

use proc_macro2::Span;
use syn::Ident;

use crate::{
    Encoding, Field, FieldType, Layout, Provider, Structure,
    errors::Errors,
    tracelogging::{self, Types},
};

/// The maximum number of channels: eight bits of the keyword mask stand for channels.
const MAX_CHANNELS: usize = 8;

/// Checks a provider, and adds all errors that it finds.
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
    if let Some(channel) = provider.channels.get(MAX_CHANNELS) {
        errors.at(
            channel.named.value_span,
            format!(
                "a provider can have at most {MAX_CHANNELS} channels, because each takes one of the \
                 highest 8 keyword bits; remove this one"
            ),
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
        let mut inner = structure.fields.iter();
        if let Some(field) = inner.find(|field| holds(structure, field, provider, 0)) {
            errors.at(
                structure.ident.span(),
                format!(
                    "the structure `{}` contains itself through the field `{}`; remove that field",
                    structure.ident, field.ident
                ),
            );
        }
    }
    events(provider, errors);
    // Layouts can be computed only for declarations without other errors.
    if known && errors.is_empty() {
        layouts(provider, errors);
    }
}

/// The names of the items that the macro generates in addition to events and keywords.
const MADE: &[&str] = &["register", "unregister", "PROVIDER", "ID", "GROUP"];

/// Checks that all generated items have different names.
fn names(provider: &Provider, errors: &mut Errors) {
    let events = provider.events.iter().map(|event| &event.ident);
    let keywords = provider.keywords.iter().map(|keyword| &keyword.ident);
    let mut seen = HashSet::new();
    for ident in events.chain(keywords) {
        if MADE.iter().any(|made| ident == made) {
            errors.at(
                ident.span(),
                format!(
                    "the name `{ident}` is reserved for an item that the macro generates; choose \
                     another name"
                ),
            );
        } else if !seen.insert(ident) {
            errors.at(
                ident.span(),
                format!(
                    "the name `{ident}` is already used in this declaration; choose another name"
                ),
            );
        }
    }
}

/// Returns whether `outer` contains `inner` at any depth.
fn holds(inner: &Structure, field: &Field, provider: &Provider, depth: usize) -> bool {
    depth <= provider.structures.len()
        && match &field.kind {
            FieldType::Named(name) => provider
                .structures
                .iter()
                .find(|structure| structure.ident == *name)
                .is_some_and(|found| {
                    let mut fields = found.fields.iter();
                    found.ident == inner.ident
                        || fields.any(|field| holds(inner, field, provider, depth + 1))
                }),
            FieldType::Values(..) => false,
        }
}

/// Checks that all entries have different values.
fn unique<'a, T: std::hash::Hash + Eq + std::fmt::Display>(
    entries: impl Iterator<Item = (T, Span, &'a Ident)>,
    what: &str,
    value: &str,
    errors: &mut Errors,
) {
    let mut seen = HashMap::new();
    for (number, span, ident) in entries {
        let message = format!("the {what} `{ident}` has the {value} {number}");
        if let Some(first) = seen.insert(number, ident) {
            errors.at(
                span,
                format!("{message}, which `{first}` already has; choose another {value}"),
            );
        }
    }
}

/// Checks that all types that fields refer to are declared.
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

/// Checks that all fields have different names.
pub fn fields(fields: &[Field]) -> syn::Result<()> {
    let mut seen = HashSet::new();
    for field in fields {
        if !seen.insert(&field.name) {
            return Err(syn::Error::new(
                field.ident.span(),
                format!(
                    "another field is already named `{}`; rename one of them",
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
        // `TraceLogging` events without an id have id 0 and are identified by their names.
        if event.encoding == Encoding::TraceLogging && event.id == 0 {
            continue;
        }
        if let Some(first) = ids.insert((event.id, event.version), &event.ident) {
            errors.at(
                event.id_span,
                format!(
                    "the event `{}` has id {} and version {}, which the event `{first}` already has; \
                     choose another id or increase the version",
                    event.ident, event.id, event.version
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
                format!(
                    "the field `{}` has a tag, which only TraceLogging events can have; remove the \
                     tag or use `encoding = tracelogging`",
                    field.ident
                ),
            );
        }
    }
}

fn layouts(provider: &Provider, errors: &mut Errors) {
    let types = Types::of(provider);
    for event in &provider.events {
        let metadata_size = match event.encoding {
            Encoding::Manifest => Ok(0),
            Encoding::TraceLogging => {
                tracelogging::event_metadata(&event.name, event.tag, &event.fields, types)
                    .map(|block| block.len())
            }
        };
        let layout = metadata_size.and_then(|metadata_size| {
            Layout::of(
                &event.fields,
                event.encoding,
                types,
                metadata_size,
                event.ident.span(),
            )
        });
        if let Err(error) = layout {
            errors.push(error);
        }
    }
}
