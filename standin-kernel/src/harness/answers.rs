//! The settings for unspecified behavior that follow from a file of measured answers.
//!
//! `etw-probes` writes and checks the files. This module reads only the answers that determine a
//! setting.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::config::KernelConfig;
use crate::{
    ground::NtStatus,
    services::etw::unspecified::{
        GroupDenial, ImplicitActivity, PagedSession, UnspecifiedBehaviour,
    },
};

/// The supported version of the files.
const VERSION: u64 = 1;

/// The error for an answers file from which a kernel cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum AnswersError {
    /// The string is not JSON, or is not an answers file.
    #[error("the answers are not an answers file: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The file has another version.
    #[error("the answers file has version {0}; this kernel reads version {VERSION}")]
    Version(u64),
    /// The answer to a probe lacks a value.
    #[error("the answer to `{probe}` has no `{key}`; another version of the probes wrote the file")]
    Missing {
        /// The probe.
        probe: &'static str,
        /// The value's name.
        key: &'static str,
    },
    /// A value has the wrong form, or no setting produces it.
    #[error("the answer to `{probe}` has {key} = {found}; expected {expected}")]
    Unexpected {
        /// The probe.
        probe: &'static str,
        /// The value's name.
        key: &'static str,
        /// The value as JSON.
        found: String,
        /// The values that are supported.
        expected: &'static str,
    },
}

/// The parts of an answers file that this module reads.
#[derive(Deserialize)]
struct File {
    version: u64,
    answers: Map<String, Value>,
}

impl KernelConfig {
    /// Returns a configuration with the settings for unspecified behavior that an answers file
    /// implies. `answers` is the contents of a file in `standin-kernel/answers`. A setting whose
    /// probe was not run keeps its default.
    ///
    /// # Errors
    ///
    /// Returns an error if `answers` is not an answers file, or if no setting produces one of its
    /// answers.
    pub fn like(answers: &str) -> Result<Self, AnswersError> {
        let file: File = serde_json::from_str(answers)?;
        if file.version != VERSION {
            return Err(AnswersError::Version(file.version));
        }
        Ok(Self { unspecified_behaviour: file.behaviour()?, ..Self::default() })
    }
}

impl File {
    /// Returns the settings.
    fn behaviour(&self) -> Result<UnspecifiedBehaviour, AnswersError> {
        let default = UnspecifiedBehaviour::default();
        Ok(UnspecifiedBehaviour {
            passes_level_zero: match self.number("level-zero", "alone")? {
                None => default.passes_level_zero,
                Some(0) => true,
                Some(255) => false,
                Some(other) => return Err(unexpected("level-zero", "alone", &other, "0 or 255")),
            },
            match_all_without_any: self
                .flag("match-all-without-any", "delivered_without_bit")?
                .map_or(default.match_all_without_any, |delivered| !delivered),
            second_traits: self.status("traits-again", "status")?.unwrap_or(default.second_traits),
            denied_group: self.denied_group()?.unwrap_or(default.denied_group),
            filters_at_registration: self
                .flag("callback-at-registration", "filter")?
                .unwrap_or(default.filters_at_registration),
            disabled_at_unregistration: self
                .number("callback-at-unregistration", "callbacks")?
                .map_or(default.disabled_at_unregistration, |callbacks| callbacks > 0),
            independent_session_suffices: self
                .status("loss-independent", "status")?
                .map_or(default.independent_session_suffices, |status| status == NtStatus::SUCCESS),
            every_session_counts_loss: self
                .number("loss-bystander", "lost_with_room")?
                .map_or(default.every_session_counts_loss, |lost| lost > 0),
            largest_event: self
                .number("largest-event", "size")?
                .map_or(default.largest_event, |size| usize::try_from(size).unwrap_or(usize::MAX)),
            activity_at_dispatch: self
                .activity_at_dispatch()?
                .unwrap_or(default.activity_at_dispatch),
            group_counts_toward_limit: self
                .number("limit-by-group", "ninth_error")?
                .map_or(default.group_counts_toward_limit, |error| error != 0),
            direct_replaces_group: self
                .number("direct-and-group", "recorded")?
                .map_or(default.direct_replaces_group, |recorded| recorded == 0),
            paged_session: self.number("paged-session", "enable_error")?.map_or(
                default.paged_session,
                |error| {
                    if error == 0 { PagedSession::GetsNoEvents } else { PagedSession::CannotEnable }
                },
            ),
            activity_without_teb: self
                .status("activity-work-item", "get")?
                .unwrap_or(default.activity_without_teb),
            activity_id_control_kernel: self
                .flag("activity-kernel-routine", "exists")?
                .unwrap_or(default.activity_id_control_kernel),
        })
    }

    /// O3: returns the outcome for traits that name a group that the driver is not allowed to join.
    fn denied_group(&self) -> Result<Option<GroupDenial>, AnswersError> {
        const PROBE: &str = "group-refused";
        let status = self.status(PROBE, "status")?;
        let set = self.flag(PROBE, "traits_set")?;
        let joined = self.flag(PROBE, "joined")?;
        let (Some(status), Some(set), Some(joined)) = (status, set, joined) else {
            return Ok(None);
        };
        match (status == NtStatus::SUCCESS, set, joined) {
            (false, false, false) => Ok(Some(GroupDenial::SkipsAllTraits)),
            (false, true, false) => Ok(Some(GroupDenial::SkipsGroup)),
            (true, true, false) => Ok(Some(GroupDenial::SkipsGroupSilently)),
            (true, true, true) => Ok(Some(GroupDenial::DoesNotApply)),
            (_, set, joined) => Err(unexpected(
                PROBE,
                "traits_set, joined",
                &format!("{set}, {joined} with status {status}"),
                "an outcome of GroupDenial",
            )),
        }
    }

