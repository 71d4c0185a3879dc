//! Tests the page of a good day and of a bad one.

use serde_json::json;
use tempfile::TempDir;

use super::*;

/// Simulates the files that the stages of a leg leave.
struct Day(TempDir);

impl Day {
    fn new() -> Self {
        let day = Self(tempfile::tempdir().unwrap());
        day.write(
            "plain/machine/machine.json",
            &json!({ "caption": "Windows Server", "build": "26100", "revision": 1742 }),
        );
        day
    }

    fn write(&self, name: &str, value: &Value) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // PowerShell 5.1 writes a byte order mark.
        fs::write(path, format!("\u{feff}{value}")).unwrap();
    }

    fn stage(&self, name: &str, status: &str, reason: &Value, error: &Value, checks: &[Value]) {
        let result = json!({ "stage": name, "status": status, "reason": reason, "error": error, "checks": checks });
        self.write(&format!("plain/{name}/result.json"), &result);
    }

    fn passes(&self, name: &str, checks: usize) {
        let checks = vec![check("a check", "1", "1"); checks];
        self.stage(name, "passed", &Value::Null, &Value::Null, &checks);
    }

    fn results(&self, looked_at: &[String]) -> Results {
        Results::read(self.0.path(), &kit::stages().unwrap(), looked_at)
    }
}

fn check(name: &str, expected: &str, got: &str) -> Value {
    json!({ "name": name, "expected": expected, "got": got, "passed": expected == got })
}

#[test]
fn a_good_day_has_a_path_and_nothing_but_agreement() {
    let day = Day::new();
    let planned = kit::stages().unwrap();
    let plain: Vec<&Stage> = planned.iter().filter(|stage| stage.leg == "plain").collect();
    for stage in &plain {
        day.passes(&stage.name, 2);
    }
    let results = day.results(&[]);
    let page = results.page(day.0.path());
    assert!(
        page.starts_with("# Windows Server, build 26100.1742\n\nThe path succeeded.\n"),
        "{page}"
    );
    for step in ["machine", "install", "trace", "uninstall"] {
        assert!(page.contains(&format!("| plain | {step} | passed |  |\n")), "{page}");
    }
    let agreed = format!("{} checks agree, 0 differ, 0 could not be made.", plain.len() * 2);
    assert!(page.contains(&agreed), "{page}");
    assert_eq!(results.answers, None);
}

#[test]
fn a_bad_day_still_says_everything_that_is_known() {
    let day = Day::new();
    day.passes("machine", 3);
    // The installation was ended by its time limit.
    fs::create_dir_all(day.0.path().join("plain/install/windows-before")).unwrap();
    day.stage(
        "trace",
        "failed",
        &json!("1 of 2 checks failed: events of the own session"),
        &Value::Null,
        &[check("start", "0", "0"), check("events of the own session", "1 or more", "0")],
    );
    day.stage(
        "minimal",
        "passed",
        &Value::Null,
        &Value::Null,
        &[check("driver", "Running", "Running")],
    );
    day.stage(
        "scenarios",
        "differs",
        &json!("1 of 2 checks failed"),
        &Value::Null,
        &[check("group-alone", "pass", "FAIL"), check("loss", "pass", "FAIL")],
    );
    day.stage("recipes", "skipped", &json!("the kit has no recipes.json"), &Value::Null, &[]);
    day.write(
        "plain/recipes/recipes.json",
        &json!({ "recipes": [{ "name": "xperf", "ran": false, "why": "xperf is not on this machine" },
                             { "name": "logman", "ran": true }] }),
    );
    day.stage(
        "decode",
        "differs",
        &json!("tracerpt.xml: no such file"),
        &json!("tracerpt.xml: no | such\nfile"),
        &[],
    );
    day.stage(
        "probe",
        "differs",
        &Value::Null,
        &Value::Null,
        &[check("traits-again", "asked", "not asked: no device")],
    );
    fs::write(day.0.path().join("plain/probe/answers.json"), "{").unwrap();
    fs::create_dir_all(day.0.path().join("plain/uninstall")).unwrap();
    fs::write(day.0.path().join("plain/uninstall/result.json"), "{\"status\": ").unwrap();
    let results = day.results(&["scenarios | loss | FAIL".to_owned()]);
    let page = results.page(day.0.path());
    for part in [
        "The path **failed**.",
        "| plain | machine | passed |  |\n",
        "| plain | install | no result | the stage was ended before it wrote its result (",
        "| plain | trace | failed | 1 of 2 checks failed: events of the own session |\n",
        "| plain | uninstall | no result | the stage was ended before it wrote its result (EOF",
        "5 checks agree, 3 differ,",
        "| plain, trace | events of the own session | 1 or more | 0 | no |\n",
        "| plain, scenarios | group-alone | pass | FAIL | no |\n",
        "| plain, scenarios | loss | pass | FAIL | yes |\n",
        "- plain, recipes: the kit has no recipes.json\n",
        "- plain, recipes, xperf: xperf is not on this machine\n",
        "- plain, decode, the rest: tracerpt.xml: no \\| such file\n",
        "- plain, probe, traits-again: no device\n",
    ] {
        assert!(page.contains(part), "{part:?} is not in:\n{page}");
    }
    let said = keep_and_compare(&results.answers.unwrap()).unwrap();
    assert!(said.starts_with("The answers to the probes cannot be read: EOF"), "{said}");
}

