//! Threads use a device, control sessions and load drivers concurrently. The tests check that no
//! event violates its session's filter, that every missing event was counted, that the events of
//! each processor are ordered by time, and that all memory was freed.
//!
//! `WDK_ETW_STRESS_SECONDS` sets the duration of the concurrent run, and `WDK_ETW_SEEDS` the number
//! of schedules to test.

use crate::common;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use etl_file::{Event, Trace};
use etw_sample_interface::{
    Burst, IOCTL_BURST, IOCTL_ECHO, IOCTL_ECHO_IN_DPC, PROVIDER_GROUP, keyword,
};
use standin_kernel::{
    Device, EnableParameters, File, Identity, Kernel, KernelConfig, NtStatus, Output, Schedule,
    SessionConfig, SessionHandle, SessionReport, Target, Work,
};
use zerocopy::IntoBytes;

fn provider() -> Target {
    Target::Provider(etw_scenarios::provider())
}

fn group() -> Target {
    Target::Group(PROVIDER_GROUP.parse().unwrap())
}

/// The values that identify an event.
type Key = (i64, u8, u64, Vec<u8>);

/// Returns the events in a file, and checks that each processor's events are in order.
fn events(file: &Path) -> Vec<Key> {
    let trace = Trace::open(file).unwrap();
    assert_eq!(trace.damages(), [], "{}", file.display());
    // A circular file can start with any buffer; the buffers' sequence numbers determine the order.
    let sequence = |event: &Event| trace.buffers()[event.buffer as usize].sequence;
    for processor in 0..64 {
        let mut of_one: Vec<&Event> =
            trace.events().filter(|event| event.processor == processor).collect();
        of_one.sort_by_key(|event| sequence(event));
        assert!(
            of_one.is_sorted_by_key(|event| event.record.timestamp),
            "processor {processor} of {}",
            file.display()
        );
    }
    trace
        .events()
        .map(|event| {
            let record = &event.record;
            let of = &record.descriptor;
            (record.timestamp, of.level, of.keyword, record.user_data.clone())
        })
        .collect()
}

/// A session's enable info during a part of the run.
#[derive(Clone, Copy)]
struct EnableInfo {
    level: u8,
    any: u64,
    all: u64,
}

impl EnableInfo {
    const fn passes(self, level: u8, keyword: u64) -> bool {
        let level = self.level == 0 || level <= self.level;
        let any = self.any == 0 || keyword & self.any != 0;
        level && any && keyword & self.all == self.all
    }

    fn parameters(self) -> EnableParameters {
        EnableParameters {
            level: self.level,
            match_any: self.any,
            match_all: self.all,
            ..EnableParameters::default()
        }
    }
}

/// A stopped session: its file, and every enable info that it had.
struct Gone {
    infos: Vec<EnableInfo>,
    file: PathBuf,
}

/// The amount of work in a round.
#[derive(Clone, Copy)]
struct Amount {
    requests: u32,
    burst: u32,
    controls: u32,
    loads: u32,
}

fn use_device(file: &File, sender: u32, amount: Amount, mut random: fastrand::Rng) {
    for _ in 0..amount.requests {
        let bytes = vec![7; random.usize(1..40)];
        match random.u8(..6) {
            0 => drop(file.write(&bytes).unwrap()),
            1 => drop(file.read(20).unwrap()),
            2 => drop(file.device_control(IOCTL_ECHO, &bytes, 40).unwrap()),
            3 => {
                let answer = file.device_control(IOCTL_ECHO_IN_DPC, &bytes, 40).unwrap();
                // The DPC may be in use by another request.
                let busy = NtStatus::from_bits(0x8000_0011);
                assert!([NtStatus::SUCCESS, busy].contains(&answer.status), "{}", answer.status);
            }
            _ => {
                let burst = Burst { count: amount.burst, sender };
                let answer = file.device_control(IOCTL_BURST, burst.as_bytes(), 0).unwrap();
                assert_eq!(answer.status, NtStatus::SUCCESS);
            }
        }
    }
}

