//! Running a script.

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

/// Who does a script.
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

/// A request that a script made, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The script's line.
    pub line: usize,
    /// Which of several clients made it, from 1; 0 for the only one.
    pub client: u32,
    /// The request.
    pub request: String,
    /// Its end.
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
    /// Does what the script says, and then closes and removes what it left. `enabled` is
    /// what a `capture-state` is for. Of several clients, the requests come in the order in
    /// which they ended.
    ///
    /// # Errors
    ///
    /// [`ScriptError`] for the first step that fails.
    pub fn run(
        &self,
        kernel: &Kernel,
        driver: &Driver,
        enabled: &[(SessionHandle, Target)],
        clients: Clients,
    ) -> Result<Vec<Done>, ScriptError> {
        let mut hands = Hands::default();
        let mut done = Vec::new();
        let host = Host {
            kernel,
            driver: Some(driver),
            enabled,
            client: 0,
        };
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
        let line = self.steps.last().map_or(1, |(line, _)| *line);
        hands.put_down().map_err(|error| ScriptError {
            line,
            problem: error.into(),
        })?;
        Ok(done)
    }
}

/// The objects that a client works with.
#[derive(Clone, Copy)]
struct Host<'a> {
    kernel: &'a Kernel,
    /// None for clients that share a device of it.
    driver: Option<&'a Driver>,
    enabled: &'a [(SessionHandle, Target)],
    /// Which of the clients it is, from 1; 0 for the only one.
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
    /// Does steps one after another, and tells of the requests.
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

    /// Has several clients do steps, each with a file of its own.
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
                    // What is open is closed, and the first error is the one that counts.
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

    /// Does one step; the request that it was, if it was one.
    fn take_step(&mut self, step: &Step, host: Host<'_>) -> Result<Option<String>, Problem> {
        let device = self.device.as_ref().ok_or(Problem::Order(
            "there is no device; `add-device` comes first",
        ));
        let file = self
            .file
            .as_ref()
            .ok_or(Problem::Order("the device is not open; `open` comes first"));
        let mut request = None;
        match step {
            Step::AddDevice => {
                let driver = host.driver.filter(|_| device.is_err());
                let driver = driver.ok_or(Problem::Order(
                    "there is a device already; `remove` it first",
                ))?;
                self.device = Some(Arc::new(driver.add_device()?));
            }
            Step::Open(identity) => {
                if file.is_ok() {
                    return Err(Problem::Order(
                        "the device is open already; `close` it first",
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
        let last = self
            .last
            .as_ref()
            .ok_or(Problem::Order("there was no request yet"))?;
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

    /// Closes and removes what there is.
    fn put_down(&mut self) -> Result<(), KernelError> {
        self.close()?;
        // The clients that shared it are done.
        let device = self.device.take().and_then(Arc::into_inner);
        device.map_or(Ok(()), Device::remove)
    }
}
