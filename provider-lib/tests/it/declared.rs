//! Tests the writes of declared events, as ETW receives them.

use std::{
    cell::{Cell, RefCell},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use etl_file::decode::Value;
use etl_file::internals::schema::Schema;
use mock_etw::{
    ACCESS_DENIED, CAPTURE_STATE, Call, DISABLE, ENABLE, NO_MEMORY, Turn, Written, enabled,
    register, turn,
};
use proptest::prelude::*;
use wdk_etw::{
    Activity, ActivityId, Channel, F32, F64, FileTime, Guid, HResult, Keyword, Level, Luid,
    NtStatus, Opcode, Pointer, Port, ProcessId, Refusals, Registered, Sid, SystemTime, ThreadId,
    UnicodeString, Utf16CStr, Win32Error, WriteError, WriteFlags, WriteOptions, emit, event,
    guid_of_name,
};

/// The tests' provider.
#[wdk_etw::provider(
    name = "Test.Declared",
    group = "2e651177-aeab-5ffc-66e2-144601de7da8",
    trait_(128, b"lab"),
    trait_(200, "text"),
    on_capture_state = super::capture_state,
)]
mod trace {
    /// Requests.
    #[keyword]
    pub const REQUEST: Keyword = Keyword::bit(0);
    #[keyword]
    pub const POWER: Keyword = 0x8000;

    #[tasks]
    enum Task {
        /// Transfers.
        Transfer = 7,
    }

    #[opcodes]
    enum Opcode {
        Split = 10,
    }

    #[channels]
    enum Channel {
        #[channel(Operational)]
        Operational = 16,
    }

    /// The direction of a request.
    #[map]
    pub enum Kind {
        /// A read.
        Read = 1,
        Write = 2,
    }

    #[bitmap]
    #[repr(u16)]
    pub enum Flags {
        Cached = 1,
        Paging = 1 << 4,
    }

    #[structure]
    pub struct Endpoint<'a> {
        pub host: &'a str,
        #[hex]
        pub scope: u16,
        pub port: Port,
    }

    #[structure]
    pub struct Path<'a> {
        pub from: Endpoint<'a>,
        pub hops: u8,
    }

    #[event(level = Info, keyword = none)]
    pub fn ordered(first: u32, second: u32);

    /// The reference event.
    #[event(level = Info, keyword = POWER)]
    pub fn read_complete(status: u32, bytes: u64, name: &str);

    #[event(id = 1, version = 2, level = Error, keyword = REQUEST | POWER, task = Transfer,
        opcode = Split)]
    pub fn transferred(status: u32, bytes: u64, name: &str);

    #[event(id = 2, level = Warning, keyword = REQUEST, channel = Operational)]
    pub fn told();

    #[event(level = LogAlways, keyword = none, opcode = DcStart, name = "The state", tag = 0x20_0000)]
    pub fn state(
        #[tag = 5]
        #[name = "Last One"]
        last: u8,
    );

    #[event(level = 17, keyword = REQUEST, id = 5, encoding = tracelogging)]
    pub fn own_level();

    #[event(level = Verbose, keyword = REQUEST)]
    pub fn integers(
        i8: i8,
        u8: u8,
        i16: i16,
        u16: u16,
        i32: i32,
        u32: u32,
        i64: i64,
        u64: u64,
        size: usize,
        difference: isize,
        #[hex] hex8: u8,
        #[hex] hex16: u16,
        #[hex] hex32: i32,
        #[hex] hex64: u64,
        #[hex] hex_size: usize,
    );

    #[event(level = Verbose, keyword = REQUEST)]
    pub fn others(
        truth: bool,
        float: F32,
        double: F64,
        hidden: Pointer,
        #[address] told: Pointer,
        guid: Guid,
        time: FileTime,
        date: SystemTime,
        status: NtStatus,
        result: HResult,
        error: Win32Error,
        process: ProcessId,
        thread: ThreadId,
        luid: Luid,
        luids: &[Luid],
    );

    #[event(level = Verbose, keyword = REQUEST)]
    pub fn network(v4: Ipv4Addr, v6: Ipv6Addr, port: Port, socket: SocketAddr, sid: Sid<'_>);

    #[event(id = 8, level = Verbose, keyword = REQUEST)]
    pub fn network_in_manifest(
        v4: Ipv4Addr,
        v6: Ipv6Addr,
        port: Port,
        socket: SocketAddr,
        sid: Sid<'_>,
    );

    #[event(level = Verbose, keyword = REQUEST)]
    pub fn texts(
        utf8: &str,
        utf16: &[u16],
        unicode: UnicodeString<'_>,
        c: &CStr,
        wide: Utf16CStr<'_>,
        bytes: &[u8],
        #[json] json: &str,
        #[xml] xml: &[u16],
    );

    #[event(level = Verbose, keyword = REQUEST)]
    pub fn arrays(
        fixed: [u32; 3],
        counted: &[i16],
        #[array] bytes: &[u8],
        #[array] units: &[u16],
        #[hex] mac: [u8; 6],
        guids: &[Guid],
        last: u8,
    );

    #[event(level = Verbose, keyword = REQUEST)]
    pub fn structured(kind: Kind, flags: Flags, path: Path<'_>, to: Endpoint<'_>);

    #[event(id = 9, level = Verbose, keyword = REQUEST)]
    pub fn two_texts(first: &str, second: &[u8]);
}

