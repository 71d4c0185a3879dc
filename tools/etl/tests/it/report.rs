//! Tests the report in a real browser.

use std::fs;
use std::path::PathBuf;

use crate::browser::Browser;
use crate::run::{Folder, manifest};
use etl_file::write::{Finish, KernelRecord, Losses};
use etl_file::{ClockType, EventDescriptor, EventRecord, ExtendedItem, Guid, ext_type};
use etl_fixtures::kernel_records;
use etl_fixtures::trace::{self, Recorded};

/// The name of the page.
const PAGE: &str = "trace.html";

/// Writes a page, and returns its folder and the messages of the command.
fn etl_report(file: &[u8], options: &[&str]) -> (Folder, String) {
    let folder = Folder::with("trace.etl", file);
    let manifest = manifest();
    let arguments = ["report", "trace.etl", "--man", &manifest, "-o", PAGE];
    let said = folder.etl(&[&arguments, options].concat()).ok().said;
    (folder, said)
}

/// Writes a page, and opens it in a browser at this part of its address.
fn opened(file: &[u8], hash: &str) -> (Folder, PathBuf, Browser) {
    let (folder, _) = etl_report(file, &[]);
    let page = folder.path(PAGE);
    let mut browser = Browser::start(1400, 900);
    browser.open(&page, hash);
    (folder, page, browser)
}

/// Returns a pseudo-random number.
const fn noise(n: u32) -> u32 {
    let n = (n ^ (n >> 16)).wrapping_mul(0x45D9_F3B5);
    (n ^ (n >> 15)).wrapping_mul(0x2C1B_3C6D) >> 4
}

/// The number of events for one request of [`driver_trace`].
const EVENTS_OF_REQUEST: u32 = 6;

/// Writes events of a driver: requests, each an activity that contains a related activity, from
/// four processes with two threads each, on four processors. Every tenth request fails, every
/// fourth has a warning, and every twentieth has an event without a schema.
fn driver_trace(requests: u32) -> Vec<u8> {
    let mut header = trace::header(ClockType::SystemTime, 0x10000, 4);
    "Driver session".clone_into(&mut header.session_name);
    let mut now = header.start_clock;
    let mut events = Vec::new();
    let traits = trace::traits("Contoso.Driver", None);
    for request in 0..requests {
        let activity = Guid::from_u128(0xA000_0000 + u128::from(request));
        let inner = Guid::from_u128(0xB000_0000 + u128::from(request));
        for step in 0..EVENTS_OF_REQUEST {
            now += 50 + i64::from(noise(request * EVENTS_OF_REQUEST + step) % 90);
            let (name, opcode, level) = match step {
                0 => ("Request", 1, 4),
                1 => ("Transfer", 1, 5),
                3 if request % 20 == 0 => ("", 0, 4),
                3 if request % 10 == 5 => ("RequestFailed", 0, 2),
                3 if request % 4 == 1 => ("Retried", 0, 3),
                2 | 3 => ("Progress", 0, 5),
                4 => ("Transfer", 2, 5),
                _ => ("Request", 2, 4),
            };
            let own = if (1..=4).contains(&step) { inner } else { activity };
            let mut extended = Vec::new();
            if step == 1 {
                extended.push(ExtendedItem::related_activity(activity));
            }
            let mut user_data = u64::from(request).to_le_bytes().to_vec();
            user_data.extend(noise(request).to_le_bytes());
            let path = format!(r"\Device\store\{:x}", noise(request) >> 12);
            user_data.extend(path.encode_utf16().flat_map(u16::to_le_bytes));
            user_data.extend([0, 0]);
            user_data.extend(step.to_le_bytes());
            user_data.extend(77_u32.to_le_bytes());
            let provider = if name.is_empty() { 0x5678 } else { 0x1234 };
            if !name.is_empty() {
                let mut schema = trace::Schema::new(name);
                schema.field("request", &[10]); // UINT64
                schema.field("length", &[8]); // UINT32
                schema.field("path", &[1]); // UNICODESTRING
                schema.field("place", &[0x18 | 0x80, 2]); // STRUCT of 2
                schema.field("step", &[8]);
                schema.field("line", &[8]);
                for (ext_type, data) in [
                    (ext_type::PROV_TRAITS, traits.clone()),
                    (ext_type::EVENT_SCHEMA_TL, schema.finish()),
                ] {
                    extended.push(ExtendedItem { ext_type, data });
                }
            }
            let event = EventRecord {
                thread_id: 100 + request % 8,
                process_id: 40 + request % 4,
                timestamp: now,
                provider: Guid::from_u128(provider),
                descriptor: EventDescriptor {
                    id: u16::try_from(step).unwrap(),
                    channel: 11,
                    level,
                    opcode,
                    keyword: 1 << (step / 3),
                    task: if name == "Transfer" { 2 } else { 1 },
                    ..EventDescriptor::default()
                },
                activity_id: own,
                extended,
                user_data,
                ..EventRecord::default()
            };
            events.push((request % 4, event));
        }
    }
    let log = trace::on_processors(header, Losses::default(), events);
    log.finish(Finish::default()).unwrap().into_inner()
}

