//! Tests sessions' buffers: their number, the time of their writes, and the events that are counted
//! as lost.

use crate::common;
use std::{path::Path, time::Duration};

use etl_file::Trace;
use etl_fixtures::decoders;
use etw_sample_interface::{Burst, IOCTL_BURST, IOCTL_GET_STATISTICS, Statistics, keyword};
use standin_kernel::{
    ClockType, Consumer, Device, Driver, EnableParameters, File, Identity, Kernel, KernelConfig,
    NtStatus, Output, PagedSession, RT_LOST_EVENT, RealTime, Schedule, SessionConfig,
    SessionHandle, SessionReport, Target, UnspecifiedBehaviour, Work,
};
use zerocopy::{FromBytes, IntoBytes};

const CLIENT: Identity = Identity { process: 20, thread: 21 };

/// A kernel with the sample driver, and a file open on its device.
struct Fixture {
    kernel: Kernel,
    folder: tempfile::TempDir,
    driver: Driver,
    device: Device,
    file: File,
}

impl Fixture {
    fn new(config: KernelConfig) -> Self {
        let kernel = Kernel::with_config(config);
        let (driver, device) = common::started(&kernel, &common::sample());
        let file = device.open(CLIENT).unwrap();
        Self { kernel, folder: tempfile::tempdir().unwrap(), driver, device, file }
    }

    fn config(&self, name: &str) -> SessionConfig {
        SessionConfig {
            buffer_kb: 4,
            ..SessionConfig::to_file(name, self.folder.path().join(format!("{name}.etl")))
        }
    }

    /// Starts a session that records the events of bursts.
    fn session(&self, config: SessionConfig) -> SessionHandle {
        let session = self.kernel.start_session(config).unwrap();
        self.enable(session);
        session
    }

    fn enable(&self, session: SessionHandle) {
        let parameters =
            EnableParameters { level: 5, match_any: keyword::LOAD, ..EnableParameters::default() };
        let target = Target::Provider(etw_scenarios::provider());
        self.kernel.enable(session, target, parameters).unwrap();
    }

    fn burst(&self, count: u32) {
        burst(&self.file, 1, count);
    }

    /// Returns the number of failed writes that the driver counted.
    fn failed(&self) -> u64 {
        let answer =
            self.file.device_control(IOCTL_GET_STATISTICS, &[], size_of::<Statistics>()).unwrap();
        Statistics::read_from_bytes(&answer.output).unwrap().events_failed
    }

    fn leave(self) {
        self.file.close().unwrap();
        self.device.remove().unwrap();
        self.driver.unload().unwrap();
    }
}

fn burst(file: &File, sender: u32, count: u32) {
    let input = Burst { count, sender };
    let done = file.device_control(IOCTL_BURST, input.as_bytes(), 0).unwrap();
    assert_eq!(done.status, NtStatus::SUCCESS);
}

/// Returns the numbers in one sender's events in a file, in chronological order. Third-party
/// decoders must find the same number of events.
fn numbers(file: &Path, sender: u32) -> Vec<u32> {
    let trace = Trace::open(file).unwrap();
    assert_eq!(trace.damages(), []);
    assert_eq!(decoders::assert_third_party_decoders_agree(file), trace.events().count());
    let events = trace.events_by_time().into_iter();
    events
        .map(|event| event.record.user_data.as_slice())
        .filter(|data| data[..4] == sender.to_le_bytes())
        .map(|data| u32::from_le_bytes(data[4..8].try_into().unwrap()))
        .collect()
}

fn count(consumer: &Consumer) -> usize {
    consumer.take().len()
}

// R-O10; V75
#[test]
fn buffer_counts_are_raised_to_what_processors_need_and_grow_to_the_maximum() {
    let fixture = Fixture::new(KernelConfig { processors: 4, ..KernelConfig::default() });
    let session = fixture.session(SessionConfig { maximum_buffers: 10, ..fixture.config("grow") });
    let before = fixture.kernel.query_session(session).unwrap();
    assert_eq!((before.buffers, before.free_buffers), (8, 4));
    fixture.kernel.hold_writer(session, true).unwrap();
    fixture.burst(1000);
    let held = fixture.kernel.query_session(session).unwrap();
    assert_eq!((held.buffers, held.free_buffers), (10, 0));
    assert!(held.events_lost > 0);
    assert_eq!(held.events + u64::from(held.events_lost), 1000);
    fixture.kernel.hold_writer(session, false).unwrap();
    fixture.burst(10);
    let report = fixture.kernel.stop_session(session).unwrap();
    assert_eq!(report.events, held.events + 10);
    assert_eq!(u64::from(report.events_lost), fixture.failed());
    let numbers = numbers(&report.file, 1);
    assert_eq!(numbers.len() as u64, report.events);
    // The file contains the first events and the last ten.
    let kept = numbers.len() - 10;
    assert!(numbers[..kept].iter().copied().eq(0..u32::try_from(kept).unwrap()));
    let trace = Trace::open(&report.file).unwrap();
    assert_eq!(trace.header().events_lost, report.events_lost);
    fixture.leave();
}

