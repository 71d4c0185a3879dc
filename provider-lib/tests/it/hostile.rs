//! Tests that generated code calls the library's functions, whatever traits are in scope.

#![expect(clippy::wrong_self_convention, reason = "the traits have the names of other methods")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use mock_etw::{Call, ENABLE, turn};
use wdk_etw::{
    HexDump, Pointer, Port, RateLimit, Registered, Sid, UnicodeString, Utf16CStr, WriteFlags, emit,
    event,
};

#[allow(dead_code, reason = "nothing is to use them")]
mod hidden {
    /// Declares traits that every type implements, with the names of methods that expansions use,
    /// by value and by reference.
    macro_rules! hostile {
    ($($name:ident)*) => {
        pub trait Values: Sized {
            $(fn $name(self) -> ! { panic!("{} of a hostile trait", stringify!($name)) })*
        }
        impl<T> Values for T {}
        pub trait References {
            $(fn $name(&self) -> ! { panic!("{} of a hostile trait", stringify!($name)) })*
        }
        impl<T: ?Sized> References for T {}
    };
}

    hostile! {
        activity address count_cut is_cut admits admits_once as_bytes as_slice check count enter enter_slow
        event_metadata except finish finish_counted finish_slow fit first fitting flags hidden
        is_enabled is_enabled_fast length limited manifest map octets register related starts
        to_be_bytes to_bytes traits tracelogging unregister units with_channel with_hooks with_opcode
        with_statistics with_task without_traits write
    }
}

#[wdk_etw::provider(name = "Test.Hostile", statistics)]
mod trace {
    #[allow(
        unused_imports,
        reason = "an expansion that uses a method of the traits is a fault"
    )]
    use super::hidden::{References, Values};

    #[map]
    #[repr(u8)]
    pub enum Kind {
        Read = 1,
    }

    #[structure]
    pub struct Place<'a> {
        pub name: &'a str,
        pub port: Port,
    }

    #[event(level = Info, keyword = none)]
    pub fn text(
        utf8: &str,
        c: &CStr,
        utf16: &[u16],
        counted: UnicodeString<'_>,
        nul: Utf16CStr<'_>,
    );

    #[event(level = Info, keyword = none)]
    pub fn addresses(
        v4: Ipv4Addr,
        v6: Ipv6Addr,
        socket: SocketAddr,
        port: Port,
        #[address] shown: Pointer,
        hidden: Pointer,
        sid: Sid<'_>,
    );

    #[event(level = Info, keyword = none)]
    pub fn others(
        kind: Kind,
        place: &Place<'_>,
        fixed: [u16; 3],
        many: &[u32],
        #[repr(u8)] small: usize,
        dump: HexDump<'_>,
        formatted: Arguments<'_>,
    );

    #[event(id = 1, level = Info, keyword = none)]
    pub fn in_manifest(name: &str, v6: Ipv6Addr, #[counted] bytes: &[u8]);
}

#[allow(unused_imports, reason = "as above")]
#[expect(clippy::too_many_arguments, reason = "the traits hide the methods that make the values")]
fn write_all(
    texts: [&str; 2],
    units: &[u16],
    counted: UnicodeString<'_>,
    nul: Utf16CStr<'_>,
    socket: SocketAddr,
    pointer: Pointer,
    sid: Sid<'_>,
    place: trace::Place<'_>,
) {
    use self::hidden::{References as _, Values as _};
    static LIMIT: RateLimit = RateLimit::every(1);
    for text in texts {
        emit!(trace::text(text, c"c", units, counted, nul));
        emit!(trace::text(text, c"c", units, counted, nul), flags = WriteFlags::NONE);
        emit!(trace::text(text, c"c", units, counted, nul), every = 1);
        emit!(trace::text(text, c"c", units, counted, nul), limit = LIMIT);
        emit!(trace::in_manifest(text, Ipv6Addr::LOCALHOST, b"bytes"));
        event!(trace::PROVIDER, "AdHoc", level = Info, keyword = none, limit = LIMIT, {
            text: &str = text,
            v4: Ipv4Addr = Ipv4Addr::LOCALHOST,
        });
    }
    emit!(
        trace::addresses(
            Ipv4Addr::LOCALHOST,
            Ipv6Addr::LOCALHOST,
            socket,
            Port(1),
            pointer,
            pointer,
            sid
        ),
        once
    );
    for small in [1, 1_000] {
        let dump = HexDump::window(b"dump", 0, 4);
        emit!(trace::others(
            trace::Kind::Read,
            &place,
            &[1, 2, 3],
            &[4],
            small,
            dump,
            format_args!("{small}")
        ));
    }
}

#[test]
fn generated_code_calls_no_method_of_a_trait_in_scope() {
    let etw = turn();
    // SAFETY: a test's code is never unmapped.
    assert_eq!(unsafe { trace::register() }, Ok(Registered::Complete));
    etw.notify(ENABLE, 5, 0, 0);
    let sid = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
    let sid = Sid::new(&sid).unwrap();
    let (units, wide) = ([0x61_u16], [0x61_u16, 0]);
    let counted = UnicodeString::new(&units);
    // `UnicodeString::new` and `Utf16CStr::new` are inherent functions.
    let nul = Utf16CStr::new(&wide);
    let large = str::repeat("a", 70_000);
    let socket = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
    let place = trace::Place { name: "p", port: Port(1) };
    let pointer = Pointer::new(&raw const place);
    etw.calls();
    write_all(["short", &large], &units, counted, nul, socket, pointer, sid, place);
    let writes = etw.calls().iter().filter(|call| matches!(call, Call::Write(_))).count();
    assert_eq!(writes, 15 + 24, "each event once, and a `FieldCut` for each field that was cut");
    assert_eq!(trace::unregister(), Ok(()));
    assert!(etw.calls().iter().any(|call| matches!(call, Call::Unregister(_))));
}
