//! Tests arrays of structures, in both encodings.

#[path = "../../build/tests/fixture/elements.rs"]
mod fixture;

use crate::decode::{self, catalog_of};
use etl_file::Catalog;
use fixture::trace::{self, Extent, Frame, Kind, Place};
use mock_etw::{Written, enabled};
use wdk_etw::{Guid, NtStatus, Pointer, emit};

/// Returns an event's fields as text.
fn decoded(written: &Written, catalog: &Catalog) -> Vec<String> {
    if let Some(schema) = written.schema() {
        assert_eq!(schema.fields[1].tags, 5);
    }
    decode::decoded(written, trace::ID, catalog).1
}

const fn extent(start: u64) -> Extent {
    Extent {
        kind: Kind::Write,
        start,
        length: 2,
        place: Place { x: -3, is_here: true },
        status: NtStatus(-1),
        size: 4,
        id: Guid::from_bytes([5; 16]),
    }
}

#[test]
fn arrays_of_structures_read_back() {
    let catalog = catalog_of("elements.rs");
    let etw = enabled(&trace::PROVIDER, 255);
    let few = [extent(1), extent(2)];
    for many in [vec![], vec![extent(3)], vec![extent(3), extent(4), extent(5)]] {
        emit!(trace::listed(&few, &many, extent(6), 7));
        emit!(trace::described(&few, &many, extent(6), 7));
        let writes = etw.writes();
        let described = |start: u64| {
            format!(
                "{{Kind=2, Start={start:#x}, Length=2, Place={{X=-3, IsHere=true}}, \
                 Status=0xffffffff, Size=4, Id=05050505-0505-0505-0505-050505050505}}"
            )
        };
        // A template's structures contain no structures, and its maps have names.
        let listed = |start: u64| {
            described(start)
                .replace("Kind=2", "Kind=Write(2)")
                .replace("Place={X=-3, IsHere=true}", "Place.X=-3, Place.IsHere=true")
        };
        let all = |one: &dyn Fn(u64) -> String, starts: std::ops::Range<u64>| {
            starts.map(one).collect::<Vec<_>>().join(", ")
        };
        let end = 3 + many.len() as u64;
        assert_eq!(
            decoded(&writes[0], &catalog),
            [
                format!("Few=[{}]", all(&listed, 1..3)),
                format!("ManyCount={}", many.len()),
                format!("Many=[{}]", all(&listed, 3..end)),
                format!("One={}", listed(6)),
                "Last=7".to_owned(),
            ]
        );
        assert_eq!(
            decoded(&writes[1], &catalog),
            [
                format!("Few=[{}]", all(&described, 1..3)),
                format!("Many=[{}]", all(&described, 3..end)),
                format!("One={}", described(6)),
                "Last=7".to_owned(),
            ]
        );
        // One data descriptor for each array, regardless of its length.
        assert_eq!((writes[0].data.len(), writes[1].data.len()), (4, 6));
    }
    // Data that does not fit is cut between structures.
    let many = vec![extent(1); 5_000];
    emit!(trace::listed(&few, &many, extent(6), 7));
    let writes = etw.writes();
    let fields = decoded(&writes[1], &catalog);
    trace::unregister().unwrap();
    let size = size_of::<Extent>();
    assert_eq!(size, 44);
    let room = 65_535 - 80 - 2_560 - (2 + 3 * size + 1);
    assert_eq!(fields[1], format!("ManyCount={}", room / size));
    assert_eq!(fields[4], "Last=7");
}

#[test]
fn arrays_of_structures_have_counts_of_other_types_and_in_earlier_fields() {
    let catalog = catalog_of("elements.rs");
    let etw = enabled(&trace::PROVIDER, 255);
    let places = [1, 2, 3].map(|x| Place { x, is_here: false });
    let frames = [0x10, 0x20].map(|at| Frame {
        code: Pointer::new(std::ptr::without_provenance::<u8>(at)),
        kind: Kind::Read,
    });
    for (asked, count) in [(0, 0), (1, 1), (2, 2), (9, 2)] {
        // The shortest of the arrays that share a count has two elements.
        emit!(trace::counted(asked, &places, &frames, &[7, 8], frames[1]));
        let writes = etw.writes();
        let first = |all: &[&str]| all[..count].join(", ");
        let (all_places, all_numbers) =
            (["{X=1, IsHere=false}", "{X=2, IsHere=false}"], ["7", "8"]);
        assert_eq!(
            decoded(&writes[0], &catalog),
            [
                format!("Count={count}"),
                format!("Places=[{}]", first(&all_places)),
                "Depth=2".to_owned(),
                "Frames=[{Code=0x10, Kind=Read(1)}, {Code=0x20, Kind=Read(1)}]".to_owned(),
                format!("Numbers=[{}]", first(&all_numbers)),
                "First={Code=0x20, Kind=Read(1)}".to_owned(),
            ]
        );
    }
}
