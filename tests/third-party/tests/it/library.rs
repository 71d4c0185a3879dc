//! Tests event metadata and data with third-party decoders.
//!
//! The test is ignored by default; `cargo xtask test` installs the decoders and runs it.

use std::fs::File;

use etl_file::write::{Buffer, Finish, LogFile};
use etl_file::{
    ClockType, EventDescriptor, EventRecord, ExtendedItem, FileTime, LogFileHeader, ext_type,
};
use etl_fixtures::decoders;
use mock_etw::{Written, enabled};
use wdk_etw::{
    F32, F64, Guid, HResult, NtStatus, ProcessId, ThreadId, Utf16CStr, Win32Error, emit, event,
};

/// The events that the third-party decoder of event metadata supports: types 1 to 15 and 20, arrays
/// of these types with a count in the event, and field tags of four bytes.
#[wdk_etw::provider(
    name = "Test.Foreign",
    group = "2e651177-aeab-5ffc-66e2-144601de7da8",
    trait_(128, b"lab")
)]
mod trace {
    #[keyword]
    pub const REQUEST: Keyword = Keyword::bit(0);

    #[event(level = Verbose, keyword = REQUEST, opcode = Start, tag = 0x20_0000)]
    pub fn integers(
        a: i8,
        b: u8,
        c: i16,
        d: u16,
        e: i32,
        f: u32,
        g: i64,
        h: u64,
        #[hex] i: u32,
        #[tag = 77] j: u16,
    );

    #[event(level = Verbose, keyword = REQUEST)]
    pub fn others(
        truth: bool,
        float: F32,
        double: F64,
        guid: Guid,
        status: NtStatus,
        result: HResult,
        error: Win32Error,
        process: ProcessId,
        thread: ThreadId,
    );

    #[event(level = Verbose, keyword = REQUEST)]
    pub fn texts(text: &CStr, wide: Utf16CStr<'_>, bytes: &[u8], last: u8);

    #[event(level = Verbose, keyword = REQUEST)]
    pub fn arrays(counted: &[i16], #[array] bytes: &[u8], last: u64);

    #[event(id = 3, version = 1, level = Error, keyword = REQUEST)]
    pub fn in_manifest(number: u32, text: &str);
}

fn write_events() {
    emit!(trace::integers(-1, 2, -3, 4, -5, 6, -7, 8, 0xBEEF, 10));
    emit!(trace::others(
        true,
        F32::new(1.5),
        F64::new(-0.25),
        Guid::from_bytes([7; 16]),
        NtStatus(-1),
        HResult(-2),
        Win32Error(5),
        ProcessId(6),
        ThreadId(7),
    ));
    let wide: Vec<u16> = "weit".encode_utf16().collect();
    emit!(trace::texts(c"text", Utf16CStr::new(&wide), &[1, 2, 3], 9));
    emit!(trace::arrays(&[-1, -2], &[4, 5, 6], u64::MAX));
    emit!(trace::in_manifest(5, "text"));
    event!(trace::PROVIDER, "Now", level = Info, keyword = none, {
        number: u32 = 3,
        #[hex] code: i32 = -4,
    });
}

/// Returns the record that ETW writes for an event: the traits of its registration, the event
/// metadata, and the data.
fn record(written: &Written, timestamp: i64) -> EventRecord {
    let of_kind = |wanted| {
        let data = written.data.iter();
        data.filter(move |(kind, _)| *kind == wanted)
            .flat_map(|(_, bytes)| bytes.clone())
            .collect::<Vec<u8>>()
    };
    let mut extended = vec![ExtendedItem {
        ext_type: ext_type::PROV_TRAITS,
        data: trace::PROVIDER.traits().as_bytes().to_vec(),
    }];
    let metadata = of_kind(1);
    if !metadata.is_empty() {
        extended.push(ExtendedItem { ext_type: ext_type::EVENT_SCHEMA_TL, data: metadata });
    }
    let event = written.event;
    EventRecord {
        thread_id: 1,
        process_id: 2,
        timestamp,
        provider: etl_file::Guid::from_bytes(trace::ID.to_bytes()),
        descriptor: EventDescriptor {
            id: event.id(),
            version: event.version(),
            channel: event.channel().0,
            level: event.level().0,
            opcode: event.opcode().0,
            task: event.task(),
            keyword: event.keyword().bits(),
        },
        extended,
        user_data: of_kind(0),
        ..EventRecord::default()
    }
}

// R-O1, R-O5, R-T6, R-T7
#[test]
#[ignore = "needs the third-party decoders; `cargo xtask test` runs it"]
fn third_party_decoders_read_the_librarys_events() {
    const START: FileTime = FileTime::from_raw(134_117_966_450_000_000);
    let etw = enabled(&trace::PROVIDER, 5);
    write_events();
    let writes = etw.writes();
    trace::unregister().unwrap();
    assert_eq!(writes.len(), 6);

    let header = LogFileHeader {
        buffer_size: 0x1000,
        processors: 1,
        clock: ClockType::SystemTime,
        start_time: START,
        start_clock: START.raw(),
        session_name: "Foreign".to_owned(),
        log_file_name: "foreign.etl".to_owned(),
        ..LogFileHeader::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foreign.etl");
    let mut buffer = Buffer::new(header.buffer_size, 0);
    let mut log = LogFile::create(File::create(&path).unwrap(), header).unwrap();
    let mut now = START.raw();
    for written in &writes {
        now += 10_000;
        buffer.try_append(&record(written, now)).unwrap();
    }
    log.append(&buffer, now).unwrap();
    log.finish(Finish { end_time: FileTime::from_raw(now), ..Finish::default() }).unwrap();
    assert_eq!(decoders::assert_third_party_decoders_agree(&path), 6);
}
