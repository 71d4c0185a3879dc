use super::*;
use crate::decode::schema::{ValueMap, plain as bare};

fn field(name: &str, in_type: impl Into<Encoding>, out_type: Presentation) -> Field {
    Field { out_type, ..bare(name, in_type) }
}

fn decode(fields: Vec<Field>, data: &[u8]) -> Payload {
    let schema = Schema { fields: fields.into(), ..Schema::default() };
    schema.decode(data, PointerSize::Eight)
}

/// Decodes data that contains a single value, and returns the value.
fn one(in_type: InType, out_type: Presentation, data: &[u8]) -> Value {
    let payload = decode(vec![field("f", in_type, out_type)], data);
    assert_eq!(payload.error, None);
    assert_eq!(payload.leftover, [0_u8; 0]);
    payload.fields.into_iter().next().unwrap().1
}

fn plain(in_type: InType, data: &[u8]) -> Value {
    one(in_type, Presentation::Default, data)
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn integers_have_their_size_and_sign() {
    assert_eq!(plain(InType::Int8, &[0x80]), Value::Int(-128));
    assert_eq!(plain(InType::Int8, &[0x7F]), Value::Int(127));
    assert_eq!(plain(InType::Int16, &[0xFF, 0x7F]), Value::Int(0x7FFF));
    assert_eq!(plain(InType::Int32, &[1, 0, 0, 0]), Value::Int(1));
    assert_eq!(plain(InType::UInt8, &[0x80]), Value::UInt(128));
    assert_eq!(plain(InType::Int16, &[0xFE, 0xFF]), Value::Int(-2));
    assert_eq!(plain(InType::UInt16, &[0xFE, 0xFF]), Value::UInt(0xFFFE));
    assert_eq!(plain(InType::Int32, &[0xFF; 4]), Value::Int(-1));
    assert_eq!(plain(InType::UInt32, &[0xFF; 4]), Value::UInt(u64::from(u32::MAX)));
    assert_eq!(plain(InType::Int64, &[0xFF; 8]), Value::Int(-1));
    assert_eq!(plain(InType::UInt64, &[0xFF; 8]), Value::UInt(u64::MAX));
    assert_eq!(plain(InType::HexInt32, &[1, 2, 0, 0]), Value::Hex(0x201));
    assert_eq!(plain(InType::HexInt64, &[1; 8]), Value::Hex(0x0101_0101_0101_0101));
    assert_eq!(plain(InType::Boolean, &[0, 1, 0, 0]), Value::Bool(true));
    assert_eq!(plain(InType::Null, &[]), Value::Null);
}

#[test]
fn out_types_give_integers_their_meaning() {
    let of = |in_type, out_type, data: &[u8]| one(in_type, out_type, data);
    assert_eq!(of(InType::UInt8, Presentation::Boolean, &[2]), Value::Bool(true));
    assert_eq!(of(InType::UInt8, Presentation::String, b"x"), text("x"));
    assert_eq!(of(InType::UInt16, Presentation::String, &[0xE9, 0]), text("é"));
    assert_eq!(of(InType::UInt8, Presentation::Hex, &[0xAB]), Value::Hex(0xAB));
    assert_eq!(of(InType::UInt16, Presentation::Port, &[0x1F, 0x90]), Value::Port(8080));
    assert_eq!(
        of(InType::UInt32, Presentation::Ipv4, &[127, 0, 0, 1]),
        Value::Ipv4(Ipv4Addr::LOCALHOST)
    );
    let number = [0x22, 0, 0, 0xC0];
    assert_eq!(of(InType::UInt32, Presentation::NtStatus, &number), Value::NtStatus(0xC000_0022));
    assert_eq!(of(InType::Int32, Presentation::HResult, &number), Value::HResult(0xC000_0022));
    assert_eq!(of(InType::UInt32, Presentation::Win32Error, &[5, 0, 0, 0]), Value::Win32Error(5));
    assert_eq!(of(InType::UInt32, Presentation::ProcessId, &[4, 0, 0, 0]), Value::ProcessId(4));
    assert_eq!(of(InType::UInt32, Presentation::ThreadId, &[8, 0, 0, 0]), Value::ThreadId(8));
    assert_eq!(
        of(InType::HexInt64, Presentation::CodePointer, &[0x10, 0, 0, 0, 0, 0, 0, 0]),
        Value::Pointer(0x10)
    );
    assert_eq!(of(InType::UInt8, Presentation::Signed, &[0xFF]), Value::Int(-1));
    assert_eq!(of(InType::Int8, Presentation::Unsigned, &[0xFF]), Value::UInt(255));
    assert_eq!(
        of(InType::UInt64, Presentation::DateTime, &[1, 0, 0, 0, 0, 0, 0, 0]),
        Value::FileTime(FileTime::from_raw(1))
    );
}

#[test]
fn an_out_type_that_does_not_fit_the_size_is_ignored() {
    assert_eq!(one(InType::UInt8, Presentation::Port, &[7]), Value::UInt(7));
    for out_type in
        [Presentation::Port, Presentation::String, Presentation::DateTime, Presentation::Xml]
    {
        let value = one(InType::UInt32, out_type, &[7, 0, 0, 0]);
        assert_eq!(value, Value::UInt(7), "{out_type:?}");
    }
    for out_type in [Presentation::Ipv4, Presentation::Ipv6] {
        let value = one(InType::UInt64, out_type, &[7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(value, Value::UInt(7), "{out_type:?}");
    }
    let short = one(InType::Binary, Presentation::Ipv6, b"\x04\0abcd");
    assert_eq!(short, Value::Binary(b"abcd".to_vec()));
    assert_eq!(one(InType::UInt64, Presentation::NtStatus, &[0xFF; 8]), Value::UInt(u64::MAX));
}

#[test]
fn floats_guids_and_times_are_read() {
    assert_eq!(plain(InType::Float, &1.5_f32.to_le_bytes()), Value::Float(1.5));
    assert_eq!(plain(InType::Double, &(-0.25_f64).to_le_bytes()), Value::Double(-0.25));
    assert_eq!(plain(InType::Guid, &[9; 16]), Value::Guid(Guid::from_bytes([9; 16])));
    assert_eq!(
        plain(InType::FileTime, &[2, 0, 0, 0, 0, 0, 0, 0]),
        Value::FileTime(FileTime::from_raw(2))
    );
    let Value::SystemTime(time) = plain(InType::SystemTime, &[1; 16]) else {
        panic!("a SYSTEMTIME is no other value");
    };
    assert_eq!(time.year, 0x0101);
}

#[test]
fn strings_end_at_their_nul_or_with_the_data() {
    assert_eq!(plain(InType::UnicodeString, b"a\0b\0\0\0"), text("ab"));
    assert_eq!(plain(InType::UnicodeString, b"a\0b\0"), text("ab"));
    assert_eq!(plain(InType::AnsiString, b"ab\0"), text("ab"));
    assert_eq!(plain(InType::AnsiString, b"ab"), text("ab"));
    assert_eq!(plain(InType::AnsiString, b"\xE9\0"), text("é"));
    assert_eq!(one(InType::AnsiString, Presentation::Utf8, b"\xC3\xA9\0"), text("é"));
}

#[test]
fn counted_data_have_a_byte_count() {
    assert_eq!(plain(InType::CountedUnicodeString, b"\x04\0a\0b\0"), text("ab"));
    assert_eq!(plain(InType::CountedAnsiString, b"\x02\0ab"), text("ab"));
    assert_eq!(plain(InType::Binary, b"\x02\0ab"), Value::Binary(b"ab".to_vec()));
    assert_eq!(plain(InType::CountedBinary, b"\x02\0ab"), Value::Binary(b"ab".to_vec()));
    let odd = decode(vec![bare("f", InType::CountedUnicodeString)], b"\x03\0abc");
    assert_eq!(odd.error.unwrap().kind, Kind::OddLength(3));
    assert_eq!(odd.leftover, b"\x03\0abc");
}

#[test]
fn binary_addresses_are_read() {
    let mut v6 = vec![16, 0];
    v6.extend(Ipv6Addr::LOCALHOST.octets());
    assert_eq!(one(InType::Binary, Presentation::Ipv6, &v6), Value::Ipv6(Ipv6Addr::LOCALHOST));
    let v4 = b"\x10\0\x02\0\x1F\x90\x7F\0\0\x01\0\0\0\0\0\0\0\0";
    assert_eq!(
        one(InType::Binary, Presentation::SocketAddress, v4),
        Value::SocketAddress("127.0.0.1:8080".parse().unwrap())
    );
    let mut v6 = b"\x1C\0\x17\0\x1F\x90\0\0\0\0".to_vec();
    v6.extend(Ipv6Addr::LOCALHOST.octets());
    v6.extend([0; 4]);
    assert_eq!(
        one(InType::Binary, Presentation::SocketAddress, &v6),
        Value::SocketAddress("[::1]:8080".parse().unwrap())
    );
    assert_eq!(
        one(InType::Binary, Presentation::SocketAddress, b"\x02\0\x11\0"),
        Value::Binary(b"\x11\0".to_vec())
    );
}

#[test]
fn security_identifier_gives_its_own_length() {
    let data = b"\x01\x02\0\0\0\0\0\x05\x20\0\0\0\x20\x02\0\0";
    assert_eq!(plain(InType::Sid, data).to_string(), "S-1-5-32-544");
    // The maximum number of subauthorities.
    let longest = [&[1, 15, 0, 0, 0, 0, 0, 5][..], &[0; 60]].concat();
    let Value::Sid(longest) = plain(InType::Sid, &longest) else {
        panic!("a SID is no other value");
    };
    assert_eq!((longest.authority, longest.subauthorities.len()), (5, 15));
    let payload = decode(vec![bare("f", InType::Sid)], &[1, 16, 0, 0, 0, 0, 0, 5]);
    assert_eq!(payload.error.unwrap().kind, Kind::Sid(16));
}

#[test]
fn pointer_has_the_size_of_the_writer() {
    let schema = Schema { fields: vec![bare("p", InType::Pointer)].into(), ..Schema::default() };
    let payload = schema.decode(&[1, 0, 0, 0, 2], PointerSize::Four);
    assert_eq!(payload.fields, [("p".into(), Value::Pointer(1))]);
    assert_eq!(payload.leftover, [2]);
}

#[test]
fn arrays_count_in_the_schema_or_in_the_data() {
    let fixed = Field { count: Count::Fixed(2), ..bare("a", InType::UInt16) };
    let variable = Field { count: Count::Variable, ..field("b", InType::UInt8, Presentation::Hex) };
    let payload = decode(vec![fixed, variable], &[1, 0, 2, 0, 3, 0, 7, 8, 9]);
    assert_eq!(payload.error, None);
    assert_eq!(
        payload.fields,
        [
            ("a".into(), Value::Array(vec![Value::UInt(1), Value::UInt(2)])),
            ("b".into(), Value::Array(vec![Value::Hex(7), Value::Hex(8), Value::Hex(9)])),
        ]
    );
}

#[test]
fn array_of_characters_is_text() {
    let characters =
        |in_type| Field { count: Count::Variable, ..field("s", in_type, Presentation::String) };
    let payload = decode(
        vec![characters(InType::UInt16), characters(InType::Int8)],
        b"\x02\0a\0b\0\x03\0xyz",
    );
    assert_eq!(payload.fields, [("s".into(), text("ab")), ("s".into(), text("xyz"))]);
}

#[test]
fn structures_hold_their_members() {
    let mut outer = Field { count: Count::Fixed(2), ..bare("s", InType::Struct) };
    outer.fields = vec![bare("a", InType::UInt8), bare("b", InType::CountedAnsiString)];
    let payload = decode(vec![outer], b"\x01\x01\0x\x02\x01\0y");
    assert_eq!(payload.fields[0].1.to_string(), r#"[{a=1, b="x"}, {a=2, b="y"}]"#);
}

#[test]
fn sizes_come_from_earlier_fields() {
    let number = bare("n", InType::UInt16);
    let count = Field { count: Count::Field("n".into()), ..bare("a", InType::UInt8) };
    let length = Field { length: Length::Field("n".into()), ..bare("b", InType::Binary) };
    let string = Field { length: Length::Field("n".into()), ..bare("s", InType::UnicodeString) };
    let payload = decode(vec![number, count, length, string], b"\x02\0\x07\x08xyz\0\0\0");
    assert_eq!(payload.error, None);
    assert_eq!(
        payload.fields[1..],
        [
            ("a".into(), Value::Array(vec![Value::UInt(7), Value::UInt(8)])),
            ("b".into(), Value::Binary(b"xy".to_vec())),
            ("s".into(), text("z")),
        ]
    );
}

#[test]
fn size_without_its_field_is_an_error() {
    let length = Field { length: Length::Field("n".into()), ..bare("b", InType::Binary) };
    let payload = decode(vec![length], b"xy");
    assert_eq!(payload.error.unwrap().kind, Kind::NoSuchNumber("n".into()));
}

#[test]
fn a_map_names_a_number() {
    let mapped = Field {
        map: Some(Arc::new(ValueMap { bits: false, entries: vec![(3, "Three".into())] })),
        ..bare("m", InType::UInt32)
    };
    let payload = decode(vec![mapped.clone(), mapped], &[3, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(payload.fields[0].1.to_string(), "Three(3)");
    assert_eq!(payload.fields[1].1, Value::UInt(4));
}

/// Decodes a field with a map, and shows its value as text and as JSON.
fn mapped(in_type: InType, bits: bool, entries: &[(u32, &str)], data: &[u8]) -> (String, String) {
    let entries = entries.iter().map(|(value, name)| (*value, (*name).into()));
    let field = Field {
        map: Some(Arc::new(ValueMap { bits, entries: entries.collect() })),
        ..bare("f", in_type)
    };
    let payload = decode(vec![field], data);
    let (_, value) = &payload.fields[0];
    (value.to_string(), serde_json::to_string(value).unwrap())
}

#[test]
fn a_map_names_negative_numbers_of_every_size() {
    let states = &[(0xFFFF_FFFF, "Unset"), (0x8000_0000, "Lowest"), (5, "Five")];
    let shown = |in_type, data: &[u8]| mapped(in_type, false, states, data);
    let unset = ("Unset(-1)".to_owned(), r#"{"value":-1,"name":"Unset"}"#.to_owned());
    assert_eq!(shown(InType::Int8, &[0xFF]), unset);
    assert_eq!(shown(InType::Int16, &[0xFF; 2]), unset);
    assert_eq!(shown(InType::Int32, &[0xFF; 4]), unset);
    assert_eq!(shown(InType::Int64, &[0xFF; 8]), unset);
    assert_eq!(shown(InType::Int32, &[0, 0, 0, 0x80]).0, "Lowest(-2147483648)");
    assert_eq!(shown(InType::UInt32, &[0xFF; 4]).0, "Unset(4294967295)");
    assert_eq!(shown(InType::UInt32, &[0, 0, 0, 0x80]).0, "Lowest(2147483648)");
    assert_eq!(shown(InType::Int8, &[5]).0, "Five(5)");
    assert_eq!(shown(InType::Int16, &[0xFE, 0xFF]).0, "-2");
    assert_eq!(shown(InType::UInt8, &[0xFF]).0, "255");
    let bytes = &[(0x80, "High")];
    assert_eq!(mapped(InType::Int8, false, bytes, &[0x80]).0, "High(-128)");
    assert_eq!(mapped(InType::UInt8, false, bytes, &[0x80]).0, "High(128)");
}

#[test]
fn a_bit_map_names_the_highest_bit_and_zero() {
    let flags = &[(0x8000_0000, "Top"), (1, "Low")];
    let shown = |in_type, data: &[u8]| mapped(in_type, true, flags, data).0;
    for in_type in [InType::UInt32, InType::Int32, InType::HexInt32] {
        assert_eq!(shown(in_type, &[1, 0, 0, 0x80]), "Top|Low(2147483649)");
    }
    assert_eq!(
        shown(InType::UInt64, &[1, 0, 0, 0, 0, 0, 0, 0x80]),
        "Low|0x8000000000000000(9223372036854775809)"
    );
    assert_eq!(shown(InType::UInt32, &[0; 4]), "0");
    assert_eq!(shown(InType::HexInt32, &[0; 4]), "0x0");
    let with_zero = &[(0, "None"), (1, "Low")];
    assert_eq!(mapped(InType::UInt32, true, with_zero, &[0; 4]).0, "None(0)");
}

#[test]
fn decoding_keeps_what_came_before_an_error() {
    let payload = decode(vec![bare("a", InType::UInt8), bare("b", InType::UInt32)], &[1, 2, 3]);
    assert_eq!(payload.fields, [("a".into(), Value::UInt(1))]);
    assert_eq!(payload.leftover, [2, 3]);
    assert_eq!(
        payload.error.unwrap().to_string(),
        "field `b` at payload offset 1: the data ends inside the field"
    );
}

#[test]
fn error_in_a_structure_names_the_member() {
    let mut outer = bare("s", InType::Struct);
    outer.fields = vec![bare("a", InType::UInt8), bare("b", Encoding::Unknown(30))];
    let error = decode(vec![outer], &[1, 2]).error.unwrap();
    assert_eq!((error.field.as_ref(), error.offset), ("b", 1));
    assert_eq!(error.kind, Kind::UnknownType(30));
}

#[test]
fn arrays_without_data_do_not_multiply_without_bound() {
    let inner = Field { count: Count::Fixed(u16::MAX), ..bare("i", InType::Null) };
    let mut outer = Field { count: Count::Fixed(u16::MAX), ..bare("o", InType::Struct) };
    outer.fields = vec![inner];
    let payload = decode(vec![outer], &[1]);
    assert_eq!(payload.error.unwrap().kind, Kind::TooManyValues);
    assert_eq!(payload.leftover, [1]);
}

#[test]
fn names_in_errors_cannot_control_a_terminal() {
    let name = "\u{1b}[2J\n";
    let payload = decode(vec![bare(name, InType::Int8)], &[]);
    assert_eq!(
        payload.error.unwrap().to_string(),
        r"field `\u{1b}[2J\n` at payload offset 0: the data ends inside the field"
    );
}

/// Returns the number of values, including nested ones.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(count).sum(),
        Value::Struct(members) => members.iter().map(|(_, value)| count(value)).sum(),
        _ => 0,
    }
}

#[test]
fn small_events_do_not_take_much_memory() {
    let array = |name: &str| Field { count: Count::Fixed(u16::MAX), ..bare(name, InType::Null) };
    // 60 bytes of metadata describe such an event; a file can contain thousands of them.
    let payload = decode(vec![array(""); 15], &[1, 2, 3]);
    let values: usize = payload.fields.iter().map(|(_, value)| count(value)).sum();
    assert!(values < 10_000, "{values}");
    assert_eq!(payload.error.unwrap().kind, Kind::TooManyValues);
    // Values with data can contain values without data.
    let member = |in_type| bare("m", in_type);
    let mut parts = Field { count: Count::Fixed(60_000), ..bare("parts", InType::Struct) };
    parts.fields = vec![member(InType::UInt8), member(InType::Null)];
    let payload = decode(vec![parts], &vec![7; 60_000]);
    assert_eq!(payload.error, None);
}

#[test]
fn the_values_of_an_event_cost_their_names_too() {
    let array = |name: &str| Field { count: Count::Fixed(60_000), ..bare(name, InType::UInt8) };
    // Each value of the first arrays costs 100 bytes of the 16 MiB, so 167,772 of them fit.
    let long = "n".repeat(100 - VALUE_COST);
    let payload = decode(vec![array(&long); 4], &vec![7; 240_000]);
    let error = payload.error.unwrap();
    assert_eq!((error.kind, error.offset), (Kind::TooManyValues, 167_772));
    assert_eq!(payload.fields.len(), 2);
    // The others are cheaper.
    let payload = decode(vec![array("n"); 4], &vec![7; 240_000]);
    assert_eq!(payload.error, None);
}

#[test]
fn text_of_a_fixed_length_ends_before_its_padding() {
    let of_length = |in_type, length| Field { length: Length::Fixed(length), ..bare("s", in_type) };
    let payload = decode(
        vec![
            of_length(InType::UnicodeString, 4),
            of_length(InType::AnsiString, 5),
            of_length(InType::AnsiString, 2),
            of_length(InType::Binary, 3),
        ],
        b"a\0b\0\0\0\0\0a\0b\0\0\0\0x\0\0",
    );
    assert_eq!(payload.error, None);
    let values: Vec<Value> = payload.fields.into_iter().map(|(_, value)| value).collect();
    assert_eq!(
        values,
        [
            text("ab"),
            // A NUL inside the text is not padding.
            text("a\0b"),
            text(""),
            Value::Binary(b"x\0\0".to_vec()),
        ]
    );
}

#[test]
fn an_array_of_pointers_has_the_size_of_its_elements() {
    let pointers = Field { count: Count::Fixed(2), ..bare("pointers", InType::Pointer) };
    let schema = Schema { fields: vec![pointers].into(), ..Schema::default() };
    assert_eq!(schema.size(PointerSize::Four), Some(8));
    assert_eq!(schema.size(PointerSize::Eight), Some(16));
}

#[test]
fn values_of_fixed_size_have_the_size_of_their_type() {
    let size = |fields: Vec<Field>, pointer_size| {
        let schema = Schema { fields: fields.into(), ..Schema::default() };
        schema.size(pointer_size)
    };
    let all = [
        (InType::Int8, 1),
        (InType::UInt8, 1),
        (InType::Int16, 2),
        (InType::UInt16, 2),
        (InType::Int32, 4),
        (InType::UInt32, 4),
        (InType::HexInt32, 4),
        (InType::Boolean, 4),
        (InType::Float, 4),
        (InType::Int64, 8),
        (InType::UInt64, 8),
        (InType::HexInt64, 8),
        (InType::Double, 8),
        (InType::FileTime, 8),
        (InType::Guid, 16),
        (InType::SystemTime, 16),
    ];
    let plain = |in_type| bare("f", in_type);
    for (in_type, expected) in all {
        let found = size(vec![plain(in_type)], PointerSize::Eight);
        assert_eq!(found, Some(expected), "{in_type:?}");
        let mut three = plain(in_type);
        three.count = Count::Fixed(3);
        assert_eq!(size(vec![three], PointerSize::Eight), Some(3 * expected));
        let mut counted = plain(in_type);
        counted.count = Count::Variable;
        assert_eq!(size(vec![counted], PointerSize::Eight), None);
    }
    let pointers = vec![plain(InType::Pointer), plain(InType::UInt8)];
    assert_eq!(size(pointers.clone(), PointerSize::Four), Some(5));
    assert_eq!(size(pointers.clone(), PointerSize::Eight), Some(9));
    let mut structure = plain(InType::Struct);
    structure.fields = pointers;
    structure.count = Count::Fixed(2);
    assert_eq!(size(vec![structure.clone()], PointerSize::Eight), Some(18));
    structure.fields.push(plain(InType::UnicodeString));
    assert_eq!(size(vec![structure], PointerSize::Eight), None);
    assert_eq!(size(vec![plain(InType::Null)], PointerSize::Eight), None);
}

#[test]
fn a_length_alone_refers_to_a_number() {
    let bytes = Field { length: Length::Field("size".into()), ..bare("bytes", InType::Binary) };
    let size = bare("size", InType::UInt8);
    let payload = decode(vec![size, bytes], &[2, 7, 8]);
    assert_eq!(payload.error, None);
    assert_eq!(payload.fields[1].1, Value::Binary(vec![7, 8]));
}

#[test]
fn a_map_names_a_number_by_its_presentation() {
    use Presentation::{Default, Signed, Unsigned};

    let map =
        ValueMap { bits: false, entries: vec![(u32::MAX, "Unknown".into()), (1, "One".into())] };
    let named = |in_type, out_type, data: &[u8]| {
        let mut field = field("f", in_type, out_type);
        field.map = Some(Arc::new(map.clone()));
        decode(vec![field], data).fields[0].1.clone()
    };
    let expected = |value, signed| Value::Named { value, signed, name: "Unknown".into() };
    let minus_one = expected(u64::MAX, true);
    assert_eq!(named(InType::UInt16, Signed, &[0xFF; 2]), minus_one);
    assert_eq!(named(InType::Int16, Default, &[0xFF; 2]), minus_one);
    assert_eq!(named(InType::UInt16, Unsigned, &[0xFF; 2]), Value::UInt(0xFFFF));
    assert_eq!(named(InType::Int16, Unsigned, &[0xFF; 2]), Value::UInt(0xFFFF));
    assert_eq!(named(InType::Int32, Unsigned, &[0xFF; 4]), expected(0xFFFF_FFFF, false));
}

#[test]
fn text_beyond_ascii_is_decoded_by_both_bytes() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    for expected in ["Ł", "é", "Ł\u{e9}a", "\u{100}", "\u{1F600}"] {
        let found = plain(InType::UnicodeString, &[utf16(expected), vec![0, 0]].concat());
        assert_eq!(found, text(expected));
    }
}
