//! Tests TMF files and the WPP messages that they describe.

use std::fs;

use etl_file::decode::wpp::{ArgumentError, DefectKind, Formats, FormatsError, Header};
use etl_file::decode::{Problem, Value};
use etl_file::internals::kernel;
use etl_file::write::WppRecord;
use etl_file::{Catalog, Clock, ClockType, FileTime, Guid, PointerSize};
use etw_manifest::PropertyKind;
use etw_wire::{InType, OutType};

const GUID: &str = "15a8d173-19ed-3627-3053-66bb3b198115";

fn guid() -> Guid {
    GUID.parse().unwrap()
}

/// Returns the formats of one message, number 10, with this text and these arguments.
fn formats(text: &str, arguments: &str) -> Formats {
    let file = format!(
        "// PDB: driver.pdb\r\n{GUID} driver // SRC=Queue.c MJ= MN=\r\n\
         #typev Queue_c2319 10 \"%0{text}\" //   LEVEL=TRACE_LEVEL_WARNING FLAGS=TRACE_QUEUE \
         FUNC=Class::Method<a, b>\r\n{{\r\n{arguments}\r\n}}\r\n"
    );
    let mut formats = Formats::new();
    assert_eq!(formats.add_text(&file), [], "{file}");
    formats
}

/// Expands a message with one argument, number 10.
fn one(place: &str, item: &str, bytes: &[u8]) -> String {
    let formats = formats(place, &format!("x, {item} -- 10"));
    let expanded = formats.find(guid(), 10).unwrap().expand(bytes, Header::default());
    assert_eq!(expanded.error, None, "{item}");
    assert_eq!(expanded.leftover, [0; 0], "{item}");
    assert_eq!(expanded.fields.len(), 1, "{item}");
    expanded.text
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn every_number_is_read_and_shown() {
    let number = |number: u32| number.to_le_bytes();
    let rows: &[(&str, &str, &[u8], &str)] = &[
        ("%10!c!", "ItemChar", b"A", "A"),
        ("%10!d!", "ItemChar", &[0xFF], "-1"),
        ("%10!u!", "ItemUChar", &[0xFF], "255"),
        ("%10!02x!", "ItemChar", &[7], "07"),
        ("%10!hd!", "ItemShort", &[0xFE, 0xFF], "-2"),
        ("%10!hu!", "ItemUShort", &[0xFE, 0xFF], "65534"),
        ("%10!04hX!", "ItemShort", &[0xAB, 0], "00AB"),
        ("%10!d!", "ItemLong", &[0xFE, 0xFF, 0xFF, 0xFF], "-2"),
        ("%10!u!", "ItemLong", &[0xFE, 0xFF, 0xFF, 0xFF], "4294967294"),
        ("0x%10!08x!", "ItemLong", &number(0xC0DE), "0x0000c0de"),
        ("%10!#x!", "ItemULong", &number(0xC0DE), "0xc0de"),
        ("%10!x!", "ItemULongX", &number(0xC0DE), "c0de"),
        ("%10!s!", "ItemFloat", &1.5_f32.to_le_bytes(), "1.5"),
        ("%10!.3f!", "ItemFloat", &1.5_f32.to_le_bytes(), "1.500"),
        ("%10!o!", "ItemLong", &number(8), "10"),
        ("[%10!-6d!]", "ItemLong", &number(42), "[42    ]"),
        ("[%10!6d!]", "ItemLong", &number(42), "[    42]"),
        ("[%10!+.4d!]", "ItemLong", &number(42), "[+0042]"),
        ("%10!I64d!", "ItemLongLong", &(-3_i64).to_le_bytes(), "-3"),
        ("%10!I64u!", "ItemULongLong", &u64::MAX.to_le_bytes(), "18446744073709551615"),
        ("%10!I64x!", "ItemLongLongX", &255_u64.to_le_bytes(), "ff"),
        ("%10!I64X!", "ItemLongLongXX", &255_u64.to_le_bytes(), "FF"),
        ("%10!p!", "ItemPtr", &0xABCD_u64.to_le_bytes(), "000000000000ABCD"),
        ("%10!s!", "ItemDouble", &1.5_f64.to_le_bytes(), "1.5"),
        ("%10!f!", "ItemDouble", &1.5_f64.to_le_bytes(), "1.500000"),
        ("%10!.1e!", "ItemDouble", &12345.0_f64.to_le_bytes(), "1.2e+04"),
        ("%10!g!", "ItemDouble", &0.0001_f64.to_le_bytes(), "0.0001"),
        ("%10!g!", "ItemDouble", &1e-7_f64.to_le_bytes(), "1e-07"),
        ("%10!G!", "ItemDouble", &1e20_f64.to_le_bytes(), "1E+20"),
        ("%10!g!", "ItemDouble", &100.0_f64.to_le_bytes(), "100"),
        ("%10!08.2f!", "ItemDouble", &(-1.5_f64).to_le_bytes(), "-0001.50"),
        ("%10!f!", "ItemDouble", &f64::INFINITY.to_le_bytes(), "inf"),
    ];
    for (place, item, bytes, expected) in rows {
        assert_eq!(one(place, item, bytes), *expected, "{item} as {place}");
    }
}

#[test]
fn every_other_type_is_read_and_shown() {
    let number = |number: u32| number.to_le_bytes();
    let wide = [utf16("größer"), vec![0, 0]].concat();
    let counted = [&[12, 0][..], &utf16("größer")].concat();
    let sid = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 32, 2, 0, 0];
    let guid_bytes = guid().to_bytes();
    let rows: &[(&str, &str, &[u8], &str)] = &[
        ("%10!s!", "ItemChar4", b"GPIO", "GPIO"),
        ("%10!s!", "ItemString", b"text\0", "text"),
        ("%10!.2s!", "ItemString", b"text\0", "te"),
        ("%10!s!", "ItemString", b"gr\xF6\xDFer\0", "größer"),
        ("%10!s!", "ItemRString", b"text\0", "text"),
        ("%10!S!", "ItemWString", &wide, "größer"),
        ("%10!s!", "ItemPString", b"\x04\0text", "text"),
        ("%10!wZ!", "ItemPWString", &counted, "größer"),
        ("%10!s!", "ItemHEXDump", &[3, 0, 1, 2, 0xAB], "0102ab"),
        ("%10!s!", "ItemGuid", &guid_bytes, GUID),
        ("%10!s!", "ItemCLSID", &guid_bytes, GUID),
        ("%10!s!", "ItemNTSTATUS", &number(0xC000_0022), "0xc0000022(STATUS_ACCESS_DENIED)"),
        ("%10!x!", "ItemNTSTATUS", &number(0xC000_0022), "c0000022"),
        ("%10!s!", "ItemIPAddr", &[192, 168, 0, 1], "192.168.0.1"),
        ("%10!s!", "ItemIPV6Addr", &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "::1"),
        ("%10!s!", "ItemMACAddr", &[0, 0x11, 0x22, 0x33, 0x44, 0xFF], "00-11-22-33-44-ff"),
        ("%10!s!", "ItemPort", &[0x01, 0xBB], "443"),
        ("%10!s!", "ItemSid", &sid, "S-1-5-32-544"),
        ("%10!s!", "ItemTimeDelta", &(-15_000_000_i64).to_le_bytes(), "-1.5000000 s"),
        ("%10!s!", "ItemWaitTime", &5_i64.to_le_bytes(), "0.0000005 s"),
        ("%10!s!", "ItemListByte(Low,APC,DPC)", &[2], "DPC"),
        ("%10!s!", "ItemListByte(Low,APC,DPC)", &[9], "9"),
        ("%10!s!", "ItemListShort(false,true)", &[1, 0], "true"),
        ("%10!s!", "ItemListLong(A=0x5,B,C=9, D)", &number(10), "D"),
        ("%10!s! %10!d!", "ItemListLong(A=0x5,B)", &number(6), "B 6"),
        ("%10!s!", "ItemSetByte(a,b,c)", &[0b101], "[a,c]"),
        ("%10!s!", "ItemSetLong(1,2,3)", &number(0), "[]"),
        ("%10!s!", "ItemSetShort(a,b)", &[0b10, 0], "[b]"),
        ("%10!s!", "ItemEnum(_POOL_TYPE)", &number(512), "512"),
        ("%10", "ItemLong", &number(3), "3"),
    ];
    for (place, item, bytes, expected) in rows {
        assert_eq!(one(place, item, bytes), *expected, "{item} as {place}");
    }
    let time = one("%10!s!", "ItemTimestamp", &132_223_104_000_000_000_i64.to_le_bytes());
    assert!(time.starts_with("2020-01-01"), "{time}");
    assert!(one("%10!s!", "ItemHRESULT", &number(0x8000_4005)).contains("80004005"));
    assert!(one("%10!s!", "ItemWINERROR", &number(5)).contains('5'));
}

