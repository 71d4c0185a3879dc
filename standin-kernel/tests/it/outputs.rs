//! Tests the outputs of sessions and the contents of their files.

use crate::common::{self, CLIENT};
use etl_file::{Trace, log_file_mode};
use etl_fixtures::decoders;
use etw_sample_interface::keyword;
use standin_kernel::{
    EnableParameters, Kernel, KernelError, Output, SessionConfig, SessionHandle, SessionReport,
    Target,
};

/// The number of events that the driver writes.
const WRITES: u64 = 200;

struct Fixture {
    kernel: Kernel,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { kernel: Kernel::new(), folder: tempfile::tempdir().unwrap() }
    }

    fn start(&self, file: &str, output: Output) -> Result<SessionHandle, KernelError> {
        let config = SessionConfig {
            buffer_kb: 4,
            output,
            ..SessionConfig::to_file(file, self.folder.path().join(file))
        };
        self.kernel.start_session(config)
    }

    /// Starts a session that receives one event for each write to the sample driver's device.
    fn session(&self, file: &str, output: Output) -> SessionHandle {
        let session = self.start(file, output).unwrap();
        let parameters = EnableParameters {
            level: 4,
            match_any: keyword::REQUEST,
            ..EnableParameters::default()
        };
        let target = Target::Provider(etw_scenarios::provider());
        self.kernel.enable(session, target, parameters).unwrap();
        session
    }

    /// Causes the driver's events, and calls `between` after each write.
    fn drive(&self, mut between: impl FnMut(u64)) {
        let (driver, device) = common::started(&self.kernel, &common::sample());
        let file = device.open(CLIENT).unwrap();
        for number in 0..WRITES {
            let length = usize::try_from(number + 1).unwrap();
            file.write(&vec![1; length]).unwrap();
            between(number);
        }
        file.close().unwrap();
        common::leave(driver, &device);
    }

    fn stop(&self, session: SessionHandle) -> SessionReport {
        self.kernel.stop_session(session).unwrap()
    }
}

/// Returns the lengths of the writes in a file, which count up from 1. Third-party decoders must
/// read the same values.
fn lengths(file: &std::path::Path) -> Vec<u64> {
    let trace = Trace::open(file).unwrap();
    assert_eq!(trace.damages(), []);
    assert_eq!(decoders::assert_third_party_decoders_agree(file), trace.events().count());
    let events = trace.events_by_time().into_iter();
    events
        .map(|event| u64::from_le_bytes(event.record.user_data[..8].try_into().unwrap()))
        .collect()
}

fn mode(file: &std::path::Path) -> (u32, u32) {
    let trace = Trace::open(file).unwrap();
    let session = &trace.header().session;
    (session.log_file_mode & 0xFFF, session.maximum_file_size)
}

// R-O12
#[test]
fn a_sequential_file_holds_everything() {
    let fixture = Fixture::new();
    let session = fixture.session("sequential.etl", Output::Sequential { max_kb: None });
    fixture.drive(|_| ());
    let report = fixture.stop(session);
    assert_eq!(lengths(&report.file), (1..=WRITES).collect::<Vec<_>>());
    assert_eq!((report.events, report.events_lost), (WRITES, 0));
    assert!(!report.stopped_by_itself);
    assert_eq!(mode(&report.file), (log_file_mode::SEQUENTIAL, 0));
}

// R-O12, R-O11, R-E2
#[test]
fn a_session_stops_when_its_file_has_its_size() {
    let fixture = Fixture::new();
    let output = Output::Sequential { max_kb: Some(16) };
    let session = fixture.session("limited.etl", output);
    let mut notifications = Vec::new();
    fixture.drive(|_| notifications.push(fixture.kernel.statistics().notifications));
    let report = fixture.stop(session);
    assert!(report.stopped_by_itself);
    let kept = lengths(&report.file);
    assert_eq!(kept, (1..=report.events).collect::<Vec<_>>());
    assert!(report.events < WRITES);
    // The event that found the file full is counted as lost. Later events were no longer enabled.
    assert_eq!(report.events_lost, 1);
    assert_eq!(report.buffers_written, 4);
    // The provider was notified once, by the write that filled the file.
    let (first, last) = (notifications[0], notifications[notifications.len() - 1]);
    assert_eq!(last - first, 1);
    assert_eq!(notifications[usize::try_from(report.events).unwrap()], last);
}

// R-O12
#[test]
fn a_circular_file_holds_the_last_events() {
    let fixture = Fixture::new();
    let session = fixture.session("circular.etl", Output::Circular { max_kb: 16 });
    fixture.drive(|_| ());
    let report = fixture.stop(session);
    let kept = lengths(&report.file);
    let first = kept[0];
    assert!(first > 1, "the oldest events were overwritten");
    assert_eq!(kept, (first..=WRITES).collect::<Vec<_>>());
    assert_eq!((report.events, report.events_lost), (WRITES, 0));
    assert_eq!(mode(&report.file), (log_file_mode::CIRCULAR, 16));
    assert_eq!(std::fs::metadata(&report.file).unwrap().len(), 16 * 1024);
}

// R-O12
#[test]
fn new_files_follow_one_another() {
    let fixture = Fixture::new();
    let session = fixture.session("new-%d.etl", Output::NewFile { max_kb: 12 });
    fixture.drive(|_| ());
    let report = fixture.stop(session);
    assert!(report.files.len() > 2, "{:?}", report.files);
    assert!(report.files[1].ends_with("new-2.etl"));
    let all: Vec<_> = report.files.iter().flat_map(|file| lengths(file)).collect();
    assert_eq!(all, (1..=WRITES).collect::<Vec<_>>());
    for file in &report.files {
        assert!(std::fs::metadata(file).unwrap().len() <= 12 * 1024);
        assert_eq!(mode(file), (log_file_mode::NEWFILE, 12));
    }
}

// R-O12
#[test]
fn a_session_in_memory_writes_its_buffers_at_a_flush() {
    let fixture = Fixture::new();
    let session = fixture.session("memory.etl", Output::Memory { buffers: 3 });
    let file = fixture.folder.path().join("memory.etl");
    fixture.drive(|number| {
        if number == 10 {
            assert!(!file.exists(), "nothing is written by itself");
            fixture.kernel.flush_session(session).unwrap();
            assert_eq!(lengths(&file), (1..=11).collect::<Vec<_>>());
        }
    });
    fixture.kernel.flush_session(session).unwrap();
    let kept = lengths(&file);
    assert!(kept[0] > 1);
    assert_eq!(kept, (kept[0]..=WRITES).collect::<Vec<_>>());
    assert_eq!(mode(&file), (log_file_mode::BUFFERING, 0));
    let report = fixture.stop(session);
    assert_eq!((report.events, report.events_lost), (WRITES, 0));
    assert_eq!(report.files, [file]);
}

#[test]
fn invalid_sizes_and_names_are_refused() {
    let fixture = Fixture::new();
    for (file, output, sentence) in [
        ("a.etl", Output::Circular { max_kb: 4 }, "at least 8 KB"),
        ("b.etl", Output::Sequential { max_kb: Some(7) }, "at least 8 KB"),
        ("c.etl", Output::NewFile { max_kb: 64 }, "must contain %d"),
        ("d.etl", Output::Memory { buffers: 1 }, "at least two buffers"),
    ] {
        let error = fixture.start(file, output).unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
    }
}
