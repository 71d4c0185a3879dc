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

/// The limits of a function.
pub struct Limits {
    /// The limit above which a call is an error.
    pub limit: &'static str,
    /// The limits of the annotations and of the documentation, if they differ.
    pub sources: Option<[&'static str; 2]>,
}

/// Returns the limits of a function. A call is an error above the limits of both the annotations and the
/// documentation. A limit of the documentation that depends on arguments or memory only raises that of
/// the annotations. A function for which neither states a limit has none.
pub fn limits(name: &str, function: &Function) -> Result<Limits> {
    let annotated = annotated(name, function)?;
    let documented = function.documented.map(|limit| parse(name, limit)).transpose()?;
    let level = |limit: &str| LEVELS.iter().position(|level| *level == limit);
    let depends = function.documented.is_some_and(|limit| limit.ends_with('*'));
    Ok(match (annotated, documented) {
        (Some(annotated), Some(documented))
            if level(annotated) < level(documented)
                || level(annotated) > level(documented) && !depends =>
        {
            let limit = if level(annotated) < level(documented) { documented } else { annotated };
            Limits { limit, sources: Some([annotated, documented]) }
        }
        (annotated, documented) => {
            let limit = annotated.or(documented).unwrap_or("HIGH_LEVEL");
            Limits { limit, sources: None }
        }
    })
}

/// Returns the limit of a function's annotation or, if there is none, the highest limit of its
/// conditional annotations. A function whose annotations have only a minimum has no limit.
fn annotated(name: &str, function: &Function) -> Result<Option<&'static str>> {
    if let Some(limit) = function.annotation {
        return parse(name, limit).map(Some);
    }
    let mut highest = None;
    for condition in &function.conditions {
        if let Some((_, limit)) = condition.split_once("_IRQL_requires_max_(") {
            let limit = parse(name, limit.split(')').next().unwrap_or_default())?;
            let place = LEVELS.iter().position(|level| *level == limit);
            highest = highest.max(place);
        }
    }
    Ok(highest.map(|place| LEVELS[place]).or_else(|| function.has_minimum.then_some("HIGH_LEVEL")))
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