#[test]
fn the_text_has_names_escapes_and_parts_of_the_header() {
    let formats = formats(
        "%!FUNC! %!LEVEL!/%!FLAGS! %!FILE!:%!LINE! %!COMPNAME! %!TYP! %!nothing! 5%% of%n%1!s!.%2!s! \
         %3!x! %7!d! %8!x! %99!s! %10!s",
        "a, ItemChar -- 10",
    );
    let header =
        Header { thread: Some(0x1A), process: Some(0x2B), sequence: Some(3), ..Header::default() };
    let format = formats.find(guid(), 10).unwrap();
    assert_eq!(
        format.expand(&[1], header).text,
        "Class::Method<a, b> TRACE_LEVEL_WARNING/TRACE_QUEUE Queue.c:2319 driver Queue_c2319 %!nothing! 5% of\n\
         driver.Queue_c2319 1a 3 2b %99!s! 1!s"
    );
    assert_eq!(format.level_number(), Some(3));
}

#[test]
fn what_does_not_fit_is_said() {
    let formats = formats(
        "%10!d! %11!s! %12!d!",
        "a, ItemLong -- 10\r\nb(c, d), ItemString -- 11\r\ne, ItemLong -- 12",
    );
    let format = formats.find(guid(), 10).unwrap();
    let whole = [&[1, 0, 0, 0][..], b"x\0", &[2, 0, 0, 0]].concat();
    for length in 0..whole.len() {
        let expanded = format.expand(&whole[..length], Header::default());
        let number = match length {
            0..4 => 10,
            4..6 => 11,
            _ => 12,
        };
        assert_eq!(expanded.error, Some(ArgumentError::Truncated { number }));
        let read = usize::from(number - 10);
        assert_eq!(expanded.fields.len(), read);
    }
    let expanded = format.expand(&[&whole[..], &[9, 9]].concat(), Header::default());
    assert_eq!((expanded.text.as_str(), expanded.leftover), ("1 x 2", vec![9, 9]));
    let names: Vec<&str> = expanded.fields.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["a", "b(c, d)", "e"]);
}

