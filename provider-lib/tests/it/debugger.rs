//! Tests the lines that a provider with `debugger` prints in the debugger.
//!
//! The tests are compiled with `debug_assertions`, like a driver's debug build.

use std::cell::Cell;

use mock_etw::{Call, ENABLE, Endless, Turn, registered, turn};
use wdk_etw::{
    Bool32, HexDump, Keyword, Level, NtStatus, Pointer, RateLimit, Traced as _, UnicodeString,
    Utf16CStr, WriteOptions, emit, event,
};

#[wdk_etw::provider(name = "Test.Mirror", debugger)]
mod trace {
    #[map]
    pub enum Kind {
        Read = 1,
        #[name = "A write"]
        Write = 2,
    }

    #[bitmap]
    #[repr(u16)]
    pub enum Flags {
        Cached = 1,
        Paging = 1 << 4,
    }

    #[structure]
    pub struct Extent {
        #[hex]
        pub start: u64,
        pub length: u8,
        pub kind: Kind,
    }

    #[structure]
    pub struct Place<'a> {
        pub host: &'a str,
        pub bytes: &'a [u8],
        pub first: Extent,
    }

    #[event(level = Error, keyword = none)]
    pub fn failed(status: NtStatus);

    #[event(level = Warning, keyword = none)]
    pub fn text(text: &str);

    #[event(id = 1, level = Info, keyword = none)]
    pub fn integers(
        small: i8,
        size: usize,
        #[repr(u16)] short: usize,
        #[hex] hex: i16,
        #[out_type = "win:HexInt64"] shown: u64,
        truth: bool,
        bool32: Bool32,
        kind: Kind,
        other: Kind,
        flags: Flags,
        more: Flags,
        none: Flags,
    );

    #[event(level = Verbose, keyword = none)]
    pub fn pointers(
        hidden: Pointer,
        #[address] address: Pointer,
        #[out_type = "win:HexInt64"] shown: Pointer,
    );

    #[event(level = Critical, keyword = none)]
    pub fn texts(
        wide: &[u16],
        counted: UnicodeString<'_>,
        ended: Utf16CStr<'_>,
        narrow: &CStr,
        formatted: Arguments<'_>,
    );

    #[event(id = 2, level = Info, keyword = none)]
    pub fn fixed(
        #[bytes] mac: [u8; 3],
        #[text] name: [u16; 4],
        #[text] ansi: [u8; 4],
        numbers: [u32; 2],
    );

    #[event(level = Info, keyword = none)]
    pub fn many(
        bytes: &[u8],
        #[array] numbers: &[u8],
        #[array]
        #[hex]
        words: &[u16],
        extents: &[Extent],
        dump: HexDump<'_>,
    );

    #[event(level = Info, keyword = none)]
    pub fn place(place: Place<'_>);

    #[event(level = Info, keyword = none)]
    pub fn nothing();
}

/// Returns the messages that were printed, with their levels, and the number of written events.
fn printed(etw: &Turn) -> (Vec<(u32, String)>, usize) {
    let (mut lines, mut writes) = (Vec::new(), 0);
    for call in etw.calls() {
        match call {
            Call::PrintEx(component, level, text) => {
                assert_eq!(component, 77, "DPFLTR_IHVDRIVER_ID");
                lines.push((level, text.strip_suffix('\n').unwrap().to_owned()));
            }
            Call::Write(_) => writes += 1,
            other => panic!("{other:?}"),
        }
    }
    (lines, writes)
}

/// Returns the fields of the only line.
fn fields(etw: &Turn, event: &str) -> String {
    let (lines, _) = printed(etw);
    let [(_, line)] = lines.as_slice() else {
        panic!("one line is expected: {lines:?}");
    };
    assert!(!line.contains('\n'), "{line}");
    line.strip_prefix("Test.Mirror ").and_then(|line| line.strip_prefix(event)).unwrap().to_owned()
}

