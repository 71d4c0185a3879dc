//! The messages with which a guest reports progress on its first serial port.
//!
//! A line is a prefix, a word and the word's arguments. Firmware and boot loaders write to the same
//! port, including escape codes, so the prefix can be anywhere in a line.

/// The prefix of each message on the serial port.
pub const PREFIX: &str = "wdk-etw: ";

/// A stage in a leg of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StageId {
    /// The leg: `plain`, or `verifier` for the leg under Driver Verifier.
    pub leg: String,
    /// The stage's name.
    pub stage: String,
}

/// A message from a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Setup or the first logon has reached a step.
    Setup(String),
    /// Windows is installed and prepared; the machine is about to shut down.
    Installed(String),
    /// The agent has started after a boot.
    Boot,
    /// The agent is waiting for a stage; the number counts its rounds.
    Alive,
    /// A stage has started.
    Begin(StageId),
    /// A stage's script has ended with this exit code.
    End(StageId, i64),
    /// The agent stopped a stage that exceeded its time limit.
    TimedOut(StageId),
    /// The machine restarted during a stage that had not requested a restart.
    Lost(StageId),
    /// The machine is restarting at a stage's request.
    Reboot,
    /// The agent copied a crash dump to the results disk.
    Dump(String),
    /// The results disk is full.
    Full,
    /// The agent cannot continue, for this reason.
    Error(String),
    /// All stages have ended; the machine is about to shut down.
    Finished,
}

impl Message {
    /// Parses a line from the serial port. Returns `None` for a line without a message.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let (_, text) = line.split_once(PREFIX)?;
        let text = text.trim_end_matches(|last: char| last.is_whitespace() || last.is_control());
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        let mut words = rest.split_whitespace();
        let mut stage = || {
            let leg = words.next()?.to_owned();
            let stage = words.next()?.to_owned();
            Some(StageId { leg, stage })
        };
        Some(match word {
            "setup" => Self::Setup(rest.to_owned()),
            "installed" => Self::Installed(rest.to_owned()),
            "boot" => Self::Boot,
            "alive" => Self::Alive,
            "begin" => Self::Begin(stage()?),
            "end" => {
                let id = stage()?;
                Self::End(id, words.next()?.parse().ok()?)
            }
            "timeout" => Self::TimedOut(stage()?),
            "lost" => Self::Lost(stage()?),
            "reboot" => Self::Reboot,
            "dump" => Self::Dump(rest.to_owned()),
            "full" => Self::Full,
            "error" => Self::Error(rest.to_owned()),
            "finished" => Self::Finished,
            _ => return None,
        })
    }
}

/// Splits incoming text into lines.
#[derive(Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    /// Adds bytes, and returns the lines that are now complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        self.pending.extend_from_slice(bytes);
        let mut lines = Vec::new();
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(leg: &str, stage: &str) -> StageId {
        StageId { leg: leg.to_owned(), stage: stage.to_owned() }
    }

    #[test]
    fn messages_are_found_by_their_prefix() {
        let cases = [
            ("wdk-etw: begin plain install", Message::Begin(id("plain", "install"))),
            // OVMF's escape codes precede the message, and the agent's line ends in Windows style.
            (
                "\u{1b}[2J\u{1b}[01;01Hwdk-etw: end verifier install 3010\r",
                Message::End(id("verifier", "install"), 3010),
            ),
            (
                "wdk-etw: end plain probe -1073741819",
                Message::End(id("plain", "probe"), -1_073_741_819),
            ),
            ("wdk-etw: alive 17 ", Message::Alive),
            ("wdk-etw: boot", Message::Boot),
            ("wdk-etw: lost plain probe", Message::Lost(id("plain", "probe"))),
            ("wdk-etw: timeout plain probe", Message::TimedOut(id("plain", "probe"))),
            (
                "wdk-etw: error no disk has the tag",
                Message::Error("no disk has the tag".to_owned()),
            ),
            ("wdk-etw: dump MEMORY.DMP", Message::Dump("MEMORY.DMP".to_owned())),
            ("wdk-etw: finished", Message::Finished),
        ];
        for (line, message) in cases {
            assert_eq!(Message::read(line), Some(message), "{line}");
        }
        for line in [
            "", "begin plain install", "wdk-etw: begin plain", "wdk-etw: end plain install",
            "wdk-etw: end plain install x", "wdk-etw: other", "BdsDxe: loading Boot0001",
        ] {
            assert_eq!(Message::read(line), None, "{line}");
        }
    }

    #[test]
    fn lines_may_arrive_in_parts() {
        let mut lines = Lines::default();
        assert!(lines.push(b"wdk-etw: bo").is_empty());
        assert_eq!(lines.push(b"ot\r\n\xff\nrest"), ["wdk-etw: boot", "\u{fffd}"]);
        assert_eq!(lines.push(b"\n"), ["rest"]);
    }
}
