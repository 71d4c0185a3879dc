//! Tests that a declaration's items can have any name that Rust allows, in both encodings: the
//! declaration compiles, its events are written, and decoders find the names and the values.

#![allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    reason = "names of any form are the subject of the tests"
)]

use etl_file::Catalog;
use mock_etw::{ENABLE, Written, enabled, register};
use wdk_etw::Registered;
use wdk_etw_build::declaration::manifest;

use crate::decode::FILES;

/// Declares the same items in both encodings.
macro_rules! both {
    ($($items:tt)*) => {
        #[wdk_etw::provider(name = "Test.Names.Listed", encoding = manifest)]
        pub mod listed { $($items)* }

        // Attributes that only manifests support, next to events named after types.
        #[wdk_etw::provider(name = "Test.Names.Formed", encoding = manifest)]
        pub mod formed {
            #[event(id = 1, level = Info, keyword = none)]
            pub fn u8(
                u8: u16,
                #[length(u8)] u64: &[u16],
                #[length(field = u8)] usize: &[u16],
                #[count(u32)] u16: &[u64],
            );
            #[event(id = 2, level = Info, keyword = none)]
            pub fn u16();
            #[event(id = 3, level = Info, keyword = none)]
            pub fn u64();
            #[event(id = 4, level = Info, keyword = none)]
            pub fn usize();
            #[event(id = 5, level = Info, keyword = none)]
            pub fn u32();

            // Types named after type parameters in generated code.
            #[map]
            #[repr(u8)]
            pub enum O {
                O = 1,
            }
            #[structure]
            pub struct Options {
                O: O,
            }
            #[event(id = 6, level = Info, keyword = none)]
            pub fn of_types(O: O, options: Options);
        }

        #[wdk_etw::provider(
            name = "Test.Names.Described",
            group = "2e651177-aeab-5ffc-66e2-144601de7da8",
            encoding = tracelogging,
            on_enable = None,
            on_disable = super::ignore,
        )]
        pub mod described {
            // The path of a hook is resolved in the module, and so is this function.
            const fn None(_: &::wdk_etw::Provider, _: &::wdk_etw::Notification<'_>) {}
            $($items)*
        }
    };
}

