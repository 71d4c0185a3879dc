//! Scripts: what to do with a driver, without writing Rust.
//!
//! One step a line; `#` starts a comment. Bytes are a text in double quotes or
//! hexadecimal digits after `hex:`. Numbers may be hexadecimal, with `0x`.
//!
//! | step | what it does |
//! |---|---|
//! | `add-device` | adds a device and starts it |
//! | `open [PROCESS THREAD]` | opens the device, as a process and thread |
//! | `write BYTES` | writes to it |
//! | `read LENGTH` | reads from it |
//! | `ioctl CODE [BYTES] [LENGTH]` | sends a device control with input and room for output |
//! | `expect STATUS [BYTES]` | fails unless the last request ended so |
//! | `close` | closes the device |
//! | `advance MILLISECONDS` | lets time pass |
//! | `power-cycle` | takes the device out of its working state and back |
//! | `capture-state` | asks what is enabled to describe its state |
//! | `remove` | removes the device |
//!
//! Several clients can do it together ([`Clients`]): each does what is between `open` and
//! `close` with a file of its own, taking turns by a seed; the first one alone does the steps
//! there that are not requests, and all that is outside.

use std::{fmt, sync::Arc, time::Duration};

use etl_file::show::Escaped;

use parking_lot::Mutex;

use crate::{
    Completion, Device, Driver, File, Guid, Identity, Kernel, KernelError, NtStatus, Schedule,
    SessionHandle, Target, Work,
};

/// A script that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    steps: Vec<(usize, Step)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    AddDevice,
    Open(Identity),
    Write(Vec<u8>),
    Read(usize),
    Control(u32, Vec<u8>, usize),
    Expect(NtStatus, Option<Vec<u8>>),
    Close,
    Advance(Duration),
    PowerCycle,
    CaptureState,
    Remove,
}

/// What is wrong with a script, or went wrong with it, and in which line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong in a line.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The line is no step.
    #[error("{0}")]
    Syntax(String),
    /// A step needs something that is not there.
    #[error("{0}")]
    Order(&'static str),
    /// The last request did not end as expected.
    #[error("expected {expected}, and the request ended with {found}")]
    Unexpected {
        /// As it should have ended.
        expected: String,
        /// As it did.
        found: String,
    },
    /// The machine refused the step, or stopped.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// Splits a line into words; a text in double quotes is one.
fn words(line: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let end = if let Some(text) = rest.strip_prefix('"') {
            text.find('"')
                .map(|end| end + 2)
                .ok_or_else(|| "the text has no closing quote".to_owned())?
        } else {
            rest.find(char::is_whitespace).unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

fn number<T: TryFrom<u64>>(word: &str) -> Result<T, String> {
    let parsed = word
        .strip_prefix("0x")
        .map_or_else(|| word.parse(), |digits| u64::from_str_radix(digits, 16));
    parsed
        .ok()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("`{word}` is not a number that fits here"))
}

fn bytes(word: &str) -> Result<Vec<u8>, String> {
    if let Some(text) = word
        .strip_prefix('"')
        .and_then(|word| word.strip_suffix('"'))
    {
        return Ok(text.as_bytes().to_vec());
    }
    let refuse = || format!("`{word}` are no bytes; write \"text\" or hex:0123AB");
    let digits = word.strip_prefix("hex:").ok_or_else(refuse)?;
    if digits.len() % 2 != 0 || !digits.is_ascii() {
        return Err(refuse());
    }
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let pair = str::from_utf8(pair).unwrap_or_default();
            u8::from_str_radix(pair, 16).map_err(|_| refuse())
        })
        .collect()
}

/// The steps, as an error lists them.
const STEPS: &str = "add-device, open, write, read, ioctl, expect, close, advance, power-cycle, \
                     capture-state and remove";

