//! The C runtime's routines for characters, numbers and arrays, and UTF-8.

use core::ffi::c_void;

use crate::call::{Routine, address, at, boolean, call, low, same};

pub fn run() {
    classes();
    changes();
    parts();
    numbers();
    memory();
    arrays();
    utf8();
    random();
}

fn classes() {
    for (name, members, others) in [
        ("isdigit", "09", "a/:"),
        ("isxdigit", "09afAF", "gG"),
        ("isspace", " \t\r", "a0"),
        ("isupper", "AZ", "az0"),
        ("islower", "az", "AZ0"),
        ("isalpha", "azAZ", "0 "),
        ("isalnum", "azAZ09", " _"),
        ("isprint", " ~a", "\n\x7F"),
        ("iswdigit", "09", "a"),
        ("iswspace", " ", "a"),
    ] {
        let routine = Routine::find(name);
        same!(members.bytes().all(|one| low(routine.call(&[u64::from(one)])) != 0), true);
        same!(others.bytes().all(|one| low(routine.call(&[u64::from(one)])) == 0), true);
    }
    same!(low(call!("isdigit", u64::from(u32::MAX))), 0);
}

fn changes() {
    let mut text = *b"aBc1\0";
    let address = at(&mut text);
    same!(call!("_strupr", address), address);
    same!(text == *b"ABC1\0", true);
    call!("_strlwr", at(&mut text));
    call!("_strrev", at(&mut text));
    same!(text == *b"1cba\0", true);
    let mut wide = [97_u16, 66, 0, 9];
    call!("_wcsupr", at(&mut wide));
    same!(wide == [65, 66, 0, 9], true);
    call!("_wcslwr", at(&mut wide));
    same!(wide == [97, 98, 0, 9], true);
    let mut buffer = *b"ab\0xxxx";
    same!(low(call!("strncat_s", at(&mut buffer), 7, c"cdef".as_ptr(), 2)), 0);
    same!(buffer == *b"abcd\0xx", true);
    same!(low(call!("strncat_s", at(&mut buffer), 7, c"efgh".as_ptr(), u64::MAX)), 80);
    same!(buffer == *b"abcdef\0", true);
    same!(low(call!("strncat_s", at(&mut buffer), 7, c"g".as_ptr(), 1)), 34);
    same!(buffer[0], 0);
}

fn parts() {
    let text = c"a,b;;c".as_ptr() as u64;
    same!(call!("strcspn", text, c";".as_ptr()), 3);
    same!(call!("strspn", text, c",ab".as_ptr()), 3);
    same!(call!("strpbrk", text, c";,".as_ptr()), text + 1);
    let mut buffer = *b";a,b;;c\0";
    let first = at(&mut buffer);
    let mut rest = 0_u64;
    let separators = c",;".as_ptr();
    same!(call!("strtok_s", first, separators, at(&mut rest)), first + 1);
    same!(call!("strtok_s", 0, separators, at(&mut rest)), first + 3);
    same!(call!("strtok_s", 0, separators, at(&mut rest)), first + 6);
    same!(call!("strtok_s", 0, separators, at(&mut rest)), 0);
    same!(buffer == *b";a\0b\0;c\0", true);
}

fn numbers() {
    same!(low(call!("atoi", c" -12x".as_ptr())), (-12_i32).cast_unsigned());
    same!(low(call!("atoi", c"x".as_ptr())), 0);
    same!(call!("_atoi64", c"12345678901".as_ptr()), 12_345_678_901_u64);
    let wide = [u16::from(b'4'), u16::from(b'2'), 0];
    same!(low(call!("_wtoi", wide.as_ptr())), 42);
    let text = c"0x1Fz".as_ptr() as u64;
    let mut end = 0_u64;
    same!(low(call!("strtoul", text, at(&mut end), 0)), 0x1F);
    same!(end, text + 4);
    same!(low(call!("strtoul", c"017".as_ptr(), 0, 0)), 15);
    same!(low(call!("strtol", c"-99999999999".as_ptr(), 0, 10)), 0x8000_0000);
    same!(low(call!("strtoul", c"99999999999".as_ptr(), 0, 10)), u32::MAX);
    let hexadecimal = [u16::from(b'f'), u16::from(b'F'), 0];
    same!(low(call!("wcstoul", hexadecimal.as_ptr(), 0, 16)), 0xFF);
    let mut buffer = [9_u8; 8];
    call!("_itoa", (-5_i32).cast_unsigned(), at(&mut buffer), 10);
    same!(buffer[..3] == *b"-5\0", true);
    call!("_itoa", (-1_i32).cast_unsigned(), at(&mut buffer), 36);
    same!(buffer == *b"1z141z3\0", true);
    same!(low(call!("_itoa_s", 1234, at(&mut buffer), 4, 10)), 34);
    same!(buffer[0], 0);
    same!(low(call!("_ui64toa_s", u64::MAX, at(&mut buffer), 8, 37)), 22);
    let mut wide = [0_u16; 20];
    same!(low(call!("_i64tow_s", i64::MIN, at(&mut wide), 20, 10)), 34);
    same!(low(call!("_ultow_s", 0xFFFF_FFFF_u32, at(&mut wide), 20, 16)), 0);
    same!(wide[..9] == [102, 102, 102, 102, 102, 102, 102, 102, 0], true);
}

