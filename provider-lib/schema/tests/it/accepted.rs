//! Declarations, and what they mean: names and values, the metadata of `TraceLogging` events, and the layouts
//! of all events.

use std::{fmt::Debug, slice};

use quote::ToTokens;
use wdk_etw_schema::{
    BlockPart, ChannelSettings, DataDescriptor, Encoding, Event, Field, FieldType, Layout, Named,
    Provider, elements,
    parse::source,
    tracelogging::{Types, event_metadata},
};

/// The parts of a declaration: lines of a label and a text.
struct Found(Vec<String>);

impl Found {
    /// Adds a line unless its text is empty.
    fn add(&mut self, label: &str, text: &str) {
        if !text.is_empty() {
            self.0.push(format!("{label}:{text}"));
        }
    }

    /// Adds the items of a provider.
    fn items(&mut self, provider: &Provider) {
        for one in &provider.traits {
            self.add("trait", &format!(" {} = {}", one.kind, one.data.escape_ascii()));
        }
        for (name, is_set) in [
            ("sets traits", provider.sets_traits()),
            ("binary tracking", provider.binary_tracking),
            ("statistics", provider.statistics),
            ("debugger", provider.debugger),
        ] {
            self.add(name, if is_set { " yes" } else { "" });
        }
        self.add("stripes", &shown(provider.stripes.as_ref()));
        let hooks = &provider.hooks;
        self.add("on enable", &shown_source(hooks.on_enable.as_ref()));
        self.add("on disable", &shown_source(hooks.on_disable.as_ref()));
        self.add("on capture state", &shown_source(hooks.on_capture_state.as_ref()));
        self.add("autologger", &shown(provider.autologger.as_ref()));
        for keyword in &provider.keywords {
            let docs = docs(&keyword.docs);
            self.add("keyword", &format!(" {} = bit {}{docs}", keyword.name, keyword.bit));
        }
        self.add("tasks", &named(&provider.tasks));
        self.add("opcodes", &named(&provider.opcodes));
        for list in &provider.task_opcodes {
            self.add(&format!("opcodes of {}", list.task), &named(&list.opcodes));
        }
        self.add("levels", &named(&provider.levels));
        for channel in &provider.channels {
            let named = named(slice::from_ref(&channel.named));
            let settings =
                Some(&channel.settings).filter(|one| **one != ChannelSettings::default());
            self.add("channel", &format!("{named} {}{}", channel.kind, shown(settings)));
        }
        for map in &provider.maps {
            let (docs, entries) = (docs(&map.docs), named(&map.entries));
            let label = format!("map {} {:?}", map.ident, map.name);
            self.add(&label, &format!(" {:?} {:?}{docs}{entries}", map.kind, map.scalar));
        }
        for one in &provider.structures {
            let place = if one.in_library { " of the library" } else { "" };
            let label = format!("structure {}{place}", one.ident);
            self.add(&label, &(docs(&one.docs) + &fields(&one.fields)));
        }
        let mut elements: Vec<String> =
            elements(provider).iter().map(|one| format!(" {one}")).collect();
        elements.sort();
        self.add("elements", &elements.concat());
    }

    /// Adds an event of a provider.
    fn event(&mut self, provider: &Provider, event: &Event) {
        self.add(
            &format!("event {:?}", event.name),
            &format!(
                " id {}, version {}, level {}, keyword {:#x}, mask {:#x}, task {}, opcode {}, channel {}, {:?}{}{}",
                event.id, event.version, event.level.0, event.keyword, provider.keyword_mask(event), event.task,
                event.opcode, event.channel, event.encoding, shown(event.message.as_ref()), docs(&event.docs),
            ),
        );
        self.add("  fields", &fields(&event.fields));
        let types = Types::of(provider);
        let metadata = match event.encoding {
            Encoding::Manifest => Vec::new(),
            Encoding::TraceLogging => {
                event_metadata(&event.name, event.tag, &event.fields, types).unwrap()
            }
        };
        self.add("  metadata", &prefixed(&metadata.escape_ascii().to_string()));
        let span = event.ident.span();
        let layout =
            Layout::of(&event.fields, event.encoding, types, metadata.len(), span).unwrap();
        for leaf in &layout.leaves {
            let path: Vec<String> = leaf.path.iter().map(ToString::to_string).collect();
            self.add(
                &format!("  leaf {} of field {}", path.join("."), leaf.field),
                &format!(
                    " {:?}, unit {}{}{}",
                    leaf.wire,
                    leaf.unit(),
                    leaf.limit().map_or(String::new(), |limit| format!(", at most {limit} bytes")),
                    leaf.counted_by.map_or(String::new(), |at| format!(", counted by {at}")),
                ),
            );
        }
        let part = |part: &BlockPart| format!(" {part:?} {} bytes", part.size(&layout.leaves));
        for descriptor in &layout.descriptors {
            let text = match descriptor {
                DataDescriptor::Block(parts) => parts.iter().map(part).collect(),
                DataDescriptor::InPlace(at) => format!(" in place {at}"),
            };
            self.add("  data", &text);
        }
        let by_reference = &layout.by_reference;
        self.add("  room", &format!(" {}, by reference {by_reference:?}", layout.room));
    }
}

fn prefixed(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text}") }
}

fn shown_source(part: Option<&impl ToTokens>) -> String {
    prefixed(&part.to_token_stream().to_string())
}

fn shown(value: Option<&impl Debug>) -> String {
    value.map_or(String::new(), |value| format!(" {value:?}"))
}

/// Returns the lines of a doc comment.
fn docs(lines: &[String]) -> String {
    shown(Some(&lines).filter(|lines| !lines.is_empty()))
}

fn named<T: Debug>(all: &[Named<T>]) -> String {
    let one = |one: &Named<T>| format!(" {:?} = {:?}{}", one.name, one.value, docs(&one.docs));
    all.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Returns fields with their types in manifests.
fn fields(all: &[Field]) -> String {
    let one = |field: &Field| {
        let manifest = match field.kind {
            FieldType::Values(scalar, format, _) => {
                shown(Some(&field.form.manifest(scalar, format)))
            }
            FieldType::Named(_) | FieldType::Structures(..) => String::new(),
        };
        format!(
            " {}{}{manifest}{}",
            field.name,
            shown_source(Some(&field.written)),
            docs(&field.docs)
        )
    };
    all.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Returns what is found in a declaration, or in the items of a module.
fn found(text: &str) -> Vec<String> {
    let items = format!("#[provider(name = \"A\")]\nmod trace {{\n{text}\n}}");
    let declaration = if text.starts_with("#[provider") { text } else { &items };
    let provider = source(declaration).unwrap_or_else(|error| panic!("{text}: {error}")).remove(0);
    let mut found = Found(Vec::new());
    found.items(&provider);
    for event in &provider.events {
        found.event(&provider, event);
    }
    found.0
}

#[test]
fn declarations_have_their_meaning() {
    crate::refused::check("accepted.txt", found);
}
