//! The scenarios' host on a Windows machine on which the driver is installed.

use std::{path::PathBuf, thread, time::Duration};

use etl_file::{Guid, Trace};
use etw_scenarios::{
    Answer, BufferSpace, File, Filter, Host, HostError, Pending, Recording, Session, Slots, Source,
};
use etw_session::{
    error::Win32Error,
    guid::to_windows,
    session::{self, Buffers, Delivery, OwnSession},
};
use windows_sys::Win32::System::Diagnostics::Etw::{
    EVENT_ACTIVITY_CTRL_SET_ID, EventActivityIdControl,
};

use crate::{
    device::{Device, Request},
    devnode,
    error::Failure,
};

/// The first word in the names of this process's sessions.
const PREFIX: &str = "EtwSampleClient";

/// A host that runs scenarios on this Windows machine.
pub struct Windows {
    folder: PathBuf,
    loaded: bool,
    sessions: Slots<(OwnSession, PathBuf)>,
    files: Slots<Device>,
    requests: Slots<Request>,
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

/// Sets or clears the activity of this thread.
pub fn set_activity(activity: Option<Guid>) -> Result<(), HostError> {
    let mut guid = to_windows(activity.unwrap_or_default());
    // SAFETY: the GUID is a local that the call reads.
    let code = unsafe { EventActivityIdControl(EVENT_ACTIVITY_CTRL_SET_ID, &raw mut guid) };
    Ok(Win32Error::check("EventActivityIdControl", code)?)
}

/// Stops a session and opens the trace that it recorded. Also returns the number of lost events.
pub fn stop((session, path): (OwnSession, PathBuf)) -> Result<(Trace, u64), HostError> {
    let counts = session.stop()?;
    let trace = Trace::open(&path)
        .map_err(|error| HostError::from(Failure::NoTrace { path, why: error.to_string() }))?;
    Ok((trace, u64::from(counts.events_lost)))
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
            sessions: Slots::new("session", "is not running"),
            files: Slots::new("file", "is not open"),
            requests: Slots::new("request", "has already completed"),
        })
    }

    fn session(&self, session: Session) -> Result<&session::Session, HostError> {
        Ok(self.sessions.get(session.0)?.0.session())
    }
}

impl Drop for Windows {
    /// Closes all requests, files and sessions, and restarts the device if a scenario left it
    /// stopped.
    fn drop(&mut self) {
        self.requests.drain().for_each(drop);
        self.files.drain().for_each(drop);
        self.sessions.drain().for_each(drop);
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
        let number = self.sessions.next();
        let path = self.folder.join(format!("{name}-{number}.etl"));
        let buffers = match room {
            BufferSpace::Ample => Buffers::default(),
            BufferSpace::Minimal => Buffers { kilobytes: 4, minimum: 2, maximum: 2, modes: 0 },
        };
        let name = format!("{PREFIX} {name} {number}");
        let session = OwnSession::start(&name, Delivery::File(&path), buffers)?;
        Ok(Session(self.sessions.add((session, path))))
    }

    fn stop_session(&mut self, session: Session) -> Result<Recording, HostError> {
        let (trace, lost) = stop(self.sessions.take(session.0)?)?;
        Recording::from_trace(&trace, lost)
    }

    fn enable(
        &mut self,
        session: Session,
        source: Source,
        filter: &Filter,
    ) -> Result<(), HostError> {
        Ok(self.session(session)?.enable(source, filter)?)
    }

    fn disable(&mut self, session: Session, source: Source) -> Result<(), HostError> {
        Ok(self.session(session)?.disable(source)?)
    }

    fn capture_state(&mut self, session: Session, source: Source) -> Result<(), HostError> {
        Ok(self.session(session)?.capture_state(source)?)
    }

    fn disallow(&mut self, session: Session, providers: &[Guid]) -> Result<(), HostError> {
        Ok(self.session(session)?.disallow(providers)?)
    }

    fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), HostError> {
        set_activity(activity)
    }

    fn open(&mut self) -> Result<File, HostError> {
        Ok(File(self.files.add(Device::open()?)))
    }

    fn close(&mut self, file: File) -> Result<(), HostError> {
        self.files.take(file.0).map(drop)
    }

    fn read(&mut self, file: File, length: usize) -> Result<Answer, HostError> {
        Ok(self.files.get(file.0)?.read(length)?)
    }

    fn write(&mut self, file: File, bytes: &[u8]) -> Result<Answer, HostError> {
        Ok(self.files.get(file.0)?.write(bytes)?)
    }

    fn start_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<Pending, HostError> {
        let request = self.files.get(file.0)?.start_control(code, input, output)?;
        Ok(Pending(self.requests.add(request)))
    }

    fn start_traced_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<(Pending, Guid), HostError> {
        let file = self.files.get(file.0)?;
        let (request, activity) = file.start_traced_control(code, input, output)?;
        Ok((Pending(self.requests.add(request)), activity.guid()))
    }

    fn cancel(&mut self, request: Pending) -> Result<(), HostError> {
        self.requests.get(request.0)?.cancel();
        Ok(())
    }

    fn finish(&mut self, request: Pending) -> Result<Answer, HostError> {
        Ok(self.requests.take(request.0)?.finish()?)
    }

    fn pass(&mut self, time: Duration) -> Result<(), HostError> {
        thread::sleep(time);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), HostError> {
        self.requests.drain().for_each(drop);
        self.files.drain().for_each(drop);
        self.set_activity(None)?;
        for (session, _) in self.sessions.drain() {
            session.stop()?;
        }
        if self.loaded {
            self.unload_driver()?;
        }
        Ok(())
    }
}
