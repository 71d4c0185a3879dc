//! The execution of a script.

use std::{collections::BTreeMap, fmt, sync::Arc};

use etl_file::internals::show::Escaped;
use parking_lot::Mutex;

use super::{
    error::{Problem, ScriptError},
    expectation::Expectation,
    steps::{Line, Script, Sent, Step},
    words::did_you_mean,
};
use crate::{
    execution::{identity::Identity, schedule::Schedule},
    ground::NtStatus,
    harness::{
        concurrent_work::Work,
        device::Device,
        device_config::DeviceConfig,
        driver::Driver,
        error::KernelError,
        file::File,
        kernel::Kernel,
        process::Process,
        recording::{RecordedEvent, Recording},
        request::Request,
    },
    services::{etw::state::Target, kmdf::state::request::Completion},
};

/// The objects that a script uses.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The service name under which the driver is loaded.
    pub service: &'a str,
    /// The session in which the script expects events and changes filters.
    pub recording: &'a Recording,
    /// The clients that run the script.
    pub clients: Clients,
}

/// The clients that run a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// The number of clients, 1 or more.
    pub count: u32,
    /// The seed that decides which client runs next.
    pub seed: u64,
}

impl Clients {
    /// A single client.
    pub const ONE: Self = Self { count: 1, seed: 0 };
}

/// A completed step of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The number of the script's line; 0 if the step does not come from a file.
    pub line: usize,
    /// The number of the client that ran the step, from 1; 0 if there is only one client.
    pub client: u32,
    /// The step, or the request that it sent.
    pub step: String,
    /// The completion of the step's request, if the step sent a request and waited for it.
    pub completion: Option<Completion>,
}