thread_local! {
    static CAPTURED: Cell<u32> = const { Cell::new(0) };
}

fn capture_state(provider: &wdk_etw::Provider, _notification: &wdk_etw::Notification<'_>) {
    assert_eq!(provider.id(), trace::PROVIDER.id());
    CAPTURED.set(CAPTURED.get() + 1);
    emit!(trace::state(9));
}

fn registered() -> Turn {
    enabled(&trace::PROVIDER, 255)
}

fn one(etw: &Turn) -> Written {
    let mut writes = etw.writes();
    assert_eq!(writes.len(), 1);
    writes.remove(0)
}

/// Returns the values that the independent `.etl` reader decodes.
fn decoded(written: &Written) -> (String, Vec<(String, Value)>) {
    assert_eq!(written.data[0], (2, trace::PROVIDER.traits().as_bytes().to_vec()));
    assert_eq!(written.data[1].0, 1);
    let schema = written.schema().unwrap();
    let values = written.values(&schema);
    (schema.event_name, values)
}

fn values(written: &Written) -> Vec<Value> {
    decoded(written).1.into_iter().map(|(_, value)| value).collect()
}

/// A provider with manifest events only.
#[wdk_etw::provider(name = "Test.Manifest", binary_tracking)]
mod in_manifest {
    #[event(id = 1, level = Info, keyword = none)]
    pub fn told(number: u32);
}

// R-D2, R-T6
#[test]
fn a_provider_with_only_manifest_events_needs_no_traits() {
    let etw = turn();
    assert_eq!(register(&in_manifest::PROVIDER), Ok(Registered::Complete));
    let classes: Vec<_> = etw
        .calls()
        .into_iter()
        .filter_map(|call| match call {
            Call::SetInformation(_, class, data) => Some((class, data)),
            _ => None,
        })
        .collect();
    assert_eq!(classes, [(3, vec![1]), (0, vec![])]);
    etw.notify(ENABLE, 5, 0, 0);
    emit!(in_manifest::told(5));
    assert_eq!(one(&etw).event.channel(), Channel::NONE);
    // A TraceLogging event contains the provider's name.
    event!(in_manifest::PROVIDER, "Now", level = Info, keyword = none);
    let traits = in_manifest::PROVIDER.traits().as_bytes().to_vec();
    assert_eq!(one(&etw).data[0], (2, traits));
    in_manifest::unregister().unwrap();
}

