//! The parts of an event that its rows consist of.

use etl_file::decode::{Kind, Value};
use etl_file::internals::distinct_names;
use etl_file::{Decoded, EventRef};

/// An event with the texts that its rows need.
#[derive(Debug)]
pub struct Row {
    /// The event. Its fields are in `fields`.
    pub event: Decoded,
    /// The fields, with distinct names.
    pub fields: Value,
    /// The fields in JSON, as `etl dump --format json` writes them.
    pub json: String,
    /// The date in UTC.
    pub date: String,
    pub(crate) user_data: Vec<u8>,
    pub(crate) provider: String,
    pub(crate) activity: Option<String>,
    pub(crate) related: Option<String>,
    pub(crate) problems: Vec<String>,
    pub(crate) stack: Vec<String>,
}

impl Row {
    /// Prepares an event.
    ///
    /// # Errors
    /// Fails if a value cannot be written as JSON.
    pub fn new(event: &EventRef<'_>, mut decoded: Decoded) -> Result<Self, serde_json::Error> {
        let mut fields = std::mem::take(&mut decoded.fields);
        if let Some(names) = distinct_names(&fields) {
            fields.iter_mut().zip(names).for_each(|((to, _), name)| *to = name.into());
        }
        let fields = Value::Struct(fields);
        let activity = Some(decoded.activity).filter(|activity| !activity.is_null());
        let time = decoded.time.to_string();
        Ok(Self {
            json: serde_json::to_string(&fields)?,
            fields,
            date: match time.split_once('T') {
                Some((date, _)) if !time.contains(' ') => date.to_owned(),
                _ => "unknown".to_owned(),
            },
            user_data: event.user_data.to_vec(),
            provider: decoded.provider.to_string(),
            activity: activity.map(|activity| activity.to_string()),
            related: decoded.related_activity.map(|related| related.to_string()),
            problems: decoded.problems.iter().map(ToString::to_string).collect(),
            stack: decoded
                .stack
                .iter()
                .flat_map(|stack| &stack.frames)
                .map(ToString::to_string)
                .collect(),
            event: decoded,
        })
    }

    /// Returns the provider's name, or its GUID.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.event.provider_name.as_deref().unwrap_or(&self.provider)
    }

    /// Returns the event's name, or its id.
    #[must_use]
    pub fn name(&self) -> String {
        let id = || format!("id-{}", self.event.descriptor.id);
        self.event.event_name.as_deref().map_or_else(id, str::to_owned)
    }

    pub(crate) const fn kind(&self) -> &'static str {
        match self.event.kind {
            Kind::Event => "event",
            Kind::Kernel { .. } => "kernel",
            Kind::Classic { .. } => "classic",
            Kind::Wpp => "wpp",
        }
    }
}
