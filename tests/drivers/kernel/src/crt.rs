//! The C runtime's routines for characters, numbers and arrays, and UTF-8.

use wdk_sys::{PVOID, STATUS_BUFFER_TOO_SMALL};

use crate::{
    call::{NULL, at, call, same},
    routines::Comparison,
};

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
    /// A routine, and characters that are or are not in its class.
    type Class = (fn(i32) -> i32, &'static str, &'static str);
    let classes: [Class; 10] = [
        (|one| call!(isdigit, one), "09", "a/:"),
        (|one| call!(isxdigit, one), "09afAF", "gG"),
        (|one| call!(isspace, one), " \t\r", "a0"),
        (|one| call!(isupper, one), "AZ", "az0"),
        (|one| call!(islower, one), "az", "AZ0"),
        (|one| call!(isalpha, one), "azAZ", "0 "),
        (|one| call!(isalnum, one), "azAZ09", " _"),
        (|one| call!(isprint, one), " ~a", "\n\x7F"),
        (|one| call!(iswdigit, one), "09", "a"),
        (|one| call!(iswspace, one), " ", "a"),
    ];
    for (class, members, others) in classes {
        same!(members.bytes().all(|one| class(one.into()) != 0), true);
        same!(others.bytes().all(|one| class(one.into()) == 0), true);
    }
    same!(call!(isdigit, u32::MAX), 0);
}

fn changes() {
    let mut text = *b"aBc1\0";
    let address = at(&mut text);
    same!(call!(_strupr, address), address);
    same!(text == *b"ABC1\0", true);
    call!(_strlwr, &mut text);
    call!(_strrev, &mut text);
    same!(text == *b"1cba\0", true);
    let mut wide = [97_u16, 66, 0, 9];
    call!(_wcsupr, &mut wide);
    same!(wide == [65, 66, 0, 9], true);
    call!(_wcslwr, &mut wide);
    same!(wide == [97, 98, 0, 9], true);
    let mut buffer = *b"ab\0xxxx";
    same!(call!(strncat_s, &mut buffer, 7, c"cdef".as_ptr(), 2), 0);
    same!(buffer == *b"abcd\0xx", true);
    same!(call!(strncat_s, &mut buffer, 7, c"efgh".as_ptr(), u64::MAX), 80);
    same!(buffer == *b"abcdef\0", true);
    same!(call!(strncat_s, &mut buffer, 7, c"g".as_ptr(), 1), 34);
    same!(buffer[0], 0);
}

fn parts() {
    let text = c"a,b;;c".as_ptr();
    same!(call!(strcspn, text, c";".as_ptr()), 3);
    same!(call!(strspn, text, c",ab".as_ptr()), 3);
    same!(call!(strpbrk, text, c";,".as_ptr()), text.wrapping_add(1));
    let mut buffer = *b";a,b;;c\0";
    let first = at(&mut buffer);
    let mut rest = NULL;
    let separators = c",;".as_ptr();
    same!(call!(strtok_s, first, separators, &mut rest), first.wrapping_byte_add(1));
    same!(call!(strtok_s, NULL, separators, &mut rest), first.wrapping_byte_add(3));
    same!(call!(strtok_s, NULL, separators, &mut rest), first.wrapping_byte_add(6));
    same!(call!(strtok_s, NULL, separators, &mut rest), 0);
    same!(buffer == *b";a\0b\0;c\0", true);
}

fn numbers() {
    same!(call!(atoi, c" -12x".as_ptr()), (-12_i32).cast_unsigned());
    same!(call!(atoi, c"x".as_ptr()), 0);
    same!(call!(_atoi64, c"12345678901".as_ptr()), 12_345_678_901_u64);
    let wide = [u16::from(b'4'), u16::from(b'2'), 0];
    same!(call!(_wtoi, wide.as_ptr()), 42);
    let text = c"0x1Fz".as_ptr();
    let mut end = NULL;
    same!(call!(strtoul, text, &mut end, 0), 0x1F);
    same!(end, text.wrapping_add(4));
    same!(call!(strtoul, c"017".as_ptr(), NULL, 0), 15);
    same!(call!(strtol, c"-99999999999".as_ptr(), NULL, 10), 0x8000_0000_u32);
    same!(call!(strtoul, c"99999999999".as_ptr(), NULL, 10), u32::MAX);
    let hexadecimal = [u16::from(b'f'), u16::from(b'F'), 0];
    same!(call!(wcstoul, hexadecimal.as_ptr(), NULL, 16), 0xFF);
    let mut buffer = [9_u8; 8];
    call!(_itoa, (-5_i32).cast_unsigned(), &mut buffer, 10);
    same!(buffer[..3] == *b"-5\0", true);
    call!(_itoa, (-1_i32).cast_unsigned(), &mut buffer, 36);
    same!(buffer == *b"1z141z3\0", true);
    same!(call!(_itoa_s, 1234, &mut buffer, 4, 10), 34);
    same!(buffer[0], 0);
    same!(call!(_ui64toa_s, u64::MAX, &mut buffer, 8, 37), 22);
    let mut wide = [0_u16; 20];
    same!(call!(_i64tow_s, i64::MIN, &mut wide, 20, 10), 34);
    same!(call!(_ultow_s, 0xFFFF_FFFF_u32, &mut wide, 20, 16), 0);
    same!(wide[..9] == [102, 102, 102, 102, 102, 102, 102, 102, 0], true);
}

