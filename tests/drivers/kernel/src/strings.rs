//! The C runtime's routines, `DbgPrint`, and counted strings.

use etw_driver_support::utf16;
use wdk_sys::{STATUS_BUFFER_OVERFLOW, STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_PARAMETER, va_list};

use crate::call::{NULL, at, call, same};

/// Checks that a buffer starts with a string.
macro_rules! starts {
    ($buffer:expr, $text:expr) => {
        same!($buffer.starts_with($text), true)
    };
}

/// Returns a `va_list` for these slots.
const fn list(slots: &[u64]) -> va_list {
    slots.as_ptr().cast_mut().cast()
}

pub fn run() {
    lengths_and_comparisons();
    copies();
    compression();
    addresses();
    printing();
    let wide_text = utf16(b"wide\0");
    let mut counted = [0x000A_0006, wide_text.as_ptr() as u64];
    // Two values are in registers, and the other values are on the stack.
    call!(DbgPrint, c"%s=%d %I64x %p %ws %wZ %c%C %5u|%-5x|%05d %%\n".as_ptr(); c"name".as_ptr(), -5_i64, 0x1_2345_6789_u64, 0x1234_u64, wide_text.as_ptr(), at(&mut counted), i32::from(b'a'), i32::from(b'b'), 7, 0xAB, -42_i64);
    call!(DbgPrint, c"%lld %hx %d\n".as_ptr(); -1_i64, 0x1_2345, 3);
    call!(DbgPrintEx, 0, 0, c"%d %y %s\n".as_ptr(); 1, c"two".as_ptr());
    let slots = [c"list".as_ptr() as u64, 9];
    call!(vDbgPrintEx, 0, 0, c"%s %d\n".as_ptr(), list(&slots));
    call!(vDbgPrintExWithPrefix, c"prefix: ".as_ptr(), 0, 0, c"%s %d\n".as_ptr(), list(&slots));
}

/// Text forms of network addresses.
fn addresses() {
    let (mut text, mut end) = ([0_u8; 66], NULL);
    let buffer = at(&mut text);
    let (mut v4, mut v6) = ([192_u8, 0, 2, 7], [0_u8; 16]);
    v6[15] = 1;
    let end_of = call!(RtlIpv4AddressToStringA, &mut v4, buffer);
    same!((end_of as usize - buffer as usize, &text[..10] == b"192.0.2.7\0") == (9, true), true);
    let source = c"10.1.2.3!".as_ptr();
    same!(call!(RtlIpv4StringToAddressA, source, 1, &mut end, &mut v4), 0);
    same!((v4 == [10, 1, 2, 3], end as usize - source as usize) == (true, 8), true);
    let status = call!(RtlIpv4StringToAddressA, c"1.2".as_ptr(), 1, &mut end, &mut v4);
    same!(status, 0xC000_000D_u32);
    let port = 80_u16.swap_bytes();
    let mut length = 12_u32;
    let status = call!(RtlIpv4AddressToStringExA, &mut v4, port, buffer, &mut length);
    same!((status, &text[..12] == b"10.1.2.3:80\0") == (0, true), true);
    length = 10;
    let status = call!(RtlIpv6AddressToStringExA, &mut v6, 4, port, buffer, &mut length);
    same!((status, length) == (0xC000_000D_u32.cast_signed(), 11), true);
    let status = call!(RtlIpv6AddressToStringExA, &mut v6, 4, port, buffer, &mut length);
    same!((status, &text[..11] == b"[::1%4]:80\0") == (0, true), true);
    let (mut scope, mut found) = (0_u32, 0_u16);
    let wide = utf16(b"[fe80::2%7]:443\0");
    let from = wide.as_ptr();
    let status = call!(RtlIpv6StringToAddressExW, from, &mut v6, &mut scope, &mut found);
    same!((status, scope, found.swap_bytes()) == (0, 7, 443), true);
    same!((v6[0], v6[15]) == (0xFE, 2), true);
}

