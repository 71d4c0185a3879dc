//! The highest IRQL at which each routine may be called.

use std::collections::BTreeMap;

use super::{Result, headers::Function};

/// The levels, from lowest to highest: constants of `Irql`.
const LEVELS: [&str; 5] = ["PASSIVE_LEVEL", "APC_LEVEL", "DISPATCH_LEVEL", "DIRQL", "HIGH_LEVEL"];

/// Parses limits.txt: the routines whose limit is not the one that the data imply. Each line has a
/// name, the limit, and the reason.
pub fn exceptions(text: &str) -> Result<BTreeMap<&str, &'static str>> {
    let mut found = BTreeMap::new();
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    for row in rows {
        let mut words = row.splitn(3, ' ');
        let (Some(names), Some(limit), Some(_reason)) = (words.next(), words.next(), words.next())
        else {
            return Err(format!("limits.txt: not `NAME[,NAME] LEVEL REASON`: {row}").into());
        };
        let limit = level(limit).ok_or_else(|| format!("limits.txt: no such level: {row}"))?;
        for name in names.split(',') {
            if found.insert(name, limit).is_some() {
                return Err(format!("limits.txt has {name} twice").into());
            }
        }
    }
    Ok(found)
}

fn level(name: &str) -> Option<&'static str> {
    LEVELS.into_iter().find(|level| *level == name)
}

/// Returns the limit of a function: its annotation's or, if there is none, the highest limit of its
/// conditional annotations. A function whose annotations have only a minimum has no limit. Without
/// annotations, the limit is the documentation's, if it states one.
pub fn highest_level(name: &str, function: &Function) -> Result<&'static str> {
    if let Some(limit) = function.annotation {
        return parse(name, limit);
    }
    let mut highest = None;
    for condition in &function.conditions {
        if let Some((_, limit)) = condition.split_once("_IRQL_requires_max_(") {
            let limit = parse(name, limit.split(')').next().unwrap_or_default())?;
            let place = LEVELS.iter().position(|level| *level == limit);
            highest = highest.max(place);
        }
    }
    match highest {
        Some(place) => Ok(LEVELS[place]),
        None if function.has_minimum => Ok("HIGH_LEVEL"),
        None => function.documented.map_or(Ok("HIGH_LEVEL"), |limit| parse(name, limit)),
    }
}

/// Parses a limit such as `<= DISPATCH_LEVEL`. An asterisk marks limits that depend on arguments.
fn parse(name: &str, limit: &str) -> Result<&'static str> {
    let limit = limit.trim_end_matches('*');
    let found = match limit {
        // The documentation means the DIRQL of any device.
        "any" | "<= DIRQL" | "DIRQL" | ">= DISPATCH_LEVEL" | "< IPI_LEVEL" | "IPI_LEVEL - 1" => {
            Some("HIGH_LEVEL")
        }
        "DISPATCH_LEVEL + 1" => Some("DIRQL"),
        "DPC_LEVEL" => Some("DISPATCH_LEVEL"),
        "< DISPATCH_LEVEL" => Some("APC_LEVEL"),
        "< APC_LEVEL" => Some("PASSIVE_LEVEL"),
        limit => level(limit.trim_start_matches("<= ")),
    };
    found.ok_or_else(|| format!("{name} has the unknown limit {limit}").into())
}
