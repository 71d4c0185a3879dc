//! Sessions and consumers, as a trace controller sees them.

use std::sync::Arc;

use etl_file::Guid;

use super::{error::KernelError, kernel::Kernel};
use crate::{
    execution::identity::Identity,
    services::etw::{
        controller::{self, EnableParameters, SessionHandle},
        error::ControlError,
        session::{
            config::{SessionConfig, SessionReport, SessionStatistics},
            realtime::{Delivered, Mailbox},
            running::Session,
        },
        state::Target,
    },
};

impl Kernel {
    /// Starts a session (`StartTrace`).
    ///
    /// # Errors
    ///
    /// Returns an error if the session cannot be started, or if its file cannot be created.
    pub fn start_session(&self, config: SessionConfig) -> Result<SessionHandle, KernelError> {
        Ok(self
            .runner()
            .etw(Identity::SYSTEM, move |context| controller::start(context, config))??)
    }

    /// Stops a session and finishes its file (`ControlTrace`). Also works after a bugcheck; the file
    /// then contains the events up to the bugcheck.
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running, if its file cannot be written, or if the
    /// kernel bugchecks.
    pub fn stop_session(&self, session: SessionHandle) -> Result<SessionReport, KernelError> {
        let system = self.runner().system();
        if system.environment.crashed().is_some() {
            return Ok(controller::salvage(&system.etw, session)?);
        }
        Ok(self
            .runner()
            .etw(Identity::SYSTEM, move |context| controller::stop(context, session))??)
    }

