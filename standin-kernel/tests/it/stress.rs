//! Changes sessions, levels, keywords, groups, requests, time and loading in a random order that a
//! seed determines, and compares the sessions' events with a model.
//!
//! One session records all events, including those that the other sessions record. Between two
//! steps, a request with a special code marks the position in the trace. `WDK_ETW_SEEDS` sets the
//! number of seeds.

use crate::common::{self, CLIENT};
use std::{collections::BTreeMap, ops::Range};

use etl_file::Trace;
use etw_sample_interface::{IOCTL_ECHO, IOCTL_ECHO_IN_DPC, IOCTL_SET_TIMER, PROVIDER_GROUP};
use standin_kernel::{
    Device, Driver, EnableParameters, File, Kernel, SessionConfig, SessionHandle, Target,
};

/// The number of steps in a run.
const STEPS: u32 = 60;
/// The control code of the first marker.
const MARKER: u32 = 0x0022_2000 + 0x0100_0000;

/// A session's enable info for the provider, directly and through its group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct EnableInfo {
    direct: Option<(u8, u64, u64)>,
    group: Option<(u8, u64, u64)>,
    disallowed: bool,
}

impl EnableInfo {
    /// Returns whether the session enables an event (R-E8, R-O3, R-K3, R-G3). Does not use the
    /// kernel's code.
    fn passes(&self, level: u8, keyword: u64) -> bool {
        let group = if self.disallowed { None } else { self.group };
        [self.direct, group].into_iter().flatten().any(|(to, any, all)| {
            let level_passes = level == 0 || to == 0 || level <= to;
            let any_passes = any == 0 || keyword & any != 0;
            level_passes && (keyword == 0 || (any_passes && keyword & all == all))
        })
    }
}

/// The model of a session: its enable infos, and the step from which each applies.
struct Known {
    handle: SessionHandle,
    infos: Vec<(u32, EnableInfo)>,
    /// The step that stopped the session.
    until: u32,
}

#[derive(Default)]
struct InUse {
    driver: Option<Driver>,
    device: Option<Device>,
    file: Option<File>,
}

struct Run {
    random: fastrand::Rng,
    kernel: Kernel,
    folder: tempfile::TempDir,
    everything: SessionHandle,
    running: BTreeMap<u32, Known>,
    stopped: Vec<(Known, std::path::PathBuf)>,
    in_use: InUse,
    step: u32,
}

fn provider() -> Target {
    Target::Provider(etw_scenarios::provider())
}

fn group() -> Target {
    Target::Group(PROVIDER_GROUP.parse().unwrap())
}

impl Run {
    fn new(seed: u64) -> Self {
        let kernel = Kernel::new();
        let folder = tempfile::tempdir().unwrap();
        let config = SessionConfig::to_file("everything", folder.path().join("everything.etl"));
        let everything = kernel.start_session(config).unwrap();
        let all = EnableParameters { level: 255, ..EnableParameters::default() };
        kernel.enable(everything, provider(), all).unwrap();
        Self {
            random: fastrand::Rng::with_seed(seed),
            kernel,
            folder,
            everything,
            running: BTreeMap::new(),
            stopped: Vec::new(),
            in_use: InUse::default(),
            step: 0,
        }
    }

    /// Marks the position in the trace between two steps, if the device is open.
    fn mark(&self) {
        if let Some(file) = &self.in_use.file {
            file.device_control(MARKER + 4 * self.step, &[], 0).unwrap();
        }
    }

    fn parameters(&mut self) -> (u8, u64, u64) {
        let level = *self.random.choice(&[0, 1, 3, 4, 5, 255]).unwrap();
        let any = *self.random.choice(&[0, 1, 2, 4, 8, 9, 15]).unwrap();
        let all = *self.random.choice(&[0, 0, 0, 1, 2, 3]).unwrap();
        (level, any, all)
    }

    fn pick(&mut self) -> Option<u32> {
        let keys: Vec<_> = self.running.keys().copied().collect();
        self.random.choice(keys)
    }