fn memory() {
    let text = b"abcb";
    same!(call!(memchr, text.as_ptr(), b'b', 4), text.as_ptr().wrapping_add(1));
    same!(call!(memchr, text.as_ptr(), b'c', 2), 0);
    let mut to = [1_u8; 4];
    same!(call!(memcpy_s, &mut to, 4, text.as_ptr(), 3), 0);
    same!(to == *b"abc\x01", true);
    same!(call!(memmove_s, &mut to, 4, text.as_ptr(), 5), 34);
    same!(to == *b"abc\x01", true);
    same!(call!(memcpy_s, &mut to, 4, text.as_ptr(), 5), 34);
    same!(to == [0; 4], true);
    same!(call!(memcpy_s, &mut to, 4, NULL, 1), 22);
}

unsafe extern "C" fn compare(one: PVOID, other: PVOID) -> i32 {
    // SAFETY: the routines pass elements of the arrays below, or the key.
    let one = unsafe { one.cast::<u32>().read() };
    // SAFETY: as above.
    let other = unsafe { other.cast::<u32>().read() };
    i32::from(one > other) - i32::from(one < other)
}

fn arrays() {
    let compare: Comparison = Some(compare);
    let mut numbers = [0_u32; 50];
    for (number, place) in numbers.iter_mut().zip(0_u32..) {
        *number = place * 17 % 50;
    }
    call!(qsort, &mut numbers, 50, 4, compare);
    same!(numbers.iter().zip(0_u32..).all(|(one, expected)| *one == expected), true);
    let mut key = 33_u32;
    let first = at(&mut numbers);
    same!(call!(bsearch, &mut key, first, 50, 4, compare), first.wrapping_byte_add(33 * 4));
    key = 50;
    same!(call!(bsearch, &mut key, first, 50, 4, compare), 0);
    call!(qsort, first, 0, 4, compare);
}

fn utf8() {
    let text = "aä€😀";
    let mut wide = [0_u16; 8];
    let (from, length) = (text.as_ptr(), text.len());
    let mut bytes = 0_u32;
    same!(call!(RtlUTF8ToUnicodeN, NULL, 0, &mut bytes, from, length), 0);
    same!(bytes, 10);
    same!(call!(RtlUTF8ToUnicodeN, &mut wide, 16, &mut bytes, from, length), 0);
    same!(wide[..5] == [0x61, 0xE4, 0x20AC, 0xD83D, 0xDE00], true);
    let small = call!(RtlUTF8ToUnicodeN, &mut wide, 8, &mut bytes, from, length);
    // The end of the buffer divides a surrogate pair.
    same!((small, bytes) == (STATUS_BUFFER_TOO_SMALL, 8), true);
    let bad = b"a\xFF".as_ptr();
    same!(call!(RtlUTF8ToUnicodeN, &mut wide, 16, &mut bytes, bad, 2), 0x107);
    same!(wide[1], 0xFFFD);
    let mut back = [0_u8; 16];
    let wide = [0x61_u16, 0xE4, 0x20AC, 0xD83D, 0xDE00];
    let encoded = call!(RtlUnicodeToUTF8N, &mut back, 16, &mut bytes, wide.as_ptr(), 10);
    same!((encoded, bytes) == (0, 10), true);
    same!(back[..10] == *text.as_bytes(), true);
    same!(call!(RtlUnicodeToUTF8N, &mut back, 16, NULL, wide.as_ptr(), 3), 0xC000_00F3_u32);
    let mut string = [0x000A_000A_u64, wide.as_ptr() as u64];
    let mut new = [0_u64; 2];
    same!(call!(RtlUnicodeStringToUTF8String, &mut new, &mut string, 1), 0);
    same!(new[0] & 0xFFFF_FFFF, 0x000B_000A);
    call!(RtlFreeAnsiString, &mut new);
    let mut end = [0x0004_0004_u64, wide.as_ptr() as u64 + 6];
    same!(call!(RtlSuffixUnicodeString, &mut end, &mut string, 0), true);
    same!(call!(RtlSuffixUnicodeString, &mut string, &mut end, 0), false);
}

fn random() {
    let mut seed = 1_u32;
    let one = call!(RtlRandomEx, &mut seed);
    let after = seed;
    let two = call!(RtlRandomEx, &mut seed);
    same!(one <= 0x7FFF_FFFF && two <= 0x7FFF_FFFF && one != two, true);
    same!(after != 1 && after != seed, true);
    seed = 1;
    same!(call!(RtlRandomEx, &mut seed), one);
    call!(srand, 1);
    same!(call!(rand), 41);
    same!(call!(rand), 18467);
}
