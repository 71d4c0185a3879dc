//! The tables: the layouts of the kernel's events by class, event and version (ETL-14.4).
//!
//! The names are those of Microsoft's MOF classes, as far as these are published; the layouts are
//! those that genuine records have.

mod network;
mod performance;
mod process;
mod session;
mod storage;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use etw_wire::Guid;

use super::descriptor::{Class, Event, Layout, Type};

/// All classes.
static CLASSES: [&Class; 33] = [
    &session::EVENT_TRACE,
    &session::EVENT_METADATA,
    &storage::DISK_IO,
    &storage::PAGE_FAULT,
    &process::PROCESS,
    &storage::FILE_IO,
    &process::THREAD,
    &network::TCP,
    &session::JOB,
    &network::UDP,
    &storage::REGISTRY,
    &session::DEBUG_PRINT,
    &session::SYSTEM_CONFIG,
    &session::SYSTEM_CONFIG_EX,
    &session::WNF,
    &session::POOL,
    &performance::PERF_INFO,
    &session::HEAP,
    &session::OBJECT_TRACE,
    &session::POWER,
    &session::MODBOUND,
    &process::IMAGE,
    &session::DPC,
    &session::CACHE,
    &session::CRITICAL_SECTION,
    &performance::STACK_WALK,
    &session::UMS,
    &session::ALPC,
    &session::SPLIT_IO,
    &session::THREAD_POOL,
    &session::HYPERVISOR,
    &session::HYPERVISOR_EXTENDED,
    &process::IMAGE_ID,
];

/// The one hook whose upper byte is not the group of its class.
const IMAGE_LOAD: u16 = 0x030a;

/// A class, with names that events can share.
#[derive(Debug)]
pub struct KnownClass {
    pub guid: Guid,
    pub name: Arc<str>,
    group: Option<u8>,
    events: HashMap<u8, KnownEvent>,
}

/// An event of a class, with names that events can share.
#[derive(Debug)]
pub struct KnownEvent {
    pub name: Arc<str>,
    pub layouts: Vec<KnownLayout>,
}

/// A layout with the names of its fields.
#[derive(Debug)]
pub struct KnownLayout {
    pub layout: Layout,
    pub names: Vec<Arc<str>>,
}

impl KnownClass {
    fn new(class: &Class) -> Self {
        Self {
            guid: class.guid,
            name: class.name.into(),
            group: class.group,
            events: class
                .events
                .iter()
                .map(|event| (event.opcode, KnownEvent::new(event)))
                .collect(),
        }
    }

    /// Returns the event with this opcode.
    pub fn event(&self, opcode: u8) -> Option<&KnownEvent> {
        self.events.get(&opcode)
    }

    /// Returns the hook that system records give the events with this opcode. Classes that only
    /// classic records have give none.
    pub fn hook(&self, opcode: u8) -> Option<u16> {
        let group = self.group?;
        let [load, _] = IMAGE_LOAD.to_le_bytes();
        Some(if Some(group) == process::IMAGE.group && opcode == load {
            IMAGE_LOAD
        } else {
            u16::from_le_bytes([opcode, group])
        })
    }
}

impl KnownEvent {
    fn new(event: &Event) -> Self {
        Self {
            name: event.name.into(),
            layouts: event
                .layouts
                .iter()
                .map(|&layout| KnownLayout {
                    layout,
                    names: layout.fields.iter().map(|field| field.name.into()).collect(),
                })
                .collect(),
        }
    }

    /// Returns the layouts of a version. Several are alternatives, of which the record's size
    /// decides.
    pub fn of_version(&self, version: u8) -> impl Iterator<Item = &KnownLayout> + Clone {
        self.layouts
            .iter()
            .filter(move |known| (known.layout.first..=known.layout.last).contains(&version))
    }

    /// Returns true if a version starts with a reading of the session's clock.
    pub fn starts_with_ticks(&self) -> bool {
        let mut first = self.layouts.iter().filter_map(|known| known.layout.fields.first());
        first.any(|field| field.kind == Type::Ticks)
    }

    /// Returns the last version that is known.
    pub fn last_version(&self) -> Option<u8> {
        self.layouts.iter().map(|known| known.layout.last).max()
    }
}

/// The classes by GUID and by group.
struct Index {
    classes: Vec<KnownClass>,
    by_guid: HashMap<Guid, usize>,
    by_group: HashMap<u8, usize>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| Index {
    classes: CLASSES.iter().map(|class| KnownClass::new(class)).collect(),
    by_guid: (0..).zip(&CLASSES).map(|(at, class)| (class.guid, at)).collect(),
    by_group: (0..).zip(&CLASSES).filter_map(|(at, class)| Some((class.group?, at))).collect(),
});

/// Returns the class with this GUID.
pub fn by_guid(guid: Guid) -> Option<&'static KnownClass> {
    let at = INDEX.by_guid.get(&guid)?;
    INDEX.classes.get(*at)
}

/// Returns the class of the events with this hook.
pub fn by_hook(hook: u16) -> Option<&'static KnownClass> {
    let [_, group] = hook.to_le_bytes();
    let group = if hook == IMAGE_LOAD { process::IMAGE.group? } else { group };
    let at = INDEX.by_group.get(&group)?;
    INDEX.classes.get(*at)
}

/// Returns the descriptors of all classes.
pub const fn all() -> &'static [&'static Class] {
    &CLASSES
}

#[cfg(test)]
mod tests {
    use super::*;

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