    /// Changes a session's enable info, in the model and in the kernel.
    fn set_enable_info(
        &mut self,
        session: u32,
        change: impl FnOnce(&mut EnableInfo),
    ) -> SessionHandle {
        let step = self.step;
        let known = self.running.get_mut(&session).unwrap();
        let mut infos = known.infos.last().unwrap().1;
        change(&mut infos);
        known.infos.push((step, infos));
        known.handle
    }

    fn enable(&mut self, session: u32, target: Target) {
        let wanted @ (level, match_any, match_all) = self.parameters();
        let handle = self.set_enable_info(session, |infos| match target {
            Target::Provider(_) => infos.direct = Some(wanted),
            Target::Group(_) => infos.group = Some(wanted),
        });
        let parameters =
            EnableParameters { level, match_any, match_all, ..EnableParameters::default() };
        self.kernel.enable(handle, target, parameters).unwrap();
    }

    fn control(&mut self) {
        let some = self.pick();
        match (self.random.u8(..9), some) {
            (0, _) if self.running.len() < 6 => {
                let name = format!("session {}", self.step);
                let file = self.folder.path().join(format!("{name}.etl"));
                let config = SessionConfig::to_file(name, file);
                let known = Known {
                    handle: self.kernel.start_session(config).unwrap(),
                    infos: vec![(self.step, EnableInfo::default())],
                    until: u32::MAX,
                };
                self.running.insert(self.step, known);
            }
            (1..=2, Some(session)) => self.enable(session, provider()),
            (3, Some(session)) => self.enable(session, group()),
            (4, Some(session)) => {
                let handle = self.set_enable_info(session, |infos| infos.direct = None);
                self.kernel.disable(handle, provider(), None).unwrap();
            }
            (5, Some(session)) => {
                let handle = self.set_enable_info(session, |infos| infos.group = None);
                self.kernel.disable(handle, group(), None).unwrap();
            }
            (6, Some(session)) => {
                let disallowed = self.random.bool();
                let handle = self.set_enable_info(session, |infos| infos.disallowed = disallowed);
                let list = if disallowed { vec![etw_scenarios::provider()] } else { Vec::new() };
                self.kernel.set_disallow_list(handle, list).unwrap();
            }
            (7, Some(session)) => {
                let handle = self.running[&session].handle;
                self.kernel.capture_state(handle, provider(), None).unwrap();
            }
            (8, Some(session)) => self.stop(session),
            _ => {}
        }
    }

    fn stop(&mut self, session: u32) {
        let mut known = self.running.remove(&session).unwrap();
        known.until = self.step;
        let report = self.kernel.stop_session(known.handle).unwrap();
        assert_eq!(report.events_lost, 0);
        self.stopped.push((known, report.file));
    }

    fn use_driver(&mut self) {
        let in_use = &mut self.in_use;
        let Some(driver) = &in_use.driver else {
            in_use.driver = Some(self.kernel.load(&common::sample()).unwrap());
            return;
        };
        let Some(device) = &in_use.device else {
            in_use.device = Some(driver.add_device().unwrap());
            return;
        };
        let Some(file) = &in_use.file else {
            in_use.file = Some(device.open(CLIENT).unwrap());
            return;
        };
        let bytes = vec![7; self.random.usize(1..40)];
        match self.random.u8(..9) {
            0 => drop(file.write(&bytes).unwrap()),
            1 => drop(file.read(20).unwrap()),
            2 => drop(file.device_control(IOCTL_ECHO, &bytes, 40).unwrap()),
            3 => drop(file.device_control(IOCTL_ECHO_IN_DPC, &bytes, 40).unwrap()),
            4 => {
                let run = [self.random.u8(..2), 0, 0, 0];
                file.device_control(IOCTL_SET_TIMER, &run, 0).unwrap();
            }
            5 => self.kernel.advance(std::time::Duration::from_millis(25)).unwrap(),
            6 => device.power_cycle().unwrap(),
            7 => in_use.file.take().unwrap().close().unwrap(),
            _ => self.put_down(),
        }
    }

    /// Closes the file, removes the device and unloads the driver, if they exist.
    fn put_down(&mut self) {
        if let Some(file) = self.in_use.file.take() {
            file.close().unwrap();
        }
        if let Some(device) = self.in_use.device.take() {
            device.remove().unwrap();
        }
        if let Some(driver) = self.in_use.driver.take() {
            driver.unload().unwrap();
        }
    }

