//! Tests the results of the ETW routines: every documented status, caused directly or by fault
//! injection, and every outcome of unspecified behavior.

use crate::common;
use etl_file::Trace;
use etw_sample_interface::PROVIDER_GROUP;
use standin_kernel::{
    EnableParameters, Fault, FilterData, Guid, Identity, ImplicitActivity, Kernel, KernelConfig,
    KernelError, NtStatus, RealTime, SessionConfig, SessionHandle, Target, UnspecifiedBehaviour,
};

fn provider() -> Target {
    let guid: Guid = "7c1a1b2e-0e5f-4b7c-9c62-5d0a7a3f10c4".parse().unwrap();
    Target::Provider(guid)
}

/// Returns level 4 and keyword 1, with a filter.
fn parameters() -> EnableParameters {
    EnableParameters {
        level: 4,
        match_any: 1,
        filter: Some(FilterData { id: 1, version: 0, data: vec![1, 2, 3] }),
        ..EnableParameters::default()
    }
}

struct Fixture {
    kernel: Kernel,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new(unspecified_behaviour: UnspecifiedBehaviour) -> Self {
        Self {
            kernel: Kernel::with_config(KernelConfig {
                unspecified_behaviour,
                ..KernelConfig::default()
            }),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn config(&self, name: &str) -> SessionConfig {
        SessionConfig {
            buffer_kb: 4,
            ..SessionConfig::to_file(name, self.folder.path().join(format!("{name}.etl")))
        }
    }

    fn session(&self, config: SessionConfig) -> SessionHandle {
        let session = self.kernel.start_session(config).unwrap();
        self.kernel.enable(session, provider(), parameters()).unwrap();
        session
    }

    /// Loads and unloads the rules driver as a service. Returns the lines that it printed.
    fn run(&self, service: &str) -> Vec<String> {
        let driver = self.kernel.load_as(&common::rules_driver(), service).unwrap();
        driver.unload().unwrap();
        let printed = self.kernel.debug_output().concat();
        printed.lines().map(str::to_owned).collect()
    }
}

#[test]
fn each_routine_returns_the_documented_statuses() {
    let fixture = Fixture::new(UnspecifiedBehaviour::default());
    fixture.session(fixture.config("results"));
    let expected = [
        ("register without a slot", NtStatus::INVALID_PARAMETER), // ETW-1.3.4
        ("register", NtStatus::SUCCESS),                          // ETW-1.3.3
        ("write without a handle", NtStatus::INVALID_HANDLE),     // ETW-1.3.14
        ("write", NtStatus::SUCCESS),
        ("write an event that no session enables", NtStatus::SUCCESS), // ETW-1.3.13
        ("write 128 data descriptors", NtStatus::SUCCESS),             // ETW-1.1.12
        ("write 129 data descriptors", NtStatus::INVALID_PARAMETER),   // ETW-1.3.15
        ("write no event", NtStatus::INVALID_PARAMETER),               // ETW-1.3.16
        // V75: the event, including its 80-byte header, fills a 4 KB buffer with a 72-byte header.
        ("write 3944 bytes", NtStatus::SUCCESS), // ETW-6.2.2
        ("write 3945 bytes", NtStatus::BUFFER_OVERFLOW),
        ("write 8000 bytes", NtStatus::BUFFER_OVERFLOW), // ETW-1.3.18
        ("write 70000 bytes", NtStatus::INTEGER_OVERFLOW), // ETW-1.3.17
        ("set traits without a handle", NtStatus::INVALID_HANDLE), // ETW-1.3.8
        ("set null traits with a length", NtStatus::INVALID_PARAMETER), // ETW-1.3.10
        ("set cut traits", NtStatus::INVALID_PARAMETER), // ETW-4.3.1
        ("set an unknown class", NtStatus::INVALID_DEVICE_REQUEST), // ETW-1.3.8
        ("track the binary", NtStatus::SUCCESS),
        ("use types by two bytes", NtStatus::INVALID_PARAMETER), // ETW-1.3.11
        ("use types by 2", NtStatus::INVALID_PARAMETER),
        ("use types", NtStatus::SUCCESS),
        ("set traits", NtStatus::SUCCESS),
        ("enabled without a handle", NtStatus(0)), // ETW-1.3.25
        ("enabled", NtStatus(1)),
        ("enabled beyond the level", NtStatus(0)),
        ("enabled beyond the keywords", NtStatus(0)),
        ("enabled at all", NtStatus(1)), // ETW-1.3.27
        ("event enabled beyond the level", NtStatus(0)),
        ("get an activity", NtStatus::UNSUCCESSFUL), // O11: the thread is a system thread
        ("an unknown activity code", NtStatus::INVALID_PARAMETER), // ETW-1.3.28
        ("no activity", NtStatus::INVALID_PARAMETER),
        ("unregister without a handle", NtStatus::INVALID_HANDLE), // ETW-1.3.24
        ("unregister", NtStatus::SUCCESS),
    ];
    let expected: Vec<String> = expected
        .iter()
        .map(|(what, status)| format!("{what}: {:08X}", status.0.cast_unsigned()))
        .collect();
    assert_eq!(fixture.run("results"), expected);
}

// ETW-1.3.12
#[test]
fn without_a_session_writes_succeed() {
    let fixture = Fixture::new(UnspecifiedBehaviour::default());
    assert_eq!(fixture.run("until-it-fails"), ["at last: 00000000"]);
}

// ETW-1.3.19, ETW-1.3.20
#[test]
fn a_writes_status_says_why_no_session_recorded_it() {
    let fixture = Fixture::new(UnspecifiedBehaviour::default());
    let session = fixture.session(fixture.config("held"));
    fixture.kernel.hold_writer(session, true).unwrap();
    assert_eq!(fixture.run("until-it-fails"), ["at last: C0000017"]);

    let fixture = Fixture::new(UnspecifiedBehaviour::default());
    fixture.session(SessionConfig {
        buffer_kb: 4,
        real_time: Some(RealTime { max_stored: 1, max_unread: 1 }),
        ..SessionConfig::to_consumers("stored")
    });
    assert_eq!(fixture.run("until-it-fails"), ["at last: C0000188"]);
}

#[test]
fn every_routine_can_be_made_to_fail_with_any_status() {
    for (routine, line) in [
        ("EtwRegister", "register"),
        ("EtwWriteEx", "write"),
        ("EtwSetInformation", "set traits without a handle"),
        ("EtwActivityIdControl", "get an activity"),
        ("EtwUnregister", "unregister without a handle"),
    ] {
        let fixture = Fixture::new(UnspecifiedBehaviour::default());
        // The first call to `EtwWriteEx` is the call without a handle.
        let after = u32::from(routine == "EtwWriteEx");
        fixture
            .kernel
            .inject(Fault { after, ..Fault::next(routine, NtStatus::INSUFFICIENT_RESOURCES) })
            .unwrap();
        let expected = format!("{line}: C000009A");
        let printed = fixture.run("results");
        assert!(printed.contains(&expected), "{routine}: {printed:#?}");
    }
    let unknown = Kernel::new().inject(Fault::next("EtwSing", NtStatus::NO_MEMORY));
    assert!(matches!(unknown, Err(KernelError::NoSuchFault("EtwSing"))));
}

/// Returns the notification lines of a driver that is loaded after a session has enabled its
/// provider.
fn told(unspecified_behaviour: UnspecifiedBehaviour, parameters: EnableParameters) -> Vec<String> {
    let fixture = Fixture::new(unspecified_behaviour);
    let session = fixture.kernel.start_session(fixture.config("told")).unwrap();
    fixture.kernel.enable(session, provider(), parameters).unwrap();
    fixture.run("well-behaved")
}

// O1
#[test]
fn level_zero_arrives_as_255_or_as_0() {
    for (passes_level_zero, level) in [(false, 255), (true, 0)] {
        let unspecified_behaviour =
            UnspecifiedBehaviour { passes_level_zero, ..UnspecifiedBehaviour::default() };
        let [line] = &told(unspecified_behaviour, EnableParameters::default())[..] else {
            panic!("one notification");
        };
        assert!(line.starts_with(&format!("code 1 level {level} any")), "{line}");
    }
}

// O2
#[test]
fn match_all_applies_without_match_any_or_does_not() {
    for (match_all_without_any, all) in [(true, 6), (false, 0)] {
        let unspecified_behaviour =
            UnspecifiedBehaviour { match_all_without_any, ..UnspecifiedBehaviour::default() };
        let parameters = EnableParameters { match_all: 6, ..EnableParameters::default() };
        let [line] = &told(unspecified_behaviour, parameters)[..] else {
            panic!("one notification");
        };
        assert!(line.contains(&format!(" all {all} ")), "{line}");
    }
}

// O3
#[test]
fn a_second_set_of_traits_fails_with_a_status_of_choice() {
    for status in [NtStatus::INVALID_PARAMETER, NtStatus::ACCESS_DENIED] {
        let fixture = Fixture::new(UnspecifiedBehaviour {
            second_traits: status,
            ..UnspecifiedBehaviour::default()
        });
        let expected = format!("second traits: {:08X}", status.0.cast_unsigned());
        assert_eq!(fixture.run("v31"), [expected]);
    }
}

// O4
#[test]
fn filters_are_passed_at_registration_or_not() {
    for (filters_at_registration, size) in [(true, 27), (false, 0)] {
        let unspecified_behaviour =
            UnspecifiedBehaviour { filters_at_registration, ..UnspecifiedBehaviour::default() };
        let [line] = &told(unspecified_behaviour, parameters())[..] else {
            panic!("one notification");
        };
        assert!(line.ends_with(&format!("filter {size}")), "{line}");
    }
}

// O5
#[test]
fn unregistering_sends_a_disable_or_does_not() {
    for (disabled_at_unregistration, count) in [(false, 1), (true, 2)] {
        let unspecified_behaviour =
            UnspecifiedBehaviour { disabled_at_unregistration, ..UnspecifiedBehaviour::default() };
        let lines = told(unspecified_behaviour, parameters());
        assert_eq!(lines.len(), count, "{lines:?}");
        if disabled_at_unregistration {
            assert!(lines[1].starts_with("code 0 level 0 any 0 all 0 source 0 "));
        }
    }
}

// O7
#[test]
fn the_largest_event_is_configurable() {
    let fixture = Fixture::new(UnspecifiedBehaviour {
        largest_event: 4000,
        ..UnspecifiedBehaviour::default()
    });
    fixture.session(SessionConfig { buffer_kb: 16, ..fixture.config("large") });
    let printed = fixture.run("results");
    assert!(printed.contains(&"write 8000 bytes: C0000095".to_owned()), "{printed:#?}");
}

// O8
#[test]
fn activity_at_dispatch_is_the_interrupted_threads_or_null() {
    let activity: Guid = "11111111-2222-3333-4444-555555555555".parse().unwrap();
    for (choice, expected) in
        [(ImplicitActivity::OfTheThread, activity), (ImplicitActivity::Null, Guid::NULL)]
    {
        let fixture = Fixture::new(UnspecifiedBehaviour {
            activity_at_dispatch: choice,
            ..UnspecifiedBehaviour::default()
        });
        let session = fixture.session(fixture.config("activity"));
        fixture.kernel.set_thread_activity(Identity::SYSTEM, activity);
        fixture.run("v52");
        let report = fixture.kernel.stop_session(session).unwrap();
        let trace = Trace::open(&report.file).unwrap();
        let found: Vec<Guid> = trace.events().map(|event| event.record.activity_id).collect();
        assert_eq!(found, [expected]);
    }
}

// O9, V70
#[test]
fn groups_count_toward_the_limit_of_eight_or_do_not() {
    for group_counts_toward_limit in [false, true] {
        let fixture = Fixture::new(UnspecifiedBehaviour {
            group_counts_toward_limit,
            ..UnspecifiedBehaviour::default()
        });
        let driver = fixture.kernel.load(&common::sample()).unwrap();
        let group = Target::Group(PROVIDER_GROUP.parse().unwrap());
        let direct = Target::Provider(etw_scenarios::provider());
        let all = EnableParameters::default();
        let start = |number: u32| {
            let config = fixture.config(&format!("session {number}"));
            fixture.kernel.start_session(config).unwrap()
        };
        for number in 0..8 {
            let session = start(number);
            fixture.kernel.enable(session, group, all.clone()).unwrap();
        }
        let ninth = start(8);
        for target in [direct, group] {
            let enabled = fixture.kernel.enable(ninth, target, all.clone());
            assert_eq!(enabled.is_err(), group_counts_toward_limit);
            if let Err(error) = enabled {
                assert!(error.to_string().contains("1450"), "{error}");
            }
        }
        driver.unload().unwrap();
    }
}

// O9
#[test]
fn enabling_a_provider_adds_to_its_group_or_replaces_it() {
    for (direct_replaces_group, events) in [(false, 2), (true, 0)] {
        let fixture = Fixture::new(UnspecifiedBehaviour {
            direct_replaces_group,
            ..UnspecifiedBehaviour::default()
        });
        let session = fixture.kernel.start_session(fixture.config("both")).unwrap();
        let target = Target::Group(PROVIDER_GROUP.parse().unwrap());
        let parameters = |level| EnableParameters { level, ..EnableParameters::default() };
        fixture.kernel.enable(session, target, parameters(5)).unwrap();
        let target = Target::Provider(etw_scenarios::provider());
        fixture.kernel.enable(session, target, parameters(1)).unwrap();
        let driver = fixture.kernel.load(&common::sample()).unwrap();
        driver.unload().unwrap();
        assert_eq!(fixture.kernel.stop_session(session).unwrap().events, events);
    }
}

// V71
#[test]
fn at_most_64_sessions_run() {
    let fixture = Fixture::new(UnspecifiedBehaviour::default());
    let start = |number: u32| {
        fixture.kernel.start_session(SessionConfig::to_consumers(format!("session {number}")))
    };
    let sessions: Vec<_> = (0..64).map(|number| start(number).unwrap()).collect();
    let refused = start(64).unwrap_err().to_string();
    assert!(refused.contains("1450"), "{refused}");
    fixture.kernel.stop_session(sessions[3]).unwrap();
    start(65).unwrap();
}

// V78, V77
#[test]
fn one_session_can_ignore_keyword_0() {
    let fixture = Fixture::new(UnspecifiedBehaviour::default());
    let session = |name: &str, ignore_keyword_0| {
        let session = fixture.kernel.start_session(fixture.config(name)).unwrap();
        let parameters = EnableParameters { ignore_keyword_0, ..EnableParameters::default() };
        fixture.kernel.enable(session, provider(), parameters).unwrap();
        session
    };
    let (takes, ignores) = (session("takes", false), session("ignores", true));
    fixture.run("v49-keyword");
    let events = |session| fixture.kernel.stop_session(session).unwrap().events;
    assert_eq!((events(takes), events(ignores)), (1, 0));
}

/// The enable info of a session: level, match-any and match-all keywords.
type EnableInfo = (u8, u64, u64);

// V72, R-E4, R-O3
#[test]
fn every_notification_carries_the_composite() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let fixture = Fixture::new(UnspecifiedBehaviour::default());
        let driver = fixture.kernel.load_as(&common::rules_driver(), "well-behaved").unwrap();
        let mut sessions: Vec<(SessionHandle, Option<EnableInfo>)> = (0..4)
            .map(|number| {
                let config = SessionConfig::to_consumers(format!("{seed} {number}"));
                (fixture.kernel.start_session(config).unwrap(), None)
            })
            .collect();
        for step in 0..40 {
            if sessions.is_empty() {
                break;
            }
            let at = random.usize(..sessions.len());
            let (session, info) = &mut sessions[at];
            let was_enabled = info.is_some();
            let told_before = fixture.kernel.statistics().notifications;
            match random.u8(..10) {
                0..6 => {
                    let level = random.u8(..6);
                    let (match_any, match_all) = (random.u64(..8), random.u64(..4));
                    *info = Some((level, match_any, match_all));
                    let parameters = EnableParameters {
                        level,
                        match_any,
                        match_all,
                        ..EnableParameters::default()
                    };
                    fixture.kernel.enable(*session, provider(), parameters).unwrap();
                }
                6..9 => {
                    *info = None;
                    fixture.kernel.disable(*session, provider(), None).unwrap();
                    assert!(
                        was_enabled || told_before == fixture.kernel.statistics().notifications
                    );
                }
                _ => {
                    fixture.kernel.stop_session(*session).unwrap();
                    sessions.remove(at);
                }
            }
            if fixture.kernel.statistics().notifications == told_before {
                continue;
            }
            let infos: Vec<_> = sessions.iter().filter_map(|(_, info)| *info).collect();
            let expected = if infos.is_empty() {
                "code 0 level 0 any 0 all 0 ".to_owned()
            } else {
                let level = infos.iter().map(|(level, ..)| match level {
                    0 => 255,
                    level => *level,
                });
                let any = infos.iter().map(|(_, any, _)| match any {
                    0 => u64::MAX,
                    any => *any,
                });
                let all = infos.iter().map(|(.., all)| *all);
                format!(
                    "code 1 level {} any {:x} all {:x} ",
                    level.max().unwrap(),
                    any.fold(0, |a, b| a | b),
                    all.fold(u64::MAX, |a, b| a & b)
                )
            };
            let printed = fixture.kernel.debug_output().concat();
            let last = printed.lines().last().unwrap_or_default();
            assert!(last.starts_with(&expected), "step {step} of seed {seed}: {last}");
        }
        driver.unload().unwrap();
    }
}
