//! The classes in `classes.txt`, by GUID and by hook.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use etw_wire::Guid;

use super::payload::HARDWARE;
use crate::decode::mof::{Class, Event, Field, Layout, Type};

/// The only hook whose upper byte differs from its class's group.
const IMAGE_LOAD: u16 = 0x030a;
/// The group of image events.
const IMAGE_GROUP: u8 = 0x14;

impl Class {
    /// Returns the event with this opcode.
    pub(crate) fn event(&self, opcode: u8) -> Option<&Event> {
        let at = self.events.binary_search_by_key(&opcode, |event| event.opcode).ok()?;
        self.events.get(at)
    }

    /// Returns the hook of system records with this opcode, or `None` for a class that exists only
    /// in classic records.
    pub(super) fn hook(&self, opcode: u8) -> Option<u16> {
        let group = self.group?;
        let [load, _] = IMAGE_LOAD.to_le_bytes();
        Some(if group == IMAGE_GROUP && opcode == load {
            IMAGE_LOAD
        } else {
            u16::from_le_bytes([opcode, group])
        })
    }
}

impl Event {
    /// Returns the layouts of a version. If there are several, the record's size selects one.
    pub(super) fn of_version(&self, version: u8) -> impl Iterator<Item = &Layout> + Clone {
        self.layouts.iter().filter(move |layout| (layout.first..=layout.last).contains(&version))
    }

    /// Returns true if events of a version start with a reading of the session's clock.
    pub(super) fn starts_with_ticks(&self) -> bool {
        let mut first = self.layouts.iter().filter_map(|layout| layout.fields.first());
        first.any(|field| field.kind == Type::Ticks)
    }

    /// Returns true if events of a version contain the address of a network adapter.
    pub(super) fn has_hardware_addresses(&self) -> bool {
        let mut fields = self.layouts.iter().flat_map(|layout| &layout.fields);
        fields.any(|field| HARDWARE.contains(&&*field.name))
    }

    /// Returns the latest known version.
    pub(super) fn last_version(&self) -> Option<u8> {
        self.layouts.iter().map(|layout| layout.last).max()
    }
}

/// Returns true if events of a class can contain the address of a network adapter. This is fast for
/// the many classes whose events contain none.
pub fn has_hardware_addresses(class: Guid) -> bool {
    static CLASSES: LazyLock<Vec<Guid>> = LazyLock::new(|| {
        let classes = INDEX.classes.iter();
        let found = classes.filter(|class| class.events.iter().any(Event::has_hardware_addresses));
        found.map(|class| class.guid).collect()
    });
    CLASSES.contains(&class)
}

/// The classes by GUID and by group.
struct Index {
    classes: Vec<Class>,
    by_guid: HashMap<Guid, usize>,
    by_group: HashMap<u8, usize>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    // A test checks that no line is malformed.
    let (classes, _) = parse(include_str!("classes.txt"));
    Index {
        by_guid: (0..).zip(&classes).map(|(at, class)| (class.guid, at)).collect(),
        by_group: (0..).zip(&classes).filter_map(|(at, class)| Some((class.group?, at))).collect(),
        classes,
    }
});

/// Returns the class with this GUID.
pub fn by_guid(guid: Guid) -> Option<&'static Class> {
    let at = INDEX.by_guid.get(&guid)?;
    INDEX.classes.get(*at)
}

/// Returns the class of the events with this hook.
pub fn by_hook(hook: u16) -> Option<&'static Class> {
    let [_, group] = hook.to_le_bytes();
    let group = if hook == IMAGE_LOAD { IMAGE_GROUP } else { group };
    let at = INDEX.by_group.get(&group)?;
    INDEX.classes.get(*at)
}

/// Returns all known classes.
pub fn all() -> &'static [Class] {
    &INDEX.classes
}

/// Parses tables. Returns the classes, and the malformed lines, which are skipped.
fn parse(text: &'static str) -> (Vec<Class>, Vec<&'static str>) {
    let mut classes: Vec<Class> = Vec::new();
    let mut malformed = Vec::new();
    // The number of events in the last event line.
    let mut together = 0;
    for line in text.lines() {
        let content = line.trim_start();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let known = match (line.len() - content.len(), classes.last_mut()) {
            (0, _) => class(content).map(|class| classes.push(class)),
            (2, Some(class)) => {
                content.split(' ').map(event).collect::<Option<Vec<_>>>().map(|events| {
                    together = events.len();
                    class.events.extend(events);
                })
            }
            (4, Some(class)) => {
                let events = class.events.iter_mut().rev().take(together);
                // Each event has its own copy of the layout, which is small; names are shared.
                layout(content)
                    .map(|layout| events.for_each(|event| event.layouts.push(layout.clone())))
            }
            _ => None,
        };
        if known.is_none() {
            malformed.push(line);
        }
    }
    for class in &mut classes {
        class.events.sort_by_key(|event| event.opcode);
    }
    (classes, malformed)
}

