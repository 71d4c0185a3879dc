//! The scenarios' world on a Windows machine that the driver is installed on.

use std::{path::PathBuf, thread, time::Duration};

use etl_file::{Guid, Trace};
use etw_scenarios::{
    Answer, File, Filter, Pending, Recording, Room, Session, Source, World, WorldError,
};
use windows_sys::Win32::System::Diagnostics::Etw::{
    EVENT_ACTIVITY_CTRL_SET_ID, EventActivityIdControl,
};

use crate::{
    device::{Device, Request},
    devnode,
    error::{Failure, Win32Error},
    guid::to_windows,
    session::{Buffers, Delivery, OwnSession},
};

/// What this process' sessions are called first.
const PREFIX: &str = "EtwSampleClient";

/// A machine with the driver.
pub struct Windows {
    folder: PathBuf,
    loaded: bool,
    sessions: Vec<Option<(OwnSession, PathBuf)>>,
    files: Vec<Option<Device>>,
    requests: Vec<Option<Request>>,
}

impl From<Failure> for WorldError {
    fn from(failure: Failure) -> Self {
        let code = match &failure {
            Failure::Win32(error) => Some(error.code),
            _ => None,
        };
        Self {
            what: failure.to_string(),
            code,
        }
    }
}

fn win32(error: Win32Error) -> WorldError {
    Failure::Win32(error).into()
}

fn other(what: impl Into<String>) -> WorldError {
    WorldError {
        what: what.into(),
        code: None,
    }
}

impl Windows {
    /// The machine that this runs on; traces go to `folder`. The driver is unloaded first.
    pub fn new(folder: PathBuf) -> Result<Self, Failure> {
        std::fs::create_dir_all(&folder).map_err(|error| Failure::Write {
            path: folder.clone(),
            error,
        })?;
        devnode::stop()?;
        Ok(Self {
            folder,
            loaded: false,
            sessions: Vec::new(),
            files: Vec::new(),
            requests: Vec::new(),
        })
    }

    fn session(&self, session: Session) -> Result<&OwnSession, WorldError> {
        match self.sessions.get(session.0) {
            Some(Some((session, _))) => Ok(session),
            _ => Err(other(format!("session {} does not run", session.0))),
        }
    }

    fn file(&self, file: File) -> Result<&Device, WorldError> {
        match self.files.get(file.0) {
            Some(Some(file)) => Ok(file),
            _ => Err(other(format!("file {} is not open", file.0))),
        }
    }
}

impl Drop for Windows {
    /// The device is left as it is found most of the time: started.
    fn drop(&mut self) {
        self.requests.clear();
        self.files.clear();
        self.sessions.clear();
        if !self.loaded
            && let Err(error) = devnode::start()
        {
            eprintln!("warning: the device is left stopped: {error}");
        }
    }
}

impl World for Windows {
    fn load_driver(&mut self) -> Result<(), WorldError> {
        devnode::start()?;
        self.loaded = true;
        Ok(())
    }

    fn unload_driver(&mut self) -> Result<(), WorldError> {
        devnode::stop()?;
        self.loaded = false;
        Ok(())
    }

    fn start_session(&mut self, name: &str, room: Room) -> Result<Session, WorldError> {
        let number = self.sessions.len();
        let path = self.folder.join(format!("{name}-{number}.etl"));
        let buffers = match room {
            Room::Plenty => Buffers::default(),
            Room::Scarce => Buffers {
                kilobytes: 4,
                least: 2,
                most: 2,
            },
        };
        let name = format!("{PREFIX} {name} {number}");
        let session = OwnSession::start(&name, Delivery::File(&path), buffers)?;
        self.sessions.push(Some((session, path)));
        Ok(Session(number))
    }

    fn stop_session(&mut self, session: Session) -> Result<Recording, WorldError> {
        let (session, path) = self
            .sessions
            .get_mut(session.0)
            .and_then(Option::take)
            .ok_or_else(|| other(format!("session {} does not run", session.0)))?;
        let counts = session.stop().map_err(win32)?;
        let trace = Trace::open(&path).map_err(|error| {
            WorldError::from(Failure::NoTrace {
                path,
                why: error.to_string(),
            })
        })?;
        Recording::of(&trace, u64::from(counts.events_lost))
    }

    fn enable(
        &mut self,
        session: Session,
        source: Source,
        filter: &Filter,
    ) -> Result<(), WorldError> {
        let session = self.session(session)?.session();
        session.enable(source, filter).map_err(win32)
    }

    fn disable(&mut self, session: Session, source: Source) -> Result<(), WorldError> {
        self.session(session)?
            .session()
            .disable(source)
            .map_err(win32)
    }

    fn capture_state(&mut self, session: Session, source: Source) -> Result<(), WorldError> {
        let session = self.session(session)?.session();
        session.capture_state(source).map_err(win32)
    }

    fn disallow(&mut self, session: Session, providers: &[Guid]) -> Result<(), WorldError> {
        let session = self.session(session)?.session();
        session.disallow(providers).map_err(win32)
    }

    fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), WorldError> {
        let mut guid = to_windows(activity.unwrap_or_default());
        // SAFETY: the GUID is a local that the call reads.
        let code = unsafe { EventActivityIdControl(EVENT_ACTIVITY_CTRL_SET_ID, &raw mut guid) };
        Win32Error::check("EventActivityIdControl", code).map_err(win32)
    }

    fn open(&mut self) -> Result<File, WorldError> {
        self.files.push(Some(Device::open()?));
        Ok(File(self.files.len() - 1))
    }

    fn close(&mut self, file: File) -> Result<(), WorldError> {
        let open = self.files.get_mut(file.0).and_then(Option::take);
        open.map(drop)
            .ok_or_else(|| other(format!("file {} is not open", file.0)))
    }

    fn read(&mut self, file: File, length: usize) -> Result<Answer, WorldError> {
        Ok(self.file(file)?.read(length)?)
    }

    fn write(&mut self, file: File, bytes: &[u8]) -> Result<Answer, WorldError> {
        Ok(self.file(file)?.write(bytes)?)
    }

    fn start_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<Pending, WorldError> {
        let request = self.file(file)?.start_control(code, input, output)?;
        self.requests.push(Some(request));
        Ok(Pending(self.requests.len() - 1))
    }

    fn cancel(&mut self, request: Pending) -> Result<(), WorldError> {
        match self.requests.get(request.0) {
            Some(Some(request)) => {
                request.cancel();
                Ok(())
            }
            _ => Err(other(format!("request {} is over", request.0))),
        }
    }

    fn finish(&mut self, request: Pending) -> Result<Answer, WorldError> {
        match self.requests.get_mut(request.0).and_then(Option::take) {
            Some(request) => Ok(request.finish()?),
            None => Err(other(format!("request {} is over", request.0))),
        }
    }

    fn pass(&mut self, time: Duration) -> Result<(), WorldError> {
        thread::sleep(time);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), WorldError> {
        self.requests.clear();
        self.files.clear();
        self.set_activity(None)?;
        for (session, _) in self.sessions.drain(..).flatten() {
            session.stop().map_err(win32)?;
        }
        if self.loaded {
            self.unload_driver()?;
        }
        Ok(())
    }
}