#[test]
fn an_unknown_type_ends_the_arguments() {
    let formats = formats(
        "%10!d! %11!s! %12!d!",
        "Arg, ItemLong -- 10\r\nArg, ItemFancy -- 11\r\nArg, ItemLong -- 12",
    );
    let format = formats.find(guid(), 10).unwrap();
    let expanded = format.expand(&[1, 0, 0, 0, 7, 7], Header::default());
    let unknown = ArgumentError::UnknownType { number: 11, item: "ItemFancy".into() };
    assert_eq!(expanded.error, Some(unknown));
    assert_eq!(expanded.text, "1 %11!s! %12!d!");
    assert_eq!(expanded.leftover, [7, 7]);
    // Equal names become distinct.
    assert_eq!(&*expanded.fields[0].0, "Arg#10");
}

#[test]
fn defects_are_named_and_hide_nothing_else() {
    let text = format!(
        "#typev early_c1 10 \"before any GUID\"\n{{\n}}\n\
         {GUID} driver\n\
         what is this\n\
         #typev bad_c2 70000 \"number\"\n{{\nx, ItemLong -- 10\n}}\n\
         #typev bad_c3 11 no text\n\
         #typev bad_c4 12 \"argument\"\n{{\nx ItemLong\n}}\n\
         #typev lines_c5 13 \"two\nlines %10!d!\" // LEVEL=5\n{{\nx, ItemLong -- 10\n}}\n\
         #typev plain_c6 14 \"a \"quoted\" word\"\n\
         #typev plain_c6 14 \"the first one counts\"\n"
    );
    let mut formats = Formats::new();
    let defects = formats.add_text(&text);
    let found: Vec<(usize, DefectKind)> =
        defects.iter().map(|defect| (defect.line, defect.kind)).collect();
    assert_eq!(
        found,
        [
            (1, DefectKind::NoGuid),
            (5, DefectKind::Unexpected),
            (6, DefectKind::Message),
            (10, DefectKind::Message),
            (13, DefectKind::Argument),
        ]
    );
    let texts: Vec<&str> = [13, 14]
        .iter()
        .map(|number| formats.find(guid(), *number).unwrap().text.as_str())
        .collect();
    assert_eq!(texts, ["two\nlines %10!d!", "a \"quoted\" word"]);
    assert_eq!(formats.len(), 2);
    let clashing: Vec<u16> = formats.clashing().map(|format| format.number).collect();
    assert_eq!(clashing, [14]);
    assert!(Formats::new().add_text(&"?\n".repeat(1000)).len() <= Formats::MAX_DEFECTS);
}

