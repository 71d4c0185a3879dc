//! Tests events with metadata created at run time, as ETW receives them and as decoders read them.

use std::{cell::Cell, fmt};

use etl_file::decode::Value;
use mock_etw::{ENABLE, Endless, NO_MEMORY, Turn, Written, enabled, register, turn};
use proptest::prelude::*;
use wdk_etw::{
    __macro::{Hooks, StaticProvider},
    ActivityId, DynamicEvent, EventDescriptor, EventMetadata, EventMetadataError, Guid, Keyword,
    Level, NtStatus, Opcode, Registered, WriteError, WriteOptions, guid_of_name, traits,
};

static PROVIDER: StaticProvider =
    StaticProvider::new(guid_of_name!("Test.Dynamic"), &traits!("Test.Dynamic"));

const KEYWORD: Keyword = Keyword::bit::<3>();
const EVENT: EventDescriptor =
    EventDescriptor::new(0, 0, Level::ERROR, KEYWORD).with_opcode(Opcode::START);

fn registered() -> Turn {
    enabled(&PROVIDER, 4)
}

/// Returns an event's name and its fields, as `etl-file` decodes them.
fn read(written: &Written) -> (String, Vec<(String, Value)>) {
    let schema = written.schema().unwrap();
    let values = written.values(&schema);
    (schema.event_name, values)
}

fn write<const M: usize, const D: usize>(event: &mut DynamicEvent<M, D>) {
    event.write(&PROVIDER, &EVENT, &WriteOptions::new()).unwrap();
}

#[test]
fn every_type_of_field_reads_back() {
    let etw = registered();
    let mut event = DynamicEvent::<256, 256>::new();
    event.start("Everything");
    event.u64("u64", u64::MAX);
    event.i64("i64", -5);
    event.u32("u32", 7);
    event.f64("f64", -2.5);
    event.bool("bool", true);
    event.str("str", "größer");
    event.format("format", format_args!("{}+{:?}", 1, "x"));
    event.bytes("bytes", &[1, 0xAB]);
    event.str("empty", "");
    assert_eq!(event.lost(), 0);
    write(&mut event);
    let writes = etw.writes();
    let [written] = writes.as_slice() else {
        panic!("{writes:?}");
    };
    let expected = [
        "u64=18446744073709551615", "i64=-5", "u32=7", "f64=-2.5", "bool=true", "str=\"größer\"",
        "format=\"1+\"x\"\"", "bytes=hex:01ab", "empty=\"\"",
    ];
    assert_eq!(
        written.described(),
        ("Everything".to_owned(), expected.map(str::to_owned).to_vec())
    );
    let event = written.event;
    assert_eq!((event.level(), event.keyword()), (Level::ERROR, KEYWORD));
    assert_eq!((event.opcode(), event.channel().0), (Opcode::START, 11));
    // The traits, the metadata, and one data descriptor for all values.
    let kinds: Vec<_> = written.data.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [2, 1, 0]);
}

#[test]
fn an_event_that_no_session_enables_is_not_written() {
    let etw = registered();
    let before = PROVIDER.failures().cut();
    etw.notify(ENABLE, 1, 0, 0);
    let mut event = DynamicEvent::<64, 8>::new();
    event.start("Event");
    event.str("text", "longer than half of eight bytes");
    write(&mut event);
    assert_eq!(etw.writes(), []);
    assert_eq!(PROVIDER.failures().cut(), before);
    // ETW checks the match-all keywords.
    etw.notify(ENABLE, 5, KEYWORD.bits(), KEYWORD.bits());
    write(&mut event);
    assert_eq!(etw.writes().len(), 2, "a notice and the event");
    PROVIDER.unregister().unwrap();
    write(&mut event);
    assert_eq!(etw.writes(), []);
}

// The enable info arrives before the registration's handle.
#[test]
fn an_event_in_a_notification_during_registration_is_counted_as_dropped() {
    static HOOKED: StaticProvider =
        StaticProvider::new(guid_of_name!("Test.Hooked"), &traits!("Test.Hooked")).with_hooks(
            Hooks {
                on_enable: Some(|provider, _| {
                    let mut event = DynamicEvent::<64, 64>::new();
                    event.start("Event");
                    event.write(provider, &EVENT, &WriteOptions::new()).unwrap();
                }),
                ..Hooks::NONE
            },
        );
    let etw = turn();
    etw.set(|etw| etw.enabled_before = Some((5, 0, 0)));
    assert_eq!(register(&HOOKED), Ok(Registered::Complete));
    assert_eq!(etw.writes(), []);
    assert_eq!(HOOKED.statistics().dropped, 1);
    HOOKED.unregister().unwrap();
}

