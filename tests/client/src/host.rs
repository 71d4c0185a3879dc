//! The scenarios' host on a Windows machine on which the driver is installed.

use std::{path::PathBuf, thread, time::Duration};

use etl_file::{Guid, Trace};
use etw_scenarios::{
    Answer, BufferSpace, File, Filter, Host, HostError, Pending, Recording, Session, Source,
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

/// The first word of the names of this process's sessions.
const PREFIX: &str = "EtwSampleClient";

/// A host that runs scenarios on the Windows machine of this process.
pub struct Windows {
    folder: PathBuf,
    loaded: bool,
    sessions: Vec<Option<(OwnSession, PathBuf)>>,
    files: Vec<Option<Device>>,
    requests: Vec<Option<Request>>,
}

impl From<Failure> for HostError {
    fn from(failure: Failure) -> Self {
        let code = match &failure {
            Failure::Win32(error) => Some(error.code),
            _ => None,
        };
        Self { what: failure.to_string(), code }
    }
}

fn win32(error: Win32Error) -> HostError {
    Failure::Win32(error).into()
}

fn host_error(what: impl Into<String>) -> HostError {
    HostError { what: what.into(), code: None }
}

impl Windows {
    /// Unloads the driver, and returns a host that writes traces to `folder`.
    pub fn new(folder: PathBuf) -> Result<Self, Failure> {
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::Write { path: folder.clone(), error })?;
        devnode::stop()?;
        Ok(Self {
            folder,
            loaded: false,
            sessions: Vec::new(),
            files: Vec::new(),
            requests: Vec::new(),
        })
    }

    fn session(&self, session: Session) -> Result<&OwnSession, HostError> {
        match self.sessions.get(session.0) {
            Some(Some((session, _))) => Ok(session),
            _ => Err(host_error(format!("session {} is not running", session.0))),
        }
    }

    fn file(&self, file: File) -> Result<&Device, HostError> {
        match self.files.get(file.0) {
            Some(Some(file)) => Ok(file),
            _ => Err(host_error(format!("file {} is not open", file.0))),
        }
    }
}

impl Drop for Windows {
    /// Starts the device again if a scenario left it stopped.
    fn drop(&mut self) {
        self.requests.clear();
        self.files.clear();
        self.sessions.clear();
        if !self.loaded
            && let Err(error) = devnode::start()
        {
            eprintln!("warning: cannot start the device again: {error}");
        }
    }
}

impl Host for Windows {
    fn load_driver(&mut self) -> Result<(), HostError> {
        devnode::start()?;
        self.loaded = true;
        Ok(())
    }

    fn unload_driver(&mut self) -> Result<(), HostError> {
        devnode::stop()?;
        self.loaded = false;
        Ok(())
    }

    fn start_session(&mut self, name: &str, room: BufferSpace) -> Result<Session, HostError> {
        let number = self.sessions.len();
        let path = self.folder.join(format!("{name}-{number}.etl"));
        let buffers = match room {
            BufferSpace::Ample => Buffers::default(),
            BufferSpace::Minimal => Buffers { kilobytes: 4, minimum: 2, maximum: 2, modes: 0 },
        };
        let name = format!("{PREFIX} {name} {number}");
        let session = OwnSession::start(&name, Delivery::File(&path), buffers)?;
        self.sessions.push(Some((session, path)));
        Ok(Session(number))
    }

    fn stop_session(&mut self, session: Session) -> Result<Recording, HostError> {
        let (session, path) = self
            .sessions
            .get_mut(session.0)
            .and_then(Option::take)
            .ok_or_else(|| host_error(format!("session {} is not running", session.0)))?;
        let counts = session.stop().map_err(win32)?;
        let trace = Trace::open(&path)
            .map_err(|error| HostError::from(Failure::NoTrace { path, why: error.to_string() }))?;
        Recording::of(&trace, u64::from(counts.events_lost))
    }

    fn enable(
        &mut self,
        session: Session,
        source: Source,
        filter: &Filter,
    ) -> Result<(), HostError> {
        let session = self.session(session)?.session();
        session.enable(source, filter).map_err(win32)
    }

    fn disable(&mut self, session: Session, source: Source) -> Result<(), HostError> {
        self.session(session)?.session().disable(source).map_err(win32)
    }

    fn capture_state(&mut self, session: Session, source: Source) -> Result<(), HostError> {
        let session = self.session(session)?.session();
        session.capture_state(source).map_err(win32)
    }

    fn disallow(&mut self, session: Session, providers: &[Guid]) -> Result<(), HostError> {
        let session = self.session(session)?.session();
        session.disallow(providers).map_err(win32)
    }

    fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), HostError> {
        let mut guid = to_windows(activity.unwrap_or_default());
        // SAFETY: the GUID is a local that the call reads.
        let code = unsafe { EventActivityIdControl(EVENT_ACTIVITY_CTRL_SET_ID, &raw mut guid) };
        Win32Error::check("EventActivityIdControl", code).map_err(win32)
    }

    fn open(&mut self) -> Result<File, HostError> {
        self.files.push(Some(Device::open()?));
        Ok(File(self.files.len() - 1))
    }

    fn close(&mut self, file: File) -> Result<(), HostError> {
        let open = self.files.get_mut(file.0).and_then(Option::take);
        open.map(drop).ok_or_else(|| host_error(format!("file {} is not open", file.0)))
    }

    fn read(&mut self, file: File, length: usize) -> Result<Answer, HostError> {
        Ok(self.file(file)?.read(length)?)
    }

    fn write(&mut self, file: File, bytes: &[u8]) -> Result<Answer, HostError> {
        Ok(self.file(file)?.write(bytes)?)
    }

    fn start_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<Pending, HostError> {
        let request = self.file(file)?.start_control(code, input, output)?;
        self.requests.push(Some(request));
        Ok(Pending(self.requests.len() - 1))
    }

    fn start_traced_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<(Pending, Guid), HostError> {
        let file = self.file(file)?;
        let (request, activity) = file.start_traced_control(code, input, output)?;
        self.requests.push(Some(request));
        Ok((Pending(self.requests.len() - 1), activity.guid()))
    }

    fn cancel(&mut self, request: Pending) -> Result<(), HostError> {
        match self.requests.get(request.0) {
            Some(Some(request)) => {
                request.cancel();
                Ok(())
            }
            _ => Err(host_error(format!("request {} has already completed", request.0))),
        }
    }

    fn finish(&mut self, request: Pending) -> Result<Answer, HostError> {
        match self.requests.get_mut(request.0).and_then(Option::take) {
            Some(request) => Ok(request.finish()?),
            None => Err(host_error(format!("request {} has already completed", request.0))),
        }
    }

    fn pass(&mut self, time: Duration) -> Result<(), HostError> {
        thread::sleep(time);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), HostError> {
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
