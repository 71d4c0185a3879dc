//! Providers, and the items of a declaration that events refer to.

use proc_macro2::Span;
use syn::{Attribute, Ident, Item, Path, Visibility};

use crate::{Encoding, Event, Field, Guid, Scalar};

/// A provider's declaration.
#[derive(Debug)]
pub struct Provider {
    /// The name.
    pub name: String,
    /// The GUID.
    pub guid: Guid,
    /// The GUID of the provider's group.
    pub group: Option<Guid>,
    /// The custom traits.
    pub traits: Vec<Trait>,
    /// The default encoding of the events.
    pub encoding: Option<Encoding>,
    /// The notification hooks.
    pub hooks: Hooks,
    /// True if traces record the path of the driver's image (`EventProviderBinaryTrackInfo`).
    pub binary_tracking: bool,
    /// True if the provider counts its events and writes its counters when a session requests its
    /// state.
    pub statistics: bool,
    /// True if debug builds also print the provider's events in the debugger.
    pub debugger: bool,
    /// The number of cache lines among which the counts of writes in progress are spread, or `None`
    /// for the library's choice; 0 without a rundown.
    pub stripes: Option<u8>,
    /// The path of the manifest from which the image's resources are generated, relative to the
    /// package's folder, or `None` to generate them from the declaration.
    pub manifest: Option<String>,
    /// The session that the driver's INF file adds, for events while Windows starts and later.
    pub autologger: Option<AutoLogger>,
    /// The module's name.
    pub module: Ident,
    /// The module's visibility.
    pub visibility: Visibility,
    /// The module's other attributes.
    pub attributes: Vec<Attribute>,
    /// The keywords.
    pub keywords: Vec<Keyword>,
    /// The tasks.
    pub tasks: Vec<Named<u16>>,
    /// The provider's own opcodes, for events of any task.
    pub opcodes: Vec<Named<u8>>,
    /// The opcodes of tasks.
    pub task_opcodes: Vec<TaskOpcodes>,
    /// The provider's own levels.
    pub levels: Vec<Named<u8>>,
    /// The provider's own channels, and the Windows logs that it writes to.
    pub channels: Vec<Channel>,
    /// The value maps and bit maps.
    pub maps: Vec<Map>,
    /// The structures.
    pub structures: Vec<Structure>,
    /// The events.
    pub events: Vec<Event>,
    /// The module's other items.
    pub others: Vec<Item>,
}

impl Provider {
    /// Returns the keyword mask of an event's descriptor: the event's keywords and its channel's
    /// bit, which the event log uses to enable the event. The first channel has bit 63, the next
    /// one bit 62, and so on.
    #[must_use]
    pub fn keyword_mask(&self, event: &Event) -> u64 {
        const FIRST: usize = 63;
        let channel = match event.encoding {
            Encoding::Manifest => event.channel,
            // The channel of these events only marks their encoding.
            Encoding::TraceLogging => 0,
        };
        let place = self.channels.iter().position(|one| channel != 0 && one.named.value == channel);
        let bit = place.and_then(|place| FIRST.checked_sub(place));
        event.keyword | bit.map_or(0, |bit| 1 << bit)
    }

    /// Returns true if the provider must register its traits: it has a group, custom traits,
    /// `TraceLogging` events or no events at all. Other providers omit them, because ETW would add
    /// the traits to every event and make it larger.
    #[must_use]
    pub fn sets_traits(&self) -> bool {
        let describes = |event: &Event| event.encoding == Encoding::TraceLogging;
        self.group.is_some()
            || !self.traits.is_empty()
            || self.events.is_empty()
            || self.events.iter().any(describes)
    }
}

