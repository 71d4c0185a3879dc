//! Tests events of a declaration that was imported from a manifest: the manifest's own resources
//! decode them, and those of the declaration decode them in the same way.

#[path = "../../build/tests/fixture/odd.rs"]
mod odd;

use std::{fs, net::Ipv6Addr};

use etl_file::Catalog;
use mock_etw::enabled;
use odd::trace;
use wdk_etw::{Bool32, FileTime, Guid, NtStatus, Pointer, Sid, Utf16CStr, emit};
use wdk_etw_build::{manifest, manifest_of};

use crate::decode::{FILES, catalog, decoded, fixture};

/// Returns the catalogs of the manifest's resources and of the declaration's.
fn catalogs() -> [Catalog; 2] {
    let text = fs::read_to_string(fixture("odd.man")).unwrap();
    let of_manifest = manifest::read(&text).map_err(|error| error.to_string());
    let (declared, _) = manifest_of(&fixture("odd.rs"), &FILES).unwrap();
    [catalog(&of_manifest.unwrap()), catalog(&declared)]
}

/// Returns a value of the type that the manifest's type is imported as.
fn imported<T: From<U>, U>(value: U) -> T {
    value.into()
}

fn extent(start: u64) -> trace::ArraysExtents {
    trace::ArraysExtents {
        kind: trace::X1V2::AB,
        start,
        code: imported(std::ptr::null::<u8>()),
        is_on: true.into(),
    }
}

#[test]
fn both_resources_decode_the_events() {
    let turn = enabled(&trace::PROVIDER, 255);
    let wide: Vec<u16> = "weit".encode_utf16().collect();
    let sid = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
    emit!(trace::e_one(
        0x1234,
        0x10,
        0xC000_0001,
        imported(5_u32),
        Bool32::from(true),
        b'x',
        c"ansi",
        imported(std::ptr::without_provenance::<u8>(0xABCD)),
        imported(0x01DC_0000_0000_0000_i64),
        Ipv6Addr::LOCALHOST,
    ));
    emit!(trace::e_one_2(
        "127.0.0.1:443".parse().unwrap(),
        &[1, 2, 3],
        &wide,
        "path",
        &[7, 8],
        &[9],
        &[1, 2, 3, 4, 5, 6],
        b"abcd",
        &[u16::from(b'C'), u16::from(b':')],
        &[
            Pointer::new(std::ptr::without_provenance::<u8>(1)),
            Pointer::new(std::ptr::null::<u8>())
        ],
    ));
    emit!(trace::event_3(2, 3, &[4, 5], &[6, 7], 4, 8, &wide));
    emit!(trace::x1(
        trace::X1V2::AB,
        trace::X1V3::Large,
        trace::String2::NSelf,
        trace::OddBits::AB,
        1,
        2,
        3,
        trace::X1Place {
            sid: Sid::new(&sid).unwrap(),
            ansi: c"ansi",
            wide: Utf16CStr::new(&[65]),
            ids: [Guid::from_bytes([1; 16]); 2],
            all: &[NtStatus(0), NtStatus(1)],
        },
    ));
    emit!(trace::n_register());
    emit!(trace::n_register_2());
    emit!(trace::core());
    let two = [5, 6].map(|id| trace::ArraysTwo { id: Guid::from_bytes([id; 16]) });
    emit!(trace::arrays(
        &[extent(1), extent(2)],
        &two,
        &[trace::ArraysMany { x: -1 }],
        2,
        9,
        &[trace::ArraysOnes { x: FileTime(0) }; 2],
        &[trace::ArraysOthers { y: -1 }; 3],
    ));
    let written = turn.writes();
    trace::unregister().unwrap();
    assert_eq!(written.len(), 8);
    let [of_manifest, of_declaration] = catalogs();
    let mut all = Vec::new();
    for event in &written {
        let fields = decoded(event, trace::ID, &of_manifest).1;
        assert_eq!(fields, decoded(event, trace::ID, &of_declaration).1);
        all.push(fields.join("; "));
    }
    let expected = [
        "Address=0x1234; Flags=0x10; Status=0xc0000001; Error=0x5; IsOn=true; Letter=\"x\"; \
         Ansi=\"ansi\"; Code=0xabcd; When=2025-07-28T20:41:31.4272256Z; Ipv6=::1",
        "AddressLength=16; Address=127.0.0.1:443; Bytes=3; Data=hex:010203; Characters=4; \
         Name=\"weit\"; PathLength=4; Path=\"path\"; Numbers=2; Values=[7, 8]; Counted=hex:09; \
         Mac=hex:010203040506; Tag=\"abcd\"; Drive=\"C:\"; Frames=[0x1, 0x0]",
        "Count=2; Instance=3; Keys=[0x4, 0x5]; Names=[6, 7]; Length=4; Gap=8; Text=\"weit\"",
        "type=a_b(2); Type=Large(300); self=Self(7); a0=a_b(6); write=1; Write=2; room=3; \
         place={sid=S-1-5-18, ansi=\"ansi\", wide=\"A\", \
         ids=[01010101-0101-0101-0101-010101010101, 01010101-0101-0101-0101-010101010101], \
         Statuses=2, all=[0x00000000, 0x00000001]}",
        "",
        "",
        "",
        "ExtentsCount=2; Extents=[{Kind=a_b(2), Start=0x1, Code=0x0, IsOn=true}, {Kind=a_b(2), \
         Start=0x2, Code=0x0, IsOn=true}]; Two=[{Id=05050505-0505-0505-0505-050505050505}, \
         {Id=06060606-0606-0606-0606-060606060606}]; Number=1; Many=[{X=-1}]; Shared=2; Gap=9; \
         Ones=[{X=1601-01-01T00:00:00.0000000Z}, {X=1601-01-01T00:00:00.0000000Z}]; Others=[{Y=-1}, {Y=-1}]",
    ];
    assert_eq!(all, expected);
}

