//! Checks of the relations between the items of a declaration.

use std::collections::{HashMap, HashSet};

use proc_macro2::Span;
use syn::Ident;

use crate::{
    Encoding, Field, FieldType, Layout, Map, Provider, Scalar, Shape, Structure,
    errors::Errors,
    tracelogging::{self, Types},
};

/// The maximum number of channels: eight bits of the keyword mask stand for channels.
const MAX_CHANNELS: usize = 8;

/// Checks a provider, and adds all errors that it finds.
pub fn provider(provider: &Provider, errors: &mut Errors) {
    numbers(provider, errors);
    for (at, map) in provider.maps.iter().enumerate() {
        let mut before = provider.maps[..at].iter();
        if let Some(first) = before.find(|first| first.name == map.name) {
            same_map(first, map, errors);
        }
    }
    names(provider, errors);
    let known = errors.is_empty();
    for structure in &provider.structures {
        if let Err(error) = fields(&structure.fields) {
            errors.push(error);
        }
        declared(&structure.fields, provider, errors);
        for field in &structure.fields {
            if let Some(named) = counted_by(field) {
                errors.at(
                    named.span(),
                    "a member of a structure cannot have its length or count in another field; \
                     remove `field`, and the length or count comes right before the member"
                        .to_owned(),
                );
            }
        }
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

/// Checks that the numbers of keywords, levels, tasks, opcodes, channels and maps' entries are unique.
fn numbers(provider: &Provider, errors: &mut Errors) {
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
        provider
            .levels
            .iter()
            .map(|level| (level.value, level.value_span, &level.ident)),
        "level",
        "number",
        errors,
    );
    for list in &provider.task_opcodes {
        // Several lists can have the same task.
        let same = provider.task_opcodes.iter();
        let same = same.filter(|other| other.task == list.task);
        if !same
            .clone()
            .next()
            .is_some_and(|first| std::ptr::eq(first, list))
        {
            continue;
        }
        unique(
            same.flat_map(|list| &list.opcodes)
                .map(|opcode| (opcode.value, opcode.value_span, &opcode.ident)),
            "opcode",
            "number",
            errors,
        );
        if !provider.tasks.iter().any(|task| task.ident == list.task) {
            let names = provider.tasks.iter().map(|task| task.ident.to_string());
            errors.push(crate::parse::undeclared("task", &list.task, names));
        }
    }
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
}

/// Checks a type with the name of another map: both must be one map, for values of another width.
fn same_map(first: &Map, second: &Map, errors: &mut Errors) {
    if first.kind != second.kind || first.scalar == second.scalar {
        errors.at(
            second.ident.span(),
            format!(
                "the map `{}` has the name `{}`, which `{}` already has; choose another name (only \
                 types of the same kind and of different sizes can share one)",
                second.ident, second.name, first.ident
            ),
        );
        return;
    }
    for entry in &second.entries {
        let mut known = first.entries.iter();
        if known.any(|other| other.value == entry.value && other.name != entry.name) {
            errors.at(
                entry.ident.span(),
                format!(
                    "the value {} is `{}` here, and another name in `{}`, which is the same map `{}`; \
                     use one name",
                    entry.value, entry.name, first.ident, first.name
                ),
            );
        }
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
        let FieldType::Named(name) = &field.kind else {
            continue;
        };
        let map = types.map(name).map(|map| map.scalar);
        if map.is_none() && types.structure(name).is_none() {
            errors.push(crate::types::undeclared(name));
        } else if let Err(error) = field.form.check_named(map) {
            errors.push(error);
        }
    }
}

/// Checks that all fields have different names.
pub fn fields(fields: &[Field]) -> syn::Result<()> {
    let mut seen = HashSet::new();
    for field in fields {
        let counter = field.form.counter.as_ref();
        if let Some(name) = counter.and_then(|counter| counter.name.as_ref())
            && !seen.insert(name)
        {
            return Err(syn::Error::new(
                field.ident.span(),
                format!(
                    "the length or count of the field `{}` is named `{name}`, as another field is; \
                     rename one of them",
                    field.name
                ),
            ));
        }
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

/// Returns the name of the field with a field's length or count.
fn counted_by(field: &Field) -> Option<&Ident> {
    field.form.counter.as_ref()?.field.as_ref()
}

/// Checks that each field with a length or count is an unsigned integer before the value.
fn counters(fields: &[Field], errors: &mut Errors) {
    for (at, field) in fields.iter().enumerate() {
        let Some(named) = counted_by(field) else {
            continue;
        };
        let known = fields[..at].iter().find(|other| other.ident == *named);
        let is_number = known.is_some_and(|other| {
            matches!(
                other.kind,
                FieldType::Values(
                    Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64,
                    _,
                    Shape::One
                )
            )
        });
        if !is_number {
            errors.at(
                named.span(),
                format!(
                    "the length or count of `{}` must be an earlier field of the event, of type `u8`, \
                     `u16`, `u32` or `u64`; `{named}` is not",
                    field.ident
                ),
            );
        }
    }
}

fn events(provider: &Provider, errors: &mut Errors) {
    let mut ids = HashMap::new();
    for event in &provider.events {
        if let Err(error) = fields(&event.fields) {
            errors.push(error);
        }
        declared(&event.fields, provider, errors);
        counters(&event.fields, errors);
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
