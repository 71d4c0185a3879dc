//! Checks of the relations between the items of a declaration.

use std::collections::{HashMap, HashSet};

use etw_wire::winmeta;
use proc_macro2::Span;
use syn::{Ident, Item, ext::IdentExt as _};

use crate::{
    Encoding, Event, Field, FieldType, Layout, Map, Named, Provider, Scalar, Shape, Structure,
    attribute::of_item as attributes,
    elements::element_size,
    errors::{Errors, Tokens, bail, error, quoted, undeclared},
    tracelogging::{self, Types},
};

/// The maximum number of channels: the keyword mask has eight bits for channels.
const MAX_CHANNELS: usize = 8;

/// Checks a provider, and adds all errors found.
pub fn provider(provider: &Provider, errors: &mut Errors) {
    numbers(provider, errors);
    for (at, map) in provider.maps.iter().enumerate() {
        let mut before = provider.maps[..at].iter();
        // The names of types are checked below.
        if let Some(first) = before.find(|first| first.name == map.name)
            && first.ident != map.ident
        {
            same_map(first, map, errors);
        }
    }
    names(provider, errors);
    let mut is_cyclic = false;
    for structure in &provider.structures {
        if let Err(error) = fields(&structure.fields) {
            errors.push(error);
        }
        declared(&structure.fields, provider, errors);
        for field in &structure.fields {
            if matches!(field.kind, FieldType::Structures(..)) {
                errors.push(error!(
                    Tokens(&field.written),
                    "an array of structures must be a field of an event, because a manifest cannot \
                     have it inside a structure",
                ));
            }
            if let Some(named) = counted_by(field) {
                errors.push(error!(
                    named.span(),
                    "a member of a structure cannot have its length or count in another field; \
                     remove `field`, and the length or count comes right before the member",
                ));
            }
        }
        let mut inner = structure.fields.iter();
        let mut seen = HashSet::new();
        if let Some(field) = inner.find(|field| holds(structure, field, provider, &mut seen)) {
            // Every structure of a cycle contains itself; report only the first.
            if std::mem::replace(&mut is_cyclic, true) {
                continue;
            }
            errors.push(error!(
                structure.ident.span(),
                "the structure `{}` contains itself through the field `{}`; remove that field",
                structure.ident,
                field.ident,
            ));
        }
    }
    events(provider, errors);
    // Layouts can be computed only for declarations without other errors.
    if errors.is_empty() {
        layouts(provider, errors);
    }
}

/// Checks the name of a provider with a manifest, whose schema forbids some characters.
pub fn name(provider: &Provider, span: Span) -> syn::Result<()> {
    let has_manifest = provider.events.iter().any(|event| event.encoding == Encoding::Manifest);
    let forbidden = provider.name.chars().find(|one| winmeta::is_forbidden_in_names(*one));
    forbidden.filter(|_| has_manifest).map_or(Ok(()), |one| {
        Err(error!(
            span,
            "the provider's name contains {one:?}, which the name of a provider with a manifest cannot \
             contain (neither {}, nor control characters); write, for example, `Company.Component`",
            winmeta::FORBIDDEN_IN_NAMES.map(|one| format!("`{one}`")).join(", "),
        ))
    })
}

/// Checks that keywords, levels, tasks, opcodes, channels and map entries have unique numbers.
fn numbers(provider: &Provider, errors: &mut Errors) {
    let keywords = provider.keywords.iter();
    let keywords = keywords.map(|keyword| (keyword.bit, keyword.bit_span, &keyword.ident));
    unique(keywords, "keyword", "bit", errors);
    unique(provider.tasks.iter().map(entry), "task", "number", errors);
    unique(provider.opcodes.iter().map(entry), "opcode", "number", errors);
    unique(provider.levels.iter().map(entry), "level", "number", errors);
    for list in &provider.task_opcodes {
        // Several lists can belong to the same task.
        let same = provider.task_opcodes.iter();
        let mut same = same.filter(|other| other.task == list.task).peekable();
        if !same.peek().is_some_and(|first| std::ptr::eq(*first, list)) {
            continue;
        }
        unique(same.flat_map(|list| &list.opcodes).map(entry), "opcode", "number", errors);
        if !provider.tasks.iter().any(|task| task.ident == list.task) {
            errors.push(undeclared(
                "task",
                &list.task,
                provider.tasks.iter().map(|one| &one.ident),
            ));
        }
    }
    let channels = provider.channels.iter().map(|channel| entry(&channel.named));
    unique(channels, "channel", "number", errors);
    if let Some(channel) = provider.channels.get(MAX_CHANNELS) {
        errors.push(error!(
            channel.named.value_span,
            "a provider can have at most {MAX_CHANNELS} channels, because each takes one of the \
             highest 8 keyword bits; remove this one",
        ));
    }
    for map in &provider.maps {
        unique(map.entries.iter().map(entry), "entry", "value", errors);
    }
}