    fn go(mut self) {
        while self.step < STEPS {
            self.step += 1;
            self.mark();
            if self.random.u8(..3) == 0 {
                self.control();
            } else {
                self.use_driver();
            }
        }
        self.step += 1;
        self.mark();
        self.put_down();
        self.step += 1;
        let sessions: Vec<_> = self.running.keys().copied().collect();
        for session in sessions {
            self.stop(session);
        }
        let statistics = self.kernel.statistics();
        assert_eq!(statistics.allocations, statistics.frees);
        assert_eq!(statistics.registrations, 0);
        let report = self.kernel.stop_session(self.everything).unwrap();
        let all = Trace::open(&report.file).unwrap();
        let all = events(&all);
        assert!(all.is_sorted_by_key(|event| event.time));
        let steps = steps(&all);
        for (known, file) in &self.stopped {
            compare(&all, &steps, known, &events(&Trace::open(file).unwrap()));
        }
    }
}

/// The values that identify an event.
#[derive(Clone, Debug, PartialEq)]
struct Recorded {
    time: i64,
    level: u8,
    keyword: u64,
    payload: Vec<u8>,
}

fn events(trace: &Trace) -> Vec<Recorded> {
    assert_eq!(trace.damages(), []);
    trace
        .events()
        .map(|event| Recorded {
            time: event.record.timestamp,
            level: event.record.descriptor.level,
            keyword: event.record.descriptor.keyword,
            payload: event.record.user_data.clone(),
        })
        .collect()
}

/// Returns the range of steps to which each event may belong: from the last marker before the event
/// to the first marker after it.
fn steps(all: &[Recorded]) -> Vec<Range<u32>> {
    let marker = |event: &Recorded| {
        let code = event.payload.first_chunk::<4>().map(|code| u32::from_le_bytes(*code))?;
        let step = code.checked_sub(MARKER)? / 4;
        (step <= STEPS + 1).then_some(step)
    };
    let mut before = 0;
    let mut ranges: Vec<_> = all
        .iter()
        .map(|event| {
            before = marker(event).unwrap_or(before);
            before..u32::MAX
        })
        .collect();
    let mut after = STEPS + 1;
    for (event, range) in all.iter().zip(&mut ranges).rev() {
        // A marker is sent at the start of its step, before anything changes.
        after = marker(event).map_or(after, |step| step.saturating_sub(1));
        range.end = after + 1;
        if let Some(step) = marker(event) {
            *range = step - 1..step;
        }
    }
    ranges
}

/// Checks that the session recorded every event that it enabled during all of the event's steps,
/// and no event that it enabled during none of them.
fn compare(all: &[Recorded], steps: &[Range<u32>], known: &Known, recorded: &[Recorded]) {
    let enables_at = |step: u32, event: &Recorded| {
        let since = known.infos.iter().rev().find(|(since, _)| *since <= step);
        step < known.until
            && since.is_some_and(|(_, infos)| infos.passes(event.level, event.keyword))
    };
    let mut rest = recorded;
    for (event, range) in all.iter().zip(steps) {
        let there = rest.first() == Some(event);
        if there {
            rest = &rest[1..];
        }
        // A step may change the enable info while it runs.
        let asked: Vec<bool> = (range.start..range.end.max(range.start + 1))
            .map(|step| enables_at(step, event))
            .collect();
        let (always, ever) = (asked.iter().all(|one| *one), asked.iter().any(|one| *one));
        assert!(!always || there, "lost: {event:?} in {range:?} of {:?}", known.infos);
        assert!(
            !there || ever,
            "recorded but not enabled: {event:?} in {range:?} of {:?}",
            known.infos
        );
    }
    assert!(
        rest.is_empty(),
        "out of order, or not in the trace of the session that records everything: {rest:?}"
    );
}

// R-O10, R-G5, R-G3, R-E4, R-O3
#[test]
fn each_session_records_exactly_the_events_that_it_enables() {
    let seeds = std::env::var("WDK_ETW_SEEDS").ok();
    let seeds: u64 = seeds.map_or(20, |text| text.parse().expect("a number of seeds"));
    common::for_each_seed(seeds, |seed| Run::new(seed).go());
}
