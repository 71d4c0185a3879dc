//! Tests the notifications that a provider receives: combined enable info, time and source.

use crate::common;
use standin_kernel::{
    Driver, EnableParameters, FilterData, Guid, Kernel, KernelError, SessionConfig, SessionHandle,
    Target,
};

const SOURCE: &str = "0000000a-0000-0000-0000-000000000000";

struct Fixture {
    kernel: Kernel,
    folder: tempfile::TempDir,
    read: usize,
}

impl Fixture {
    fn new() -> Self {
        Self { kernel: Kernel::new(), folder: tempfile::tempdir().unwrap(), read: 0 }
    }

    fn target() -> Target {
        let guid: Guid = "7c1a1b2e-0e5f-4b7c-9c62-5d0a7a3f10c4".parse().unwrap();
        Target::Provider(guid)
    }

    fn load(&self) -> Driver {
        self.kernel.load_as(&common::rules_driver(), "watched").unwrap()
    }

    fn session(&self, name: &str) -> SessionHandle {
        let file = self.folder.path().join(format!("{name}.etl"));
        self.kernel.start_session(SessionConfig::to_file(name, file)).unwrap()
    }

    fn enable(&self, session: SessionHandle, level: u8, match_any: u64, match_all: u64) {
        self.kernel
            .enable(
                session,
                Self::target(),
                EnableParameters {
                    level,
                    match_any,
                    match_all,
                    source: SOURCE.parse().ok(),
                    ..EnableParameters::default()
                },
            )
            .unwrap();
    }

    /// Returns the lines that the driver has printed since the last call, one per notification.
    fn new_lines(&mut self) -> Vec<String> {
        let output = self.kernel.debug_output().concat();
        let lines: Vec<String> = output.lines().map(str::to_owned).collect();
        let new = lines[self.read..].to_vec();
        self.read = lines.len();
        new
    }
}

// R-E1, R-E4, R-E3, R-E2
#[test]
fn sessions_are_composed_and_decomposed() {
    let mut fixture = Fixture::new();
    let driver = fixture.load();
    assert_eq!(fixture.new_lines(), [""; 0], "nobody enables it yet");
    let (a, b) = (fixture.session("a"), fixture.session("b"));
    fixture.enable(a, 3, 0b0001, 0b0111);
    assert_eq!(fixture.new_lines(), ["code 1 level 3 any 1 all 7 source a filter 0"]);
    fixture.enable(b, 1, 0b0100, 0b0011);
    assert_eq!(fixture.new_lines(), ["code 1 level 3 any 5 all 3 source a filter 0"]);
    // A session replaces its previous enable info.
    fixture.enable(a, 2, 0b1000, 0b1001);
    assert_eq!(fixture.new_lines(), ["code 1 level 2 any c all 1 source a filter 0"]);
    // One session disables the provider. The notification is an enable with the other session's
    // enable info.
    fixture.kernel.disable(a, Fixture::target(), None).unwrap();
    assert_eq!(fixture.new_lines(), ["code 1 level 1 any 4 all 3 source 0 filter 0"]);
    // The last session stops. The notification is a disable without a source.
    fixture.kernel.stop_session(b).unwrap();
    assert_eq!(fixture.new_lines(), ["code 0 level 0 any 0 all 0 source 0 filter 0"]);
    fixture.kernel.stop_session(a).unwrap();
    assert_eq!(fixture.new_lines(), [""; 0]);
    driver.unload().unwrap();
}

// R-E9, R-E2
#[test]
fn an_already_enabled_provider_is_notified_at_registration() {
    let mut fixture = Fixture::new();
    let session = fixture.session("early");
    fixture.enable(session, 5, 0x10, 0);
    let driver = fixture.load();
    assert_eq!(fixture.new_lines(), ["code 1 level 5 any 10 all 0 source 0 filter 0"]);
    driver.unload().unwrap();
    fixture.kernel.stop_session(session).unwrap();
}

// R-O3
#[test]
fn level_0_and_match_any_0_arrive_as_the_widest_values() {
    let mut fixture = Fixture::new();
    let driver = fixture.load();
    let session = fixture.session("all");
    fixture.enable(session, 0, 0, 0);
    assert_eq!(
        fixture.new_lines(),
        ["code 1 level 255 any ffffffffffffffff all 0 source a filter 0"]
    );
    driver.unload().unwrap();
}

// R-E5, R-E1
#[test]
fn capture_state_notifications_carry_the_composite() {
    let mut fixture = Fixture::new();
    let driver = fixture.load();
    let session = fixture.session("rundown");
    fixture.enable(session, 4, 1, 0);
    fixture.new_lines();
    fixture.kernel.capture_state(session, Fixture::target(), SOURCE.parse().ok()).unwrap();
    assert_eq!(fixture.new_lines(), ["code 2 level 4 any 1 all 0 source a filter 0"]);
    driver.unload().unwrap();
}

// R-E6
#[test]
fn every_sessions_filter_is_passed() {
    let mut fixture = Fixture::new();
    let driver = fixture.load();
    for (name, length, total) in [("a", 3, 27), ("b", 8, 32 + 32)] {
        let session = fixture.session(name);
        fixture
            .kernel
            .enable(
                session,
                Fixture::target(),
                EnableParameters {
                    level: 1,
                    match_any: 1,
                    filter: Some(FilterData { id: 1, version: 0, data: vec![7; length] }),
                    ..EnableParameters::default()
                },
            )
            .unwrap();
        assert_eq!(
            fixture.new_lines(),
            [format!("code 1 level 1 any 1 all 0 source 0 filter {total}")]
        );
    }
    driver.unload().unwrap();
}

// R-O8
#[test]
fn a_ninth_session_is_refused_and_changes_nothing() {
    let mut fixture = Fixture::new();
    let driver = fixture.load();
    for number in 0..8 {
        let session = fixture.session(&format!("s{number}"));
        fixture.enable(session, 1, 1 << number, 0);
    }
    fixture.new_lines();
    let ninth = fixture.session("ninth");
    let refused = fixture.kernel.enable(ninth, Fixture::target(), EnableParameters::default());
    match refused {
        Err(KernelError::Control(error)) => assert!(error.to_string().contains("1450")),
        other => panic!("the ninth session got {other:?}"),
    }
    assert_eq!(fixture.new_lines(), [""; 0]);
    driver.unload().unwrap();
}
