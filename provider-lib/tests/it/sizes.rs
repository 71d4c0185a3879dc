//! Tests `usize` and `isize` fields with explicit sizes, in both encodings.

#[path = "../../build/tests/fixture/sizes.rs"]
mod fixture;

use crate::decode::{catalog_of, decoded};
use etl_file::Catalog;
use fixture::trace::{self, Span, Whole};
use mock_etw::{Turn, enabled};
use wdk_etw::{emit, event};

/// Returns the fields of the written events.
fn all(etw: &Turn, catalog: &Catalog) -> Vec<Vec<String>> {
    let writes = etw.writes();
    let fields = writes.iter().map(|one| decoded(one, trace::ID, catalog).1);
    fields.collect()
}

fn registered() -> Turn {
    enabled(&trace::PROVIDER, 255)
}

/// Returns the fields of the event `FieldCut` about a number that does not fit.
fn notice(name: &str, id: u16, field: usize, asked: i64, kept: i64) -> Vec<String> {
    vec![
        format!("Event={name:?}"),
        format!("Id={id}"),
        "Version=0".to_owned(),
        format!("Field={field}"),
        format!("Length={}", asked.cast_unsigned()),
        format!("Kept={}", kept.cast_unsigned()),
    ]
}

const NAMES: [&str; 4] = ["One", "Two", "Four", "Eight"];

/// Returns the events expected for an event whose four fields are a number, limited to these
/// ranges: the `FieldCut` events, and the event itself.
fn limited(
    name: &str,
    id: u16,
    asked: i64,
    ranges: [(i64, i64); 4],
    shown: fn(i64) -> String,
) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut fields = Vec::new();
    for (at, (smallest, largest)) in ranges.into_iter().enumerate() {
        let kept = asked.clamp(smallest, largest);
        if kept != asked {
            all.push(notice(name, id, at, asked, kept));
        }
        fields.push(format!("{}={}", NAMES[at], shown(kept)));
    }
    fields.push("Last=7".to_owned());
    all.push(fields);
    all
}

/// Writes events, and checks the output and the number of counted cuts.
fn assert_written(
    etw: &Turn,
    catalog: &Catalog,
    write: impl FnOnce(),
    expected: &[Vec<String>],
    notices: u64,
) {
    let before = trace::PROVIDER.failures().cut();
    write();
    assert_eq!(all(etw, catalog), expected);
    assert_eq!(trace::PROVIDER.failures().cut() - before, notices);
}

#[test]
fn unsigned_numbers_are_limited_to_their_size() {
    let catalog = catalog_of("sizes.rs");
    let etw = registered();
    let shown = |number: i64| number.cast_unsigned().to_string();
    let largest = [0xFF, 0xFFFF, 0xFFFF_FFFF, i64::MAX];
    for (asked, notices) in [
        (0, 0),
        (0x80, 0),
        (0xFF, 0),
        (0x100, 1),
        (0xFFFF, 1),
        (0x1_0000, 2),
        (0xFFFF_FFFF, 2),
        (0x1_0000_0000, 3),
        (i64::MAX, 3),
    ] {
        let ranges = largest.map(|largest| (0, largest));
        let size = usize::try_from(asked).unwrap();
        let expected = limited("", 1, asked, ranges, shown);
        assert_eq!(expected.len() as u64, notices + 1);
        let write = || emit!(trace::unsigned(size, size, size, size, 7));
        assert_written(&etw, &catalog, write, &expected, notices);
        let expected = limited("UnsignedDescribed", 0, asked, ranges, shown);
        let write = || emit!(trace::unsigned_described(size, size, size, size, 7));
        assert_written(&etw, &catalog, write, &expected, notices);
    }
    emit!(trace::unsigned(1, 2, 3, usize::MAX, 7));
    let fields = ["One=1", "Two=2", "Four=3", "Eight=18446744073709551615", "Last=7"];
    assert_eq!(all(&etw, &catalog), [fields.map(str::to_owned).to_vec()]);
    emit!(trace::unsigned(usize::MAX, 2, 3, 4, 7));
    let fields = ["One=255", "Two=2", "Four=3", "Eight=4", "Last=7"];
    let expected = [notice("", 1, 0, -1, 255), fields.map(str::to_owned).to_vec()];
    assert_eq!(all(&etw, &catalog), expected);
}

