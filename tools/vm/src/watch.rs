//! Watches a machine until it turns itself off or a limit ends it.

use std::{
    path::{Path, PathBuf},
    process::ExitStatus,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{bugcheck::Bugcheck, error::Result, interrupt, protocol::Message, qemu::Running};

/// How long a machine may do what.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Without a message.
    pub silence: Duration,
    /// Without any message, if there is such a limit: nothing runs in the machine. A machine that writes much
    /// counts as one that has spoken if writing counts, as Windows PE may have no serial port.
    pub first_message: Option<Duration>,
    /// From its start to its end.
    pub total: Duration,
    /// From a non-maskable interrupt to the restart that it causes: a crash dump is written.
    pub after_interrupt: Duration,
    /// The restarts that are allowed.
    pub restarts: u32,
    /// Whether writing to a disk breaks the silence, as it does during an installation.
    pub do_writes_count: bool,
    /// How long a key is pressed each second, from the start to the first restart.
    pub press_keys: Duration,
}

/// How a machine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It turned itself off.
    PoweredOff,
    /// It was silent for too long, and an interrupt did not restart it.
    Hung {
        /// The length of the silence.
        silent: Duration,
    },
    /// It never said anything.
    SaidNothing {
        /// The limit.
        limit: Duration,
    },
    /// The total time ran out.
    OutOfTime {
        /// The limit.
        limit: Duration,
    },
    /// It restarted more often than allowed.
    RestartLoop {
        /// The allowed restarts.
        allowed: u32,
    },
    /// QEMU ended without being asked.
    QemuEnded {
        /// How.
        status: ExitStatus,
        /// What it wrote.
        output: String,
    },
    /// The host's disk is full: QEMU could not write to an image.
    HostDiskFull,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PoweredOff => out.write_str("the machine turned itself off"),
            Self::Hung { silent } => write!(
                out,
                "the machine hung: it said nothing for {} s, and a non-maskable interrupt did not \
                 restart it",
                silent.as_secs()
            ),
            Self::SaidNothing { limit } => write!(
                out,
                "nothing started in the machine in {} s",
                limit.as_secs()
            ),
            Self::OutOfTime { limit } => write!(
                out,
                "the machine was not done after {} min; `--timeout` allows more",
                limit.as_secs() / 60
            ),
            Self::RestartLoop { allowed } => {
                write!(out, "the machine restarted more than {allowed} times, as in a loop")
            }
            Self::QemuEnded { status, output } if output.is_empty() => {
                write!(out, "QEMU ended unexpectedly ({status})")
            }
            Self::QemuEnded { status, output } => {
                write!(out, "QEMU ended unexpectedly ({status}): {output}")
            }
            Self::HostDiskFull => out.write_str(
                "the disk of this machine is full, so that QEMU cannot write the virtual machine's; \
                 free some space and start again",
            ),
        }
    }
}

/// Something that happened in a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The guest said something.
    Message(Message),
    /// The guest restarted.
    Restart,
    /// The guest crashed; QEMU may know the bugcheck.
    Crash(Option<Bugcheck>),
    /// The guest was silent for so long, or exceeded [`Observer::deadline`].
    Hang(Duration),
}

/// Learns what happens in a machine.
pub trait Observer {
    /// Something happened.
    fn see(&mut self, seen: &Seen);

    /// Returns when what the guest does now must be over.
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// The pause between two looks at the machine.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause between two keys.
const PAUSE_OF_KEYS: Duration = Duration::from_secs(1);
/// The pause between two looks at what it has written.
const PAUSE_OF_WRITES: Duration = Duration::from_secs(10);
/// What a machine writes to its disks only if a system runs in it: firmware and boot loaders write
/// kilobytes, Setup gigabytes.
const SYSTEM_BYTES: u64 = 256 << 20;
/// The shortest time from a start to the next.
const MIN_UPTIME: Duration = Duration::from_secs(3);
/// The hangs after which a machine that an interrupt restarts is ended.
const MAX_HANGS: u32 = 3;

/// Watches a machine to its end. Screenshots of hangs go to a folder.
///
/// # Errors
///
/// Fails if the serial log cannot be read, or the user interrupts. QEMU's process has ended when
/// this returns.
pub fn watch(
    mut machine: Running,
    limits: &Limits,
    screenshots: &Path,
    observer: &mut impl Observer,
) -> Result<Ending> {
    let start = Instant::now();
    let mut watched = Watched::new(start);
    let mut written = (start, 0);
    let mut pressed = start;
    loop {
        interrupt::check()?;
        // The end is looked for first: what comes before it is then read to its end.
        let ended = machine.ended();
        watched.look(&mut machine, observer)?;
        if let Some(status) = ended {
            return Ok(if watched.is_off {
                Ending::PoweredOff
            } else {
                let output = machine.output();
                Ending::QemuEnded { status, output }
            });
        }
        let now = Instant::now();
        let ending = if watched.is_full {
            Some(Ending::HostDiskFull)
        } else if watched.restarts > limits.restarts {
            let allowed = limits.restarts;
            Some(Ending::RestartLoop { allowed })
        } else if now.duration_since(start) > limits.total {
            let limit = limits.total;
            Some(Ending::OutOfTime { limit })
        } else {
            limits
                .first_message
                .filter(|limit| !watched.has_spoken && now.duration_since(start) > *limit)
                .map(|limit| Ending::SaidNothing { limit })
        };
        if let Some(ending) = ending {
            screenshot(&mut machine, screenshots, "end");
            let _ = machine.quit();
            return Ok(ending);
        }
        let is_first_start = watched.restarts == 0 && now.duration_since(start) < limits.press_keys;
        if is_first_start && now.duration_since(pressed) > PAUSE_OF_KEYS {
            let key = json!({ "keys": [{ "type": "qcode", "data": "ret" }] });
            // Firmware that does not listen yet loses the key.
            let _ = machine.execute("send-key", &key);
            pressed = now;
        }
        if limits.do_writes_count && now.duration_since(written.0) > PAUSE_OF_WRITES {
            // A machine that has just ended has no counts; the next round sees that.
            let bytes = machine.written().unwrap_or(written.1);
            watched.note_writes(written.1, bytes, now);
            written = (now, bytes);
        }
        if let Some(ending) = watched.check_silence(&mut machine, limits, screenshots, observer) {
            let _ = machine.quit();
            return Ok(ending);
        }
        thread::sleep(PAUSE);
    }
}

/// What is known of a machine that is watched.
struct Watched {
    /// When it last did something.
    alive: Instant,
    /// When it was interrupted, if it has not done anything since, and its silence before.
    interrupted: Option<(Instant, Duration)>,
    restarts: u32,
    /// When it restarted last.
    restarted: Option<Instant>,
    hangs: u32,
    has_spoken: bool,
    is_off: bool,
    is_full: bool,
}

impl Watched {
    /// Returns what is known of a machine that starts now.
    const fn new(now: Instant) -> Self {
        Self {
            alive: now,
            interrupted: None,
            restarts: 0,
            restarted: None,
            hangs: 0,
            has_spoken: false,
            is_off: false,
            is_full: false,
        }
    }

