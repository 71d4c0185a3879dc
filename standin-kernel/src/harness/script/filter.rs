//! The step that changes a provider's filters.

use super::{
    syntax::FILTER_SETTINGS,
    words::{bytes, did_you_mean, number, quoted},
};
use crate::services::etw::{
    controller::EnableParameters,
    filters::{EventIdFilter, EventNameFilter, FilterData},
};

/// The settings of a `filter` step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    level: Option<u8>,
    any: Option<u64>,
    all: Option<u64>,
    ids: Option<EventIdFilter>,
    names: Option<EventNameFilter>,
    data: Option<FilterData>,
    processes: Vec<u32>,
    ignore_keyword_0: bool,
    exclude_private: bool,
}

impl Filter {
    /// Parses settings, such as `keep-ids=1,2`.
    pub fn parse(words: &[&str]) -> Result<Self, String> {
        let mut filter = Self::default();
        let mut names =
            EventNameFilter { keep: true, level: 0, match_any: 0, match_all: 0, names: Vec::new() };
        let mut examines = false;
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match key {
                "level" => filter.level = Some(number(value)?),
                "any" => filter.any = Some(number(value)?),
                "all" => filter.all = Some(number(value)?),
                "keep-ids" | "drop-ids" => {
                    if filter.ids.is_some() {
                        return Err("a provider can have one filter by id".to_owned());
                    }
                    filter.ids =
                        Some(EventIdFilter { keep: key == "keep-ids", ids: numbers(value)? });
                }
                "keep-names" | "drop-names" => {
                    if !names.names.is_empty() {
                        return Err("a provider can have one filter by name".to_owned());
                    }
                    names.keep = key == "keep-names";
                    let value = quoted(value).unwrap_or(value);
                    names.names = value.split(',').map(str::to_owned).collect();
                }
                "names-level" => (names.level, examines) = (number(value)?, true),
                "names-any" => (names.match_any, examines) = (number(value)?, true),
                "names-all" => (names.match_all, examines) = (number(value)?, true),
                "data" => filter.data = Some(data(value)?),
                "processes" => filter.processes = numbers(value)?,
                "ignore-keyword-0" => filter.ignore_keyword_0 = true,
                "exclude-private" => filter.exclude_private = true,
                _ => {
                    let known = FILTER_SETTINGS.iter().map(|one| one.name);
                    let forms: Vec<&str> = FILTER_SETTINGS.iter().map(|one| one.form).collect();
                    return Err(format!(
                        "`{key}` is not a filter setting{}; the settings are {}",
                        did_you_mean(key, known),
                        forms.join(" ")
                    ));
                }
            }
        }
        if !names.names.is_empty() {
            filter.names = Some(names);
        } else if examines {
            return Err("a filter by name needs `keep-names` or `drop-names`".to_owned());
        }
        Ok(filter)
    }

    /// Returns the parameters with which to enable the provider. Settings that the step omits keep
    /// their values from `now`.
    pub fn apply(&self, now: &EnableParameters) -> EnableParameters {
        let mut parameters = EnableParameters {
            level: self.level.unwrap_or(now.level),
            match_any: self.any.unwrap_or(now.match_any),
            match_all: self.all.unwrap_or(now.match_all),
            ignore_keyword_0: self.ignore_keyword_0,
            source: now.source,
            filter: self.data.clone(),
            exclude_in_private: self.exclude_private,
            stack_walk: now.stack_walk,
            only_processes: self.processes.clone(),
            ..EnableParameters::default()
        };
        parameters.events.ids.clone_from(&self.ids);
        parameters.events.names.clone_from(&self.names);
        parameters
    }
}

/// Parses comma-separated numbers.
fn numbers<T: TryFrom<u64>>(value: &str) -> Result<Vec<T>, String> {
    value.split(',').map(number).collect()
}

/// Parses `ID:VERSION:BYTES`.
fn data(value: &str) -> Result<FilterData, String> {
    let mut parts = value.splitn(3, ':');
    let (Some(id), Some(version), Some(data)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!(
            "`{value}` is not filter data; write ID:VERSION:BYTES, such as 1:0:hex:0102"
        ));
    };
    Ok(FilterData { id: number(id)?, version: number(version)?, data: bytes(data)? })
}
