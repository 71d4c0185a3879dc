//! The execution of a script.

use std::{fmt, sync::Arc};

use etl_file::show::Escaped;
use parking_lot::Mutex;

use super::{
    super::{
        device::Device,
        driver::Driver,
        error::KernelError,
        file::File,
        kernel::Kernel,
        recording::{RecordedEvent, Recording},
        together::Work,
    },
    error::{Problem, ScriptError},
    steps::{Line, Script, Step},
};
use crate::{
    execution::schedule::Schedule, ground::status::NtStatus,
    services::kmdf::state::request::Completion,
};

/// The clients that run a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// The number of clients, 1 or more.
    pub count: u32,
    /// The seed that decides which client runs next.
    pub seed: u64,
}

impl Clients {
    /// One client.
    pub const ONE: Self = Self { count: 1, seed: 0 };
}

/// A step that a script has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The number of the script's line; 0 if the step is not of a file.
    pub line: usize,
    /// The number of the client that took it, from 1; 0 if there is only one client.
    pub client: u32,
    /// The step, or the request that it sent.
    pub step: String,
    /// The request's completion, if the step sent one and waited for it.
    pub completion: Option<Completion>,
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
        if let Some(Completion {
            status,
            information,
            ..
        }) = &self.completion
        {
            write!(f, " ended with {status} and {information} bytes")?;
        }
        Ok(())
    }
}

/// Receives what a script does, as it does it.
pub trait Observer {
    /// Called before a step.
    fn starts(&mut self, line: usize, step: &str);

    /// Called after a step, before its events.
    fn done(&mut self, done: &Done);

    /// Called for each event of a step.
    fn event(&mut self, event: &RecordedEvent);
}

impl Script {
    /// Runs the script, then closes the file and removes the device that it left open.
    ///
    /// The steps of several clients are in the order of their completion, and their events follow.
    ///
    /// # Errors
    ///
    /// Returns the [`ScriptError`] of the first step that fails.
    pub fn run(
        &self,
        kernel: &Kernel,
        driver: &Driver,
        recording: &Recording,
        clients: Clients,
        observer: &mut dyn Observer,
    ) -> Result<(), ScriptError> {
        let mut hands = Hands::default();
        let host = Host {
            kernel,
            driver: Some(driver),
            recording,
            client: 0,
        };
        let result = self.take_all(&mut hands, host, clients, observer);
        let line = self.steps.last().map_or(0, |line| line.number);
        // The device is removed in any case, and the first error is the one returned.
        let put_down = hands.put_down().map_err(|error| ScriptError {
            line,
            problem: error.into(),
        });
        result.and(put_down)
    }

    /// Runs the steps.
    fn take_all(
        &self,
        hands: &mut Hands,
        host: Host<'_>,
        clients: Clients,
        observer: &mut dyn Observer,
    ) -> Result<(), ScriptError> {
        let mut rest = self.steps.as_slice();
        while let Some(first) = rest.first() {
            let alone = clients.count <= 1 || !matches!(first.step, Step::Open(_));
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
                hands.share(steps, host, clients)?
            };
            for done in &all {
                observer.done(done);
            }
            let events = host.recording.take().map_err(|error| ScriptError {
                line: first.number,
                problem: error.into(),
            })?;
            for event in &events {
                observer.event(event);
            }
        }
        Ok(())
    }
}

/// The objects that a client works with.
#[derive(Clone, Copy)]
struct Host<'a> {
    kernel: &'a Kernel,
    /// `None` for clients that share one of the driver's devices.
    driver: Option<&'a Driver>,
    recording: &'a Recording,
    /// The client's number, from 1; 0 if there is only one client.
    client: u32,
}

/// The objects that a script has opened.
#[derive(Default)]
struct Hands {
    device: Option<Arc<Device>>,
    file: Option<File>,
    last: Option<Completion>,
}

impl Hands {
    /// Runs steps one after another, and passes their requests to `tell`.
    fn take_steps(
        &mut self,
        steps: &[Line],
        host: Host<'_>,
        tell: &mut dyn FnMut(Done),
    ) -> Result<(), ScriptError> {
        for line in steps {
            let result = self.take_step(&line.step, host);
            let request = result.map_err(|problem| ScriptError {
                line: line.number,
                problem,
            })?;
            tell(Done {
                line: line.number,
                client: host.client,
                completion: request.as_ref().and_then(|_| self.last.clone()),
                step: request.unwrap_or_else(|| line.text.clone()),
            });
        }
        Ok(())
    }

