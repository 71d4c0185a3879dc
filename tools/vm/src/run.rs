//! Runs a kit's stages on an overlay of a base image.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    bugcheck::Bugcheck,
    disk,
    error::{Error, Result, file},
    install::Base,
    iso,
    kit::{Contents, Stage},
    protocol::{Message, StageId},
    qemu::{self, Display, Drive, Machine, Settings},
    report::{Outcome, Report, Row},
    watch::{self, Ending, Limits, Observer, Seen},
};

/// The report of a finished run. A later run can replace a folder that contains it.
const REPORT: &str = "report.json";

/// The number of restarts allowed for crashes and hangs, in addition to one per stage.
const MORE_RESTARTS: u32 = 4;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The settings for QEMU.
    pub settings: Settings,
    /// The stages to run.
    pub plan: Vec<Stage>,
    /// The contents of the kit.
    pub contents: Contents,
    /// The folder for the results.
    pub out: PathBuf,
    /// The size of the results disk in bytes.
    pub results: u64,
    /// True to keep the run's disks.
    pub keep: bool,
    /// The maximum time without a message; the default depends on the accelerator.
    pub silence: Option<Duration>,
    /// The time limit for the run; the default is the sum of the stages' time limits plus half an
    /// hour.
    pub total: Option<Duration>,
}

impl Run {
    /// Runs the stages, and copies their results to the host. `examine` adds its findings in the
    /// results folder to the report.
    ///
    /// # Errors
    ///
    /// Fails if the virtual machine cannot be created or started, or its results disk cannot be
    /// read. Failed stages, and machines that end early, appear in the report instead.
    pub fn run(
        &self,
        base: &Base,
        examine: &dyn Fn(&Path, &mut Report),
        tell: &dyn Fn(&str),
    ) -> Result<Report> {
        prepare(&self.out)?;
        let factor = self.settings.accelerator.slowness();
        let files = self.contents.files(&self.plan, factor)?;
        let folder = own_folder(base)?;
        let kit = folder.path().join("kit.iso");
        iso::write(&kit, "WDK_ETW_KIT", &files)?;
        let results = folder.path().join("results.img");
        disk::create(&results, self.results)?;
        let machine = machine(
            &self.settings,
            base,
            folder.path(),
            vec![Drive::Cd(kit), Drive::Raw(results.clone())],
            Display::None,
        )?;
        let slow = self.settings.accelerator.slowness();
        let minutes = |count: u64| Duration::from_secs(count * 60);
        let planned: u32 = self.plan.iter().map(|stage| stage.minutes).sum();
        let limits = Limits {
            // Windows takes minutes to start, and sends no messages until its agent runs.
            silence: self.silence.unwrap_or_else(|| minutes(6) * slow),
            first_message: None,
            total: self.total.unwrap_or_else(|| minutes(u64::from(planned) + 30) * slow),
            after_interrupt: self.silence.unwrap_or_else(|| minutes(5) * slow),
            restarts: u32::try_from(self.plan.len()).unwrap_or(u32::MAX) + MORE_RESTARTS,
            do_writes_count: false,
            press_keys: Duration::ZERO,
        };
        let mut progress = Progress::new(&self.plan, slow, tell);
        let running = machine.start(&self.out.join("serial.log"))?;
        let ending = watch::watch(running, &limits, &self.out, &mut progress)?;
        tell("Copying the results");
        let not_copied = disk::copy_out(&results, &self.out);
        let mut report = progress.report(&ending, &self.out);
        match not_copied {
            Ok(files) => report.notes.extend(
                files.iter().map(|one| format!("{} was not copied: {}", one.path, one.reason)),
            ),
            // The guest can have been stopped during a write; its messages are still known.
            Err(error) => report.notes.push(error.to_string()),
        }
        examine(&self.out, &mut report);
        let path = self.out.join(REPORT);
        fs::write(&path, format!("{:#}\n", report.to_json())).map_err(file("write", &path))?;
        if self.keep {
            let kept = folder.keep();
            report.notes.push(format!("kept the disks in {}", kept.display()));
        }
        Ok(report)
    }
}