#[test]
fn a_flush_timer_writes_partly_filled_buffers() {
    let fixture = Fixture::new(KernelConfig::default());
    let session = fixture
        .session(SessionConfig { flush_timer: Duration::from_secs(2), ..fixture.config("timer") });
    fixture.burst(3);
    let written = |kernel: &Kernel| kernel.query_session(session).unwrap().buffers_written;
    assert_eq!(written(&fixture.kernel), 0);
    fixture.kernel.advance(Duration::from_millis(1900)).unwrap();
    assert_eq!(written(&fixture.kernel), 0);
    fixture.kernel.advance(Duration::from_millis(200)).unwrap();
    assert_eq!(written(&fixture.kernel), 2, "the header's and one");
    fixture.burst(3);
    fixture.kernel.advance(Duration::from_secs(10)).unwrap();
    assert_eq!(written(&fixture.kernel), 3, "an empty buffer is not written");
    let report = fixture.kernel.stop_session(session).unwrap();
    assert_eq!(numbers(&report.file, 1), [0, 1, 2, 0, 1, 2]);
    fixture.leave();
}

#[test]
fn a_file_that_cannot_be_written_loses_buffers_that_are_counted() {
    let fixture = Fixture::new(KernelConfig::default());
    let session = fixture.session(fixture.config("broken"));
    fixture.kernel.fail_writes(session, 2).unwrap();
    fixture.burst(500);
    let report = fixture.kernel.stop_session(session).unwrap();
    assert_eq!(report.log_buffers_lost, 2);
    assert!(report.events_in_lost_buffers > 0);
    assert_eq!(report.events + report.events_in_lost_buffers, 500);
    assert!(report.file_error.unwrap().contains("cannot write the log file"));
    let trace = Trace::open(&report.file).unwrap();
    assert_eq!(trace.header().buffers_lost, 2);
    assert_eq!(trace.events().count() as u64, report.events);
    assert_eq!(fixture.failed(), 0, "the writes had succeeded");
    fixture.leave();
}

/// Three sessions that enable the same events: one with enough buffers for all events, one with few
/// buffers and delayed writes, and one that is independent of other sessions.
struct Three {
    fixture: Fixture,
    roomy: SessionHandle,
    tight: SessionHandle,
    apart: SessionHandle,
}

impl Three {
    fn new(unspecified_behaviour: UnspecifiedBehaviour) -> Self {
        let fixture =
            Fixture::new(KernelConfig { unspecified_behaviour, ..KernelConfig::default() });
        let roomy = fixture.session(fixture.config("roomy"));
        let tight =
            fixture.session(SessionConfig { maximum_buffers: 2, ..fixture.config("tight") });
        let apart = fixture.session(SessionConfig { independent: true, ..fixture.config("apart") });
        fixture.kernel.hold_writer(tight, true).unwrap();
        Self { fixture, roomy, tight, apart }
    }

    /// Returns the reports of the three sessions, and the number of failed writes.
    fn finish(&self) -> ([SessionReport; 3], u64) {
        let failed = self.fixture.failed();
        let sessions = [self.roomy, self.tight, self.apart];
        let reports = sessions.map(|session| self.fixture.kernel.stop_session(session).unwrap());
        (reports, failed)
    }
}

// V73
#[test]
fn an_event_goes_to_all_sessions_or_to_none() {
    let three = Three::new(UnspecifiedBehaviour::default());
    three.fixture.burst(300);
    let ([roomy, tight, apart], failed) = three.finish();
    assert!(tight.events_lost > 0);
    assert_eq!(u64::from(tight.events_lost), failed);
    assert_eq!(tight.events, roomy.events);
    assert_eq!(numbers(&tight.file, 1), numbers(&roomy.file, 1));
    // O6: the session with room does not count the events for which another session had no room.
    assert_eq!(roomy.events_lost, 0);
    // The independent session records every event.
    assert_eq!((apart.events, apart.events_lost), (300, 0));
    three.fixture.leave();
}