fn memory() {
    let text = b"abcb";
    same!(call!("memchr", text.as_ptr(), b'b', 4), text.as_ptr() as u64 + 1);
    same!(call!("memchr", text.as_ptr(), b'c', 2), 0);
    let mut to = [1_u8; 4];
    same!(low(call!("memcpy_s", at(&mut to), 4, text.as_ptr(), 3)), 0);
    same!(to == *b"abc\x01", true);
    same!(low(call!("memmove_s", at(&mut to), 4, text.as_ptr(), 5)), 34);
    same!(to == *b"abc\x01", true);
    same!(low(call!("memcpy_s", at(&mut to), 4, text.as_ptr(), 5)), 34);
    same!(to == [0; 4], true);
    same!(low(call!("memcpy_s", at(&mut to), 4, 0, 1)), 22);
}

unsafe extern "C" fn compare(one: u64, other: u64) -> i32 {
    // SAFETY: the routines pass elements of the arrays below, or the key.
    let one = unsafe { (one as *const u32).read() };
    // SAFETY: as above.
    let other = unsafe { (other as *const u32).read() };
    i32::from(one > other) - i32::from(one < other)
}

fn arrays() {
    let compare = address(compare as *const c_void);
    let mut numbers = [0_u32; 50];
    for (number, place) in numbers.iter_mut().zip(0_u32..) {
        *number = place * 17 % 50;
    }
    call!("qsort", at(&mut numbers), 50, 4, compare);
    same!(numbers.iter().zip(0_u32..).all(|(one, expected)| *one == expected), true);
    let mut key = 33_u32;
    let first = at(&mut numbers);
    same!(call!("bsearch", at(&mut key), first, 50, 4, compare), first + 33 * 4);
    key = 50;
    same!(call!("bsearch", at(&mut key), first, 50, 4, compare), 0);
    call!("qsort", first, 0, 4, compare);
}

fn utf8() {
    let text = "aä€😀";
    let mut wide = [0_u16; 8];
    let (from, length) = (text.as_ptr() as u64, text.len() as u64);
    let mut bytes = 0_u32;
    same!(low(call!("RtlUTF8ToUnicodeN", 0, 0, at(&mut bytes), from, length)), 0);
    same!(bytes, 10);
    same!(low(call!("RtlUTF8ToUnicodeN", at(&mut wide), 16, at(&mut bytes), from, length)), 0);
    same!(wide[..5] == [0x61, 0xE4, 0x20AC, 0xD83D, 0xDE00], true);
    let small = call!("RtlUTF8ToUnicodeN", at(&mut wide), 8, at(&mut bytes), from, length);
    same!((low(small), bytes) == (0xC000_0023, 6), true);
    let bad = b"a\xFF".as_ptr();
    same!(low(call!("RtlUTF8ToUnicodeN", at(&mut wide), 16, at(&mut bytes), bad, 2)), 0x107);
    same!(wide[1], 0xFFFD);
    let mut back = [0_u8; 16];
    let wide = [0x61_u16, 0xE4, 0x20AC, 0xD83D, 0xDE00];
    let encoded = call!("RtlUnicodeToUTF8N", at(&mut back), 16, at(&mut bytes), wide.as_ptr(), 10);
    same!((low(encoded), bytes) == (0, 10), true);
    same!(back[..10] == *text.as_bytes(), true);
    same!(low(call!("RtlUnicodeToUTF8N", at(&mut back), 16, 0, wide.as_ptr(), 3)), 0xC000_00F3);
    let mut string = [0x000A_000A_u64, wide.as_ptr() as u64];
    let mut new = [0_u64; 2];
    same!(low(call!("RtlUnicodeStringToUTF8String", at(&mut new), at(&mut string), 1)), 0);
    same!(new[0] & 0xFFFF_FFFF, 0x000B_000A);
    call!("RtlFreeAnsiString", at(&mut new));
    let mut end = [0x0004_0004_u64, wide.as_ptr() as u64 + 6];
    let suffix = call!("RtlSuffixUnicodeString", at(&mut end), at(&mut string), 0);
    same!(boolean(suffix), true);
    let suffix = call!("RtlSuffixUnicodeString", at(&mut string), at(&mut end), 0);
    same!(boolean(suffix), false);
}

fn random() {
    let mut seed = 1_u32;
    let one = low(call!("RtlRandomEx", at(&mut seed)));
    let after = seed;
    let two = low(call!("RtlRandomEx", at(&mut seed)));
    same!(one <= 0x7FFF_FFFF && two <= 0x7FFF_FFFF && one != two, true);
    same!(after != 1 && after != seed, true);
    seed = 1;
    same!(low(call!("RtlRandomEx", at(&mut seed))), one);
    call!("srand", 1);
    same!(low(call!("rand")), 41);
    same!(low(call!("rand")), 18467);
}
