//! The steps of a script and their parser.

use std::time::Duration;

use etl_file::Guid;
use etl_file::internals::show::Escaped;

use super::{
    error::{Problem, ScriptError},
    expectation::Expectation,
    filter::Filter,
    syntax::{STEPS, StepSyntax},
    words::{bytes, did_you_mean, number, provider, quoted, status, words},
};
use crate::{
    execution::identity::Identity,
    ground::NtStatus,
    services::{
        kmdf::device::capabilities::DevicePowerState, managers::registry::value::RegistryValue,
        verifier::faults::Fault,
    },
};

/// The maximum number of steps in a script, including repetitions.
const MAX_STEPS: usize = 100_000;

/// A parsed script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The steps, with repetitions expanded.
    pub(super) steps: Vec<Line>,
}

/// A line with a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line's number, from 1; 0 if the step does not come from a file.
    pub number: usize,
    /// The step's text.
    pub text: String,
    pub step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Adds a device, with the deepest state from which it wakes.
    AddDevice(Option<DevicePowerState>),
    /// Opens a file on behalf of a process and thread. The name is the part of the path after the
    /// device. The last field is set if the file is opened for synchronous requests.
    Open(Identity, String, bool),
    Send(Sent),
    Start(Sent, String),
    Wait(String),
    Cancel(String),
    Expect(NtStatus, Option<Vec<u8>>),
    ExpectEvent(Expectation),
    Close,
    Advance(Duration),
    PowerCycle,
    CaptureState,
    Filter(Guid, Filter),
    Fault(Fault),
    Parameter(String, RegistryValue),
    /// Starts a process with an id, an image and a command line.
    StartProcess(u32, String, String),
    EndProcess(u32),
    StartThread(Identity),
    EndThread(Identity),
    Remove,
    SurpriseRemove,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    Write(Vec<u8>),
    Read(usize),
    Control(u32, Vec<u8>, usize),
}

/// The steps between a `repeat` step and its `end`.
struct Repetition {
    /// The number of the line with `repeat`.
    line: usize,
    times: usize,
    steps: Vec<Line>,
}

/// The process and thread that open the device, unless the script specifies others.
const CLIENT: Identity = Identity { process: 4096, thread: 4100 };

impl Script {
    /// The syntax of every step.
    pub const STEPS: &'static [StepSyntax] = STEPS;

    /// Returns the script for an unknown driver: it adds a device, power-cycles it, requests a
    /// state capture from the providers, and removes the device.
    #[must_use]
    pub fn life_of_a_device() -> Self {
        Self::unnumbered([
            ("add-device", Step::AddDevice(None)),
            ("power-cycle", Step::PowerCycle),
            ("capture-state", Step::CaptureState),
            ("remove", Step::Remove),
        ])
    }

    /// Returns the script for a driver that created its device itself: it opens and closes the
    /// device.
    #[must_use]
    pub fn life_of_an_own_device() -> Self {
        Self::unnumbered([
            ("open", Step::Open(CLIENT, String::new(), false)),
            ("capture-state", Step::CaptureState),
            ("close", Step::Close),
        ])
    }

    /// Returns the script for a driver without devices: it requests a state capture from the
    /// providers.
    #[must_use]
    pub fn life_without_a_device() -> Self {
        Self::unnumbered([("capture-state", Step::CaptureState)])
    }

    /// Returns a script of steps that do not come from a file.
    fn unnumbered<const N: usize>(steps: [(&str, Step); N]) -> Self {
        let lines = steps.map(|(text, step)| Line { number: 0, text: text.to_owned(), step });
        Self { steps: lines.into() }
    }