impl Done {
    /// Returns a step that does not come from a file.
    #[must_use]
    pub fn sentence(step: &str) -> Self {
        Self { line: 0, client: 0, step: step.to_owned(), completion: None }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line != 0 {
            write!(f, "line {}", self.line)?;
            if self.client != 0 {
                write!(f, ", client {}", self.client)?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{}", Escaped(&self.step))?;
        if let Some(Completion { status, information, .. }) = &self.completion {
            write!(f, " ended with {status} and {information} bytes")?;
        }
        Ok(())
    }
}

/// Observes a script's steps and events as they occur.
pub trait Observer {
    /// Called before a step.
    fn starts(&mut self, line: usize, step: &str);

    /// Called after a step, before its events.
    fn done(&mut self, done: &Done);

    /// Called for each event of a step.
    fn event(&mut self, event: &RecordedEvent);
}

impl Script {
    /// Runs the steps at the start of the script that apply to the driver's entry point: `parameter`,
    /// `fault` and `filter`. Call this before the driver is loaded.
    ///
    /// # Errors
    ///
    /// Returns the [`ScriptError`] of the first step that fails.
    pub fn prepare(
        &self,
        setting: Setting<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), ScriptError> {
        let (steps, _) = self.around_the_load();
        let hands = &mut Hands::default();
        take_all(steps, hands, Host::new(setting, None, false), observer)
    }

    /// Reports the events so far, runs the script's other steps, and then closes the file and removes
    /// the device if the script left them open.
    ///
    /// The steps of several clients are reported in the order of their completion, followed by their
    /// events.
    ///
    /// # Errors
    ///
    /// Returns the [`ScriptError`] of the first step that fails.
    pub fn run(
        &self,
        setting: Setting<'_>,
        driver: &Driver,
        observer: &mut dyn Observer,
    ) -> Result<(), ScriptError> {
        let (_, steps) = self.around_the_load();
        let mut hands = Hands::default();
        let host = Host::new(setting, Some(driver), self.expects_events());
        // Events from the driver's entry point also count.
        let events = take_events(host, 0)?;
        hands.keep(host, &events, observer);
        let result = take_all(steps, &mut hands, host, observer);
        let line = steps.last().map_or(0, |line| line.number);
        // The device is always removed, and the first error is returned.
        let put_down = hands
            .put_down()
            .and_then(|()| hands.end_processes())
            .map_err(|error| ScriptError { line, problem: error.into() });
        result.and(put_down)
    }
}

fn take_all(
    steps: &[Line],
    hands: &mut Hands,
    host: Host<'_>,
    observer: &mut dyn Observer,
) -> Result<(), ScriptError> {
    let mut rest = steps;
    while let Some(first) = rest.first() {
        let alone = host.clients.count <= 1 || !matches!(first.step, Step::Open(..));
        let length = if alone {
            1
        } else {
            let close = rest.iter().position(|line| line.step == Step::Close);
            close.map_or(rest.len(), |at| at + 1)
        };
        let (steps, after) = rest.split_at(length);
        rest = after;
        observer.starts(first.number, &first.text);
        let all = if alone {
            let mut all = Vec::new();
            hands.take_steps(steps, host, &mut |one| all.push(one))?;
            all
        } else {
            hands.share(steps, host)?
        };
        for done in &all {
            observer.done(done);
        }
        let events = take_events(host, first.number)?;
        hands.keep(host, &events, observer);
    }
    Ok(())
}

/// Returns the events since the last call.
fn take_events(host: Host<'_>, line: usize) -> Result<Vec<RecordedEvent>, ScriptError> {
    host.recording.take().map_err(|error| ScriptError { line, problem: error.into() })
}

/// The objects that a client uses.
#[derive(Clone, Copy)]
struct Host<'a> {
    kernel: &'a Kernel,
    service: &'a str,
    /// `None` before the load, and for clients that share one of the driver's devices.
    driver: Option<&'a Driver>,
    recording: &'a Recording,
    clients: Clients,
    /// Set if a step expects an event.
    keeps_events: bool,
    /// The client's number, from 1; 0 if there is only one client.
    client: u32,
}

impl<'a> Host<'a> {
    const fn new(setting: Setting<'a>, driver: Option<&'a Driver>, keeps_events: bool) -> Self {
        Self {
            kernel: setting.kernel,
            service: setting.service,
            driver,
            recording: setting.recording,
            clients: setting.clients,
            keeps_events,
            client: 0,
        }
    }
}

/// The error of a step for a process that does not run.
const NO_PROCESS: Problem = Problem::Order(
    "the script started no process with this id; start it with `start-process` first",
);

/// The objects that a script has opened.
#[derive(Default)]
struct Hands {
    device: Option<Arc<Device>>,
    file: Option<File>,
    last: Option<Completion>,
    /// The started requests, by name.
    started: BTreeMap<String, Request>,
    /// The processes that run, by id.
    processes: BTreeMap<u32, Process>,
    /// The events after the last expected event.
    events: Vec<RecordedEvent>,
}

impl Hands {
    /// Reports events, and keeps them for the steps that expect an event.
    fn keep(&mut self, host: Host<'_>, events: &[RecordedEvent], observer: &mut dyn Observer) {
        for event in events {
            observer.event(event);
        }
        if host.keeps_events {
            self.events.extend_from_slice(events);
        }
    }

    /// Runs steps one after another, and passes their requests to `tell`.
    fn take_steps(
        &mut self,
        steps: &[Line],
        host: Host<'_>,
        tell: &mut dyn FnMut(Done),
    ) -> Result<(), ScriptError> {
        for line in steps {
            let result = self.take_step(&line.step, host);
            let request = result.map_err(|problem| ScriptError { line: line.number, problem })?;
            tell(Done {
                line: line.number,
                client: host.client,
                completion: request.as_ref().and_then(|_| self.last.clone()),
                step: request.unwrap_or_else(|| line.text.clone()),
            });
        }
        Ok(())
    }