fn step(words: &[&str]) -> Result<Step, String> {
    Ok(match words {
        ["add-device"] => Step::AddDevice,
        ["open"] => Step::Open(Identity {
            process: 4096,
            thread: 4100,
        }),
        ["open", process, thread] => Step::Open(Identity {
            process: number(process)?,
            thread: number(thread)?,
        }),
        ["write", data] => Step::Write(bytes(data)?),
        ["read", length] => Step::Read(number(length)?),
        ["ioctl", code] => Step::Control(number(code)?, Vec::new(), 0),
        ["ioctl", code, one] => bytes(one).map_or_else(
            |_| Ok::<_, String>(Step::Control(number(code)?, Vec::new(), number(one)?)),
            |input| Ok(Step::Control(number(code)?, input, 0)),
        )?,
        ["ioctl", code, input, output] => {
            Step::Control(number(code)?, bytes(input)?, number(output)?)
        }
        ["expect", status] => Step::Expect(status_of(status)?, None),
        ["expect", status, data] => Step::Expect(status_of(status)?, Some(bytes(data)?)),
        ["close"] => Step::Close,
        ["advance", time] => Step::Advance(Duration::from_millis(number(time)?)),
        ["power-cycle"] => Step::PowerCycle,
        ["capture-state"] => Step::CaptureState,
        ["remove"] => Step::Remove,
        [first, ..] => {
            return Err(format!(
                "`{first}` is no step, or has other arguments; there are {STEPS}"
            ));
        }
        [] => return Err("there is no step".to_owned()),
    })
}

fn status_of(word: &str) -> Result<NtStatus, String> {
    if word == "success" {
        return Ok(NtStatus::SUCCESS);
    }
    number::<u32>(word).map(|bits| NtStatus(bits.cast_signed()))
}

/// Who does a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// How many, 1 or more.
    pub count: u32,
    /// What decides whose turn it is.
    pub seed: u64,
}

impl Clients {
    /// One client.
    pub const ONE: Self = Self { count: 1, seed: 0 };
}

/// What a client works with.
#[derive(Clone, Copy)]
struct World<'a> {
    kernel: &'a Kernel,
    /// None for clients that share a device of it.
    driver: Option<&'a Driver>,
    enabled: &'a [(SessionHandle, Target)],
    /// Which of the clients it is, from 1; 0 for the only one.
    client: u32,
}

/// What a script has opened.
#[derive(Default)]
struct Hands {
    device: Option<Arc<Device>>,
    file: Option<File>,
    last: Option<Completion>,
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
    /// What is done with a driver of which nothing is known: a device is added, opened,
    /// closed and removed.
    #[must_use]
    pub fn life_of_a_device() -> Self {
        let steps = [Step::AddDevice, Step::PowerCycle, Step::Remove];
        Self {
            steps: steps.into_iter().enumerate().collect(),
        }
    }