    /// Notes that the machine has written so many bytes to its disks since its start, `before` at the last
    /// look.
    const fn note_writes(&mut self, before: u64, bytes: u64, now: Instant) {
        if bytes != before {
            self.alive = now;
        }
        self.has_spoken |= bytes > SYSTEM_BYTES;
    }

    /// Reads what the machine and QEMU have said.
    fn look(&mut self, machine: &mut Running, observer: &mut impl Observer) -> Result<()> {
        let mut seen: Vec<Seen> = Vec::new();
        // The guest said what it did before QEMU's event about it, so its lines are read first.
        let mut events = Vec::new();
        while let Some(event) = machine.event() {
            events.push(event);
        }
        for line in machine.lines()? {
            seen.extend(Message::read(&line).map(Seen::Message));
        }
        for event in events {
            match event.name.as_str() {
                "RESET" if event.data["guest"] == true => {
                    // A guest that tries several ways at once is reset several times.
                    let now = Instant::now();
                    let is_another =
                        self.restarted.is_none_or(|last| now.duration_since(last) > MIN_UPTIME);
                    if is_another {
                        self.restarts = self.restarts.saturating_add(1);
                        seen.push(Seen::Restart);
                    }
                    self.restarted = Some(now);
                }
                "GUEST_PANICKED" => seen.push(Seen::Crash(Bugcheck::of_event(&event.data))),
                "SHUTDOWN" if event.data["guest"] == true => self.is_off = true,
                "BLOCK_IO_ERROR" if event.data["nospace"] == true => self.is_full = true,
                _ => {}
            }
        }
        for one in &seen {
            self.has_spoken |= matches!(one, Seen::Message(_));
            observer.see(one);
        }
        if !seen.is_empty() {
            self.alive = Instant::now();
            self.interrupted = None;
        }
        Ok(())
    }

    /// Interrupts a machine that is silent for too long, and ends one that stays silent.
    fn check_silence(
        &mut self,
        machine: &mut Running,
        limits: &Limits,
        screenshots: &Path,
        observer: &mut impl Observer,
    ) -> Option<Ending> {
        let now = Instant::now();
        let silent = now.duration_since(self.alive);
        if let Some((since, silent)) = self.interrupted {
            let is_over = now.duration_since(since) > limits.after_interrupt;
            return is_over.then_some(Ending::Hung { silent });
        }
        let is_late = observer.deadline().is_some_and(|deadline| now > deadline);
        if silent <= limits.silence && !is_late {
            return None;
        }
        self.hangs = self.hangs.saturating_add(1);
        screenshot(machine, screenshots, &format!("hang-{}", self.hangs));
        observer.see(&Seen::Hang(silent));
        if self.hangs > MAX_HANGS {
            return Some(Ending::Hung { silent });
        }
        // A machine that cannot be interrupted stays silent.
        let _ = machine.execute("inject-nmi", &json!({}));
        self.interrupted = Some((Instant::now(), silent));
        None
    }
}

/// Takes a screenshot, if the machine can still be seen.
fn screenshot(machine: &mut Running, folder: &Path, name: &str) {
    let path: PathBuf = folder.join(format!("{name}.png"));
    if let Err(error) = machine.screenshot(&path) {
        eprintln!("note: no screenshot was taken: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_writes_much_counts_as_one_that_has_spoken() {
        let start = Instant::now();
        let mut watched = Watched::new(start);
        let later = start + Duration::from_secs(10);
        watched.note_writes(0, 0, later);
        assert!(watched.alive == start && !watched.has_spoken);
        // What firmware writes.
        watched.note_writes(0, 1 << 20, later);
        assert!(watched.alive == later && !watched.has_spoken);
        watched.note_writes(1 << 20, 300 << 20, later);
        assert!(watched.has_spoken);
    }
}
