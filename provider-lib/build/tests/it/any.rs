//! Imports arbitrary manifests: the declaration parser accepts the output, and notes report missing
//! and changed parts.

use std::collections::HashSet;

use etw_manifest::{
    Channel, Event, Guid, InType, Keyword, Level, Manifest, Map, MapItem, Opcode, OutType,
    Position, Presentation, Property, PropertyKind, Provider, QName, Size, Task, Template, Text,
};
use proptest::{collection::vec, prelude::*, sample::select};
use wdk_etw_build::import::{self, Counts};

use crate::helpers::declared;

/// Names that differ only in case, are reserved, or are not valid.
fn name() -> impl Strategy<Value = String> {
    const WORDS: &str = "
        A a a_ A1 a1 A_1 X x Read READ read Re_ad ID Id id PROVIDER Provider GROUP group
        register unregister type Self self super crate gen async try union options String Vec
        Task Opcode Channel Level Keyword u32 U32 Port Guid none None Info Start 3Com _ __ %
        100% 日本 E_ONE_1 write is_enabled DESCRIPTOR Option core wdk_etw EVENT
    ";
    let others = ["", " ", "\"", "\\", "a b"];
    let known = select(WORDS.split_whitespace().chain(others).collect::<Vec<_>>());
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "[a-zA-Z_%0-9]{1,6}"]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => name(),
        1 => select(vec!["%1", "%9 of %2!s!", "%%", "%n%t", "100% d", "% %", "%1%", "\u{202e}\n"])
            .prop_map(str::to_owned),
    ]
}

/// A field's size: none, a constant, or the number of fields back to the field that contains it.
#[derive(Clone, Copy, Debug)]
enum Sized {
    None,
    Fixed(u16),
    Before(usize),
}

fn size() -> impl Strategy<Value = Sized> {
    prop_oneof![
        5 => Just(Sized::None),
        1 => select(vec![1, 2, 16, 40_000, u16::MAX]).prop_map(Sized::Fixed),
        3 => (1_usize..4).prop_map(Sized::Before),
    ]
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    in_type: InType,
    out_type: usize,
    map: Option<usize>,
    count: Sized,
    length: Sized,
    members: Vec<Self>,
}

fn plain_field() -> impl Strategy<Value = Field> {
    let in_types: Vec<InType> =
        InType::ALL.iter().copied().filter(|one| one.name().is_some()).collect();
    let integers: Vec<InType> = in_types.iter().copied().filter(|one| one.is_integer()).collect();
    let in_type = prop_oneof![select(in_types), select(integers)];
    let map = proptest::option::weighted(0.3, 0_usize..3);
    (name(), in_type, 0_usize..10, map, size(), size()).prop_map(
        |(name, in_type, out_type, map, count, length)| Field {
            name,
            in_type,
            out_type,
            map,
            count,
            length,
            members: Vec::new(),
        },
    )
}

fn field() -> impl Strategy<Value = Field> {
    let members = prop_oneof![6 => Just(Vec::new()), 1 => vec(plain_field(), 1..4)];
    (plain_field(), members).prop_map(|(field, members)| Field { members, ..field })
}

/// Returns the fields as a manifest compiler reads them: with unique names, and sizes that refer to
/// earlier integers.
fn properties(fields: &[Field], maps: usize, at: &mut usize) -> Vec<Property> {
    let mut names = HashSet::new();
    let mut properties: Vec<Property> = Vec::new();
    for field in fields {
        let mut name = field.name.clone();
        while !names.insert(name.clone()) {
            name.push('_');
        }
        let number = properties.len();
        let resolve = |size: Sized| match size {
            Sized::None => Size::None,
            Sized::Fixed(number) => Size::Fixed(number),
            Sized::Before(distance) => number
                .checked_sub(distance)
                .filter(|at| {
                    let kind = &properties[*at].kind;
                    matches!(kind, PropertyKind::Data { in_type, .. } if in_type.is_integer())
                })
                .map_or(Size::None, Size::Field),
        };
        let (count, mut length) = (resolve(field.count), resolve(field.length));
        let out_types = field.in_type.out_types();
        let out_type = out_types[field.out_type % out_types.len()];
        if !field.in_type.has_length() {
            length = Size::None;
        }
        if field.in_type == InType::Binary && length == Size::None && out_type != OutType::Ipv6 {
            length = Size::Fixed(7);
        }
        *at += 1;
        let kind = if field.members.is_empty() {
            let map = field.map.filter(|_| field.in_type.is_integer());
            PropertyKind::Data {
                in_type: field.in_type,
                out_type,
                explicit_out_type: true,
                map: map.filter(|map| *map < maps),
            }
        } else {
            length = Size::None;
            PropertyKind::Struct(self::properties(&field.members, maps, at))
        };
        properties.push(Property {
            name,
            count,
            length,
            kind,
            others: Vec::new(),
            at: Position { line: *at, column: 1 },
        });
    }
    properties
}

/// The parts of an event: symbol, name, message, fields, and indexes of other parts.
type Parts =
    (Option<String>, Option<String>, Option<String>, Vec<Field>, [Option<usize>; 4], Vec<usize>);

fn event() -> impl Strategy<Value = Parts> {
    let index = || proptest::option::of(0_usize..4);
    (
        proptest::option::of(name()),
        proptest::option::of(name()),
        proptest::option::of(text()),
        vec(field(), 0..6),
        [index(), index(), index(), index()],
        vec(0_usize..4, 0..3),
    )
}

fn names() -> impl Strategy<Value = Vec<(String, u16)>> {
    vec((name(), 0_u16..300), 0..4)
}