#[test]
fn annotations_of_a_pdb_are_formats() {
    let strings = [
        "TMF:",
        "4ed73968-00d8-34f3-557f-85fe0ce17799 WdfCore // SRC=Unknown_cxx00 MJ= MN=",
        "#typev Unknown_cxx00 11 \"%0Handle 0x%10!p!\" //   GLOBALS=Object->GetDriverGlobals() \
         LEVEL=TRACE_LEVEL_ERROR FLAGS=TRACINGDEVICE FUNC=FxObjectHandleGetPtrQI",
        "{",
        "Arg, ItemPtr -- 10",
        "}",
        "PUBLIC_TMF:",
    ];
    let mut formats = Formats::new();
    formats.add_annotation(&strings).unwrap();
    formats.add_annotation(&["TMC:", "anything"]).unwrap();
    formats.add_annotation::<&str>(&[]).unwrap();
    let guid = "4ed73968-00d8-34f3-557f-85fe0ce17799".parse().unwrap();
    let format = formats.find(guid, 11).unwrap();
    assert_eq!(&*format.component, "WdfCore");
    assert_eq!(format.function.as_deref(), Some("FxObjectHandleGetPtrQI"));
    let pointer = 0xFFFF_C50C_6F4A_1230_u64.to_le_bytes();
    let expanded = format.expand(&pointer, Header::default());
    assert_eq!(expanded.text, "Handle 0xFFFFC50C6F4A1230");
    let narrow = Header { pointer_size: PointerSize::Four, ..Header::default() };
    assert_eq!(format.expand(&pointer[..4], narrow).text, "Handle 0x6F4A1230");
    for length in 1..3 {
        assert!(formats.add_annotation(&strings[..length]).is_err());
    }
}

#[test]
fn a_folder_of_files_describes_records() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "{GUID} driver // SRC=Queue.c MJ= MN=\n\
         #typev Queue_c7 10 \"%0%10!s! is %11!d!\" // LEVEL=TRACE_LEVEL_ERROR FLAGS=QUEUE FUNC=Work\n\
         {{\nname, ItemWString -- 10\nvalue, ItemLong -- 11\n}}\n"
    );
    // UTF-16, as tools on Windows may write it.
    let bytes = [vec![0xFF, 0xFE], utf16(&text)].concat();
    fs::write(folder.path().join(format!("{GUID}.TMF")), bytes).unwrap();
    fs::write(folder.path().join("readme.txt"), "no formats").unwrap();
    fs::write(folder.path().join("odd.tmf"), "odd\n").unwrap();
    let mut catalog = Catalog::new();
    let skipped = catalog.load_formats(folder.path()).unwrap();
    assert_eq!(skipped.len(), 1);
    assert!(skipped[0].to_string().contains("odd.tmf: line 1: expected"));
    assert!(catalog.load_formats(folder.path().join("no such file")).is_err());

    let record = WppRecord {
        message: 10,
        sequence: Some(1),
        guid: Some(guid()),
        timestamp: Some(5),
        thread_and_process: Some((2, 3)),
        arguments: [utf16("size"), vec![0, 0], vec![8, 0, 0, 0]].concat(),
        ..WppRecord::default()
    };
    let decode = |record: &WppRecord| {
        let record = kernel::decode(&record.encode().unwrap()).unwrap();
        let clock = Clock {
            kind: ClockType::SystemTime,
            perf_frequency: 0,
            cpu_mhz: 0,
            start_clock: 0,
            start_time: FileTime::default(),
        };
        let record = record.described_by(catalog.formats());
        record.into_decoded(&clock, 0, 0)
    };
    let decoded = decode(&record);
    assert_eq!(decoded.message.as_deref(), Some("size is 8"));
    assert_eq!(decoded.provider_name.as_deref(), Some("driver"));
    assert_eq!(decoded.event_name.as_deref(), Some("Queue_c7"));
    assert_eq!(decoded.task_name.as_deref(), Some("Work"));
    assert_eq!(decoded.level_name.as_deref(), Some("TRACE_LEVEL_ERROR"));
    assert_eq!(decoded.descriptor.level, 2);
    assert_eq!(&*decoded.keywords.names[0], "QUEUE");
    assert_eq!(decoded.problems, []);
    let fields: Vec<(&str, &Value)> =
        decoded.fields.iter().map(|(name, value)| (&**name, value)).collect();
    let expected = [
        ("Sequence", &Value::UInt(1)),
        ("name", &Value::Text("size".to_owned())),
        ("value", &Value::Int(8)),
    ];
    assert_eq!(fields, expected);

    let cut = WppRecord { arguments: utf16("si"), ..record };
    let decoded = decode(&cut);
    let truncated = ArgumentError::Truncated { number: 10 };
    assert_eq!(decoded.problems, [Problem::Argument(truncated)]);
    assert_eq!(decoded.leftover, utf16("si"));

    let long = WppRecord {
        arguments: [utf16("size"), vec![0, 0], vec![8, 0, 0, 0], vec![1, 2]].concat(),
        ..record
    };
    let decoded = decode(&long);
    assert_eq!(decoded.problems, [Problem::Surplus { bytes: 2 }]);
    assert_eq!(decoded.leftover, [1, 2]);

    let other = WppRecord { message: 11, ..record };
    let decoded = decode(&other);
    assert_eq!(decoded.problems, [Problem::NoFormat]);
    assert_eq!(decoded.message, None);
    assert_eq!(decoded.event_name.as_deref(), Some("Message11"));
}