    /// Parses a script.
    ///
    /// # Errors
    ///
    /// Returns the [`ScriptError`] of the first line that is not a valid step.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut steps = Vec::new();
        let mut open: Vec<Repetition> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let number = at + 1;
            let refuse = |problem: String| refuse(number, &problem);
            let words = words(line).map_err(refuse)?;
            match words.as_slice() {
                [] => {}
                ["repeat", times] => open.push(Repetition {
                    line: number,
                    times: super::words::number(times).map_err(refuse)?,
                    steps: Vec::new(),
                }),
                ["end"] => {
                    let Some(ended) = open.pop() else {
                        return Err(refuse("`end` has no `repeat` before it".to_owned()));
                    };
                    let outer = open.last_mut().map_or(&mut steps, |outer| &mut outer.steps);
                    let more = ended.steps.len().saturating_mul(ended.times);
                    if outer.len().saturating_add(more) > MAX_STEPS {
                        return Err(refuse(format!(
                            "the script has more than {MAX_STEPS} steps, including repetitions"
                        )));
                    }
                    if more > 0 {
                        for _ in 0..ended.times {
                            outer.extend_from_slice(&ended.steps);
                        }
                    }
                }
                words => {
                    let line =
                        Line { number, text: words.join(" "), step: step(words).map_err(refuse)? };
                    let inner = open.last_mut().map_or(&mut steps, |inner| &mut inner.steps);
                    inner.push(line);
                }
            }
        }
        if let Some(open) = open.last() {
            return Err(refuse(open.line, "`repeat` has no `end` after it"));
        }
        Ok(Self { steps })
    }

    /// Splits the steps into the steps that run before the driver is loaded (`parameter`, `fault`
    /// and `filter` at the start of the script) and the other steps.
    pub(super) fn around_the_load(&self) -> (&[Line], &[Line]) {
        let is_before = |line: &Line| {
            matches!(line.step, Step::Parameter(..) | Step::Fault(_) | Step::Filter(..))
        };
        let first = self.steps.iter().position(|line| !is_before(line));
        self.steps.split_at(first.unwrap_or(self.steps.len()))
    }

    /// Returns whether any step expects an event.
    pub(super) fn expects_events(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|line| matches!(line.step, Step::ExpectEvent(_)))
    }
}

fn refuse(line: usize, problem: &str) -> ScriptError {
    ScriptError { line, problem: Problem::Syntax(Escaped(problem).to_string()) }
}

impl Step {
    /// Returns whether every client runs the step, rather than only the first client.
    pub const fn is_every_clients(&self) -> bool {
        matches!(
            self,
            Self::Open(..)
                | Self::Send(_)
                | Self::Start(..)
                | Self::Wait(_)
                | Self::Cancel(_)
                | Self::Expect(..)
                | Self::Close
        )
    }

    /// Returns a client's variant of the step, with the client's own thread id.
    pub fn of_client(self, client: u32) -> Self {
        match self {
            Self::Open(identity, name, is_synchronous) => {
                let thread = identity.thread + 4 * (client - 1);
                Self::Open(Identity { thread, ..identity }, name, is_synchronous)
            }
            other => other,
        }
    }
}

fn power_state(word: &str) -> Result<DevicePowerState, String> {
    use DevicePowerState::{D0, D1, D2, D3};
    let states = [("D0", D0), ("D1", D1), ("D2", D2), ("D3", D3)];
    let found = states.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    let found = found.map(|(_, state)| state);
    found.ok_or_else(|| format!("`{word}` is not a power state: D0, D1, D2 or D3"))
}

