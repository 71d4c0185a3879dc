//! A question.

use etw_scenarios::HostError;

use crate::{answers::Values, stage::Stage};

/// How sure the documented answer is, as in `docs/reference/etw-runtime.md`.
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
    /// Returns the word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// A question about ETW, and the stage that asks it.
pub struct Question {
    /// The name in answers files.
    pub id: &'static str,
    /// The question, as a sentence.
    pub text: &'static str,
    /// The questions and statements of `docs/reference/etw-runtime.md` that it is about, such as
    /// `O3` and `ETW-4.3.2`.
    pub about: &'static [&'static str],
    /// The document that says the most about it.
    pub source: &'static str,
    /// How sure the documented answer is.
    pub confidence: Confidence,
    /// What documents say.
    pub documented: &'static str,
    /// What the stand-in kernel assumes.
    pub assumed: &'static str,
    /// True if the answers of two equal systems can differ, so that no test compares them.
    pub varies: bool,
    /// True if a system may bugcheck for it; such questions are asked last.
    pub risky: bool,
    /// Asks it.
    pub(crate) stage: fn(&mut Stage<'_>) -> Result<Values, HostError>,
}