#[test]
fn numbers_are_shown_as_printf_shows_them() {
    let double = |number: f64| number.to_le_bytes();
    let rows: &[(&str, f64, &str)] = &[
        ("%10!+f!", 1.5, "+1.500000"),
        ("%10! f!", 1.5, " 1.500000"),
        ("%10! .0f!", -1.5, "-2"),
        ("%10!12.3f!", 1.5, "       1.500"),
        ("%10!g!", 123_456.0, "123456"),
        ("%10!g!", 1_234_567.0, "1.23457e+06"),
        ("%10!.3g!", 123.456, "123"),
        ("%10!.3g!", 1234.0, "1.23e+03"),
        ("%10!.3g!", 12.3456, "12.3"),
        ("%10!g!", 0.5, "0.5"),
        ("%10!.3g!", 0.001_234_56, "0.00123"),
        ("%10!g!", 0.000_123_456_789, "0.000123457"),
        ("%10!.3g!", 0.000_012_345_6, "1.23e-05"),
        ("%10!#.3g!", 1.0, "1.00"),
        ("%10!g!", 1.0, "1"),
        ("%10!.0g!", 3.0, "3"),
    ];
    for (place, number, expected) in rows {
        assert_eq!(one(place, "ItemDouble", &double(*number)), *expected, "{place}");
    }
    let rows: &[(&str, i32, &str)] = &[
        ("%10! d!", 42, " 42"),
        ("%10! d!", -42, "-42"),
        ("%10!+ d!", 42, "+42"),
        ("%10!.2d!", 7, "07"),
        ("%10!.2d!", 42, "42"),
        ("%10!.2d!", 421, "421"),
        ("[%10!12d!]", 42, "[          42]"),
    ];
    for (place, number, expected) in rows {
        let shown = one(place, "ItemLong", &number.to_le_bytes());
        assert_eq!(shown, *expected, "{place}");
    }
}

