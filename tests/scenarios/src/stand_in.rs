//! The stand-in kernel as a host.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use etl_file::{EventDescriptor, Guid, Trace};
use etw_sample_interface::{ACTIVITY_SIZE, CLIENT_PROVIDER_NAME, traced};
use standin_kernel::{
    Completion, ControlError, Device, Driver, EnableParameters, EventFilters, EventIdFilter,
    Identity, Kernel, KernelError, Program, ProgramEvent, Request, SessionConfig, SessionHandle,
    Target,
};
use tempfile::TempDir;

use crate::host::{
    Answer, BufferSpace, File, Filter, Host, HostError, Ids, Pending, Recording, Session, Slots,
    Source,
};

/// The process and thread that send the scenarios' requests.
const CLIENT: Identity = Identity { process: 4242, thread: 4244 };

/// The client's declaration, from which the client's events are generated.
const CLIENT_DECLARATION: &str = include_str!("../../client/src/trace.rs");

/// A sent request.
struct Sent {
    request: Request,
    /// The control code and the activity of a traced request.
    traced: Option<(u32, Guid)>,
}

/// Returns one of the client's events, with the metadata from its declaration.
fn event_of_client(name: &str, activity: Guid, data: Vec<u8>) -> Result<ProgramEvent, HostError> {
    let wrong = |error: &dyn std::fmt::Display| {
        HostError::new(format!("cannot read the client's declaration: {error}"))
    };
    let providers =
        wdk_etw_schema::parse::source(CLIENT_DECLARATION).map_err(|error| wrong(&error))?;
    let mut events = providers.iter().flat_map(|provider| {
        let types = wdk_etw_schema::tracelogging::Types::of(provider);
        provider.events.iter().map(move |event| (event, types))
    });
    let (event, types) = events
        .find(|(event, _)| event.ident == name)
        .ok_or_else(|| wrong(&format!("there is no event {name}")))?;
    let metadata =
        wdk_etw_schema::tracelogging::event_metadata(&event.name, event.tag, &event.fields, types)
            .map_err(|error| wrong(&error))?;
    Ok(ProgramEvent {
        descriptor: EventDescriptor {
            channel: 11,
            level: event.level.0,
            opcode: event.opcode,
            keyword: event.keyword,
            ..EventDescriptor::default()
        },
        activity: Some(activity),
        metadata: Some(metadata),
        data,
    })
}

/// A host that runs a driver's image in the stand-in kernel, with a new kernel for each scenario.
pub struct StandIn {
    image: PathBuf,
    folder: TempDir,
    kernel: Kernel,
    driver: Option<(Driver, Device)>,
    sessions: Slots<SessionHandle>,
    files: Slots<standin_kernel::File>,
    requests: Slots<Sent>,
    /// The client, once it has sent a traced request.
    client: Option<Program>,
    /// The number of activities that the client has created.
    activities: u32,
    finished: usize,
    /// The factor by which time passes more slowly than scenarios request.
    slowness: u32,
}

impl From<KernelError> for HostError {
    fn from(error: KernelError) -> Self {
        let code = match &error {
            KernelError::Control(error) => code_of(error),
            _ => None,
        };
        Self { what: error.to_string(), code }
    }
}

/// Returns the Windows error code that a controller receives for this error.
const fn code_of(error: &ControlError) -> Option<u32> {
    Some(match error {
        ControlError::TooManySessions
        | ControlError::TooManyPrivate(_)
        | ControlError::TooManyForProvider(_) => 1450,
        ControlError::AlreadyExists(_) => 183,
        ControlError::InvalidParameter(_) => 87,
        ControlError::BadPathname => 161,
        ControlError::NotRunning => 4201,
        ControlError::File { .. } => return None,
    })
}

const fn target(source: Source) -> Target {
    match source {
        Source::Provider(guid) => Target::Provider(guid),
        Source::Group(guid) => Target::Group(guid),
    }
}

fn answer(completion: Completion) -> Answer {
    Answer { status: completion.status.0.cast_unsigned(), output: completion.output }
}

