//! The `etl` command: its output, error messages and exit codes.

use std::fs;
use std::process::Stdio;

use crate::page;
use crate::run::{Folder, Ran, manifest};
use etl_file::write::Losses;
use etl_file::{ClockType, EventRecord, ExtendedItem, LogFileHeader, ext_type};
use etl_fixtures::trace;
use serde_json::Value;

/// Returns the bytes of a file with 20 events.
fn bytes() -> Vec<u8> {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    trace::file(header, 20, Losses::default()).0
}

/// Writes a file with a few events, `sample.etl`.
fn sample() -> Folder {
    Folder::with("sample.etl", bytes())
}

/// Writes the same file after `change` has modified its bytes.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Folder {
    let mut file = bytes();
    change(&mut file);
    Folder::with("sample.etl", file)
}

#[test]
fn table_decodes_with_the_manifest() {
    let ran = sample().etl(&["dump", "sample.etl", "--man", &manifest()]).ok();
    assert_eq!(ran.said, "");
    let table = ran.text();
    for text in [
        "Holds    20 events", "RequestStart", "request=1 kind=Write(1) path=\"path\"",
        "count=2 delta=-2 ratio=0.5",
    ] {
        assert!(table.contains(text), "{table}");
    }
}

#[test]
fn width_limits_every_line() {
    let table = sample().etl(&["dump", "sample.etl", "--width", "100"]).text();
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn json_has_a_line_for_the_header_and_each_event() {
    let lines = sample().etl(&["dump", "--format", "json", "sample.etl"]).ok().lines();
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
    let folder = changed(|file| {
        let record = file[0x1048..].to_vec();
        let size = usize::from(u16::from_le_bytes([record[0], record[1]]));
        let second = 0x1048 + size.next_multiple_of(8);
        file[second + 3] = 0x11;
    });
    let ran = folder.etl(&["dump", "sample.etl"]);
    ran.fails(1, &["sample.etl: at offset 0x1", "does not start a record"]);
    assert!(ran.text().contains("Progress"));
}

#[test]
fn damaged_parts_beyond_the_limit_are_counted() {
    const BUFFERS: usize = 1100;
    let folder = changed(|file| {
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
    let ran = folder.etl(&["dump", "sample.etl"]);
    assert_eq!((ran.code, ran.said.lines().count()), (Some(1), 1001));
    assert!(ran.said.ends_with("more damaged parts are not listed\n"), "{}", ran.said);
}

#[test]
fn a_file_that_is_not_a_trace_causes_one_error_line() {
    let ran = changed(|file| file.truncate(10)).etl(&["dump", "sample.etl"]);
    assert_eq!((ran.code, ran.text().as_str()), (Some(1), ""));
    let expected =
        "etl: sample.etl: at offset 0x0: the file ends within the header of the first buffer\n";
    assert_eq!(ran.said, expected);
}

#[test]
fn files_of_other_formats_are_named() {
    let folder = sample();
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let xml = wide("\u{FEFF}<Events>");
    for (start, name, advice) in [
        (
            &b"version https://git-lfs.github.com/spec/v1\noid"[..],
            "a Git LFS pointer",
            "`git lfs pull`",
        ),
        (b"ElfFile\0", "an event log (.evtx)", "Event Viewer"),
        (b"\x30\0\0\0LfLe", "an event log from Windows Server 2003", "Event Viewer"),
        (b"Nettrace\x14\0\0\0!FastSerialization.1", ".NET EventPipe", "PerfView"),
        (b"\x14\0\0\0!FastSerialization.1", "(.etlx)", ".etl file"),
        (b"PK\x03\x04\x14", "a zip archive", "extract"),
        (b"\x1F\x8B\x08", "a gzip archive", "extract"),
        (b"MSCF\0\0\0\0", "a cabinet", "extract"),
        (b"\x0A\x0D\x0D\x0A", "a packet capture (.pcapng)", "Wireshark"),
        (b"\xC1\x1F\xFC\xC1", "a stream of a CTF trace", "Babeltrace"),
        (b"/* CTF 1.8 */", "the metadata of a CTF trace", "Babeltrace"),
        (b"MZ\x90\0", "a Windows program, driver or library", "--image"),
        (b"<instrumentationManifest", "a manifest", "--man"),
        (&xml, "XML or HTML text", "a decoder"),
        (&[0; 72], "a blank file", "no session wrote"),
        (b"", "an empty file", "nothing was written"),
    ] {
        let length = if start.is_empty() { 0 } else { 600 };
        folder.write("other.etl", [start, &vec![0; length - start.len()]].concat());
        for arguments in [
            &["dump", "other.etl"][..],
            &["stats", "other.etl"],
            &["merge", "--out", "never.etl", "other.etl"],
            &["report", "--out", "never.html", "other.etl"],
            &["dump", "sample.etl", "--man", "other.etl"],
            &["dump", "sample.etl", "--image", "other.etl"],
            &["dump", "sample.etl", "--mof", "other.etl"],
            &["dump", "sample.etl", "--tmf", "other.etl"],
            &["dump", "sample.etl", "--pdb", "other.etl"],
        ] {
            // The option for files of this format.
            let own = match start {
                [b'M', b'Z', ..] => "--image",
                _ if start.contains(&b'<') => "--man",
                _ => "",
            };
            let texts = if arguments.contains(&own) { &[][..] } else { &[name, advice] };
            folder.etl(arguments).fails(1, texts);
        }
    }
    let ran = folder.etl(&["dump", "sample.etl", "--man", "sample.etl"]);
    ran.fails(1, &["it is a trace (.etl); name it without an option"]);
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
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let mut event = trace::trace_logging_event(0, header.start_clock);
    event.extended[0].data = cut;
    event.extended[1].data = deep.finish();
    event.user_data = vec![7, 0, 0, 0, 0xAA, 0, 0, 0];
    let file = trace::of_records(header.clone(), header.start_clock, [event]);
    let folder = Folder::with("deep.etl", file);
    let event = folder.etl(&["dump", "--format", "json", "deep.etl"]).lines().remove(1);
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
fn missing_files_and_malformed_manifests_cause_one_error_line() {
    let folder = sample();
    folder.write("bad.man", "<instrumentationManifest>\n </oops>");
    folder.etl(&["dump", "no-such.etl"]).fails(1, &["etl: no-such.etl: cannot read the file: "]);
    let ran = folder.etl(&["dump", "sample.etl", "--man", "no-such.man"]);
    ran.fails(1, &["etl: cannot read the manifest no-such.man: "]);
    let ran = folder.etl(&["dump", "sample.etl", "--man", "bad.man"]);
    ran.fails(1, &["bad.man: line 2, column 2: the XML is malformed: "]);
}

#[test]
fn skipped_parts_of_a_manifest_are_reported() {
    let folder = sample();
    folder.write("newer.man", trace::MANIFEST.replace("win:Boolean", "win:Flag"));
    let said = folder.etl(&["dump", "sample.etl", "--man", "newer.man"]).ok().said;
    let warnings: Vec<&str> = said.lines().collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let expected = "newer.man: line 57, column 37: inType \"win:Flag\" is not defined; skipping \
                    template \"Everything\"";
    assert!(warnings[0].ends_with(expected), "{warnings:?}");
    assert!(warnings[1].ends_with("skipping event \"3\""), "{warnings:?}");
}

#[test]
fn invalid_usage_exits_with_2() {
    for (arguments, code) in [
        (&[][..], 2),
        (&["dump"], 2),
        (&["undump", "x"], 2),
        (&["dump", "x.etl", "--format", "xml"], 2),
        (&["dump", "x.etl", "--keyword", "many"], 2),
        (&["--help"], 0),
    ] {
        assert_eq!(Folder::new().etl(arguments).code, Some(code), "{arguments:?}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let header = trace::header(ClockType::Qpc, 0x1_0000, 1);
    let (file, _) = trace::file(header, 3000, Losses::default());
    let folder = Folder::with("long.etl", file);
    let mut child = folder
        .command(&["dump", "long.etl", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stderr, b"");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error() {
    let folder = sample();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = Ran::run(folder.command(&["dump", "sample.etl"]).stdout(full));
    ran.fails(1, &["etl: cannot write to standard output: "]);
}

#[test]
#[cfg(target_os = "linux")]
fn files_without_end_and_folders_are_refused() {
    let folder = sample();
    fs::create_dir(folder.path("sub")).unwrap();
    for (option, file, said) in [
        ("--man", "/dev/zero", "it is larger than 64 MiB"),
        ("--mof", "/dev/zero", "it is larger than 64 MiB"),
        ("--tmf", "/dev/zero", "is larger than 64 MiB, the limit for a TMF file"),
        ("--pdb", "/dev/zero", "it is not a PDB of version 7"),
        ("--man", "sub", "Is a directory"),
        ("--image", "sub", "Is a directory"),
        ("--mof", "sub", "Is a directory"),
        ("--pdb", "sub", "Is a directory"),
        ("--out", "sub", "is a directory"),
    ] {
        folder.etl(&["dump", "sample.etl", option, file]).fails(1, &[said, file]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn output_goes_into_pipes_devices_and_the_files_of_links() {
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    let folder = sample();
    let expected = folder.etl(&["dump", "sample.etl"]).bytes;
    let is_link = |name| fs::symlink_metadata(folder.path(name)).unwrap().is_symlink();
    folder.write("file", "old");
    symlink("file", folder.path("link")).unwrap();
    symlink("missing", folder.path("dangling")).unwrap();
    for (link, file) in [("link", "file"), ("dangling", "missing")] {
        folder.etl(&["dump", "sample.etl", "--out", link]).ok();
        assert!(is_link(link), "the link was replaced");
        assert_eq!(folder.read(file), expected);
    }

    let pipe = folder.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    // Lets the reader end, even if the pipe was replaced.
    let kept = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    folder.etl(&["dump", "sample.etl", "--out", "pipe"]).ok();
    drop(kept);
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo(), "the pipe was replaced");
    assert_eq!(reader.join().unwrap(), expected);

    symlink("/dev/full", folder.path("full")).unwrap();
    for command in ["dump", "report", "merge"] {
        let ran = folder.etl(&[command, "sample.etl", "--out", "full"]);
        assert_eq!(ran.code, Some(1), "{command}: {}", ran.said);
        assert!(ran.said.contains("No space left on device"), "{command}: {}", ran.said);
        assert!(is_link("full"), "the device was replaced");
    }
}

#[test]
fn an_input_file_is_never_replaced() {
    let folder = sample();
    folder.write("sample.etl.part", bytes());
    let content = fs::read(trace::manifest_path()).unwrap();
    folder.write("copy.man", &content).write("a.pdb", "old");
    for (command, input, out) in [
        ("dump", "sample.etl", "sample.etl"),
        ("report", "sample.etl", "sample.etl"),
        ("merge", "sample.etl", "sample.etl"),
        // The temporary file would replace it.
        ("merge", "sample.etl.part", "sample.etl"),
        ("dump", "sample.etl", "copy.man"),
    ] {
        let ran = folder.etl(&[command, input, "--man", "copy.man", "--out", out]);
        assert_eq!(ran.code, Some(1), "{command}");
        let expected =
            format!("etl: cannot write {out}: it is an input file; name another file with --out\n");
        assert_eq!(ran.said, expected);
        for file in ["sample.etl", "sample.etl.part"] {
            assert!(folder.read(file) == bytes(), "{command} has replaced {file}");
        }
    }
    assert_eq!(folder.read("copy.man"), content);
    let ran = folder.etl(&["dump", "sample.etl", "--symbols", ".", "--out", "a.pdb"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(folder.read("a.pdb"), b"old");
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
    let folder = Folder::with("sample.etl", file);
    let ran = folder.etl(&["report", "sample.etl", "--man", &manifest(), "-o", "page.html"]);
    assert_eq!(ran.code, Some(1), "the end of the file is missing");
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    insta::assert_snapshot!(page::data(&page));
}

#[test]
fn a_report_says_how_many_events_it_leaves_out() {
    let folder = sample();
    for (limit, said) in
        [("20", ""), ("5", "etl: sample.html: shows 5 of 20 events; --limit sets how many\n")]
    {
        let ran = folder.etl(&["report", "sample.etl", "--limit", limit, "-o", "sample.html"]);
        assert_eq!(ran.ok().said, said);
    }
}

/// Returns the selected events as JSON lines, without the header.
fn selected(arguments: &[&str]) -> Vec<Value> {
    let manifest = manifest();
    let all = ["dump", "sample.etl", "--format", "json", "--man", &manifest];
    let lines = sample().etl(&[&all, arguments].concat()).ok().lines();
    lines.into_iter().filter(|line| line["record"] == "event").collect()
}

#[test]
fn events_are_selected() {
    // Each provider has ten events; the manifest provider's events alternate between start and
    // stop.
    let described = selected(&["--provider", "contoso.sample"]);
    assert!(described.iter().all(|event| event["event"] == "Progress"));
    for (arguments, count) in [
        (&[][..], 20),
        (&["--provider", "contoso.sample"], 10),
        (&["--event", "RequestStart"], 5),
        (&["--event", "RequestStart", "--event", "2"], 10),
        (&["--level", "4"], 10),
        (&["--keyword", "0x1"], 10),
        (&["--keyword", "0x2"], 20),
        // It is a related one.
        (&["--activity", "a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1"], 5),
    ] {
        assert_eq!(selected(arguments).len(), count, "{arguments:?}");
    }
}

#[test]
fn csv_has_a_line_for_each_event() {
    let ran = sample().etl(&["dump", "sample.etl", "--format", "csv"]).ok();
    assert_eq!(ran.said, "");
    let mut reader = csv::Reader::from_reader(ran.bytes.as_slice());
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 20);
    assert_eq!(&rows[0][5], "Progress");
    assert!(rows[0][13].contains("text=\"half\""), "{}", &rows[0][13]);
}

#[test]
fn statistics_count_by_provider_event_and_level() {
    let said = sample().etl(&["stats", "sample.etl", "--man", &manifest()]).ok().text();
    let row = |name: &str| {
        let line = said.lines().find(|line| line.contains(name)).unwrap_or_default();
        line.split(['│', '┆']).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(row("Progress")[4], "10");
    assert_eq!(row("RequestStart")[4], "5");
    assert!(said.contains("20 events, ") && said.contains("events a second"), "{said}");
    assert!(said.contains("Lost: 0 events, 0 buffers"), "{said}");
}

/// Returns a folder with a trace of these events, `events.etl`.
fn of_events(events: impl IntoIterator<Item = EventRecord>) -> Folder {
    let events = (1..).zip(events).map(|(at, event)| EventRecord { timestamp: at, ..event });
    Folder::with("events.etl", trace::of_records(LogFileHeader::default(), 50, events))
}

/// Returns an event with the field `s`, a NUL-terminated 8-bit string.
fn with_text(text: &[u8]) -> EventRecord {
    let schema =
        ExtendedItem { ext_type: ext_type::EVENT_SCHEMA_TL, data: b"\x08\0\0E\0s\0\x02".to_vec() };
    let user_data = [text, &[0]].concat();
    EventRecord { extended: vec![schema], user_data, ..EventRecord::default() }
}

#[test]
fn the_string_of_an_event_that_has_nothing_else_is_its_message() {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let string = |user_data| EventRecord { string_only: true, user_data, ..EventRecord::default() };
    let sid = ExtendedItem { ext_type: ext_type::SID, data: vec![1; 12] };
    let folder = of_events([
        string(wide("disk full\0")),
        EventRecord { extended: vec![sid], ..string(wide("with an item\0")) },
        string(wide("no end")),
        string(wide("\0")),
        string(wide("before\0behind")),
        EventRecord { user_data: wide("no flag\0"), ..EventRecord::default() },
    ]);
    let lines = folder.etl(&["dump", "events.etl", "--format", "json"]).ok().lines();
    let messages: Vec<&Value> = lines[1..7].iter().map(|line| &line["message"]).collect();
    let expected = ["disk full", "with an item", "no end", "", "before"].map(Value::from);
    assert_eq!(messages[..5], expected.iter().collect::<Vec<_>>());
    assert_eq!(messages[5], &Value::Null);
    let problems = |at: usize| lines[at]["problems"].as_array().unwrap().len();
    assert_eq!([1, 2, 3, 4, 5, 6].map(problems), [0, 0, 0, 0, 1, 1]);
    assert_eq!((&lines[1]["fields"], &lines[1]["leftover"]), (&serde_json::json!({}), &"".into()));
    for format in ["table", "csv", "perfetto"] {
        let ran = folder.etl(&["dump", "events.etl", "--format", format]).ok();
        let text = String::from_utf8_lossy(&ran.bytes);
        assert!(text.contains("disk full"), "{format}: {text}");
    }
    let stats = folder.etl(&["stats", "events.etl"]).ok().text();
    assert!(stats.contains("Not decoded"), "{stats}");
    folder.etl(&["report", "events.etl", "--out", "page.html"]).ok();
    assert!(page::data(str::from_utf8(&folder.read("page.html")).unwrap()).contains("disk full"));
}

#[test]
fn text_that_is_not_utf_8_is_in_a_code_page() {
    let folder =
        of_events([with_text(b"\x80 5"), with_text("é".as_bytes()), with_text(b"\x93\xfa")]);
    let texts = |more: &[&str]| {
        let arguments = [&["dump", "events.etl", "--format", "json"], more].concat();
        let lines = folder.etl(&arguments).ok().lines();
        [1, 2, 3].map(|at| lines[at]["fields"]["s"].as_str().unwrap().to_owned())
    };
    assert_eq!(texts(&[]), ["€ 5", "é", "“ú"]);
    assert_eq!(texts(&["--code-page", "932"])[1..], ["é", "日"]);
    let ran = folder.etl(&["stats", "events.etl", "--code-page", "5"]);
    assert!(ran.code == Some(2) && ran.said.contains("unknown code page"), "{}", ran.said);
}

#[test]
fn formulas_of_spreadsheets_are_guarded_on_request() {
    let folder = of_events([with_text(b"=HYPERLINK(1)"), with_text(b"-1"), with_text(b"a=1")]);
    let csv = |more: &[&str]| {
        let arguments = [&["dump", "events.etl", "--format", "csv", "--fields"], more].concat();
        folder.etl(&arguments).ok().text()
    };
    assert!(csv(&[]).contains(",=HYPERLINK(1),"));
    let guarded = csv(&["--guard-formulas"]);
    for cell in [",'=HYPERLINK(1),", ",'-1,", ",a=1,"] {
        assert!(guarded.contains(cell), "{cell}: {guarded}");
    }
}

#[test]
fn a_trace_comes_through_a_pipe() {
    let folder = sample();
    let whole = folder.etl(&["stats", "sample.etl"]).ok();
    let commands: [&[&str]; 2] =
        [&["stats", "/dev/stdin"], &["merge", "/dev/stdin", "-o", "m.etl"]];
    for arguments in commands {
        let mut child = folder.command(arguments);
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, &bytes()).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        if arguments[0] == "stats" {
            assert_eq!(output.stdout, whole.bytes);
        }
    }
    let merged = folder.etl(&["stats", "m.etl"]).ok().text();
    assert!(merged.contains("20 events"), "{merged}");
}
