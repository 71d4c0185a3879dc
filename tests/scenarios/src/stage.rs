//! A host with a log of a scenario's steps and their results.

use std::{fmt::Debug, time::Duration};

use etl_file::Guid;

use crate::{
    describe::describe_decoded,
    host::{
        Answer, BufferSpace, File, Filter, Host, HostError, Pending, Recording, Session, Source,
    },
};

/// Reasons why a scenario failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// An observation differs from the expectation.
    #[error("{what}: expected {expected}, got {saw}")]
    Differs {
        /// The observed quantity.
        what: String,
        /// The expected value.
        expected: String,
        /// The observed value.
        saw: String,
    },
    /// The host failed to carry out a step.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Returns an error if two values differ.
pub fn expect_equal<T: PartialEq + Debug>(
    what: impl Into<String>,
    expected: &T,
    saw: &T,
) -> Result<(), Failure> {
    if expected == saw {
        return Ok(());
    }
    Err(Failure::Differs {
        what: what.into(),
        expected: format!("{expected:?}"),
        saw: format!("{saw:?}"),
    })
}

/// Returns an error if `condition` is false.
pub fn expect_that(
    what: &str,
    expected: &str,
    saw: &impl Debug,
    condition: bool,
) -> Result<(), Failure> {
    if condition {
        return Ok(());
    }
    Err(Failure::Differs {
        what: what.to_owned(),
        expected: expected.to_owned(),
        saw: format!("{saw:?}"),
    })
}

/// The maximum number of events in a recording that the log shows.
const MAX_LOGGED_EVENTS: usize = 40;

/// A host with a log.
pub struct Stage<'a> {
    host: &'a mut dyn Host,
    log: Vec<String>,
}

impl<'a> Stage<'a> {
    pub fn new(host: &'a mut dyn Host) -> Self {
        Self { host, log: Vec::new() }
    }

    pub fn into_log(self) -> Vec<String> {
        self.log
    }

    fn note(&mut self, line: impl Into<String>) {
        self.log.push(line.into());
    }

    pub fn load_driver(&mut self) -> Result<(), Failure> {
        self.note("load the driver");
        Ok(self.host.load_driver()?)
    }

    pub fn unload_driver(&mut self) -> Result<(), Failure> {
        self.note("unload the driver");
        Ok(self.host.unload_driver()?)
    }

    pub fn start(&mut self, name: &str) -> Result<Session, Failure> {
        self.start_with(name, BufferSpace::Ample)
    }

    pub fn start_with(&mut self, name: &str, room: BufferSpace) -> Result<Session, Failure> {
        let session = self.host.start_session(name, room)?;
        self.note(format!("start session {} \"{name}\"", session.0));
        Ok(session)
    }

    pub fn stop(&mut self, session: Session) -> Result<Recording, Failure> {
        let recording = self.host.stop_session(session)?;
        self.note(format!(
            "stop session {}: {} events, {} lost",
            session.0,
            recording.events.len(),
            recording.lost
        ));
        for seen in recording.events.iter().take(MAX_LOGGED_EVENTS) {
            self.note(format!("  {}", describe_decoded(&seen.event)));
        }
        if recording.events.len() > MAX_LOGGED_EVENTS {
            self.note("  ...");
        }
        Ok(recording)
    }

    pub fn enable(
        &mut self,
        session: Session,
        source: Source,
        filter: &Filter,
    ) -> Result<(), Failure> {
        Ok(self.try_enable(session, source, filter)?)
    }

    /// Enables a provider or group, but returns the host's error for scenarios that expect an
    /// error. See [`Self::enable`].
    pub fn try_enable(
        &mut self,
        session: Session,
        source: Source,
        filter: &Filter,
    ) -> Result<(), HostError> {
        self.note(format!(
            "session {} enables {source}: level {}, any 0x{:x}, all 0x{:x}{}",
            session.0,
            filter.level,
            filter.any,
            filter.all,
            filter.ids.as_ref().map_or_else(String::new, |ids| format!(", {ids:?}"))
        ));
        self.host.enable(session, source, filter)
    }

    pub fn disable(&mut self, session: Session, source: Source) -> Result<(), Failure> {
        self.note(format!("session {} disables {source}", session.0));
        Ok(self.host.disable(session, source)?)
    }

    pub fn capture_state(&mut self, session: Session, source: Source) -> Result<(), Failure> {
        self.note(format!("session {} requests a state capture from {source}", session.0));
        Ok(self.host.capture_state(session, source)?)
    }

    pub fn disallow(&mut self, session: Session, providers: &[Guid]) -> Result<(), Failure> {
        let names: Vec<String> = providers.iter().map(Guid::to_string).collect();
        self.note(format!("session {} disallows {names:?}", session.0));
        Ok(self.host.disallow(session, providers)?)
    }

    /// Notes whether the host accepts an empty disallow list, which no document describes.
    pub fn try_to_disallow_none(&mut self, session: Session) {
        let answer = match self.host.disallow(session, &[]) {
            Ok(()) => "is accepted".to_owned(),
            Err(error) => format!("is refused: {error}"),
        };
        self.note(format!("session {}: an empty disallow list {answer}", session.0));
    }

    pub fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), Failure> {
        Ok(self.host.set_activity(activity)?)
    }

    pub fn open(&mut self) -> Result<File, Failure> {
        let file = self.host.open()?;
        self.note(format!("open the device: file {}", file.0));
        Ok(file)
    }

    pub fn close(&mut self, file: File) -> Result<(), Failure> {
        self.note(format!("close file {}", file.0));
        Ok(self.host.close(file)?)
    }

    pub fn read(&mut self, file: File, length: usize) -> Result<Answer, Failure> {
        let answer = self.host.read(file, length)?;
        self.note(format!("read {length} bytes: {answer:?}"));
        Ok(answer)
    }

    pub fn write(&mut self, file: File, bytes: &[u8]) -> Result<Answer, Failure> {
        let answer = self.host.write(file, bytes)?;
        self.note(format!("write {bytes:02x?}: {answer:?}"));
        Ok(answer)
    }

    pub fn control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<Answer, Failure> {
        let pending = self.start_control(file, code, input, output)?;
        self.finish(pending)
    }

    pub fn start_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<Pending, Failure> {
        let pending = self.host.start_control(file, code, input, output)?;
        self.note(format!(
            "request {}: control 0x{code:08x} with input {input:02x?}, output buffer of {output} bytes",
            pending.0
        ));
        Ok(pending)
    }

    /// Sends a traced request like the client, and waits for its completion. Returns the answer and
    /// the activity.
    pub fn traced_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<(Answer, Guid), Failure> {
        let (pending, activity) = self.host.start_traced_control(file, code, input, output)?;
        self.note(format!(
            "request {}: traced control 0x{code:08x} with input {input:02x?}, output buffer of \
             {output} bytes, activity {activity}",
            pending.0
        ));
        Ok((self.finish(pending)?, activity))
    }

    pub fn cancel(&mut self, request: Pending) -> Result<(), Failure> {
        self.note(format!("cancel request {}", request.0));
        Ok(self.host.cancel(request)?)
    }

    pub fn finish(&mut self, request: Pending) -> Result<Answer, Failure> {
        let answer = self.host.finish(request)?;
        self.note(format!("request {} completes: {answer:?}", request.0));
        Ok(answer)
    }

    pub fn counts_losses_exactly(&self) -> bool {
        self.host.counts_losses_exactly()
    }

    pub fn pass(&mut self, time: Duration) -> Result<(), Failure> {
        self.note(format!("wait {time:?}"));
        Ok(self.host.pass(time)?)
    }
}
