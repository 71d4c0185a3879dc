//! Tests `HexDump` and `Traced`.

use std::{cell::Cell, fmt};

use etl_file::decode::Value;
use mock_etw::{DISABLE, Endless, Turn, Written, enabled};
use wdk_etw::{HasStatus, HexDump, NtStatus, Traced as _, emit, event};

#[wdk_etw::provider(name = "Test.Helpers")]
mod trace {
    #[structure]
    pub struct Transfer<'a> {
        pub endpoint: u8,
        pub data: HexDump<'a>,
    }

    #[event(level = Info, keyword = none)]
    pub fn dumped(number: u32, data: HexDump<'_>);

    #[event(level = Info, keyword = none)]
    pub fn borrowed(data: &HexDump<'_>);

    #[event(level = Info, keyword = none)]
    pub fn nested(transfer: Transfer<'_>);

    #[event(id = 1, level = Info, keyword = none)]
    pub fn in_manifest(data: HexDump<'_>, last: u8);

    #[structure]
    pub struct Note<'a> {
        pub number: u8,
        pub text: Arguments<'a>,
    }

    #[event(level = Info, keyword = none)]
    pub fn told(number: u32, text: fmt::Arguments<'_>, note: Note<'_>);

    #[event(id = 2, level = Info, keyword = none)]
    pub fn told_in_manifest(text: Arguments, last: u8);

    #[event(level = Error, keyword = none)]
    pub fn failed(status: NtStatus);

    #[event(level = Error, keyword = none)]
    pub fn failed_at(offset: u64, status: NtStatus);
}

/// Tests that a declaration may have its own structure of the same name.
#[wdk_etw::provider(name = "Test.Own")]
mod own {
    #[structure]
    pub struct HexDump {
        pub pages: u32,
    }

    #[event(level = Info, keyword = none)]
    pub fn dumped(dump: HexDump);
}

fn registered() -> Turn {
    enabled(&trace::PROVIDER, 5)
}

fn decoded(written: &Written) -> Vec<(String, Value)> {
    written.values(&written.schema().unwrap())
}

/// Returns the decoded form of a dump.
fn dump(offset: u64, size: u64, bytes: &[u8]) -> Value {
    Value::Struct(vec![
        ("Offset".into(), Value::Hex(offset)),
        ("Size".into(), Value::UInt(size)),
        ("Bytes".into(), Value::Binary(bytes.to_vec())),
    ])
}

#[test]
fn a_dump_is_its_offset_the_whole_size_and_the_bytes() {
    let etw = registered();
    let buffer: Vec<u8> = (0..=255).collect();
    emit!(trace::dumped(1, HexDump::of(&buffer[..3])));
    emit!(trace::dumped(2, HexDump::window(&buffer, 16, 2)));
    emit!(trace::dumped(3, HexDump::window(&buffer, 254, 100)));
    emit!(trace::dumped(4, HexDump::window(&buffer, 300, 100)));
    emit!(trace::dumped(5, HexDump::window(&buffer, 1, 1).based_at(0x1000)));
    let writes = etw.writes();
    let dumps: Vec<_> = writes.iter().map(|one| decoded(one)[1].clone()).collect();
    let named = |value| ("Data".to_owned(), value);
    assert_eq!(
        dumps,
        [
            named(dump(0, 3, &[0, 1, 2])),
            named(dump(16, 256, &[16, 17])),
            named(dump(254, 256, &[254, 255])),
            named(dump(300, 256, &[])),
            named(dump(0x1001, 256, &[1])),
        ]
    );
}

#[test]
fn a_dump_can_be_in_a_structure_in_a_manifest_event_and_at_a_call_site() {
    let etw = registered();
    let data = HexDump::window(&[1, 2, 3, 4], 1, 2);
    emit!(trace::nested(trace::Transfer { endpoint: 3, data }));
    event!(trace::PROVIDER, "AdHoc", level = Info, keyword = none, { data: HexDump = data });
    emit!(trace::borrowed(&data));
    event!(trace::PROVIDER, "AdHoc", level = Info, keyword = none, { data: &HexDump<'_> = &data });
    emit!(trace::in_manifest(data, 9));
    let writes = etw.writes();
    let expected = dump(1, 4, &[2, 3]);
    let Value::Struct(members) = &decoded(&writes[0])[0].1 else {
        panic!("a structure is expected");
    };
    assert_eq!(members[1].1, expected);
    for one in [1, 2, 3] {
        assert_eq!(decoded(&writes[one]), [("Data".to_owned(), expected.clone())]);
    }
    // Offset, size, length and bytes, then the last field.
    let bytes = [&1_u64.to_le_bytes()[..], &4_u64.to_le_bytes(), &[2, 0, 2, 3, 9]].concat();
    assert_eq!(writes[4].content(), bytes);
}

#[test]
fn a_dump_that_does_not_fit_is_cut_and_counted() {
    let etw = registered();
    let before = trace::PROVIDER.statistics().cut;
    let buffer = vec![7; 100_000];
    emit!(trace::dumped(1, HexDump::window(&buffer, 5, 80_000)));
    let writes = etw.writes();
    assert_eq!(writes.len(), 2, "`FieldCut` and the event");
    let (_, Value::Struct(members)) = &decoded(&writes[1])[1] else {
        panic!("a structure is expected");
    };
    assert_eq!(members[1].1, Value::UInt(100_000));
    assert!(matches!(&members[2].1, Value::Binary(bytes) if bytes.len() < 65_536));
    assert_eq!(trace::PROVIDER.statistics().cut - before, 1);
}

#[test]
fn a_declarations_own_structure_has_precedence() {
    let () = own::dumped(own::HexDump { pages: 1 });
}

#[test]
fn an_error_is_written_and_returned_unchanged() {
    /// An error type of a driver.
    #[derive(Debug, PartialEq, Eq)]
    struct Error(&'static str);
    impl HasStatus for Error {
        fn status(&self) -> NtStatus {
            NtStatus::INVALID_PARAMETER
        }
    }
    let etw = registered();
    let failed: Result<u8, NtStatus> = Err(NtStatus::NO_MEMORY);
    assert_eq!(failed.traced(trace::failed), Err(NtStatus::NO_MEMORY));
    let failed: Result<u8, Error> = Err(Error("own"));
    assert_eq!(failed.traced(trace::failed), Err(Error("own")));
    let status = NtStatus::BUFFER_OVERFLOW.traced(|status| emit!(trace::failed_at(5, status)));
    assert_eq!(status, NtStatus::BUFFER_OVERFLOW);
    let contents: Vec<_> = etw.writes().iter().map(Written::content).collect();
    let bytes = |status: NtStatus| status.0.to_le_bytes().to_vec();
    assert_eq!(
        contents,
        [
            bytes(NtStatus::NO_MEMORY),
            bytes(NtStatus::INVALID_PARAMETER),
            [5_u64.to_le_bytes().to_vec(), bytes(NtStatus::BUFFER_OVERFLOW)].concat(),
        ]
    );
}

#[test]
fn a_success_writes_nothing_and_a_disabled_event_evaluates_nothing() {
    let etw = registered();
    let succeeded: Result<u8, NtStatus> = Ok(3);
    assert_eq!(succeeded.traced(trace::failed), Ok(3));
    assert_eq!(NtStatus::TIMEOUT.traced(trace::failed), NtStatus::TIMEOUT);
    etw.notify(DISABLE, 0, 0, 0);
    let evaluated = Cell::new(false);
    let failed: Result<u8, NtStatus> = Err(NtStatus::NO_MEMORY);
    let failed = failed.traced(|status| {
        emit!(trace::failed_at(
            {
                evaluated.set(true);
                0
            },
            status
        ));
    });
    assert_eq!(failed, Err(NtStatus::NO_MEMORY));
    assert_eq!(etw.writes(), []);
    assert!(!evaluated.get());
}

#[test]
fn a_formatted_text_is_a_field_of_at_most_256_bytes() {
    /// A value that counts how often it is formatted.
    struct Counted<'a>(&'a Cell<usize>);
    impl fmt::LowerHex for Counted<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.set(self.0.get() + 1);
            f.write_str("0x10")
        }
    }
    let etw = registered();
    let (calls, cuts) = (Cell::new(0), trace::PROVIDER.failures().cut());
    let endless = Endless(&calls, "é.");
    let note = |text| trace::Note { number: 7, text };
    emit!(trace::told(1, format_args!("a = {}", 5), note(format_args!("{endless}"))));
    assert_eq!(calls.get(), 86, "formatting ends where the text is full");
    event!(trace::PROVIDER, "Once", level = Info, keyword = none, {
        text: fmt::Arguments<'_> = format_args!("{:#x}", {
            calls.set(calls.get() + 1);
            Counted(&calls)
        }),
        big: &str = &"b".repeat(70_000),
    });
    // A field that does not fit requires the slow path; the text is still formatted only once.
    assert_eq!(calls.get(), 88);
    emit!(trace::told_in_manifest(format_args!("m"), 9));
    let writes = etw.writes();
    let text = |text: &str| Value::Text(text.into());
    let cut = "é.".repeat(85);
    assert_eq!(
        decoded(&writes[0]),
        [
            ("Number".to_owned(), Value::UInt(1)),
            ("Text".to_owned(), text("a = 5")),
            (
                "Note".to_owned(),
                Value::Struct(vec![("Number".into(), Value::UInt(7)), ("Text".into(), text(&cut))])
            ),
        ]
    );
    // The long text was cut, which another event reports.
    assert_eq!(decoded(&writes[2])[0], ("Text".to_owned(), text("0x10")));
    assert_eq!(writes[3].content(), b"\x01\0m\x09");
    assert_eq!(trace::PROVIDER.failures().cut() - cuts, 2);
}