/// Compression in the format LZNT1.
fn compression() {
    const LZNT1: u32 = 2;
    /// The example of [MS-XCA], and its compressed form.
    const TEXT: &[u8; 142] =
        b"F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E \
        F# D E F# G F# D E F# G F# E D E A F# F# G A A G F# E D D E F# E D D\0";
    const COMPRESSED: [u8; 59] = [
        0x38, 0xB0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xA2, 0x47,
        0x01, 0xA0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xC0, 0x45, 0x20,
        0x05, 0x24, 0x13, 0x88, 0x05, 0xB4, 0x02, 0x4A, 0x44, 0xEF, 0x03, 0x58, 0x02, 0x8C, 0x09,
        0x16, 0x01, 0x48, 0x45, 0x00, 0xBE, 0x00, 0x9E, 0x00, 0x04, 0x01, 0x18, 0x90, 0x00,
    ];
    let (mut packed, mut text, mut size) = (COMPRESSED, [0_u8; 160], 0_u32);
    let length = packed.len();
    same!(call!(RtlDecompressBuffer, LZNT1, &mut text, 160, &mut packed, length, &mut size), 0);
    same!((size, text[..142] == *TEXT) == (142, true), true);
    // Bytes that do not fit are left out, and a fragment starts at an offset.
    same!(call!(RtlDecompressBuffer, LZNT1, &mut text, 5, &mut packed, length, &mut size), 0);
    same!(size, 5);
    let mut work = [0_u8; 8];
    let status = call!(
        RtlDecompressFragment, LZNT1, &mut text, 4, &mut packed, length, 6, &mut size, &mut work
    );
    same!((status, size, text[..4] == *b"G A ") == (0, 4, true), true);
    let mut chunks = [1_u8, 0x30, 5, 6, 0, 0x30, 7];
    let status =
        call!(RtlDecompressFragment, LZNT1, &mut text, 1, &mut chunks, 7, 2, &mut size, &mut work);
    same!((status, size, text[0]) == (0, 1, 7), true);
    let mut wrong = [0x38_u8, 0xB0, 0x88];
    let status = call!(RtlDecompressBuffer, LZNT1, &mut text, 160, &mut wrong, 3, &mut size);
    same!(status, 0xC000_0242_u32);
    let mut original = *TEXT;
    let mut to = [0_u8; 80];
    let mut compress = |format: u32, from: &mut [u8; 142], room: u32, size: &mut u32| {
        let from = from.as_mut_ptr();
        call!(RtlCompressBuffer, format, from, 142, &mut to, room, 4096, size, &mut work)
    };
    same!(compress(LZNT1, &mut original, 20, &mut size), 0xC000_0023_u32);
    same!(compress(0, &mut original, 80, &mut size), 0xC000_000D_u32);
    same!(compress(9, &mut original, 80, &mut size), 0xC000_025F_u32);
    same!(compress(LZNT1 | 0x300, &mut original, 80, &mut size), 0xC000_00BB_u32);
    same!(compress(LZNT1, &mut [0; 142], 80, &mut size), 0x117);
    same!(compress(LZNT1 | 0x100, &mut original, 80, &mut size), 0);
    let packed = size;
    text.fill(0);
    same!(call!(RtlDecompressBuffer, LZNT1, &mut text, 160, &mut to, packed, &mut size), 0);
    same!((size, text[..142] == *TEXT) == (142, true), true);
    let mut sizes = [0_u32; 2];
    let [buffer, fragment] = &mut sizes;
    same!(call!(RtlGetCompressionWorkSpaceSize, LZNT1, buffer, fragment), 0);
}

fn lengths_and_comparisons() {
    let (abc, other, capitals) = (c"abc".as_ptr(), c"abd".as_ptr(), c"ABC".as_ptr());
    let (wide_first, wide_other) = (utf16(b"abc\0"), utf16(b"abd\0"));
    let wide_capitals = utf16(b"ABC\0");
    let (w, x, y) = (wide_first.as_ptr(), wide_other.as_ptr(), wide_capitals.as_ptr());
    same!(call!(strlen, abc), 3);
    same!(call!(wcslen, w), 3);
    same!(call!(strnlen, abc, 2), 2);
    same!(call!(wcsnlen, w, 9), 3);
    same!(call!(strcmp, abc, abc), 0);
    same!(call!(strcmp, abc, other) < 0, true);
    same!(call!(strcmp, other, abc) > 0, true);
    same!(call!(strncmp, abc, other, 2), 0);
    same!(call!(_stricmp, abc, capitals), 0);
    same!(call!(strcmp, abc, capitals) == 0, false);
    same!(call!(_strnicmp, other, capitals, 2), 0);
    same!(call!(wcscmp, w, w), 0);
    same!(call!(wcscmp, w, x) < 0, true);
    same!(call!(wcsncmp, w, x, 2), 0);
    same!(call!(_wcsicmp, w, y), 0);
    same!(call!(_wcsnicmp, x, y, 2), 0);
    same!(call!(_wcsnicmp, x, y, 3) == 0, false);
    let text = c"a-b-c".as_ptr();
    same!(call!(strchr, text, b'-').addr() - text.addr(), 1);
    same!(call!(strrchr, text, b'-').addr() - text.addr(), 3);
    same!(call!(strchr, text, 0).addr() - text.addr(), 5);
    same!(call!(strchr, text, b'x'), 0);
    same!(call!(strstr, text, c"b-".as_ptr()).addr() - text.addr(), 2);
    same!(call!(wcschr, w, b'c').addr() - w.addr(), 4);
    same!(call!(wcsrchr, w, b'x'), 0);
    same!(call!(wcsstr, w, x), 0);
    same!(call!(toupper, b'q'), b'Q');
    same!(call!(towlower, b'Q'), b'q');
}

