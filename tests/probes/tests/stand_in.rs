//! Tests the stand-in kernel's answers to the probes, the answers files, and the settings derived
//! from them.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use etw_probes::{Answer, Answers, StandIn, Value, ask, document, probes};
use standin_kernel::{
    GroupDenial, ImplicitActivity, KernelConfig, NtStatus, PagedSession, UnspecifiedBehaviour,
};

/// The probes that the stand-in kernel cannot answer, with the reasons.
const NOT_ASKED: [(&str, &str); 0] = [];

fn driver() -> PathBuf {
    etw_test_support::drivers("release").join("etw_probes_driver.sys")
}

fn folder() -> PathBuf {
    etw_test_support::root().join("standin-kernel/answers")
}

/// Returns the stand-in kernel's answers with a configuration.
fn answers_of(config: KernelConfig) -> Answers {
    let mut host = StandIn::new(&driver(), config).unwrap();
    let answers = ask(&mut host, &mut |_, _| {}).unwrap();
    host.close().unwrap();
    answers
}

/// Returns the answers files by name.
fn files() -> BTreeMap<String, String> {
    fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn the_stand_in_kernels_answers_are_those_of_its_file() {
    let path = folder().join("stand-in.json");
    let now = answers_of(KernelConfig::default()).write().unwrap();
    if std::env::var_os("WDK_ETW_RENEW").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let then = fs::read_to_string(&path).unwrap();
    assert_eq!(
        now,
        then,
        "{} is out of date: `cargo xtask renew answers` writes it",
        path.display()
    );
}

#[test]
fn every_probe_that_can_run_here_did() {
    let answers = answers_of(KernelConfig::default());
    let ids: BTreeSet<&str> = probes().map(|probe| probe.id).collect();
    let answered: BTreeSet<&str> = answers.answers.keys().map(String::as_str).collect();
    assert_eq!(ids, answered);
    let not_asked: Vec<(&str, &str)> = answers
        .answers
        .iter()
        .filter_map(|(id, answer)| match answer {
            Answer::NotAsked(why) => Some((id.as_str(), why.as_str())),
            Answer::Found(_) => None,
        })
        .collect();
    assert_eq!(not_asked, NOT_ASKED);
}

#[test]
fn the_stand_in_kernel_configured_like_a_file_answers_like_the_file() {
    let files = files();
    assert!(files.contains_key("stand-in"));
    for (name, text) in files {
        let then = Answers::read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        // The stand-in kernel has only one architecture.
        let named = if name == "stand-in" {
            then.system.build.clone()
        } else {
            format!("{}-{}", then.system.build, then.system.architecture)
        };
        assert_eq!(named, name, "the file is named after its system");
        let config = KernelConfig::like(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let now = answers_of(config);
        for probe in probes().filter(|probe| !probe.varies) {
            let (now, then) = (&now.answers[probe.id], then.answers.get(probe.id));
            let Some(then @ Answer::Found(_)) = then else {
                continue;
            };
            if NOT_ASKED.iter().any(|(id, _)| *id == probe.id) {
                continue;
            }
            assert_eq!(now, then, "{name}: {}", probe.id);
        }
    }
}

/// Returns named configurations. In each, only one setting differs from its default.
fn changed() -> Vec<(&'static str, UnspecifiedBehaviour)> {
    let default = UnspecifiedBehaviour::default();
    let mut all = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut UnspecifiedBehaviour)| {
        let mut changed = default;
        change(&mut changed);
        all.push((name, changed));
    };
    /// Changes a setting to each of these values, or to its opposite.
    macro_rules! change {
        ($($name:ident),+) => {
            $(add(stringify!($name), &|one| one.$name ^= true);)+
        };
        ($name:ident: $($value:expr),+) => {
            $(add(stringify!($name), &|one| one.$name = $value);)+
        };
    }
    change!(passes_level_zero, match_all_without_any, filters_at_registration);
    change!(disabled_at_unregistration, independent_session_suffices, every_session_counts_loss);
    change!(group_counts_toward_limit, direct_replaces_group, activity_id_control_kernel);
    change!(second_traits: NtStatus::ACCESS_DENIED, NtStatus::SUCCESS);
    change!(
        denied_group: GroupDenial::SkipsGroup,
        GroupDenial::SkipsGroupSilently,
        GroupDenial::DoesNotApply
    );
    change!(largest_event: 40_000, 65_528);
    change!(activity_at_dispatch: ImplicitActivity::Null);
    change!(paged_session: PagedSession::CannotEnable);
    change!(activity_without_teb: NtStatus::SUCCESS, NtStatus::NOT_SUPPORTED);
    all
}

#[test]
fn every_setting_is_found_from_the_answers_that_it_gives() {
    // The source has one line for each setting, and the list above contains at least one case for
    // each.
    let source = etw_test_support::root().join("standin-kernel/src/services/etw/unspecified.rs");
    let source = fs::read_to_string(source).unwrap();
    let (_, fields) = source.split_once("pub struct UnspecifiedBehaviour {").unwrap();
    let (fields, _) = fields.split_once("\n}").unwrap();
    let fields: BTreeSet<&str> = fields
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':'))
        .map(|(name, _)| name)
        .collect();
    let cases = changed();
    let covered: BTreeSet<&str> = cases.iter().map(|(name, _)| *name).collect();
    assert_eq!(fields, covered);
    let default = answers_of(KernelConfig::default());
    for (name, behaviour) in cases {
        let answers = answers_of(KernelConfig {
            unspecified_behaviour: behaviour,
            ..KernelConfig::default()
        });
        assert_ne!(answers, default, "{name}: no probe notices the setting");
        let text = answers.write().unwrap();
        let like = KernelConfig::like(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(like.unspecified_behaviour, behaviour, "{name}");
        assert_eq!(Answers::read(&text).unwrap(), answers, "{name}");
    }
}