/// Starts a virtual machine for manual work, with the kit's files on a CD and without the agent.
/// Returns when the machine is shut down.
///
/// # Errors
///
/// Fails if the virtual machine cannot be created or started, or the user interrupts the command.
pub fn connect(
    base: &Base,
    settings: &Settings,
    contents: Option<&Contents>,
    keep: bool,
    tell: &dyn Fn(&str),
) -> Result<()> {
    let folder = own_folder(base)?;
    let mut drives = Vec::new();
    if let Some(contents) = contents {
        let kit = folder.path().join("kit.iso");
        iso::write(&kit, "WDK_ETW_KIT", &contents.files_by_hand()?)?;
        drives.push(Drive::Cd(kit));
    }
    let has_window = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let display = if has_window { Display::Window } else { Display::Vnc };
    let machine = machine(settings, base, folder.path(), drives, display)?;
    let mut running = machine.start(&folder.path().join("serial.log"))?;
    let place = if display == Display::Vnc {
        let vnc = running.execute("query-vnc", &serde_json::json!({}))?;
        let word = |name: &str| vnc[name].as_str().unwrap_or("?").to_owned();
        format!("VNC on {}:{}", word("host"), word("service"))
    } else {
        "a window".to_owned()
    };
    tell(&format!(
        "The virtual machine is shown in {place}; the user is tester, the password Wdk-etw-1. \
         Shut Windows down or press Ctrl+C to stop."
    ));
    while running.ended().is_none() {
        crate::interrupt::check()?;
        std::thread::sleep(Duration::from_millis(200));
    }
    if keep {
        tell(&format!("Kept the disks in {}", folder.keep().display()));
    }
    Ok(())
}

/// Creates a run's folder next to the base image, because the run's disk is an overlay of that
/// image.
fn own_folder(base: &Base) -> Result<TempDir> {
    TempDir::with_prefix_in("run-", &base.folder).map_err(file("create a folder in", &base.folder))
}

/// Returns a virtual machine whose system disk is an overlay of the base image.
fn machine(
    settings: &Settings,
    base: &Base,
    folder: &Path,
    mut drives: Vec<Drive>,
    display: Display,
) -> Result<Machine> {
    let overlay = folder.join("overlay.qcow2");
    // The overlay has the same size as the base image.
    qemu::create_overlay(&settings.program, &overlay, &base.image)?;
    drives.insert(0, Drive::System(overlay));
    Ok(Machine { settings: settings.clone(), firmware: base.firmware(folder)?, drives, display })
}

/// Creates the results folder, and removes the results of a previous run.
fn prepare(out: &Path) -> Result<()> {
    fs::create_dir_all(out).map_err(file("create", out))?;
    let entries: Vec<PathBuf> = fs::read_dir(out)
        .map_err(file("read", out))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    if entries.is_empty() {
        return Ok(());
    }
    // An interrupted run leaves its log.
    let is_ours = |name: &str| out.join(name).exists();
    if !is_ours(REPORT) && !is_ours("serial.log") {
        return Err(Error::Plan(format!(
            "the folder {} is not empty and does not contain the results of a previous run; \
             choose another with `--out`",
            out.display()
        )));
    }
    for path in entries {
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(file("remove", &path))?;
    }
    Ok(())
}

/// Returns the time after which the host considers a stage hung. Normally, the agent stops the
/// stage before that and reports it. The agent's minutes are longer than the host's, because it
/// counts rounds of 5 seconds and does not count the time of its own commands.
fn limit(minutes: u32) -> Duration {
    /// The time that the agent needs to stop a stage.
    const GRACE: Duration = Duration::from_mins(2);
    let time = Duration::from_secs(u64::from(minutes) * 60);
    time + time / 2 + GRACE
}

/// The state of a stage.
#[derive(Default)]
struct State {
    id: StageId,
    /// The time limit.
    limit: Duration,
    begun: Option<Instant>,
    time: Option<Duration>,
    code: Option<i64>,
    outcome: Option<Outcome>,
    reason: Option<String>,
    /// True if the results disk was full when the stage ended.
    is_full: bool,
}

/// Tracks the progress of the stages.
struct Progress<'a> {
    tell: &'a dyn Fn(&str),
    start: Instant,
    stages: Vec<State>,
    current: Option<usize>,
    is_finished: bool,
    notes: Vec<String>,
}

impl<'a> Progress<'a> {
    fn new(plan: &[Stage], slow: u32, tell: &'a dyn Fn(&str)) -> Self {
        let stages = plan
            .iter()
            .map(|stage| State {
                id: stage.id.clone(),
                limit: limit(stage.minutes) * slow,
                ..State::default()
            })
            .collect();
        Self {
            tell,
            start: Instant::now(),
            stages,
            current: None,
            is_finished: false,
            notes: Vec::new(),
        }
    }

