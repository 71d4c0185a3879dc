//! A system's answers.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// A value of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(u64),
    /// A string. Statuses and masks are hexadecimal digits after `0x`.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(true) => f.write_str("yes"),
            Self::Flag(false) => f.write_str("no"),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(u64::from(number))
    }
}

impl From<u8> for Value {
    fn from(number: u8) -> Self {
        Self::Number(u64::from(number))
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The values of an answer, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Values(pub BTreeMap<String, Value>);

impl Values {
    /// Adds a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a status.
    #[must_use]
    pub fn status(self, name: &str, status: u32) -> Self {
        let text = if status == etw_probes_interface::NOT_CALLED {
            "not called".to_owned()
        } else {
            format!("0x{status:08x}")
        };
        self.with(name, text.as_str())
    }

    /// Adds a mask.
    #[must_use]
    pub fn mask(self, name: &str, mask: u64) -> Self {
        self.with(name, format!("0x{mask:x}").as_str())
    }
}

/// An answer to a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The observed values.
    Found(Values),
    /// The reason why the probe was not run.
    NotAsked(String),
}

/// The probed system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The system's name, such as `Windows`.
    pub name: String,
    /// The build, such as `10.0.26100.1742`; the file is named after it and the architecture.
    pub build: String,
    /// The architecture, such as `x86_64`.
    pub architecture: String,
}

/// The answers of one system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// The system.
    pub system: System,
    /// The answers, by probe id.
    pub answers: BTreeMap<String, Answer>,
}