const fn ignore(_: &wdk_etw::Provider, _: &wdk_etw::Notification<'_>) {}

both! {
    // Items named after prelude items, types, crates, and local variables in generated code.
    pub const lower: u32 = 1;
    pub static moving: u32 = 2;
    pub struct Unit;
    pub struct Result;
    pub struct Ok(pub u8);
    pub enum Default {}
    pub trait Clone {}
    pub trait Copy {}
    pub mod std {}
    pub mod alloc {}
    pub const a1: u32 = 3;
    pub const b0: u32 = 3;
    pub static t0: u32 = 3;

    #[keyword]
    pub const error: Keyword = Keyword::bit(0);
    #[keyword]
    pub const group: Keyword = Keyword::bit(1);
    #[keyword]
    pub const r#const: Keyword = Keyword::bit(2);
    #[keyword]
    pub const Keyword: Keyword = Keyword::bit(3);
    #[keyword]
    pub const a0: Keyword = Keyword::bit(4);
    #[keyword]
    pub const __: Keyword = Keyword::bit(5);
    // A keyword of edition 2024.
    #[keyword]
    pub const r#gen: Keyword = Keyword::bit(6);

    #[tasks]
    enum Task {
        r#type = 1,
        Some = 2,
        none = 3,
        größe = 4,
    }

    #[opcodes]
    enum Opcode {
        r#loop = 10,
        Err = 11,
    }

    #[map]
    pub enum String {
        Self_ = 1,
        r#type = 2,
        Some = 3,
        clone = 4,
        default = 5,
        new = 6,
        r#gen = 7,
    }

    // The declaration's own types take precedence over field types.
    #[map]
    #[repr(u8)]
    pub enum Pointer {
        // In a message file, a percent sign is written twice.
        #[name = "100% off"]
        None = 1,
    }

    #[bitmap]
    #[repr(u16)]
    pub enum r#move {
        BitOr = 1,
        u16 = 2,
    }

    #[structure]
    pub struct Guid<'options> {
        r#type: u8,
        options: u16,
        str: &'options str,
        unicode: UnicodeString<'options>,
        array: &'options [u8],
        bool: bool,
    }

    #[event(id = 1, level = Info, keyword = error | group | r#const | Keyword | a0 | __ | r#gen, task = r#type,
        opcode = r#loop)]
    pub fn fields(
        options: u8,
        write: u8,
        event: u8,
        provider: u8,
        room: u8,
        r#type: u8,
        r#match: u8,
        r#async: u8,
        Some: u8,
        None: u8,
        Ok: u8,
        Err: u8,
        u32: u8,
        u8: u8,
        usize: u8,
        core: u8,
        wdk_etw: u8,
        #[name = "Provider_"]
        PROVIDER: u8,
        ID: u8,
        DESCRIPTOR: u8,
        O: u8,
        is_enabled: u8,
        register: u8,
        lower: u8,
        moving: u8,
        Unit: u8,
        error: u8,
        Keyword: u8,
        fields: u8,
        a0: u8,
        t0: u8,
        b0: u8,
        __: u8,
        größe: u8,
        数: u8,
    );

    #[event(id = 2, level = Info, keyword = error, task = Some, opcode = Err)]
    pub fn texts(
        options: &str,
        write: &[u16],
        room: UnicodeString<'_>,
        Ok: &CStr,
        str: Utf16CStr<'_>,
        a0: &[u32],
        t0: [u8; 2],
        Some: SocketAddr,
        r#in: &[u8],
        bool: bool,
    );

    #[event(id = 3, level = Info, keyword = none, task = größe)]
    pub fn types(String: String, Pointer: Pointer, r#move: r#move, guid: Guid<'_>, kind: &Guid<'_>);

    #[event(id = 4, level = Info, keyword = none)]
    pub fn Some(u32: u32, str: &str);
    #[event(id = 5, level = Info, keyword = none)]
    pub fn Option(u32: u32, str: &str);
    #[event(id = 6, level = Info, keyword = none)]
    pub fn u32(u32: u32, str: &str);
    #[event(id = 7, level = Info, keyword = none)]
    pub fn u64(u32: u32, str: &str);
    #[event(id = 8, level = Info, keyword = none)]
    pub fn usize(u32: u32, str: &str);
    #[event(id = 9, level = Info, keyword = none)]
    pub fn bool(u32: u32, str: &str);
    #[event(id = 10, level = Info, keyword = none)]
    pub fn str(u32: u32, str: &str);
    #[event(id = 11, level = Info, keyword = none)]
    pub fn u8(u32: u32, str: &str);
    #[event(id = 12, level = Info, keyword = none)]
    pub fn core(u32: u32, str: &str);
    #[event(id = 13, level = Info, keyword = none)]
    pub fn wdk_etw(u32: u32, str: &str);
    #[event(id = 14, level = Info, keyword = none)]
    pub fn write(u32: u32, str: &str);
    #[event(id = 15, level = Info, keyword = none)]
    pub fn is_enabled(u32: u32, str: &str);
    #[event(id = 16, level = Info, keyword = none)]
    pub fn DESCRIPTOR(u32: u32, str: &str);
    #[event(id = 17, level = Info, keyword = none)]
    pub fn options(u32: u32, str: &str);
    #[event(id = 18, level = Info, keyword = none)]
    pub fn r#type(u32: u32, str: &str);
    #[event(id = 19, level = Info, keyword = none)]
    pub fn O(u32: u32, str: &str);
    #[event(id = 20, level = Info, keyword = none)]
    pub fn event(u32: u32, str: &str);
    #[event(id = 21, level = Info, keyword = none)]
    pub fn provider(u32: u32, str: &str);
    #[event(id = 22, level = Info, keyword = none)]
    pub fn größe(u32: u32, str: &str);
    #[event(id = 23, level = Info, keyword = none)]
    pub fn ___(u32: u32, str: &str);
    #[event(id = 24, level = Info, keyword = none)]
    pub fn Err(u32: u32, str: &str);
}
// The end of the declarations.