// R-O2, R-T1, R-T2, R-T5, R-T6
#[test]
fn the_provider_has_its_guid_group_and_traits() {
    assert_eq!(trace::PROVIDER.id(), guid_of_name!("Test.Declared"));
    let traits = trace::PROVIDER.traits().as_bytes();
    let mut expected = vec![0, 0];
    expected.extend_from_slice(b"Test.Declared\0\x13\0\x01");
    expected.extend_from_slice(&trace_group().to_bytes());
    expected.extend_from_slice(b"\x06\0\x80lab\x07\0\xC8text");
    expected[0] = u8::try_from(expected.len()).unwrap();
    assert_eq!(traits, expected);
}

const fn trace_group() -> Guid {
    guid_of_name!("WdkEtw.SampleGroup")
}

// R-D1, R-D2, R-D4, R-D5, R-K2, R-O1, R-O4
#[test]
fn an_event_has_the_properties_of_its_declaration() {
    let transferred = trace::transferred::DESCRIPTOR;
    assert_eq!((transferred.id(), transferred.version()), (1, 2));
    assert_eq!(transferred.level(), Level::ERROR);
    assert_eq!((transferred.opcode(), transferred.task()), (Opcode(10), 7));
    assert_eq!(transferred.keyword(), trace::REQUEST.union(trace::POWER));
    assert_eq!(transferred.channel(), Channel::PROVIDER_METADATA);
    assert_eq!(trace::told::DESCRIPTOR.channel(), Channel(16));
    // The event log enables the first channel's events with the highest keyword bit.
    assert_eq!(
        trace::told::DESCRIPTOR.keyword(),
        trace::REQUEST.union(Keyword::from_bits(1 << 63))
    );
    assert_eq!(trace::POWER, Keyword::bit::<15>());
    let state = trace::state::DESCRIPTOR;
    assert_eq!((state.level(), state.keyword()), (Level::LOG_ALWAYS, Keyword::NONE));
    assert_eq!((state.opcode(), state.channel()), (Opcode::DC_START, Channel::TRACELOGGING));
    assert_eq!(
        (trace::own_level::DESCRIPTOR.level(), trace::own_level::DESCRIPTOR.id()),
        (Level(17), 5)
    );
}

// R-T6, R-O5, R-D2
#[test]
fn both_encodings_pack_their_fields() {
    let etw = registered();
    emit!(trace::read_complete(0xC000_0001, 4096, "\\Device\\0001"));
    let written = one(&etw);
    assert_eq!(written.event, trace::read_complete::DESCRIPTOR);
    let block = b"\x01\0\0\xC0\0\x10\0\0\0\0\0\0\x0C\0".to_vec();
    assert_eq!(
        written.data,
        [
            (2, trace::PROVIDER.traits().as_bytes().to_vec()),
            (1, b"\x26\0\0ReadComplete\0Status\0\x08Bytes\0\x0aName\0\x97\x23".to_vec()),
            (0, block.clone()),
            (0, b"\\Device\\0001".to_vec()),
        ]
    );
    emit!(trace::transferred(0xC000_0001, 4096, "\\Device\\0001"));
    let written = one(&etw);
    assert_eq!(written.event, trace::transferred::DESCRIPTOR);
    assert_eq!(written.data, [(0, block), (0, b"\\Device\\0001".to_vec())]);
    trace::told();
    assert_eq!(one(&etw).data, []);
}

// R-O9, R-E8, R-K3, R-O3
#[test]
fn a_filtered_event_evaluates_nothing() {
    let etw = registered();
    let evaluated = Cell::new(0);
    let count = || {
        evaluated.set(evaluated.get() + 1);
        1_u32
    };
    let write = || {
        emit!(trace::read_complete(count(), 1, "x"));
        emit!(
            trace::read_complete(count(), 1, "x"),
            activity =
                ActivityId::from_guid(Guid::from_bytes([u8::try_from(count()).unwrap(); 16]))
        );
        event!(trace::PROVIDER, "Now", level = Info, keyword = trace::POWER, { n: u32 = count() });
    };
    for (level, any) in [(3, 0), (5, 1)] {
        etw.notify(ENABLE, level, any, 0);
        write();
        assert_eq!(etw.writes(), [], "{level} {any:#x}");
    }
    etw.notify(DISABLE, 0, 0, 0);
    write();
    let before = evaluated.get();
    assert_eq!(before, 0);
    etw.notify(ENABLE, 4, 0x8000, 0x8000);
    write();
    assert_eq!((etw.writes().len(), evaluated.get() - before), (3, 4));
    trace::unregister().unwrap();
    write();
    assert_eq!((etw.writes(), evaluated.get() - before), (vec![], 4));
}