/// Returns the value of a name, its location, and the name.
const fn entry<T: Copy>(named: &Named<T>) -> (T, Span, &Ident) {
    (named.value, named.value_span, &named.ident)
}

/// Checks a type with the name of another map: both must be one map, of different widths.
fn same_map(first: &Map, second: &Map, errors: &mut Errors) {
    if first.kind != second.kind || first.scalar == second.scalar {
        errors.push(error!(
            second.ident.span(),
            "the map `{}` has the name `{}`, which `{}` already has; choose another name (only \
             types of the same kind and of different sizes can share one)",
            second.ident,
            second.name,
            first.ident,
        ));
        return;
    }
    for entry in &second.entries {
        let mut known = first.entries.iter();
        if known.any(|other| other.value == entry.value && other.name != entry.name) {
            errors.push(error!(
                entry.ident.span(),
                "the value {} is named `{}`, but differently in `{}`, which is the same map `{}`; \
                 use one name",
                entry.value,
                entry.name,
                first.ident,
                first.name,
            ));
        }
    }
}

/// The names of the items that the macro adds to the declaration's own.
const MADE: &[&str] = &["register", "unregister", "PROVIDER", "ID", "GROUP"];

/// The prefixes of generated items' names that nobody writes by hand.
const HIDDEN: &[&str] = &["__wdk_etw", "__WDK_ETW", "__write_"];

/// The namespace of a name in Rust.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Namespace {
    Types,
    Values,
}

/// Returns the names that the module's own items take. The compiler checks imports.
fn names_of(item: &Item) -> Vec<(Namespace, &Ident)> {
    use Namespace::{Types, Values};
    match item {
        Item::Const(item) => vec![(Values, &item.ident)],
        Item::Enum(item) => vec![(Types, &item.ident)],
        Item::Fn(item) => vec![(Values, &item.sig.ident)],
        Item::Mod(item) => vec![(Types, &item.ident)],
        Item::Static(item) => vec![(Values, &item.ident)],
        Item::Struct(item) if matches!(item.fields, syn::Fields::Named(_)) => {
            vec![(Types, &item.ident)]
        }
        Item::Struct(item) => vec![(Types, &item.ident), (Values, &item.ident)],
        Item::Trait(item) => vec![(Types, &item.ident)],
        Item::Type(item) => vec![(Types, &item.ident)],
        Item::Union(item) => vec![(Types, &item.ident)],
        _ => Vec::new(),
    }
}

