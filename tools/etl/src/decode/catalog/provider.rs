//! A provider as its manifest describes it.

use std::collections::HashMap;

use etw_wire::Guid;

use crate::decode::schema::Schema;

/// A provider of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// The GUID that its events are decoded by.
    pub guid: Guid,
    /// The GUID that it is enabled by, if that is another one.
    pub control_guid: Option<Guid>,
    pub(crate) levels: HashMap<u8, String>,
    pub(crate) tasks: HashMap<u16, String>,
    /// By task, 0 for all tasks, and value.
    pub(crate) opcodes: HashMap<(u16, u8), String>,
    pub(crate) keywords: Vec<(u64, String)>,
    pub(crate) events: HashMap<(u16, u8), EventDefinition>,
}

/// An event of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventDefinition {
    /// Layout of its user data.
    pub schema: Schema,
    /// Its symbol.
    pub symbol: Option<String>,
    /// Its message, with `%1` to `%99` for the fields.
    pub message: Option<String>,
}

impl EventDefinition {
    /// The event's name, or else its symbol.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let name = &self.schema.event_name;
        if name.is_empty() {
            self.symbol.clone()
        } else {
            Some(name.clone())
        }
    }
}

impl Provider {
    /// An event by id and version.
    #[must_use]
    pub fn event(&self, id: u16, version: u8) -> Option<&EventDefinition> {
        self.events.get(&(id, version))
    }

    /// The name of a level of the provider's own.
    #[must_use]
    pub fn level(&self, value: u8) -> Option<&str> {
        self.levels.get(&value).map(String::as_str)
    }

    /// The name of a task.
    #[must_use]
    pub fn task(&self, value: u16) -> Option<&str> {
        self.tasks.get(&value).map(String::as_str)
    }

    /// The name of an opcode: the task's own, or else the provider's.
    #[must_use]
    pub fn opcode(&self, task: u16, value: u8) -> Option<&str> {
        self.opcodes
            .get(&(task, value))
            .or_else(|| self.opcodes.get(&(0, value)))
            .map(String::as_str)
    }

    /// Masks and names of the provider's own keywords, in the order of the
    /// manifest.
    #[must_use]
    pub fn keywords(&self) -> &[(u64, String)] {
        &self.keywords
    }
}
