//! The measurements.

use std::{
    os::unix::fs::FileExt,
    path::Path,
    sync::mpsc,
    time::{Duration, Instant},
};

use etw_sample_interface::{Burst, IOCTL_BURST, keyword};
use standin_kernel::{
    EnableParameters, File as DeviceFile, Identity, Kernel, KernelConfig, NtStatus, Schedule,
    SessionConfig, Target, Work,
};
use zerocopy::IntoBytes;

/// The number of events that a thread writes between two readings of the clock.
const PIECE: u32 = 500;

/// The result of a run.
struct Run {
    seconds: f64,
    events: u64,
    lost: u32,
    /// The pieces of each thread, in chronological order.
    threads: Vec<Vec<Piece>>,
}

/// A part of a thread's work: [`PIECE`] events.
struct Piece {
    start: Instant,
    end: Instant,
    /// The part of the time in which the thread was ready to run but did not have a processor.
    waited: Duration,
}

impl Piece {
    /// Writes the events on the thread to which the statistics belong.
    fn write(file: &DeviceFile, sender: u32, statistics: &mut Statistics) -> Self {
        let input = Burst { count: PIECE, sender };
        let start = Instant::now();
        let done = file.device_control(IOCTL_BURST, input.as_bytes(), 0).expect("a burst");
        let end = Instant::now();
        assert_eq!(done.status, NtStatus::SUCCESS);
        Self { start, end, waited: statistics.take_waited() }
    }
}

impl Piece {
    fn had_processor(&self) -> bool {
        self.waited * 10 <= self.end - self.start
    }
}

/// The operating system's statistics of a thread.
struct Statistics {
    /// If there is no such file, the thread counts as never waiting.
    file: Option<std::fs::File>,
    waited: u64,
}

impl Statistics {
    fn of_this_thread() -> Self {
        let file = std::fs::File::open("/proc/thread-self/schedstat").ok();
        let mut statistics = Self { file, waited: 0 };
        statistics.take_waited();
        statistics
    }

    /// Returns the time since the last call in which the thread was ready to run but did not have a
    /// processor.
    fn take_waited(&mut self) -> Duration {
        let mut text = [0; 64];
        let read = self.file.as_ref().map(|file| file.read_at(&mut text, 0));
        let text = String::from_utf8_lossy(&text);
        let waited = text.split(' ').nth(1).and_then(|text| text.parse().ok());
        let before = self.waited;
        if let (Some(Ok(1..)), Some(waited)) = (read, waited) {
            self.waited = waited;
        }
        Duration::from_nanos(self.waited - before)
    }
}

impl Run {
    /// Returns the times of the pieces in which every thread waited for a processor for at most a
    /// tenth of the time. A thread that another thread wakes always waits a little.
    fn undisturbed(&self) -> impl Iterator<Item = Duration> {
        let is_undisturbed = |piece: &Piece| {
            self.threads.iter().all(|pieces| {
                let first = pieces.partition_point(|one| one.end < piece.start);
                let after = pieces.partition_point(|one| one.start <= piece.end);
                let during = pieces.get(first..after).unwrap_or_default();
                let is_whole = during.first().is_some_and(|one| one.start <= piece.start)
                    && during.last().is_some_and(|one| one.end >= piece.end);
                is_whole && during.iter().all(Piece::had_processor)
            })
        };
        let pieces = self.threads.iter().flatten();
        pieces.filter(move |piece| is_undisturbed(piece)).map(|piece| piece.end - piece.start)
    }

    #[expect(clippy::cast_precision_loss, reason = "the figures are far smaller")]
    fn rate(&self) -> f64 {
        self.events as f64 / self.seconds
    }
}

#[derive(Clone, Copy)]
struct Load {
    threads: u16,
    /// The number of events that each thread writes.
    each: u32,
    /// The number of sessions that record every event.
    sessions: u16,
    writer_thread: bool,
}