#[test]
fn the_leg_with_driver_verifier_has_no_path() {
    let day = Day::new();
    day.passes("machine", 3);
    let result = json!({ "status": "differs", "checks": [check("driver", "Running", "Stopped")] });
    day.write("verifier/install/result.json", &result);
    let page = day.results(&[]).page(day.0.path());
    assert!(page.contains("This leg has no path"), "{page}");
    assert!(page.contains("| verifier, install | driver | Running | Stopped | no |"), "{page}");
    assert!(page.contains("- verifier, scenarios: the stage was not run\n"), "{page}");
    assert!(!page.contains("- plain"), "{page}");
}

#[test]
fn an_archive_and_artifacts_in_a_folder_are_read() {
    let day = Day::new();
    day.passes("machine", 1);
    let archive = day.0.path().join("results-of-a-test.zip");
    let mut pack = Command::new(if cfg!(windows) { "python" } else { "python3" });
    pack.current_dir(day.0.path()).args(["-m", "zipfile", "-c"]).arg(&archive).arg("plain/");
    run_quietly(&mut pack).unwrap();
    let folder = unpacked(&archive).unwrap();
    assert_eq!(runs(&folder), std::slice::from_ref(&folder));
    let results = Results::read(&folder, &kit::stages().unwrap(), &[]);
    assert_eq!(results.path[0].outcome, "passed");
    files::remove_dir_all(&folder).unwrap();
    let outer = tempfile::tempdir().unwrap();
    for name in ["results-b-plain/plain", "results-a-verifier/verifier", "other"] {
        fs::create_dir_all(outer.path().join(name)).unwrap();
    }
    let found = runs(outer.path());
    assert_eq!(
        found,
        ["results-a-verifier", "results-b-plain"].map(|name| outer.path().join(name))
    );
    let error = run(&outer.path().join("other"), None).unwrap_err().to_string();
    assert!(error.contains("has no results of a run"), "{error}");
    let damaged = outer.path().join("damaged.zip");
    fs::write(&damaged, "PK").unwrap();
    assert!(format!("{:#}", run(&damaged, None).unwrap_err()).contains("cannot unpack"));
}

#[test]
fn answers_are_named_by_a_build_and_an_architecture_only() {
    let day = Day::new();
    let named = |build: &str| {
        day.write("a.json", &json!({ "system": { "build": build, "architecture": "x86_64" } }));
        name_of(&day.0.path().join("a.json"))
    };
    assert_eq!(named("10.0.26100.1"), Ok("10.0.26100.1-x86_64.json".to_owned()));
    for build in ["", "../x", "a/b", r"a\b", ".."] {
        assert!(named(build).unwrap_err().contains("build"), "{build}");
    }
}