fn step(words: &[&str]) -> Result<Step, String> {
    Ok(match words {
        ["add-device"] => Step::AddDevice(None),
        ["add-device", "wakes-from", state] => Step::AddDevice(Some(power_state(state)?)),
        ["open", rest @ ..] => open(rest)?,
        ["write" | "read" | "ioctl", _] | ["ioctl", _, _] | ["ioctl", _, _, _] => {
            Step::Send(sent(words)?)
        }
        ["start", request @ .., "as", name] => Step::Start(sent(request)?, (*name).to_owned()),
        ["wait", name] => Step::Wait((*name).to_owned()),
        ["cancel", name] => Step::Cancel((*name).to_owned()),
        ["expect", wanted] => Step::Expect(status(wanted)?, None),
        ["expect", wanted, data] => Step::Expect(status(wanted)?, Some(bytes(data)?)),
        ["expect-event", name, fields @ ..] => Step::ExpectEvent(Expectation::parse(name, fields)?),
        ["close"] => Step::Close,
        ["advance", time] => Step::Advance(Duration::from_millis(number(time)?)),
        ["power-cycle"] => Step::PowerCycle,
        ["capture-state"] => Step::CaptureState,
        ["filter", name, settings @ ..] => Step::Filter(provider(name)?, Filter::parse(settings)?),
        ["fault", routine] => Step::Fault(fault(routine, "STATUS_INSUFFICIENT_RESOURCES", "1")?),
        ["fault", routine, status] => Step::Fault(fault(routine, status, "1")?),
        ["fault", routine, status, times] => Step::Fault(fault(routine, status, times)?),
        ["parameter", name, value] => Step::Parameter((*name).to_owned(), registry_value(value)?),
        ["start-process", process, image, rest @ ..] if rest.len() < 2 => {
            let text = |word: &str| quoted(word).unwrap_or(word).to_owned();
            let command_line = rest.first().map_or_else(String::new, |word| text(word));
            Step::StartProcess(number(process)?, text(image), command_line)
        }
        ["end-process", process] => Step::EndProcess(number(process)?),
        [which @ ("start-thread" | "end-thread"), process, thread] => {
            let identity = Identity { process: number(process)?, thread: number(thread)? };
            if *which == "start-thread" {
                Step::StartThread(identity)
            } else {
                Step::EndThread(identity)
            }
        }
        ["remove"] => Step::Remove,
        ["surprise-remove"] => Step::SurpriseRemove,
        [first, ..] => return Err(not_a_step(first)),
        [] => return Err("the line has no step".to_owned()),
    })
}

/// Parses the arguments of `open`.
fn open(words: &[&str]) -> Result<Step, String> {
    let (name, ids) = match words.split_last() {
        Some((name, ids)) if name.starts_with('\\') => ((*name).to_owned(), ids),
        _ => (String::new(), words),
    };
    let (is_synchronous, ids) = match ids {
        ["synchronous", ids @ ..] => (true, ids),
        _ => (false, ids),
    };
    match ids {
        [] => Ok(Step::Open(CLIENT, name, is_synchronous)),
        [process, thread] => {
            let identity = Identity { process: number(process)?, thread: number(thread)? };
            Ok(Step::Open(identity, name, is_synchronous))
        }
        _ => Err(not_a_step("open")),
    }
}

/// Returns the error for words that are not a step.
fn not_a_step(first: &str) -> String {
    if let Some(known) = STEPS.iter().find(|known| known.name == first) {
        return format!("the arguments of `{first}` are wrong; write `{}`", known.form);
    }
    let names: Vec<&str> = STEPS.iter().map(|known| known.name).collect();
    format!(
        "`{first}` is not a step{}; the steps are {}",
        did_you_mean(first, names.iter().copied()),
        names.join(", ")
    )
}

fn sent(words: &[&str]) -> Result<Sent, String> {
    Ok(match words {
        ["write", data] => Sent::Write(bytes(data)?),
        ["read", length] => Sent::Read(number(length)?),
        ["ioctl", code] => Sent::Control(number(code)?, Vec::new(), 0),
        ["ioctl", code, one] => bytes(one).map_or_else(
            |_| Ok::<_, String>(Sent::Control(number(code)?, Vec::new(), number(one)?)),
            |input| Ok(Sent::Control(number(code)?, input, 0)),
        )?,
        ["ioctl", code, input, output] => {
            Sent::Control(number(code)?, bytes(input)?, number(output)?)
        }
        ["write" | "read" | "ioctl", ..] => return Err(not_a_step(words[0])),
        [first, ..] => {
            return Err(format!(
                "`{first}` is not a request{}; the requests are read, write and ioctl",
                did_you_mean(first, ["read", "write", "ioctl"])
            ));
        }
        [] => return Err(not_a_step("start")),
    })
}