#[test]
fn a_kernel_without_the_routine_for_activity_ids_is_an_answer() {
    let answers = answers_of(KernelConfig {
        unspecified_behaviour: UnspecifiedBehaviour {
            activity_id_control_kernel: false,
            ..UnspecifiedBehaviour::default()
        },
        ..KernelConfig::default()
    });
    for probe in ["activity-kernel-routine", "activity-kernel-use", "activity-kernel-driver-entry"]
    {
        let Answer::Found(values) = &answers.answers[probe] else {
            panic!("{probe}: {:?}", answers.answers[probe]);
        };
        assert_eq!(values.0.len(), 1, "{probe}");
        assert_eq!(values.0["exists"], Value::from(false), "{probe}");
    }
}

#[test]
fn a_thread_without_a_teb_is_refused_and_a_programs_thread_is_not() {
    let answers = answers_of(KernelConfig {
        unspecified_behaviour: UnspecifiedBehaviour {
            activity_without_teb: NtStatus::UNSUCCESSFUL,
            ..UnspecifiedBehaviour::default()
        },
        ..KernelConfig::default()
    });
    let value = |probe: &str, key: &str| match &answers.answers[probe] {
        Answer::Found(values) => values.0[key].clone(),
        Answer::NotAsked(why) => panic!("{probe}: {why}"),
    };
    for probe in ["activity-driver-entry", "activity-work-item"] {
        for code in ["get", "set", "get_set", "create_set"] {
            assert_eq!(value(probe, code), Value::from("0xc0000001"), "{probe} {code}");
        }
        assert_eq!(value(probe, "create"), Value::from("0x00000000"));
    }
    assert_eq!(value("activity-user-thread", "set"), Value::from("0x00000000"));
    assert_eq!(value("activity-kernel-use", "work_item_reads_back"), Value::from(true));
    let implicit = "implicit-activity-of-system-threads";
    assert_eq!(value(implicit, "set_by_plain"), Value::from("none"));
    assert_eq!(value(implicit, "set_by_kernel"), Value::from("set"));
}

#[test]
fn the_reference_lists_the_probes_and_answers() {
    let path = etw_test_support::root().join("docs/reference/probes.md");
    let systems: Vec<Answers> = files().values().map(|text| Answers::read(text).unwrap()).collect();
    let now = document(&systems);
    if std::env::var_os("WDK_ETW_RENEW").is_some() {
        fs::write(&path, &now).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        now,
        "{} is out of date: `cargo xtask renew probes` writes it",
        path.display()
    );
}

#[test]
fn every_open_point_and_every_doubtful_statement_is_probed() {
    /// The doubtful statements that no probe can test, with the reasons.
    const NOT_ASKED: [(&str, &str); 4] = [
        ("ETW-1.3.5", "a failure for lack of memory cannot be caused"),
        ("ETW-1.3.24", "an invalid handle may be an address that the system reads"),
        ("ETW-2.24", "the driver has no control block of WPP"),
        ("ETW-6.8.2", "the driver writes no WPP messages"),
    ];
    let path = etw_test_support::root().join("docs/reference/etw-runtime.md");
    let text = fs::read_to_string(path).unwrap();
    let asked: BTreeSet<&str> = probes().flat_map(|probe| &probe.about).copied().collect();
    let mut defined = BTreeSet::new();
    let mut missing = Vec::new();
    // A statement extends from its anchor to the next anchor.
    for statement in text.split("<a id=\"").skip(1) {
        let Some((anchor, rest)) = statement.split_once('"') else {
            continue;
        };
        let id = anchor.to_uppercase();
        defined.insert(id.clone());
        let is_open = anchor.strip_prefix('o').is_some_and(|number| number.parse::<u32>().is_ok());
        let is_doubtful = anchor.starts_with("etw-")
            && rest
                .rsplit_once("*(")
                .and_then(|(_, sources)| sources.split_once(")*"))
                .is_some_and(|(sources, _)| sources.contains("low"));
        if (is_open || is_doubtful)
            && !asked.contains(id.as_str())
            && !NOT_ASKED.iter().any(|(known, _)| *known == id)
        {
            missing.push(id);
        }
    }
    assert_eq!(missing, [""; 0]);
    let unknown: Vec<&&str> = asked.iter().filter(|id| !defined.contains(**id)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not defined");
}