    /// Flushes a session's buffers (`ControlTrace`). For a session in memory, writes a file with the
    /// buffers that it currently holds.
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running, or its file cannot be written.
    pub fn flush_session(&self, session: SessionHandle) -> Result<(), KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            controller::running(context, session)?.flush()
        })??)
    }

    /// Returns the statistics of a session (`ControlTrace` with `EVENT_TRACE_CONTROL_QUERY`).
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running.
    pub fn query_session(&self, session: SessionHandle) -> Result<SessionStatistics, KernelError> {
        self.with_session(session, |session| Ok(session.statistics()))
    }

    /// Simulates a slow disk: stops writing the session's full buffers to the file, or resumes it.
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running.
    pub fn hold_writer(&self, session: SessionHandle, hold: bool) -> Result<(), KernelError> {
        self.with_session(session, move |session| {
            session.hold_writer(hold);
            Ok(())
        })
    }

    /// Makes writing the session's next `buffers` buffers fail. Those buffers are lost.
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running.
    pub fn fail_writes(&self, session: SessionHandle, buffers: u32) -> Result<(), KernelError> {
        self.with_session(session, move |session| {
            session.fail_writes(buffers);
            Ok(())
        })
    }

    /// Attaches a consumer to a session that delivers in real time (`OpenTrace`,
    /// `ProcessTrace`).
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running, or does not deliver in real time.
    pub fn open_consumer(&self, session: SessionHandle) -> Result<Consumer, KernelError> {
        let (session, mailbox) = self.with_session(session, |session| {
            session.attach().map(|mailbox| (Arc::clone(session), mailbox))
        })?;
        Ok(Consumer { session, mailbox })
    }

    /// Enables a provider or group for a session, or changes its parameters
    /// (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running, or if too many sessions enable the provider.
    pub fn enable(
        &self,
        session: SessionHandle,
        target: Target,
        parameters: EnableParameters,
    ) -> Result<(), KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            controller::enable(context, session, target, &parameters)
        })??)
    }

    /// Enables every provider that a driver registers for a session: those that are registered now,
    /// and those that register later, as if the session had enabled them before. Windows has no
    /// such setting. It allows a test to record providers that it does not know.
    ///
    /// A target that the session enables explicitly keeps its parameters. A provider that the session
    /// disables is enabled when it registers again. A provider that eight sessions already enable is
    /// not enabled.
    ///
    /// # Errors
    ///
    /// Returns an error in the cases that [`Self::enable`] lists.
    pub fn enable_every_provider(
        &self,
        session: SessionHandle,
        parameters: EnableParameters,
    ) -> Result<(), KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            controller::enable_every_provider(context, session, &parameters)
        })??)
    }

    /// Returns the providers and groups that a session enables: first providers, then groups, each
    /// sorted by GUID.
    #[must_use]
    pub fn targets_of(&self, session: SessionHandle) -> Vec<Target> {
        controller::targets_of(&self.runner().system().etw, session)
    }

    /// Returns the parameters with which a session enables a provider or group. A provider that the
    /// session would enable on registration has the parameters of [`Self::enable_every_provider`].
    #[must_use]
    pub fn parameters_of(
        &self,
        session: SessionHandle,
        target: Target,
    ) -> Option<EnableParameters> {
        controller::parameters_of(&self.runner().system().etw, session, target)
    }

    /// Disables a provider or group for a session (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running.
    pub fn disable(
        &self,
        session: SessionHandle,
        target: Target,
        source: Option<Guid>,
    ) -> Result<(), KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            controller::disable(context, session, target, source)
        })??)
    }

    /// Requests a state capture from a provider or group (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running.
    pub fn capture_state(
        &self,
        session: SessionHandle,
        target: Target,
        source: Option<Guid>,
    ) -> Result<(), KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            controller::capture_state(context, session, target, source)
        })??)
    }

    /// Calls the enable callbacks of a provider or group with any control code, because later
    /// versions of Windows may add control codes.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn send_control_code(&self, target: Target, code: u32) -> Result<(), KernelError> {
        self.runner().etw(Identity::SYSTEM, move |context| {
            controller::send_code(context, target, code);
        })?;
        Ok(())
    }

    /// Sets the providers that a session does not enable through a group, replacing the previous list
    /// (`TraceSetInformation` with `TraceSetDisallowList`).
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running.
    pub fn set_disallow_list(
        &self,
        session: SessionHandle,
        providers: Vec<Guid>,
    ) -> Result<(), KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            controller::set_disallow_list(context, session, &providers)
        })??)
    }

    /// Returns the number of events that a registered provider has written, including those that no
    /// session recorded.
    #[must_use]
    pub fn writes_of(&self, provider: Guid) -> u64 {
        self.runner().system().etw.etw().writes_of(provider)
    }

    /// Returns the providers that drivers have registered, with the names in their traits.
    #[must_use]
    pub fn providers(&self) -> Vec<(Guid, Option<String>)> {
        let etw = self.runner().system().etw.etw();
        let registered = etw.registered.iter();
        registered.map(|(provider, name)| (*provider, name.clone())).collect()
    }

    /// Sets whether a driver receives level 0 when every session enables level 0
    /// (`UnspecifiedBehaviour::passes_level_zero`). Applies from the next notification.
    pub fn set_pass_level_zero(&self, passes: bool) {
        self.runner().system().etw.etw().unspecified.passes_level_zero = passes;
    }

    /// Denies drivers membership in a group from now on. `UnspecifiedBehaviour::denied_group`
    /// determines what happens to traits that name the group.
    pub fn deny_group(&self, group: Guid) {
        self.runner().system().etw.etw().denied_groups.insert(group);
    }

    fn with_session<R: Send + 'static>(
        &self,
        session: SessionHandle,
        body: impl FnOnce(&Arc<Session>) -> Result<R, ControlError> + Send + 'static,
    ) -> Result<R, KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            body(&controller::running(context, session)?)
        })??)
    }
}

/// A real-time consumer.
pub struct Consumer {
    session: Arc<Session>,
    mailbox: Arc<Mailbox>,
}

impl Consumer {
    /// Returns the events delivered since the last call: complete buffers, in the order in which
    /// they were flushed. Events of the class `RT_LOST_EVENT` report losses. WPP messages and
    /// classic providers' events are not returned, because they are in other records; a
    /// [`Recording`](crate::Recording) contains them.
    #[must_use]
    pub fn take(&self) -> Vec<etl_file::EventRecord> {
        let delivered = self.mailbox.take().into_iter();
        delivered
            .filter_map(|record| match record {
                Delivered::Event(event) => Some(event),
                Delivered::Other { .. } => None,
            })
            .collect()
    }

    /// Returns all records delivered since the last call.
    pub(super) fn take_all(&self) -> Vec<Delivered> {
        self.mailbox.take()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.session.detach(&self.mailbox);
    }
}
