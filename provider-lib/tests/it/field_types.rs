//! Tests every field type: a value is written in both encodings, read back by `etl-file`, and printed in the
//! debugger.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use etl_file::decode::Value;
use mock_etw::enabled;
use wdk_etw::{
    __macro::Print, Bool32, F32, F64, FileTime, Guid, HResult, Luid, NtStatus, Pointer, Port,
    ProcessId, Sid, SystemTime, ThreadId, UnicodeString, Utf16CStr, Win32Error, emit,
};
use wdk_etw_build::declaration::manifest;
use wdk_etw_schema::{Scalar, parse};

use crate::decode::{FILES, catalog};

/// Declares a provider with an event of each encoding that has a field of every type.
macro_rules! declaration {
    ($use:ident! $($name:ident: $type:ty,)*) => {
        $use! {
            #[wdk_etw::provider(name = "Test.FieldTypes")]
            mod trace {
                #[structure]
                pub struct All<'a> { $(pub $name: $type,)* }

                #[event(level = Info, keyword = none)]
                pub fn described(all: All<'_>);

                #[event(id = 1, level = Info, keyword = none)]
                pub fn in_manifest(all: All<'_>);
            }
        }
    };
}

macro_rules! compiled {
    ($($declaration:tt)*) => { $($declaration)* };
}

/// A field's type, the text in the debugger, and the decoded value as text.
struct Row {
    kind: &'static str,
    printed: (String, &'static str),
    decoded: &'static str,
}

/// Declares the table: name, type, value, the text in the debugger, and the decoded value as text.
macro_rules! types {
    ($($name:ident: $type:ty = $value:expr, $printed:literal, $decoded:literal;)*) => {
        declaration!(compiled! $($name: $type,)*);

        const DECLARATION: &str = declaration!(stringify! $($name: $type,)*);

        fn rows() -> Vec<Row> {
            vec![$(Row {
                kind: stringify!($type),
                printed: (printed(&$value), $printed),
                decoded: $decoded,
            },)*]
        }

        fn write_events() {
            emit!(trace::described(trace::All { $($name: $value,)* }));
            emit!(trace::in_manifest(trace::All { $($name: $value,)* }));
        }
    };
}

const DATE: SystemTime = SystemTime {
    year: 2024,
    month: 2,
    day_of_week: 4,
    day: 29,
    hour: 1,
    minute: 2,
    second: 3,
    millisecond: 4,
};
const WIDE: &[u16] = &[0x77, 0x69];

types! {
    i8: i8 = -1, "-1", "-1";
    u8: u8 = 2, "2", "2";
    i16: i16 = -3, "-3", "-3";
    u16: u16 = 4, "4", "4";
    i32: i32 = -5, "-5", "-5";
    u32: u32 = 6, "6", "6";
    i64: i64 = -7, "-7", "-7";
    u64: u64 = 8, "8", "8";
    size: usize = 9, "9", "9";
    difference: isize = -10, "-10", "-10";
    truth: bool = true, "true", "true";
    bool32: Bool32 = Bool32(2), "true", "true";
    float: F32 = F32::new(1.0), "0x3f800000", "1";
    double: F64 = F64::new(-0.25), "0xbfd0000000000000", "-0.25";
    pointer: Pointer = Pointer::new(WIDE.as_ptr()), "not null", "0xffffffffffffffff";
    guid: Guid = Guid::new(1, 2, 3, [4; 8]), "{00000001-0002-0003-0404-040404040404}", "00000001-0002-0003-0404-040404040404";
    time: FileTime = FileTime(5), "5", "1601-01-01T00:00:00.0000005Z";
    luid: Luid = Luid { low_part: 1, high_part: 2 }, "0x200000001", "0x200000001";
    date: SystemTime = DATE, "2024-02-29T01:02:03.004", "2024-02-29T01:02:03.004";
    status: NtStatus = NtStatus(-1_073_741_790), "STATUS_ACCESS_DENIED (0xC0000022)", "0xc0000022";
    result: HResult = HResult(-1), "0xFFFFFFFF", "0xffffffff";
    error: Win32Error = Win32Error(5), "5", "5";
    process: ProcessId = ProcessId(6), "6", "6";
    thread: ThreadId = ThreadId(7), "7", "7";
    port: Port = Port(443), "443", "443";
    v4: Ipv4Addr = Ipv4Addr::LOCALHOST, "127.0.0.1", "127.0.0.1";
    v6: Ipv6Addr = Ipv6Addr::LOCALHOST, "::1", "::1";
    socket: SocketAddr = SocketAddr::from((Ipv6Addr::LOCALHOST, 80)), "[::1]:80", "[::1]:80";
    sid: Sid<'a> = Sid::new(&[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0]).unwrap(), "S-1-5-18", "S-1-5-18";
    text: &'a str = "text", "\"text\"", "\"text\"";
    formatted: Arguments<'a> = format_args!("{}", 1), "\"1\"", "\"1\"";
    // A declaration's event prints these as text and as bytes, which the tests of the debugger check.
    wide: &'a [u16] = WIDE, "[119, 105]", "\"wi\"";
    unicode: UnicodeString<'a> = UnicodeString::new(WIDE), "\"wi\"", "\"wi\"";
    narrow: &'a CStr = c"c", "\"c\"", "\"c\"";
    terminated: Utf16CStr<'a> = Utf16CStr::new(WIDE), "\"wi\"", "\"wi\"";
    bytes: &'a [u8] = &[1, 2], "[1, 2]", "hex:0102";
}

fn printed(value: &dyn Print) -> String {
    let mut text = String::new();
    value.print(&mut text, false).unwrap();
    text
}

/// Returns the values of the event's only field, a structure, without the lengths that manifests put before
/// values.
fn members(values: &[(String, Value)]) -> Vec<String> {
    let [(_, Value::Struct(members))] = values else { panic!("{values:?}") };
    let values = members.iter().filter(|(name, _)| !name.ends_with("Length"));
    values.map(|(_, value)| value.to_string()).collect()
}

#[test]
fn every_field_type_is_read_back_and_printed() {
    let turn = enabled(&trace::PROVIDER, 5);
    write_events();
    let written = turn.writes();
    trace::unregister().unwrap();
    let declared = parse::source(DECLARATION).unwrap();
    let catalog = catalog(&manifest(&declared, &FILES));
    let id = etl_file::Guid::from_bytes(trace::ID.to_bytes());
    let in_manifest = &catalog.provider(id).unwrap().event(1, 0).unwrap().schema;
    let described = members(&written[0].values(&written[0].schema().unwrap()));
    let by_manifest = members(&written[1].values(in_manifest));
    for (row, found) in rows().iter().zip(described.iter().zip(by_manifest.iter())) {
        assert_eq!(found, (&row.decoded.to_owned(), &row.decoded.to_owned()), "{}", row.kind);
        assert_eq!(row.printed.0, row.printed.1, "{}", row.kind);
    }
    assert_eq!((described.len(), by_manifest.len()), (rows().len(), rows().len()));
}

#[test]
fn every_field_type_is_in_the_events() {
    let rows = rows();
    for scalar in Scalar::ALL {
        let is_in_events = rows.iter().any(|row| {
            let kind = row.kind.trim_start_matches("&'a ");
            kind.split('<').next() == Some(scalar.name())
        });
        assert!(is_in_events, "add a row for {} to field_types.rs", scalar.name());
    }
}