/// Builds an arbitrary manifest, valid or as in damaged resources.
fn any_manifest() -> impl Strategy<Value = Manifest> {
    let maps = vec((name(), any::<bool>(), vec((text(), any::<u32>(), 0_u32..33), 0..4)), 0..3);
    ((name(), names(), names(), names(), names(), names()), maps, vec(event(), 0..5)).prop_map(
        |((name, keywords, tasks, opcodes, levels, channels), maps, events)| {
            build(&name, [keywords, tasks, opcodes, levels, channels], maps, events)
        },
    )
}

type Maps = Vec<(String, bool, Vec<(String, u32, u32)>)>;

fn build(name: &str, names: [Vec<(String, u16)>; 5], maps: Maps, events: Vec<Parts>) -> Manifest {
    let [keywords, tasks, opcodes, levels, channels] = names;
    let mut manifest = Manifest { culture: "en-US".to_owned(), ..Manifest::default() };
    let mut at = 0;
    let texts = &mut manifest.texts;
    let mut put = |value: &str| {
        texts.push(Text {
            id: format!("T{}", texts.len()),
            value: value.to_owned(),
            ..Text::default()
        });
        Some(texts.len() - 1)
    };
    let byte = |number: u16| u8::try_from(number % 256).unwrap();
    let mut provider = Provider {
        name: name.replace(['"', '\\'], "q") + "P",
        guid: Guid::from_bytes([7; 16]),
        symbol: "P".to_owned(),
        ..Provider::default()
    };
    provider.keywords.extend(keywords.iter().map(|(name, number)| Keyword {
        name: QName::plain(name),
        mask: 1 << (number % 64),
        message: put(name),
        ..Keyword::default()
    }));
    provider.tasks.extend(tasks.iter().map(|(name, number)| Task {
        name: QName::plain(name),
        value: *number,
        message: put(name),
        ..Task::default()
    }));
    let of_tasks = provider.tasks.len();
    provider.opcodes.extend(opcodes.iter().map(|(name, number)| Opcode {
        name: QName::plain(name),
        value: byte(*number),
        task: Some(usize::from(*number) % 3).filter(|task| *task < of_tasks),
        message: put(name),
        ..Opcode::default()
    }));
    provider.levels.extend(levels.iter().map(|(name, number)| Level {
        name: QName::plain(name),
        value: byte(*number),
        message: put(name),
        ..Level::default()
    }));
    provider.channels.extend(channels.iter().map(|(name, number)| Channel {
        name: name.clone(),
        value: byte(*number),
        kind: ["Admin", "Operational", ""][usize::from(*number) % 3].to_owned(),
        imported: *number < 16,
        declared: true,
        ..Channel::default()
    }));
    for (name, is_bits, items) in maps {
        provider.maps.push(Map {
            name,
            is_bits,
            items: items
                .iter()
                .map(|(text, value, shift)| MapItem {
                    value: value.checked_shr(*shift).unwrap_or(0),
                    message: put(text),
                    ..MapItem::default()
                })
                .collect(),
            ..Map::default()
        });
    }
    for (number, (symbol, name, message, fields, [channel, level, task, opcode], keywords)) in
        (1..).zip(events)
    {
        at += 1;
        let place = Position { line: at, column: 1 };
        let properties = properties(&fields, provider.maps.len(), &mut at);
        provider.templates.push(Template {
            id: format!("T{number}"),
            properties,
            ..Template::default()
        });
        provider.events.push(Event {
            id: number,
            symbol,
            name,
            message: message.and_then(|message| put(&message)),
            channel: channel.filter(|at| *at < provider.channels.len()),
            level: level.filter(|at| *at < provider.levels.len()),
            task: task.filter(|at| *at < provider.tasks.len()),
            opcode: opcode.filter(|at| *at < provider.opcodes.len()),
            keywords: keywords.into_iter().filter(|at| *at < provider.keywords.len()).collect(),
            template: Some(provider.templates.len() - 1),
            at: place,
            ..Event::default()
        });
    }
    manifest.providers.push(provider);
    manifest
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_manifest_is_imported_as_a_declaration_that_is_accepted(manifest in any_manifest()) {
        let imported = import::declaration(&manifest, None);
        let made = declared(&imported.source);
        let provider = &manifest.providers[0];
        let [other] = &*made.providers else {
            panic!("the provider is missing: {:?}", imported.notes);
        };
        let mut counts = Counts { all: provider.events.len(), ..Counts::default() };
        for event in &provider.events {
            let mut notes = imported.notes.iter().filter(|note| note.at == event.at);
            let mut events = other.events.iter();
            let Some(found) = events.find(|one| one.id == event.id) else {
                let expected = format!("event {} version 0 was not imported: ", event.id);
                prop_assert!(notes.any(|note| note.what.starts_with(&expected)), "{expected}");
                counts.left_out += 1;
                continue;
            };
            let is_same = Presentation::for_event(&made, other, found)
                == Presentation::for_event(&manifest, provider, event);
            let expected = format!("event {} version 0 changes: ", event.id);
            let no_message = format!("the message of event {} version 0 ", event.id);
            let is_changed = notes.clone().any(|note| {
                note.what.starts_with(&expected) || note.what.starts_with(&no_message)
            });
            counts.changed += usize::from(is_changed);
            let is_noted = notes.any(|note| note.what.starts_with(&expected));
            prop_assert_eq!(is_noted, !is_same, "{:?}: {}", imported.notes, imported.source);
        }
        prop_assert_eq!(imported.counts, counts, "{:?}", imported.notes);
    }
}
