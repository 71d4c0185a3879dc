//! A probe.

use etw_scenarios::HostError;

use crate::{answers::Values, stage::Stage};

/// A function that runs a probe and returns the answer.
pub type Run = fn(&mut Stage<'_>) -> Result<Values, HostError>;

/// A question about ETW that no document answers, and the function that runs the probe.
pub struct Probe {
    /// The name in answers files.
    pub id: &'static str,
    /// The question, as a sentence.
    pub text: &'static str,
    /// The ids in `docs/reference/etw-runtime.md` of the unspecified behavior and the statements
    /// that it covers, such as `O3` and `ETW-4.3.2`.
    pub about: Vec<&'static str>,
    /// The document with the most information about the question.
    pub source: &'static str,
    /// The confidence of the documented answer, as in `docs/reference/etw-runtime.md`: `high`,
    /// `medium` or `low`.
    pub confidence: &'static str,
    /// The documented answer.
    pub documented: &'static str,
    /// The stand-in kernel's assumption.
    pub assumed: &'static str,
    /// True if identical systems can give different answers. Tests do not compare such answers.
    pub varies: bool,
    /// True if the probe may cause a bugcheck; such probes run last.
    pub risky: bool,
    /// The function that runs the probe.
    pub(crate) run: Run,
}
