//! Tests the report in a real browser.

mod fixture;

use std::fs;
use std::path::Path;
use std::process::Command;

use etl_file::write::{Buffer, Finish, LogFile, Losses};
use etl_file::{ClockType, EventDescriptor, EventRecord, ExtendedItem, Guid};

/// Opens a page at `address` and returns its final markup.
fn browse(page: &Path, hash: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(etw_test_support::program("WDK_ETW_BROWSER", "chromium"))
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
        ])
        .args(["--virtual-time-budget=10000", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}{hash}", page.display()))
        .output()
        .expect("the browser starts; `cargo xtask doctor --install` installs one");
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        page.contains("data-ready=\"yes\""),
        "the script did not finish:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    page
}

/// Returns the value of an attribute that occurs once in the page.
fn attribute<'a>(page: &'a str, name: &str) -> &'a str {
    let start = format!("{name}=\"");
    let (_, rest) = page
        .split_once(&start)
        .unwrap_or_else(|| panic!("the page has no {name}"));
    rest.split('"').next().unwrap()
}

fn etl_report(folder: &Path, file: &[u8]) -> std::path::PathBuf {
    let (trace, page) = (folder.join("trace.etl"), folder.join("trace.html"));
    fs::write(&trace, file).unwrap();
    let man = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture/sample.man");
    let output = Command::new(env!("CARGO_BIN_EXE_etl"))
        .arg("report")
        .arg(&trace)
        .arg("--man")
        .arg(man)
        .arg("-o")
        .arg(&page)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    page
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn events_are_shown_filtered_and_sorted() {
    let folder = tempfile::tempdir().unwrap();
    let losses = Losses {
        events_lost: 5,
        buffers_lost: 1,
    };
    let (file, _) = fixture::file(fixture::header(ClockType::Qpc, 0x1000, 2), 40, losses);
    let page = etl_report(folder.path(), &file);
    let all = browse(&page, "");
    assert_eq!(attribute(&all, "data-shown"), "40");
    assert!(all.contains("40 of 40 events"));
    assert!(all.contains("5 events and 1 buffers were lost"));
    assert!(all.contains("RequestStart") && all.contains("Contoso.Sample"));
    let spans: usize = attribute(&all, "data-total").parse().unwrap();
    assert!(spans > 0, "starts and stops make spans");
    assert_eq!(all.matches("class=\"span\"").count(), spans);
    let filtered = browse(&page, "#filter=requeststart");
    let shown: usize = attribute(&filtered, "data-shown").parse().unwrap();
    assert!(shown > 0 && shown < 40, "{shown}");
    let none = browse(&page, "#filter=nothing%20like%20this");
    assert_eq!(attribute(&none, "data-shown"), "0");
    let sorted = browse(&page, "#sort=-ms");
    let time = |page: &str| {
        let (_, rows) = page.split_once("id=\"rows\"").unwrap();
        let (_, cell) = rows.split_once("<span title=\"").unwrap();
        cell.split('"').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(time(&sorted) > time(&all));
}

/// Strings that a page could mistake for its own markup or script.
const HOSTILE: &str = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">{{script}}\u{2028}'\"&amp;";

/// Writes a file with one `TraceLogging` event whose name, field and text are hostile.
fn hostile() -> Vec<u8> {
    let name = HOSTILE.as_bytes();
    let mut schema = vec![0, 0, 0];
    schema.extend(name);
    schema.push(0);
    schema.extend(name);
    schema.extend([0, 2]); // a NUL-terminated text
    let size = u16::try_from(schema.len()).unwrap();
    schema[..2].copy_from_slice(&size.to_le_bytes());
    let mut user_data = name.to_vec();
    user_data.push(0);
    let record = EventRecord {
        timestamp: 2_745_263_251_999,
        provider: Guid::from_u128(7),
        descriptor: EventDescriptor {
            level: 4,
            channel: 11,
            ..EventDescriptor::default()
        },
        extended: vec![ExtendedItem {
            ext_type: 11,
            data: schema,
        }],
        user_data,
        ..EventRecord::default()
    };
    let mut header = fixture::header(ClockType::Qpc, 0x1000, 1);
    HOSTILE.clone_into(&mut header.session_name);
    let mut file = LogFile::create(std::io::Cursor::new(Vec::new()), header).unwrap();
    let mut buffer = Buffer::new(0x1000, 0);
    buffer.try_append(&record).unwrap();
    file.append(&buffer, record.timestamp).unwrap();
    file.finish(Finish::default()).unwrap().into_inner()
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn event_contents_are_shown_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let page = etl_report(folder.path(), &hostile());
    let seen = browse(&page, "");
    assert!(
        seen.contains("<title>Event trace</title>"),
        "a script from the trace ran"
    );
    assert!(
        !seen.contains("<img"),
        "markup from the trace became an element"
    );
    assert_eq!(seen.matches("<script").count(), 2, "the page's own");
    assert_eq!(attribute(&seen, "data-shown"), "1");
    assert!(
        seen.contains("&lt;img src=x onerror="),
        "it is shown as text"
    );
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn only_visible_rows_of_a_hundred_thousand_events_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let header = fixture::header(ClockType::Qpc, 0x10000, 1);
    let (file, _) = fixture::file(header, 100_000, Losses::default());
    let page = etl_report(folder.path(), &file);
    let seen = browse(&page, "#filter=request");
    let shown: usize = attribute(&seen, "data-shown").parse().unwrap();
    assert!(shown > 10_000, "{shown}");
    let drawn = seen.matches("class=\"row\"").count();
    assert!((10..200).contains(&drawn), "{drawn} rows are drawn");
}
