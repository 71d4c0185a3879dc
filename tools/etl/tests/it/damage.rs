//! Tests the outputs of damaged traces, and of traces with unknown records.

use std::io::Cursor;
use std::num::NonZeroUsize;

use etl::stats::Stats;
use etl::{json, table};
use etl_file::stream::Events;
use etl_file::write::Losses;
use etl_file::{Catalog, ClockType, EventRecord, Selection, TraceFile};
use etl_fixtures::trace;

/// The size of a buffer.
const SIZE: usize = 0x1000;

/// Returns a file with a header buffer and some data buffers.
fn sample() -> Vec<u8> {
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    trace::file(header, 40, Losses::default()).0
}

/// Reads a file in time order, and calls every function that shows it. Returns the last lines of
/// the table.
fn exercise(file: &[u8]) -> String {
    let Ok(mut file) = TraceFile::new(Cursor::new(file)) else {
        return String::new();
    };
    let (catalog, selection) = (Catalog::new(), Selection::default());
    let header = file.header().clone();
    json::write_lines(&mut file, &catalog, &selection, &mut Vec::new()).unwrap();
    let (stats, damages) = Stats::read(&mut file, &catalog, NonZeroUsize::MIN).unwrap();
    assert_eq!(stats.render().contains("Damaged:"), !damages.is_empty());
    let mut events = Events::new(&mut file, &catalog, &selection);
    let mut out = Vec::new();
    let mut table = table::Writer::new(&mut out, Some(80));
    while let Some((_, decoded)) = events.next().unwrap() {
        table.event(&decoded).unwrap();
    }
    table.end(&header, &events.summary()).unwrap();
    let out = String::from_utf8(out).unwrap();
    out[out.rfind("Holds").unwrap()..].to_owned()
}

#[test]
fn every_output_tolerates_changed_bytes() {
    let file = sample();
    let mut changed = file.clone();
    for at in (0..file.len().min(3 * SIZE)).step_by(48) {
        for flip in [0x01, 0x80, 0xFF] {
            changed[at] = file[at] ^ flip;
            exercise(&changed);
        }
        changed[at] = file[at];
    }
}

#[test]
fn unknown_records_are_counted_below_the_table() {
    let mut file = sample();
    let record = [10, 0, 0x77, 0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file[SIZE + 72..SIZE + 88].copy_from_slice(&record);
    for at in [0x04, 0x30] {
        file[SIZE + at..SIZE + at + 4].copy_from_slice(&88_u32.to_le_bytes());
    }
    let shown = exercise(&file);
    assert!(shown.contains("Skipped  1 unknown 0x77 records, 10 bytes"), "{shown}");
    assert!(shown.starts_with("Holds    "), "{shown}");
}

#[test]
fn stats_have_the_bytes_of_all_records_and_the_losses() {
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    let losses = Losses { events_lost: 3, buffers_lost: 2 };
    let (file, written) = trace::file(header, 40, losses);
    let bytes: usize = written.iter().map(EventRecord::encoded_size).sum();
    let mut trace = TraceFile::new(Cursor::new(file)).unwrap();
    let (stats, damages) = Stats::read(&mut trace, &Catalog::new(), NonZeroUsize::MIN).unwrap();
    assert!(damages.is_empty());
    assert_eq!(stats.events(), 40);
    let text = stats.render();
    let expected = format!("40 events, {bytes} bytes, in 0.039000 s: 1026 events a second\n");
    assert!(text.contains(&expected), "{expected}{text}");
    assert!(text.contains("Lost: 3 events, 2 buffers\n"), "{text}");
}
