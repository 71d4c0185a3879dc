//! Tests events with every field type, decoded with the resources that are generated from the same
//! declaration.

#[path = "../../build/tests/fixture/everything.rs"]
mod everything;

use std::net;

use everything::trace;
use mock_etw::{ENABLE, register, turn};
use wdk_etw::{
    F32, F64, FileTime, Guid, HResult, NtStatus, Pointer, Port, ProcessId, Registered, Sid,
    SystemTime, ThreadId, UnicodeString, Utf16CStr, Win32Error, emit,
};

use crate::decode::{catalog_of, decoded};

fn write_events() {
    let wide: Vec<u16> = "weit".encode_utf16().collect();
    emit!(trace::numbers(
        -1,
        2,
        -3,
        4,
        -5,
        6,
        -7,
        8,
        9,
        true,
        F32::new(1.5),
        F64::new(-0.25),
        Pointer::new(std::ptr::null::<u8>()),
        Guid::from_bytes([7; 16]),
        FileTime(0x01DC_0000_0000_0000),
        SystemTime {
            year: 2026,
            month: 11,
            day_of_week: 6,
            day: 21,
            hour: 10,
            minute: 20,
            second: 30,
            millisecond: 40,
        },
        -9,
    ));
    emit!(trace::meanings(
        NtStatus(-1_073_741_823),
        HResult(-2),
        Win32Error(5),
        ProcessId(6),
        ThreadId(7),
        Port(443),
        net::Ipv4Addr::LOCALHOST,
        net::Ipv6Addr::LOCALHOST,
        0xA,
        0xBB,
        0xCCC,
        0xDDDD,
        Pointer::new(std::ptr::without_provenance::<u8>(0x1234)),
    ));
    let sid = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
    emit!(trace::texts(
        "text \u{e9}",
        "{}",
        &wide,
        &[1, 2, 3],
        UnicodeString::new(&wide),
        c"narrow",
        Utf16CStr::new(&wide),
        Sid::new(&sid).unwrap(),
        net::SocketAddr::from(([10, 0, 0, 1], 80)),
        &wide,
    ));
    emit!(trace::arrays(
        &[1, 2, 3],
        &[4, 5],
        &[6, 7, 8],
        &[NtStatus(0), NtStatus(-1)],
        &[Guid::from_bytes([1; 16]), Guid::from_bytes([2; 16])],
    ));
    let place = |x| trace::Place { x, name: "here", values: &[1, 2] };
    emit!(trace::maps(
        trace::State::Off,
        trace::Small::Most,
        trace::Flags::First,
        place(-1),
        trace::Outer { place: place(2), y: 3 },
    ));
    emit!(trace::state(1));
    emit!(trace::state_1(2, 3, &[4]));
    emit!(trace::nothing());
}

// R-O5, R-D5
#[test]
fn the_resources_decode_written_events() {
    let etw = turn();
    assert_eq!(register(&trace::PROVIDER), Ok(Registered::Complete));
    // The highest level and all keywords.
    etw.notify(ENABLE, 255, 0, 0);
    etw.calls();
    write_events();
    let writes = etw.writes();
    trace::unregister().unwrap();
    let catalog = catalog_of("everything.rs");
    let decoded: Vec<String> = writes
        .iter()
        .map(|written| {
            let (name, fields) = decoded(written, trace::ID, &catalog);
            format!("{name}: {}", fields.join(", "))
        })
        .collect();
    let expected = [
        "Numbers: A=-1, B=2, C=-3, D=4, E=-5, F=6, G=-7, H=8, I=9, J=true, K=1.5, L=-0.25, M=0x0, \
         N=07070707-0707-0707-0707-070707070707, O=2025-07-28T20:41:31.4272256Z, \
         P=2026-11-21T10:20:30.040, Q=-9",
        "Meanings: Status=0xc0000001, Result=0xfffffffe, Error=5, Process=6, Thread=7, Port=443, \
         V4=127.0.0.1, V6=::1, A=0xa, B=0xbb, C=0xccc, D=0xdddd, There=0x1234",
        "Texts: Text=\"text \u{e9}\", Json=\"{}\", Wide=\"weit\", BytesLength=3, Bytes=hex:010203, \
         Unicode=\"weit\", Narrow=\"narrow\", Terminated=\"weit\", Sid=S-1-5-18, AddressLength=16, \
         Address=10.0.0.1:80, Xml=\"weit\"",
        "Arrays: Fixed=[1, 2, 3], FewCount=2, Few=[4, 5], ManyCount=3, Many=[0x6, 0x7, 0x8], \
         StatusesCount=2, Statuses=[0x00000000, 0xffffffff], \
         Guids=[01010101-0101-0101-0101-010101010101, 02020202-0202-0202-0202-020202020202]",
        "Maps: State=100% off(4000000000), Small=Most(255), Flags=First(1), Place={X=-1, \
         Name=\"here\", ValuesCount=2, Values=[1, 2]}, Outer={Place.X=2, Place.Name=\"here\", \
         Place.ValuesCount=2, Place.Values=[1, 2], Y=3}",
        "State: Count=1",
        "State: Count=2, Count Length=3, DataLength=1, Data=hex:04",
        "Nothing: ",
    ];
    assert_eq!(decoded, expected);
    // The message refers to the fields by their numbers in the declaration.
    let provider = etl_file::Guid::from_bytes(trace::ID.to_bytes());
    let texts = catalog.provider(provider).unwrap().event(3, 0).unwrap();
    assert_eq!(texts.message.as_deref(), Some("%1, %2!s!: %3 is 100%% of %5%n%11"));
}
