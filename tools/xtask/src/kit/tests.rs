//! Tests the kit and the text of its scripts.

use super::*;

fn contents(folder: &Path) -> Contents {
    let package = folder.join("made");
    for (name, data) in [
        ("etw_sample_driver.inf", "inf"),
        ("etw_sample_driver.cer", "cer"),
        ("etw-sample-client.exe", "client"),
    ] {
        write(&package.join(name), data.as_bytes()).unwrap();
    }
    let reader = folder.join("etl.exe");
    write(&reader, b"etl").unwrap();
    Contents {
        out: folder.join("kit"),
        package: Some(package.clone()),
        catalog_2: Some(package),
        reader: Some(reader),
        ..Contents::default()
    }
}

const RECIPES: &str = r#"{ "version": 1, "session": "sample", "recipes": [
    { "name": "all", "enables": [{ "level": 5, "match_any": "0xff" }] },
    { "name": "few", "enables": [{ "level": 4, "match_any": "0x1" }] },
    { "name": "group", "enables": [{ "level": 0, "match_any": "0x0" }] },
    { "name": "filter", "enables": [{ "level": 5, "match_any": "0xff", "except_ids": [0] }] },
    { "name": "two", "enables": [{ "level": 4, "match_any": "0x1" },
        { "level": 4, "match_any": "0x80" }] } ] }"#;