/// Parses a fault to inject into a routine.
fn fault(routine: &str, status: &str, times: &str) -> Result<Fault, String> {
    let known = Fault::routines();
    let Some(&routine) = known.iter().find(|known| **known == routine) else {
        return Err(format!(
            "fault injection does not support `{routine}`{}; it supports {}",
            did_you_mean(routine, known),
            Fault::SUPPORTED
        ));
    };
    let times = number(times)?;
    if times == 0 {
        return Err("a fault must occur at least once".to_owned());
    }
    Ok(Fault { routine, status: super::words::status(status)?, after: 0, times })
}

/// Parses a registry value: a string, bytes or a number.
fn registry_value(word: &str) -> Result<RegistryValue, String> {
    if let Some(text) = quoted(word) {
        return Ok(RegistryValue::Text(text.to_owned()));
    }
    if word.starts_with("hex:") {
        return Ok(RegistryValue::Binary(bytes(word)?));
    }
    number(word).map(RegistryValue::Dword).map_err(|_| {
        format!("`{word}` is not a registry value; write a number, \"text\" or hex:0123AB")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Result<Step, String> {
        let mut steps = Script::parse(line).map_err(|error| error.to_string())?.steps;
        Ok(steps.remove(0).step)
    }

    #[test]
    fn steps_are_read() {
        assert_eq!(one("write \"a b\" # c"), Ok(Step::Send(Sent::Write(b"a b".to_vec()))));
        assert_eq!(one("write hex:00fF"), Ok(Step::Send(Sent::Write(vec![0, 0xFF]))));
        assert_eq!(
            one("ioctl 0x22E000 \"x\" 16"),
            Ok(Step::Send(Sent::Control(0x22_E000, b"x".to_vec(), 16)))
        );
        assert_eq!(one("ioctl 5 16"), Ok(Step::Send(Sent::Control(5, vec![], 16))));
        assert_eq!(one("ioctl 5 hex:"), Ok(Step::Send(Sent::Control(5, vec![], 0))));
        assert_eq!(
            one("expect 0xC0000010"),
            Ok(Step::Expect(NtStatus::INVALID_DEVICE_REQUEST, None))
        );
        assert_eq!(
            one("start-process 8 \"a b.exe\" \"a b\""),
            Ok(Step::StartProcess(8, "a b.exe".to_owned(), "a b".to_owned()))
        );
        let thread = Identity { process: 8, thread: 16 };
        assert_eq!(one("end-thread 8 0x10"), Ok(Step::EndThread(thread)));
        let wakes = Step::AddDevice(Some(DevicePowerState::D2));
        assert_eq!(one("add-device wakes-from d2"), Ok(wakes));
        assert_eq!(Script::parse("\n # nothing\n").map(|script| script.steps.len()).ok(), Some(0));
    }

    #[test]
    fn an_invalid_step_is_named_with_its_line() {
        for (text, parts) in [
            ("add-device\nwrit \"x\"", ["line 2", "`writ` is not a step (did you mean `write`?)"]),
            ("write \"x", ["line 1", "no closing quotation mark"]),
            ("add-device wakes-from D4", ["line 1", "`D4` is not a power state"]),
            ("write hex:123", ["line 1", "`hex:123` is not a byte string"]),
            ("read many", ["line 1", "`many` is not a number"]),
            (
                "open 1",
                ["line 1", "arguments of `open` are wrong; write `open [synchronous] [PROCESS"],
            ),
            ("ioctl 0x100000000", ["line 1", "not a number, or is too large"]),
            ("start wirte \"x\" as w", ["line 1", "did you mean `write`?"]),
            (
                "start-process 8 x y z",
                ["line 1", "write `start-process PROCESS IMAGE [COMMAND-LINE]`"],
            ),
            ("start read 1", ["line 1", "write `start REQUEST as NAME`"]),
            ("expect STATUS_CANCELED", ["line 1", "`STATUS_CANCELLED`"]),
            ("fault WdfDeviceCrate", ["line 1", "did you mean `WdfDeviceCreate`?"]),
            ("fault EtwWriteEx 0xC0000001 0", ["line 1", "at least once"]),
            ("filter A keepids=1", ["line 1", "did you mean `keep-ids`?"]),
            ("filter A names-level=1", ["line 1", "needs `keep-names`"]),
            ("filter Größe", ["line 1", "non-ASCII"]),
            ("filter A data=1:2", ["line 1", "ID:VERSION:BYTES"]),
            ("parameter P word", ["line 1", "not a registry value"]),
            ("expect-event E Length", ["line 1", "write FIELD=VALUE"]),
            ("\nend", ["line 2", "`end` has no `repeat`"]),
            ("repeat 2\nrepeat 3\nopen\nend", ["line 1", "`repeat` has no `end`"]),
            ("repeat x\nend", ["line 1", "`x` is not a number"]),
            ("repeat 1000\nrepeat 1000\nopen\nend\nend", ["line 5", "more than 100000 steps"]),
            // Quoted control characters cannot affect a terminal.
            ("\u{1b}[2J", ["line 1", r"`\u{1b}[2J` is not a step"]),
        ] {
            let error = Script::parse(text).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn steps_are_repeated() {
        let script =
            Script::parse("repeat 2\nopen\nrepeat 2\nclose\nend\nend\nrepeat 0\nopen\nend");
        let lines: Vec<usize> = script.unwrap().steps.iter().map(|one| one.number).collect();
        assert_eq!(lines, [2, 4, 4, 2, 4, 4]);
    }

    #[test]
    fn a_file_on_the_device_is_opened_by_its_name() {
        let name = r"\channel".to_owned();
        assert_eq!(one(r"open \channel"), Ok(Step::Open(CLIENT, name.clone(), false)));
        let identity = Identity { process: 1, thread: 2 };
        assert_eq!(one(r"open 1 2 \channel"), Ok(Step::Open(identity, name.clone(), false)));
        let step = one(r"open synchronous 1 2 \channel");
        assert_eq!(step, Ok(Step::Open(identity, name, true)));
        assert_eq!(one("open"), Ok(Step::Open(CLIENT, String::new(), false)));
        assert!(one("open channel").is_err());
    }

    #[test]
    fn every_documented_step_is_one() {
        let arguments = |form: &str| {
            form.replace("REQUEST as NAME", "read 1 as r")
                .replace("[synchronous]", "synchronous")
                .replace("[wakes-from STATE]", "wakes-from D1")
                .replace("[PROCESS THREAD] [NAME]", r"1 2 \channel")
                .replace("[PROCESS THREAD]", "1 2")
                .replace("PROCESS IMAGE [COMMAND-LINE]", "8 a.exe")
                .replace("PROCESS", "8")
                .replace("THREAD", "9")
                .replace("[FIELD=VALUE ...]", "F=\"a b\" G=1")
                .replace("[STATUS [TIMES]]", "0xC0000017 3")
                .replace("CODE [BYTES] [LENGTH]", "5 hex:00 8")
                .replace("[SETTING ...]", "level=4 keep-ids=1,2 data=1:0:hex:00")
                .replace("ROUTINE", "EtwRegister")
                .replace("[BYTES]", "\"x\"")
                .replace("BYTES", "\"x\"")
                .replace("VALUE", "5")
                .replace("STATUS", "success")
                .replace("LENGTH", "1")
                .replace("MILLISECONDS", "1")
        };
        for syntax in STEPS {
            if ["repeat", "end"].contains(&syntax.name) {
                continue;
            }
            let text = arguments(syntax.form);
            assert!(one(&text).is_ok(), "{text}: {:?}", one(&text));
            assert!(syntax.form.starts_with(syntax.name));
        }
    }
}