#[test]
fn other_sessions_record_what_an_independent_session_cannot() {
    let fixture = Fixture::new(KernelConfig::default());
    let normal = fixture.session(fixture.config("normal"));
    let apart = fixture.session(SessionConfig {
        independent: true,
        maximum_buffers: 2,
        ..fixture.config("apart")
    });
    fixture.kernel.hold_writer(apart, true).unwrap();
    fixture.burst(300);
    assert_eq!(fixture.failed(), 0, "no write fails because of the independent session");
    let normal = fixture.kernel.stop_session(normal).unwrap();
    assert_eq!((normal.events, normal.events_lost), (300, 0));
    let apart = fixture.kernel.stop_session(apart).unwrap();
    assert!(apart.events_lost > 0);
    assert_eq!(apart.events + u64::from(apart.events_lost), 300);
    fixture.leave();
}

// O6
#[test]
fn the_status_of_partial_failures_is_a_setting() {
    for (success, all) in [(false, true), (true, false)] {
        let three = Three::new(UnspecifiedBehaviour {
            independent_session_suffices: success,
            every_session_counts_loss: all,
            ..UnspecifiedBehaviour::default()
        });
        three.fixture.burst(300);
        let ([roomy, tight, apart], failed) = three.finish();
        assert_eq!(failed == 0, success);
        assert_eq!(roomy.events_lost == tight.events_lost, all);
        assert_eq!(apart.events, 300);
        three.fixture.leave();
    }
}

#[test]
fn timestamps_use_the_sessions_clock_type() {
    let fixture = Fixture::new(KernelConfig::default());
    let counter = fixture.session(fixture.config("counter"));
    let system =
        fixture.session(SessionConfig { clock: ClockType::SystemTime, ..fixture.config("system") });
    fixture.burst(5);
    let [counter, system] = [counter, system].map(|session| {
        let report = fixture.kernel.stop_session(session).unwrap();
        assert_eq!(numbers(&report.file, 1), [0, 1, 2, 3, 4]);
        Trace::open(&report.file).unwrap()
    });
    assert_eq!(counter.header().session.clock, ClockType::Qpc);
    assert_eq!(system.header().session.clock, ClockType::SystemTime);
    for (one, other) in counter.events().zip(system.events()) {
        assert_ne!(one.record.timestamp, other.record.timestamp);
        assert_eq!(one.time, other.time, "the moment is the same");
    }
    fixture.leave();
}

// R-O12
#[test]
fn consumers_receive_flushed_buffers_and_those_stored_before_they_attached() {
    let fixture = Fixture::new(KernelConfig::default());
    let session =
        fixture.session(SessionConfig { buffer_kb: 4, ..SessionConfig::to_consumers("live") });
    fixture.burst(5);
    fixture.kernel.advance(Duration::from_millis(1100)).unwrap();
    let consumer = fixture.kernel.open_consumer(session).unwrap();
    assert_eq!(count(&consumer), 5, "what was stored");
    fixture.burst(7);
    assert_eq!(count(&consumer), 0, "delivery is at the flush");
    fixture.kernel.advance(Duration::from_millis(1100)).unwrap();
    assert_eq!(count(&consumer), 7, "after a second");
    drop(consumer);
    fixture.burst(1);
    let report = fixture.kernel.stop_session(session).unwrap();
    assert_eq!((report.events, report.real_time_buffers_lost), (13, 0));
    assert_eq!(report.files, [] as [std::path::PathBuf; 0]);
    fixture.leave();
}

#[test]
fn a_full_store_fails_writes_until_a_consumer_attaches() {
    let fixture = Fixture::new(KernelConfig::default());
    let session = fixture.session(SessionConfig {
        buffer_kb: 4,
        real_time: Some(RealTime { max_stored: 2, max_unread: 1000 }),
        ..SessionConfig::to_consumers("stored")
    });
    fixture.burst(400);
    let statistics = fixture.kernel.query_session(session).unwrap();
    assert!(statistics.events_lost > 0);
    assert_eq!(statistics.events + u64::from(statistics.events_lost), 400);
    assert_eq!(fixture.failed(), u64::from(statistics.events_lost));
    let consumer = fixture.kernel.open_consumer(session).unwrap();
    fixture.burst(3);
    fixture.kernel.flush_session(session).unwrap();
    let events = consumer.take();
    let lost: Vec<u8> = events
        .iter()
        .filter(|event| event.provider == RT_LOST_EVENT)
        .map(|event| event.descriptor.opcode)
        .collect();
    assert_eq!(lost, [32], "that events were lost");
    let real = events.len() - lost.len();
    assert_eq!(real as u64, statistics.events + 3);
    fixture.kernel.stop_session(session).unwrap();
    fixture.leave();
}