#[test]
fn the_place_of_an_argument_says_what_its_value_is() {
    let value = |text: &str, item: &str| {
        let formats = formats(text, &format!("x, {item} -- 10"));
        let format = formats.find(guid(), 10).unwrap();
        let expanded = format.expand(&0xFFFF_FFC1_u32.to_le_bytes(), Header::default());
        expanded.fields[0].1.clone()
    };
    for item in ["ItemLong", "ItemULong", "ItemULongX"] {
        assert_eq!(value("%10!d!", item), Value::Int(-63));
        assert_eq!(value("%10!i!", item), Value::Int(-63));
        assert_eq!(value("%10!u!", item), Value::UInt(0xFFFF_FFC1));
        for place in ["%10!x!", "%10!08lX!", "%10!p!", "%10!o!"] {
            assert_eq!(value(place, item), Value::Hex(0xFFFF_FFC1), "{place}");
        }
    }
    // If there is no placeholder, or if it does not specify the style, the type determines it.
    for place in ["none", "%10!s!"] {
        assert_eq!(value(place, "ItemLong"), Value::Int(-63));
        assert_eq!(value(place, "ItemULong"), Value::UInt(0xFFFF_FFC1));
        assert_eq!(value(place, "ItemULongX"), Value::Hex(0xFFFF_FFC1));
    }
    let formats = formats("%10!c!", "x, ItemChar -- 10");
    let expanded = formats.find(guid(), 10).unwrap().expand(b"A", Header::default());
    assert_eq!(expanded.fields[0].1, Value::Text("A".to_owned()));
}

#[test]
fn edges_of_types_are_read() {
    let mut sid = vec![1, 15, 1, 2, 3, 4, 5, 6];
    sid.extend((0..15_u32).flat_map(u32::to_le_bytes));
    assert_eq!(
        one("%10!s!", "ItemSid", &sid),
        "S-1-0x010203040506-0-1-2-3-4-5-6-7-8-9-10-11-12-13-14"
    );
    let of_time = |units: i64| one("%10!s!", "ItemWaitTime", &units.to_le_bytes());
    assert_eq!(of_time(0), "0.0000000 s");
    assert_eq!(one("%10!u!", "ItemChar4", b"\x01\0\0\0"), "1");
    assert_eq!(one("%10!x!", "ItemTimestamp", &0x1234_i64.to_le_bytes()), "1234");
    assert_eq!(one("%10!d!", "ItemWaitTime", &(-7_i64).to_le_bytes()), "-7");
    // A set with more bits than the number.
    let names: Vec<String> = (0..70).map(|bit| format!("b{bit}")).collect();
    let set = format!("ItemSetLong({})", names.join(","));
    assert_eq!(one("%10!s!", &set, &0x8000_0001_u32.to_le_bytes()), "[b0,b31]");
    // Other words are not types.
    for item in ["Itemized list", "Item-Long", "Long"] {
        let file = format!("{GUID} driver\n#typev a_c1 10 \"%10!d!\"\n{{\nx, {item} -- 10\n}}\n");
        let defects = Formats::new().add_text(&file);
        assert_eq!(defects[0].kind, DefectKind::Argument, "{item}");
    }
}

#[test]
fn places_of_the_header_are_shown_in_any_form() {
    let formats = formats("%3!s! %7!5d!|%8!s!", "a, ItemChar -- 10");
    let header =
        Header { thread: Some(26), process: Some(43), sequence: Some(3), ..Header::default() };
    let expanded = formats.find(guid(), 10).unwrap().expand(&[1], header);
    assert_eq!(expanded.text, "26     3|43");
}

#[test]
fn words_have_other_spellings_and_may_be_without_a_value() {
    let text = format!(
        "{GUID} driver // SRC=Queue.c\n\n         #typev a_c1 10 \"%!LEVEL!|%!FLAGS!|%!FUNC!|%!OTHER!|%!BAD-KEY!\" // TRACELEVEL=4 FLAG=A b          FUNC=Work OTHER_1=x OTHER=two words EMPTY= BAD-KEY=y\n{{\n\n}}\n"
    );
    let mut formats = Formats::new();
    assert!(formats.is_empty());
    assert_eq!(formats.add_text(&text), []);
    assert!(!formats.is_empty());
    let format = formats.find(guid(), 10).unwrap();
    let expanded = format.expand(&[], Header::default());
    assert_eq!(expanded.text, "4|A b|Work|two words|%!BAD-KEY!");
    assert_eq!(formats.iter().count(), 1);
}

#[test]
fn a_text_has_at_most_64_lines() {
    for lines in [2, 64, 65] {
        let text = vec!["more"; lines].join("\n");
        let file = format!("{GUID} driver\n#typev long_c1 10 \"{text}\" // LEVEL=4\n");
        let mut formats = Formats::new();
        let defects = formats.add_text(&file);
        if lines <= 64 {
            assert_eq!(defects, []);
            assert_eq!(formats.find(guid(), 10).unwrap().text, text);
        } else {
            assert_eq!(defects[0].kind, DefectKind::Message);
            assert!(formats.is_empty());
        }
    }
}

