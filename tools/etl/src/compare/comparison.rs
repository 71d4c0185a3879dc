//! Compares the events of two decoders, property by property and field by field.

use std::collections::{BTreeMap, HashMap};
use std::mem::{Discriminant, discriminant};

use etw_wire::Guid;

use super::event::{Form, OtherEvent};
use super::other::Other;
use super::ours::Ours;
use super::pair::pair;
use super::property::Property;
use super::time::OtherTime;
use super::value::{described_code, is_guid, is_same, unsigned};
use etl_file::Decoded;
use etl_file::decode::{Problem, Value};

/// The channel of `TraceLogging` events.
const TRACE_LOGGING: u8 = 11;

/// A property or field that two decoders show differently, or an event that one of them lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The event: its time, provider, id and name.
    pub event: String,
    /// The property or field; `event` if a decoder lacks the event, `problem` if a decoder could
    /// not decode a part of it.
    pub field: String,
    /// The value that this crate decodes; `None` if it has no such field.
    pub ours: Option<String>,
    /// The value that the other decoder shows; `None` if it has no such field.
    pub theirs: Option<String>,
}

/// A property that the other decoder omits from some events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The property.
    pub property: Property,
    /// The number of compared events without it.
    pub events: u64,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The number of events that both decoders returned.
    pub compared: u64,
    /// The number of events that only the trace contains.
    pub only_ours: u64,
    /// The number of events that only the other decoder's file contains.
    pub only_theirs: u64,
    /// The number of compared properties.
    pub properties: u64,
    /// The number of compared field values.
    pub fields: u64,
    /// The number of differences.
    pub differences: u64,
    /// The differences in event order, up to the requested number.
    pub listed: Vec<Difference>,
    /// The properties that the other decoder omits, which are therefore not compared.
    pub unstated: Vec<Silence>,
    /// The number of status codes for which the other decoder shows only the system's text. They
    /// are not compared, but each code must always have the same text.
    pub described: u64,
    /// The number of compared `TraceLogging` events whose fields were not compared because
    /// Get-WinEvent does not show them.
    pub undecoded: u64,
}

impl Comparison {
    /// Compares a trace's events with another decoder's output for it. `limit` is the number of
    /// differences to list.
    #[must_use]
    pub fn new(ours: &Ours, other: &Other, limit: usize) -> Self {
        let mut work = Work {
            comparison: Self::default(),
            unstated: BTreeMap::new(),
            texts: HashMap::new(),
            limit,
            is_win_event: other.form == Form::XmlInJson,
        };
        let partners = pair(&ours.events, &other.events);
        let mut is_paired = vec![false; other.events.len()];
        for (own, partner) in ours.events.iter().zip(partners) {
            if let Some((at, theirs)) = partner.and_then(|at| Some((at, other.events.get(at)?))) {
                if let Some(paired) = is_paired.get_mut(at) {
                    *paired = true;
                }
                work.event(own, theirs);
            } else {
                work.comparison.only_ours += 1;
                let (event, name) = (|| name_of(own), "event".to_owned());
                work.difference(&event, name, Some("present".to_owned()), None);
            }
        }
        for (theirs, _) in other.events.iter().zip(is_paired).filter(|(_, paired)| !paired) {
            work.comparison.only_theirs += 1;
            let (event, name) = (|| name_of_theirs(theirs), "event".to_owned());
            work.difference(&event, name, None, Some("present".to_owned()));
        }
        let mut comparison = work.comparison;
        comparison.unstated = work
            .unstated
            .into_iter()
            .map(|(property, events)| Silence { property, events })
            .collect();
        comparison
    }

    /// Returns true if at least one event was compared and there are no differences.
    #[must_use]
    pub const fn agrees(&self) -> bool {
        self.differences == 0 && self.compared > 0
    }
}

/// A comparison in progress.
struct Work {
    comparison: Comparison,
    unstated: BTreeMap<Property, u64>,
    /// The system's descriptions of status codes, by type and code.
    texts: HashMap<(Discriminant<Value>, u32), String>,
    limit: usize,
    /// True if the events come from Get-WinEvent, which only uses manifests.
    is_win_event: bool,
}