    fn say(&self, text: &str) {
        let time = self.start.elapsed().as_secs();
        (self.tell)(&format!("{:>3}:{:02} {text}", time / 60, time % 60));
    }

    fn find(&self, id: &StageId) -> Option<usize> {
        self.stages.iter().position(|stage| stage.id == *id)
    }

    fn now(&mut self) -> Option<&mut State> {
        self.stages.get_mut(self.current?)
    }

    /// Ends the current stage and sets its outcome, unless the outcome is already known.
    fn settle(&mut self, outcome: Outcome, reason: Option<String>) {
        if let Some(stage) = self.now() {
            stage.time = stage.begun.map(|begun| begun.elapsed());
            if stage.outcome.is_none() {
                stage.outcome = Some(outcome);
                stage.reason = reason;
            }
        }
    }

    fn message(&mut self, message: &Message) {
        match message {
            Message::Boot => self.say("Windows has started"),
            Message::Begin(id) => {
                self.say(&format!("{} ({})", id.stage, id.leg));
                self.current = self.find(id);
                if let Some(stage) = self.now() {
                    stage.begun = Some(Instant::now());
                }
            }
            Message::End(id, code) => {
                if let Some(stage) = self.find(id).and_then(|found| self.stages.get_mut(found)) {
                    stage.code = Some(*code);
                    stage.time = stage.begun.map(|begun| begun.elapsed());
                }
                self.current = None;
            }
            Message::TimedOut(id) => {
                self.current = self.find(id);
                let limit = self.now().map_or(0, |stage| stage.limit.as_secs() / 60);
                self.settle(
                    Outcome::TimedOut,
                    Some(format!("it exceeded its time limit of {limit} min")),
                );
                self.current = None;
            }
            Message::Lost(id) => {
                self.current = self.find(id);
                let reason = "Windows restarted while it ran".to_owned();
                self.settle(Outcome::Restarted, Some(reason));
                self.current = None;
            }
            Message::Full => {
                // The stage has ended or is about to end.
                let last = self.stages.iter_mut().rev().find(|stage| stage.begun.is_some());
                if let Some(stage) = last {
                    stage.is_full = true;
                }
                self.say("the results disk is full");
            }
            Message::Error(text) => {
                self.say(&format!("error: {text}"));
                self.notes.push(format!("Windows reported: {text}"));
            }
            Message::Finished => self.is_finished = true,
            Message::Reboot => self.say("restarting at a stage's request"),
            Message::Dump(text) => self.say(&format!("crash dump copied: {text}")),
            Message::Alive | Message::Setup(_) | Message::Installed(_) => {}
        }
    }

    /// Returns the report, including the results that the stages stored in a folder.
    fn report(self, ending: &Ending, out: &Path) -> Report {
        let is_off = *ending == Ending::PoweredOff;
        let ended_early = match (is_off, self.is_finished) {
            (true, true) => None,
            (true, false) => Some("the machine shut down before its plan was complete".to_owned()),
            (false, _) => Some(ending.to_string()),
        };
        let mut notes = self.notes;
        let mut rows = Vec::new();
        for stage in self.stages {
            let folder = out.join(&stage.id.leg).join(&stage.id.stage);
            let (outcome, mut reason) = stage.outcome.map_or_else(
                || judge(&stage, &folder, ended_early.as_deref()),
                |outcome| (outcome, stage.reason.clone()),
            );
            let (outcome, dump) = with_dump(outcome, &folder, &mut notes);
            if let Some(dump) = dump {
                reason = Some(match (outcome, reason) {
                    // QEMU and the dump report the same bugcheck, or only the dump reports it.
                    (Outcome::Bugcheck, _) | (_, None) => dump,
                    (_, Some(reason)) => format!("{reason}; its dump: {dump}"),
                });
            }
            rows.push(Row { id: stage.id, outcome, time: stage.time, reason });
        }
        Report { rows, ended_early, notes }
    }
}