/// A caller's count can be wrong, but the event can still be decoded.
#[test]
fn a_count_is_at_most_that_of_the_shortest_value() {
    let turn = enabled(&trace::PROVIDER, 255);
    emit!(trace::event_3(9, 3, &[4, 5, 6], &[6, 7], 1, 8, &[65, 66]));
    emit!(trace::event_3(0, 3, &[4, 5, 6], &[6, 7], 200, 8, &[]));
    let written = turn.writes();
    trace::unregister().unwrap();
    let [of_manifest, _] = catalogs();
    let fields: Vec<_> =
        written.iter().map(|event| decoded(event, trace::ID, &of_manifest).1.join("; ")).collect();
    assert_eq!(
        fields,
        [
            "Count=2; Instance=3; Keys=[0x4, 0x5]; Names=[6, 7]; Length=1; Gap=8; Text=\"A\"",
            "Count=0; Instance=3; Keys=[]; Names=[]; Length=0; Gap=8; Text=\"\"",
        ]
    );
}

/// An eight-bit length cuts longer values.
#[test]
fn a_value_is_cut_to_its_length() {
    let turn = enabled(&trace::PROVIDER, 255);
    let cut = trace::PROVIDER.failures().cut();
    let address = "127.0.0.1:443".parse().unwrap();
    let null = Pointer::new(std::ptr::null::<u8>());
    for bytes in [&[1; 300][..], &[1; 255]] {
        let (numbers, mac, tag, drive, frames) = (&[7; 300], &[0; 6], &[0; 4], &[0; 2], &[null; 2]);
        let text = &[65; 300];
        emit!(trace::e_one_2(address, bytes, text, "", numbers, &[], mac, tag, drive, frames));
    }
    let written = turn.writes();
    trace::unregister().unwrap();
    assert_eq!(trace::PROVIDER.failures().cut() - cut, 1);
    let [of_manifest, _] = catalogs();
    let of_event: Vec<_> = written.iter().filter(|one| one.event.id() == 2).collect();
    let [first, second] = &*of_event else { panic!("{written:?}") };
    assert_eq!(
        decoded(first, trace::ID, &of_manifest).1,
        decoded(second, trace::ID, &of_manifest).1
    );
    assert!(decoded(first, trace::ID, &of_manifest).1[2].starts_with("Bytes=255"));
}