fn run(sys: &Path, load: Load) -> Run {
    let Load { threads, each, .. } = load;
    let folder = tempfile::tempdir().expect("a folder");
    let kernel =
        Kernel::with_config(KernelConfig { processors: threads, ..KernelConfig::default() });
    let driver = kernel.load(sys).expect("the driver");
    let device = driver.add_device().expect("its device");
    let parameters =
        EnableParameters { level: 5, match_any: keyword::LOAD, ..EnableParameters::default() };
    let target = Target::Provider(etw_scenarios::provider());
    let sessions: Vec<_> = (0..load.sessions)
        .map(|number| {
            let name = format!("throughput{number}");
            let file = folder.path().join(format!("{name}.etl"));
            let session = kernel
                .start_session(SessionConfig {
                    writer_thread: load.writer_thread,
                    maximum_buffers: 1024,
                    ..SessionConfig::to_file(name, file)
                })
                .expect("a session");
            kernel.enable(session, target, parameters.clone()).expect("enabled");
            session
        })
        .collect();
    let (measured, pieces) = mpsc::channel();
    let work = (1..=u32::from(threads))
        .map(|sender| -> Work {
            let thread = 100 + sender;
            let file = device.open(Identity { process: 9, thread }).expect("a file");
            let measured = measured.clone();
            Box::new(move || {
                let mut statistics = Statistics::of_this_thread();
                let pieces: Vec<Piece> = (0..each / PIECE)
                    .map(|_| Piece::write(&file, sender, &mut statistics))
                    .collect();
                measured.send(pieces).expect("a receiver");
                file.close().expect("closed");
            })
        })
        .collect();
    let start = Instant::now();
    kernel.together(Schedule::Parallel, work).expect("the bursts");
    for session in &sessions {
        kernel.flush_session(*session).expect("flushed");
    }
    let seconds = start.elapsed().as_secs_f64();
    drop(measured);
    let written = u64::from(threads) * u64::from(each);
    let reports: Vec<_> = sessions
        .into_iter()
        .map(|session| kernel.stop_session(session).expect("a report"))
        .collect();
    device.remove().expect("removed");
    driver.unload().expect("unloaded");
    for report in &reports {
        assert_eq!(
            u64::from(report.events_lost),
            written - report.events,
            "an event was lost and not counted"
        );
    }
    Run {
        seconds,
        events: reports.iter().map(|report| report.events).min().unwrap_or(0),
        lost: reports.iter().map(|report| report.events_lost).sum(),
        threads: pieces.iter().collect(),
    }
}

/// Returns the fastest of three runs, because other load on the machine only makes runs slower.
fn best(sys: &Path, load: Load) -> Run {
    let mut runs: Vec<Run> = (0..3).map(|_| run(sys, load)).collect();
    runs.sort_by(|a, b| b.rate().total_cmp(&a.rate()));
    runs.remove(0)
}

struct Comparison {
    /// The rate of the second load, as a multiple of the first load's rate.
    ratio: f64,
    /// The smaller number of pieces on which the rates of the two loads are based.
    pieces: usize,
    lost: u32,
}

/// Compares two loads with alternating runs. Other load on the machine uses processors too, so the
/// rates are the medians of the pieces in which every thread had a processor.
fn compare(sys: &Path, first: Load, second: Load) -> Comparison {
    const RUNS: usize = 15;
    let loads = [first, second];
    let mut times = [Vec::new(), Vec::new()];
    let mut lost = 0;
    for _ in 0..RUNS {
        for (load, times) in loads.iter().zip(&mut times) {
            let run = run(sys, *load);
            times.extend(run.undisturbed());
            lost += run.lost;
        }
    }
    let [one, other] = [0, 1].map(|at| {
        times[at].sort();
        let median = times[at].get(times[at].len() / 2);
        median.map_or(f64::NAN, |time| f64::from(loads[at].threads) / time.as_secs_f64())
    });
    Comparison { ratio: other / one, pieces: times.iter().map(Vec::len).min().unwrap_or(0), lost }
}

/// Runs the measurements and prints the results.
pub fn main() {
    const EVENTS: u32 = 300_000;
    let sys = std::env::args_os().nth(1).expect("the driver's image");
    let sys = Path::new(&sys);
    let with_writer = Load { threads: 1, each: EVENTS, sessions: 1, writer_thread: true };
    let in_line = Load { writer_thread: false, ..with_writer };
    let of = |each| Load { each, ..in_line };
    run(sys, of(EVENTS / 10));
    let one = best(sys, with_writer);
    let two = best(sys, Load { threads: 2, ..with_writer });
    let small = best(sys, of(EVENTS / 3));
    let large = best(sys, of(EVENTS / 3 * 10));
    let scaling = compare(sys, of(EVENTS / 3), Load { threads: 2, ..of(EVENTS / 3) });
    let eight = compare(sys, of(EVENTS / 3), Load { sessions: 8, ..of(EVENTS / 3) });
    let lost = [&one, &two, &small, &large].map(|run| run.lost);
    println!(
        "{{\"one\": {:.0}, \"two\": {:.0}, \"lost\": {}, \"growth\": {:.3}, \"two_threads\": {:.3}, \
         \"eight_sessions\": {:.3}, \"pieces\": {}}}",
        one.rate(),
        two.rate(),
        lost.iter().sum::<u32>() + scaling.lost + eight.lost,
        small.rate() / large.rate(),
        scaling.ratio,
        1.0 / eight.ratio,
        scaling.pieces.min(eight.pieces)
    );
}
