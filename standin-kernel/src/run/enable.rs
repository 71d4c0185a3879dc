//! The providers and groups that a command line enables.

use anyhow::{Result, anyhow, bail};
use etl_file::Guid;

use crate::{
    harness::script::provider,
    services::etw::{controller::EnableParameters, state::Target},
};

/// A provider or group to enable, as named on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// The name or GUID.
    pub name: String,
    /// The provider or group.
    pub target: Target,
    /// The parameters with which to enable it.
    pub parameters: EnableParameters,
}

impl Enabled {
    /// Parses `NAME|GUID[:LEVEL[:ANY[:ALL]]]`.
    ///
    /// # Errors
    ///
    /// Fails if a part does not have this form.
    pub fn parse(text: &str, target: fn(Guid) -> Target) -> Result<Self> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        if name.is_empty() {
            bail!("`{text}` has no name or GUID; write NAME:LEVEL:ANY:ALL");
        }
        let mut number = |what: &str, most: u64, default: u64| {
            let Some(part) = parts.next() else {
                return Ok(default);
            };
            let parsed = part
                .strip_prefix("0x")
                .map_or_else(|| part.parse(), |digits| u64::from_str_radix(digits, 16));
            parsed.ok().filter(|number| *number <= most).ok_or_else(|| {
                anyhow!("in `{text}`, `{part}` is not a {what}; expected a number from 0 to {most}")
            })
        };
        let level = number("level", u64::from(u8::MAX), u64::from(u8::MAX))?;
        let parameters = EnableParameters {
            level: u8::try_from(level)?,
            // A classic provider takes the value literally (ETW-3.6.6).
            match_any: number("match-any mask", u64::MAX, u64::MAX)?,
            match_all: number("match-all mask", u64::MAX, 0)?,
            ..EnableParameters::default()
        };
        if parts.next().is_some() {
            bail!("`{text}` has too many parts; write NAME:LEVEL:ANY:ALL");
        }
        Ok(Self {
            name: name.to_owned(),
            target: target(provider(name).map_err(|why| anyhow!(why))?),
            parameters,
        })
    }
}