#[test]
fn a_kit_has_the_plan_the_scripts_the_packages_and_the_expected_counts() {
    let folder = tempfile::tempdir().unwrap();
    let contents = contents(folder.path());
    make(&contents, RECIPES.as_bytes()).unwrap();
    let json = |name: &str| parse(&read(contents.out.join(name)).unwrap(), name).unwrap();
    let plan = json(PLAN);
    assert_eq!(plan["driver"]["certificate"], "etw_sample_driver.cer");
    assert_eq!(plan["client"], "client/etw-sample-client.exe");
    assert_eq!(plan["provider"]["guid"], "802b686a-519d-5416-5280-4c0ead585fbb");
    // A hosted run fails only with its path, until the differences were looked at.
    assert_eq!(plan["evidence"]["strict"], root().join(LOOKED_AT).exists());
    let of_path = list(&plan, "stages").unwrap().iter().filter(|stage| stage["kind"] == "path");
    let of_path: Vec<String> = of_path
        .map(|stage| format!("{} {}", stage["leg"], stage["name"]).replace('"', ""))
        .collect();
    assert_eq!(of_path, ["plain machine", "plain install", "plain trace", "plain uninstall"]);
    for stage in list(&plan, "stages").unwrap() {
        let script = contents.out.join(stage["script"].as_str().unwrap());
        assert!(script.is_file(), "{}", script.display());
    }
    for file in [
        "stages/common.ps1", "stages/package-device.ps1", "stages/package-uninstall.ps1",
        "package/etw_sample_driver.inf", READER,
    ] {
        assert!(contents.out.join(file).is_file(), "{file}");
    }
    assert!(contents.out.join("package-catalog-2").is_dir());
    assert!(!contents.out.join("package-wdk").exists());
    let recipes = json("recipes.json");
    let counts: Vec<u64> = list(&recipes, "recipes")
        .unwrap()
        .iter()
        .map(|one| one["expected"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [17, 4, 17, 0, 5]);
    assert_eq!(recipes["traffic"][0], "send write hello");
    // A second kit is not mixed with the first.
    let error = make(&contents, RECIPES.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
}

#[test]
fn a_kit_with_a_probe_names_its_driver() {
    let folder = tempfile::tempdir().unwrap();
    let mut contents = contents(folder.path());
    let probe = folder.path().join("probe");
    for name in ["etw_probes_driver.inf", "etw_probes_driver.cer"] {
        write(&probe.join(name), b"").unwrap();
    }
    contents.probe = Some(probe);
    make(&contents, RECIPES.as_bytes()).unwrap();
    let plan = parse(&read(contents.out.join(PLAN)).unwrap(), PLAN).unwrap();
    assert_eq!(plan["probe"]["service"], "etw_probes_driver");
    assert_eq!(plan["probe"]["hardware_id"], r"Root\EtwProbesDriver");
    assert_eq!(plan["probe"]["certificate"], "etw_probes_driver.cer");
    let inf = contents.out.join("probe/etw_probes_driver.inf");
    assert!(inf.is_file(), "{}", inf.display());
}

/// A crash, a hang or an error at any point leaves the logs of Windows and the results so far.
#[test]
fn every_stage_leaves_logs_in_every_way_of_ending() {
    let common = script("common");
    let (_, body) = common.split_once("function Invoke-Stage(").unwrap();
    let (body, _) = body.split_once("\n}\n").unwrap();
    let at = |part: &str| body.find(part).unwrap_or_else(|| panic!("{part}: {body}"));
    assert!(at("Save-WindowsLogs $stage 'before'") < at("try {"));
    assert!(at("'result.json'") < at("Save-WindowsLogs $stage 'after'"));
    assert!(at("Save-WindowsLogs $stage 'after'") < at("exit 1"));
    let install = script("install");
    let (_, finally) = install.split_once("} finally {\n").unwrap();
    let (finally, _) = finally.split_once("\n        }\n").unwrap();
    for part in ["'packages.json'", "Save-WindowsLogs $Stage $name"] {
        assert!(finally.contains(part), "{part}: {finally}");
    }
    // A package that waits forever leaves time for the others.
    let (_, packages) = common.split_once("function Install-Package(").unwrap();
    let (packages, _) = packages.split_once("# Sends the requests").unwrap();
    let calls: Vec<&str> =
        packages.lines().filter(|line| line.contains("return Invoke-")).collect();
    assert_eq!(calls.len(), 7, "{calls:?}");
    assert!(calls.iter().all(|line| line.ends_with(" 120")), "{calls:?}");
}

/// Returns the names and minutes of the stages in windows.yml, in order, and the job's time limit.
fn stages_of_workflow() -> (Vec<(String, u32)>, u32) {
    let text = fs::read_to_string(root().join(".github/workflows/windows.yml")).unwrap();
    let (_, job) = text.split_once("\n  stages:\n").unwrap();
    let mut found = Vec::new();
    let (mut minutes, mut limit) = (0, None);
    for line in job.lines().map(str::trim) {
        if let Some(number) = line.strip_prefix("timeout-minutes: ") {
            minutes = number.parse().unwrap();
            limit.get_or_insert(minutes);
        }
        if let Some(command) = line.strip_prefix("run: ").filter(|line| line.contains(" -Out out/"))
        {
            let (script, _) = command.split_once(".ps1 -Kit kit").unwrap();
            found.push((script.rsplit('/').next().unwrap().to_owned(), minutes));
        }
    }
    (found, limit.unwrap())
}

#[test]
fn the_workflow_runs_the_stages_of_the_table_in_their_order_and_in_its_time() {
    let (ran, limit) = stages_of_workflow();
    let planned = stages().unwrap();
    for leg in ["plain", "verifier"] {
        let of_leg = planned.iter().filter(|stage| stage.leg == leg);
        let names: Vec<&str> = of_leg.map(|stage| stage.name.as_str()).collect();
        let order = ran.iter().map(|(name, _)| name.as_str());
        let order: Vec<&str> = order.filter(|name| names.contains(name)).collect();
        assert_eq!(order, names, "{leg}");
    }
    for (name, minutes) in &ran {
        let longest = planned.iter().filter(|stage| stage.name == *name).map(|one| one.minutes);
        // The table has no stage for the minimal driver, which is only installed on hosted runners.
        assert_eq!(*minutes, longest.max().unwrap_or(15), "{name}");
    }
    // Half an hour remains for the kit; hosted runners end every job after six hours.
    let sum: u32 = ran.iter().map(|(_, minutes)| minutes).sum();
    assert!(sum + 30 <= limit && limit < 360, "{sum} minutes of stages in {limit}");
}

/// A run's own limit exceeds its stages' total by half an hour (`tools/vm/src/run.rs`).
#[test]
fn an_installation_and_a_leg_end_in_the_time_of_the_virtual_machines_job() {
    let text = fs::read_to_string(root().join(".github/workflows/windows-vm.yml")).unwrap();
    let after = |word: &str| -> u32 {
        let (_, rest) = text.split_once(word).unwrap();
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    let (limit, installation) = (after("timeout-minutes: "), after("--install-only --timeout "));
    let planned = stages().unwrap();
    for leg in ["plain", "verifier"] {
        let of_leg = planned.iter().filter(|stage| stage.leg == leg);
        let run = of_leg.map(|stage| stage.minutes).sum::<u32>() + 30;
        // Before that, 20 minutes are for downloads and builds.
        assert!(20 + installation + run <= limit && limit < 360, "{leg}: {run} minutes");
    }
}

/// The tools' programs are not on the search path by default, and a recipe without its program is
/// skipped.
#[test]
fn the_recipes_find_the_kits_programs() {
    let common = script("common");
    let (_, body) = common.split_once("function Get-Recipes(").unwrap();
    let (body, _) = body.split_once("\n}\n").unwrap();
    assert!(body.contains("Add-KitTools\n"), "{body}");
    for stage in ["recipes", "boot", "booted"] {
        assert!(script(stage).contains("Get-Recipes $Stage"), "{stage}");
    }
}

#[test]
fn what_may_crash_windows_is_asked_when_all_else_is_done() {
    let text = fs::read_to_string(root().join(STAGES)).unwrap();
    for leg in ["plain", "verifier"] {
        let names: Vec<&str> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|words| words.first() == Some(&leg))
            .map(|words| words[1])
            .filter(|name| !name.starts_with("probe-"))
            .collect();
        assert!(names.ends_with(&["decode", "probe", "uninstall"]), "{names:?}");
    }
}

fn script(name: &str) -> String {
    fs::read_to_string(root().join(format!("tests/windows/{name}.ps1"))).unwrap()
}

/// The scripts cannot run without Windows, so the test checks their text.
#[test]
fn the_framework_verifies_what_stays_installed_and_driver_verifier_both_drivers() {
    let verifier = script("verifier");
    assert!(verifier.contains("if ($probe) { $images += $probe.sys }"));
    for call in ["/standard /driver $names", "/adddriver $Names", "/now /driver $Names"] {
        assert!(verifier.contains(call), "{call}");
    }
    // The next uninstallation would remove the registry key of a service that is not installed.
    assert!(!verifier.contains("VerifierOn"));
    for (name, driver) in [("install", "$driver"), ("probe", "$probe")] {
        let text = script(name);
        let set = text.find(&format!("Enable-FrameworkVerifier $Stage {driver}\n")).unwrap();
        let installed = text.rfind("Install-Package $Stage").unwrap();
        assert!(installed < set, "{name}");
    }
    let install = script("install");
    let (_, after) = install.split_once("Enable-FrameworkVerifier").unwrap();
    assert!(!after.contains("Uninstall-Package"), "{after}");
}

#[test]
fn a_recipe_that_fails_leaves_nothing_to_the_next() {
    let text = script("recipes");
    let (_, cleaning) = text.split_once("    } finally {\n").unwrap();
    let (cleaning, _) = cleaning.split_once("\n    }\n").unwrap();
    for command in ["'taskkill.exe'", "\"stop $($Recipes.session) -ets\"", "'wpr.exe' '-cancel'"] {
        assert!(cleaning.contains(command), "{command}: {cleaning}");
    }
    let (_, each) = text.split_once("foreach ($recipe in $recipes.recipes) {").unwrap();
    let call = each.find("Invoke-Recipe $Stage").unwrap();
    assert!(each.find("try {").unwrap() < call && call < each.find("} catch {").unwrap());
}

/// A leg is skipped only after a recorded crash, or if Windows rejects the setting.
#[test]
fn a_leg_that_verifies_nothing_is_skipped_only_after_a_recorded_crash() {
    let text = script("common");
    let (_, body) = text.split_once("function Get-VerifierOff(").unwrap();
    let (body, _) = body.split_once("\n}\n").unwrap();
    let skips: Vec<&str> = body.lines().filter(|line| line.contains("Skip = $true")).collect();
    assert_eq!(skips.len(), 2, "{body}");
    assert!(skips[0].contains("$result.status -eq 'skipped'"), "{body}");
    assert!(body.contains("if ($crashed.Count -gt 0) {\n        return @{ Skip = $true"), "{body}");
    assert!(
        body.trim_end().ends_with("return @{ Skip = $false; Why = \"Driver Verifier for $sys\" }"),
        "{body}"
    );
    // The agent writes the file that the scripts read.
    let agent = fs::read_to_string(root().join("tests/windows/agent.cmd")).unwrap();
    assert!(agent.contains(r#">>"%ETW_OUT%\%2\crashed.txt" echo %3"#));
    assert!(body.contains("'crashed.txt'"));
}

#[test]
fn no_program_of_a_stage_has_a_time_that_slow_machines_exceed() {
    let mut waits = 0;
    for stage in stages().unwrap().iter().map(|one| one.name.as_str()).chain(["common"]) {
        for line in script(stage).lines() {
            if line.contains("WaitForExit(") && !line.contains("WaitForExit()")
                || line.contains("Start-Sleep")
            {
                waits += 1;
                assert!(line.contains("* $Stage.Slowness"), "{stage}: {line}");
            }
        }
    }
    assert!(waits >= 3, "{waits}");
}

#[test]
fn a_missing_package_is_named_with_the_command_that_makes_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut contents = contents(folder.path());
    contents.package = Some(folder.path().join("no.zip"));
    let error = format!("{:#}", make(&contents, RECIPES.as_bytes()).unwrap_err());
    assert!(error.contains("no.zip; build it with `cargo xtask package`"), "{error}");
}