#[test]
fn events_are_printed_with_and_without_a_session() {
    let etw = turn();
    // Before the registration.
    emit!(trace::nothing());
    assert!(trace::nothing::is_enabled());
    assert_eq!(printed(&etw), (vec![(3, "Test.Mirror Nothing".to_owned())], 0));
    assert_eq!(trace::nothing::write(&WriteOptions::new()), Ok(()));
    assert_eq!(printed(&etw).0.len(), 1);
    drop(etw);

    let etw = registered(&trace::PROVIDER);
    etw.calls();
    let before = trace::PROVIDER.statistics().dropped;
    for writes in [0, 1] {
        let status = NtStatus::ACCESS_DENIED;
        emit!(trace::failed(status));
        assert_eq!(status.traced(trace::failed), status);
        emit!(trace::text("hello"));
        event!(trace::PROVIDER, "AdHoc", level = Verbose, keyword = none, {
            #[hex] code: u32 = 255,
            dump: HexDump<'_> = HexDump::of(&[1, 2]),
        });
        event!(
            trace::PROVIDER,
            "Runtime",
            level = runtime(Level::ERROR),
            keyword = runtime(Keyword::NONE),
            {}
        );
        assert_eq!(trace::nothing::write(&WriteOptions::new()), Ok(()));
        let (lines, found) = printed(&etw);
        let failed = "Test.Mirror Failed Status=STATUS_ACCESS_DENIED (0xC0000022)";
        let expected = [
            (0, failed),
            (0, failed),
            (1, "Test.Mirror Text Text=\"hello\""),
            (2, "Test.Mirror AdHoc Code=0xff Dump={Offset=0x0 Size=2 Bytes=[01 02]}"),
            (0, "Test.Mirror Runtime"),
            (3, "Test.Mirror Nothing"),
        ];
        assert_eq!(lines, expected.map(|(level, line)| (level, line.to_owned())));
        // A write without a check reaches ETW in any case.
        assert_eq!(found, 1 + 5 * writes);
        etw.notify(ENABLE, 5, 0, 0);
        etw.calls();
    }
    assert_eq!(trace::PROVIDER.statistics().dropped, before);
}

#[test]
fn a_session_receives_only_what_it_enables() {
    let etw = registered(&trace::PROVIDER);
    etw.notify(ENABLE, 2, 0, 0);
    etw.calls();
    emit!(trace::failed(NtStatus::NO_MEMORY));
    emit!(trace::text("not written"));
    event!(trace::PROVIDER, "Runtime", level = runtime(Level::INFO), keyword = none, {});
    let (lines, writes) = printed(&etw);
    assert_eq!((lines.len(), writes), (3, 1));
}