impl Work {
    fn difference(
        &mut self,
        event: &dyn Fn() -> String,
        field: String,
        ours: Option<String>,
        theirs: Option<String>,
    ) {
        self.comparison.differences += 1;
        if self.comparison.listed.len() < self.limit {
            self.comparison.listed.push(Difference { event: event(), field, ours, theirs });
        }
    }

    fn event(&mut self, ours: &Decoded, theirs: &OtherEvent) {
        self.comparison.compared += 1;
        let event = || name_of(ours);
        for (property, _) in Property::ALL {
            self.property(ours, theirs, property);
        }
        // No manifest describes a TraceLogging event, so Get-WinEvent shows no fields, or an error
        // instead of them.
        let is_described = ours.descriptor.channel != TRACE_LOGGING;
        if self.is_win_event && !is_described && !theirs.has_data {
            self.comparison.undecoded += 1;
            return;
        }
        // TDH ignores bytes after the last field.
        let problem = |problem: &&Problem| !matches!(problem, Problem::Surplus { .. });
        let own = ours.problems.iter().find(problem).map(Problem::to_string);
        if own.is_some() != theirs.problem.is_some() {
            self.difference(&event, "problem".to_owned(), own, theirs.problem.clone());
        }
        self.all_fields(ours, theirs);
    }

    fn property(&mut self, ours: &Decoded, theirs: &OtherEvent, property: Property) {
        let stated = theirs.properties.get(&property).map(String::as_str);
        let descriptor = &ours.descriptor;
        let number = |own: u64| (own.to_string(), stated.and_then(unsigned) == Some(own));
        let (own, is_same) = match property {
            Property::Provider => {
                (ours.provider.to_string(), stated.is_some_and(|text| is_guid(ours.provider, text)))
            }
            Property::ProviderName => (
                ours.provider_name.as_deref().unwrap_or_default().to_owned(),
                ours.provider_name.as_deref() == stated,
            ),
            Property::Id => number(descriptor.id.into()),
            Property::Version => number(descriptor.version.into()),
            Property::Level => number(descriptor.level.into()),
            Property::Task => number(descriptor.task.into()),
            Property::Opcode => number(descriptor.opcode.into()),
            Property::Keywords => {
                let (_, is_same) = number(descriptor.keyword);
                (format!("{:#x}", descriptor.keyword), is_same)
            }
            Property::Time => (
                ours.time.to_string(),
                stated.and_then(OtherTime::parse).is_some_and(|other| other.is(ours.time)),
            ),
            Property::Process => number(ours.process_id.into()),
            Property::Thread => number(ours.thread_id.into()),
            Property::Processor => number(ours.processor.into()),
            Property::Activity => activity(ours.activity, stated),
            Property::RelatedActivity => {
                activity(ours.related_activity.unwrap_or_default(), stated)
            }
        };
        let may_be_absent = matches!(property, Property::Activity | Property::RelatedActivity);
        if stated.is_none() && !may_be_absent {
            *self.unstated.entry(property).or_default() += 1;
            return;
        }
        self.comparison.properties += 1;
        if !is_same {
            let theirs = stated.map(str::to_owned);
            self.difference(&|| name_of(ours), property.name().to_owned(), Some(own), theirs);
        }
    }

    fn all_fields(&mut self, ours: &Decoded, theirs: &OtherEvent) {
        let event = || name_of(ours);
        let mut own = Leaves::default();
        for (name, value) in &ours.fields {
            own.add(&without_numbers(name), value);
        }
        let mut others: HashMap<String, Vec<&str>> = HashMap::new();
        let mut order = Vec::new();
        for (name, text) in &theirs.fields {
            let name = without_numbers(name);
            others
                .entry(name.clone())
                .or_insert_with(|| {
                    order.push(name);
                    Vec::new()
                })
                .push(text);
        }
        for name in &own.order {
            let values = own.values.get(name).map(Vec::as_slice).unwrap_or_default();
            let texts = others.remove(name).unwrap_or_default();
            let is_list = values.len() > 1 || texts.len() > 1;
            for at in 0..values.len().max(texts.len()) {
                self.comparison.fields += 1;
                let (value, text) = (values.get(at), texts.get(at));
                if let (Some(value), Some(text)) = (value, text)
                    && is_same(value, text)
                {
                    continue;
                }
                if let (Some(value), Some(text)) = (value, text)
                    && let Some(code) = described_code(value, text)
                {
                    let known = self.texts.entry((discriminant(value), code));
                    if known.or_insert_with(|| (*text).to_owned()) == text {
                        self.comparison.described += 1;
                        continue;
                    }
                }
                // A decoder shows nothing for a field without data.
                if text.is_none() && matches!(value, Some(Value::Null)) {
                    continue;
                }
                let name = if is_list { format!("{name}[{at}]") } else { name.clone() };
                let theirs = text.map(|text| (*text).to_owned());
                self.difference(&event, name, value.map(ToString::to_string), theirs);
            }
        }
        for name in order {
            for text in others.remove(&name).unwrap_or_default() {
                self.comparison.fields += 1;
                self.difference(&event, name.clone(), None, Some(text.to_owned()));
            }
        }
    }
}

