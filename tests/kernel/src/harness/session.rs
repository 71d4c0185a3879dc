//! Sessions and their consumers: what a controller and a consumer hold.

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
            realtime::Mailbox,
            running::Session,
        },
        state::Target,
        unspecified::GroupDenial,
    },
};

impl Kernel {
    /// Starts a session (`StartTrace`).
    ///
    /// # Errors
    ///
    /// When the session cannot be started or its file not be created.
    pub fn start_session(&self, config: SessionConfig) -> Result<SessionHandle, KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            controller::start(context, config)
        })??)
    }

    /// Stops a session and finishes its file (`ControlTrace`).
    ///
    /// # Errors
    ///
    /// When the session is not running, or its file cannot be written.
    pub fn stop_session(&self, session: SessionHandle) -> Result<SessionReport, KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            controller::stop(context, session)
        })??)
    }

    /// Writes what a session has in its buffers (`ControlTrace`): for a session in memory,
    /// a file of what it holds now.
    ///
    /// # Errors
    ///
    /// When the session is not running, or its file cannot be written.
    pub fn flush_session(&self, session: SessionHandle) -> Result<(), KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            controller::running(context, session)?.flush()
        })??)
    }

    /// Returns the counts of a session (`ControlTrace` with `EVENT_TRACE_CONTROL_QUERY`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn query_session(&self, session: SessionHandle) -> Result<SessionStatistics, KernelError> {
        self.with_session(session, |session| Ok(session.statistics()))
    }

    /// Keeps a session's full buffers from being written, as a disk that is too slow does,
    /// or lets them go again.
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn hold_writer(&self, session: SessionHandle, hold: bool) -> Result<(), KernelError> {
        self.with_session(session, move |session| {
            session.hold_writer(hold);
            Ok(())
        })
    }

    /// Makes the next so many buffers of a session impossible to write to its file. They are
    /// lost.
    ///
    /// # Errors
    ///
    /// When the session is not running.
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
    /// When the session is not running, or does not deliver in real time.
    pub fn open_consumer(&self, session: SessionHandle) -> Result<Consumer, KernelError> {
        let (session, mailbox) = self.with_session(session, |session| {
            session
                .attach()
                .map(|mailbox| (Arc::clone(session), mailbox))
        })?;
        Ok(Consumer { session, mailbox })
    }

    /// Enables a provider or group for a session, or changes how
    /// (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// When the session is not running, or the provider has too many.
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

    /// Disables a provider or group for a session (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
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

    /// Asks a provider or group to describe its state (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
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

    /// Tells a provider or group a control code of an enable callback that is none of those
    /// there are, as a later Windows may.
    ///
    /// # Errors
    ///
    /// When the kernel bugchecks.
    pub fn send_control_code(&self, target: Target, code: u32) -> Result<(), KernelError> {
        self.runner().etw(Identity::SYSTEM, move |context| {
            controller::send_code(context, target, code);
        })?;
        Ok(())
    }

    /// Sets the providers that a session does not reach by groups, in place of those before
    /// (`TraceSetInformation` with `TraceSetDisallowList`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn set_disallow_list(
        &self,
        session: SessionHandle,
        providers: Vec<Guid>,
    ) -> Result<(), KernelError> {
        Ok(self.runner().etw(Identity::SYSTEM, move |context| {
            controller::set_disallow_list(context, session, &providers)
        })??)
    }

    /// Returns the number of writes with a provider that is registered, whether or not
    /// a session wanted it.
    #[must_use]
    pub fn writes_of(&self, provider: Guid) -> u64 {
        self.runner().system().etw.etw().writes_of(provider)
    }

    /// Sets whether a driver is told level 0 where every session asks for it
    /// (`UnspecifiedBehaviour::level_0_is_told`), from the next notification on.
    pub fn tell_level_0(&self, told: bool) {
        self.runner().system().etw.etw().open.level_0_is_told = told;
    }

    /// Lets no driver join a group from now on.
    pub fn deny_group(&self, group: Guid, denial: GroupDenial) {
        self.runner()
            .system()
            .etw
            .etw()
            .denied_groups
            .insert(group, denial);
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

/// A consumer in real time.
pub struct Consumer {
    session: Arc<Session>,
    mailbox: Arc<Mailbox>,
}

impl Consumer {
    /// Returns the events that were delivered since this was last asked: whole buffers, as they
    /// were flushed. Losses are told by events of `RT_LOST_EVENT`.
    #[must_use]
    pub fn take(&self) -> Vec<etl_file::EventRecord> {
        self.mailbox.take()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.session.detach(&self.mailbox);
    }
}