/// Checks that all items of the module have different names.
fn names(provider: &Provider, errors: &mut Errors) {
    use Namespace::{Types, Values};
    // The compiler may remove items that have a condition.
    let others = provider
        .others
        .iter()
        .filter(|item| {
            let mut attributes = attributes(item).iter();
            attributes.all(|attribute| !attribute.path().is_ident("cfg"))
        })
        .flat_map(names_of);
    // A map is a tuple structure; an event is a function and a module.
    let maps = provider.maps.iter().flat_map(|map| [(Types, &map.ident), (Values, &map.ident)]);
    let structures = provider.structures.iter().map(|structure| (Types, &structure.ident));
    let events =
        provider.events.iter().flat_map(|event| [(Types, &event.ident), (Values, &event.ident)]);
    let keywords = provider.keywords.iter().map(|keyword| (Values, &keyword.ident));
    let all = others.chain(maps).chain(structures).chain(events).chain(keywords);
    let mut seen = HashSet::new();
    let mut told = HashSet::new();
    for (namespace, ident) in all {
        let name = ident.unraw().to_string();
        let is_made = namespace == Values && MADE.contains(&name.as_str());
        let is_reserved = is_made || HIDDEN.iter().any(|start| name.starts_with(start));
        let is_new = seen.insert((namespace, name.clone()));
        if (is_reserved || !is_new) && told.insert((name, ident.span().start())) {
            let what = if is_reserved {
                "is reserved for an item that the macro generates"
            } else {
                "is already used in this declaration"
            };
            errors.push(error!(ident.span(), "the name `{ident}` {what}; choose another name"));
        }
    }
    for keyword in &provider.keywords {
        if keyword.ident == "none" {
            errors.push(error!(
                keyword.ident.span(),
                "`keyword = none` means no keyword, so a keyword cannot have this name; choose \
                 another one",
            ));
        }
    }
    for opcode in &provider.opcodes {
        if winmeta::OPCODES.iter().any(|one| opcode.ident == one.ident) {
            errors.push(error!(
                opcode.ident.span(),
                "`{}` is a standard opcode, which needs no declaration; choose another name",
                opcode.ident,
            ));
        }
    }
}

/// Returns whether a field contains the structure `inner` at any depth. `seen` has the structures that
/// were examined.
fn holds<'a>(
    inner: &Structure,
    field: &'a Field,
    provider: &'a Provider,
    seen: &mut HashSet<&'a Ident>,
) -> bool {
    // A member cannot be an array of structures.
    let FieldType::Named(name) = &field.kind else {
        return false;
    };
    let mut structures = provider.structures.iter();
    let Some(found) = structures.find(|structure| structure.ident == *name) else {
        return false;
    };
    found.ident == inner.ident
        || seen.insert(&found.ident)
            && found.fields.iter().any(|field| holds(inner, field, provider, seen))
}

/// The most fields of an event, including the members of its structures: each takes at least 3 bytes of
/// the event's metadata, whose size is a `u16`.
const MAX_FIELDS: usize = u16::MAX as usize / 3;

/// Returns the number of fields, including the members of structures. `known` has the structures' numbers.
fn count<'a>(
    fields: &'a [Field],
    provider: &'a Provider,
    known: &mut HashMap<&'a Ident, usize>,
) -> usize {
    let mut all = 0_usize;
    for field in fields {
        let of_structure = match &field.kind {
            FieldType::Named(name) | FieldType::Structures(name, _) => {
                provider.structures.iter().find(|one| one.ident == *name)
            }
            FieldType::Values(..) => None,
        };
        let number = of_structure.map_or(1, |structure| {
            if let Some(number) = known.get(&structure.ident) {
                return *number;
            }
            // A structure that contains itself is refused elsewhere.
            known.insert(&structure.ident, 0);
            let number = 1 + count(&structure.fields, provider, known);
            known.insert(&structure.ident, number);
            number
        });
        all = all.saturating_add(number);
    }
    all
}

/// Checks that all entries have different values.
fn unique<'a, T: std::hash::Hash + Eq + std::fmt::Display>(
    entries: impl Iterator<Item = (T, Span, &'a Ident)>,
    what: &str,
    value: &str,
    errors: &mut Errors,
) {
    let mut seen = HashMap::new();
    let mut names = HashSet::new();
    for (number, span, ident) in entries {
        // `names` checks the names of constants, together with other items.
        if what != "keyword" && !names.insert(ident.to_string()) {
            errors.push(error!(
                ident.span(),
                "the {what} `{ident}` is declared twice; rename one of them"
            ));
            continue;
        }
        let message = format!("the {what} `{ident}` has the {value} {number}");
        if let Some(first) = seen.insert(number, ident) {
            errors.push(error!(
                span,
                "{message}, which `{first}` already has; choose another {value}"
            ));
        }
    }
}

/// Returns the declaration to write for a type that the module has without an attribute.
fn attribute_of(name: &Ident, provider: &Provider) -> Option<String> {
    provider.others.iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == *name => Some(format!("`#[map] enum {name}`")),
        Item::Struct(item) if item.ident == *name => Some(format!("`#[structure] struct {name}`")),
        _ => None,
    })
}

