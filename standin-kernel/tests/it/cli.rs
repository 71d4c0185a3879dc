//! Tests the command line.

use crate::common;
use std::{
    fs,
    io::Cursor,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use etl_file::Trace;
use etw_test_support::small_image::Image;

use crate::common::run;

const SCRIPT: &str = r#"
# One client.
add-device
open 10 11
write "hello"
expect success
read 3
expect success "hel"
ioctl 0x22E000 hex:0102 8
expect success hex:0102
ioctl 0x222FFC
expect 0xC0000010
advance 35
power-cycle
capture-state
close
remove
"#;

#[test]
fn a_script_drives_a_driver_and_leaves_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (good, said) = run(folder.path(), SCRIPT, &["--enable", "WdkEtw.SampleDriver:5"]);
    assert!(good, "{said}");
    assert!(said.contains("line 5: write of 5 bytes ended with STATUS_SUCCESS"), "{said}");
    assert!(
        said.contains("line 11: ioctl 0x222ffc ended with STATUS_INVALID_DEVICE_REQUEST"),
        "{said}"
    );
    let trace = Trace::open(folder.path().join("out.etl")).unwrap();
    let events = trace.events().count();
    assert!(events > 15, "{events}");
    assert!(said.contains(&format!("{events} events in ")), "{said}");
    // If no provider is named, every provider that registers is enabled.
    let (good, unnamed) = run(folder.path(), SCRIPT, &[]);
    assert!(good && unnamed.contains(&format!("{events} events in ")), "{unnamed}");
    let file = folder.path().join("out.etl");
    let command = format!(
        "\nTo print them: etl dump {} --image {}\n",
        file.display(),
        common::sample().display()
    );
    assert!(unnamed.contains(&command), "{unnamed}");
    let timeline = format!(
        "{} --format perfetto --out {}\n",
        command.trim().replace("To print them: ", "https://ui.perfetto.dev: "),
        file.with_extension("pftrace").display()
    );
    assert!(unnamed.contains(&timeline), "{unnamed}");
    // Events are shown below their steps.
    let shown: Vec<&str> = unnamed.lines().map(str::trim_start).collect();
    let at = shown.iter().position(|line| line.starts_with("line 5: write of 5 bytes")).unwrap();
    assert!(
        shown[at + 1].contains(" WdkEtw.SampleDriver WriteData [Verbose, Request]"),
        "{unnamed}"
    );
    // This enables the group with a lower level and fewer keywords.
    let group = ["--group", "WdkEtw.SampleGroup:4:0x1", "--only"];
    let (good, said) = run(folder.path(), SCRIPT, &group);
    assert!(good, "{said}");
    let fewer = Trace::open(folder.path().join("out.etl")).unwrap().events().count();
    assert!(fewer > 0 && fewer < events, "{fewer} of {events}");
}

#[test]
fn clients_take_turns_by_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let run = |seed: &str| {
        let arguments = [
            "--enable", "WdkEtw.SampleDriver:5", "--clients", "3", "--seed", seed, "--special-pool",
        ];
        let (good, said) = run(
            folder.path(),
            "add-device\nopen\nwrite \"a\"\nread 1\nwrite \"b\"\nioctl 0x22E000 \"c\" 9\nexpect success \"c\"\nclose",
            &arguments,
        );
        assert!(good, "{said}");
        let requests: Vec<String> = said
            .lines()
            .filter(|line| line.contains(", client ") && line.contains(" ended with "))
            .map(str::to_owned)
            .collect();
        assert_eq!(requests.len(), 3 * 4, "{said}");
        for client in 1..=3 {
            let of = format!("line 6, client {client}: ioctl 0x22e000 ended with STATUS_SUCCESS");
            assert!(said.contains(&of), "{said}");
        }
        assert!(said.contains("peak kernel stack use: "), "{said}");
        requests
    };
    let first = run("1");
    assert_eq!(first, run("1"));
    let others: Vec<_> = ["2", "3", "4"].map(run).into();
    assert!(others.iter().any(|other| *other != first), "{first:#?}");
}