fn class(line: &str) -> Option<Class> {
    let mut words = line.strip_prefix("class ")?.split(' ');
    let (name, guid, group) = (words.next()?, words.next()?, words.next()?);
    let group = match group {
        "-" => None,
        group => Some(u8::from_str_radix(group, 16).ok()?),
    };
    Some(Class { guid: guid.parse().ok()?, name: name.into(), group, events: Vec::new() })
}

fn event(word: &str) -> Option<Event> {
    let (opcode, name) = word.split_once(':')?;
    let opcode = u8::from_str_radix(opcode, 16).ok()?;
    Some(Event { opcode, name: name.into(), layouts: Vec::new() })
}

fn layout(line: &'static str) -> Option<Layout> {
    let mut words = line.split(' ');
    let (first, last) = versions(words.next()?)?.into_inner();
    Some(Layout { first, last, fields: words.map(field).collect::<Option<_>>()? })
}

fn versions(word: &str) -> Option<RangeInclusive<u8>> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

fn field(word: &'static str) -> Option<Field> {
    let (name, kind) = word.split_once(':')?;
    let required = name.strip_suffix('?');
    let kind = Type::named(kind)?;
    Some(Field { name: required.unwrap_or(name).into(), kind, optional: required.is_some() })
}

/// Returns a version 0 layout with these fields.
#[cfg(test)]
pub fn layout_of(fields: &'static str) -> Layout {
    let fields = fields.split(' ').map(field).collect::<Option<_>>().unwrap();
    Layout { first: 0, last: 0, fields }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_line_is_read_and_nothing_is_there_twice() {
        let text = include_str!("classes.txt");
        let (classes, malformed) = parse(text);
        assert_eq!(malformed, [""; 0]);
        let distinct = |count: usize, all: HashSet<String>| assert_eq!(all.len(), count, "{all:?}");
        distinct(classes.len(), classes.iter().map(|class| class.guid.to_string()).collect());
        distinct(classes.len(), classes.iter().map(|class| class.name.to_string()).collect());
        let groups = classes.iter().filter_map(|class| class.group);
        distinct(groups.clone().count(), groups.map(|group| group.to_string()).collect());
        for class in &classes {
            let events = &class.events;
            distinct(events.len(), events.iter().map(|event| event.opcode.to_string()).collect());
            for event in events {
                let place = format!("{}/{}", class.name, event.name);
                let layouts = &event.layouts;
                distinct(layouts.len(), layouts.iter().map(|one| format!("{one:?}")).collect());
                for layout in layouts {
                    assert!(layout.first <= layout.last, "{place}");
                    let names = layout.fields.iter().map(|field| field.name.to_string());
                    distinct(layout.fields.len(), names.collect());
                }
            }
        }
        assert!(by_guid(crate::decode::schemas::METADATA_CLASS).is_some());
    }

    #[test]
    fn malformed_lines_are_named() {
        let text = "  01:Early\nclass A x 01\nclass A 00000000-0000-0000-0000-000000000001 -\n  zz:B\n  \
                    01:C\n    1-x D:U8\n    1 D\n    1 D:U9\n    1 D:U8(2)\n    1 D:Bytes\n    1 D:U8";
        let (classes, malformed) = parse(text);
        assert_eq!(malformed.len(), 8, "{malformed:?}");
        assert_eq!(classes[0].events[0].layouts.len(), 1);
    }

    #[test]
    fn the_load_of_an_image_has_a_hook_in_the_group_of_processes() {
        let image = by_hook(0x030A).unwrap();
        assert_eq!(&*image.name, "Image");
        assert_eq!(image.hook(0x0A), Some(0x030A));
        assert_eq!(image.hook(0x02), Some(0x1402));
        let process = by_hook(0x0301).unwrap();
        assert_eq!(&*process.name, "Process");
        assert_eq!(process.hook(0x01), Some(0x0301));
        let thread = by_hook(0x0501).unwrap();
        assert_eq!(thread.hook(0x0A), Some(0x050A));
    }
}