// R-D2, R-G2
#[test]
fn an_event_claims_traits_only_if_its_provider_has_them() {
    let etw = turn();
    etw.set(|etw| etw.information_status = ACCESS_DENIED);
    let refused = NtStatus(ACCESS_DENIED);
    assert_eq!(
        register(&trace::PROVIDER),
        Ok(Registered::Incomplete(Refusals {
            traits: Some(refused),
            descriptor_types: Some(refused),
            binary_tracking: None,
        }))
    );
    etw.notify(ENABLE, 5, 0, 0);
    etw.calls();
    emit!(trace::transferred(1, 2, "x"));
    emit!(trace::told());
    let channels: Vec<_> = etw.writes().iter().map(|write| write.event.channel()).collect();
    assert_eq!(channels, [Channel::NONE, Channel(16)]);
    trace::unregister().unwrap();
    etw.set(|etw| etw.information_status = 0);
    assert_eq!(register(&trace::PROVIDER), Ok(Registered::Complete));
    etw.notify(ENABLE, 5, 0, 0);
    etw.calls();
    emit!(trace::transferred(1, 2, "x"));
    assert_eq!(one(&etw).event.channel(), Channel::PROVIDER_METADATA);
    trace::unregister().unwrap();
}

// R-O5
#[test]
fn names_and_tags_are_in_the_event_metadata() {
    let etw = registered();
    emit!(trace::state(3));
    let written = one(&etw);
    assert_eq!(written.data[1].1, b"\x1c\0\x01The state\0Last One\0\x84\x80\x80\x80\x80\x05");
    let schema = Schema::parse_trace_logging(&written.data[1].1).unwrap();
    assert_eq!((schema.tags, schema.fields[0].tags), (0x20_0000, 5));
    assert_eq!(decoded(&written).1, [("Last One".to_owned(), Value::UInt(3))]);
}

// R-E5, R-E1
#[test]
fn a_hook_writes_the_state() {
    let etw = registered();
    let before = CAPTURED.get();
    etw.notify(CAPTURE_STATE, 5, 1, 0);
    assert_eq!(CAPTURED.get() - before, 1);
    assert_eq!(one(&etw).event, trace::state::DESCRIPTOR);
}

// R-O6, R-O7
#[test]
fn a_writes_options_are_passed_on() {
    let etw = registered();
    let activity = ActivityId::from_guid(Guid::from_bytes([1; 16]));
    let related = ActivityId::from_guid(Guid::from_bytes([2; 16]));
    emit!(
        trace::told(),
        activity = activity,
        related = related,
        flags = WriteFlags::NO_FAULTING,
        except_sessions = 4,
    );
    event!(
        trace::PROVIDER,
        "Now",
        level = Info,
        keyword = none,
        opcode = Stop,
        related = related,
        except_sessions = 2,
    );
    let activity_of_request = Activity::from_activity(related).unwrap();
    assert_ne!(activity_of_request.id(), related);
    emit!(trace::told(), starts = activity_of_request);
    emit!(trace::told(), starts = Activity::NONE);
    let options = WriteOptions::new().activity(related);
    assert_eq!(trace::told::write(&options), Ok(()));
    emit!(trace::told());
    let both = WriteFlags::NO_FAULTING.union(WriteFlags::IN_PRIVATE);
    emit!(trace::told(), flags = both);
    emit!(trace::told(), flags = both.union(WriteFlags::IN_PRIVATE));
    let writes = etw.writes();
    assert_eq!(
        (writes[0].activity, writes[0].related),
        (Some(activity.guid()), Some(related.guid()))
    );
    assert_eq!((writes[0].flags, writes[0].filter), (1, 4));
    assert_eq!((writes[1].activity, writes[1].related), (None, Some(related.guid())));
    assert_eq!((writes[1].event.opcode(), writes[1].filter), (Opcode::STOP, 2));
    let starts = &writes[2];
    assert_eq!(starts.activity, Some(activity_of_request.id().guid()));
    assert_eq!(starts.related, Some(related.guid()));
    assert_eq!((writes[3].activity, writes[3].related), (Some(Guid::NULL), None));
    assert_eq!(writes[4].activity, Some(related.guid()));
    // Without options, ETW gets the thread's activity, no flags, and all sessions.
    assert_eq!((writes[5].activity, writes[5].related), (None, None));
    assert_eq!((writes[5].flags, writes[5].filter), (0, 0));
    assert_eq!((writes[6].flags, writes[7].flags), (3, 3));
    etw.set(|etw| etw.write_status = NO_MEMORY);
    let before = trace::PROVIDER.failures().total();
    emit!(trace::told());
    let refused = WriteError(NtStatus::NO_MEMORY);
    assert_eq!(trace::told::write(&options), Err(refused));
    assert_eq!(trace::PROVIDER.failures().total() - before, 2);
}