#[test]
fn an_annotation_ends_at_the_words_of_who_may_see_it() {
    let strings = [
        "TMF:",
        "4ed73968-00d8-34f3-557f-85fe0ce17799 WdfCore",
        "#typev Unknown_cxx00 11 \"text\"",
        "PUBLIC_TMF:",
        "no argument",
    ];
    let mut formats = Formats::new();
    formats.add_annotation(&strings).unwrap();
    assert_eq!(formats.len(), 1);
    // Without these words, the following text would be read as an argument.
    let others = [strings[0], strings[1], "#typev b_c1 12 \"text\"", "no argument"];
    assert_eq!(formats.add_annotation(&others), Err(DefectKind::Argument));
}

#[test]
fn a_catalog_takes_formats_for_messages_that_have_none() {
    let one = formats("first", "");
    let mut catalog = Catalog::new();
    catalog.add_formats(&one);
    catalog.add_formats(&formats("second", ""));
    assert_eq!(catalog.formats().len(), 1);
    let format = catalog.formats().find(guid(), 10).unwrap();
    assert_eq!(format.text, "%0first");
}

#[test]
fn a_file_of_formats_has_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.tmf");
    let file = fs::File::create(&path).unwrap();
    file.set_len(Formats::MAX_FILE + 1).unwrap();
    let refused = Formats::new().load(&path).unwrap_err();
    assert!(matches!(refused, FormatsError::TooLarge { .. }), "{refused}");
    file.set_len(Formats::MAX_FILE).unwrap();
    assert!(Formats::new().load(&path).is_ok());
}

#[test]
fn a_long_text_is_cut() {
    const LIMIT: usize = 1 << 20;
    let whole = |places: usize, length: usize| {
        let formats = formats(&"%10!s!".repeat(places), "x, ItemPString -- 10");
        let argument = [&u16::try_from(length).unwrap().to_le_bytes()[..], &vec![b'x'; length]];
        let format = formats.find(guid(), 10).unwrap();
        format.expand(&argument.concat(), Header::default()).text
    };
    assert_eq!(whole(32, 0x8000), "x".repeat(LIMIT));
    let cut = whole(40, 0x8001);
    assert!(cut.ends_with('…') && cut.len() < LIMIT + 0x8001 + 3);
    assert!(whole(16, 0x8001).len() == 16 * 0x8001);
}

#[test]
fn a_message_states_its_pointer_size() {
    for (size, expected) in [
        (None, PointerSize::Eight),
        (Some(PointerSize::Four), PointerSize::Four),
        (Some(PointerSize::Eight), PointerSize::Eight),
    ] {
        let mut bytes = WppRecord { message: 10, ..WppRecord::default() }.encode().unwrap();
        bytes[6] &= !0xC0;
        bytes[6] |= match size {
            None => 0,
            Some(PointerSize::Four) => 0x40,
            Some(PointerSize::Eight) => 0x80,
        };
        let record = kernel::decode(&bytes).unwrap();
        assert_eq!(record.header.pointer_size, expected);
    }
}

/// Returns an event's message, and the fields with their types.
fn converted(text: &str, arguments: &str) -> (String, Vec<(String, InType, OutType)>) {
    let made = formats(text, arguments).to_manifest("Contoso.Driver", guid());
    let [provider] = made.manifest.providers.as_slice() else {
        panic!("one provider is expected");
    };
    let [event] = provider.events.as_slice() else {
        panic!("one event is expected");
    };
    let message = event.message.map(|at| made.manifest.texts[at].value.clone());
    let template = event.template.map(|at| &provider.templates[at]);
    let fields = template.into_iter().flat_map(|template| &template.properties);
    let fields = fields.map(|field| match field.kind {
        PropertyKind::Data { in_type, out_type, .. } => (field.name.clone(), in_type, out_type),
        _ => panic!("{field:?}"),
    });
    (message.unwrap_or_default(), fields.collect())
}

