//! A manifest from the resources of an image: all that they say, with the ids of messages as they
//! are. What only a manifest has (symbols, names of templates) stays empty.
//!
//! It trusts what it reads and panics where that is not what mc.exe writes.

use std::collections::BTreeMap;

use etw_manifest::{
    Channel, Element, Event, Guid, IN_TYPES, InType, Keyword, Level, Manifest, Map, MapItem, Node,
    Opcode, Property, PropertyKind, Provider, QName, Size, Task, Template, Text, TextRef,
    resources::{NO_MESSAGE, Version},
};

/// Little-endian numbers and texts at their places.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        self.0[at..at + N].try_into().unwrap()
    }

    fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// A number that is an offset, a count or a size.
    fn place(self, at: usize) -> usize {
        usize::try_from(self.u32(at)).unwrap()
    }

    fn guid(self, at: usize) -> Guid {
        Guid(self.array(at))
    }

    fn units(self, at: usize, count: usize) -> String {
        let units: Vec<u16> = (0..count).map(|unit| self.u16(at + unit * 2)).collect();
        String::from_utf16(&units).unwrap()
    }

    /// A text up to its NUL.
    fn open_text(self, at: usize) -> String {
        let mut units = self.0[at..].chunks_exact(2);
        let count = units.position(|unit| unit == [0, 0]);
        self.units(at, count.unwrap())
    }

    /// A text with its size before it.
    fn text(self, at: usize) -> String {
        self.open_text(at + 4)
    }

    /// The places of a list's entries.
    fn list(self, at: usize, tag: [u8; 4], size: usize) -> Vec<usize> {
        assert_eq!(self.array(at), tag, "at {at:#x}");
        let count = self.place(at + 8);
        (0..count).map(|entry| at + 12 + entry * size).collect()
    }
}

/// The texts of a message table by their ids.
fn messages(data: &[u8]) -> BTreeMap<u32, String> {
    let bytes = Bytes(data);
    let mut texts = BTreeMap::new();
    for block in (0..bytes.place(0)).map(|block| 4 + block * 12) {
        let mut at = bytes.place(block + 8);
        for id in bytes.u32(block)..=bytes.u32(block + 4) {
            assert_eq!(bytes.u16(at + 2), 1, "message {id:#x} is UTF-16");
            let text = bytes.open_text(at + 4);
            let text = text.strip_suffix("\r\n").expect("a message is a line");
            texts.insert(id, text.to_owned());
            at += usize::from(bytes.u16(at));
        }
    }
    texts
}

/// Reads both resources; the version is that of the first one's format.
pub fn decompile(templates: &[u8], message_table: &[u8]) -> (Manifest, Version) {
    let bytes = Bytes(templates);
    let mut manifest = Manifest::default();
    let mut texts = BTreeMap::new();
    for (id, value) in messages(message_table) {
        texts.insert(id, manifest.texts.len());
        manifest.texts.push(Text {
            value,
            message_id: Some(id),
            ..Text::default()
        });
    }
    assert_eq!(bytes.array(0), *b"CRIM");
    assert_eq!(bytes.place(4) + 2, templates.len());
    let version = match bytes.u32(8) {
        0x1_0003 => Version::V3,
        0x1_0005 => Version::V5,
        other => panic!("version {other:#x}"),
    };
    for entry in (0..bytes.place(12)).map(|number| 16 + number * 20) {
        let mut reader = Reader {
            bytes,
            texts: &texts,
            provider: Provider {
                guid: bytes.guid(entry),
                ..Provider::default()
            },
            places: Places::default(),
        };
        reader.provider(bytes.place(entry + 16));
        manifest.providers.push(reader.provider);
    }
    (manifest, version)
}

/// Where the things are that others refer to, in the order of the provider's lists.
#[derive(Default)]
struct Places {
    channels: Vec<usize>,
    levels: Vec<usize>,
    tasks: Vec<usize>,
    opcodes: Vec<usize>,
    keywords: Vec<usize>,
    maps: Vec<usize>,
    templates: Vec<usize>,
}

/// The number of the thing at a place, if it is at one.
fn number(places: &[usize], place: usize) -> Option<usize> {
    (place != 0).then(|| places.iter().position(|one| *one == place).unwrap())
}