// R-O6
#[test]
fn an_activity_originates_from_the_threads_activity() {
    let etw = turn();
    assert_eq!(Activity::from_thread().unwrap().related(), None);
    let thread = Guid::from_bytes([3; 16]);
    etw.set(|etw| etw.thread_activity = thread);
    let activity = Activity::from_thread().unwrap();
    assert_eq!(activity.related().map(ActivityId::guid), Some(thread));
    assert_ne!(activity.id(), ActivityId::NONE);
    assert_eq!(Activity::new().unwrap().related(), None);
    // A thread without a thread environment block.
    etw.set(|etw| etw.thread_activity_status = NO_MEMORY);
    let refused = wdk_etw::ActivityError::Refused(NtStatus::NO_MEMORY);
    assert_eq!(ActivityId::current(), Err(refused));
    let activity = Activity::from_thread().unwrap();
    assert_eq!(activity.related(), None);
    assert_ne!(activity.id(), ActivityId::NONE);
}

// R-O5, R-T6
#[test]
fn an_event_at_its_call_site_is_like_a_declared_one() {
    let etw = registered();
    let name = String::from("disk");
    event!(trace::PROVIDER, "ReadComplete", level = Info, keyword = trace::POWER, {
        status: u32 = 5,
        bytes: u64 = 6,
        name: &str = &name,
    });
    emit!(trace::read_complete(5, 6, &name));
    let writes = etw.writes();
    assert_eq!(writes[0], writes[1]);
    let event = 7_u16;
    event!(&trace::PROVIDER, "Local", level = Info, keyword = none, tag = 1, { event: u16 = event });
    assert_eq!(values(&one(&etw)), [Value::UInt(7)]);
}

/// Returns a string of two-byte characters.
fn long(characters: usize) -> String {
    "é".repeat(characters)
}