    /// O8: returns the implicit activity at `DISPATCH_LEVEL`, if the driver ran on the thread whose
    /// activity was set.
    fn activity_at_dispatch(&self) -> Result<Option<ImplicitActivity>, AnswersError> {
        const PROBE: &str = "implicit-activity-at-dispatch";
        if self.flag(PROBE, "on_thread")? != Some(true) {
            return Ok(None);
        }
        match self.text(PROBE, "raised")? {
            None => Ok(None),
            Some("thread") => Ok(Some(ImplicitActivity::OfTheThread)),
            Some("none") => Ok(Some(ImplicitActivity::Null)),
            Some(other) => Err(unexpected(PROBE, "raised", &other, "\"thread\" or \"none\"")),
        }
    }

    /// Returns a value from the answer to a probe, or `None` if the probe was not run.
    fn value(
        &self,
        probe: &'static str,
        key: &'static str,
    ) -> Result<Option<&Value>, AnswersError> {
        match self.answers.get(probe) {
            None => Ok(None),
            Some(answer) if answer.get("not_asked").is_some() => Ok(None),
            Some(answer) => answer.get(key).map(Some).ok_or(AnswersError::Missing { probe, key }),
        }
    }

    fn flag(&self, probe: &'static str, key: &'static str) -> Result<Option<bool>, AnswersError> {
        self.converted(probe, key, "true or false", Value::as_bool)
    }

    fn number(&self, probe: &'static str, key: &'static str) -> Result<Option<u64>, AnswersError> {
        self.converted(probe, key, "a number", Value::as_u64)
    }

    fn text(&self, probe: &'static str, key: &'static str) -> Result<Option<&str>, AnswersError> {
        self.converted(probe, key, "text", Value::as_str)
    }

    /// Returns a status, which the files write as `0xc000000d`.
    fn status(
        &self,
        probe: &'static str,
        key: &'static str,
    ) -> Result<Option<NtStatus>, AnswersError> {
        let status = |value: &Value| {
            let digits = value.as_str()?.strip_prefix("0x")?;
            let bits = u32::from_str_radix(digits, 16).ok()?;
            Some(NtStatus(bits.cast_signed()))
        };
        self.converted(probe, key, "a status such as \"0xc000000d\"", status)
    }

    fn converted<'a, T>(
        &'a self,
        probe: &'static str,
        key: &'static str,
        expected: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, AnswersError> {
        let Some(value) = self.value(probe, key)? else {
            return Ok(None);
        };
        convert(value).map(Some).ok_or_else(|| unexpected(probe, key, value, expected))
    }
}

fn unexpected(
    probe: &'static str,
    key: &'static str,
    found: &dyn std::fmt::Display,
    expected: &'static str,
) -> AnswersError {
    AnswersError::Unexpected { probe, key, found: found.to_string(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(answers: &str) -> String {
        KernelConfig::like(answers).unwrap_err().to_string()
    }

    #[test]
    fn a_file_without_answers_gives_the_defaults() {
        let config = KernelConfig::like(r#"{"version": 1, "system": {}, "answers": {}}"#).unwrap();
        assert_eq!(config.unspecified_behaviour, UnspecifiedBehaviour::default());
    }

    #[test]
    fn a_probe_that_was_not_run_leaves_the_default() {
        let text = r#"{"version": 1, "answers": {"traits-again": {"not_asked": "no device"}}}"#;
        let config = KernelConfig::like(text).unwrap();
        assert_eq!(config.unspecified_behaviour, UnspecifiedBehaviour::default());
    }

    #[test]
    fn malformed_files_are_refused() {
        assert!(error("{").starts_with("the answers are not an answers file: "));
        assert!(error(r#"{"version": 1}"#).contains("missing field `answers`"));
        assert_eq!(
            error(r#"{"version": 2, "answers": {}}"#),
            "the answers file has version 2; this kernel reads version 1"
        );
        let answered = |answer: &str| format!(r#"{{"version": 1, "answers": {{{answer}}}}}"#);
        assert_eq!(
            error(&answered(r#""level-zero": {}"#)),
            "the answer to `level-zero` has no `alone`; another version of the probes \
             wrote the file"
        );
        assert_eq!(
            error(&answered(r#""level-zero": {"alone": 7}"#)),
            "the answer to `level-zero` has alone = 7; expected 0 or 255"
        );
        assert_eq!(
            error(&answered(r#""traits-again": {"status": "c0"}"#)),
            "the answer to `traits-again` has status = \"c0\"; expected a status such as \
             \"0xc000000d\""
        );
        assert!(
            error(&answered(
                r#""group-refused": {"status": "0x00000000", "traits_set": false, "joined": true}"#
            ))
            .contains("expected an outcome of GroupDenial")
        );
    }
}