#[test]
fn errors_are_sentences() {
    let folder = tempfile::tempdir().unwrap();
    let enable = ["--enable", "WdkEtw.SampleDriver"];
    let wrong = folder.path().join("wrong.reg");
    fs::write(&wrong, "Windows Registry Editor Version 5.00\n\nDepth=4\n").unwrap();
    let wrong = wrong.to_str().unwrap();
    let cases: [(&str, &[&str], &str); 13] = [
        ("", &["--folder", "/nowhere"], "/nowhere is not a folder"),
        ("", &["--registry", "/nowhere.reg"], "cannot read /nowhere.reg"),
        (
            "",
            &["--registry", wrong],
            "wrong.reg: line 3: `Depth=4` is neither a key in brackets nor a value",
        ),
        (
            "",
            &["--parameter", "Depth=4"],
            "cannot set a parameter: `Depth=4` has no type; write NAME=TYPE:VALUE",
        ),
        (
            "",
            &["--parameter", "Depth=dword:many"],
            "cannot set a parameter: `many` is not a number",
        ),
        ("add-device\nopne", &enable, "line 2: `opne` is not a step"),
        ("open", &enable, "line 1: there is no device; add one with `add-device` first"),
        ("add-device\nwrite \"x\"", &enable, "line 2: the device is not open"),
        ("add-device\nopen\nread 1\nexpect 0xC0001234", &enable, "line 4: expected 0xC0001234"),
        ("", &["--only"], "no provider is enabled"),
        ("", &["--enable", "Größe"], "`Größe`: the provider's name has a non-ASCII character"),
        ("", &["--enable", "A:300"], "`300` is not a level; expected a number from 0 to 255"),
        ("", &["--enable", "A:1:2:3:4"], "too many parts"),
    ];
    for (script, arguments, sentence) in cases {
        let (good, said) = run(folder.path(), script, arguments);
        assert!(!good && said.contains(sentence), "{said}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_standin-kernel"))
        .args(["run", "/nowhere.sys", "--enable", "A", "--etl"])
        .arg(folder.path().join("none.etl"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("/nowhere.sys"), "{said}");
}

#[test]
fn the_routines_are_listed_with_their_limits_and_parameters() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_standin-kernel")).arg("routines").output().unwrap();
    assert!(output.status.success());
    let list = String::from_utf8(output.stdout).unwrap();
    for line in [
        "Wdf01000.sys WdfCollectionGetCount DISPATCH_LEVEL (2) (WDFCOLLECTION Collection)",
        "ntoskrnl.exe DbgPrint HIGH_LEVEL (15) (PCSTR Format, ...)",
        "ntoskrnl.exe KeGetCurrentIrql HIGH_LEVEL (15) ()",
    ] {
        assert!(list.lines().any(|one| one == line), "{line}");
    }
    // No driver can import a routine inside the framework, or one that is not exported.
    assert!(!list.contains("FxDriverUnload") && !list.contains("IopInvalidDeviceRequest"));
    assert!(list.lines().last().unwrap().contains("memcpy"), "{list}");
}

/// Runs the driver that checks the routines of ntoskrnl.exe, and returns the contents of both
/// output streams.
fn run_checks(folder: &Path, service: &str, arguments: &[&str]) -> String {
    let output = common::run_command(common::kernel(), folder.join("checks.etl"))
        .args(["--service", service, "--no-notes"])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_driver_gets_a_folder_and_values_in_the_registry() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir_all(disk.join("Windows")).unwrap();
    common::link("/", disk.join("link")).unwrap();
    let said = run_checks(folder.path(), "files", &["--folder", disk.to_str().unwrap()]);
    assert!(said.contains("done ") && !said.contains("FAILED"), "{said}");
    assert!(disk.join("Windows/log.txt").exists());
    let file = folder.path().join("values.reg");
    fs::write(
        &file,
        "Windows Registry Editor Version 5.00\n\n\
         [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\registry\\Parameters]\n\
         \"Number\"=dword:00000001\n\"Text\"=\"hello\"\n",
    )
    .unwrap();
    // A parameter overrides a value in a registry file.
    let values = ["--parameter", "Number=dword:42", "--registry", file.to_str().unwrap()];
    let said = run_checks(folder.path(), "registry", &values);
    assert!(said.contains("done ") && !said.contains("FAILED"), "{said}");
    let said = run_checks(folder.path(), "registry", &values[2..]);
    assert!(said.contains("FAILED"), "{said}");
}