    /// Reads a script.
    ///
    /// # Errors
    ///
    /// [`ScriptError`] for the first line that is no step.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut steps = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line_number = at + 1;
            let refuse = |problem: String| ScriptError {
                line: line_number,
                problem: Problem::Syntax(Escaped(&problem).to_string()),
            };
            let words = words(line).map_err(refuse)?;
            if !words.is_empty() {
                steps.push((line_number, step(&words).map_err(refuse)?));
            }
        }
        Ok(Self { steps })
    }

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
        let world = World {
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
                hands.take_steps(steps, world, &mut |one| done.push(one))?;
            } else {
                done.extend(hands.share(steps, world, clients)?);
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

impl Hands {
    /// Does steps one after another, and tells of the requests.
    fn take_steps(
        &mut self,
        steps: &[(usize, Step)],
        world: World<'_>,
        tell: &mut dyn FnMut(Done),
    ) -> Result<(), ScriptError> {
        for (line, step) in steps {
            let result = self.take_step(step, world);
            let request = result.map_err(|problem| ScriptError {
                line: *line,
                problem,
            })?;
            if let (Some(request), Some(completion)) = (request, &self.last) {
                tell(Done {
                    line: *line,
                    client: world.client,
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
        world: World<'_>,
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
                let (kernel, enabled) = (world.kernel.clone(), world.enabled.to_vec());
                let (done, failed) = (Arc::clone(&done), Arc::clone(&failed));
                Box::new(move || {
                    let world = World {
                        kernel: &kernel,
                        driver: None,
                        enabled: &enabled,
                        client,
                    };
                    let tell = &mut |one| with(&done, |done| done.push(one));
                    let result = hands.take_steps(&steps, world, tell);
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
        world
            .kernel
            .together(Schedule::Seeded(clients.seed), work)
            .map_err(|error| ScriptError {
                line,
                problem: error.into(),
            })?;
        let error = with(&failed, Option::take);
        error.map_or_else(|| Ok(with(&done, std::mem::take)), Err)
    }

    /// Does one step; the request that it was, if it was one.
    fn take_step(&mut self, step: &Step, world: World<'_>) -> Result<Option<String>, Problem> {
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
                let driver = world.driver.filter(|_| device.is_err());
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
            Step::Advance(time) => world.kernel.advance(*time)?,
            Step::PowerCycle => device?.power_cycle()?,
            Step::CaptureState => {
                for (session, target) in world.enabled {
                    world
                        .kernel
                        .capture_state(*session, *target, None::<Guid>)?;
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

impl Step {
    /// Whether every client does it that shares the steps around it.
    const fn is_every_clients(&self) -> bool {
        matches!(
            self,
            Self::Open(_)
                | Self::Write(_)
                | Self::Read(_)
                | Self::Control(..)
                | Self::Expect(..)
                | Self::Close
        )
    }

    /// The step as a client does it, whose threads are its own.
    fn of_client(self, client: u32) -> Self {
        match self {
            Self::Open(identity) => Self::Open(Identity {
                process: identity.process,
                thread: identity.thread + 4 * (client - 1),
            }),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Result<Step, String> {
        let mut steps = Script::parse(line)
            .map_err(|error| error.to_string())?
            .steps;
        Ok(steps.remove(0).1)
    }

    #[test]
    fn steps_are_read() {
        assert_eq!(one("write \"a b\" # c"), Ok(Step::Write(b"a b".to_vec())));
        assert_eq!(one("write hex:00fF"), Ok(Step::Write(vec![0, 0xFF])));
        assert_eq!(
            one("ioctl 0x22E000 \"x\" 16"),
            Ok(Step::Control(0x22_E000, b"x".to_vec(), 16))
        );
        assert_eq!(one("ioctl 5 16"), Ok(Step::Control(5, vec![], 16)));
        assert_eq!(one("ioctl 5 hex:"), Ok(Step::Control(5, vec![], 0)));
        assert_eq!(
            one("expect 0xC0000010"),
            Ok(Step::Expect(NtStatus::INVALID_DEVICE_REQUEST, None))
        );
        assert_eq!(
            Script::parse("\n # nothing\n")
                .map(|script| script.steps.len())
                .ok(),
            Some(0)
        );
    }

    #[test]
    fn what_is_no_step_is_named_with_its_line() {
        for (text, parts) in [
            ("add-device\nwrit \"x\"", ["line 2", "`writ` is no step"]),
            ("write \"x", ["line 1", "no closing quote"]),
            ("write hex:123", ["line 1", "`hex:123` are no bytes"]),
            ("read many", ["line 1", "`many` is not a number"]),
            (
                "open 1",
                ["line 1", "`open` is no step, or has other arguments"],
            ),
            ("ioctl 0x100000000", ["line 1", "not a number that fits"]),
            // What is quoted cannot act on a terminal.
            ("\u{1b}[2J", ["line 1", r"`\u{1b}[2J` is no step"]),
        ] {
            let error = Script::parse(text).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
}
