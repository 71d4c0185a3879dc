//! The `etl` command: its output, error messages and exit codes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::page;
use etl_file::ClockType;
use etl_file::write::Losses;
use etl_fixtures::trace;

fn etl(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_etl")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn manifest() -> PathBuf {
    trace::manifest_path()
}

struct Sample {
    _folder: tempfile::TempDir,
    path: String,
}

/// Writes a file with a few events, after `change` has modified its bytes.
fn sample(change: impl FnOnce(&mut Vec<u8>)) -> Sample {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let (mut file, _) = trace::file(header, 20, Losses::default());
    change(&mut file);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.etl");
    fs::write(&path, file).unwrap();
    Sample { path: path.to_str().unwrap().to_owned(), _folder: folder }
}

#[test]
fn table_decodes_with_the_manifest() {
    let sample = sample(|_| {});
    let output = etl(&["dump", &sample.path, "--man", manifest().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
    let table = text(&output.stdout);
    assert!(table.contains("Holds    20 events"), "{table}");
    assert!(table.contains("RequestStart"), "{table}");
    assert!(table.contains("request=1 kind=Write(1) path=\"path\""), "{table}");
    assert!(table.contains("count=2 delta=-2 ratio=0.5"), "{table}");
}

#[test]
fn width_limits_every_line() {
    let sample = sample(|_| {});
    let output = etl(&["dump", &sample.path, "--width", "100"]);
    let table = text(&output.stdout);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn json_has_a_line_for_the_header_and_each_event() {
    let sample = sample(|_| {});
    let output = etl(&["dump", "--format", "json", &sample.path]);
    assert_eq!(output.status.code(), Some(0));
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 22);
    assert_eq!(lines[0]["record"], "header");
    assert_eq!(lines[0]["session"], "Fixture");
    assert!(lines[1..21].iter().all(|line| line["record"] == "event"));
    assert!(lines[1..21].is_sorted_by_key(|line| line["timestamp"].as_i64()));
    assert_eq!(lines[21]["record"], "end");
    assert_eq!(lines[21]["events"], 20);
    assert_eq!(lines[21]["damages"], serde_json::json!([]));
}

#[test]
fn damaged_file_is_printed_before_the_error() {
    let sample = sample(|file| {
        let record = file[0x1048..].to_vec();
        let size = usize::from(u16::from_le_bytes([record[0], record[1]]));
        let second = 0x1048 + size.next_multiple_of(8);
        file[second + 3] = 0x11;
    });
    let output = etl(&["dump", &sample.path]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("Progress"));
    let complaint = text(&output.stderr);
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.contains("sample.etl: at offset 0x1"), "{complaint}");
    assert!(complaint.contains("does not start a record"), "{complaint}");
}

#[test]
fn damaged_parts_beyond_the_limit_are_counted() {
    const BUFFERS: usize = 1100;
    let sample = sample(|file| {
        let buffer = file[0x1000..0x2000].to_vec();
        let damaged = |number: usize| {
            let mut buffer = buffer.clone();
            // The buffer's number, and bytes that are not the start of a record.
            buffer[0x18..0x20].copy_from_slice(&(number as u64 + 1).to_le_bytes());
            buffer[0x4B] = 0x11;
            buffer
        };
        file.truncate(0x1000);
        file.extend((0..BUFFERS).flat_map(damaged));
    });
    let output = etl(&["dump", &sample.path]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    let last = complaint.lines().last().unwrap();
    assert_eq!(complaint.lines().count(), 1001, "{last}");
    let end = "more damaged parts are not listed";
    assert!(last.ends_with(end), "{last}");
}

#[test]
fn a_file_that_is_not_a_trace_causes_one_error_line() {
    let sample = sample(|file| file.truncate(10));
    let output = etl(&["dump", &sample.path]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    assert_eq!(
        text(&output.stderr),
        format!(
            "etl: {}: at offset 0x0: the file ends within the header of the first buffer\n",
            sample.path
        )
    );
}

#[test]
fn files_of_other_formats_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let sample = sample(|_| {});
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for (start, name, advice) in [
        (
            b"version https://git-lfs.github.com/spec/v1\noid".to_vec(),
            "a Git LFS pointer",
            "`git lfs pull`",
        ),
        (b"ElfFile\0".to_vec(), "an event log (.evtx)", "Event Viewer"),
        (b"\x30\0\0\0LfLe".to_vec(), "an event log from Windows Server 2003", "Event Viewer"),
        (b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec(), ".NET EventPipe", "PerfView"),
        (b"\x14\0\0\0!FastSerialization.1".to_vec(), "(.etlx)", ".etl file"),
        (b"PK\x03\x04\x14".to_vec(), "a zip archive", "extract"),
        (b"\x1F\x8B\x08".to_vec(), "a gzip archive", "extract"),
        (b"MSCF\0\0\0\0".to_vec(), "a cabinet", "extract"),
        (b"\x0A\x0D\x0D\x0A".to_vec(), "a packet capture (.pcapng)", "Wireshark"),
        (b"\xC1\x1F\xFC\xC1".to_vec(), "a stream of a CTF trace", "Babeltrace"),
        (b"/* CTF 1.8 */".to_vec(), "the metadata of a CTF trace", "Babeltrace"),
        (b"MZ\x90\0".to_vec(), "a Windows program, driver or library", "--image"),
        (b"<instrumentationManifest".to_vec(), "a manifest", "--man"),
        (wide("\u{FEFF}<Events>"), "XML or HTML text", "a decoder"),
        (vec![0; 72], "a blank file", "no session wrote"),
        (Vec::new(), "an empty file", "nothing was written"),
    ] {
        let path = folder.path().join("other.etl");
        let length = if start.is_empty() { 0 } else { 600 };
        fs::write(&path, [start.clone(), vec![0; length - start.len()]].concat()).unwrap();
        let path = path.to_str().unwrap();
        for arguments in [
            &["dump", path][..],
            &["stats", path],
            &["merge", "--out", "never.etl", path],
            &["report", "--out", "never.html", path],
            &["dump", &sample.path, "--man", path],
            &["dump", &sample.path, "--image", path],
            &["dump", &sample.path, "--mof", path],
            &["dump", &sample.path, "--tmf", path],
            &["dump", &sample.path, "--pdb", path],
        ] {
            let output = etl(arguments);
            let complaint = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{complaint}");
            let is_own =
                arguments[1] != path && arguments.contains(&"--man") && start.contains(&b'<')
                    || arguments.contains(&"--image") && start.starts_with(b"MZ");
            let names = complaint.contains(name) && complaint.contains(advice);
            assert!(names || is_own, "{arguments:?}: {complaint}");
            assert_eq!(complaint.lines().count(), 1, "{complaint}");
        }
    }
    let output = etl(&["dump", &sample.path, "--man", &sample.path]);
    let complaint = text(&output.stderr);
    assert!(complaint.contains("it is a trace (.etl); name it without an option"), "{complaint}");
}

#[test]
fn an_event_with_damaged_metadata_keeps_its_names() {
    let mut deep = trace::Schema::new("Deep");
    deep.field("before", &[8]);
    (0..70).for_each(|_| deep.field("s", &[0x98, 1]));
    deep.field("inmost", &[8]);
    let mut cut = trace::traits("Contoso.Cut", None);
    cut.extend([0x13, 0, 1, 0]);
    let size = u16::try_from(cut.len()).unwrap();
    cut[..2].copy_from_slice(&size.to_le_bytes());
    let mut event =
        trace::trace_logging_event(0, trace::header(ClockType::Qpc, 0x1000, 1).start_clock);
    event.extended[0].data = cut;
    event.extended[1].data = deep.finish();
    event.user_data = vec![7, 0, 0, 0, 0xAA, 0, 0, 0];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.etl");
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    fs::write(&path, trace::of_records(header.clone(), header.start_clock, [event])).unwrap();
    let output = etl(&["dump", "--format", "json", path.to_str().unwrap()]);
    let lines = text(&output.stdout);
    let event: serde_json::Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!(event["event"], "Deep");
    assert_eq!(event["provider_name"], "Contoso.Cut");
    assert_eq!(event["leftover"], "07000000aa000000");
    let problems: Vec<&str> =
        event["problems"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("the provider traits are damaged"), "{problems:?}");
    assert!(problems[1].ends_with("is nested too deeply"), "{problems:?}");
}

#[test]
fn missing_files_cause_one_error_line() {
    let output = etl(&["dump", "no-such.etl"]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(complaint.starts_with("etl: no-such.etl: cannot read the file: "));
    let sample = sample(|_| {});
    let output = etl(&["dump", &sample.path, "--man", "no-such.man"]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(complaint.starts_with("etl: cannot read the manifest no-such.man: "));
}

#[test]
fn malformed_manifest_is_located() {
    let sample = sample(|_| {});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.man");
    fs::write(&path, "<instrumentationManifest>\n </oops>").unwrap();
    let output = etl(&["dump", &sample.path, "--man", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(complaint.contains("bad.man: line 2, column 2: the XML is malformed: "), "{complaint}");
}

#[test]
fn skipped_parts_of_a_manifest_are_reported() {
    let sample = sample(|_| {});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("newer.man");
    let newer = trace::MANIFEST.replace("win:Boolean", "win:Flag");
    fs::write(&path, newer).unwrap();
    let output = etl(&["dump", &sample.path, "--man", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let warnings = text(&output.stderr);
    let warnings: Vec<&str> = warnings.lines().collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].ends_with(
            "newer.man: line 57, column 37: inType \"win:Flag\" is not defined; skipping template \
             \"Everything\""
        ),
        "{warnings:?}"
    );
    assert!(warnings[1].ends_with("skipping event \"3\""), "{warnings:?}");
}

#[test]
fn invalid_usage_exits_with_2() {
    assert_eq!(etl(&[]).status.code(), Some(2));
    assert_eq!(etl(&["dump"]).status.code(), Some(2));
    assert_eq!(etl(&["undump", "x"]).status.code(), Some(2));
    let output = etl(&["dump", "x.etl", "--format", "xml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(etl(&["--help"]).status.code(), Some(0));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let header = trace::header(ClockType::Qpc, 0x1_0000, 1);
    let (file, _) = trace::file(header, 3000, Losses::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.etl");
    fs::write(&path, file).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_etl"))
        .args(["dump", path.to_str().unwrap(), "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error() {
    let sample = sample(|_| {});
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_etl"))
        .args(["dump", &sample.path])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let complaint = text(&output.stderr);
    assert!(complaint.starts_with("etl: cannot write to standard output: "), "{complaint}");
}

#[test]
#[cfg(target_os = "linux")]
fn files_without_end_and_folders_are_refused() {
    let sample = sample(|_| {});
    let folder = Path::new(&sample.path).parent().unwrap().to_str().unwrap();
    for (option, file, said) in [
        ("--man", "/dev/zero", "it is larger than 64 MiB"),
        ("--mof", "/dev/zero", "it is larger than 64 MiB"),
        ("--tmf", "/dev/zero", "is larger than 64 MiB, the limit for a TMF file"),
        ("--pdb", "/dev/zero", "it is not a PDB of version 7"),
        ("--man", folder, "Is a directory"),
        ("--image", folder, "Is a directory"),
        ("--mof", folder, "Is a directory"),
        ("--pdb", folder, "Is a directory"),
        ("--out", folder, "is a directory"),
    ] {
        let output = etl(&["dump", &sample.path, option, file]);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{option} {file}: {complaint}");
        assert!(complaint.contains(said) && complaint.contains(file), "{option}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn output_goes_into_pipes_devices_and_the_files_of_links() {
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    let sample = sample(|_| {});
    let folder = Path::new(&sample.path).parent().unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (pipe, full, link, file) = (path("pipe"), path("full"), path("link"), path("file"));
    let expected = etl(&["dump", &sample.path]).stdout;
    fs::write(&file, "old").unwrap();
    symlink(&file, &link).unwrap();
    let output = etl(&["dump", &sample.path, "--out", &link]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link was replaced");
    assert_eq!(fs::read(&file).unwrap(), expected);

    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    // Lets the reader end, even if the pipe was replaced.
    let kept = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let output = etl(&["dump", &sample.path, "--out", &pipe]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    drop(kept);
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo(), "the pipe was replaced");
    assert_eq!(reader.join().unwrap(), expected);

    let (missing, dangling) = (path("missing"), path("dangling"));
    symlink(&missing, &dangling).unwrap();
    let output = etl(&["dump", &sample.path, "--out", &dangling]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(fs::symlink_metadata(&dangling).unwrap().is_symlink(), "the link was replaced");
    assert_eq!(fs::read(&missing).unwrap(), expected);

    symlink("/dev/full", &full).unwrap();
    for command in ["dump", "report", "merge"] {
        let output = etl(&[command, &sample.path, "--out", &full]);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {complaint}");
        assert!(complaint.contains("No space left on device"), "{command}: {complaint}");
        assert!(fs::symlink_metadata(&full).unwrap().is_symlink(), "the device was replaced");
    }
}

#[test]
fn an_input_file_is_never_replaced() {
    let sample = sample(|_| {});
    let content = fs::read(&sample.path).unwrap();
    let manifest = manifest();
    let manifest = manifest.to_str().unwrap();
    let part = format!("{}.part", sample.path);
    fs::write(&part, &content).unwrap();
    for (command, input, out) in [
        ("dump", sample.path.as_str(), sample.path.as_str()),
        ("report", &sample.path, &sample.path),
        ("merge", &sample.path, &sample.path),
        // The temporary file would replace it.
        ("merge", &part, &sample.path),
    ] {
        let output = etl(&[command, input, "--man", manifest, "--out", out]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert_eq!(
            text(&output.stderr),
            format!("etl: cannot write {out}: it is an input file; name another file with --out\n")
        );
        for file in [&sample.path, &part] {
            assert!(fs::read(file).unwrap() == content, "{command} has replaced {file}");
        }
    }
    fs::remove_file(&part).unwrap();
    let pdb = Path::new(&sample.path).with_file_name("a.pdb");
    fs::write(&pdb, "old").unwrap();
    let folder = pdb.parent().unwrap().to_str().unwrap();
    let output = etl(&["dump", &sample.path, "--symbols", folder, "--out", pdb.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read(&pdb).unwrap(), b"old");
    let copy = format!("{}.man", sample.path);
    fs::copy(manifest, &copy).unwrap();
    let output = etl(&["dump", &sample.path, "--man", &copy, "--out", &copy]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read(copy).unwrap(), fs::read(manifest).unwrap());
}

#[test]
fn a_report_has_all_events_with_their_kinds_threads_and_problems() {
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    let losses = Losses { events_lost: 3, buffers_lost: 1 };
    let (mut file, _) = trace::file(header, 12, losses);
    // Too much and too little data.
    let first = 0x1048;
    let size = usize::from(u16::from_le_bytes([file[first], file[first + 1]]));
    file[first + size - 5] = 0x7F;
    file.truncate(file.len() - 8);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.etl");
    fs::write(&path, file).unwrap();
    let path = path.to_str().unwrap();
    let page = folder.path().join("page.html");
    let output =
        etl(&["report", path, "--man", manifest().to_str().unwrap(), "-o", page.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "the end of the file is missing");
    let data = page::data(&fs::read_to_string(page).unwrap());
    insta::assert_snapshot!(data.replace(path, "sample.etl"));
}

#[test]
fn a_report_says_how_many_events_it_leaves_out() {
    let sample = sample(|_| {});
    let page = Path::new(&sample.path).with_extension("html");
    let page = page.to_str().unwrap();
    for (limit, said) in [
        ("20", String::new()),
        ("5", format!("etl: {page}: shows 5 of 20 events; --limit sets how many\n")),
    ] {
        let output = etl(&["report", &sample.path, "--limit", limit, "-o", page]);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(text(&output.stderr), said);
    }
}

/// Returns the selected events as JSON lines, without the header.
fn selected(arguments: &[&str]) -> Vec<serde_json::Value> {
    let sample = sample(|_| {});
    let manifest = manifest();
    let mut all = vec!["dump", &sample.path, "--format", "json", "--man"];
    all.push(manifest.to_str().unwrap());
    all.extend(arguments);
    let output = etl(&all);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &serde_json::Value| line["record"] == "event").collect()
}

#[test]
fn events_are_selected() {
    assert_eq!(selected(&[]).len(), 20);
    // Each provider has ten events; the manifest provider's events alternate between start and
    // stop.
    let described = selected(&["--provider", "contoso.sample"]);
    assert_eq!(described.len(), 10);
    assert!(described.iter().all(|event| event["event"] == "Progress"));
    assert_eq!(selected(&["--event", "RequestStart"]).len(), 5);
    assert_eq!(selected(&["--event", "RequestStart", "--event", "2"]).len(), 10);
    assert_eq!(selected(&["--level", "4"]).len(), 10);
    assert_eq!(selected(&["--keyword", "0x1"]).len(), 10);
    assert_eq!(selected(&["--keyword", "0x2"]).len(), 20);
    let activity = "a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1";
    assert_eq!(selected(&["--activity", activity]).len(), 5, "it is a related one");
    let bad = etl(&["dump", "x.etl", "--keyword", "many"]);
    assert_eq!(bad.status.code(), Some(2));
}

#[test]
fn csv_has_a_line_for_each_event() {
    let sample = sample(|_| {});
    let output = etl(&["dump", &sample.path, "--format", "csv"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
    let mut reader = csv::Reader::from_reader(output.stdout.as_slice());
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 20);
    assert_eq!(&rows[0][5], "Progress");
    assert!(rows[0][13].contains("text=\"half\""), "{}", &rows[0][13]);
}

#[test]
fn statistics_count_by_provider_event_and_level() {
    let sample = sample(|_| {});
    let manifest = manifest();
    let output = etl(&["stats", &sample.path, "--man", manifest.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stdout);
    let row = |name: &str| {
        let line = said.lines().find(|line| line.contains(name)).unwrap_or_default();
        line.split(['│', '┆']).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(row("Progress")[4], "10");
    assert_eq!(row("RequestStart")[4], "5");
    assert!(said.contains("20 events, ") && said.contains("events a second"), "{said}");
    assert!(said.contains("Lost: 0 events, 0 buffers"), "{said}");
}
