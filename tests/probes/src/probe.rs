//! A probe.

use etw_scenarios::HostError;

use crate::{answers::Values, stage::Stage};

/// The confidence of a documented answer, as in `docs/reference/etw-runtime.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// A primary source states it.
    High,
    /// One indirect source, or an obvious conclusion.
    Medium,
    /// A guess, sources that contradict each other, or no source.
    Low,
}

impl Confidence {
    /// Returns the word for the confidence.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// A question to ETW that no document answers, and the stage that asks it.
pub struct Probe {
    /// The name in answers files.
    pub id: &'static str,
    /// The question, as a sentence.
    pub text: &'static str,
    /// The ids in `docs/reference/etw-runtime.md` of the unspecified behavior and the statements that it covers,
    /// such as `O3` and `ETW-4.3.2`.
    pub about: &'static [&'static str],
    /// The document with the most information about it.
    pub source: &'static str,
    /// The confidence of the documented answer.
    pub confidence: Confidence,
    /// The documented answer.
    pub documented: &'static str,
    /// The stand-in kernel's assumption.
    pub assumed: &'static str,
    /// True if two equal systems can give different answers; tests do not compare these.
    pub varies: bool,
    /// True if the probe may cause a bugcheck; such probes run last.
    pub risky: bool,
    /// The function that asks it.
    pub(crate) stage: fn(&mut Stage<'_>) -> Result<Values, HostError>,
}
