//! A driver that traces with the published crate `tracelogging` in kernel mode.
//!
//! Tests of the stand-in kernel check that a third-party provider causes no diagnostics, and that
//! each of the crate's field types is decoded.

#![no_std]

use etw_driver_support::Service;
use tracelogging::{Guid, define_provider, write_event};
use wdk_sys::{DRIVER_OBJECT, NTSTATUS, STATUS_SUCCESS};

define_provider!(
    PROVIDER,
    "Contoso.TraceLogging",
    group_id("5ecb0bac-b930-47f5-a8a4-e8253529edb7")
);

const ACTIVITY: Guid = Guid::from_u128(&0x1111_1111_2222_3333_4444_5555_5555_5555);
const RELATED: Guid = Guid::from_u128(&0x6666_6666_7777_8888_9999_aaaa_aaaa_aaaa);

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, _service: Service<'_>) -> NTSTATUS {
    driver.DriverUnload = Some(unload);
    // SAFETY: `unload` unregisters the provider before the image is unmapped, and the entry point
    // cannot fail after this.
    let _status = unsafe { PROVIDER.register() };
    numbers();
    numbers_with_meanings();
    texts();
    bytes();
    lists();
    structures();
    properties();
    STATUS_SUCCESS
}

/// `DriverUnload`.
unsafe extern "C" fn unload(_driver: *mut DRIVER_OBJECT) {
    write_event!(PROVIDER, "Unloaded");
    let _status = PROVIDER.unregister();
}

fn numbers() {
    write_event!(
        PROVIDER,
        "Numbers",
        level(Informational),
        i8("i8", &-8),
        u8("u8", &200),
        u8_hex("u8_hex", &0xAB),
        i16("i16", &-1600),
        u16("u16", &60_000),
        u16_hex("u16_hex", &0xABCD),
        i32("i32", &-32),
        u32("u32", &4_000_000_000),
        u32_hex("u32_hex", &0xABCD_EF01),
        i64("i64", &-64),
        u64("u64", &0xFFFF_FFFF_FFFF_FFFF),
        i64_hex("i64_hex", &-1),
        isize("isize", &-3),
        usize("usize", &3),
        usize_hex("usize_hex", &0x1234),
        f32("f32", &1.5),
        f64("f64", &-0.25),
        bool8("bool8", &true),
        bool32("bool32", &1),
    );
}

fn numbers_with_meanings() {
    write_event!(
        PROVIDER,
        "Meanings",
        char8_cp1252("char8", &b'A'),
        char16("char16", &0x263A),
        pointer("pointer", &0x1000),
        codepointer("codepointer", &0x2000),
        pid("pid", &4),
        tid("tid", &8),
        port("port", &0x5000),
        errno("errno", &2),
        hresult("hresult", &-2_147_024_891),
        win_error("win_error", &5),
        win_ntstatus("win_ntstatus", &-1_073_741_811),
    );
}

fn texts() {
    write_event!(
        PROVIDER,
        "Texts",
        str8("str8", "sm\u{f8}rrebr\u{f8}d"),
        str8_cp1252("str8_cp1252", b"caf\xe9"),
        str8_json("str8_json", "{\"a\":1}"),
        str8_xml("str8_xml", "<a/>"),
        str16("str16", &[0x77, 0x69, 0x64, 0x65]),
        cstr8("cstr8", "until\0here"),
        cstr16("cstr16", &[0x75, 0x70, 0, 0x78]),
        str8("empty", ""),
        cstr16("empty16", &[]),
    );
}

fn bytes() {
    write_event!(
        PROVIDER,
        "Bytes",
        binary("binary", &[1, 2, 0xFE]),
        binaryc("binaryc", &[3, 4]),
        guid("guid", &ACTIVITY),
        ipv4("ipv4", &[192, 0, 2, 1]),
        ipv6("ipv6", &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]),
        socketaddress("socketaddress", &[2, 0, 0, 80, 198, 51, 100, 7, 0, 0, 0, 0, 0, 0, 0, 0]),
        win_sid("win_sid", &[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0]),
        win_filetime("win_filetime", &134_117_966_450_000_001),
        win_systemtime_utc("win_systemtime_utc", &[2026, 1, 5, 2, 3, 4, 5, 6]),
        time32("time32", &1_767_323_045),
    );
}

fn lists() {
    write_event!(
        PROVIDER,
        "Lists",
        u16_slice("none", &[]),
        u16_slice("one", &[7]),
        i64_slice("two", &[-1, 1]),
        bool8_slice("flags", &[true, false]),
        guid_slice("guids", &[ACTIVITY, RELATED]),
        u8("last", &1),
    );
}

fn structures() {
    write_event!(
        PROVIDER,
        "Structures",
        u8("before", &1),
        struct("outer", tag(0xFE0_0000), {
            u8("a", &2),
            struct("inner", {
                str8("text", "in"),
            }),
            u8_slice("list", &[3, 4]),
        }),
        u8("after", &5),
    );
}

fn properties() {
    write_event!(
        PROVIDER,
        "Properties",
        id_version(42, 3),
        level(Error),
        keyword(0x10),
        opcode(Start),
        task(7),
        tag(0xFED_CBAF),
        activity_id(&ACTIVITY),
        related_id(&RELATED),
        u32("tagged", &9, tag(0xFED_CBAF)),
    );
}