#[test]
fn an_event_can_be_started_again_and_needs_no_name() {
    let etw = registered();
    let mut event = DynamicEvent::<64, 8>::default();
    write(&mut event);
    event.start("First");
    event.str("text", "too long");
    assert_eq!(event.lost(), 1);
    event.start("Second");
    event.u32("number", 1);
    assert_eq!(event.lost(), 0);
    write(&mut event);
    let writes = etw.writes();
    assert_eq!(writes[0].described(), (String::new(), vec![]));
    let expected = ("Second".to_owned(), vec!["number=1".to_owned()]);
    assert_eq!(writes[1].described(), expected);
}

#[test]
fn options_and_failures_pass_through() {
    let etw = registered();
    let activity = ActivityId::from_guid(Guid::new(1, 2, 3, [4; 8]));
    let options = WriteOptions::new().activity(activity);
    let mut event = DynamicEvent::<64, 64>::new();
    event.start("Event");
    event.write(&PROVIDER, &EVENT, &options).unwrap();
    etw.set(|etw| etw.write_status = NO_MEMORY);
    let failed = event.write(&PROVIDER, &EVENT, &options);
    assert_eq!(failed, Err(WriteError(NtStatus::NO_MEMORY)));
    assert_eq!(etw.writes()[0].activity, Some(activity.guid()));
}

// At DISPATCH_LEVEL, the current thread may be one that was interrupted.
#[test]
fn above_apc_level_the_threads_activity_is_not_used() {
    let etw = registered();
    let mut event = DynamicEvent::<64, 64>::new();
    event.start("Event");
    for irql in [0, 1, 2, 15] {
        etw.set(|etw| etw.irql = irql);
        let options = WriteOptions::at_current_irql();
        event.write(&PROVIDER, &EVENT, &options).unwrap();
    }
    etw.set(|etw| etw.irql = 0);
    let activities: Vec<_> = etw.writes().iter().map(|write| write.activity).collect();
    let none = Some(Guid::NULL);
    assert_eq!(activities, [None, None, none, none]);
}

struct Failing;

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("before")?;
        Err(fmt::Error)
    }
}

/// Writes an event with buffers of these sizes, and returns the number of its fields that were cut or
/// omitted, which the provider must count, and the written events: name and fields.
fn written<const M: usize, const D: usize>(
    name: &str,
    add: impl FnOnce(&mut DynamicEvent<M, D>),
) -> (u16, Vec<(String, String)>) {
    let etw = registered();
    let before = PROVIDER.failures().cut();
    let mut event = DynamicEvent::<M, D>::new();
    event.start(name);
    add(&mut event);
    write(&mut event);
    assert_eq!(PROVIDER.failures().cut() - before, u64::from(event.lost()));
    let writes = etw.writes();
    assert!(writes.iter().all(|one| one.event.level() == Level::ERROR));
    let described = writes.iter().map(Written::described);
    (event.lost(), described.map(|(name, fields)| (name, fields.join(", "))).collect())
}

#[test]
fn what_does_not_fit_is_cut_counted_and_reported() {
    let cut = |field: u16, length: usize, kept: usize| {
        let fields =
            format!("Event=\"E\", Id=0, Version=0, Field={field}, Length={length}, Kept={kept}");
        ("FieldCut".to_owned(), fields)
    };
    let event = |fields: &str| ("E".to_owned(), fields.to_owned());
    // A text ends where its formatting fails, and a name at its first NUL.
    let found =
        written::<64, 64>("E", |event| event.format("text", format_args!("{Failing} after")));
    assert_eq!(found, (0, vec![event("text=\"before\"")]));
    let found = written::<64, 64>("E\0vent", |event| event.u32("a\0b", 1));
    assert_eq!(found, (0, vec![event("a=1")]));
    // Half of 32 bytes: the two bytes of "é" still fit, "x" does not.
    let found = written::<64, 32>("E", |event| {
        event.u32("number", 1);
        event.format("text", format_args!("{}{}{}", "0123456789abcd", "é", "x!"));
        event.u32("behind", 2);
    });
    let fields = "number=1, text=\"0123456789abcdé\", behind=2";
    assert_eq!(found, (1, vec![cut(1, 18, 16), event(fields)]));
    // There is room for one byte, so "é" does not fit, and nothing follows it. The compiler would join
    // literals into one part.
    let (first, part, after) = ("0123456789abcde", "é", "x");
    let found = written::<64, 32>("E", |event| {
        event.format("text", format_args!("{first}{part}{after}"));
    });
    assert_eq!((found.0, &found.1[1]), (1, &event("text=\"0123456789abcde\"")));
    // Bytes are cut at half of the buffer.
    let found = written::<64, 16>("E", |event| event.bytes("whole", &[1; 8]));
    assert_eq!(found, (0, vec![event("whole=hex:0101010101010101")]));
    let found = written::<64, 16>("E", |event| event.bytes("cut", &[2; 9]));
    assert_eq!(found, (1, vec![cut(0, 9, 8), event("cut=hex:0202020202020202")]));
    // The first part that does not fit ends a text, and a field that is omitted is not formatted.
    let parts = Cell::new(0);
    let found = written::<64, 32>("E", |event| {
        event.format("text", format_args!("{}", Endless(&parts, "x")));
        assert_eq!((parts.get(), event.lost()), (17, 1));
        event.str("rest", "0123456789abcdef");
        event.format("none", format_args!("{}", Endless(&parts, "x")));
    });
    assert_eq!((parts.get(), found.0, &found.1[0]), (17, 3, &cut(0, 17, 16)));
    assert!(found.1[1].1.starts_with("text=\"xxxxxxxxxxxxxxxx\", "), "{found:?}");
    // The data has space for one number; after that, the metadata has space for one short name.
    let found = written::<20, 12>("E", |event| {
        event.u64("first", 1);
        event.u64("no data", 2);
        event.u32("no metadata either", 3);
        event.u32("n", 4);
    });
    assert_eq!(found, (2, vec![event("first=1, n=4")]));
    let found = written::<8, 8>("Längerer Name", |event| event.u32("x", 1));
    assert_eq!(found, (2, vec![("Län".to_owned(), String::new())]));
}