#[test]
fn signed_numbers_are_limited_to_their_size() {
    let catalog = catalog_of("sizes.rs");
    let etw = registered();
    let shown = |number: i64| number.to_string();
    let ranges =
        [(-0x80, 0x7F), (-0x8000, 0x7FFF), (-0x8000_0000, 0x7FFF_FFFF), (i64::MIN, i64::MAX)];
    for (asked, notices) in [
        (0, 0),
        (-1, 0),
        (0x7F, 0),
        (0x80, 1),
        (-0x80, 0),
        (-0x81, 1),
        (0x7FFF, 1),
        (0x8000, 2),
        (-0x8000, 1),
        (-0x8001, 2),
        (0x7FFF_FFFF, 2),
        (0x8000_0000, 3),
        (-0x8000_0000, 2),
        (-0x8000_0001, 3),
        (i64::MAX, 3),
        (i64::MIN, 3),
    ] {
        let offset = isize::try_from(asked).unwrap();
        let expected = limited("", 2, asked, ranges, shown);
        assert_eq!(expected.len() as u64, notices + 1);
        let write = || emit!(trace::signed(offset, offset, offset, offset, 7));
        assert_written(&etw, &catalog, write, &expected, notices);
        let expected = limited("SignedDescribed", 0, asked, ranges, shown);
        let write = || emit!(trace::signed_described(offset, offset, offset, offset, 7));
        assert_written(&etw, &catalog, write, &expected, notices);
    }
}

#[test]
fn members_and_hexadecimal_numbers_have_their_size() {
    let catalog = catalog_of("sizes.rs");
    let etw = registered();
    let span = |start, length| Span { start, length };
    let wholes = [1, usize::MAX].map(|length| Whole { length });
    let fields = |span: &str, code: &str| {
        let wholes = "Wholes=[{Length=1}, {Length=18446744073709551615}]";
        ["Text=\"a\"", span, code, wholes, "Last=7"].map(str::to_owned)
    };
    for (start, length, code, span_text, code_text, cut) in [
        (-2, 3, 0xAB, "Span={Start=-2, Length=3}", "Code=0xab", vec![]),
        (
            -40_000,
            300,
            0x1_2345,
            "Span={Start=-32768, Length=255}",
            "Code=0xffff",
            vec![(1, -40_000, -32_768), (1, 300, 255), (2, 0x1_2345, 0xFFFF)],
        ),
    ] {
        for (name, id) in [("", 3), ("MixedDescribed", 0)] {
            let notices =
                cut.iter().map(|(field, asked, kept)| notice(name, id, *field, *asked, *kept));
            let mut fields = fields(span_text, code_text).to_vec();
            // A manifest has a separate field for the count.
            if id == 3 {
                fields.insert(3, "WholesCount=2".to_owned());
            }
            let expected: Vec<_> = notices.chain([fields]).collect();
            let write = || {
                if id == 3 {
                    emit!(trace::mixed("a", span(start, length), code, &wholes, 7));
                } else {
                    emit!(trace::mixed_described("a", span(start, length), code, &wholes, 7));
                }
            };
            assert_written(&etw, &catalog, write, &expected, cut.len() as u64);
        }
    }
}

#[test]
fn counts_and_lengths_have_their_size() {
    let catalog = catalog_of("sizes.rs");
    let etw = registered();
    let (numbers, bytes) = ([5; 300], [6; 2]);
    let fields = |count: usize, length: usize| {
        let numbers = vec!["5"; count].join(", ");
        vec![
            format!("Count={count}"),
            format!("Numbers=[{numbers}]"),
            format!("Length={length}"),
            format!("Bytes=hex:{}", "06".repeat(length)),
        ]
    };
    for (count, kept, length) in [(0, 0, 0), (2, 2, 1), (255, 255, 2)] {
        let write = || emit!(trace::counted(count, &numbers, length, &bytes));
        assert_written(&etw, &catalog, write, &[fields(kept, length)], 0);
    }
    for asked in [256, 300, 1 << 40] {
        let write = || emit!(trace::counted(asked, &numbers, usize::MAX, &bytes));
        let asked = i64::try_from(asked).unwrap();
        let expected = [notice("", 4, 0, asked, 255), fields(255, 2)];
        assert_written(&etw, &catalog, write, &expected, 1);
    }
    // If the array is shorter than the count and than the 255 that the size allows, all its
    // elements are written.
    let write = || emit!(trace::counted(300, &numbers[..3], 1, &bytes));
    let expected = [notice("", 4, 0, 300, 255), fields(3, 1)];
    assert_written(&etw, &catalog, write, &expected, 1);
}

#[test]
fn events_of_one_place_have_them() {
    let catalog = catalog_of("sizes.rs");
    let etw = registered();
    let write = || {
        event!(
            &trace::PROVIDER, "Local", level = Info, keyword = none,
            { #[repr(u16)] size: usize = 70_000, #[repr(i8)] offset: isize = -5 }
        );
    };
    let fields = ["Size=65535", "Offset=-5"].map(str::to_owned).to_vec();
    let expected = [notice("Local", 0, 0, 70_000, 65_535), fields];
    assert_written(&etw, &catalog, write, &expected, 1);
}