/// Checks that all types that fields refer to are declared.
fn declared(fields: &[Field], provider: &Provider, errors: &mut Errors) {
    let types = Types::of(provider);
    for field in fields {
        if let FieldType::Structures(name, _) = &field.kind {
            if types.map(name).is_some() {
                errors.push(error!(
                    Tokens(&field.written),
                    "an array cannot have elements of the map `{name}`; use an array of numbers, \
                     or of a structure that has the map",
                ));
            } else if let Some(structure) = types.structure(name)
                && let Err(error) = element_size(structure, types)
            {
                errors.push(error);
            } else if let Err(error) = field.form.check_named(None) {
                errors.push(error);
            }
        }
        let FieldType::Named(name) = &field.kind else {
            continue;
        };
        let map = types.map(name).map(|map| map.scalar);
        if map.is_none() && types.structure(name).is_none() {
            let mut error = attribute_of(name, provider).map_or_else(
                || crate::types::undeclared(name),
                |form| {
                    error!(
                        name.span(),
                        "the type `{name}` is declared without an attribute; write {form}",
                    )
                },
            );
            let own = provider.maps.iter().map(|map| &map.ident);
            let own = quoted(own.chain(provider.structures.iter().map(|one| &one.ident)));
            if !own.is_empty() {
                error = error!(error.span(), "{error}; declared: {own}");
            }
            errors.push(error);
        } else if let Err(error) = field.form.check_named(map) {
            errors.push(error);
        }
    }
}

/// Checks that all fields have different names.
pub fn fields(fields: &[Field]) -> syn::Result<()> {
    let mut idents = HashSet::new();
    let mut seen = HashSet::new();
    for field in fields {
        if !idents.insert(field.ident.unraw()) {
            bail!(
                field.ident.span(),
                "another field is already named `{}`; rename one of them",
                field.ident,
            );
        }
        let counter = field.form.counter.as_ref();
        if let Some(name) = counter.and_then(|counter| counter.name.as_ref())
            && !seen.insert(name)
        {
            bail!(
                field.ident.span(),
                "the length or count of the field `{}` is named `{name}`, as another field is; \
                 rename one of them",
                field.name,
            );
        }
        if !seen.insert(&field.name) {
            bail!(
                field.ident.span(),
                "another field is already named `{}`; rename one of them",
                field.name,
            );
        }
    }
    Ok(())
}

/// The maximum number of fields of a manifest's template, which a message refers to as `%1` to `%99`.
const MAX_TEMPLATE_FIELDS: usize = 99;

/// Returns the number of template fields that a field of the declaration becomes: a length or count
/// right before a value is a separate field.
fn template_fields(field: &Field) -> usize {
    let counter = field.form.counter.as_ref();
    let has_counter = match field.kind {
        _ if counted_by(field).is_some() => false,
        FieldType::Values(_, _, Shape::Counted) | FieldType::Structures(_, Shape::Counted) => true,
        FieldType::Values(Scalar::Bytes | Scalar::SocketAddr, ..) => !field.form.counted,
        _ => counter.is_some(),
    };
    1 + usize::from(has_counter)
}

/// Returns the name of the field that contains a field's length or count.
fn counted_by(field: &Field) -> Option<&Ident> {
    field.form.counter.as_ref()?.field.as_ref()
}

/// Checks that each length or count field is an unsigned integer that precedes the value.
fn counters(fields: &[Field], errors: &mut Errors) {
    for (at, field) in fields.iter().enumerate() {
        let Some(named) = counted_by(field) else {
            continue;
        };
        let known = fields[..at].iter().find(|other| other.ident == *named);
        let is_number = known.is_some_and(|other| {
            let FieldType::Values(scalar, _, Shape::One) = other.kind else {
                return false;
            };
            matches!(
                other.form.sized.unwrap_or(scalar),
                Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64
            )
        });
        if !is_number {
            errors.push(error!(
                named.span(),
                "the length or count of `{}` must be an earlier field of the event, of type `u8`, \
                 `u16`, `u32`, `u64`, or `usize` with `#[repr(…)]`; `{named}` is not",
                field.ident,
            ));
        }
    }
}