#[test]
fn event_metadata_must_begin_with_its_size_a_tag_and_a_name() {
    let error = |bytes| EventMetadata::new(bytes).err();
    assert_eq!(error(b""), Some(EventMetadataError::Size(0)));
    assert_eq!(error(b"\x06\0\0Ab"), Some(EventMetadataError::Size(5)));
    assert_eq!(error(b"\x05\0\0Ab"), Some(EventMetadataError::NoName));
    assert_eq!(error(b"\x04\0\x80\x80"), Some(EventMetadataError::NoName));
    assert_eq!(
        EventMetadataError::Size(5).to_string(),
        "cannot use 5 bytes as event metadata: the first two bytes are not this size"
    );
    let text = EventMetadataError::NoName.to_string();
    assert!(text.contains("the event's tag or name does not end"), "{text}");
    let tagged = EventMetadata::new(b"\x07\0\x81\0Ab\0").unwrap();
    assert_eq!(tagged.name(), c"Ab");
    let etw = registered();
    let metadata = EventMetadata::new(b"\x0A\0\0Own\0n\0\x08").unwrap();
    let options = WriteOptions::new();
    PROVIDER.write_dynamic(&EVENT, metadata, &options, &[5, 0, 0, 0]).unwrap();
    let expected = ("Own".to_owned(), vec!["n=5".to_owned()]);
    assert_eq!(etw.writes()[0].described(), expected);
}

#[derive(Clone, Debug)]
enum Field {
    Number(u64),
    Text(String),
    Bytes(Vec<u8>),
}

fn fields() -> impl Strategy<Value = Vec<(String, Field)>> {
    let field = prop_oneof![
        any::<u64>().prop_map(Field::Number),
        ".{0,60}".prop_map(Field::Text),
        prop::collection::vec(any::<u8>(), 0..60).prop_map(Field::Bytes),
    ];
    // The index makes the names differ.
    prop::collection::vec((".{0,20}", field), 0..12).prop_map(|fields| {
        let numbered = fields.into_iter().enumerate();
        numbered.map(|(at, (name, field))| (format!("{at}{name}"), field)).collect()
    })
}

proptest! {
    /// With any names, values and sizes, the event can be decoded, each field is whole, cut between
    /// characters, or omitted, and fields that are cut or omitted are counted.
    #[test]
    fn every_event_decodes(name in ".{0,20}", fields in fields()) {
        let etw = registered();
        let before = PROVIDER.failures().cut();
        let mut event = DynamicEvent::<96, 128>::new();
    event.start(&name);
        for (name, field) in &fields {
            match field {
                Field::Number(value) => event.u64(name, *value),
                Field::Text(value) => event.str(name, value),
                Field::Bytes(value) => event.bytes(name, value),
            }
        }
        write(&mut event);
        let counted = PROVIDER.failures().cut() - before;
            let writes = etw.writes();
        PROVIDER.unregister().unwrap();
        let (read_name, read) = read(writes.last().unwrap());
        let until_nul = |text: &str| text.split('\0').next().unwrap_or_default().to_owned();
        prop_assert!(until_nul(&name).starts_with(&read_name));
        let mut whole = read_name == until_nul(&name);
        let mut rest = read.iter().peekable();
        for (name, field) in &fields {
            let Some((_, value)) = rest.next_if(|(read, _)| *read == until_nul(name)) else {
                whole = false;
                continue;
            };
            whole &= match (field, value) {
                (Field::Number(wanted), Value::UInt(value)) => wanted == value,
                (Field::Text(wanted), Value::Text(value)) => {
                    let wanted = wanted.replace('\0', " ");
                    prop_assert!(wanted.starts_with(value.as_str()));
                    wanted == *value
                }
                (Field::Bytes(wanted), Value::Binary(value)) => {
                    prop_assert!(wanted.starts_with(value));
                    wanted == value
                }
                other => panic!("{other:?}"),
            };
        }
        prop_assert!(rest.next().is_none());
        prop_assert_eq!(whole, counted == 0, "{:?}", read);
    }
}
