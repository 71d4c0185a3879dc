//! The file systems' library: names, and the maps of files' blocks.

use wdk_sys::{STRING, UNICODE_STRING};

use crate::call::{NULL, at, call, same};

pub fn run() {
    bytes();
    wide();
    paths();
    mappings();
}

/// Returns the string with these bytes.
const fn string(text: &[u8]) -> STRING {
    let length = text.len() as u16;
    STRING { Length: length, MaximumLength: length, Buffer: text.as_ptr().cast_mut().cast() }
}

const fn unicode(text: &[u16]) -> UNICODE_STRING {
    let length = size_of_val(text) as u16;
    UNICODE_STRING { Length: length, MaximumLength: length, Buffer: text.as_ptr().cast_mut() }
}

fn bytes() {
    let (mut first, mut rest) = (STRING::default(), STRING::default());
    let path = br"\A\BC\D";
    call!(FsRtlDissectDbcs, string(path), &mut first, &mut rest);
    same!((first.Length, first.Buffer as u64 - path.as_ptr() as u64) == (1, 1), true);
    same!((rest.Length, rest.Buffer as u64 - path.as_ptr() as u64) == (4, 3), true);
    call!(FsRtlDissectDbcs, string(b"ABC"), &mut first, &mut rest);
    same!((first.Length, rest.Length, rest.Buffer as u64) == (3, 0, 0), true);
    same!(call!(FsRtlDoesDbcsContainWildCards, &mut string(b"A<B")), true);
    same!(call!(FsRtlDoesDbcsContainWildCards, &mut string(b"A.B")), false);
    same!(call!(FsRtlIsDbcsInExpression, &mut string(b"A*.T?T"), &mut string(b"ABC.TXT")), true);
    same!(call!(FsRtlIsDbcsInExpression, &mut string(b"A*.T?T"), &mut string(b"ABC.TX")), false);
    same!(call!(FsRtlIsFatDbcsLegal, string(b"ABCDEFGH.TXT"), 0, 0, 0), true);
    same!(call!(FsRtlIsFatDbcsLegal, string(b"ABCDEFGHI.TXT"), 0, 0, 0), false);
    same!(call!(FsRtlIsFatDbcsLegal, string(br"\A\*.B"), 1, 1, 1), true);
    same!(call!(FsRtlIsHpfsDbcsLegal, string(b"a longer name.with.dots"), 0, 0, 0), true);
    same!(call!(FsRtlIsHpfsDbcsLegal, string(b"a:b"), 0, 0, 0), false);
}

fn wide() {
    const PATTERN: [u16; 3] = [b'*' as u16, b'\\' as u16, b'a' as u16];
    const PATH: [u16; 3] = [b'a' as u16, b'\\' as u16, b'*' as u16];
    let (mut first, mut rest) = (UNICODE_STRING::default(), UNICODE_STRING::default());
    call!(FsRtlDissectName, unicode(&PATH), &mut first, &mut rest);
    same!((first.Length, rest.Length) == (2, 2), true);
    same!(call!(FsRtlDoesNameContainWildCards, &mut first), false);
    same!(call!(FsRtlDoesNameContainWildCards, &mut rest), true);
    same!(call!(FsRtlDoesNameContainWildCards, &mut unicode(&PATTERN)), false);
    let mut upper = unicode(&[b'A' as u16]);
    same!(call!(FsRtlAreNamesEqual, &mut first, &mut upper, 0, NULL), false);
    same!(call!(FsRtlAreNamesEqual, &mut first, &mut upper, 1, NULL), true);
}

fn paths() {
    let mut path: [u16; 6] = [92, 97, 92, 46, 46, 92];
    let mut length = 0_u16;
    same!(call!(FsRtlRemoveDotsFromPath, &mut path, 10, &mut length), 0);
    same!((length, path[0]) == (2, 92), true);
    let mut above: [u16; 3] = [92, 46, 46];
    same!(call!(FsRtlRemoveDotsFromPath, &mut above, 6, &mut length), 0xC000_0278_u32);
    let (mut small, mut unknown) = (0xE4_u16, 0x3042_u16);
    same!(call!(RtlIsValidOemCharacter, &mut small), true);
    same!(small, 0xC4);
    same!(call!(RtlIsValidOemCharacter, &mut unknown), false);
}

fn mappings() {
    let mut block = [0xEE_u64; 4];
    let map = at(&mut block);
    let (mut vbn, mut lbn, mut count, mut index) = (0_i64, 0_i64, 0_i64, 0_u32);
    call!(FsRtlInitializeLargeMcb, map, 1);
    same!(call!(FsRtlLookupLastLargeMcbEntry, map, &mut vbn, &mut lbn), false);
    same!(call!(FsRtlAddLargeMcbEntry, map, 0, 100, 4), true);
    same!(call!(FsRtlAddLargeMcbEntry, map, 8, 200, 2), true);
    same!(call!(FsRtlAddLargeMcbEntry, map, 9, 300, 1), false);
    same!(call!(FsRtlNumberOfRunsInLargeMcb, map), 3);
    let found =
        call!(FsRtlLookupLargeMcbEntry, map, 2, &mut lbn, &mut count, NULL, NULL, &mut index);
    same!((found, lbn, count, index) == (1, 102, 2, 0), true);
    same!(call!(FsRtlLookupLargeMcbEntry, map, 5, &mut lbn, &mut count, NULL, NULL, NULL), true);
    same!((lbn, count) == (-1, 3), true);
    same!(call!(FsRtlLookupLargeMcbEntry, map, 10, NULL, NULL, NULL, NULL, NULL), false);
    same!(call!(FsRtlLookupLastLargeMcbEntryAndIndex, map, &mut vbn, &mut lbn, &mut index), true);
    same!((vbn, lbn, index) == (9, 201, 2), true);
    same!(call!(FsRtlGetNextLargeMcbEntry, map, 1, &mut vbn, &mut lbn, &mut count), true);
    same!((vbn, lbn, count) == (4, -1, 4), true);
    same!(call!(FsRtlGetNextLargeMcbEntry, map, 3, &mut vbn, &mut lbn, &mut count), false);
    call!(FsRtlRemoveLargeMcbEntry, map, 1, 2);
    same!(call!(FsRtlNumberOfRunsInLargeMcb, map), 5);
    same!(call!(FsRtlSplitLargeMcb, map, 3, 10), true);
    same!(call!(FsRtlLookupLargeMcbEntry, map, 13, &mut lbn, NULL, NULL, NULL, NULL), true);
    same!(lbn, 103_u64);
    call!(FsRtlTruncateLargeMcb, map, 1);
    same!(call!(FsRtlNumberOfRunsInLargeMcb, map), 1);
    call!(FsRtlResetLargeMcb, map, 1);
    same!(call!(FsRtlNumberOfRunsInLargeMcb, map), 0);
    call!(FsRtlUninitializeLargeMcb, map);
}