struct Reader<'a> {
    bytes: Bytes<'a>,
    texts: &'a BTreeMap<u32, TextRef>,
    provider: Provider,
    places: Places,
}

impl Reader<'_> {
    fn message(&self, at: usize) -> Option<TextRef> {
        let id = self.bytes.u32(at);
        (id != NO_MESSAGE).then(|| self.texts[&id])
    }

    fn name(&self, at: usize) -> QName {
        QName::plain(&self.bytes.text(self.bytes.place(at)))
    }

    fn provider(&mut self, at: usize) {
        let bytes = self.bytes;
        assert_eq!(bytes.array(at), *b"WEVT");
        self.provider.message = self.message(at + 8);
        let mut lists: BTreeMap<u32, usize> = (0..bytes.place(at + 12))
            .map(|list| at + 16 + list * 8)
            .map(|list| (bytes.u32(list), bytes.place(list + 4)))
            .collect();
        let mut list = |kind| lists.remove(&kind);
        // What others refer to comes first.
        if let Some(at) = list(0) {
            self.levels(at);
        }
        if let Some(at) = list(1) {
            self.tasks(at);
        }
        if let Some(at) = list(2) {
            self.opcodes(at);
        }
        if let Some(at) = list(3) {
            self.keywords(at);
        }
        if let Some(at) = list(5) {
            self.channels(at);
        }
        if let Some(at) = list(6) {
            self.maps(at);
        }
        if let Some(at) = list(7) {
            self.templates(at);
        }
        if let Some(at) = list(4) {
            self.events(at);
        }
        if let Some(at) = list(12) {
            self.event_attributes(at);
        }
        if let Some(at) = list(13) {
            self.provider_attributes(at);
        }
        assert!(lists.is_empty(), "lists of other kinds: {lists:?}");
    }

    fn levels(&mut self, at: usize) {
        self.places.levels = self.bytes.list(at, *b"LEVL", 12);
        for at in self.places.levels.clone() {
            self.provider.levels.push(Level {
                name: self.name(at + 8),
                value: self.bytes.u32(at).try_into().unwrap(),
                message: self.message(at + 4),
                ..Level::default()
            });
        }
    }

    fn tasks(&mut self, at: usize) {
        self.places.tasks = self.bytes.list(at, *b"TASK", 28);
        for at in self.places.tasks.clone() {
            let guid = self.bytes.guid(at + 8);
            self.provider.tasks.push(Task {
                name: self.name(at + 24),
                value: self.bytes.u32(at).try_into().unwrap(),
                event_guid: (guid != Guid::default()).then_some(guid),
                message: self.message(at + 4),
                ..Task::default()
            });
        }
    }

    fn opcodes(&mut self, at: usize) {
        self.places.opcodes = self.bytes.list(at, *b"OPCO", 12);
        for at in self.places.opcodes.clone() {
            let task = self.bytes.u16(at);
            let tasks = &self.provider.tasks;
            let task = (task != 0).then(|| tasks.iter().position(|one| one.value == task).unwrap());
            self.provider.opcodes.push(Opcode {
                name: self.name(at + 8),
                value: self.bytes.u16(at + 2).try_into().unwrap(),
                task,
                message: self.message(at + 4),
                ..Opcode::default()
            });
        }
    }

    fn keywords(&mut self, at: usize) {
        self.places.keywords = self.bytes.list(at, *b"KEYW", 16);
        for at in self.places.keywords.clone() {
            self.provider.keywords.push(Keyword {
                name: self.name(at + 12),
                mask: self.bytes.u64(at),
                message: self.message(at + 8),
                ..Keyword::default()
            });
        }
    }

    fn channels(&mut self, at: usize) {
        self.places.channels = self.bytes.list(at, *b"CHAN", 16);
        for at in self.places.channels.clone() {
            self.provider.channels.push(Channel {
                name: self.name(at + 4).written,
                value: self.bytes.u32(at + 8).try_into().unwrap(),
                message: self.message(at + 12),
                imported: self.bytes.u32(at) != 0,
                ..Channel::default()
            });
        }
    }

    /// The list has the maps in the order of their names; they lie in the manifest's.
    fn maps(&mut self, at: usize) {
        let bytes = self.bytes;
        let list = bytes.list(at, *b"MAPS", 4);
        self.places.maps = list.into_iter().map(|entry| bytes.place(entry)).collect();
        self.places.maps.sort_unstable();
        for at in self.places.maps.clone() {
            let is_bits = bytes.array(at) == *b"BMAP";
            assert!(is_bits || bytes.array(at) == *b"VMAP");
            let items = (0..bytes.place(at + 16)).map(|item| at + 20 + item * 8);
            let items = items.map(|item| MapItem {
                value: bytes.u32(item),
                message: self.message(item + 4).unwrap(),
                ..MapItem::default()
            });
            let map = Map {
                name: self.name(at + 8).written,
                is_bits,
                items: items.collect(),
                ..Map::default()
            };
            self.provider.maps.push(map);
        }
    }

    fn templates(&mut self, at: usize) {
        let count = self.bytes.list(at, *b"TTBL", 0).len();
        let mut at = at + 12;
        for _ in 0..count {
            self.places.templates.push(at);
            let template = self.template(at);
            self.provider.templates.push(template);
            at += self.bytes.place(at + 4);
        }
    }

    fn template(&self, at: usize) -> Template {
        const USER_DATA: u32 = 2;
        const XML: usize = 40;
        let bytes = self.bytes;
        assert_eq!(bytes.array(at), *b"TEMP");
        let fields = bytes.place(at + 8);
        let descriptors = bytes.place(at + 16);
        let xml = xml(bytes, at + XML);
        let named = xml.attributes.iter().find(|(key, _)| key == "Name");
        Template {
            name: named.map(|(_, name)| name.clone()),
            properties: (0..fields)
                .map(|field| self.property(descriptors, field, 0))
                .collect(),
            user_data: (bytes.u32(at + 20) == USER_DATA).then(|| spaced(xml)),
            ..Template::default()
        }
    }

    /// A field; those that others refer to are counted from a base.
    fn property(&self, descriptors: usize, field: usize, base: usize) -> Property {
        const STRUCT: u32 = 1;
        let bytes = self.bytes;
        let at = descriptors + field * 20;
        let flags = bytes.u32(at);
        let size = |fixed: u32, variable: u32, at: usize| {
            let number = bytes.u16(at);
            if flags & variable != 0 {
                Size::Field(usize::from(number) - base)
            } else if flags & fixed != 0 {
                Size::Fixed(number)
            } else {
                // Only of a SID is the length written without a flag.
                assert!(number == 0 || bytes.0[at - 10] == 19, "at {at:#x}");
                if number == 0 {
                    Size::None
                } else {
                    Size::Fixed(number)
                }
            }
        };
        let kind = if flags & STRUCT == 0 {
            PropertyKind::Data {
                in_type: in_type(bytes.0[at + 4]),
                out_type: bytes.0[at + 5],
                explicit_out_type: true,
                map: number(&self.places.maps, bytes.place(at + 8)),
            }
        } else {
            let first = usize::from(bytes.u16(at + 4));
            let members = first..first + usize::from(bytes.u16(at + 6));
            let members = members.map(|member| self.property(descriptors, member, first));
            PropertyKind::Struct(members.collect())
        };
        Property {
            name: self.name(at + 16).written,
            count: size(8, 0x10, at + 12),
            length: size(2, 4, at + 14),
            kind,
            others: Vec::new(),
            at: etw_manifest::Position::default(),
        }
    }

    fn events(&mut self, at: usize) {
        let bytes = self.bytes;
        for at in bytes.list(at, *b"EVNT", 48).into_iter().map(|at| at + 4) {
            let channel = number(&self.places.channels, bytes.place(at + 44));
            let keywords = bytes.place(at + 40);
            let event = Event {
                id: bytes.u16(at),
                version: bytes.0[at + 2],
                channel,
                opcode: number(&self.places.opcodes, bytes.place(at + 24)),
                level: number(&self.places.levels, bytes.place(at + 28)),
                task: number(&self.places.tasks, bytes.place(at + 32)),
                keywords: (0..bytes.place(at + 36))
                    .map(|keyword| bytes.place(keywords + keyword * 4))
                    .map(|place| number(&self.places.keywords, place).unwrap())
                    .collect(),
                template: number(&self.places.templates, bytes.place(at + 20)),
                message: self.message(at + 16),
                ..Event::default()
            };
            if let Some(channel) = channel {
                let bit = bytes.u64(at + 8) & 1 << (63 - channel);
                self.provider.channels[channel].declared |= bit != 0;
            }
            self.provider.events.push(event);
        }
    }

    fn event_attributes(&mut self, at: usize) {
        let bytes = self.bytes;
        for entry in bytes.list(at, *b"EVTA", 8) {
            let (version, id) = (bytes.0[entry + 1], bytes.u16(entry + 2));
            let text = bytes.open_text(bytes.place(entry + 4));
            let mut events = self.provider.events.iter_mut();
            let event = events.find(|event| (event.id, event.version) == (id, version));
            let event = event.unwrap();
            match bytes.0[entry] {
                0x11 => event.name = Some(text),
                0x12 => match &mut event.attributes {
                    Some(all) => *all = format!("{all};{text}"),
                    none => *none = Some(text),
                },
                other => panic!("attribute {other:#x}"),
            }
        }
    }

    fn provider_attributes(&mut self, at: usize) {
        let bytes = self.bytes;
        for entry in bytes.list(at, *b"PRVA", 8) {
            let place = bytes.place(entry + 4);
            match bytes.u32(entry) {
                0x1000_0001 => self.provider.name = bytes.open_text(place),
                0x2000_0001 => self.provider.control_guid = Some(bytes.guid(place)),
                0x2000_0002 => self.provider.group_guid = Some(bytes.guid(place)),
                other => panic!("attribute {other:#x}"),
            }
        }
    }
}