impl StandIn {
    /// Returns a host for the driver in `image`.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder for the sessions' files cannot be created.
    pub fn new(image: &Path) -> Result<Self, HostError> {
        let folder = tempfile::tempdir().map_err(|error| {
            HostError::new(format!("cannot create a temporary folder for traces: {error}"))
        })?;
        Ok(Self {
            image: image.to_owned(),
            folder,
            kernel: Kernel::new(),
            driver: None,
            sessions: Slots::new("session", "is not running"),
            files: Slots::new("file", "is not open"),
            requests: Slots::new("request", "has already completed"),
            client: None,
            activities: 0,
            finished: 0,
            slowness: 1,
        })
    }

    /// Makes time pass more slowly than scenarios request, by this factor, so that timers tick less
    /// often than their period, as on Windows: a period of 10 ms becomes one system tick, 15.6 ms.
    #[must_use]
    pub const fn slowed(mut self, factor: u32) -> Self {
        self.slowness = factor;
        self
    }

    fn session(&self, session: Session) -> Result<SessionHandle, HostError> {
        self.sessions.get(session.0).copied()
    }
}

impl Host for StandIn {
    fn load_driver(&mut self) -> Result<(), HostError> {
        if self.driver.is_some() {
            return Err(HostError::new("the driver is already loaded"));
        }
        let driver = self.kernel.load(&self.image)?;
        let device = driver.add_device();
        // The error is reported, so the kernel can be dropped while the driver is still loaded.
        let device = device.inspect_err(|_| self.kernel.leave_behind())?;
        self.driver = Some((driver, device));
        Ok(())
    }

    fn unload_driver(&mut self) -> Result<(), HostError> {
        let (driver, device) =
            self.driver.take().ok_or_else(|| HostError::new("the driver is not loaded"))?;
        let removed = device.remove().and_then(|()| driver.unload());
        Ok(removed.inspect_err(|_| self.kernel.leave_behind())?)
    }

    fn start_session(&mut self, name: &str, room: BufferSpace) -> Result<Session, HostError> {
        let number = self.sessions.next();
        let path = self.folder.path().join(format!("{}-{number}.etl", self.finished));
        let config = SessionConfig::to_file(name, path);
        let config = match room {
            BufferSpace::Ample => config,
            BufferSpace::Minimal => SessionConfig { buffer_kb: 4, maximum_buffers: 2, ..config },
        };
        let handle = self.kernel.start_session(config)?;
        if room == BufferSpace::Minimal {
            // The stand-in kernel's writer thread keeps up with any burst, so it is paused to cause
            // losses.
            self.kernel.hold_writer(handle, true)?;
        }
        Ok(Session(self.sessions.add(handle)))
    }

    fn stop_session(&mut self, session: Session) -> Result<Recording, HostError> {
        let handle = self.session(session)?;
        let report = self.kernel.stop_session(handle)?;
        self.sessions.take(session.0)?;
        let trace = Trace::open(&report.file)
            .map_err(|error| HostError::new(format!("{}: {error}", report.file.display())))?;
        Recording::from_trace(&trace, u64::from(report.events_lost))
    }

    fn enable(
        &mut self,
        session: Session,
        source: Source,
        filter: &Filter,
    ) -> Result<(), HostError> {
        let (keep, ids) = match &filter.ids {
            Some(Ids::Only(ids)) => (true, ids.clone()),
            Some(Ids::Without(ids)) => (false, ids.clone()),
            None => (true, Vec::new()),
        };
        let parameters = EnableParameters {
            level: filter.level,
            match_any: filter.any,
            match_all: filter.all,
            events: EventFilters {
                ids: filter.ids.as_ref().map(|_| EventIdFilter { keep, ids }),
                ..EventFilters::default()
            },
            ..EnableParameters::default()
        };
        let session = self.session(session)?;
        Ok(self.kernel.enable(session, target(source), parameters)?)
    }

    fn disable(&mut self, session: Session, source: Source) -> Result<(), HostError> {
        let session = self.session(session)?;
        Ok(self.kernel.disable(session, target(source), None)?)
    }

    fn capture_state(&mut self, session: Session, source: Source) -> Result<(), HostError> {
        let session = self.session(session)?;
        Ok(self.kernel.capture_state(session, target(source), None)?)
    }

    fn disallow(&mut self, session: Session, providers: &[Guid]) -> Result<(), HostError> {
        let session = self.session(session)?;
        Ok(self.kernel.set_disallow_list(session, providers.to_vec())?)
    }

    fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), HostError> {
        self.kernel.set_thread_activity(CLIENT, activity.unwrap_or_default());
        Ok(())
    }

    fn open(&mut self) -> Result<File, HostError> {
        let (_, device) = self.driver.as_ref().ok_or_else(|| {
            HostError::new("the driver is not loaded, so its device cannot be opened")
        })?;
        Ok(File(self.files.add(device.open(CLIENT)?)))
    }

    fn close(&mut self, file: File) -> Result<(), HostError> {
        Ok(self.files.take(file.0)?.close()?)
    }

    fn read(&mut self, file: File, length: usize) -> Result<Answer, HostError> {
        Ok(answer(self.files.get(file.0)?.read(length)?))
    }

    fn write(&mut self, file: File, bytes: &[u8]) -> Result<Answer, HostError> {
        Ok(answer(self.files.get(file.0)?.write(bytes)?))
    }

    fn start_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<Pending, HostError> {
        let request = self.files.get(file.0)?.start_device_control(code, input, output)?;
        Ok(Pending(self.requests.add(Sent { request, traced: None })))
    }

    fn start_traced_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<(Pending, Guid), HostError> {
        self.activities += 1;
        // The ids that `EventActivityIdControl` returns are unique on a computer.
        let activity = Guid::new(self.activities, 0xC11E, 0x4274, *b"\x80client\0");
        let length = u32::try_from(input.len()).unwrap_or(u32::MAX);
        let data = [code.to_le_bytes(), length.to_le_bytes()].concat();
        self.write_as_client(event_of_client("request_sent", activity, data)?)?;
        let input = [&activity.to_bytes()[..], input].concat();
        let output = output.saturating_add(ACTIVITY_SIZE);
        let file = self.files.get(file.0)?;
        let request = file.start_device_control(traced(code), &input, output)?;
        let sent = Sent { request, traced: Some((code, activity)) };
        Ok((Pending(self.requests.add(sent)), activity))
    }

    fn cancel(&mut self, request: Pending) -> Result<(), HostError> {
        Ok(self.requests.get(request.0)?.request.cancel()?)
    }

    fn finish(&mut self, request: Pending) -> Result<Answer, HostError> {
        let Sent { request, traced } = self.requests.take(request.0)?;
        let mut answer = answer(request.finish()?);
        if let Some((code, activity)) = traced {
            answer.output.drain(..ACTIVITY_SIZE.min(answer.output.len()));
            let returned = u32::try_from(answer.output.len()).unwrap_or(u32::MAX);
            let data = [code, returned, answer.status].map(u32::to_le_bytes).concat();
            self.write_as_client(event_of_client("request_answered", activity, data)?)?;
        }
        Ok(answer)
    }

    fn pass(&mut self, time: Duration) -> Result<(), HostError> {
        let time = time.checked_div(self.slowness).unwrap_or(time);
        Ok(self.kernel.advance(time)?)
    }

    fn counts_losses_exactly(&self) -> bool {
        true
    }

    fn clear(&mut self) -> Result<(), HostError> {
        let result = self.tear_down();
        if result.is_err() {
            self.kernel.leave_behind();
        }
        self.driver = None;
        self.sessions.drain().for_each(drop);
        self.files.drain().for_each(drop);
        self.requests.drain().for_each(drop);
        self.kernel = Kernel::new();
        self.finished += 1;
        result
    }
}

impl StandIn {
    /// Writes one of the client's events, registering the client's provider before the first one.
    fn write_as_client(&mut self, event: ProgramEvent) -> Result<(), HostError> {
        if self.client.is_none() {
            self.client = Some(self.kernel.start_program(CLIENT, CLIENT_PROVIDER_NAME)?);
        }
        if let Some(client) = &self.client {
            client.write(event)?;
        }
        Ok(())
    }

    /// Closes and unloads everything, and fails if the verifier has reported a warning.
    fn tear_down(&mut self) -> Result<(), HostError> {
        for file in self.files.drain() {
            file.close()?;
        }
        if let Some(client) = self.client.take() {
            client.stop()?;
        }
        if let Some((driver, device)) = self.driver.take() {
            device.remove()?;
            driver.unload()?;
        }
        for session in self.sessions.drain() {
            self.kernel.stop_session(session)?;
        }
        if let Some(warning) = self.kernel.warnings().first() {
            return Err(HostError::new(warning.to_string()));
        }
        Ok(())
    }
}