#[test]
fn a_driver_crash_is_reported_with_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let output = common::run_command(common::rules_driver(), folder.path().join("crash.etl"))
        .args(["--service", "read-null", "--enable", "A"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("bugcheck 0x1E") && said.contains("read_null"), "{said}");
    // The trace is written up to the end, and the last calls are printed and counted.
    let told = String::from_utf8(output.stdout).unwrap();
    let calls: u64 =
        told.lines().find_map(|line| line.split_once(" kernel calls, ")?.0.parse().ok()).unwrap();
    let (_, listed) = said.split_once("newest first:\n").unwrap();
    let listed = listed.lines().take_while(|line| line.starts_with("    "));
    assert_eq!(calls, u64::try_from(listed.count()).unwrap(), "{told}{said}");
    let trace = folder.path().join("crash.etl");
    assert!(told.contains("0 events in ") && Trace::open(trace).is_ok(), "{told}");
    assert!(said.contains("newest first:\n    WdfDriverCreate at PASSIVE_LEVEL"), "{said}");
    assert!(
        said.contains("provider A was not registered; the driver registered no provider"),
        "{said}"
    );
}

#[test]
fn a_provider_that_does_not_register_is_named_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let (good, said) = run(folder.path(), "", &["--enable", "WdkEtw.SampelDriver"]);
    assert!(!good, "{said}");
    let expected = "warning: provider WdkEtw.SampelDriver was not registered; registered: \
                    WdkEtw.SampleDriver; the nearest name is WdkEtw.SampleDriver";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn programs_get_an_object_for_each_line() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--message-format", "json", "--enable", "A"];
    let (good, said) = run(folder.path(), SCRIPT, &arguments);
    assert!(!good, "{said}");
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let find = |member: &str, value: &str| {
        let found = lines.iter().find(|line| line[member] == value);
        found.unwrap_or_else(|| panic!("{member} is never {value}: {said}"))
    };
    let read = find("step", "read of 3 bytes");
    assert_eq!((&read["reason"], &read["line"]), (&"step".into(), &7.into()));
    let completion = &read["completion"];
    assert_eq!(completion["status"], "0x00000000");
    assert_eq!(completion["output"], "68656c");
    let event = find("event", "WriteData");
    assert_eq!(event["reason"], "event");
    assert_eq!(event["fields"]["Data"], "68656c6c6f");
    let diagnostic = find("reason", "finding");
    assert_eq!(diagnostic["kind"], "warning");
    let summary = find("reason", "run-summary");
    assert_eq!(summary["success"], false);
    let events = lines.iter().filter(|line| line["reason"] == "event");
    assert_eq!(summary["events"], events.count());
}