    /// Runs steps on several clients, each with its own file.
    fn share(&self, steps: &[Line], host: Host<'_>) -> Result<Vec<Done>, ScriptError> {
        type Shared<T> = Arc<Mutex<T>>;
        fn with<T, R>(shared: &Shared<T>, body: impl FnOnce(&mut T) -> R) -> R {
            body(&mut shared.lock())
        }
        let line = steps.first().map_or(0, |line| line.number);
        let clients = host.clients;
        let done: Shared<Vec<Done>> = Arc::default();
        let failed: Shared<Option<ScriptError>> = Arc::default();
        let work = (1..=clients.count)
            .map(|client| -> Work {
                let steps: Vec<Line> = steps
                    .iter()
                    .filter(|line| client == 1 || line.step.is_every_clients())
                    .map(|line| Line { step: line.step.clone().of_client(client), ..line.clone() })
                    .collect();
                let mut hands = Self { device: self.device.clone(), ..Self::default() };
                let (kernel, recording) = (host.kernel.clone(), host.recording.clone());
                let (service, keeps_events) = (host.service.to_owned(), host.keeps_events);
                let (done, failed) = (Arc::clone(&done), Arc::clone(&failed));
                Box::new(move || {
                    let host = Host {
                        kernel: &kernel,
                        service: &service,
                        driver: None,
                        recording: &recording,
                        clients,
                        keeps_events,
                        client,
                    };
                    let tell = &mut |one| with(&done, |done| done.push(one));
                    let result = hands.take_steps(&steps, host, tell);
                    // The file is always closed, and the first error is returned.
                    let closed =
                        hands.close().map_err(|error| ScriptError { line, problem: error.into() });
                    if let Err(error) = result.and(closed) {
                        with(&failed, |failed| failed.get_or_insert(error).line);
                    }
                })
            })
            .collect();
        host.kernel
            .together(Schedule::Seeded(clients.seed), work)
            .map_err(|error| ScriptError { line, problem: error.into() })?;
        let error = with(&failed, Option::take);
        error.map_or_else(|| Ok(with(&done, std::mem::take)), Err)
    }

    /// Runs one step. If the step sends a request, returns the request's text.
    #[expect(clippy::too_many_lines, reason = "a few lines for each kind of step")]
    fn take_step(&mut self, step: &Step, host: Host<'_>) -> Result<Option<String>, Problem> {
        let device = self
            .device
            .as_ref()
            .ok_or(Problem::Order("there is no device; add one with `add-device` first"));
        let file = self
            .file
            .as_ref()
            .ok_or(Problem::Order("the device is not open; open it with `open` first"));
        match step {
            Step::AddDevice(wake) => {
                let driver = host.driver.filter(|_| device.is_err());
                let driver = driver.ok_or(Problem::Order(
                    "there is a device already; remove it with `remove` first",
                ))?;
                let config = DeviceConfig::new();
                let config = match wake {
                    Some(wake) => config.wakes_from(*wake),
                    None => config,
                };
                self.device = Some(Arc::new(driver.add_device_with(config)?));
            }
            Step::Open(identity, name, is_synchronous) => {
                if file.is_ok() {
                    return Err(Problem::Order(
                        "the device is open already; close it with `close` first",
                    ));
                }
                host.kernel.open_synchronous(*is_synchronous);
                self.file = Some(match (device, host.driver) {
                    (Err(_), Some(driver)) if driver.has_own_device()? => {
                        driver.open_own_file(name, *identity)?
                    }
                    (device, _) => device?.open_file(name, *identity)?,
                });
            }
            Step::Send(sent) => {
                self.last = Some(sent.start(file?)?.finish()?);
                return Ok(Some(sent.to_string()));
            }
            Step::Start(sent, name) => {
                if self.started.contains_key(name) {
                    return Err(Problem::AlreadyStarted(name.clone()));
                }
                let request = sent.start(file?)?;
                self.started.insert(name.clone(), request);
            }
            Step::Wait(name) => {
                let request = self.started.remove(name);
                let request = request.ok_or_else(|| self.no_such_request(name))?;
                self.last = Some(request.finish()?);
                return Ok(Some(format!("request {name}")));
            }
            Step::Cancel(name) => {
                let request = self.started.get(name);
                let request = request.ok_or_else(|| self.no_such_request(name))?;
                request.cancel()?;
            }
            Step::Expect(status, data) => self.expect(*status, data.as_deref())?,
            Step::ExpectEvent(_) if host.client != 0 => {
                return Err(Problem::Order(
                    "several clients run the steps between `open` and `close`; expect events after \
                     `close`",
                ));
            }
            Step::ExpectEvent(wanted) => self.expect_event(wanted)?,
            Step::Close => {
                file?;
                self.close()?;
            }
            Step::Advance(time) => host.kernel.advance(*time)?,
            Step::PowerCycle => device?.power_cycle()?,
            Step::CaptureState => {
                let session = host.recording.session();
                for target in host.kernel.targets_of(session) {
                    host.kernel.capture_state(session, target, None)?;
                }
            }
            Step::Filter(provider, filter) => {
                let session = host.recording.session();
                let target = Target::Provider(*provider);
                let now = host.kernel.parameters_of(session, target);
                let parameters = filter.apply(&now.unwrap_or_default());
                host.kernel.enable(session, target, parameters)?;
            }
            Step::Fault(fault) => host.kernel.inject(*fault)?,
            Step::Parameter(name, value) => {
                host.kernel.set_parameter(host.service, name, value.clone());
            }
            Step::StartProcess(id, image, command_line) => {
                if self.processes.contains_key(id) {
                    return Err(Problem::Order(
                        "there is a process with this id already; end it with `end-process` first",
                    ));
                }
                let identity = Identity { process: *id, thread: id.saturating_add(4) };
                let status = match host.kernel.start_process(identity, image, command_line) {
                    Ok(process) => {
                        self.processes.insert(*id, process);
                        NtStatus::SUCCESS
                    }
                    Err(KernelError::Status { status, .. }) => status,
                    Err(error) => return Err(error.into()),
                };
                self.last = Some(Completion::failure(status));
                return Ok(Some(format!("start of process {id}")));
            }
            Step::EndProcess(id) => self.processes.remove(id).ok_or(NO_PROCESS)?.end()?,
            Step::StartThread(thread) => self.process(*thread)?.start_thread(thread.thread)?,
            Step::EndThread(thread) => self.process(*thread)?.end_thread(thread.thread)?,
            Step::Remove => {
                device?;
                self.put_down()?;
            }
            Step::SurpriseRemove => {
                device?;
                let device = self.device.take().and_then(Arc::into_inner);
                let device = device.ok_or(Problem::Order(
                    "several clients have the device open; remove it by surprise before `open` or \
                     after `close`",
                ))?;
                device.surprise_remove()?;
            }
        }
        Ok(None)
    }