// Fields that do not fit are truncated, counted and reported.
#[test]
fn fields_that_do_not_fit_are_cut_and_reported() {
    const ROOM: usize = wdk_etw_room();
    let etw = registered();
    let before = trace::PROVIDER.failures().cut();
    let text = "x".to_owned() + &long(40_000);
    let bytes = vec![7; 10];
    emit!(trace::two_texts(&text, &bytes));
    let writes = etw.writes();
    assert_eq!(writes.len(), 3, "two notices, and the event");
    assert_eq!(trace::PROVIDER.failures().cut() - before, 2);
    let kept = writes[2].content();
    let length = usize::from(u16::from_le_bytes([kept[0], kept[1]]));
    assert!((ROOM - 6..=ROOM - 4).contains(&length), "{length}");
    assert_eq!(&kept[2..2 + length], &text.as_bytes()[..length]);
    assert!(text.is_char_boundary(length));
    for (at, (notice, (was, now))) in
        writes.iter().zip([(80_001, length), (10, ROOM - 4 - length)]).enumerate()
    {
        assert_eq!(notice.event.level(), Level::VERBOSE);
        assert_eq!(notice.event.keyword(), trace::REQUEST);
        assert_eq!((notice.flags, notice.filter), (0, 0));
        let (name, fields) = decoded(notice);
        assert_eq!(name, "FieldCut");
        let values: Vec<_> = fields.into_iter().map(|(_, value)| value).collect();
        assert_eq!(
            values,
            [
                Value::Text(String::new()),
                Value::UInt(9),
                Value::UInt(0),
                Value::UInt(at as u64),
                Value::UInt(was),
                Value::UInt(now as u64),
            ]
        );
    }
    // The notice contains the name of a TraceLogging event.
    emit!(trace::read_complete(0, 0, &text));
    let writes = etw.writes();
    assert_eq!(values(&writes[0])[0], Value::Text("ReadComplete".to_owned()));
    assert!(writes[1].content().len() <= ROOM);
    // The name follows the tag, which has one to four bytes.
    event!(trace::PROVIDER, "Short", level = Info, keyword = none, tag = 0x20_0000, { a: &str = &text });
    event!(trace::PROVIDER, "Long", level = Info, keyword = none, tag = 0xFE0_0001, { a: &str = &text });
    let names: Vec<_> =
        (etw.writes().iter().step_by(2)).map(|notice| values(notice)[0].clone()).collect();
    assert_eq!(names, ["Short", "Long"].map(|name| Value::Text(name.to_owned())));
    // Arrays are truncated between elements.
    let many = vec![0x0102_i16; 40_000];
    emit!(trace::arrays(&[1, 2, 3], &many, &[], &[], &[0; 6], &[], 1));
    let writes = etw.writes();
    let last = writes.last().unwrap();
    assert!(matches!(&values(last)[1], Value::Array(kept) if kept.len() > 31_000));
    let total: usize = last.data.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(total + 80 + 2_000 < 65_536);
}

#[test]
fn a_notice_of_a_cut_field_goes_where_its_event_goes() {
    let etw = registered();
    let [activity, related] = [1, 2].map(|byte| Guid::from_bytes([byte; 16]));
    let text = long(80_000);
    emit!(
        trace::read_complete(0, 0, &text),
        activity = ActivityId::from_guid(activity),
        related = ActivityId::from_guid(related),
        flags = WriteFlags::NO_FAULTING,
        except_sessions = 4,
    );
    let writes = etw.writes();
    let options = |of: &Written| (of.activity, of.related, of.flags, of.filter);
    // `EVENT_WRITE_FLAG_NO_FAULTING`.
    let flags = 1;
    assert_eq!(options(&writes[0]), (Some(activity), None, flags, 4));
    assert_eq!(options(&writes[1]), (Some(activity), Some(related), flags, 4));
    assert_eq!(writes.len(), 2);
}

/// The maximum size of an event's data in bytes.
const fn wdk_etw_room() -> usize {
    65_535 - 80 - 2_560
}

fn text() -> impl Strategy<Value = String> {
    // Some of the strings end at a NUL, for the reader too.
    "[^\\x00]{0,40}"
}

#[test]
fn the_options_are_evaluated_first_and_then_the_fields_from_left_to_right() {
    let _etw = enabled(&trace::PROVIDER, 5);
    let seen = RefCell::new(Vec::new());
    let id = |name| {
        seen.borrow_mut().push(name);
        ActivityId::NONE
    };
    let field = |name| {
        seen.borrow_mut().push(name);
        1_u32
    };
    let evaluated = |write: &dyn Fn()| {
        write();
        seen.take()
    };
    let expected = ["activity", "related", "first", "second"];
    let written = evaluated(&|| {
        emit!(
            trace::ordered(field("first"), field("second")),
            activity = id("activity"),
            related = id("related"),
        );
    });
    assert_eq!(written, expected);
    let written = evaluated(&|| {
        event!(
            trace::PROVIDER, "Ordered", level = Info, keyword = none,
            activity = id("activity"), related = id("related"),
            { first: u32 = field("first"), second: u32 = field("second") }
        );
    });
    assert_eq!(written, expected);
}