#[test]
fn the_text_of_a_message_becomes_that_of_an_event() {
    for (text, expected) in [
        ("%!FUNC!: %10!d!5 %10!x!! %10!s!", "Class::Method<a, b>: %1!s!5 %1%! %1"),
        ("100%% of%n%99!s!%3!x!%1!s! 5%", "100%% of%ndriver 5%%"),
        ("%!LEVEL! %!nothing! %q%.", "TRACE_LEVEL_WARNING %%!nothing! %%q."),
        ("%10 and %10!04x!", "%1 and %1"),
    ] {
        assert_eq!(converted(text, "a, ItemLong -- 10").0, expected, "{text}");
    }
    let (message, fields) = converted("%10!d! %11!s!", "a, ItemLong -- 10\r\nb, ItemFancy -- 11");
    assert_eq!((message.as_str(), fields.len()), ("%1 (B)", 1));
}

#[test]
fn every_loss_of_a_message_is_a_note() {
    for (text, item, note) in [
        ("%10!04x!", "ItemLong", "1 of 1 messages lose the widths"),
        ("%10!o!", "ItemLong", "1 of 1 messages lose the widths"),
        ("%10!+d!", "ItemLong", "1 of 1 messages lose the widths"),
        ("%3!x! %10!d!", "ItemLong", "loses `%3`, a value of the message's header"),
        ("%99!s!", "ItemLong", "loses `%99`, a value of"),
        ("%10!s!", "ItemWaitTime", "loses the form of the argument `a`: a time span"),
    ] {
        let made = formats(text, &format!("a, {item} -- 10")).to_manifest("A", guid());
        assert!(made.notes.iter().any(|one| one.contains(note)), "{text}: {:?}", made.notes);
    }
    let made = formats("%10!I64x! %10!d!", "a, ItemLong -- 10").to_manifest("A", guid());
    assert!(!made.notes.iter().any(|one| one.contains("lose")), "{:?}", made.notes);
}

#[test]
fn every_type_of_an_argument_has_one_in_an_event() {
    use {InType as In, OutType as Out};
    for (place, item, expected) in [
        ("%10!c!", "ItemChar", (In::UInt8, Out::String)),
        ("%10!d!", "ItemChar", (In::Int8, Out::Byte)),
        ("%10!x!", "ItemShort", (In::UInt16, Out::HexInt16)),
        ("%10!d!", "ItemLong", (In::Int32, Out::Int)),
        ("%10!u!", "ItemLong", (In::UInt32, Out::UnsignedInt)),
        ("%10!08X!", "ItemLong", (In::HexInt32, Out::HexInt32)),
        ("%10!I64u!", "ItemULongLong", (In::UInt64, Out::UnsignedLong)),
        ("%10!p!", "ItemPtr", (In::Pointer, Out::HexInt64)),
        ("%10!s!", "ItemDouble", (In::Double, Out::Double)),
        ("%10!s!", "ItemChar4", (In::AnsiString, Out::String)),
        ("%10!s!", "ItemString", (In::AnsiString, Out::Utf8)),
        ("%10!s!", "ItemWString", (In::UnicodeString, Out::String)),
        ("%10!s!", "ItemPString", (In::CountedAnsiString, Out::Utf8)),
        ("%10!s!", "ItemPWString", (In::CountedUnicodeString, Out::String)),
        ("%10!s!", "ItemNTSTATUS", (In::UInt32, Out::NtStatus)),
        ("%10!s!", "ItemHRESULT", (In::Int32, Out::HResult)),
        ("%10!s!", "ItemMACAddr", (In::Binary, Out::HexBinary)),
        ("%10!s!", "ItemIPV6Addr", (In::Binary, Out::Ipv6)),
        ("%10!s!", "ItemSid", (In::Sid, Out::String)),
        ("%10!s!", "ItemTimestamp", (In::FileTime, Out::DateTime)),
        ("%10!s!", "ItemWaitTime", (In::Int64, Out::Long)),
        ("%10!s!", "ItemListShort(a,b)", (In::UInt16, Out::UnsignedShort)),
        ("%10!s!", "ItemSetLong(a,b)", (In::UInt32, Out::UnsignedInt)),
    ] {
        let (message, fields) = converted(place, &format!("(ULONG)x->Size, {item} -- 10"));
        assert_eq!(message, "%1", "{item}");
        assert_eq!(fields, [("Size".to_owned(), expected.0, expected.1)], "{item}");
    }
    // Bytes follow their length.
    let (message, fields) = converted("%10!s!", "x, ItemHEXDump -- 10");
    assert_eq!((message.as_str(), fields.len()), ("%2", 2));
}