/// Starts, changes and stops sessions.
fn control(kernel: &Kernel, folder: &Path, amount: Amount, mut random: fastrand::Rng) -> Vec<Gone> {
    let mut running: Vec<(SessionHandle, Vec<EnableInfo>)> = Vec::new();
    let mut gone = Vec::new();
    let stop = |(handle, infos): (SessionHandle, Vec<EnableInfo>), gone: &mut Vec<Gone>| {
        let report = kernel.stop_session(handle).unwrap();
        gone.push(Gone { infos, file: report.file });
    };
    for number in 0..amount.controls {
        match random.u8(..8) {
            0 | 1 if running.len() < 5 => {
                let name = format!("session {number}");
                let config = SessionConfig {
                    buffer_kb: 4,
                    maximum_buffers: random.u32(8..64),
                    writer_thread: random.bool(),
                    per_processor: random.bool(),
                    output: if random.u8(..4) == 0 {
                        Output::Circular { max_kb: 64 }
                    } else {
                        Output::Sequential { max_kb: None }
                    },
                    ..SessionConfig::to_file(&name, folder.join(format!("{name}.etl")))
                };
                running.push((kernel.start_session(config).unwrap(), Vec::new()));
            }
            2..=4 if !running.is_empty() => {
                let at = random.usize(..running.len());
                let info = EnableInfo {
                    level: random.choice([0, 3, 4, 5]).unwrap(),
                    any: random.choice([0, 1, 8, 16, 17]).unwrap(),
                    all: random.choice([0, 0, 1]).unwrap(),
                };
                let target = if random.bool() { provider() } else { group() };
                let (handle, infos) = &mut running[at];
                infos.push(info);
                kernel.enable(*handle, target, info.parameters()).unwrap();
            }
            5 if !running.is_empty() => {
                let (handle, _) = running[random.usize(..running.len())];
                let target = if random.bool() { provider() } else { group() };
                kernel.disable(handle, target, None).unwrap();
            }
            6 if !running.is_empty() => {
                let (handle, _) = running[random.usize(..running.len())];
                kernel.capture_state(handle, provider(), None).unwrap();
                kernel.flush_session(handle).unwrap();
            }
            7 if !running.is_empty() => {
                let at = random.usize(..running.len());
                stop(running.swap_remove(at), &mut gone);
            }
            _ => kernel.advance(Duration::from_millis(5)).unwrap(),
        }
    }
    for one in running {
        stop(one, &mut gone);
    }
    gone
}

/// Loads and unloads another driver.
fn load(kernel: &Kernel, amount: Amount) {
    for _ in 0..amount.loads {
        let (driver, device) = common::started(kernel, &common::minimal());
        common::leave(driver, &device);
    }
}

/// The result of a round: the file of the session that records everything.
struct Round {
    everything: PathBuf,
    folder: tempfile::TempDir,
}

fn constant(
    kernel: &Kernel,
    folder: &Path,
    name: &str,
    info: EnableInfo,
    buffers: u32,
) -> SessionHandle {
    let config = SessionConfig {
        buffer_kb: 16,
        maximum_buffers: buffers,
        writer_thread: true,
        ..SessionConfig::to_file(name, folder.join(format!("{name}.etl")))
    };
    let session = kernel.start_session(config).unwrap();
    kernel.enable(session, provider(), info.parameters()).unwrap();
    session
}

fn open(device: &Device, thread: u32) -> File {
    device.open(Identity { process: 77, thread }).unwrap()
}

const EVERYTHING: EnableInfo = EnableInfo { level: 255, any: 0, all: 0 };
/// The enable info of the second session that runs during the whole round.
const REQUESTS: EnableInfo = EnableInfo { level: 4, any: keyword::REQUEST, all: keyword::REQUEST };

/// Runs everything concurrently, and then checks the results.
fn round(schedule: Schedule, seed: u64, amount: Amount) -> Round {
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(seed);
    let kernel = Kernel::with_config(KernelConfig {
        start: std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        processors: 4,
        special_pool: random.bool(),
        ..KernelConfig::default()
    });
    let buffers = random.choice([8, 32, 4000]).unwrap();
    let everything = constant(&kernel, folder.path(), "everything", EVERYTHING, buffers);
    let requests = constant(&kernel, folder.path(), "requests", REQUESTS, buffers);
    let (driver, device) = common::started(&kernel, &common::sample());
    let mut work: Vec<Work> = Vec::new();
    for sender in 1..=2 {
        let file = open(&device, 100 + sender);
        let random = random.fork();
        work.push(Box::new(move || {
            use_device(&file, sender, amount, random);
            file.close().unwrap();
        }));
    }
    let gone = Arc::new(Mutex::new(Vec::new()));
    {
        let (kernel, gone) = (kernel.clone(), Arc::clone(&gone));
        let (folder, random) = (folder.path().to_owned(), random.fork());
        work.push(Box::new(move || {
            *gone.lock().unwrap() = control(&kernel, &folder, amount, random);
        }));
    }
    {
        let kernel = kernel.clone();
        work.push(Box::new(move || load(&kernel, amount)));
    }
    kernel.together(schedule, work).unwrap();
    common::leave(driver, &device);
    let statistics = kernel.statistics();
    assert_eq!(statistics.allocations, statistics.frees);
    assert_eq!(statistics.registrations, 0);
    assert_eq!(kernel.warnings(), []);
    let everything = kernel.stop_session(everything).unwrap();
    let requests = kernel.stop_session(requests).unwrap();
    let gone = std::mem::take(&mut *gone.lock().unwrap());
    check(&everything, &requests, &gone);
    Round { everything: everything.file, folder }
}