fn copies() {
    let mut buffer = [0xEE_u8; 8];
    let to = buffer.as_mut_ptr();
    same!(call!(strcpy, to, c"one".as_ptr()), to);
    starts!(buffer, b"one\0");
    call!(strcat, to, c"two".as_ptr());
    starts!(buffer, b"onetwo\0");
    call!(strncpy, to, c"ab".as_ptr(), 5);
    starts!(buffer, b"ab\0\0\0o\0".get(..5).unwrap_or_default());
    same!(call!(strcpy_s, to, 4, c"abc".as_ptr()), 0);
    same!(call!(strcpy_s, to, 3, c"abc".as_ptr()), 34);
    same!(buffer[0], 0);
    same!(call!(strncpy_s, to, 8, c"abcdef".as_ptr(), 2), 0);
    starts!(buffer, b"ab\0");
    same!(call!(strncpy_s, to, 4, c"abcdef".as_ptr(), u64::MAX), 80);
    starts!(buffer, b"abc\0");
    same!(call!(strncpy_s, to, 4, c"abcdef".as_ptr(), 5), 34);
    same!(buffer[0], 0);
    same!(call!(strcat_s, to, 8, c"xy".as_ptr()), 0);
    starts!(buffer, b"xy\0");
    let source = utf16(b"wide\0");
    let mut units = [0xEEEE_u16; 8];
    let to = units.as_mut_ptr();
    same!(call!(wcsncpy_s, to, 8, source.as_ptr(), 3), 0);
    starts!(units, &utf16(b"wid\0"));
    call!(wcscat, to, source.as_ptr());
    starts!(units, &utf16(b"widwide\0"));
    same!(call!(wcscpy_s, to, 4, source.as_ptr()), 34);
    same!(units[0], 0);
}

fn printing() {
    let mut buffer = [0xEE_u8; 16];
    let to = buffer.as_mut_ptr();
    same!(call!(_snprintf, to, 16, c"%d-%s".as_ptr(); 42, c"x".as_ptr()), 4);
    starts!(buffer, b"42-x\0");
    // A string that is as long as the buffer is written completely, without a terminator.
    buffer[4] = 0xEE;
    same!(call!(_snprintf, to, 4, c"%04d".as_ptr(); 42), 4);
    same!(buffer[4], 0xEE);
    same!(call!(_snprintf, to, 3, c"%04d".as_ptr(); 42), u32::MAX);
    let slots = [1, c"list".as_ptr() as u64, 2];
    same!(call!(_vsnprintf, to, 16, c"%d%s%d".as_ptr(), list(&slots)), 6);
    starts!(buffer, b"1list2\0");
    same!(call!(sprintf_s, to, 3, c"%d".as_ptr(); 123), u32::MAX);
    same!(buffer[0], 0);
    same!(call!(sprintf_s, to, 4, c"%d".as_ptr(); 123), 3);
    same!(call!(_snprintf_s, to, 4, u64::MAX, c"%s".as_ptr(); c"long text".as_ptr()), u32::MAX);
    starts!(buffer, b"lon\0");
    let mut units = [0xEEEE_u16; 16];
    let to = units.as_mut_ptr();
    let format = utf16(b"%s %S %d %wZ\0");
    let name = utf16(b"wide\0");
    let mut counted = [0x0004_0004, name.as_ptr() as u64];
    let slots = [name.as_ptr() as u64, c"n".as_ptr() as u64, 5, at(&mut counted) as u64];
    same!(call!(_vsnwprintf, to, 16, format.as_ptr(), list(&slots)), 11);
    starts!(units, &utf16(b"wide n 5 wi\0"));
    let format = utf16(b"%hs|%3u|%#x\0");
    same!(call!(swprintf_s, to, 16, format.as_ptr(); c"n".as_ptr(), 7, 255), 10);
    starts!(units, &utf16(b"n|  7|0xff\0"));
    same!(call!(_snwprintf, to, 3, format.as_ptr(); c"n".as_ptr(), 7, 255), u32::MAX);
    starts!(units, &utf16(b"n| "));
}

/// A counted string: its length and maximum length in bytes, and its buffer.
fn counted(text: &[u16], room: usize) -> [u64; 2] {
    let length = 2 * (text.len() as u64 - 1);
    [length | (2 * room as u64) << 16, text.as_ptr() as u64]
}

