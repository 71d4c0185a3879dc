//! Tests the runtime's filters beyond level and keywords, and filters with groups.

use crate::common::{self, CLIENT};
use etl_file::Trace;
use etw_sample_interface::{PROVIDER_GROUP, keyword};
use standin_kernel::{
    ControlError, Device, Driver, EnableParameters, EventFilters, EventIdFilter, EventNameFilter,
    GroupDenial, Guid, Kernel, KernelConfig, KernelError, SessionConfig, SessionHandle, Target,
    UnspecifiedBehaviour,
};

struct Fixture {
    kernel: Kernel,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self::with_config(KernelConfig::default())
    }

    fn with_config(config: KernelConfig) -> Self {
        Self { kernel: Kernel::with_config(config), folder: tempfile::tempdir().unwrap() }
    }

    fn config(&self, name: &str) -> SessionConfig {
        SessionConfig::to_file(name, self.folder.path().join(format!("{name}.etl")))
    }

    fn session(&self, name: &str) -> SessionHandle {
        self.kernel.start_session(self.config(name)).unwrap()
    }

    fn load(&self) -> (Driver, Device) {
        let (driver, device) = common::started(&self.kernel, &common::sample());
        (driver, device)
    }

    /// Loads the sample driver, writes to its device once, and unloads it.
    fn use_driver(&self) {
        let (driver, device) = self.load();
        request(&device);
        common::leave(driver, &device);
    }

    fn refused(
        &self,
        session: SessionHandle,
        target: Target,
        parameters: EnableParameters,
    ) -> String {
        match self.kernel.enable(session, target, parameters) {
            Err(KernelError::Control(error @ ControlError::InvalidParameter(_))) => {
                error.to_string()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Stops a session and returns the names or ids of its events.
    fn recorded(&self, session: SessionHandle) -> Vec<String> {
        let report = self.kernel.stop_session(session).unwrap();
        let trace = Trace::open(&report.file).unwrap();
        trace
            .events()
            .map(|event| {
                let event = etl_file::decode(event, &etl_file::Catalog::default());
                let id = event.descriptor.id;
                event.event_name.map_or_else(|| id.to_string(), |name| name.as_ref().to_owned())
            })
            .collect()
    }
}

fn provider() -> Target {
    Target::Provider(etw_scenarios::provider())
}

fn group() -> Target {
    Target::Group(PROVIDER_GROUP.parse().unwrap())
}

fn everything() -> EnableParameters {
    EnableParameters { level: 5, ..EnableParameters::default() }
}

/// Sends one write request.
fn request(device: &Device) {
    let file = device.open(CLIENT).unwrap();
    file.write(b"x").unwrap();
    file.close().unwrap();
}

// R-G1
#[test]
fn enabling_a_groups_guid_as_a_provider_has_no_effect() {
    let fixture = Fixture::new();
    let session = fixture.session("not a provider");
    let target = Target::Provider(PROVIDER_GROUP.parse().unwrap());
    fixture.kernel.enable(session, target, everything()).unwrap();
    fixture.use_driver();
    assert_eq!(fixture.recorded(session), [""; 0]);
}

// R-G5
#[test]
fn enabling_a_provider_and_its_group_records_one_copy() {
    let fixture = Fixture::new();
    let session = fixture.session("both");
    let enable = |target, match_any| {
        let parameters = EnableParameters { level: 4, match_any, ..EnableParameters::default() };
        fixture.kernel.enable(session, target, parameters).unwrap();
    };
    enable(group(), keyword::REQUEST);
    enable(provider(), keyword::REQUEST | keyword::POWER);
    fixture.use_driver();
    // There is one write, one entry into D0, and one exit from D0.
    assert_eq!(fixture.recorded(session), ["5", "Write", "6"]);
}

// R-G3
#[test]
fn a_disallowed_provider_is_not_reached_by_a_group_and_the_list_can_change() {
    let fixture = Fixture::new();
    let (by_group, other) = (fixture.session("by group"), fixture.session("other"));
    let requests =
        EnableParameters { level: 4, match_any: keyword::REQUEST, ..EnableParameters::default() };
    let list = vec![etw_scenarios::provider()];
    fixture.kernel.set_disallow_list(by_group, list.clone()).unwrap();
    fixture.kernel.enable(by_group, group(), requests.clone()).unwrap();
    fixture.kernel.enable(other, group(), requests.clone()).unwrap();
    let (driver, device) = fixture.load();
    request(&device);
    // The list is removed while the session is running, and then set again.
    let before = fixture.kernel.statistics().notifications;
    fixture.kernel.set_disallow_list(by_group, vec![]).unwrap();
    assert_eq!(fixture.kernel.statistics().notifications - before, 1);
    request(&device);
    fixture.kernel.set_disallow_list(by_group, list.clone()).unwrap();
    fixture.kernel.set_disallow_list(by_group, list).unwrap();
    assert_eq!(fixture.kernel.statistics().notifications - before, 2);
    request(&device);
    // The list does not apply to a provider that the session enables directly.
    fixture.kernel.enable(by_group, provider(), requests).unwrap();
    request(&device);
    common::leave(driver, &device);
    assert_eq!(fixture.recorded(by_group), ["Write", "Write"]);
    assert_eq!(fixture.recorded(other), ["Write"; 4]);
    let gone = fixture.kernel.set_disallow_list(other, vec![]);
    assert!(matches!(gone, Err(KernelError::Control(ControlError::NotRunning))));
}

// R-G4
#[test]
fn a_private_session_controls_no_group_and_receives_no_events_from_drivers() {
    let fixture = Fixture::new();
    let private = |name: &str| {
        let config = SessionConfig { private: Some(CLIENT.process), ..fixture.config(name) };
        fixture.kernel.start_session(config)
    };
    let session = private("private").unwrap();
    let error = fixture.refused(session, group(), everything());
    assert!(error.contains("a private session cannot enable or disable a group"), "{error}");
    fixture.kernel.enable(session, provider(), everything()).unwrap();
    let before = fixture.kernel.statistics().notifications;
    fixture.use_driver();
    assert_eq!(fixture.kernel.statistics().notifications, before);
    assert_eq!(fixture.recorded(session), [""; 0]);
    // R-O8: a process can have four private sessions.
    for name in ["a", "b", "c", "d"] {
        private(name).unwrap();
    }
    let fifth = private("e").unwrap_err().to_string();
    assert!(fifth.contains("4 private sessions of process 10"), "{fifth}");
}

// R-G4
#[test]
fn filters_by_id_and_name_are_not_for_groups() {
    let fixture = Fixture::new();
    let session = fixture.session("filters");
    let parameters = EnableParameters {
        events: EventFilters { ids: Some(EventIdFilter { keep: true, ids: vec![1] }), names: None },
        ..everything()
    };
    let error = fixture.refused(session, group(), parameters);
    assert!(error.contains("do not apply to groups"), "{error}");
}

// R-O10
#[test]
fn sessions_filter_by_id_and_by_name() {
    let fixture = Fixture::new();
    let ids =
        |keep| EventFilters { ids: Some(EventIdFilter { keep, ids: vec![1, 2] }), names: None };
    let names = |keep| EventFilters {
        ids: None,
        names: Some(EventNameFilter {
            keep,
            level: 5,
            match_any: 0,
            match_all: 0,
            names: vec!["Write".to_owned(), "FileCreated".to_owned()],
        }),
    };
    let sessions = [ids(true), ids(false), names(true), names(false)].map(|events| {
        let name = format!("{events:?}").replace(|letter: char| !letter.is_alphanumeric(), "");
        let session = fixture.session(&name);
        let parameters = EnableParameters { events, ..everything() };
        fixture.kernel.enable(session, provider(), parameters).unwrap();
        session
    });
    fixture.use_driver();
    let described = ["FileCreated", "WriteData", "Write", "FileCleanedUp", "FileClosed"];
    let [kept_ids, dropped_ids, kept_names, dropped_names] =
        sessions.map(|session| fixture.recorded(session));
    let ids_of = |recorded: &[String]| -> Vec<String> {
        let ids = recorded.iter().filter(|name| name.parse::<u16>().is_ok());
        ids.cloned().collect()
    };
    let names_of = |recorded: &[String]| -> Vec<String> {
        let names = recorded.iter().filter(|name| name.parse::<u16>().is_err());
        names.cloned().collect()
    };
    assert_eq!(ids_of(&kept_ids), ["1", "2"]);
    assert_eq!(ids_of(&dropped_ids), ["4", "5", "6"]);
    assert_eq!(names_of(&kept_ids), described, "ids are of events in a manifest");
    assert_eq!(names_of(&kept_names), ["FileCreated", "Write"]);
    assert_eq!(names_of(&dropped_names), ["WriteData", "FileCleanedUp", "FileClosed"]);
    assert_eq!(
        ids_of(&kept_names),
        ["1", "4", "5", "6", "2"],
        "names are of events that describe themselves"
    );
}

// R-G2
#[test]
fn a_driver_that_may_not_join_its_group_works_outside_it() {
    for denial in [GroupDenial::SkipsAllTraits, GroupDenial::SkipsGroup] {
        let fixture = Fixture::with_config(KernelConfig {
            unspecified_behaviour: UnspecifiedBehaviour {
                denied_group: denial,
                ..UnspecifiedBehaviour::default()
            },
            ..KernelConfig::default()
        });
        let guid: Guid = PROVIDER_GROUP.parse().unwrap();
        fixture.kernel.deny_group(guid);
        let (by_group, direct) = (fixture.session("by group"), fixture.session("direct"));
        fixture.kernel.enable(by_group, group(), everything()).unwrap();
        fixture.kernel.enable(direct, provider(), everything()).unwrap();
        fixture.use_driver();
        let output = fixture.kernel.debug_output().concat();
        assert!(
            output.contains("EtwSetInformation(EventProviderSetTraits) returned")
                && output.contains("STATUS_ACCESS_DENIED"),
            "{output}"
        );
        assert_eq!(fixture.recorded(by_group), [""; 0]);
        let recorded = fixture.recorded(direct);
        assert!(recorded.contains(&"Write".to_owned()), "{recorded:?}");
        assert!(recorded.contains(&"1".to_owned()), "{recorded:?}");
    }
}
