//! The conformance check of a provider's reactions to notifications.
//!
//! Some defects do not show in a single call. For example, a provider that stops when another
//! session disables it makes only valid calls, but omits events that the first session expects.
//! [`check_provider`] sends a provider the notifications that reveal such defects, and compares the
//! events that the provider writes.

use etl_file::Guid;

use super::{error::KernelError, kernel::Kernel};
use crate::{
    ground::{NtStatus, bugcheck::Violation, rule::Rule},
    services::{
        etw::{
            controller::{EnableParameters, SessionHandle},
            session::config::SessionConfig,
            state::Target,
        },
        verifier::faults::Fault,
    },
};

/// The error for a check that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// A call to the kernel failed, or the kernel bugchecked.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The provider wrote no events, so there is nothing to compare.
    #[error(
        "the provider {{{0}}} wrote no events although all its events were enabled; pass a work \
         closure that makes the driver write at least one event"
    )]
    Silent(Guid),
}

struct Check<'a> {
    kernel: &'a Kernel,
    provider: Guid,
    session: SessionHandle,
    work: &'a mut dyn FnMut() -> Result<Vec<u8>, KernelError>,
    /// The number of events that the work causes when everything is enabled.
    events: u64,
    answer: Vec<u8>,
    found: Vec<Violation>,
}

/// Checks how a registered provider reacts to notifications and to failed writes.
///
/// The notifications are undefined control codes (V23), another session's disable (V24), level 0
/// (V25), and requests to capture state (V26). Failed writes are V50.
///
/// `work` makes the driver write the same events each time, and returns the driver's other output,
/// for instance the bytes that a device returned. During the check, no session may enable the
/// provider, and no fault may be pending for `EtwWriteEx`.
///
/// # Errors
///
/// Returns an error if the work fails, or if the provider writes no events.
pub fn check_provider(
    kernel: &Kernel,
    provider: Guid,
    work: &mut dyn FnMut() -> Result<Vec<u8>, KernelError>,
) -> Result<Vec<Violation>, ConformanceError> {
    let session = kernel.start_session(SessionConfig::to_consumers("conformance"))?;
    let mut check =
        Check { kernel, provider, session, work, events: 0, answer: Vec::new(), found: Vec::new() };
    let result = check.run();
    kernel.stop_session(session)?;
    result?;
    Ok(check.found)
}

impl Check<'_> {
    const fn target(&self) -> Target {
        Target::Provider(self.provider)
    }

    fn enable(&self, session: SessionHandle, level: u8) -> Result<(), KernelError> {
        let parameters = EnableParameters { level, ..EnableParameters::default() };
        self.kernel.enable(session, self.target(), parameters)
    }

    fn disable(&self, session: SessionHandle) -> Result<(), KernelError> {
        self.kernel.disable(session, self.target(), None)
    }

    /// Runs the work. Returns the number of events that the session recorded, and the output.
    fn work(&mut self) -> Result<(u64, Vec<u8>), KernelError> {
        let before = self.kernel.query_session(self.session)?.events;
        let answer = (self.work)()?;
        let after = self.kernel.query_session(self.session)?.events;
        Ok((after - before, answer))
    }

    fn complain(&mut self, rule: Rule, what: &str) {
        let message = format!("the provider {{{}}} {what}", self.provider);
        self.found.push(Violation::new(rule, message, Vec::new()));
    }

    /// Reports a violation of the rule unless the work causes as many events as in the first run.
    /// `when` completes a phrase that starts with "after".
    fn expect_the_same(&mut self, rule: Rule, when: &str) -> Result<(), KernelError> {
        let (events, _) = self.work()?;
        if events != self.events {
            let expected = self.events;
            let what = format!("wrote {events} events after {when}, but {expected} before");
            self.complain(rule, &what);
        }
        Ok(())
    }

    /// Reports a violation of the rule if the disabled provider writes events. `when` completes a
    /// phrase that starts with "after".
    fn expect_silence(&mut self, rule: Rule, when: &str) -> Result<(), KernelError> {
        let before = self.kernel.writes_of(self.provider);
        (self.work)()?;
        let writes = self.kernel.writes_of(self.provider) - before;
        if writes != 0 {
            let what = format!("wrote {writes} events after {when}");
            self.complain(rule, &what);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), ConformanceError> {
        const EVERYTHING: u8 = u8::MAX;
        let (kernel, target) = (self.kernel, self.target());
        self.enable(self.session, EVERYTHING)?;
        (self.events, self.answer) = self.work()?;
        if self.events == 0 {
            return Err(ConformanceError::Silent(self.provider));
        }
        for code in 3..=16 {
            kernel.send_control_code(target, code)?;
        }
        self.expect_the_same(Rule::ActsOnUnknownCode, "the control codes 3 to 16")?;
        self.enable(self.session, EVERYTHING)?;
        kernel.capture_state(self.session, target, None)?;
        self.expect_the_same(Rule::CaptureChangesState, "a request to capture state")?;

        // This level passes all events, but is lower than the other session's level.
        let most = self.highest_level()?;
        self.enable(self.session, most)?;
        let other = kernel.start_session(SessionConfig::to_consumers("conformance, other"))?;
        self.enable(other, EVERYTHING)?;
        self.disable(other)?;
        self.expect_the_same(Rule::DisablesItself, "another session disabled it")?;
        kernel.stop_session(other)?;

        self.disable(self.session)?;
        kernel.set_pass_level_zero(true);
        let told = self.enable(self.session, 0).and_then(|()| {
            self.expect_the_same(
                Rule::LevelZeroTakenLiterally,
                "it was enabled with level 0, which means every level",
            )
        });
        kernel.set_pass_level_zero(false);
        told?;
        self.fail_writes()?;

        self.disable(self.session)?;
        kernel.capture_state(self.session, target, None)?;
        self.expect_silence(
            Rule::CaptureChangesState,
            "a request to capture state while no session enabled it",
        )?;
        self.enable(self.session, EVERYTHING)?;
        self.disable(self.session)?;
        for code in 3..=16 {
            kernel.send_control_code(target, code)?;
        }
        self.expect_silence(
            Rule::ActsOnUnknownCode,
            "the control codes 3 to 16 while no session enabled it",
        )?;
        Ok(())
    }

    /// Returns the lowest level at which the work causes all its events.
    fn highest_level(&mut self) -> Result<u8, KernelError> {
        for level in 1..u8::MAX {
            self.enable(self.session, level)?;
            let (events, _) = self.work()?;
            if events == self.events {
                return Ok(level);
            }
        }
        Ok(u8::MAX)
    }

    /// Checks that failed writes have no other effect.
    fn fail_writes(&mut self) -> Result<(), KernelError> {
        self.enable(self.session, u8::MAX)?;
        let times = u32::try_from(self.events).unwrap_or(u32::MAX);
        self.kernel.inject(Fault { times, ..Fault::next("EtwWriteEx", NtStatus::NO_MEMORY) })?;
        let (_, answer) = self.work()?;
        self.kernel.clear_faults();
        if answer != self.answer {
            let what = "returned different output when its event writes failed";
            self.complain(Rule::FailureChangesDriver, what);
        }
        self.expect_the_same(Rule::FailureChangesDriver, "its writes failed")
    }
}
