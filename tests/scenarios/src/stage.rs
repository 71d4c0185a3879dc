//! Where a scenario plays: a world, and a log of what was done and seen.

use std::{fmt::Debug, time::Duration};

use etl_file::Guid;

use crate::{
    describe::describe_decoded,
    world::{Answer, File, Filter, Pending, Recording, Room, Session, Source, World, WorldError},
};

/// A scenario saw something else than what it is to show, or could not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Something is not what it should be.
    #[error("{what}: expected {expected}, saw {saw}")]
    Differs {
        /// What was looked at.
        what: String,
        /// What it should be.
        expected: String,
        /// What it is.
        saw: String,
    },
    /// The world refused.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Fails when two values differ.
pub fn same<T: PartialEq + Debug>(
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

/// Fails when something does not hold.
pub fn holds(what: &str, expected: &str, saw: &impl Debug, so: bool) -> Result<(), Failure> {
    if so {
        return Ok(());
    }
    Err(Failure::Differs {
        what: what.to_owned(),
        expected: expected.to_owned(),
        saw: format!("{saw:?}"),
    })
}

/// The most events of a recording that the log shows.
const SHOWN: usize = 40;

/// A world with a log.
pub struct Stage<'a> {
    world: &'a mut dyn World,
    log: Vec<String>,
}

impl<'a> Stage<'a> {
    pub fn new(world: &'a mut dyn World) -> Self {
        Self {
            world,
            log: Vec::new(),
        }
    }

    pub fn into_log(self) -> Vec<String> {
        self.log
    }

    fn note(&mut self, line: impl Into<String>) {
        self.log.push(line.into());
    }

    pub fn load_driver(&mut self) -> Result<(), Failure> {
        self.note("load the driver");
        Ok(self.world.load_driver()?)
    }

    pub fn unload_driver(&mut self) -> Result<(), Failure> {
        self.note("unload the driver");
        Ok(self.world.unload_driver()?)
    }

    pub fn start(&mut self, name: &str) -> Result<Session, Failure> {
        self.start_with(name, Room::Plenty)
    }

    pub fn start_with(&mut self, name: &str, room: Room) -> Result<Session, Failure> {
        let session = self.world.start_session(name, room)?;
        self.note(format!("start session {} \"{name}\"", session.0));
        Ok(session)
    }

    pub fn stop(&mut self, session: Session) -> Result<Recording, Failure> {
        let recording = self.world.stop_session(session)?;
        self.note(format!(
            "stop session {}: {} events, {} lost",
            session.0,
            recording.events.len(),
            recording.lost
        ));
        for seen in recording.events.iter().take(SHOWN) {
            self.note(format!("  {}", describe_decoded(&seen.event)));
        }
        if recording.events.len() > SHOWN {
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

    /// As [`Self::enable`], for a scenario that expects a refusal.
    pub fn try_enable(
        &mut self,
        session: Session,
        source: Source,
        filter: &Filter,
    ) -> Result<(), WorldError> {
        self.note(format!(
            "session {} enables {source}: level {}, any 0x{:x}, all 0x{:x}{}",
            session.0,
            filter.level,
            filter.any,
            filter.all,
            filter
                .ids
                .as_ref()
                .map_or_else(String::new, |ids| format!(", {ids:?}"))
        ));
        self.world.enable(session, source, filter)
    }

    pub fn disable(&mut self, session: Session, source: Source) -> Result<(), Failure> {
        self.note(format!("session {} disables {source}", session.0));
        Ok(self.world.disable(session, source)?)
    }

    pub fn capture_state(&mut self, session: Session, source: Source) -> Result<(), Failure> {
        self.note(format!("session {} captures state of {source}", session.0));
        Ok(self.world.capture_state(session, source)?)
    }

    pub fn disallow(&mut self, session: Session, providers: &[Guid]) -> Result<(), Failure> {
        let names: Vec<String> = providers.iter().map(Guid::to_string).collect();
        self.note(format!("session {} disallows {names:?}", session.0));
        Ok(self.world.disallow(session, providers)?)
    }

    pub fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), Failure> {
        Ok(self.world.set_activity(activity)?)
    }

    pub fn open(&mut self) -> Result<File, Failure> {
        let file = self.world.open()?;
        self.note(format!("open the device: file {}", file.0));
        Ok(file)
    }

    pub fn close(&mut self, file: File) -> Result<(), Failure> {
        self.note(format!("close file {}", file.0));
        Ok(self.world.close(file)?)
    }

    pub fn read(&mut self, file: File, length: usize) -> Result<Answer, Failure> {
        let answer = self.world.read(file, length)?;
        self.note(format!("read {length} bytes: {answer:?}"));
        Ok(answer)
    }

    pub fn write(&mut self, file: File, bytes: &[u8]) -> Result<Answer, Failure> {
        let answer = self.world.write(file, bytes)?;
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
        let pending = self.world.start_control(file, code, input, output)?;
        self.note(format!(
            "request {}: control 0x{code:08x} with {input:02x?}, room for {output}",
            pending.0
        ));
        Ok(pending)
    }

    pub fn cancel(&mut self, request: Pending) -> Result<(), Failure> {
        self.note(format!("cancel request {}", request.0));
        Ok(self.world.cancel(request)?)
    }

    pub fn finish(&mut self, request: Pending) -> Result<Answer, Failure> {
        let answer = self.world.finish(request)?;
        self.note(format!("request {} ends: {answer:?}", request.0));
        Ok(answer)
    }

    pub fn pass(&mut self, time: Duration) -> Result<(), Failure> {
        self.note(format!("{time:?} pass"));
        Ok(self.world.pass(time)?)
    }
}
