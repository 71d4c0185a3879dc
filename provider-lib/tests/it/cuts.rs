//! Tests the positions at which text that does not fit in an event is cut.

use std::ffi::CString;

use mock_etw::{ACCESS_DENIED, ENABLE, Turn, enabled, register, turn};
use proptest::prelude::*;
use wdk_etw::{UnicodeString, Utf16CStr, emit, event};

/// Every type of text, in both encodings and inside a structure.
#[wdk_etw::provider(name = "Test.Cuts")]
mod trace {
    #[structure]
    pub struct Inner<'a> {
        pub text: &'a str,
    }

    #[structure]
    pub struct InnerUtf16<'a> {
        pub text: UnicodeString<'a>,
    }

    #[event(id = 1, level = Info, keyword = none)]
    pub fn utf8(text: &str);
    #[event(level = Info, keyword = none)]
    pub fn json(#[json] text: &str);
    #[event(id = 2, level = Info, keyword = none)]
    pub fn xml(#[xml] text: &str);
    #[event(id = 3, level = Info, keyword = none)]
    pub fn c(text: &CStr);
    #[event(level = Info, keyword = none)]
    pub fn inner(inner: Inner<'_>);

    #[event(id = 4, level = Info, keyword = none)]
    pub fn utf16(text: &[u16]);
    #[event(level = Info, keyword = none)]
    pub fn json_utf16(#[json] text: &[u16]);
    #[event(level = Info, keyword = none)]
    pub fn unicode(text: UnicodeString<'_>);
    #[event(id = 5, level = Info, keyword = none)]
    pub fn terminated(text: Utf16CStr<'_>);
    #[event(id = 6, level = Info, keyword = none)]
    pub fn inner_utf16(inner: InnerUtf16<'_>);

    #[event(id = 7, level = Info, keyword = none)]
    pub fn counted(
        count: u8,
        #[length(field = count)] utf16: &[u16],
        #[length(field = count)] utf8: &str,
        #[count(field = count)]
        #[array]
        numbers: &[u16],
    );
}

/// Events whose values have their lengths in earlier fields. The stripe of a write is that of every
/// other one, and ETW can refuse the traits: both make writes take the slow path.
#[wdk_etw::provider(
    name = "Test.Paths",
    group = "2e651177-aeab-5ffc-66e2-144601de7da8",
    stripes = 1
)]
mod paths {
    #[event(id = 1, level = Info, keyword = none)]
    pub fn buffer(used: u32, #[length(field = used)] buffer: &[u8], text: &str);
    #[event(id = 2, level = Info, keyword = none)]
    pub fn several(
        before: &str,
        #[repr(u16)] count: usize,
        #[length(field = count)] utf16: &[u16],
        size: u8,
        #[count(field = count)]
        #[array]
        numbers: &[u32],
        #[length(field = size)] utf8: &str,
        after: &str,
    );
    #[event(id = 3, level = Info, keyword = none)]
    pub fn two(length: u32, #[length(field = length)] a: &str, #[length(field = length)] b: &str);
    #[event(id = 4, level = Info, keyword = none)]
    pub fn other();
}

/// Returns the contents of the events that `emit` writes on the fast path, or on the slow path
/// because ETW refuses the provider's traits, and the number of cuts that are counted.
fn on_path(is_slow: bool, emit: impl Fn()) -> (Vec<Vec<u8>>, u64) {
    let etw = turn();
    etw.set(|etw| etw.information_status = if is_slow { ACCESS_DENIED } else { 0 });
    let _refusals = register(&paths::PROVIDER).unwrap();
    etw.notify(ENABLE, 5, 0, 0);
    let before = paths::PROVIDER.failures().cut();
    emit();
    let contents = etw.writes().iter().map(mock_etw::Written::content).collect();
    let cuts = paths::PROVIDER.failures().cut() - before;
    paths::unregister().unwrap();
    (contents, cuts)
}

#[test]
fn a_value_that_fits_without_the_bytes_after_its_length_is_not_cut_beside_another_write() {
    let etw = enabled(&paths::PROVIDER, 5);
    let buffer = vec![1; 65_536];
    let before = paths::PROVIDER.failures().cut();
    std::thread::scope(|scope| {
        etw.set(|etw| etw.hold_writes = true);
        scope.spawn(|| emit!(paths::other()));
        etw.wait_until(|etw| etw.writes_inside == 1);
        scope.spawn(|| emit!(paths::buffer(5, &buffer, "whole text")));
        etw.wait_until(|etw| etw.writes_inside == 2);
        etw.set(|etw| etw.hold_writes = false);
    });
    let writes = etw.writes();
    let sizes: Vec<_> = writes.iter().map(|one| (one.event.id(), one.content().len())).collect();
    assert_eq!(sizes, [(4, 0), (1, 4 + 5 + 2 + 10)]);
    assert_eq!(paths::PROVIDER.failures().cut(), before);
}

#[test]
fn strings_with_one_length_that_have_no_common_end_nearby_are_cut_inside_a_character() {
    let (a, b) = ("é".repeat(20_000), "a".to_owned() + &"é".repeat(20_000));
    for is_slow in [false, true] {
        let (contents, cuts) = on_path(is_slow, || emit!(paths::two(30_000, &a, &b)));
        assert_eq!((contents.len(), cuts), (2, 1), "a notice and the event");
        let (length, texts) = contents[1].split_at(4);
        assert_eq!(length, 30_000_u32.to_le_bytes());
        assert_eq!(texts, [&a.as_bytes()[..30_000], &b.as_bytes()[..30_000]].concat());
        // `FieldCut` has the field's index and sizes at its end.
        let cut = [&2_u16.to_le_bytes()[..], &40_001_u64.to_le_bytes(), &30_000_u64.to_le_bytes()];
        assert!(contents[0].ends_with(&cut.concat()), "{:?}", contents[0]);
    }
}

#[test]
fn each_value_that_is_shortened_with_another_is_counted_as_cut() {
    let (a, b) = ("a".repeat(40_000), "b".repeat(40_000));
    for is_slow in [false, true] {
        let (contents, cuts) = on_path(is_slow, || emit!(paths::two(40_000, &a, &b)));
        assert_eq!((contents.len(), cuts), (3, 2), "two notices and the event");
        let kept = (contents[2].len() - 4) / 2;
        assert!((16_384..40_000).contains(&kept), "{kept}");
        for (notice, field) in contents.iter().zip([2_u16, 1]) {
            let cut = [&field.to_le_bytes()[..], &40_000_u64.to_le_bytes(), &kept.to_le_bytes()];
            assert!(notice.ends_with(&cut.concat()), "{notice:?}");
        }
    }
}

fn registered() -> Turn {
    enabled(&trace::PROVIDER, 5)
}

/// Returns the bytes of the text in the last written event.
fn kept(etw: &Turn) -> Vec<u8> {
    let writes = etw.writes();
    assert_eq!(writes.len(), 2, "a notice and the event");
    let data = writes[1].data.iter();
    let longest = data.max_by_key(|(_, bytes)| bytes.len()).unwrap();
    longest.1.clone()
}

/// Returns a string that is longer than 64 KiB in UTF-8 and in UTF-16.
fn long(before: &str, repeated: &str) -> String {
    let mut text = before.to_owned();
    while text.len() < 70_000 || text.encode_utf16().count() < 35_000 {
        text.push_str(repeated);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn texts_with_the_count_of_an_earlier_field_are_cut_between_characters(
        utf16 in "[a\u{e9}\u{20ac}\u{1f600}]{0,12}",
        utf8 in "[a\u{e9}\u{20ac}\u{1f600}]{0,12}",
        count in 0_u8..14,
    ) {
        let etw = registered();
        let units: Vec<u16> = utf16.encode_utf16().collect();
        emit!(trace::counted(count, &units, &utf8, &units));
        let writes = etw.writes();
        let bytes = writes.last().unwrap().content();
        // The largest of four counts at which both strings can be cut.
        let is_possible = |count: &usize| {
            let starts = |units: &[u16]| String::from_utf16(units).is_ok();
            units.get(..*count).is_some_and(starts) && utf8.is_char_boundary(*count)
        };
        let all = usize::from(count).min(units.len()).min(utf8.len());
        let possible = (0..=all).rev().take(4).find(is_possible);
        let most = possible.unwrap_or(all);
        prop_assert_eq!(writes.len() > 1, possible.is_none(), "a notice");
        let half: Vec<u8> = units[..most].iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let number = u8::try_from(most).unwrap();
        prop_assert_eq!(bytes, [&[number], &half[..], &utf8.as_bytes()[..most], &half[..]].concat());
    }

    #[test]
    fn both_paths_write_the_same_bytes(
        used in 0_u32..70_000,
        buffer in 0_usize..70_000,
        count in 0_usize..70_000,
        lengths in [0_usize..40_000, 0..20_000],
        size in any::<u8>(),
        text in "[a\u{e9}\u{20ac}\u{1f600}]{0,12}",
        repeated in 0_usize..3_000,
    ) {
        let buffer = vec![1; buffer];
        let units: Vec<u16> = text.encode_utf16().cycle().take(lengths[0]).collect();
        let numbers = vec![7; lengths[1]];
        let after = text.repeat(repeated);
        let emit = || {
            emit!(paths::buffer(used, &buffer, &after));
            emit!(paths::several(&text, count, &units, size, &numbers, &after, &after));
        };
        prop_assert_eq!(on_path(false, emit), on_path(true, emit));
    }

    #[test]
    fn every_type_of_text_is_cut_between_characters(
        before in "[a\u{e9}\u{20ac}\u{1f600}]{0,5}",
        repeated in "[^\\x00]{1,6}|[\u{10000}-\u{10ffff}]{1,3}",
    ) {
        let etw = registered();
        let text = long(&before, &repeated);
        let utf8 = |kept: Vec<u8>, what: &str| {
            let kept = std::str::from_utf8(&kept).map_err(|error| format!("{what}: {error}"))?;
            // The next character does not fit.
            let next = text.strip_prefix(kept).and_then(|rest| rest.chars().next());
            let next = next.ok_or_else(|| format!("{what}: another text"))?;
            let size = kept.len() + next.len_utf8();
            if size > 62_000 { Ok(size) } else { Err(format!("{what}: {size}")) }
        };
        let c = CString::new(text.clone()).unwrap();
        emit!(trace::utf8(&text));
        let size = utf8(kept(&etw), "utf8");
        prop_assert!(size.clone().is_ok_and(|size| size > 62_895 - 2), "{:?}", size);
        emit!(trace::json(&text));
        utf8(kept(&etw), "json").map_err(TestCaseError::fail)?;
        emit!(trace::xml(&text));
        utf8(kept(&etw), "xml").map_err(TestCaseError::fail)?;
        emit!(trace::c(&c));
        utf8(kept(&etw), "c").map_err(TestCaseError::fail)?;
        emit!(trace::inner(trace::Inner { text: &text }));
        utf8(kept(&etw), "inner").map_err(TestCaseError::fail)?;
        event!(trace::PROVIDER, "Now", level = Info, keyword = none, { text: &str = &text });
        utf8(kept(&etw), "event!").map_err(TestCaseError::fail)?;

        let units: Vec<u16> = text.encode_utf16().collect();
        let utf16 = |kept: Vec<u8>, what: &str| {
            let (pairs, rest) = kept.as_chunks::<2>();
            let kept: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
            let kept = String::from_utf16(&kept).map_err(|error| format!("{what}: {error}"))?;
            let next = text.strip_prefix(&kept).and_then(|rest| rest.chars().next());
            let next = next.ok_or_else(|| format!("{what}: another text"))?;
            let size = 2 * (kept.encode_utf16().count() + next.len_utf16());
            if rest.is_empty() && size > 62_000 { Ok(size) } else { Err(format!("{what}: {size}")) }
        };
        emit!(trace::utf16(&units));
        let size = utf16(kept(&etw), "utf16");
        prop_assert!(size.clone().is_ok_and(|size| size > 62_895 - 2), "{:?}", size);
        emit!(trace::json_utf16(&units));
        utf16(kept(&etw), "json").map_err(TestCaseError::fail)?;
        emit!(trace::unicode(UnicodeString::new(&units)));
        utf16(kept(&etw), "unicode").map_err(TestCaseError::fail)?;
        emit!(trace::terminated(Utf16CStr::new(&units)));
        utf16(kept(&etw), "terminated").map_err(TestCaseError::fail)?;
        emit!(trace::inner_utf16(trace::InnerUtf16 { text: UnicodeString::new(&units) }));
        utf16(kept(&etw), "inner").map_err(TestCaseError::fail)?;
    }
}