proptest! {
    // R-O5: an independent reader decodes every type of field.
    #[test]
    fn integers_read_back(a: i8, b: u8, c: i16, d: u16, e: i32, f: u32, g: i64, h: u64, i: usize, j: isize) {
        let etw = registered();
        emit!(trace::integers(a, b, c, d, e, f, g, h, i, j, b, d, e, h, i));
        let i = i as u64;
        prop_assert_eq!(
            values(&one(&etw)),
            vec![
                Value::Int(a.into()), Value::UInt(b.into()), Value::Int(c.into()),
                Value::UInt(d.into()), Value::Int(e.into()), Value::UInt(f.into()),
                Value::Int(g), Value::UInt(h), Value::UInt(i), Value::Int(j as i64),
                Value::Hex(b.into()),
                Value::Hex(d.into()), Value::Hex(e.cast_unsigned().into()), Value::Hex(h),
                Value::Hex(i),
            ]
        );
    }

    #[test]
    fn other_values_read_back(
        truth: bool, float: f32, double: f64, address: usize, guid: [u8; 16], time in 0_i64..,
        date: [u16; 8], status: i32, error: u32, luid: (u32, i32),
    ) {
        let etw = registered();
        let pointer = Pointer::new(std::ptr::without_provenance::<u8>(address));
        let [year, month, day_of_week, day, hour, minute, second, millisecond] = date;
        let date = SystemTime { year, month, day_of_week, day, hour, minute, second, millisecond };
        let number = u64::from(luid.0) | u64::from(luid.1.cast_unsigned()) << 32;
        let luid = Luid { low_part: luid.0, high_part: luid.1 };
        emit!(trace::others(
            truth, F32::from_bits(float.to_bits()), F64::from_bits(double.to_bits()), pointer,
            pointer, Guid::from_bytes(guid), FileTime(time), date, NtStatus(status),
            HResult(status), Win32Error(error), ProcessId(error), ThreadId(error), luid,
            &[luid, Luid::default()],
        ));
        let values = values(&one(&etw));
        let hidden = if address == 0 { 0 } else { u64::MAX };
        prop_assert_eq!(&values[0], &Value::Bool(truth));
        prop_assert!(matches!(values[1], Value::Float(read) if read.to_bits() == float.to_bits()));
        prop_assert!(matches!(values[2], Value::Double(read) if read.to_bits() == double.to_bits()));
        prop_assert_eq!(&values[3], &Value::Hex(hidden));
        prop_assert_eq!(&values[4], &Value::Hex(address as u64));
        prop_assert_eq!(values[5].to_string(), Guid::from_bytes(guid).to_string());
        prop_assert!(matches!(&values[6], Value::FileTime(read) if read.raw() == time));
        prop_assert!(matches!(&values[7], Value::SystemTime(_)));
        prop_assert_eq!(&values[8], &Value::NtStatus(status.cast_unsigned()));
        prop_assert_eq!(&values[9], &Value::HResult(status.cast_unsigned()));
        prop_assert_eq!(&values[10], &Value::Win32Error(error));
        prop_assert_eq!(&values[11], &Value::ProcessId(error.into()));
        prop_assert_eq!(&values[12], &Value::ThreadId(error.into()));
        prop_assert_eq!(&values[13], &Value::Hex(number));
        prop_assert_eq!(&values[14], &Value::Array(vec![Value::Hex(number), Value::Hex(0)]));
    }

    #[test]
    fn addresses_read_back(v4: u32, v6: u128, port: u16, six: bool, sub in proptest::collection::vec(any::<u32>(), 0..=15)) {
        let etw = registered();
        let (v4, v6) = (Ipv4Addr::from_bits(v4), Ipv6Addr::from_bits(v6));
        let ip: IpAddr = if six { v6.into() } else { v4.into() };
        let mut sid = vec![1, u8::try_from(sub.len()).unwrap(), 0, 0, 0, 0, 0, 5];
        sid.extend(sub.iter().flat_map(|sub| sub.to_le_bytes()));
        let sid = Sid::new(&sid).unwrap();
        let socket = SocketAddr::new(ip, port);
        emit!(trace::network(v4, v6, Port(port), socket, sid));
        emit!(trace::network_in_manifest(v4, v6, Port(port), socket, sid));
        let writes = etw.writes();
        let read = values(&writes[0]);
        prop_assert_eq!(
            &read[..4],
            &[Value::Ipv4(v4), Value::Ipv6(v6), Value::Port(port), Value::SocketAddress(socket)]
        );
        prop_assert!(matches!(&read[4], Value::Sid(read) if read.subauthorities == sub));
        // In a manifest, the address is preceded by its length of 16 bytes.
        let mut described = writes[0].content();
        prop_assert_eq!(described.drain(4..6).collect::<Vec<_>>(), [16, 0]);
        prop_assert_eq!(writes[1].content(), described);
    }

    #[test]
    fn texts_read_back(a in text(), b in text(), c in text(), bytes: Vec<u8>) {
        let etw = registered();
        let units: Vec<u16> = b.encode_utf16().collect();
        let terminated = std::ffi::CString::new(c.clone()).unwrap();
        emit!(trace::texts(
            &a, &units, UnicodeString::new(&units), &terminated, Utf16CStr::new(&units), &bytes,
            &a, &units,
        ));
        let (a, b) = (Value::Text(a), Value::Text(b));
        prop_assert_eq!(
            values(&one(&etw)),
            vec![
                a.clone(), b.clone(), b.clone(), Value::Text(c), b.clone(), Value::Binary(bytes),
                a, b,
            ]
        );
    }

    #[test]
    fn arrays_read_back(
        fixed: [u32; 3], counted: Vec<i16>, bytes: Vec<u8>, units: Vec<u16>, mac: [u8; 6],
        guids in proptest::collection::vec(any::<[u8; 16]>(), 0..5), last: u8,
    ) {
        let etw = registered();
        let ids: Vec<_> = guids.into_iter().map(Guid::from_bytes).collect();
        emit!(trace::arrays(&fixed, &counted, &bytes, &units, &mac, &ids, last));
        let read = values(&one(&etw));
        let unsigned = |values: Vec<u64>| Value::Array(values.into_iter().map(Value::UInt).collect());
        prop_assert_eq!(&read[0], &unsigned(fixed.iter().map(|n| u64::from(*n)).collect()));
        let counted = counted.into_iter().map(|n| Value::Int(n.into())).collect();
        prop_assert_eq!(&read[1], &Value::Array(counted));
        prop_assert_eq!(&read[2], &unsigned(bytes.iter().map(|n| u64::from(*n)).collect()));
        prop_assert_eq!(&read[3], &unsigned(units.iter().map(|n| u64::from(*n)).collect()));
        let mac = mac.iter().map(|n| Value::Hex(u64::from(*n))).collect();
        prop_assert_eq!(&read[4], &Value::Array(mac));
        prop_assert!(matches!(&read[5], Value::Array(read) if read.len() == ids.len()));
        prop_assert_eq!(&read[6], &Value::UInt(last.into()));
    }

    #[test]
    fn structures_and_maps_read_back(from in text(), to in text(), scope: u16, port: u16, hops: u8) {
        let etw = registered();
        let endpoint = |host| trace::Endpoint { host, scope, port: Port(port) };
        let path = trace::Path { from: endpoint(&from), hops };
        let flags = trace::Flags::Cached | trace::Flags::Paging;
        emit!(trace::structured(trace::Kind::Write, flags, path, endpoint(&to)));
        let read = |host: &str| Value::Struct(vec![
            ("Host".into(), Value::Text(host.to_owned())),
            ("Scope".into(), Value::Hex(scope.into())),
            ("Port".into(), Value::Port(port)),
        ]);
        prop_assert_eq!(
            values(&one(&etw)),
            vec![
                Value::UInt(2),
                Value::Hex(0x11),
                Value::Struct(vec![
                    ("From".into(), read(&from)),
                    ("Hops".into(), Value::UInt(hops.into())),
                ]),
                read(&to),
            ]
        );
    }
}
