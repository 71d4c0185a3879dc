//! The execution of a script.

use std::{fmt, sync::Arc};

use etl_file::Guid;
use parking_lot::Mutex;

use super::{
    super::{
        device::Device, driver::Driver, error::KernelError, file::File, kernel::Kernel,
        together::Work,
    },
    error::{Problem, ScriptError},
    steps::{Script, Step},
};
use crate::{
    execution::schedule::Schedule,
    ground::status::NtStatus,
    services::{
        etw::{controller::SessionHandle, state::Target},
        kmdf::state::request::Completion,
    },
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

/// A request that a script made, and its completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The number of the script's line.
    pub line: usize,
    /// The number of the client that made it, from 1; 0 if there is only one client.
    pub client: u32,
    /// The request.
    pub request: String,
    /// The request's completion.
    pub completion: Completion,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if self.client != 0 {
            write!(f, ", client {}", self.client)?;
        }
        write!(
            f,
            ": {} ended with {} and {} bytes",
            self.request, self.completion.status, self.completion.information
        )
    }
}

impl Script {
    /// Runs the script, then closes the file and removes the device that it left open.
    ///
    /// `enabled` lists the targets of `capture-state`. Returns the requests; those of several
    /// clients are in the order of their completion.
    ///
    /// # Errors
    ///
    /// Returns the [`ScriptError`] of the first step that fails.
    pub fn run(
        &self,
        kernel: &Kernel,
        driver: &Driver,
        enabled: &[(SessionHandle, Target)],
        clients: Clients,
    ) -> Result<Vec<Done>, ScriptError> {
        let mut hands = Hands::default();
        let host = Host {
            kernel,
            driver: Some(driver),
            enabled,
            client: 0,
        };
        let result = self.take_all(&mut hands, host, clients);
        let line = self.steps.last().map_or(1, |(line, _)| *line);
        // The device is removed in any case; the first error is returned.
        let put_down = hands.put_down().map_err(|error| ScriptError {
            line,
            problem: error.into(),
        });
        let done = result?;
        put_down.map(|()| done)
    }

    /// Runs the steps.
    fn take_all(
        &self,
        hands: &mut Hands,
        host: Host<'_>,
        clients: Clients,
    ) -> Result<Vec<Done>, ScriptError> {
        let mut done = Vec::new();
        let mut rest = self.steps.as_slice();
        while let Some((first, _)) = rest.split_first() {
            let alone = clients.count <= 1 || !matches!(first.1, Step::Open(_));
            let length = if alone {
                1
            } else {
                let close = rest.iter().position(|(_, step)| *step == Step::Close);
                close.map_or(rest.len(), |at| at + 1)
            };
            let (steps, after) = rest.split_at(length);
            rest = after;
            if alone {
                hands.take_steps(steps, host, &mut |one| done.push(one))?;
            } else {
                done.extend(hands.share(steps, host, clients)?);
            }
        }
        Ok(done)
    }
}

/// The objects that a client works with.
#[derive(Clone, Copy)]
struct Host<'a> {
    kernel: &'a Kernel,
    /// `None` for clients that share one of the driver's devices.
    driver: Option<&'a Driver>,
    enabled: &'a [(SessionHandle, Target)],
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
        steps: &[(usize, Step)],
        host: Host<'_>,
        tell: &mut dyn FnMut(Done),
    ) -> Result<(), ScriptError> {
        for (line, step) in steps {
            let result = self.take_step(step, host);
            let request = result.map_err(|problem| ScriptError {
                line: *line,
                problem,
            })?;
            if let (Some(request), Some(completion)) = (request, &self.last) {
                tell(Done {
                    line: *line,
                    client: host.client,
                    request,
                    completion: completion.clone(),
                });
            }
        }
        Ok(())
    }

    /// Runs steps on several clients, each with a file of its own.
    fn share(
        &self,
        steps: &[(usize, Step)],
        host: Host<'_>,
        clients: Clients,
    ) -> Result<Vec<Done>, ScriptError> {
        type Shared<T> = Arc<Mutex<T>>;
        fn with<T, R>(shared: &Shared<T>, body: impl FnOnce(&mut T) -> R) -> R {
            body(&mut shared.lock())
        }
        let line = steps.first().map_or(1, |(line, _)| *line);
        let done: Shared<Vec<Done>> = Arc::default();
        let failed: Shared<Option<ScriptError>> = Arc::default();
        let work = (1..=clients.count)
            .map(|client| -> Work {
                let steps: Vec<(usize, Step)> = steps
                    .iter()
                    .filter(|(_, step)| client == 1 || step.is_every_clients())
                    .map(|(line, step)| (*line, step.clone().of_client(client)))
                    .collect();
                let mut hands = Self {
                    device: self.device.clone(),
                    ..Self::default()
                };
                let (kernel, enabled) = (host.kernel.clone(), host.enabled.to_vec());
                let (done, failed) = (Arc::clone(&done), Arc::clone(&failed));
                Box::new(move || {
                    let host = Host {
                        kernel: &kernel,
                        driver: None,
                        enabled: &enabled,
                        client,
                    };
                    let tell = &mut |one| with(&done, |done| done.push(one));
                    let result = hands.take_steps(&steps, host, tell);
                    // The file is closed in any case; the first error is returned.
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
                for (session, target) in host.enabled {
                    host.kernel.capture_state(*session, *target, None::<Guid>)?;
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