impl Observer for Progress<'_> {
    fn see(&mut self, seen: &Seen) {
        match seen {
            Seen::Message(message) => self.message(message),
            Seen::Restart => {}
            Seen::Crash(bugcheck) => {
                let text = bugcheck.map_or_else(
                    || "the guest crashed".to_owned(),
                    |bugcheck| bugcheck.to_string(),
                );
                self.say(&text);
                if self.current.is_none() {
                    self.notes.push(format!("between stages: {text}"));
                }
                self.settle(Outcome::Bugcheck, Some(text));
            }
            Seen::Hang(silent) => {
                let text =
                    format!("the machine hung; its last message was {} s ago", silent.as_secs());
                self.say(&text);
                if self.current.is_none() {
                    self.notes.push(format!("between stages: {text}"));
                }
                self.settle(Outcome::Hung, Some(text));
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let stage = self.stages.get(self.current?)?;
        // A hung stage has already been interrupted.
        if stage.outcome.is_some() {
            return None;
        }
        Some(stage.begun? + stage.limit)
    }
}

/// Determines a stage's outcome from its exit code and result file.
fn judge(stage: &State, folder: &Path, ended_early: Option<&str>) -> (Outcome, Option<String>) {
    /// The exit code that requests a restart before the next stage.
    const RESTART: i64 = 3010;
    let Some(code) = stage.code else {
        return if stage.begun.is_some() {
            let reason = ended_early.unwrap_or("the run ended during this stage");
            (Outcome::Unfinished, Some(reason.to_owned()))
        } else {
            (Outcome::NotRun, None)
        };
    };
    let full = if stage.is_full { "the results disk is full; " } else { "" };
    let failed = |reason: String| (Outcome::Failed, Some(format!("{full}{reason}")));
    let path = folder.join("result.json");
    let Ok(bytes) = fs::read(&path) else {
        return failed(format!("it left no result.json (exit code {code})"));
    };
    // PowerShell 5.1 starts UTF-8 files with a byte order mark.
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    let result: Value = match serde_json::from_slice(text) {
        Ok(result) => result,
        Err(error) => return failed(format!("its result.json cannot be read: {error}")),
    };
    let reason = result["reason"].as_str().map(str::to_owned);
    match (result["status"].as_str(), code) {
        (Some("passed" | "differs" | "skipped"), 0 | RESTART) if stage.is_full => failed(
            "the stage passed, but its files may be incomplete; make the disk larger with `--results`"
                .to_owned(),
        ),
        (Some("passed"), 0 | RESTART) => (Outcome::Passed, reason),
        (Some("differs"), 0 | RESTART) => (Outcome::Differs, reason),
        (Some("skipped"), 0 | RESTART) => (Outcome::Skipped, reason),
        (Some("failed"), _) => failed(reason.unwrap_or_else(|| failed_checks(&result))),
        (Some(status), _) => failed(format!(
            "its exit code is {code}, but the status in its result.json is {status}"
        )),
        (None, _) => failed("its result.json has no status".to_owned()),
    }
}

/// Describes the failed checks in a sentence.
fn failed_checks(result: &Value) -> String {
    let checks = result["checks"].as_array().cloned().unwrap_or_default();
    let failed: Vec<String> = checks
        .iter()
        .filter(|check| check["passed"] == false)
        .map(|check| {
            let text = |name: &str| {
                check[name].as_str().map_or_else(|| check[name].to_string(), str::to_owned)
            };
            format!("{}: expected {}, got {}", text("name"), text("expected"), text("got"))
        })
        .collect();
    match failed.as_slice() {
        [] => "it failed without giving a reason".to_owned(),
        [first] => first.clone(),
        [first, rest @ ..] => format!("{first} (and {} more checks)", rest.len()),
    }
}

/// Reads the crash dump that a stage left, if any.
fn with_dump(
    outcome: Outcome,
    folder: &Path,
    notes: &mut Vec<String>,
) -> (Outcome, Option<String>) {
    let path = folder.join("MEMORY.DMP");
    if !path.exists() {
        return (outcome, None);
    }
    match Bugcheck::of_dump(&path) {
        Ok(Some(bugcheck)) => {
            let outcome = if outcome == Outcome::Restarted { Outcome::Bugcheck } else { outcome };
            (outcome, Some(bugcheck.to_string()))
        }
        Ok(None) => {
            notes
                .push(format!("{} is not a complete crash dump of 64-bit Windows", path.display()));
            (outcome, None)
        }
        Err(error) => {
            notes.push(format!("cannot read {}: {error}", path.display()));
            (outcome, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_ends_a_stage_before_the_host_does() {
        // On a slow machine, a round of the agent takes 5 seconds plus the time of its commands.
        let round = Duration::from_secs(7);
        for minutes in [10, 20, 90] {
            let agent = round * 12 * minutes;
            assert!(limit(minutes) > agent + Duration::from_mins(1), "{minutes}");
        }
        assert_eq!(limit(20), Duration::from_mins(32));
    }
}