#[test]
fn a_driver_that_ends_its_process_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let run = |service: &str, arguments: &[&str]| {
        let output = common::run_command(common::rules_driver(), folder.path().join("ended.etl"))
            .env("WDK_ETW_SYSTEM_CALLS", "made")
            .args(["--service", service])
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{service}: {output:?}");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    for (service, how) in [
        ("exit", "ended the process with the exit code 0"),
        ("kill", "ended the process by the signal SIGKILL"),
        ("corrupt", "ended the process by the signal SIG"),
    ] {
        let (shown, errors) = run(service, &[]);
        let error = errors.lines().find(|line| line.starts_with("error: "));
        let error = error.unwrap_or_else(|| panic!("{service}: {errors}"));
        assert!(error.contains(how), "{error}");
        let call = "; its last call is ExAllocatePool2 from tests/drivers/rules/src/lib.rs:";
        assert!(error.contains(call), "{error}");
        assert!(error.contains("; the step is `load "), "{error}");
        assert!(shown.contains("0 events in "), "{shown}");
    }
    // Events and output of the step before the end are shown, and are in the file.
    for service in ["exit", "kill", "corrupt"] {
        let service = format!("{service}-after-events");
        let (shown, _) = run(&service, &[]);
        let is_event = |line: &&str| line.starts_with("    ") && line.contains(" rest=hex:");
        assert_eq!(shown.lines().filter(is_event).count(), 200, "{shown}");
        assert!(shown.contains("    driver: 200 events are written\n"), "{shown}");
        assert!(shown.contains("200 events in "), "{shown}");
        let trace = etl_file::Trace::open(folder.path().join("ended.etl")).unwrap();
        assert_eq!(trace.damages(), []);
        assert!(trace.header().end_time.is_some());
        let data = trace.events().map(|event| event.record.user_data.clone());
        assert!(data.eq((0..200).map(|byte| vec![byte])), "{service}");
    }
    let (shown, _) = run("exit", &["--message-format", "json"]);
    let lines: Vec<serde_json::Value> =
        shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [diagnostic, summary] = lines.as_slice() else {
        panic!("{shown}");
    };
    assert_eq!(diagnostic["kind"], "process-ended");
    assert_eq!(summary["success"], false);
}

/// Starts `standin-kernel run` with the rules driver as a service.
fn start_rules(folder: &Path, service: &str, arguments: &[&str]) -> Child {
    common::run_command(common::rules_driver(), folder.join("out.etl"))
        .env("WDK_ETW_SYSTEM_CALLS", "made")
        .args(["--service", service])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the output of a process on both streams.
fn said(child: Child) -> (String, String) {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).into()
}

#[test]
fn a_reader_may_be_slow() {
    let folder = tempfile::tempdir().unwrap();
    let mut children = Vec::new();
    // The first run ends normally; in the second, the driver ends its process.
    for (service, error) in [
        ("leak-after-many-events", "unloaded without freeing 128 bytes"),
        ("kill-after-many-events", "ended the process by the signal SIGKILL"),
    ] {
        for format in ["human", "json"] {
            let arguments = ["--max-silence", "1", "--message-format", format];
            let folder = folder.path().join(format!("{service}-{format}"));
            fs::create_dir(&folder).unwrap();
            children.push((service, error, start_rules(&folder, service, &arguments)));
        }
    }
    std::thread::sleep(Duration::from_secs(8));
    for (service, error, child) in children {
        let (shown, errors) = said(child);
        let all = format!("{shown}{errors}");
        assert!(all.contains(error), "{service}: {errors}");
        assert!(!all.contains("did not call the kernel"), "{errors}");
    }
}