#[test]
fn every_form_of_field_is_printed() {
    use trace::{Extent, Flags, Kind, Place};
    let etw = registered(&trace::PROVIDER);
    etw.calls();
    emit!(trace::integers(
        -1,
        70_000,
        3,
        -1,
        255,
        true,
        Bool32(2),
        Kind::Write,
        Kind(7),
        Flags::Paging | Flags::Cached,
        Flags(0x1002),
        Flags(0),
    ));
    assert_eq!(
        fields(&etw, "Integers"),
        " Small=-1 Size=70000 Short=3 Hex=0xffff Shown=0xff Truth=true Bool32=true Kind=A write \
         Other=7 Flags=Cached|Paging More=0x1002 None=0x0"
    );
    let pointer = Pointer::new(std::ptr::without_provenance::<u8>(0x1000));
    emit!(trace::pointers(pointer, pointer, pointer));
    assert_eq!(fields(&etw, "Pointers"), " Hidden=not null Address=0x1000 Shown=not null");
    let wide: Vec<u16> = "größer\n".encode_utf16().chain([0xD800]).collect();
    emit!(trace::texts(
        &wide,
        UnicodeString::new(&wide),
        Utf16CStr::new(&[0x41, 0]),
        c"a\xFF\"b\\",
        format_args!("{}%s\r", 1)
    ));
    assert_eq!(
        fields(&etw, "Texts"),
        r#" Wide="größer\n�" Counted="größer\n�" Ended="A" Narrow="a�\"b\\" Formatted="1%s\r""#
    );
    emit!(trace::fixed(&[1, 2, 255], &[0x41, 0x42, 0, 0x43], b"ab\0\0", &[1, 2]));
    assert_eq!(fields(&etw, "Fixed"), r#" Mac=[01 02 ff] Name="AB" Ansi="ab" Numbers=[1, 2]"#);
    let extent = Extent { start: 16, length: 1, kind: Kind::Read };
    emit!(trace::many(&[0; 33], &[7; 17], &[10, 11], &[extent], HexDump::window(&[1; 4], 2, 9)));
    let (zeros, sevens) = (["00"; 32].join(" "), ["7"; 16].join(", "));
    assert_eq!(
        fields(&etw, "Many"),
        format!(
            " Bytes=[{zeros} ... of 33] Numbers=[{sevens}, ... of 17] Words=[0xa, 0xb] \
             Extents=[{{Start=0x10 Length=1 Kind=Read}}] Dump={{Offset=0x2 Size=4 Bytes=[01 01]}}"
        )
    );
    emit!(trace::place(Place { host: "a", bytes: &[1], first: extent }));
    assert_eq!(
        fields(&etw, "Place"),
        r#" Place={Host="a" Bytes=[01] First={Start=0x10 Length=1 Kind=Read}}"#
    );
}

#[test]
fn long_values_and_lines_are_cut() {
    let etw = registered(&trace::PROVIDER);
    etw.calls();
    let cut = |text: &str| {
        emit!(trace::text(text));
        fields(&etw, "Text")
    };
    let long = "é".repeat(128);
    assert_eq!(cut(&long), format!(" Text=\"{long}\""));
    assert_eq!(cut(&(long.clone() + "x")), format!(" Text=\"{long}\"..."));
    let count = Cell::new(0);
    event!(trace::PROVIDER, "Endless", level = Info, keyword = none, {
        text: Arguments<'_> = format_args!("{}", Endless(&count, "0123456789")),
    });
    assert!(fields(&etw, "Endless").ends_with("01234567\"..."));
    assert!(count.get() < 20, "{count:?}");
    // The line with its line feed, and without a NUL inside.
    let endless = Utf16CStr::new(&[0x1F; 200]);
    event!(trace::PROVIDER, "Line", level = Info, keyword = none, {
        first: Utf16CStr<'_> = endless,
        second: Utf16CStr<'_> = endless,
    });
    let line = fields(&etw, "Line");
    assert_eq!("Test.Mirror Line".len() + line.len(), 510);
    assert!(line.ends_with("..."), "{line}");
}

#[test]
fn nothing_is_printed_above_dirql_or_by_another_provider() {
    #[wdk_etw::provider(name = "Test.Silent")]
    mod silent {
        #[event(level = Info, keyword = none)]
        pub fn plain();
    }

    let etw = registered(&trace::PROVIDER);
    etw.notify(ENABLE, 5, 0, 0);
    etw.calls();
    for (irql, lines) in [(12, 1), (13, 0), (15, 0)] {
        etw.set(|etw| etw.irql = irql);
        emit!(trace::nothing());
        let (found, writes) = printed(&etw);
        assert_eq!((found.len(), writes), (lines, 1), "{irql}");
    }
    etw.set(|etw| etw.irql = 0);
    drop(etw);
    let etw = registered(&silent::PROVIDER);
    etw.calls();
    let evaluated = Cell::new(false);
    let evaluate = || {
        evaluated.set(true);
        1_u32
    };
    emit!(silent::plain());
    event!(silent::PROVIDER, "AdHoc", level = Info, keyword = none, { a: u32 = evaluate() });
    assert_eq!(printed(&etw), (vec![], 0));
    assert!(!evaluated.get());
}

#[test]
fn a_rate_limit_counts_printed_occurrences() {
    static LIMIT: RateLimit = RateLimit::every(2);
    let etw = registered(&trace::PROVIDER);
    etw.calls();
    for _ in 0..4 {
        emit!(trace::nothing(), limit = LIMIT);
        emit!(trace::nothing(), once);
        event!(trace::PROVIDER, "AdHoc", level = Info, keyword = none, limit = LIMIT, {});
    }
    assert_eq!(printed(&etw).0.len(), 4 + 1);
}
