//! Tests a driver whose provider comes from the published crate `tracelogging`: it causes no
//! diagnostics, and each field type is decoded.

use crate::common;
use std::path::{Path, PathBuf};

use etl_file::{Catalog, Decoded, Guid, Trace, decode};
use standin_kernel::{EnableParameters, Kernel, SessionConfig, Target};

/// The group in the driver's source.
const GROUP: Guid = Guid::from_u128(0x5ecb_0bac_b930_47f5_a8a4_e825_3529_edb7);

/// Runs the driver while a session enables a target.
fn trace(target: Target, folder: &Path, parameters: EnableParameters) -> PathBuf {
    let kernel = Kernel::new();
    let file = folder.join("tracelogging.etl");
    let session = kernel.start_session(SessionConfig::to_file("TraceLogging", file)).unwrap();
    kernel.enable(session, target, parameters).unwrap();
    let driver = kernel.load(&common::tracelogging()).unwrap();
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
    kernel.stop_session(session).unwrap().file
}

fn everything() -> EnableParameters {
    EnableParameters { level: 5, ..EnableParameters::default() }
}

fn events(file: &Path) -> Vec<Decoded> {
    let trace = Trace::open(file).unwrap();
    let events = trace.events_by_time().into_iter();
    events.map(|event| decode(event, &Catalog::new())).collect()
}

/// Returns an event's name and its fields.
fn shown(event: &Decoded) -> String {
    assert!(event.problems.is_empty(), "{event:?}");
    assert!(event.leftover.is_empty(), "{event:?}");
    let fields = event.fields.iter();
    let fields: Vec<_> = fields.map(|(name, value)| format!("{name}={value}")).collect();
    let name = event.event_name.as_deref().unwrap_or_default();
    format!("{name}: {}", fields.join(" "))
}

#[test]
fn each_field_type_is_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Target::Provider(Guid::of_name("Contoso.TraceLogging").unwrap());
    let file = trace(provider, folder.path(), everything());
    let events = events(&file);
    for event in &events {
        assert_eq!(event.provider_name.as_deref(), Some("Contoso.TraceLogging"));
        assert_eq!(event.group, Some(GROUP));
    }
    let shown: Vec<_> = events.iter().map(shown).collect();
    assert_eq!(
        shown,
        [
            "Numbers: i8=-8 u8=200 u8_hex=0xab i16=-1600 u16=60000 u16_hex=0xabcd i32=-32 \
             u32=4000000000 u32_hex=0xabcdef01 i64=-64 u64=18446744073709551615 \
             i64_hex=0xffffffffffffffff isize=-3 usize=3 usize_hex=0x1234 f32=1.5 f64=-0.25 \
             bool8=true bool32=true",
            "Meanings: char8=\"A\" char16=\"\u{263A}\" pointer=0x1000 codepointer=0x2000 pid=4 tid=8 \
             port=80 errno=2 hresult=0x80070005 win_error=5 win_ntstatus=0xc000000d",
            "Texts: str8=\"sm\u{f8}rrebr\u{f8}d\" str8_cp1252=\"caf\u{e9}\" str8_json=\"{\"a\":1}\" \
             str8_xml=\"<a/>\" str16=\"wide\" cstr8=\"until\" cstr16=\"up\" empty=\"\" empty16=\"\"",
            "Bytes: binary=hex:0102fe binaryc=hex:0304 guid=11111111-2222-3333-4444-555555555555 \
             ipv4=192.0.2.1 ipv6=2001:db8::9 socketaddress=198.51.100.7:80 win_sid=S-1-5-18 \
             win_filetime=2026-01-02T03:04:05.0000001Z win_systemtime_utc=2026-01-02T03:04:05.006 \
             time32=2026-01-02T03:04:05.0000000Z",
            "Lists: none=[] one=[7] two=[-1, 1] flags=[true, false] \
             guids=[11111111-2222-3333-4444-555555555555, 66666666-7777-8888-9999-aaaaaaaaaaaa] last=1",
            "Structures: before=1 outer={a=2, inner={text=\"in\"}, list=[3, 4]} after=5",
            "Properties: tagged=9",
            "Unloaded: ",
        ]
    );
    let last = &events[6];
    let descriptor = &last.descriptor;
    let numbers = (
        descriptor.id, descriptor.version, descriptor.level, descriptor.task, descriptor.opcode,
        descriptor.keyword,
    );
    assert_eq!(numbers, (42, 3, 2, 7, 1, 0x10));
    assert_eq!(last.activity.to_string(), "11111111-2222-3333-4444-555555555555");
    assert_eq!(last.related_activity.unwrap().to_string(), "66666666-7777-8888-9999-aaaaaaaaaaaa");
}

#[test]
fn its_events_are_filtered_and_enabled_by_group() {
    let folder = tempfile::tempdir().unwrap();
    let errors = EnableParameters { level: 2, match_any: 0x10, ..EnableParameters::default() };
    let file = trace(Target::Group(GROUP), folder.path(), errors);
    let names: Vec<_> = events(&file).iter().map(shown).collect();
    assert_eq!(names, ["Properties: tagged=9"]);
}