    /// Returns the process of a thread.
    fn process(&self, thread: Identity) -> Result<&Process, Problem> {
        self.processes.get(&thread.process).ok_or(NO_PROCESS)
    }

    fn no_such_request(&self, name: &str) -> Problem {
        Problem::NoSuchRequest {
            name: name.to_owned(),
            near: did_you_mean(name, self.started.keys().map(String::as_str)),
        }
    }

    /// Fails unless an event matches the expectation. Discards the events up to that event.
    fn expect_event(&mut self, wanted: &Expectation) -> Result<(), Problem> {
        match wanted.find(&self.events) {
            Some(at) => {
                self.events.drain(..=at);
                Ok(())
            }
            None => Err(Problem::NoSuchEvent(wanted.complaint(&self.events))),
        }
    }

    fn expect(&self, status: NtStatus, data: Option<&[u8]>) -> Result<(), Problem> {
        let last = self
            .last
            .as_ref()
            .ok_or(Problem::Order("there is no earlier request to compare with"))?;
        if last.status == status && data.is_none_or(|data| data == last.output) {
            return Ok(());
        }
        let with = |status: NtStatus, data: Option<&[u8]>| {
            data.map_or_else(|| status.to_string(), |data| format!("{status} and {data:02x?}"))
        };
        Err(Problem::Unexpected {
            expected: with(status, data),
            found: with(last.status, data.map(|_| last.output.as_slice())),
        })
    }

    /// Closes the file, if one is open.
    fn close(&mut self) -> Result<(), KernelError> {
        self.file.take().map_or(Ok(()), File::close)
    }

    /// Ends the processes that still run.
    fn end_processes(&mut self) -> Result<(), KernelError> {
        std::mem::take(&mut self.processes).into_values().try_for_each(Process::end)
    }

    /// Closes the file and removes the device, if they exist.
    fn put_down(&mut self) -> Result<(), KernelError> {
        self.close()?;
        // The clients that shared the device have finished.
        let device = self.device.take().and_then(Arc::into_inner);
        device.map_or(Ok(()), |device| device.remove())
    }
}

impl Sent {
    fn start(&self, file: &File) -> Result<Request, KernelError> {
        match self {
            Self::Write(data) => file.start_write(data),
            Self::Read(length) => file.start_read(*length),
            Self::Control(code, input, output) => file.start_device_control(*code, input, *output),
        }
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(data) => write!(f, "write of {} bytes", data.len()),
            Self::Read(length) => write!(f, "read of {length} bytes"),
            Self::Control(code, ..) => write!(f, "ioctl 0x{code:x}"),
        }
    }
}