#[test]
fn the_end_of_a_process_names_the_authors_line_and_shows_every_event() {
    let folder = tempfile::tempdir().unwrap();
    let child = start_rules(folder.path(), "kill-after-box", &[]);
    let (_, errors) = said(child);
    let (first, stack) = errors.split_once('\n').unwrap();
    let line = common::line_of("kill-after-box");
    let place = format!("; its last call is ExAllocatePool2 from {line} (");
    assert!(first.contains(&place), "{errors}");
    let frames: Vec<&str> = stack.lines().collect();
    let at = |what: &str| frames.iter().position(|frame| frame.contains(what));
    assert!(at("wdk_alloc::") < at(&line) && at(&line) < at("kill_after_a_box (tests"), "{errors}");
    assert!(frames.iter().all(|frame| frame.starts_with("    at ")), "{errors}");
    assert!(at("FxDriverEntry").is_some(), "{errors}");
    // The driver writes more events than fit in two of the session's buffers.
    let child = start_rules(folder.path(), "kill-after-many-events", &[]);
    let (shown, _) = said(child);
    let trace = Trace::open(folder.path().join("out.etl")).unwrap();
    assert!(trace.buffers().len() > 3, "{}", trace.buffers().len());
    assert_eq!(trace.damages(), []);
    let is_event = |line: &&str| line.starts_with("    ") && line.contains(" rest=hex:");
    let events: Vec<&str> = shown.lines().filter(is_event).collect();
    assert_eq!((events.len(), trace.events().count()), (5000, 5000));
    assert!(events[0].contains("=hex:00 ") && events[4999].contains("=hex:87130000 "), "{shown}");
    assert!(shown.contains("5000 events in "), "{shown}");
    let arguments = ["--message-format", "json"];
    let child = start_rules(folder.path(), "kill-after-many-events", &arguments);
    let (shown, _) = said(child);
    let lines = shown.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line
    });
    let lines: Vec<_> = lines.collect();
    let of = |reason: &str| {
        let lines = lines.iter().filter(move |line| line["reason"] == reason);
        lines.collect::<Vec<_>>()
    };
    assert_eq!(of("event").len(), 5000);
    let [diagnostic] = of("finding")[..] else {
        panic!("{:?}", of("finding"));
    };
    let stack = diagnostic["stack"].as_array().unwrap();
    assert!(stack.len() > 2, "{diagnostic}");
}

#[cfg(target_os = "linux")]
#[test]
fn resources_that_cannot_be_read_are_reported_when_the_process_ends() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("damaged.sys");
    let bytes = fs::read(common::sample()).unwrap();
    fs::write(&image, replaced(bytes, b"CRIM", b"MIRC")).unwrap();
    let script = folder.path().join("script.txt");
    fs::write(&script, "add-device\nopen\nrepeat 3000\nwrite \"a\"\nend").unwrap();
    let parent = common::run_command(&image, folder.path().join("out.etl"))
        .arg("--script")
        .arg(&script)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The driver's process soon waits for the reader of its output. It is then ended.
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    let child = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        let child = fs::read_to_string(&children).unwrap();
        child.split_whitespace().next().map(str::to_owned)
    });
    std::thread::sleep(Duration::from_secs(2));
    let killed = Command::new("kill").args(["-KILL", &child.unwrap()]).status();
    assert!(killed.unwrap().success());
    let (shown, errors) = said(parent);
    let lines: Vec<&str> = errors.lines().collect();
    let at = |what: &str| lines.iter().position(|line| line.contains(what));
    let ended = at("error: damaged.sys ended the process by the signal SIGKILL");
    assert!(ended.is_some() && ended < at("warning: "), "{errors}");
    assert!(lines[at("warning: ").unwrap()].contains("damaged.sys"), "{errors}");
    assert!(shown.contains("found: 1 error, 1 warning, "), "{shown}");
}

#[test]
fn the_command_that_prints_the_events_is_one_of_the_shell() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("a driver's");
    fs::create_dir(&folder).unwrap();
    let (shown, _) = said(start_rules(&folder, "leak", &[]));
    let file = folder.join("out.etl").display().to_string();
    // The image does not describe events.
    let word = if cfg!(windows) {
        format!("\"{file}\"")
    } else {
        format!("'{}'", file.replace('\'', r"'\''"))
    };
    let command = format!("\nTo print them: etl dump {word}\n");
    assert!(shown.contains(&command), "{shown}");
}

#[test]
fn the_stack_of_a_routine_that_bugchecked_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    for (service, least) in [("bugcheck-in-a-large-frame", 10 << 10), ("stack-overflow", 23 << 10)]
    {
        let (shown, _) = said(start_rules(folder.path(), service, &[]));
        let (_, peak) = shown.split_once("peak kernel stack use: ").expect(&shown);
        let (bytes, what) = peak.split_once(" of 24,576 bytes, in ").unwrap();
        assert!(what.starts_with("DriverEntry\n"), "{what}");
        let bytes: usize = bytes.parse().unwrap();
        assert!(bytes > least, "{bytes}");
    }
}

