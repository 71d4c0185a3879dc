//! Provider groups: enabling the group enables its members.

use crate::common;
use etl_file::Trace;
use etw_sample_interface::{PROVIDER_GROUP, keyword};
use standin_kernel::{
    EnableParameters, Guid, Identity, Kernel, SessionConfig, SessionHandle, Target,
};

const CLIENT: Identity = Identity { process: 10, thread: 11 };

struct Fixture {
    kernel: Kernel,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { kernel: Kernel::new(), folder: tempfile::tempdir().unwrap() }
    }

    fn session(&self, name: &str) -> SessionHandle {
        let file = self.folder.path().join(name);
        self.kernel.start_session(SessionConfig::to_file(name, file)).unwrap()
    }

    fn enable(&self, session: SessionHandle, target: Target, level: u8, match_any: u64) {
        let parameters = EnableParameters { level, match_any, ..EnableParameters::default() };
        self.kernel.enable(session, target, parameters).unwrap();
    }

    /// Loads the sample driver, writes to its device once, and unloads it.
    fn use_driver(&self) {
        let driver = self.kernel.load(&common::sample()).unwrap();
        let device = driver.add_device().unwrap();
        let file = device.open(CLIENT).unwrap();
        file.write(b"x").unwrap();
        file.close().unwrap();
        device.remove().unwrap();
        driver.unload().unwrap();
    }

    /// Stops a session and returns the levels and keywords of its events.
    fn recorded(&self, session: SessionHandle) -> Vec<(u8, u64)> {
        let report = self.kernel.stop_session(session).unwrap();
        Trace::open(&report.file)
            .unwrap()
            .events()
            .map(|event| {
                let descriptor = event.record.descriptor;
                (descriptor.level, descriptor.keyword)
            })
            .collect()
    }
}

fn group() -> Target {
    let guid: Guid = PROVIDER_GROUP.parse().unwrap();
    Target::Group(guid)
}

fn provider() -> Target {
    Target::Provider(etw_scenarios::provider())
}

// R-G1
#[test]
fn enabling_the_group_enables_its_member() {
    let fixture = Fixture::new();
    let session = fixture.session("group");
    fixture.enable(session, group(), 4, keyword::REQUEST);
    fixture.use_driver();
    assert_eq!(fixture.recorded(session), [(4, keyword::REQUEST)]);
}

// R-G1
#[test]
fn enabling_a_groups_guid_as_a_provider_has_no_effect() {
    let fixture = Fixture::new();
    let session = fixture.session("not a provider");
    let guid: Guid = PROVIDER_GROUP.parse().unwrap();
    fixture.enable(session, Target::Provider(guid), 5, 0);
    fixture.use_driver();
    assert_eq!(fixture.recorded(session), []);
}

// R-G5
#[test]
fn enabling_a_provider_and_its_group_records_one_copy() {
    let fixture = Fixture::new();
    let session = fixture.session("both");
    fixture.enable(session, group(), 4, keyword::REQUEST);
    fixture.enable(session, provider(), 4, keyword::REQUEST | keyword::POWER);
    fixture.use_driver();
    let recorded = fixture.recorded(session);
    let requests = recorded.iter().filter(|event| **event == (4, keyword::REQUEST)).count();
    let power = recorded.iter().filter(|event| **event == (4, keyword::POWER)).count();
    // There is one write, one entry into D0, and one exit from D0.
    assert_eq!((requests, power, recorded.len()), (1, 2, 3));
}

// R-G5, R-O10
#[test]
fn sessions_that_enable_the_provider_in_different_ways_are_routed_separately() {
    let fixture = Fixture::new();
    let by_group = fixture.session("by group");
    let direct = fixture.session("direct");
    fixture.enable(by_group, group(), 5, keyword::REQUEST);
    fixture.enable(direct, provider(), 4, keyword::LIFECYCLE);
    fixture.use_driver();
    let by_group = fixture.recorded(by_group);
    assert!(!by_group.is_empty());
    assert!(by_group.iter().all(|(_, keyword)| *keyword == keyword::REQUEST));
    // The driver was loaded, its device was added, and the driver was unloaded.
    assert_eq!(fixture.recorded(direct), [(4, keyword::LIFECYCLE); 3]);
}
