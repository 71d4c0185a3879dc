//! Tests the sample driver's requests, parameters and device removal.

use crate::common;
use etl_file::Trace;
use etw_sample_interface::{
    Burst, IOCTL_BURST, IOCTL_GET_STATISTICS, IOCTL_SET_TIMER, IOCTL_WAIT, IOCTL_WAKE, Statistics,
    TAG_PARAMETER, keyword,
};
use standin_kernel::{
    Device, Driver, EnableParameters, File, Identity, Kernel, NtStatus, SessionConfig,
    SessionHandle, Target,
};
use zerocopy::{FromBytes, IntoBytes};

const CLIENT: Identity = Identity { process: 30, thread: 31 };

/// The driver with an open device, and a session that records all its events.
struct Fixture {
    kernel: Kernel,
    folder: tempfile::TempDir,
    session: SessionHandle,
    driver: Driver,
    device: Device,
    file: File,
}

impl Fixture {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(prepare: impl FnOnce(&Kernel)) -> Self {
        let kernel = Kernel::new();
        let folder = tempfile::tempdir().unwrap();
        let config = SessionConfig::to_file("driver", folder.path().join("driver.etl"));
        let session = kernel.start_session(config).unwrap();
        let everything = EnableParameters { level: 5, ..EnableParameters::default() };
        let provider = Target::Provider(etw_scenarios::provider());
        kernel.enable(session, provider, everything).unwrap();
        prepare(&kernel);
        let (driver, device) = common::started(&kernel, &common::sample());
        let file = device.open(CLIENT).unwrap();
        Self { kernel, folder, session, driver, device, file }
    }

    fn control(&self, code: u32, input: &[u8], output: usize) -> (NtStatus, Vec<u8>) {
        let done = self.file.device_control(code, input, output).unwrap();
        (done.status, done.output)
    }

    fn statistics(&self) -> Statistics {
        let (status, output) = self.control(IOCTL_GET_STATISTICS, &[], size_of::<Statistics>());
        assert_eq!(status, NtStatus::SUCCESS);
        Statistics::read_from_bytes(&output).unwrap()
    }

    /// Closes the file, removes the device, unloads the driver, and returns the trace.
    fn leave(self) -> Trace {
        self.file.close().unwrap();
        self.device.remove().unwrap();
        self.driver.unload().unwrap();
        finish(&self.kernel, self.session, &self.folder)
    }
}

fn finish(kernel: &Kernel, session: SessionHandle, _folder: &tempfile::TempDir) -> Trace {
    assert_eq!(kernel.warnings(), []);
    let report = kernel.stop_session(session).unwrap();
    Trace::open(report.file).unwrap()
}

#[test]
fn wake_completes_waits_in_order() {
    let fixture = Fixture::new();
    let wait = || fixture.file.start_device_control(IOCTL_WAIT, &[], 8).unwrap();
    let (first, second) = (wait(), wait());
    assert_eq!(first.try_finish().unwrap(), None);
    assert_eq!(fixture.control(IOCTL_WAKE, &[], 0).0, NtStatus::SUCCESS);
    let woken = first.finish().unwrap();
    assert_eq!((woken.status, woken.output), (NtStatus::SUCCESS, 1_u64.to_le_bytes().to_vec()));
    assert_eq!(second.try_finish().unwrap(), None);
    // A request can wait in every power state of the device.
    fixture.device.power_cycle().unwrap();
    assert_eq!(fixture.control(IOCTL_WAKE, &[], 0).0, NtStatus::SUCCESS);
    assert_eq!(second.finish().unwrap().output, 2_u64.to_le_bytes());
    assert_eq!(fixture.statistics().woken, 2);
    fixture.leave();
}

#[test]
fn surprise_removal_is_traced_and_cancels_waits() {
    let fixture = Fixture::new();
    let waits = fixture.file.start_device_control(IOCTL_WAIT, &[], 8).unwrap();
    let run = [1, 0, 0, 0];
    assert_eq!(fixture.control(IOCTL_SET_TIMER, &run, 0).0, NtStatus::SUCCESS);
    fixture.device.surprise_remove().unwrap();
    assert_eq!(waits.finish().unwrap().status, NtStatus::CANCELLED);
    fixture.file.close().unwrap();
    fixture.driver.unload().unwrap();
    let trace = finish(&fixture.kernel, fixture.session, &fixture.folder);
    let pulled_out = |event: &&etl_file::Event| event.record.descriptor.id == 7;
    assert_eq!(trace.events().filter(pulled_out).count(), 1);
}

/// Returns the traits of the first event.
fn traits(trace: &Trace) -> etl_file::decode::ProviderTraits {
    let event = trace.events().next().unwrap();
    etl_file::decode::ProviderTraits::parse(event.record.item(12).unwrap()).unwrap()
}

// R-T5: custom traits whose value is determined at run time.
#[test]
fn every_event_carries_the_tag_from_the_registry() {
    let service = "etw_sample_driver";
    let tagged = Fixture::with(|kernel| kernel.set_parameter(service, TAG_PARAMETER, "lab 7"));
    let found = traits(&tagged.leave());
    let tag: Vec<u8> = "lab 7".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(found.others.contains(&(130, tag)), "{:?}", found.others);
    let without = |prepare: &dyn Fn(&Kernel)| {
        let found = traits(&Fixture::with(|kernel| prepare(kernel)).leave());
        assert!(found.others.iter().all(|(kind, _)| *kind != 130), "{:?}", found.others);
    };
    without(&|_| ());
    without(&|kernel| kernel.set_parameter(service, TAG_PARAMETER, "x".repeat(33).as_str()));
    without(&|kernel| kernel.set_parameter(service, TAG_PARAMETER, 7_u32));
}

#[test]
fn statistics_report_the_composite_and_failed_writes() {
    let fixture = Fixture::new();
    let before = fixture.statistics();
    assert_eq!((before.enabled, before.level, before.match_any), (1, 5, u64::MAX));
    assert_eq!(before.events_failed, 0);
    let provider = Target::Provider(etw_scenarios::provider());
    let less = EnableParameters {
        level: 4,
        match_any: keyword::REQUEST | keyword::LOAD,
        match_all: keyword::LOAD,
        ..EnableParameters::default()
    };
    fixture.kernel.enable(fixture.session, provider, less).unwrap();
    let after = fixture.statistics();
    assert_eq!(after.notifications, before.notifications + 1);
    assert_eq!((after.level, after.match_any, after.match_all), (4, 17, 16));
    fixture.kernel.disable(fixture.session, provider, None).unwrap();
    assert_eq!(fixture.statistics().enabled, 0);
    let all = EnableParameters { level: 5, ..EnableParameters::default() };
    let tight = SessionConfig {
        buffer_kb: 4,
        maximum_buffers: 2,
        ..SessionConfig::to_file("tight", fixture.folder.path().join("tight.etl"))
    };
    let tight = fixture.kernel.start_session(tight).unwrap();
    fixture.kernel.enable(tight, provider, all).unwrap();
    fixture.kernel.hold_writer(tight, true).unwrap();
    let burst = Burst { count: 200, sender: 1 };
    fixture.control(IOCTL_BURST, burst.as_bytes(), 0);
    let lost = fixture.statistics();
    assert!(lost.failed_without_memory > 0);
    assert_eq!(lost.failed_without_memory, lost.events_failed);
    fixture.leave();
}
