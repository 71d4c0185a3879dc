//! The properties that every event has, named as in the event schema.

use std::fmt;

/// A property of an event, as opposed to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// The provider's GUID.
    Provider,
    /// The provider's name.
    ProviderName,
    /// The id.
    Id,
    /// The version.
    Version,
    /// The level.
    Level,
    /// The task.
    Task,
    /// The opcode.
    Opcode,
    /// The keywords.
    Keywords,
    /// The time.
    Time,
    /// The process that wrote the event.
    Process,
    /// The thread that wrote the event.
    Thread,
    /// The processor on which the event was written.
    Processor,
    /// The activity id; the null GUID if there is none.
    Activity,
    /// The related activity id; the null GUID if there is none.
    RelatedActivity,
}

impl Property {
    /// All properties, and their names.
    pub const ALL: [(Self, &str); 14] = [
        (Self::Provider, "provider"),
        (Self::ProviderName, "provider name"),
        (Self::Id, "id"),
        (Self::Version, "version"),
        (Self::Level, "level"),
        (Self::Task, "task"),
        (Self::Opcode, "opcode"),
        (Self::Keywords, "keywords"),
        (Self::Time, "time"),
        (Self::Process, "process"),
        (Self::Thread, "thread"),
        (Self::Processor, "processor"),
        (Self::Activity, "activity"),
        (Self::RelatedActivity, "related activity"),
    ];

    /// Returns the property's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(property, _)| *property == self);
        known.map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