pub fn strings() {
    let text = utf16(b"Text\0");
    let mut string = [0_u64; 2];
    call!(RtlInitUnicodeString, &mut string, text.as_ptr());
    same!(string[0] & 0xFFFF_FFFF, 0x000A_0008);
    same!(string[1], text.as_ptr());
    call!(RtlInitUnicodeString, &mut string, NULL);
    same!(string[0] & 0xFFFF_FFFF, 0);
    call!(RtlInitAnsiString, &mut string, c"ansi!".as_ptr());
    same!(string[0] & 0xFFFF_FFFF, 0x0006_0005);
    same!(call!(RtlInitUnicodeStringEx, &mut string, text.as_ptr()), 0);

    let mut buffer = [0_u16; 8];
    let mut to = [16_u64 << 16, at(&mut buffer) as u64];
    same!(call!(RtlAppendUnicodeToString, &mut to, text.as_ptr()), 0);
    same!(call!(RtlAppendUnicodeStringToString, &mut to, &mut string), 0);
    same!(to[0] & 0xFFFF, 16);
    starts!(buffer, &utf16(b"TextText"));
    same!(call!(RtlAppendUnicodeToString, &mut to, text.as_ptr()), STATUS_BUFFER_TOO_SMALL);
    same!(to[0] & 0xFFFF, 16);

    let (small, large) = (utf16(b"abc\0"), utf16(b"ABD\0"));
    let (mut one, mut other) = (counted(&small, 4), counted(&large, 4));
    same!(call!(RtlCompareUnicodeString, &mut one, &mut other, 1), u32::MAX);
    same!(call!(RtlCompareUnicodeString, &mut one, &mut other, 0), 32);
    same!(call!(RtlEqualUnicodeString, &mut one, &mut other, 1), false);
    other[0] -= 2;
    same!(call!(RtlPrefixUnicodeString, &mut other, &mut one, 1), true);
    same!(call!(RtlPrefixUnicodeString, &mut other, &mut one, 0), false);
    let mut hash = 0_u32;
    same!(call!(RtlHashUnicodeString, &mut one, 0, 0, &mut hash), 0);
    same!(hash, ((97_u32 * 65599) + 98).wrapping_mul(65599).wrapping_add(99));
    same!(call!(RtlHashUnicodeString, &mut one, 0, 7, &mut hash), STATUS_INVALID_PARAMETER);

    let mut new = [0_u64; 2];
    same!(call!(RtlUpcaseUnicodeString, &mut new, &mut one, 1), 0);
    // SAFETY: the routine allocated a buffer of three units.
    same!(unsafe { *(new[1] as *const u16) }, b'A');
    call!(RtlFreeUnicodeString, &mut new);
    same!(new[1], 0);
    same!(call!(RtlDuplicateUnicodeString, 1, &mut one, &mut new), 0);
    same!(new[0] & 0xFFFF_FFFF, 0x0008_0006);
    call!(RtlFreeUnicodeString, &mut new);
    same!(call!(RtlDuplicateUnicodeString, 2, &mut one, &mut new), STATUS_INVALID_PARAMETER);

    let mut ansi = [0_u64; 2];
    same!(call!(RtlUnicodeStringToAnsiString, &mut ansi, &mut one, 1), 0);
    same!(ansi[0] & 0xFFFF_FFFF, 0x0004_0003);
    same!(call!(RtlAnsiStringToUnicodeString, &mut new, &mut ansi, 1), 0);
    same!(call!(RtlEqualUnicodeString, &mut new, &mut one, 0), true);
    call!(RtlFreeUnicodeString, &mut new);
    let mut tiny = [4_u64 << 16, at(&mut buffer) as u64];
    same!(call!(RtlAnsiStringToUnicodeString, &mut tiny, &mut ansi, 0), STATUS_BUFFER_OVERFLOW);
    call!(RtlFreeAnsiString, &mut ansi);

    guids_and_numbers();
}

fn guids_and_numbers() {
    let mut guid = [0x1234_5678_u32, 0xABCD_0009, 0x0403_0201, 0x0807_0605];
    let mut text = [0_u64; 2];
    same!(call!(RtlStringFromGUID, &mut guid, &mut text), 0);
    same!(text[0] & 0xFFFF_FFFF, 0x004E_004C);
    let mut read = [0_u32; 4];
    same!(call!(RtlGUIDFromString, &mut text, &mut read), 0);
    same!(read == guid, true);
    text[0] -= 2;
    same!(call!(RtlGUIDFromString, &mut text, &mut read), STATUS_INVALID_PARAMETER);
    call!(RtlFreeUnicodeString, &mut text);

    let mut units = [0_u16; 8];
    let mut number = [16_u64 << 16, at(&mut units) as u64];
    same!(call!(RtlIntegerToUnicodeString, 0xAB, 16, &mut number), 0);
    starts!(units, &utf16(b"AB"));
    let mut value = 0_u32;
    same!(call!(RtlUnicodeStringToInteger, &mut number, 16, &mut value), 0);
    same!(value, 0xAB);
    same!(call!(RtlIntegerToUnicodeString, 5, 7, &mut number), STATUS_INVALID_PARAMETER);
}