/// Runs the rules driver as a service, from a folder with its image and `pdb` as the PDB.
fn run_rules_with(pdb: &[u8], service: &str, arguments: &[&str]) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("etw_rules_driver.sys");
    fs::copy(common::rules_driver(), &image).unwrap();
    fs::write(image.with_extension("pdb"), pdb).unwrap();
    let output = common::run_command(&image, folder.path().join("out.etl"))
        .env("WDK_ETW_SYSTEM_CALLS", "made")
        .args(["--service", service])
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).into()
}

/// Modifies the PDB so that its reader panics at an offset in the image and at the preceding offset,
/// because a return address belongs to the preceding call.
fn pdb_that_panics(offset: u32) -> Vec<u8> {
    let pdb = fs::read(common::rules_driver().with_extension("pdb")).unwrap();
    let mut whole = pdb_addr2line::pdb::PDB::open(Cursor::new(pdb.clone())).unwrap();
    let guid = whole.pdb_information().unwrap().guid;
    let reads = |bytes: Vec<u8>, offset: u32| {
        std::panic::catch_unwind(|| {
            let mut pdb = pdb_addr2line::pdb::PDB::open(Cursor::new(bytes)).ok()?;
            // If the GUID does not match, the PDB does not belong to the image.
            (pdb.pdb_information().ok()?.guid == guid).then_some(())?;
            let data = pdb_addr2line::ContextPdbData::try_from_pdb(pdb).ok()?;
            let context = data.make_context().ok()?;
            let is_found = context.find_frames(offset).ok()?.is_some();
            Some(is_found)
        })
        .map(|found| found == Some(true))
    };
    assert!(reads(pdb.clone(), offset).unwrap());
    let found = (0..20_000).find_map(|seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = pdb.clone();
        // With fewer bytes, the search takes a hundred times as long.
        for _ in 0..128 {
            let at = random.usize(0..bytes.len());
            bytes[at] = random.u8(..);
        }
        let mut offsets = [offset, offset - 1].into_iter();
        offsets.all(|offset| reads(bytes.clone(), offset).is_err()).then_some(bytes)
    });
    found.unwrap()
}

#[test]
fn a_pdb_that_cannot_be_read_loses_no_finding_and_no_event() {
    let whole = fs::read(common::rules_driver().with_extension("pdb")).unwrap();
    let end = if cfg!(windows) { "exception 0xC0000409" } else { "signal SIGABRT" };
    // The second driver ends its process by a system call of Linux, so that the report about the end reads
    // the PDB.
    let services = [
        ("read-null", "error: bugcheck 0x1E: read from 0x0"),
        ("kill", "sys ended the process by the signal SIGKILL"),
    ];
    for (service, error) in services.into_iter().take(if cfg!(windows) { 1 } else { 2 }) {
        let (_, said) = run_rules_with(&whole, service, &[]);
        let (_, offset) = said.split_once("etw_rules_driver.sys+0x").unwrap();
        let (offset, _) = offset.split_once(')').unwrap();
        let offset = u32::from_str_radix(offset, 16).unwrap();
        let (told, said) = run_rules_with(&pdb_that_panics(offset), service, &[]);
        let note = "etw_rules_driver.pdb cannot be read: the reader ended the process by the ";
        assert!(said.contains(&format!("{note}{end}")), "{service}: {said}");
        assert!(said.contains(error), "{service}: {said}");
        assert!(said.contains("etw_rules_driver.sys+0x"), "{said}");
        assert!(told.contains("0 events in "), "{told}");
        assert!(told.contains("found: 1 error,"), "{told}");
    }
}

/// Replaces each occurrence of a byte sequence with another byte sequence of the same length.
fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
    bytes
}