#[test]
fn a_consumer_that_does_not_read_loses_buffers_and_the_file_does_not() {
    let fixture = Fixture::new(KernelConfig::default());
    let session = fixture.session(SessionConfig {
        real_time: Some(RealTime { max_stored: 1, max_unread: 2 }),
        ..fixture.config("both")
    });
    let consumer = fixture.kernel.open_consumer(session).unwrap();
    fixture.burst(500);
    let read = consumer.take();
    fixture.burst(1);
    fixture.kernel.flush_session(session).unwrap();
    let rest = consumer.take();
    assert_eq!(rest[0].provider, RT_LOST_EVENT);
    assert_eq!(rest[0].descriptor.opcode, 33, "that a buffer was lost");
    let report = fixture.kernel.stop_session(session).unwrap();
    assert!(report.real_time_buffers_lost > 0);
    assert!(read.len() < 500);
    assert_eq!((report.events, report.events_lost), (501, 0));
    assert_eq!(numbers(&report.file, 1).len(), 501);
    fixture.leave();
}

/// Sends bursts from several threads concurrently, and returns the session that records them.
fn bursts(config: impl FnOnce(&Fixture) -> SessionConfig, each: u32) -> (Fixture, SessionHandle) {
    let fixture = Fixture::new(KernelConfig { processors: 4, ..KernelConfig::default() });
    let session = fixture.session(config(&fixture));
    let work = (1..=3)
        .map(|sender| -> Work {
            let (process, thread) = (50, 100 + sender);
            let file = fixture.device.open(Identity { process, thread }).unwrap();
            Box::new(move || {
                burst(&file, sender, each);
                file.close().unwrap();
            })
        })
        .collect();
    fixture.kernel.together(Schedule::Parallel, work).unwrap();
    (fixture, session)
}

#[test]
fn processors_fill_buffers_of_their_own_at_once() {
    let (fixture, session) = bursts(
        |fixture| SessionConfig {
            writer_thread: true,
            maximum_buffers: 4000,
            ..fixture.config("parallel")
        },
        2000,
    );
    let report = fixture.kernel.stop_session(session).unwrap();
    assert_eq!((report.events, report.events_lost), (6000, 0));
    let trace = Trace::open(&report.file).unwrap();
    assert_eq!(trace.header().session.processors, 4);
    for processor in 0..3 {
        let stamps: Vec<i64> = trace
            .events()
            .filter(|event| event.processor == processor)
            .map(|event| event.record.timestamp)
            .collect();
        assert!(stamps.len() >= 2000);
        assert!(stamps.is_sorted(), "in order on its processor");
    }
    for sender in 1..=3 {
        let sent = numbers(&report.file, sender);
        assert!(sent.into_iter().eq(0..2000), "of sender {sender}");
    }
    fixture.leave();
}

#[test]
fn one_stream_for_all_processors_is_in_order() {
    let (fixture, session) = bursts(
        |fixture| SessionConfig {
            per_processor: false,
            maximum_buffers: 4000,
            ..fixture.config("one")
        },
        500,
    );
    let report = fixture.kernel.stop_session(session).unwrap();
    assert_eq!(report.events, 1500);
    let trace = Trace::open(&report.file).unwrap();
    assert_eq!(trace.header().session.processors, 1);
    let stamps: Vec<i64> = trace.events().map(|event| event.record.timestamp).collect();
    assert!(stamps.is_sorted());
    for sender in 1..=3 {
        assert!(numbers(&report.file, sender).into_iter().eq(0..500));
    }
    fixture.leave();
}