/// Own XML with the white space that the template's GUID is made with and binary XML leaves out:
/// mc.exe's own between elements, and the manifests' (all of them alike) around a field.
fn spaced(mut root: Element) -> Element {
    fn fields(nodes: &mut [Node]) {
        for node in nodes {
            match node {
                Node::Text(text) => *text = format!(" {text} "),
                Node::Element(element) => fields(&mut element.nodes),
            }
        }
    }
    fields(&mut root.nodes);
    let inner = root.nodes.drain(..).collect::<Vec<_>>();
    for node in inner {
        root.nodes.push(Node::Text("\r\n\t\t".to_owned()));
        root.nodes.push(node);
    }
    root.nodes.push(Node::Text("\r\n\t".to_owned()));
    root
}

fn in_type(value: u8) -> &'static InType {
    let mut all = IN_TYPES.iter();
    all.find(|one| one.value == value).unwrap()
}

/// The element of a fragment of binary XML.
fn xml(bytes: Bytes<'_>, at: usize) -> Element {
    const FRAGMENT: [u8; 4] = [0x0F, 1, 1, 0];
    assert_eq!(bytes.array(at), FRAGMENT, "at {at:#x}");
    let mut at = at + 4;
    let root = element(bytes, &mut at);
    assert_eq!(bytes.0[at], 0, "at {at:#x}");
    root
}