/// Returns the catalog of the resources of `listed`'s events, read from this file's text.
fn catalog() -> Catalog {
    let items = include_str!("names.rs").split_once("both! {").unwrap().1;
    let items = items.split_once("}\n// The end of the").unwrap().0;
    let source = format!(
        "#[provider(name = \"Test.Names.Listed\", encoding = manifest)]\npub mod listed {{{items}}}"
    );
    let manifest = manifest(&wdk_etw_schema::parse::source(&source).unwrap(), &FILES);
    assert_eq!(wdk_etw_build::manifest::check(&manifest), []);
    crate::decode::catalog(&manifest)
}

/// Returns an event's name and fields.
fn decoded(written: &Written, catalog: &Catalog) -> (String, String) {
    let (name, fields) = crate::decode::decoded(written, listed::ID, catalog);
    (name, fields.join(", "))
}

/// Writes events that have the same fields.
macro_rules! emit_each {
    ($provider:ident: $($event:ident),*) => { $(emit!($provider::$event(1, "x"));)* };
}

/// Writes every event of one of the modules, in a scope with its own names.
macro_rules! write_events {
    ($provider:ident) => {{
        use std::net::SocketAddr;

        use wdk_etw::{UnicodeString, Utf16CStr, emit};
        use $provider::{Guid, Pointer, String, r#move};

        struct Ok;
        struct Some;
        static room: u32 = 1;
        const result: u32 = 2;

        emit!($provider::fields(
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
            25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
        ));
        let units = [0x61];
        let socket = SocketAddr::from(([10, 0, 0, 1], 80));
        emit!($provider::texts(
            "o",
            &units,
            UnicodeString::new(&units),
            c"k",
            Utf16CStr::new(&units),
            &[5, 6],
            &[7, 8],
            socket,
            &[9],
            true,
        ));
        let guid = Guid {
            r#type: 1,
            options: 2,
            str: "s",
            unicode: UnicodeString::new(&units),
            array: &[3],
            bool: false,
        };
        emit!($provider::types(
            String::r#type,
            Pointer::None,
            r#move::BitOr | r#move::u16,
            guid,
            &guid
        ));
        emit_each!($provider: Some, Option, u32, u64, usize, bool, str, u8, core, wdk_etw, write, is_enabled, DESCRIPTOR);
        emit!($provider::options(1, "x"), flags = wdk_etw::WriteFlags::NONE);
        emit!($provider::r#type(1, "x"));
        emit!($provider::O(1, "x"));
        // Calls the events as functions.
        let () = $provider::event(1, "x");
        let () = $provider::provider(1, "x");
        let () = $provider::größe(1, "x");
        let () = $provider::___(1, "x");
        let () = $provider::Err(1, "x");
    }};
}

const FIELDS: &str = "Options=1, Write=2, Event=3, Provider=4, Room=5, Type=6, Match=7, Async=8, Some=9, \
                      None=10, Ok=11, Err=12, U32=13, U8=14, Usize=15, Core=16, WdkEtw=17, \
                      Provider_=18, Id=19, Descriptor=20, O=21, IsEnabled=22, Register=23, Lower=24, \
                      Moving=25, Unit=26, Error=27, Keyword=28, Fields=29, A0=30, T0=31, B0=32, __=33, \
                      Größe=34, 数=35";

#[test]
fn any_name_compiles_runs_and_decodes() {
    let etw = enabled(&listed::PROVIDER, 255);
    write_events!(listed);
    let listed_writes = etw.writes();
    listed::unregister().unwrap();
    assert_eq!(register(&described::PROVIDER), Ok(Registered::Complete));
    etw.notify(ENABLE, 255, 0, 0);
    etw.calls();
    write_events!(described);
    let described_writes = etw.writes();
    described::unregister().unwrap();
    let catalog = catalog();
    let read = |writes: &[Written]| -> Vec<(String, String)> {
        let events = writes.iter();
        events.map(|written| decoded(written, &catalog)).collect()
    };
    let (listed, described) = (read(&listed_writes), read(&described_writes));
    assert_eq!((listed.len(), described.len()), (24, 24));
    let event = |name: &str, fields: &str| (name.to_owned(), fields.to_owned());
    assert_eq!(listed[0], event("Fields", FIELDS));
    assert_eq!(described[0], listed[0]);
    assert_eq!(
        listed[1],
        event(
            "Texts",
            "Options=\"o\", Write=\"a\", Room=\"a\", Ok=\"k\", Str=\"a\", A0Count=2, A0=[5, 6], \
             T0=[7, 8], SomeLength=16, Some=10.0.0.1:80, InLength=1, In=hex:09, Bool=true"
        )
    );
    assert_eq!(
        described[1],
        event(
            "Texts",
            "Options=\"o\", Write=\"a\", Room=\"a\", Ok=\"k\", Str=\"a\", A0=[5, 6], T0=[7, 8], \
             Some=10.0.0.1:80, In=hex:09, Bool=true"
        )
    );
    let types = |maps: &str, length: &str| {
        let guid = format!(
            "{{Type=1, Options=2, Str=\"s\", Unicode=\"a\", {length}Array=hex:03, Bool=false}}"
        );
        event("Types", &format!("{maps}, Guid={guid}, Kind={guid}"))
    };
    assert_eq!(
        listed[2],
        types("String=Type(2), Pointer=100% off(1), Move=BitOr|U16(3)", "ArrayLength=1, ")
    );
    assert_eq!(described[2], types("String=2, Pointer=1, Move=0x3", ""));
    let names = [
        "Some", "Option", "U32", "U64", "Usize", "Bool", "Str", "U8", "Core", "WdkEtw", "Write",
        "IsEnabled", "Descriptor", "Options", "Type", "O", "Event", "Provider", "Größe", "___",
        "Err",
    ];
    let others: Vec<_> = names.iter().map(|name| event(name, "U32=1, Str=\"x\"")).collect();
    assert_eq!(listed[3..], others);
    assert_eq!(described[3..], others);
}

#[test]
fn the_values_of_an_event_at_its_call_site_can_have_any_name() {
    use wdk_etw::event;

    // A static with the name of the argument in generated code.
    use described::PROVIDER as provider;

    static event: u8 = 1;
    const options: u8 = 2;

    let etw = enabled(&described::PROVIDER, 255);
    let (write, room, some) = (3_u8, 4_u8, 5_u8);
    let u32 = "x";
    event!(provider, "Now", level = Info, keyword = described::a0, {
        event: u8 = event,
        options: u8 = options,
        write: u8 = write,
        room: u8 = room,
        Some: u8 = some,
        r#type: u8 = 6,
        provider: u8 = 7,
        u32: &str = u32,
    });
    let written = etw.writes().remove(0);
    described::unregister().unwrap();
    let (name, fields) = decoded(&written, &Catalog::new());
    assert_eq!(name, "Now");
    assert_eq!(
        fields,
        "Event=1, Options=2, Write=3, Room=4, Some=5, Type=6, Provider=7, U32=\"x\""
    );
}

#[test]
fn types_can_have_the_names_of_type_parameters_in_generated_code() {
    use wdk_etw::emit;

    let etw = enabled(&formed::PROVIDER, 255);
    let options = formed::Options { O: formed::O(2) };
    emit!(formed::of_types(formed::O::O, options));
    assert_eq!(etw.writes()[0].data, [(0, vec![1, 2])]);
}