/// A session that Windows starts while it boots (`AutoLogger`), and that enables the provider.
///
/// The values have the names and ranges of [`etw_wire::autologger`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoLogger {
    /// The session's name. Providers of a driver that name the same session share it.
    pub session: String,
    /// The session's GUID.
    pub guid: Guid,
    /// The path of the log file, below the folder for drivers' data (`%DriverData%`).
    pub file: Option<String>,
    /// The values of the session.
    pub values: Vec<(&'static str, u64)>,
    /// The values of the provider in the session.
    pub provider_values: Vec<(&'static str, u64)>,
}

/// A custom trait.
#[derive(Debug)]
pub struct Trait {
    /// The type, 128 to 255.
    pub kind: u8,
    /// The data.
    pub data: Vec<u8>,
}

/// The paths of the notification hooks.
#[derive(Debug, Default)]
pub struct Hooks {
    /// Called when a session enables the provider.
    pub on_enable: Option<Path>,
    /// Called when the last session disables the provider.
    pub on_disable: Option<Path>,
    /// Called when a session requests the provider's state.
    pub on_capture_state: Option<Path>,
}

/// A keyword: a named bit.
#[derive(Debug)]
pub struct Keyword {
    /// The constant's name.
    pub ident: Ident,
    /// The name in a manifest.
    pub name: String,
    /// The bit, 0 to 47.
    pub bit: u32,
    /// The source location of the bit.
    pub bit_span: Span,
    /// The constant's visibility.
    pub visibility: Visibility,
    /// The lines of the doc comment.
    pub docs: Vec<String>,
}

/// A named value: a task, an opcode, a channel or an entry of a map.
#[derive(Debug)]
pub struct Named<T> {
    /// The variant's name.
    pub ident: Ident,
    /// The name in a manifest.
    pub name: String,
    /// The value.
    pub value: T,
    /// The source location of the value.
    pub value_span: Span,
    /// The lines of the doc comment.
    pub docs: Vec<String>,
}

/// The opcodes of a task: `#[opcodes(task = Request)]`. Opcodes of different tasks may have the
/// same values and names.
#[derive(Debug)]
pub struct TaskOpcodes {
    /// The name of the task's variant.
    pub task: Ident,
    /// The opcodes.
    pub opcodes: Vec<Named<u8>>,
}

/// One of the provider's own channels, or a Windows log.
#[derive(Debug)]
pub struct Channel {
    /// The variant's name and value: 16 to 255, or 8 to 10 for a Windows log.
    pub named: Named<u8>,
    /// `Admin`, `Operational`, `Analytic` or `Debug`; `Import` for a Windows log.
    pub kind: String,
    /// The channel's settings in the event log; empty for a Windows log.
    pub settings: ChannelSettings,
}

/// A channel's event log settings when the provider is installed. `None` selects the event log's
/// default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelSettings {
    /// True if the channel is enabled; by default, it is disabled.
    pub enabled: Option<bool>,
    /// The channels with which the channel shares a session and the access rights.
    pub isolation: Option<Isolation>,
    /// The security descriptor of the channel, in SDDL.
    pub access: Option<String>,
    /// The maximum size of the log file in bytes, at least [`MIN_LOG_SIZE`].
    pub max_size: Option<u64>,
    /// True if a full log file keeps its events, false if new events replace the oldest ones.
    pub retention: Option<bool>,
    /// True if a full log file is kept and a new one is started.
    pub auto_backup: Option<bool>,
}

/// The smallest allowed value of a log file's maximum size, in bytes.
pub const MIN_LOG_SIZE: u64 = 1 << 20;

/// The isolation of a channel: the channels with which it shares a session and access rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The channels of applications.
    Application,
    /// The channels of the system.
    System,
    /// No other channels.
    Custom,
}

impl Isolation {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Application, Self::System, Self::Custom];

    /// Returns the name in a declaration and in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "Application",
            Self::System => "System",
            Self::Custom => "Custom",
        }
    }
}

impl ChannelSettings {
    /// Returns whether a text looks like an SDDL security descriptor that a manifest and an INF
    /// file can contain.
    #[must_use]
    pub fn is_sddl(text: &str) -> bool {
        let mut depth = 0_usize;
        for one in text.chars() {
            match one {
                '(' => depth += 1,
                ')' => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => return false,
                },
                // In an INF file, text between percent signs is a placeholder.
                ' '..='~' if one != '%' => {}
                _ => return false,
            }
        }
        let has_parts = ["O:", "G:", "D:", "S:"].iter().any(|part| text.starts_with(part));
        has_parts && depth == 0
    }

    /// Returns why a channel of this kind cannot have `auto_backup`.
    #[must_use]
    pub fn refused_backup(&self, kind: &str) -> Option<&'static str> {
        if self.auto_backup != Some(true) {
            return None;
        }
        match (kind, self.retention) {
            ("Admin" | "Operational", Some(true)) => None,
            ("Admin" | "Operational", _) => Some("it needs `retention = true`"),
            _ => Some("only `Admin` and `Operational` channels can have it"),
        }
    }
}

/// The kind of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// A value map: a field has one of the values.
    Value,
    /// A bit map: a field has any combination of the bits.
    Bits,
}

/// A map: names for the values of a field.
#[derive(Debug)]
pub struct Map {
    /// The type's name.
    pub ident: Ident,
    /// The name in a manifest.
    pub name: String,
    /// The type's visibility.
    pub visibility: Visibility,
    /// The kind of map.
    pub kind: MapKind,
    /// The underlying integer type: `U8`, `U16` or `U32`.
    pub scalar: Scalar,
    /// The entries.
    pub entries: Vec<Named<u32>>,
    /// The lines of the doc comment.
    pub docs: Vec<String>,
}

/// A structure of several fields.
#[derive(Debug)]
pub struct Structure {
    /// The type's name.
    pub ident: Ident,
    /// The type's visibility.
    pub visibility: Visibility,
    /// True if `wdk-etw` provides the type, so that no code is generated for it.
    pub in_library: bool,
    /// The type's generics, which structures with borrowed fields have.
    pub generics: syn::Generics,
    /// The fields.
    pub fields: Vec<Field>,
    /// The lines of the doc comment.
    pub docs: Vec<String>,
}
