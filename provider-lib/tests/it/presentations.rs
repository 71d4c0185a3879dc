//! Tests presentations that attributes select, in `TraceLogging` metadata.

use mock_etw::enabled;
use wdk_etw::{Bool32, FileTime, Pointer, emit, event};

#[wdk_etw::provider(name = "Test.Presentations")]
mod trace {
    #[map]
    #[repr(u16)]
    pub enum Kind {
        Read = 10,
    }

    #[event(level = Info, keyword = none)]
    pub fn shown(
        #[out_type = "win:HexInt64"] address: u64,
        #[out_type = "win:HexInt32"] flags: u32,
        #[out_type = "win:NTSTATUS"] status: u32,
        #[out_type = "xs:boolean"] on: u8,
        #[out_type = "xs:string"] letter: u8,
        #[out_type = "win:Port"] port: u16,
        #[out_type = "win:PID"] process: u32,
        #[address]
        #[out_type = "win:CodePointer"]
        code: Pointer,
        #[out_type = "xs:string"] ansi: &CStr,
        #[out_type = "win:DateTimeUtc"] when: FileTime,
        #[out_type = "win:HexInt16"] kind: Kind,
        #[out_type = "win:HexInt8"] bytes: [u8; 2],
        boolean: Bool32,
        #[counted] counted: &[u8],
        #[address] frames: &[Pointer],
    );
}

/// Returns the formatted fields of the only event.
fn decoded(turn: &mock_etw::Turn) -> Vec<String> {
    let writes = turn.writes();
    let [written] = &*writes else { panic!("{writes:?}") };
    written.described().1
}

#[test]
fn tracelogging_metadata_has_the_presentations() {
    let turn = enabled(&trace::PROVIDER, 255);
    let address = |number| Pointer::new(std::ptr::without_provenance::<u8>(number));
    emit!(trace::shown(
        0x1234,
        0x10,
        0xC000_0001,
        1,
        b'x',
        0x5000,
        7,
        address(0xABCD),
        c"ansi",
        FileTime(0x01DC_0000_0000_0000),
        trace::Kind::Read,
        &[10, 11],
        Bool32(2),
        &[1, 2],
        &[address(1), address(2)],
    ));
    let fields = decoded(&turn);
    trace::unregister().unwrap();
    assert_eq!(
        fields,
        [
            "Address=0x1234", "Flags=0x10", "Status=0xc0000001", "On=true", "Letter=\"x\"",
            "Port=80", "Process=7", "Code=0xabcd", "Ansi=\"ansi\"",
            "When=2025-07-28T20:41:31.4272256Z", "Kind=0xa", "Bytes=[0xa, 0xb]", "Boolean=true",
            "Counted=hex:0102", "Frames=[0x1, 0x2]",
        ]
    );
}

#[test]
fn an_event_at_its_call_site_has_the_presentations() {
    let turn = enabled(&trace::PROVIDER, 255);
    event!(trace::PROVIDER, "Here", level = Info, keyword = none, {
        #[out_type = "win:HexInt16"] number: u16 = 255,
    });
    let fields = decoded(&turn);
    trace::unregister().unwrap();
    assert_eq!(fields, ["Number=0xff"]);
}
