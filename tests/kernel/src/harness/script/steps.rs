//! The steps of a script and their parser.

use std::time::Duration;

use etl_file::show::Escaped;

use super::error::{Problem, ScriptError};
use crate::{execution::identity::Identity, ground::status::NtStatus};

/// A parsed script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub(super) steps: Vec<(usize, Step)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
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

impl Script {
    /// Returns the script for an unknown driver: it adds a device, power-cycles it and
    /// removes it.
    #[must_use]
    pub fn life_of_a_device() -> Self {
        let steps = [Step::AddDevice, Step::PowerCycle, Step::Remove];
        Self {
            steps: steps.into_iter().enumerate().collect(),
        }
    }

    /// Parses a script.
    ///
    /// # Errors
    ///
    /// Returns the [`ScriptError`] of the first line that is not a valid step.
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
}

impl Step {
    /// Returns whether every client runs the step, and not only the first one.
    pub const fn is_every_clients(&self) -> bool {
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

    /// Returns a client's variant of the step, with a thread id of its own.
    pub fn of_client(self, client: u32) -> Self {
        match self {
            Self::Open(identity) => Self::Open(Identity {
                process: identity.process,
                thread: identity.thread + 4 * (client - 1),
            }),
            other => other,
        }
    }
}

/// Splits a line into words; a string in double quotes is one word.
fn words(line: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let end = if let Some(text) = rest.strip_prefix('"') {
            text.find('"')
                .map(|end| end + 2)
                .ok_or_else(|| "a string has no closing quotation mark".to_owned())?
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
        .ok_or_else(|| format!("`{word}` is not a number, or is too large here"))
}

fn bytes(word: &str) -> Result<Vec<u8>, String> {
    if let Some(text) = word
        .strip_prefix('"')
        .and_then(|word| word.strip_suffix('"'))
    {
        return Ok(text.as_bytes().to_vec());
    }
    let refuse = || format!("`{word}` is not a byte string; write \"text\" or hex:0123AB");
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

/// The steps' names for error messages.
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
                "`{first}` is not a step, or its arguments are wrong; the steps are {STEPS}"
            ));
        }
        [] => return Err("the line has no step".to_owned()),
    })
}

fn status_of(word: &str) -> Result<NtStatus, String> {
    if word == "success" {
        return Ok(NtStatus::SUCCESS);
    }
    number::<u32>(word).map(|bits| NtStatus(bits.cast_signed()))
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
    fn an_invalid_step_is_named_with_its_line() {
        for (text, parts) in [
            ("add-device\nwrit \"x\"", ["line 2", "`writ` is not a step"]),
            ("write \"x", ["line 1", "no closing quotation mark"]),
            (
                "write hex:123",
                ["line 1", "`hex:123` is not a byte string"],
            ),
            ("read many", ["line 1", "`many` is not a number"]),
            (
                "open 1",
                ["line 1", "`open` is not a step, or its arguments are wrong"],
            ),
            (
                "ioctl 0x100000000",
                ["line 1", "not a number, or is too large"],
            ),
            // Quoted control characters cannot affect a terminal.
            ("\u{1b}[2J", ["line 1", r"`\u{1b}[2J` is not a step"]),
        ] {
            let error = Script::parse(text).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
}