/// Removes the events that themselves have errors, and adds these errors.
pub fn keep_valid_events(provider: &mut Provider, errors: &mut Errors) {
    for event in std::mem::take(&mut provider.events) {
        let mut own = Errors::default();
        check_event(&event, provider, &mut own);
        if own.is_empty() {
            provider.events.push(event);
        }
        errors.append(own);
    }
}

fn check_event(event: &Event, provider: &Provider, errors: &mut Errors) {
    let all = self::count(&event.fields, provider, &mut HashMap::new());
    if all > MAX_FIELDS {
        errors.push(error!(
            event.ident.span(),
            "the event `{}` has {all} fields, including the members of its structures, but an event can \
             have at most {MAX_FIELDS}; nest fewer structures",
            event.ident,
        ));
        return;
    }
    let count: usize = event.fields.iter().map(template_fields).sum();
    if event.encoding == Encoding::Manifest && count > MAX_TEMPLATE_FIELDS {
        errors.push(error!(
            event.ident.span(),
            "the manifest event `{}` has {count} fields, the lengths of slices included, and a \
             manifest can have at most {MAX_TEMPLATE_FIELDS}; put some of them into structures, \
             split the event, or use `encoding = tracelogging`",
            event.ident,
        ));
    }
    if let Err(error) = fields(&event.fields) {
        errors.push(error);
    }
    declared(&event.fields, provider, errors);
    counters(&event.fields, errors);
    if let Some(field) =
        event.fields.iter().find(|field| event.encoding == Encoding::Manifest && field.tag != 0)
    {
        errors.push(error!(
            field.ident.span(),
            "the field `{}` has a tag, which only TraceLogging events can have; remove the tag or \
             use `encoding = tracelogging`",
            field.ident,
        ));
    }
}

/// Checks that events with ids have unique ids.
fn events(provider: &Provider, errors: &mut Errors) {
    let mut ids = HashMap::new();
    for event in &provider.events {
        // `TraceLogging` events without an id have id 0 and are identified by their names.
        if event.encoding == Encoding::TraceLogging && event.id == 0 {
            continue;
        }
        if let Some(first) = ids.insert((event.id, event.version), &event.ident) {
            errors.push(error!(
                event.id_span,
                "the event `{}` has id {} and version {}, which the event `{first}` already has; \
                 choose another id or increase the version",
                event.ident,
                event.id,
                event.version,
            ));
        }
    }
}

/// Returns the error for an event that has the name of another event but different fields.
fn same_name(event: &Event, first: &Ident) -> syn::Error {
    let Event { ident, name, .. } = event;
    error!(
        ident.span(),
        "the event `{ident}` has the name `{name}` of the event `{first}`, and other fields or \
         another tag: tools tell TraceLogging events apart by their names and opcodes; choose \
         another name or opcode, or give both events the same fields and `tag`",
    )
}

fn layouts(provider: &Provider, errors: &mut Errors) {
    let types = Types::of(provider);
    let mut named: HashMap<(&str, u16, u8), (&Ident, Vec<u8>)> = HashMap::new();
    for event in &provider.events {
        let metadata_size = match event.encoding {
            Encoding::Manifest => Ok(0),
            Encoding::TraceLogging => {
                tracelogging::event_metadata(&event.name, event.tag, &event.fields, types).map(
                    |block| {
                        let size = block.len();
                        // Ids distinguish events, as the opcodes of an activity's events do.
                        if event.id == 0 {
                            let first = named.entry((&event.name, event.task, event.opcode));
                            let (first, known) =
                                first.or_insert_with(|| (&event.ident, block.clone()));
                            if *known != block {
                                errors.push(same_name(event, first));
                            }
                        }
                        size
                    },
                )
            }
        };
        let layout = metadata_size.and_then(|metadata_size| {
            Layout::of(&event.fields, event.encoding, types, metadata_size, event.ident.span())
        });
        if let Err(error) = layout {
            errors.push(error);
        }
    }
}