    /// Runs steps on several clients, each with a file of its own.
    fn share(
        &self,
        steps: &[Line],
        host: Host<'_>,
        clients: Clients,
    ) -> Result<Vec<Done>, ScriptError> {
        type Shared<T> = Arc<Mutex<T>>;
        fn with<T, R>(shared: &Shared<T>, body: impl FnOnce(&mut T) -> R) -> R {
            body(&mut shared.lock())
        }
        let line = steps.first().map_or(0, |line| line.number);
        let done: Shared<Vec<Done>> = Arc::default();
        let failed: Shared<Option<ScriptError>> = Arc::default();
        let work = (1..=clients.count)
            .map(|client| -> Work {
                let steps: Vec<Line> = steps
                    .iter()
                    .filter(|line| client == 1 || line.step.is_every_clients())
                    .map(|line| Line {
                        step: line.step.clone().of_client(client),
                        ..line.clone()
                    })
                    .collect();
                let mut hands = Self {
                    device: self.device.clone(),
                    ..Self::default()
                };
                let (kernel, recording) = (host.kernel.clone(), host.recording.clone());
                let (done, failed) = (Arc::clone(&done), Arc::clone(&failed));
                Box::new(move || {
                    let host = Host {
                        kernel: &kernel,
                        driver: None,
                        recording: &recording,
                        client,
                    };
                    let tell = &mut |one| with(&done, |done| done.push(one));
                    let result = hands.take_steps(&steps, host, tell);
                    // The file is closed in any case, and the first error is the one returned.
                    let closed = hands.close().map_err(|error| ScriptError {
                        line,
                        problem: error.into(),
                    });
                    if let Err(error) = result.and(closed) {
                        with(&failed, |failed| failed.get_or_insert(error).line);
                    }
                })
            })
            .collect();
        host.kernel
            .together(Schedule::Seeded(clients.seed), work)
            .map_err(|error| ScriptError {
                line,
                problem: error.into(),
            })?;
        let error = with(&failed, Option::take);
        error.map_or_else(|| Ok(with(&done, std::mem::take)), Err)
    }

    /// Runs one step. Returns the request's text if the step is a request.
    fn take_step(&mut self, step: &Step, host: Host<'_>) -> Result<Option<String>, Problem> {
        let device = self.device.as_ref().ok_or(Problem::Order(
            "there is no device; add one with `add-device` first",
        ));
        let file = self.file.as_ref().ok_or(Problem::Order(
            "the device is not open; open it with `open` first",
        ));
        let mut request = None;
        match step {
            Step::AddDevice => {
                let driver = host.driver.filter(|_| device.is_err());
                let driver = driver.ok_or(Problem::Order(
                    "there is a device already; remove it with `remove` first",
                ))?;
                self.device = Some(Arc::new(driver.add_device()?));
            }
            Step::Open(identity) => {
                if file.is_ok() {
                    return Err(Problem::Order(
                        "the device is open already; close it with `close` first",
                    ));
                }
                self.file = Some(device?.open(*identity)?);
            }
            Step::Write(data) => {
                self.last = Some(file?.write(data)?);
                request = Some(format!("write of {} bytes", data.len()));
            }
            Step::Read(length) => {
                self.last = Some(file?.read(*length)?);
                request = Some(format!("read of {length} bytes"));
            }
            Step::Control(code, input, output) => {
                self.last = Some(file?.device_control(*code, input, *output)?);
                request = Some(format!("ioctl 0x{code:x}"));
            }
            Step::Expect(status, data) => self.expect(*status, data.as_deref())?,
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
            Step::Remove => {
                device?;
                self.put_down()?;
            }
        }
        Ok(request)
    }

    fn expect(&self, status: NtStatus, data: Option<&[u8]>) -> Result<(), Problem> {
        let last = self.last.as_ref().ok_or(Problem::Order(
            "there is no earlier request to compare with",
        ))?;
        if last.status == status && data.is_none_or(|data| data == last.output) {
            return Ok(());
        }
        let with = |status: NtStatus, data: Option<&[u8]>| {
            data.map_or_else(
                || status.to_string(),
                |data| format!("{status} and {data:02x?}"),
            )
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

    /// Closes the file and removes the device, if they exist.
    fn put_down(&mut self) -> Result<(), KernelError> {
        self.close()?;
        // The clients that shared the device are done.
        let device = self.device.take().and_then(Arc::into_inner);
        device.map_or(Ok(()), Device::remove)
    }
}