/// The scalar values of an event by field name. The elements of an array share a name.
#[derive(Default)]
struct Leaves<'a> {
    order: Vec<String>,
    values: HashMap<String, Vec<&'a Value>>,
}

impl<'a> Leaves<'a> {
    fn add(&mut self, name: &str, value: &'a Value) {
        match value {
            Value::Array(elements) => {
                for element in elements {
                    self.add(name, element);
                }
            }
            Value::Struct(members) => {
                for (member, value) in members {
                    self.add(&format!("{name}.{}", without_numbers(member)), value);
                }
            }
            leaf => {
                let values = self.values.entry(name.to_owned()).or_default();
                if values.is_empty() {
                    self.order.push(name.to_owned());
                }
                values.push(leaf);
            }
        }
    }
}

/// Returns a name without element numbers: `parts.size` for `parts[0].size`.
fn without_numbers(name: &str) -> String {
    let parts = name.split('.').map(|part| {
        let number = part.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
        match number {
            Some((bare, number))
                if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                bare
            }
            _ => part,
        }
    });
    parts.collect::<Vec<_>>().join(".")
}

/// Compares an activity id; a decoder may omit the null GUID.
fn activity(own: Guid, stated: Option<&str>) -> (String, bool) {
    let is_same = stated.map_or_else(|| own == Guid::default(), |text| is_guid(own, text));
    (own.to_string(), is_same)
}

fn name_of(event: &Decoded) -> String {
    let provider = event
        .provider_name
        .as_ref()
        .map_or_else(|| event.provider.to_string(), ToString::to_string);
    let id = event.descriptor.id;
    let name = event.event_name.as_deref().unwrap_or_default();
    format!("{} {provider} {id} {name}", event.time).trim_end().to_owned()
}

fn name_of_theirs(event: &OtherEvent) -> String {
    let text = |property| event.properties.get(&property).map(String::as_str);
    let provider = text(Property::ProviderName).or_else(|| text(Property::Provider));
    format!(
        "{} {} {}",
        text(Property::Time).unwrap_or("?"),
        provider.unwrap_or("?"),
        text(Property::Id).unwrap_or("?")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_numbers_of_elements_are_left_out_of_a_name() {
        for (name, bare) in [
            ("size", "size"),
            ("parts[0].size", "parts.size"),
            ("parts[12]", "parts"),
            ("parts[].size", "parts[].size"),
            ("parts[x]", "parts[x]"),
            ("parts[1x]", "parts[1x]"),
        ] {
            assert_eq!(without_numbers(name), bare);
        }
    }

    #[test]
    fn what_was_compared_agrees_without_differences() {
        let agrees = |compared, differences| {
            let result = Comparison { compared, differences, ..Comparison::default() };
            result.agrees()
        };
        assert!(agrees(1, 0));
        assert!(!agrees(0, 0));
        assert!(!agrees(1, 1));
    }

    #[test]
    fn an_event_is_named_by_its_time_provider_id_and_name() {
        let mut event = etl_fixtures::decoded(etl_file::EventRecord::default());
        let (time, provider) = (event.time, event.provider);
        assert_eq!(name_of(&event), format!("{time} {provider} 0"));
        event.provider_name = Some("P".into());
        event.event_name = Some("E".into());
        assert_eq!(name_of(&event), format!("{time} P 0 E"));
    }
}