fn check(everything: &SessionReport, requests: &SessionReport, gone: &[Gone]) {
    for report in [everything, requests] {
        assert_eq!(report.log_buffers_lost, 0);
    }
    let all = events(&everything.file);
    assert_eq!(all.len() as u64, everything.events);
    // The second session recorded exactly the events that it enabled.
    let mut wanted: Vec<&Key> =
        all.iter().filter(|(_, level, keyword, _)| REQUESTS.passes(*level, *keyword)).collect();
    let found = events(&requests.file);
    assert_eq!(found.len() as u64, requests.events);
    let mut found: Vec<&Key> = found.iter().collect();
    wanted.sort();
    found.sort();
    assert_eq!(wanted, found);
    // A burst's events are numbered, and every missing number must be counted as lost.
    let mut missing = 0;
    for sender in 1..=2_u32 {
        let mut last: Option<u32> = None;
        let mut numbers: Vec<(i64, u32)> = all
            .iter()
            .filter(|(_, _, keyword, data)| {
                *keyword == keyword::LOAD && data[..4] == sender.to_le_bytes()
            })
            .map(|(time, _, _, data)| (*time, u32::from_le_bytes(data[4..8].try_into().unwrap())))
            .collect();
        numbers.sort_unstable();
        for (_, number) in numbers {
            if let Some(before) = last
                && number > before
            {
                missing += u64::from(number - before - 1);
            }
            last = Some(number);
        }
    }
    let nothing_lost = everything.events_lost == 0 && requests.events_lost == 0 && gone.is_empty();
    assert!(!nothing_lost || missing == 0, "{missing} events are missing");
    let known: HashSet<&Key> = all.iter().collect();
    for session in gone {
        for event in events(&session.file) {
            assert!(known.contains(&event), "{event:?} is not in all sessions");
            let mut infos = session.infos.iter();
            assert!(
                infos.any(|info| info.passes(event.1, event.2)),
                "no enable info of the session passes {event:?}"
            );
        }
    }
}

// R-O10, R-O11, R-E4, R-G3; V29
#[test]
fn invariants_hold_while_everything_runs_at_once() {
    let seconds = std::env::var("WDK_ETW_STRESS_SECONDS").ok();
    let seconds: u64 = seconds.map_or(3, |text| text.parse().expect("a number of seconds"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let amount = Amount { requests: 60, burst: 300, controls: 60, loads: 10 };
    let mut rounds = 0;
    while rounds == 0 || Instant::now() < end {
        round(Schedule::Parallel, rounds, amount);
        rounds += 1;
    }
    println!("{rounds} rounds");
}

#[test]
fn invariants_hold_for_every_seed() {
    let seeds = std::env::var("WDK_ETW_SEEDS").ok();
    let seeds: u64 = seeds.map_or(20, |text| text.parse().expect("a number of seeds"));
    let amount = Amount { requests: 12, burst: 5, controls: 25, loads: 2 };
    common::for_each_seed(seeds, |seed| {
        round(Schedule::Seeded(seed), seed, amount);
    });
}

#[test]
fn the_same_seed_repeats_the_run() {
    let amount = Amount { requests: 12, burst: 5, controls: 25, loads: 2 };
    let run = |seed| {
        let round = round(Schedule::Seeded(seed), 5, amount);
        let events = events(&round.everything);
        drop(round.folder);
        events
    };
    let first = run(1);
    assert_eq!(first, run(1));
    assert_ne!(first, run(2), "another seed gives another order");
}