#[test]
fn a_pdb_without_the_authors_lines_is_noted() {
    let note = "etw_rules_driver.pdb has no line information for etw_rules_driver.sys, so diagnostics \
                name only functions; set `debug = \"line-tables-only\"` for the profile";
    let whole = fs::read(common::rules_driver().with_extension("pdb")).unwrap();
    let (_, said) = run_rules_with(&whole, "leaked-pool", &[]);
    assert!(said.contains("tests/drivers/rules/src/lib.rs:"), "{said}");
    assert!(!said.contains(note), "{said}");
    // Only the packages' line information remains, as if a profile had `debug = false`.
    let packages = br"C:\src\cargo\";
    let without = replaced(whole, br"C:\src\tests\", packages);
    let without = replaced(without, br"C:\src\tools\", packages);
    let (_, said) = run_rules_with(&without, "leaked-pool", &[]);
    assert!(said.contains(note), "{said}");
}

#[test]
fn a_bugcheck_in_the_unload_after_a_failed_step_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.txt");
    fs::write(&script, "open").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_standin-kernel"))
        .arg("run")
        .arg(common::rules_driver())
        .args(["--service", "unload-fault", "--script"])
        .arg(script)
        .arg("--etl")
        .arg(folder.path().join("unload.etl"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("line 1: there is no device"), "{said}");
    assert!(said.contains("error: bugcheck 0x1E: read from 0x0"), "{said}");
}

// Windows also loads such a driver, and keeps it loaded until shutdown.
#[test]
fn a_driver_without_an_unload_routine_stays() {
    let folder = tempfile::tempdir().unwrap();
    let run = |script: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_standin-kernel"))
            .current_dir(folder.path())
            .arg("run")
            .arg(common::wdm())
            .args(["--service", "resident"])
            .args(script)
            .output()
            .unwrap()
    };
    let sentence = "etw_wdm_driver.sys has no unload routine, so it cannot be unloaded";
    let output = run(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("note: {sentence}")), "{said}");
    // A script specifies all steps, and ends with the unload.
    fs::write(folder.path().join("script.txt"), "advance 1").unwrap();
    let output = run(&["--script", "script.txt"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("error: {sentence}")), "{said}");
}

// The I/O manager completes a request for which the driver has no dispatch routine.
#[test]
fn a_device_that_cannot_be_opened_is_not_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("closed.sys");
    let driver = Image {
        imports: &[("ntoskrnl.exe", &["IoCreateDevice"])],
        // DriverEntry(rcx) returns IoCreateDevice(rcx, 0, NULL, FILE_DEVICE_UNKNOWN, 0, 0, &device).
        entry: &[
            0x48, 0x83, 0xEC, 0x48, // sub rsp, 0x48
            0x31, 0xD2, // xor edx, edx
            0x45, 0x31, 0xC0, // xor r8d, r8d
            0x41, 0xB9, 0x22, 0, 0, 0, // mov r9d, 0x22
            0x48, 0x89, 0x54, 0x24, 0x20, // mov [rsp + 0x20], rdx
            0x48, 0x89, 0x54, 0x24, 0x28, // mov [rsp + 0x28], rdx
            0x48, 0x8D, 0x44, 0x24, 0x38, // lea rax, [rsp + 0x38]
            0x48, 0x89, 0x44, 0x24, 0x30, // mov [rsp + 0x30], rax
            0xFF, 0x15, 0x0F, 0x10, 0, 0, // call [IoCreateDevice]
            0x48, 0x83, 0xC4, 0x48, // add rsp, 0x48
            0xC3, // ret
        ],
        ..Image::default()
    };
    fs::write(&image, driver.build()).unwrap();
    let run = |script: &[&str]| {
        let mut command = common::run_command(&image, folder.path().join("closed.etl"));
        common::said(command.current_dir(folder.path()).args(script))
    };
    let sentence = "opening the device returned STATUS_INVALID_DEVICE_REQUEST";
    let (good, said) = run(&[]);
    assert!(good && said.contains(&format!("note: {sentence}")), "{said}");
    assert!(said.contains("capture-state"), "{said}");
    // A script specifies all steps.
    fs::write(folder.path().join("script.txt"), "open").unwrap();
    let (good, said) = run(&["--script", "script.txt"]);
    assert!(!good && said.contains(&format!("error: line 1: {sentence}")), "{said}");
}
