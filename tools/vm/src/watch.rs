//! Watches a virtual machine until it shuts down or exceeds a limit.

use std::{
    path::{Path, PathBuf},
    process::ExitStatus,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{bugcheck::Bugcheck, error::Result, interrupt, protocol::Message, qemu::Running};

/// The time limits of a virtual machine.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum time without a message.
    pub silence: Duration,
    /// The maximum time until the first message; after that, nothing is assumed to run in the
    /// machine. If `do_writes_count` is true, many disk writes count as a message, because Windows
    /// PE may not have a serial port.
    pub first_message: Option<Duration>,
    /// The maximum time from start to end.
    pub total: Duration,
    /// The maximum time from a non-maskable interrupt to the resulting restart; Windows writes a
    /// crash dump in between.
    pub after_interrupt: Duration,
    /// The maximum number of restarts.
    pub restarts: u32,
    /// True to count disk writes as activity, as during an installation.
    pub do_writes_count: bool,
    /// The time after the start during which a key is pressed every second, until the first
    /// restart.
    pub press_keys: Duration,
}

/// The way in which a virtual machine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The machine shut down.
    PoweredOff,
    /// The machine sent no message for too long, and an interrupt did not restart it.
    Hung {
        /// The time without a message.
        silent: Duration,
    },
    /// The machine never sent a message.
    SaidNothing {
        /// The time limit.
        limit: Duration,
    },
    /// The total time ran out.
    OutOfTime {
        /// The time limit.
        limit: Duration,
    },
    /// The machine restarted more often than allowed.
    RestartLoop {
        /// The allowed number of restarts.
        allowed: u32,
    },
    /// QEMU ended unexpectedly.
    QemuEnded {
        /// QEMU's exit status.
        status: ExitStatus,
        /// QEMU's output.
        output: String,
    },
    /// The host's disk is full, so QEMU could not write to an image.
    HostDiskFull,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PoweredOff => out.write_str("the virtual machine shut down"),
            Self::Hung { silent } => write!(
                out,
                "the virtual machine hung: it sent no message for {} s, and a non-maskable \
                 interrupt did not restart it",
                silent.as_secs()
            ),
            Self::SaidNothing { limit } => {
                write!(out, "nothing started in the virtual machine within {} s", limit.as_secs())
            }
            Self::OutOfTime { limit } => write!(
                out,
                "the virtual machine was not finished after {} min; allow more time with `--timeout`",
                limit.as_secs() / 60
            ),
            Self::RestartLoop { allowed } => {
                write!(
                    out,
                    "the virtual machine restarted more than {allowed} times; it may be in a restart loop"
                )
            }
            Self::QemuEnded { status, output } if output.is_empty() => {
                write!(out, "QEMU ended unexpectedly ({status})")
            }
            Self::QemuEnded { status, output } => {
                write!(out, "QEMU ended unexpectedly ({status}): {output}")
            }
            Self::HostDiskFull => out.write_str(
                "this machine's disk is full, so QEMU cannot write the virtual machine's disks; \
                 free some space and try again",
            ),
        }
    }
}

/// An observation about a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The guest sent a message.
    Message(Message),
    /// The guest restarted.
    Restart,
    /// The guest crashed, with the bugcheck if QEMU knows it.
    Crash(Option<Bugcheck>),
    /// The guest sent no message for this time, or exceeded [`Observer::deadline`].
    Hang(Duration),
}

/// Receives observations about a virtual machine.
pub trait Observer {
    /// Receives an observation.
    fn see(&mut self, seen: &Seen);

    /// Returns the deadline of the guest's current activity.
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// The interval between checks of the machine.
const PAUSE: Duration = Duration::from_millis(50);
/// The interval between key presses.
const PAUSE_OF_KEYS: Duration = Duration::from_secs(1);
/// The interval between checks of the written bytes.
const PAUSE_OF_WRITES: Duration = Duration::from_secs(10);
/// The number of written bytes that proves that an operating system is running: firmware and boot
/// loaders write kilobytes, Setup gigabytes.
const SYSTEM_BYTES: u64 = 256 << 20;
/// The minimum time between two starts.
const MIN_UPTIME: Duration = Duration::from_secs(3);
/// The number of hangs after which the machine is stopped, even if interrupts restart it.
const MAX_HANGS: u32 = 3;

/// Watches a virtual machine until it ends. Saves screenshots of hangs to a folder.
///
/// # Errors
///
/// Fails if the serial log cannot be read, or if the user interrupts the command. In all cases, the
/// QEMU process has ended when this function returns.
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
        // Checks first whether the process has ended, so that everything written before its end is
        // read.
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
            // Firmware that does not read the keyboard yet loses the key press.
            let _ = machine.execute("send-key", &key);
            pressed = now;
        }
        if limits.do_writes_count && now.duration_since(written.0) > PAUSE_OF_WRITES {
            // A machine that has just ended has no counters; the next round detects its end.
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

/// The state of a virtual machine that is being watched.
struct Watched {
    /// The time of the machine's last activity.
    alive: Instant,
    /// The time of the last interrupt, if no activity followed it, and the time without a message
    /// before the interrupt.
    interrupted: Option<(Instant, Duration)>,
    restarts: u32,
    /// The time of the machine's last restart.
    restarted: Option<Instant>,
    hangs: u32,
    has_spoken: bool,
    is_off: bool,
    is_full: bool,
}

impl Watched {
    /// Returns the state of a machine that starts now.
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

    /// Records the number of bytes that the machine has written to its disks since its start;
    /// `before` is the number at the previous check.
    const fn note_writes(&mut self, before: u64, bytes: u64, now: Instant) {
        if bytes != before {
            self.alive = now;
        }
        self.has_spoken |= bytes > SYSTEM_BYTES;
    }

    /// Reads the guest's messages and QEMU's events.
    fn look(&mut self, machine: &mut Running, observer: &mut impl Observer) -> Result<()> {
        let mut seen: Vec<Seen> = Vec::new();
        // The guest's messages precede QEMU's events about the same occurrence, so its lines are
        // read first.
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
                    // A guest that uses several reset methods together is reset several times.
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

    /// Interrupts a machine that has sent no message for too long, and stops it if it stays silent.
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
        // A machine that cannot be interrupted counts as hung.
        let _ = machine.execute("inject-nmi", &json!({}));
        self.interrupted = Some((Instant::now(), silent));
        None
    }
}

/// Takes a screenshot, if QEMU still responds.
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
        // The amount that firmware writes.
        watched.note_writes(0, 1 << 20, later);
        assert!(watched.alive == later && !watched.has_spoken);
        watched.note_writes(1 << 20, 300 << 20, later);
        assert!(watched.has_spoken);
    }
}