fn xml_name(bytes: Bytes<'_>, at: &mut usize) -> String {
    let count = usize::from(bytes.u16(*at + 2));
    let name = bytes.units(*at + 4, count);
    *at += 4 + (count + 1) * 2;
    name
}

fn element(bytes: Bytes<'_>, at: &mut usize) -> Element {
    const MORE: u8 = 0x40;
    let open = bytes.0[*at];
    assert_eq!(open & !MORE, 1, "at {at:#x}");
    *at += 7;
    let mut element = Element {
        name: xml_name(bytes, at),
        ..Element::default()
    };
    if open & MORE != 0 {
        *at += 4;
        loop {
            let token = bytes.0[*at];
            assert_eq!(token & !MORE, 6, "at {at:#x}");
            *at += 1;
            let key = xml_name(bytes, at);
            assert_eq!(bytes.array(*at), [5, 1], "at {at:#x}");
            let count = usize::from(bytes.u16(*at + 2));
            element.attributes.push((key, bytes.units(*at + 4, count)));
            *at += 4 + count * 2;
            if token & MORE == 0 {
                break;
            }
        }
    }
    assert_eq!(bytes.0[*at], 2, "at {at:#x}");
    *at += 1;
    loop {
        match bytes.0[*at] {
            4 => break,
            0x0D => {
                let field = bytes.u16(*at + 1) + 1;
                element.nodes.push(Node::Text(format!("%{field}")));
                *at += 4;
            }
            _ => element.nodes.push(Node::Element(self::element(bytes, at))),
        }
    }
    *at += 1;
    element
}