#[test]
fn a_writer_that_cannot_keep_up_loses_events_that_are_counted() {
    let (fixture, session) = bursts(
        |fixture| SessionConfig {
            writer_thread: true,
            maximum_buffers: 8,
            ..fixture.config("slow")
        },
        20_000,
    );
    let report = fixture.kernel.stop_session(session).unwrap();
    assert_eq!(report.events + u64::from(report.events_lost), 60_000);
    let trace = Trace::open(&report.file).unwrap();
    assert_eq!(trace.events().count() as u64, report.events);
    assert_eq!(trace.header().events_lost, report.events_lost);
    assert_eq!(u64::from(report.events_lost), fixture.failed());
    fixture.leave();
}

// V74, O10
#[test]
fn sessions_in_paged_memory_receive_no_events_from_drivers() {
    let fixture = Fixture::new(KernelConfig::default());
    let session = fixture.session(SessionConfig { paged_memory: true, ..fixture.config("paged") });
    fixture.burst(5);
    assert_eq!(fixture.kernel.stop_session(session).unwrap().events, 0);
    fixture.leave();

    let fixture = Fixture::new(KernelConfig {
        unspecified_behaviour: UnspecifiedBehaviour {
            paged_session: PagedSession::CannotEnable,
            ..UnspecifiedBehaviour::default()
        },
        ..KernelConfig::default()
    });
    let config = SessionConfig { paged_memory: true, ..fixture.config("paged") };
    let session = fixture.kernel.start_session(config).unwrap();
    let target = Target::Provider(etw_scenarios::provider());
    let refused = fixture.kernel.enable(session, target, EnableParameters::default());
    assert!(refused.unwrap_err().to_string().contains("paged memory"));
    fixture.leave();
}

// V74
#[test]
fn a_filter_by_process_never_enables_a_driver() {
    let fixture = Fixture::new(KernelConfig::default());
    let session = fixture.session(fixture.config("pid"));
    let parameters =
        EnableParameters { only_processes: vec![CLIENT.process], ..EnableParameters::default() };
    let target = Target::Provider(etw_scenarios::provider());
    fixture.kernel.enable(session, target, parameters).unwrap();
    fixture.burst(5);
    assert_eq!(fixture.kernel.stop_session(session).unwrap().events, 0);
    fixture.leave();
}

#[test]
fn stack_requests_are_accepted_but_no_stacks_are_captured() {
    let fixture = Fixture::new(KernelConfig::default());
    let session = fixture.session(fixture.config("stacks"));
    let parameters = EnableParameters {
        level: 5,
        match_any: keyword::LOAD,
        stack_walk: true,
        ..EnableParameters::default()
    };
    let target = Target::Provider(etw_scenarios::provider());
    fixture.kernel.enable(session, target, parameters).unwrap();
    fixture.burst(5);
    let report = fixture.kernel.stop_session(session).unwrap();
    assert_eq!((report.events, report.stacks_not_captured), (5, 5));
    fixture.leave();
}

// V76
#[test]
fn memory_keeps_the_newest_and_never_fails() {
    let fixture = Fixture::new(KernelConfig::default());
    let session = fixture
        .session(SessionConfig { output: Output::Memory { buffers: 4 }, ..fixture.config("ring") });
    fixture.burst(2000);
    assert_eq!(fixture.failed(), 0);
    fixture.kernel.flush_session(session).unwrap();
    let report = fixture.kernel.stop_session(session).unwrap();
    assert_eq!((report.events, report.events_lost), (2000, 0));
    let kept = numbers(&report.file, 1);
    assert!(kept.len() < 2000);
    let first = 2000 - u32::try_from(kept.len()).unwrap();
    assert!(kept.into_iter().eq(first..2000));
    fixture.leave();
}

// ETW-6.4.2, ETW-6.4.8
#[test]
fn conflicting_modes_are_refused() {
    let fixture = Fixture::new(KernelConfig::default());
    let base = || fixture.config("refused");
    for (config, part) in [
        (
            SessionConfig { output: Output::Consumers, ..base() },
            "neither a file nor real-time delivery",
        ),
        (
            SessionConfig {
                output: Output::Memory { buffers: 4 },
                real_time: Some(RealTime::default()),
                ..base()
            },
            "cannot have real-time consumers",
        ),
        (SessionConfig { private: Some(1), independent: true, ..base() }, "nor independent"),
        (SessionConfig { clock: ClockType::CpuCycles, ..base() }, "timestamps"),
    ] {
        let error = fixture.kernel.start_session(config).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let file = fixture.kernel.start_session(base()).unwrap();
    let error = fixture.kernel.open_consumer(file).err().unwrap().to_string();
    assert!(error.contains("does not deliver in real time"), "{error}");
    fixture.leave();
}
