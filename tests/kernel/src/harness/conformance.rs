//! A provider's reactions to its notifications, as its events show them.
//!
//! Some faults do not show in any one call: a provider that takes another session's disable
//! for its own calls ETW rightly, and is silent when it should not be. [`check_provider`]
//! puts a provider through the notifications that such faults come from, and compares what
//! it writes.

use etl_file::Guid;

use super::{error::KernelError, kernel::Kernel};
use crate::{
    ground::{bugcheck::Violation, rule::Rule, status::NtStatus},
    services::{
        etw::{
            controller::{EnableParameters, SessionHandle},
            session::config::SessionConfig,
            state::Target,
        },
        faults::Fault,
    },
};

/// Why a provider could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// The kernel refused something, or bugchecked.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// There is nothing to compare.
    #[error("{{{0}}} writes no event while everything is enabled: the work makes it write none")]
    Silent(Guid),
}

struct Check<'a> {
    kernel: &'a Kernel,
    provider: Guid,
    session: SessionHandle,
    work: &'a mut dyn FnMut() -> Result<Vec<u8>, KernelError>,
    /// The number of events that the work brings while everything is enabled.
    events: u64,
    answer: Vec<u8>,
    found: Vec<Violation>,
}

/// Checks what a provider that is registered makes of its notifications.
///
/// They are: control codes that it cannot know (V23), another session's disable (V24), level
/// 0 (V25), and requests to capture state (V26). Writes that fail (V50) are tried as well.
///
/// `work` makes the driver write events, the same each time, and returns what else it did,
/// for instance the bytes that a device answered. No session may enable the provider
/// meanwhile, and none of the kernel's faults may be pending for `EtwWriteEx`.
///
/// # Errors
///
/// When the work fails, or the provider writes nothing.
pub fn check_provider(
    kernel: &Kernel,
    provider: Guid,
    work: &mut dyn FnMut() -> Result<Vec<u8>, KernelError>,
) -> Result<Vec<Violation>, ConformanceError> {
    let session = kernel.start_session(SessionConfig::to_consumers("conformance"))?;
    let mut check = Check {
        kernel,
        provider,
        session,
        work,
        events: 0,
        answer: Vec::new(),
        found: Vec::new(),
    };
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
        let parameters = EnableParameters {
            level,
            ..EnableParameters::default()
        };
        self.kernel.enable(session, self.target(), parameters)
    }

    fn disable(&self, session: SessionHandle) -> Result<(), KernelError> {
        self.kernel.disable(session, self.target(), None)
    }

    /// Does the work: the events that the session gets by it, and its answer.
    fn work(&mut self) -> Result<(u64, Vec<u8>), KernelError> {
        let before = self.kernel.query_session(self.session)?.events;
        let answer = (self.work)()?;
        let after = self.kernel.query_session(self.session)?.events;
        Ok((after - before, answer))
    }

    fn complain(&mut self, rule: Rule, what: &str) {
        self.found.push(Violation {
            rule,
            message: format!("the provider {{{}}} {what}", self.provider),
        });
    }

    /// The work brings what it did at first, or the rule is broken. `when` completes "after".
    fn expect_the_same(&mut self, rule: Rule, when: &str) -> Result<(), KernelError> {
        let (events, _) = self.work()?;
        if events != self.events {
            let expected = self.events;
            let what = format!("wrote {events} events after {when}, where it wrote {expected}");
            self.complain(rule, &what);
        }
        Ok(())
    }

    /// The provider is not enabled and writes nothing, or the rule is broken.
    fn expect_silence(&mut self, rule: Rule, when: &str) -> Result<(), KernelError> {
        let before = self.kernel.writes_of(self.provider);
        (self.work)()?;
        let writes = self.kernel.writes_of(self.provider) - before;
        if writes != 0 {
            let what = format!("wrote {writes} events after {when}, with nobody there to read");
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

        // A level that lets everything through, and is less than the other session's.
        let most = self.highest_level()?;
        self.enable(self.session, most)?;
        let other = kernel.start_session(SessionConfig::to_consumers("conformance, other"))?;
        self.enable(other, EVERYTHING)?;
        self.disable(other)?;
        self.expect_the_same(Rule::DisablesItself, "another session had disabled it")?;
        kernel.stop_session(other)?;

        self.disable(self.session)?;
        kernel.tell_level_0(true);
        let told = self.enable(self.session, 0).and_then(|()| {
            self.expect_the_same(
                Rule::LevelZeroTakenLiterally,
                "it was enabled with level 0, which is every level",
            )
        });
        kernel.tell_level_0(false);
        told?;
        self.fail_writes()?;

        self.disable(self.session)?;
        kernel.capture_state(self.session, target, None)?;
        self.expect_silence(
            Rule::CaptureChangesState,
            "a request to capture state while it was not enabled",
        )?;
        self.enable(self.session, EVERYTHING)?;
        self.disable(self.session)?;
        for code in 3..=16 {
            kernel.send_control_code(target, code)?;
        }
        self.expect_silence(
            Rule::ActsOnUnknownCode,
            "the control codes 3 to 16 while it was not enabled",
        )?;
        Ok(())
    }

    /// Returns the lowest level with which the work brings all its events.
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

    /// Writes that fail are nothing but that.
    fn fail_writes(&mut self) -> Result<(), KernelError> {
        self.enable(self.session, u8::MAX)?;
        let times = u32::try_from(self.events).unwrap_or(u32::MAX);
        self.kernel.inject(Fault {
            times,
            ..Fault::next("EtwWriteEx", NtStatus::NO_MEMORY)
        })?;
        let (_, answer) = self.work()?;
        self.kernel.clear_faults();
        if answer != self.answer {
            let what = "did something else when its writes failed";
            self.complain(Rule::FailureChangesDriver, what);
        }
        self.expect_the_same(Rule::FailureChangesDriver, "its writes had failed")
    }
}