const SHOWN: &str = "document.getElementById('table').dataset.shown";

/// Returns the script that clicks a filter's value.
fn click_value(facet: &str, text: &str) -> String {
    format!(
        "[...document.querySelectorAll('.facet[data-facet={facet}] .value')].find((one) => one.textContent.includes('{text}')).click()"
    )
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn the_page_tells_what_went_wrong_first() {
    let losses = Losses { events_lost: 5, buffers_lost: 1 };
    let (file, _) = trace::file(trace::header(ClockType::Qpc, 0x1000, 2), 40, losses);
    let (_folder, _page, mut browser) = opened(&file, "");
    assert_eq!(browser.text(SHOWN), "40");
    let summary = browser.text("document.getElementById('summary').innerText");
    assert!(summary.contains("5 events, 1 buffer"), "{summary}");
    let problems = browser.text("document.getElementById('problems').innerText");
    assert!(problems.contains("the session lost events"), "{problems}");
    let sessions = browser.text("document.getElementById('panel-sessions').textContent");
    assert!(sessions.contains("Fixture"), "{sessions}");
    let order = browser.eval(
        "['summary', 'problems', 'timeline', 'table'].map((id) => Math.round(document.getElementById(id).getBoundingClientRect().top))",
    );
    let order: Vec<i64> =
        order.as_array().unwrap().iter().map(|top| top.as_i64().unwrap()).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert!(browser.number("document.getElementById('timeline').dataset.spans") > 0);
    // The counts include all events.
    let counts = browser.text("document.getElementById('panel-counts').textContent");
    assert!(counts.contains("RequestStart") && counts.contains("Contoso.Sample"), "{counts}");
    browser.assert_no_errors();
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn filters_search_and_ranges_change_what_is_shown_and_the_address_keeps_them() {
    let (_folder, page, mut browser) = opened(&driver_trace(200), "");
    assert_eq!(browser.text(SHOWN), "1200");
    // A filter on one facet; its count is the number of events that it leaves.
    let promised = browser.text(
        "document.querySelector('.facet[data-facet=level] .value[data-value=\"2\"] .number').textContent",
    );
    browser.eval(&click_value("level", "Error"));
    assert_eq!(browser.text(SHOWN), promised);
    assert_eq!(promised, "20");
    assert_eq!(browser.text("location.hash"), "#level=2");
    // The facet's other values stay, with the numbers of events that they would leave. Other facets
    // count the remaining events.
    assert!(
        browser
            .text("document.querySelector('.facet[data-facet=level]').innerText")
            .contains("Warning")
    );
    browser.eval(&click_value("level", "Warning"));
    let alarms = browser.number(SHOWN);
    assert!(alarms > 20);
    // Back and forward.
    browser.eval("history.back()");
    browser.wait_for(&format!("{SHOWN} === '20'"));
    browser.eval("history.forward()");
    browser.wait_for(&format!("{SHOWN} === '{alarms}'"));
    // Hiding a value.
    browser.eval("document.getElementById('clear').click()");
    assert_eq!(browser.text(SHOWN), "1200");
    browser.eval("document.querySelector('.facet[data-facet=event] .hide').click()");
    let hidden = browser.number(SHOWN);
    assert!(hidden < 1200, "{hidden}");
    browser.eval("document.getElementById('clear').click()");
    // Search: names, fields, values, and a field with its value.
    let length = noise(101).to_string();
    for (query, expected) in [
        ("requestfailed", "20"),
        ("request=17", "6"),
        (length.as_str(), "6"),
        ("nothing like this", "0"),
        (r"\device\STORE", "1190"),
    ] {
        let hash = serde_json::to_string(query).unwrap();
        browser.eval(&format!("location.hash = '#q=' + encodeURIComponent({hash})"));
        browser.wait_for(&format!(
            "document.getElementById('search').value === {hash} && document.body.dataset.searching === 'no'"
        ));
        let shown = browser.text(SHOWN);
        assert_eq!(shown, expected, "{query}");
    }
    // A new page with the same address shows the same view.
    browser.eval("location.hash = '#'");
    browser.wait_for(&format!("{SHOWN} === '1200'"));
    browser.eval(&click_value("process", "41"));
    browser.eval(&click_value("keyword", "0x1"));
    let shown = browser.text(SHOWN);
    assert_eq!(shown, "150");
    browser.drag("#lanes", (400.0, 40.0), (700.0, 40.0));
    browser.wait_for("location.hash.includes('range=')");
    let in_range = browser.number(SHOWN);
    assert!(in_range > 10 && in_range < 100, "{in_range}");
    browser.eval("document.querySelector('#head [data-sort=event]').click()");
    browser.eval("document.querySelector('#lanes-switch [value=thread]').click()");
    assert_eq!(browser.text("document.getElementById('timeline').dataset.lanes"), "8");
    browser.wait_for("location.hash.includes('lanes=thread')");
    let hash = browser.text("location.hash");
    let first = browser.text("document.querySelector('.row').innerText");
    browser.open(&page, &hash);
    assert_eq!(browser.number(SHOWN), in_range);
    assert_eq!(browser.text("location.hash"), hash);
    browser.wait_for("!document.querySelector('.row').innerText.includes('…')");
    assert_eq!(browser.text("document.querySelector('.row').innerText"), first);
    assert_eq!(browser.text("document.getElementById('timeline').dataset.lanes"), "8");
    // The valid parts of a nonsensical address apply.
    browser.open(&page, "#range=x&open=99999999999&sort=nothing&view=7&lanes=x&level=2");
    assert_eq!(browser.text(SHOWN), "20");
    browser.assert_no_errors();
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn keys_reach_everything_and_an_event_opens_with_all_its_parts() {
    let (_folder, page, mut browser) = opened(&driver_trace(100), "");
    let focus = "document.activeElement.id";
    browser.press("/");
    assert_eq!(browser.text(focus), "search");
    browser.press("Escape");
    browser.press("?");
    assert_eq!(browser.text("document.getElementById('help').open"), "true");
    browser.press("Escape");
    browser.wait_for("!document.getElementById('help').open");
    browser.press("t");
    assert_eq!(browser.text(focus), "table");
    browser.press("ArrowDown");
    browser.press("ArrowDown");
    assert_eq!(
        browser.text("document.getElementById('table').getAttribute('aria-activedescendant')"),
        "row-2"
    );
    assert!(browser.text("document.querySelector('.row.at').id").contains("row-2"));
    browser.press("ArrowUp");
    browser.press("Enter");
    browser.wait_for("document.getElementById('event').dataset.event === '1'");
    assert_eq!(browser.text("location.hash"), "#open=1");
    let event = browser.text("document.getElementById('event').innerText");
    for expected in [
        "Transfer", "request", "\\Device\\store\\", "place", "step", "line", "77",
        "Contoso.Driver", "00000000-0000-0000-0000-0000b0000000", "4 events of the activity",
        "00000000-0000-0000-0000-0000a0000000", "1 (Start)", "40", "100", "2026-01-02 03:04:05",
    ] {
        assert!(event.contains(expected), "{expected}: {event}");
    }
    // The outer activity lists the inner one.
    browser.eval("[...document.querySelectorAll('#event .steps .link')].at(-1).click()");
    browser.wait_for("document.getElementById('event').dataset.event === '4'");
    browser.press("t");
    browser.press("Home");
    browser.wait_for("document.getElementById('event').dataset.event === '0'");
    let event = browser.text("document.getElementById('event').innerText");
    assert!(event.contains("1 related activity"), "{event}");
    browser.press("End");
    browser.wait_for("document.getElementById('event').dataset.event === '599'");
    browser.press("Escape");
    assert_eq!(browser.text("document.getElementById('event').hidden"), "true");
    assert_eq!(browser.text(focus), "table");
    // An event without a schema shows its bytes and the reason.
    browser.open(&page, "#open=3");
    browser.wait_for("document.getElementById('event').dataset.event === '3'");
    let event = browser.text("document.getElementById('event').innerText");
    assert!(event.contains("no loaded manifest or image describes this event"), "{event}");
    assert!(event.contains("0000  00 00 00 00"), "{event}");
    // Keyboard control of the timeline.
    browser.press("l");
    assert_eq!(browser.text(focus), "timeline");
    browser.press("w");
    browser.press("w");
    browser.press("d");
    browser.wait_for("location.hash.includes('view=')");
    browser.press("r");
    assert!(browser.text("location.hash").contains("range="));
    assert!(browser.number(SHOWN) < 400);
    browser.press("Escape");
    assert_eq!(browser.text(SHOWN), "600");
    browser.press("0");
    browser.wait_for("!location.hash.includes('view=')");
    // The themes differ, and each can be selected.
    let background = "getComputedStyle(document.documentElement).backgroundColor";
    let before = browser.text(background);
    browser.eval("document.getElementById('theme').click()");
    assert_ne!(browser.text(background), before);
    browser.assert_no_errors();
}

/// Strings that could be interpreted as markup or script.
const HOSTILE: &str = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">{{script}}{{data}}\u{2028}\u{202e}'\"&amp;";

/// Writes a file with one `TraceLogging` event whose name, field and text are hostile.
fn hostile() -> Vec<u8> {
    let name = HOSTILE.as_bytes();
    let mut schema = trace::Schema::new(HOSTILE);
    schema.field(HOSTILE, &[2]); // a NUL-terminated text
    let mut user_data = name.to_vec();
    user_data.push(0);
    let extended = [
        (ext_type::PROV_TRAITS, trace::traits(HOSTILE, None)),
        (ext_type::EVENT_SCHEMA_TL, schema.finish()),
    ];
    let record = EventRecord {
        timestamp: 2_745_263_251_999,
        provider: Guid::from_u128(7),
        descriptor: EventDescriptor { level: 2, channel: 11, ..EventDescriptor::default() },
        extended: extended
            .into_iter()
            .map(|(ext_type, data)| ExtendedItem { ext_type, data })
            .collect(),
        user_data,
        ..EventRecord::default()
    };
    let mut header = trace::header(ClockType::Qpc, 0x1000, 1);
    HOSTILE.clone_into(&mut header.session_name);
    trace::of_records(header, record.timestamp, [record])
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn contents_of_a_trace_are_shown_as_text_and_nothing_is_loaded() {
    let (_folder, _page, mut browser) = opened(&hostile(), "#open=0&q=owned");
    browser.wait_for("document.getElementById('event').dataset.event === '0'");
    assert_eq!(browser.text(SHOWN), "1");
    for tab in ["counts", "sessions", "events"] {
        browser.eval(&format!("document.getElementById('tab-{tab}').click()"));
    }
    assert!(!browser.text("document.title").contains("owned"), "a script from the trace ran");
    assert_eq!(browser.text("document.images.length"), "0", "markup became an element");
    let shown = browser.text("document.getElementById('event').textContent");
    assert!(shown.contains("<img src=x onerror="), "{shown}");
    assert!(!shown.contains('\u{202e}'), "a control character is shown as it is");
    browser.assert_no_errors();
    // An injected script would not run, because the policy permits only the page's own script.
    for blocked in [
        "(() => { const made = document.createElement('script'); made.textContent = 'document.title=\"owned\"'; document.body.append(made); })()",
        "(() => { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\"><style>body { color: red }</style>'); })()",
    ] {
        browser.eval(blocked);
    }
    let refused =
        browser.text("fetch('https://example.com').then(() => 'loaded', () => 'refused')");
    assert_eq!(refused, "refused");
    assert!(!browser.text("document.title").contains("owned"));
    assert_ne!(browser.text("getComputedStyle(document.body).color"), "rgb(255, 0, 0)");
    // The page refers to nothing outside itself.
    let (folder, _) = etl_report(&driver_trace(1), &[]);
    let markup = String::from_utf8(folder.read(PAGE)).unwrap();
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!markup.contains(outside), "{outside}");
    }
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn a_sample_says_what_it_has_and_keeps_what_matters() {
    let (folder, message) = etl_report(&driver_trace(2_000), &["--limit", "3000"]);
    assert!(message.contains("of 12000 events"), "{message}");
    let mut browser = Browser::start(1400, 900);
    browser.open(&folder.path(PAGE), "");
    let shown = browser.number(SHOWN);
    assert!((2_900..=3_000).contains(&shown), "{shown}");
    let said = browser.text("document.getElementById('sampling').innerText");
    // 200 errors, 300 other warnings, and 100 other events that are not decoded.
    assert!(said.contains("of 12,000 events"), "{said}");
    assert!(said.contains("all 700 errors, warnings and events with problems"), "{said}");
    assert!(said.contains("of 8,000 ("), "{said}");
    assert!(said.contains("all 200 that are among the first 100 of their kind"), "{said}");
    let summary = browser.text("document.getElementById('summary').innerText");
    assert!(summary.contains("12,000"), "{summary}");
    let counts = browser.text("document.getElementById('panel-counts').textContent");
    assert!(counts.contains("12,000") || counts.contains("11,900"), "{counts}");
    // A start is not shown without its stop.
    let open = browser.text("document.getElementById('problems').innerText");
    assert!(!open.contains("not stopped"), "{open}");
    assert_eq!(browser.text("document.getElementById('timeline').dataset.density"), "exact");
    browser.assert_no_errors();
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn phones_and_paper_show_something_usable() {
    let (folder, _) = etl_report(&driver_trace(100), &[]);
    let mut browser = Browser::start(390, 800);
    for (width, height) in [(390, 800), (900, 700), (2560, 1300)] {
        let size = serde_json::json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        browser.call("Emulation.setDeviceMetricsOverride", size);
        browser.open(&folder.path(PAGE), "");
        let overflow = browser.number("document.documentElement.scrollWidth");
        assert!(overflow <= width, "{overflow} at {width}");
        assert!(browser.number("document.querySelectorAll('.row').length") > 5);
    }
    browser.call("Page.printToPDF", serde_json::json!({}));
    browser.assert_no_errors();
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn a_trace_without_events_has_a_page() {
    let (_folder, _page, mut browser) = opened(&driver_trace(0), "");
    assert_eq!(browser.text(SHOWN), "0");
    browser.press("t");
    browser.press("ArrowDown");
    browser.press("Enter");
    browser.assert_no_errors();
}

/// Writes a file in which kernel events name processes, threads and images, and add a stack to a
/// driver's event.
fn kernel_trace() -> Vec<u8> {
    const KERNEL: u64 = 0xFFFF_F801_0000_0000;
    let header = trace::header(ClockType::Qpc, 0x10000, 1);
    let start = header.start_clock;
    let image = kernel_records::image(KERNEL, 4, r"\SystemRoot\system32\drivers\store.sys");
    let stack = kernel_records::stack(start + 40, 40, 100, &[KERNEL + 0x1A2C, 5]);
    let record = |hook, version, timestamp, payload| {
        let ids = KernelRecord { thread_id: 100, process_id: 40, ..KernelRecord::default() };
        KernelRecord { hook, version, timestamp, payload, ..ids }.record()
    };
    let mut schema = trace::Schema::new("Written");
    schema.field("length", &[8]);
    let driver = EventRecord {
        timestamp: start + 40,
        thread_id: 100,
        process_id: 40,
        provider: Guid::from_u128(0x1234),
        descriptor: EventDescriptor { level: 4, channel: 11, ..EventDescriptor::default() },
        extended: vec![ExtendedItem { ext_type: ext_type::EVENT_SCHEMA_TL, data: schema.finish() }],
        user_data: vec![7, 0, 0, 0],
        ..EventRecord::default()
    };
    let records = [
        record(0x0301, 2, start + 10, kernel_records::process(40, "store.exe")),
        record(0x0501, 3, start + 20, kernel_records::thread(40, 100, "writer")),
        record(0x1403, 1, start + 30, image),
        record(0x1820, 2, start + 41, stack),
        driver.record(),
    ];
    trace::of_records(header, start + 41, records)
}

#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn kernel_events_are_shown_and_name_processes_and_stacks() {
    let (_folder, page, mut browser) = opened(&kernel_trace(), "#q=written");
    browser.wait_for("document.body.dataset.searching === 'no'");
    assert_eq!(browser.text(SHOWN), "1");
    browser.press("t");
    browser.press("Enter");
    browser.wait_for("document.getElementById('event').dataset.event === '3'");
    let event = browser.text("document.getElementById('event').innerText");
    for expected in
        ["store.exe (40)", "writer (100)", "store.sys+0x1a2c (0xfffff80100001a2c)", "0x5"]
    {
        assert!(event.contains(expected), "{expected}: {event}");
    }
    // Kernel events are shown like other events.
    browser.open(&page, "#provider=Process&open=0");
    assert_eq!(browser.text(SHOWN), "1");
    browser.wait_for("document.getElementById('event').dataset.event === '0'");
    let event = browser.text("document.getElementById('event').innerText");
    for expected in ["ImageFileName", "store.exe", "kernel event 0x0301"] {
        assert!(event.contains(expected), "{expected}: {event}");
    }
    browser.assert_no_errors();
}

/// The maximum size of a page with a million events, in bytes.
const MAX_BYTES: u64 = 60_000_000;

/// Creates a page with a million events, and prints its size and loading time. Uses fewer events
/// without optimization, where a million would take minutes, but still more than fit if each row
/// were an element.
#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn a_million_events_fit_and_scroll_to_the_last() {
    let events: u32 = if cfg!(debug_assertions) { 400_000 } else { 1_000_000 };
    let requests = events.div_ceil(EVENTS_OF_REQUEST);
    let (folder, _) = etl_report(&driver_trace(requests), &["--limit", "2000000"]);
    let size = fs::metadata(folder.path(PAGE)).unwrap().len();
    let mut browser = Browser::start(1400, 900);
    let loaded = browser.open(&folder.path(PAGE), "");
    let script = browser.number("document.body.dataset.loaded");
    println!("{size} bytes, loaded in {loaded:?}, by the page's own clock in {script} ms");
    assert!(size < MAX_BYTES, "{size} bytes");
    let last = u64::from(requests * EVENTS_OF_REQUEST - 1);
    assert_eq!(browser.text(SHOWN), (last + 1).to_string());
    browser.press("t");
    browser.press("End");
    browser.wait_for(&format!("document.getElementById('row-{last}') !== null"));
    let inside = format!(
        "(() => {{ const row = document.getElementById('row-{last}')?.getBoundingClientRect(); const box = document.getElementById('table').getBoundingClientRect(); return row !== undefined && row.bottom <= box.bottom + 1 && row.top >= box.top; }})()"
    );
    browser.wait_for(&inside);
    browser.eval("document.getElementById('table').scrollTop = 0");
    browser.wait_for("document.getElementById('row-0') !== null");
    // The scroll bar's end is also the last row.
    browser.eval("document.getElementById('table').scrollTop = 1e9");
    browser.wait_for(&inside);
    assert!(browser.number("document.querySelectorAll('.row').length") < 100);
    browser.press("Enter");
    browser.wait_for(&format!("document.getElementById('event').dataset.event === '{last}'"));
    browser.assert_no_errors();
}

/// Returns the width and height of a PNG.
fn size_of_picture(png: &[u8]) -> (u32, u32) {
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "a PNG");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

/// The documentation's pictures: name, view, and true for the dark theme.
const PICTURES: [(&str, &str, bool); 2] = [
    ("report-light.png", "#lanes=thread&view=0-300", false),
    ("report-dark.png", "#lanes=thread&view=0-300&open=16", true),
];

/// Checks the documentation's pictures. `cargo xtask renew pictures` takes new ones of the demo's
/// trace.
#[test]
#[ignore = "needs a browser; `cargo xtask test` runs it"]
fn the_documentation_has_pictures_of_the_page() {
    let root = etw_test_support::root();
    let images = root.join("docs/images");
    let size = (1280, 1000);
    if std::env::var_os("WDK_ETW_RENEW").is_some() {
        let trace = root.join("target/demo/everything.etl");
        assert!(trace.exists(), "run `cargo xtask demo` first");
        let folder = Folder::with("everything.etl", fs::read(&trace).unwrap());
        let manifest = root.join("inf/etw_sample_driver.man");
        let manifest = manifest.to_str().unwrap();
        folder.etl(&["report", "everything.etl", "--man", manifest, "--out", PAGE]).ok();
        fs::create_dir_all(&images).unwrap();
        for (name, hash, dark) in PICTURES {
            let mut browser = Browser::start(size.0, size.1);
            let theme = if dark { "dark" } else { "light" };
            browser.call(
                "Emulation.setEmulatedMedia",
                serde_json::json!({"features": [{"name": "prefers-color-scheme", "value": theme}]}),
            );
            browser.open(&folder.path(PAGE), hash);
            browser.wait_for("!document.getElementById('rows').textContent.includes('…')");
            if hash.contains("open=") {
                browser.wait_for("document.getElementById('event').dataset.event !== undefined");
            }
            std::thread::sleep(std::time::Duration::from_secs(1)); // the canvas has been drawn
            fs::write(images.join(name), browser.screenshot()).unwrap();
            browser.assert_no_errors();
        }
    }
    for (name, ..) in PICTURES {
        let png = fs::read(images.join(name)).unwrap();
        assert_eq!(size_of_picture(&png), size, "{name}");
        assert!(png.len() < 300_000, "{name}: {} bytes", png.len());
    }
}
