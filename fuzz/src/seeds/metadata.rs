//! Event metadata and provider traits.

use etl_file::{EventRecord, ext_type};
use etl_fixtures::{schema_events, trace};

use super::seed::Seed;

/// Returns metadata or traits with their size in the first two bytes.
fn sized(mut blob: Vec<u8>) -> Vec<u8> {
    let size = u16::try_from(blob.len()).expect("metadata is small");
    blob[..2].copy_from_slice(&size.to_le_bytes());
    blob
}

pub fn traits() -> Vec<Seed> {
    let group = trace::traits("Contoso.Sample", Some(trace::GROUP));
    let mut more = group.clone();
    more.extend([0x13, 0, 2]);
    more.extend([0xDE; 16]);
    more.extend(*b"\x06\0\x80lab");
    vec![
        Seed::new("name", trace::traits("Contoso.Sample", None)),
        Seed::new("group", group),
        Seed::new("decode_guid_and_custom", sized(more)),
    ]
}

/// Event metadata: a scalar with an out type, both kinds of arrays, and a structure.
pub const ARRAYS_AND_STRUCTURES: &[u8] = b"\x2E\0\0Evt\0count\0\x08status\0\x88\x0Edata\0\x44\
    S\0\x98\x02a\0\x07b\0\x16fix\0\x26\x03\0";
/// The user data for [`ARRAYS_AND_STRUCTURES`].
pub const THEIR_DATA: &[u8] =
    b"\x01\0\0\0\x22\0\0\xC0\x02\0xy\xFF\xFF\xFF\xFF\x04\0h\0i\0\x01\0\x02\0\x03\0";

/// Returns event metadata with event and field tags, and a field with a provider-defined encoding.
pub fn tags_and_custom() -> Vec<u8> {
    sized(b"\0\0\x81\x01E\0f\0\x88\x84\x05g\0\x68\x02\0xy".to_vec())
}

/// Returns event metadata with a field of each type except structures.
pub fn every_type() -> Vec<u8> {
    let mut blob = b"\0\0\0T\0".to_vec();
    for code in (0..26).filter(|code| *code != 24) {
        blob.extend([b'a' + code, 0, code]);
    }
    sized(blob)
}

/// Returns user data for [`every_type`]: two strings and zeros.
pub fn data_of_every_type() -> Vec<u8> {
    let mut data = b"a\0\0\0b\0".to_vec();
    data.extend([0; 200]);
    data
}

/// The array flags of event metadata: the count is in the metadata, or precedes the array in the
/// data.
const FIXED: u8 = 0x20;
const VARIABLE: u8 = 0x40;
/// The flag that an out type follows the in type.
const CHAIN: u8 = 0x80;

/// Returns event metadata with a field for each presentation of each type, and user data for it.
pub fn every_out_type() -> (Vec<u8>, Vec<u8>) {
    let mut blob = b"\0\0\0O\0".to_vec();
    let mut data = Vec::new();
    let mut put = |in_type: u8, out_type: u8, bytes: &[u8]| {
        let count: &[u8] = if in_type & FIXED == 0 { &[] } else { &[2, 0] };
        blob.extend([b'o', 0, in_type | CHAIN, out_type]);
        blob.extend(count);
        data.extend(bytes);
    };
    for out_type in (0..20).chain(33..40) {
        put(8, out_type, &[1, 2, 0, 0xC0]); // UINT32
    }
    for out_type in [2, 3, 7, 17] {
        put(6, out_type, &[b'p', 0]); // UINT16
        put(3, out_type, &[0xFE]); // INT8
    }
    for out_type in [4, 14, 16, 37] {
        put(10, out_type, &[0, 1, 2, 3, 4, 5, 0xD8, 1]); // UINT64
    }
    // Arrays of characters.
    for out_type in [2, 11, 12, 35] {
        put(4 | VARIABLE, out_type, &[2, 0, 0xC3, 0xA9]);
    }
    put(6 | FIXED, 2, b"h\0i\0");
    put(4 | FIXED, 2, b"\xE9t");
    // Addresses: IPv6, sockets of both families, and bytes that are not addresses.
    let ipv6 = [16, 0, 0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    put(14, 9, &ipv6);
    put(25, 9, &[1, 0, 7]);
    let socket = [16, 0, 2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    put(25, 10, &socket);
    let mut socket = vec![28, 0, 23, 0, 1, 0xBB, 0, 0, 0, 0];
    socket.extend(&ipv6[2..]);
    socket.extend([0; 4]);
    put(25, 10, &socket);
    put(25, 10, &[2, 0, 2, 0]);
    for out_type in [2, 11, 12, 35, 36] {
        put(25, out_type, &[2, 0, b'{', b'}']);
    }
    (sized(blob), data)
}

/// Returns metadata of structures nested in arrays, which contain arrays and empty values.
pub fn nested() -> (Vec<u8>, Vec<u8>) {
    let blob = b"\0\0\0N\0outer\0\xD8\x03inner\0\xB8\x02\x02\0n\0\x04t\0\x02list\0\x46none\0\0\
        same\0\x08same\0\x08same#2\0\x08";
    let mut data = vec![2, 0];
    data.extend(*b"\x01a\0\x02b\0\x01\0\x05\0");
    data.extend(*b"\x03\0\x04\0\0\0");
    data.extend([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    (sized(blob.to_vec()), data)
}

/// The security identifier of the local Administrators group.
pub const SID: &[u8] = &[1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0];

/// Returns metadata of values that include their own size, and user data for them.
pub fn sized_values() -> (Vec<u8>, Vec<u8>) {
    let blob = b"\0\0\0V\0sid\0\x13counted\0\x16ansi\0\x17bytes\0\x19time\0\x11system\0\x12\
        guid\0\x0Fpointer\0\x10float\0\x0Bbool\0\x0Dend\0\x01";
    let mut data = SID.to_vec();
    data.extend(*b"\x04\0h\0i\0\x02\0hi\x03\0\x01\x02\x03");
    data.extend(trace::START.raw().to_le_bytes());
    for part in [2026_u16, 1, 5, 2, 3, 4, 5, 678] {
        data.extend(part.to_le_bytes());
    }
    data.extend(trace::GROUP.to_bytes());
    data.extend([0x10; 8]);
    data.extend(1.5_f32.to_le_bytes());
    data.extend([1, 0, 0, 0]);
    // A string that ends at the end of the data.
    data.extend(*b"e\0\x3D\xD8\x00\xDE");
    (sized(blob.to_vec()), data)
}

/// Returns metadata with repeated names and overlong tags, and user data with strings that contain
/// terminal control characters, wide characters or combining characters, or are long.
pub fn odd_text() -> (Vec<u8>, Vec<u8>) {
    let blob =
        b"\0\0\x81\x82\x83\x84\x85\x06\x1B[2J\0n\0\x01n\0\x01n#2\0\x01\xFF\0\x01n\0\x02n\0\x02";
    let texts = [
        "\u{1b}]0;title\u{7}\r\n",
        "\u{202e}reversed\u{200b}\u{feff}",
        "\u{6f22}\u{5b57} \u{1f468}\u{200d}\u{1f469} e\u{301} \u{915}\u{94d}\u{937} \u{1f1e9}\u{1f1ea}",
        "</script><!-- \"quoted\", =1+1",
    ];
    let mut data: Vec<u8> = texts
        .iter()
        .flat_map(|text| text.encode_utf16().chain([0]))
        .flat_map(u16::to_le_bytes)
        .collect();
    data.extend([&[b'x'; 500][..], &[0], b"\xFC\x80\0"].concat());
    (sized(blob.to_vec()), data)
}

/// Returns metadata of numbers, and user data with the minimum and maximum values of their types.
pub fn odd_numbers() -> (Vec<u8>, Vec<u8>) {
    let doubles = [
        0.0,
        -0.0,
        0.1,
        1e300,
        -1.5e-300,
        5e-324,
        123_456_789.0,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
    ];
    let floats = [f32::MIN_POSITIVE, f32::MAX, 16_777_216.0, f32::NEG_INFINITY];
    let mut blob = b"\0\0\0F\0".to_vec();
    blob.extend(*b"d\0\x2C\x0A\0f\0\x2B\x04\0i\0\x29\x02\0u\0\x2A\x02\0time\0\x31\x02\0");
    blob.extend(*b"system\0\x12sid\0\x13never\0\x10");
    let mut data: Vec<u8> = doubles.into_iter().flat_map(f64::to_le_bytes).collect();
    data.extend(floats.into_iter().flat_map(f32::to_le_bytes));
    for number in [i64::MIN, i64::MAX, -1, 0, i64::MAX, -1] {
        data.extend(number.to_le_bytes());
    }
    // An invalid date, and an authority of more than 32 bits.
    data.extend([0xFF; 16]);
    data.extend([1, 1, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0]);
    data.extend([0xFF; 8]);
    (sized(blob), data)
}

/// Returns, for each kind of mismatch, the metadata of a field and data that does not fit the
/// field's type.
pub fn unsuited() -> [(&'static str, Vec<u8>, &'static [u8]); 5] {
    let one = |field: &[u8]| sized([b"\0\0\0U\0", field].concat());
    [
        ("too_short", one(b"n\0\x08"), &[1, 2]),
        ("unknown_type", one(b"n\0\x1A"), &[1, 2]),
        ("odd_length", one(b"n\0\x16"), &[1, 0, 1]),
        ("long_sid", one(b"n\0\x13"), &[1, 16, 0, 0, 0, 0, 0, 5]),
        ("without_data", one(b"n\0\x20\xFF\xFFm\0\x20\xFF\xFF"), &[]),
    ]
}

pub fn tracelogging() -> Vec<Seed> {
    let event = trace::trace_logging_event(7, 0);
    let item = |event: &EventRecord| event.item(ext_type::EVENT_SCHEMA_TL).map(<[u8]>::to_vec);
    let metadata = item(&event).expect("it describes itself");
    let seed = |name, metadata: &[u8], data: &[u8]| Seed::new(name, [metadata, data].concat());
    let pair = |name, (metadata, data): (Vec<u8>, Vec<u8>)| seed(name, &metadata, &data);
    let mut seeds = vec![
        seed("fixture", &metadata, &event.user_data),
        seed("arrays_and_structures", ARRAYS_AND_STRUCTURES, THEIR_DATA),
        seed("tags_and_custom", &tags_and_custom(), &[1, 2, 3, 4]),
        seed("every_type", &every_type(), &data_of_every_type()),
        pair("every_out_type", every_out_type()),
        pair("nested", nested()),
        pair("sized_values", sized_values()),
        pair("odd_text", odd_text()),
        pair("odd_numbers", odd_numbers()),
    ];
    seeds.extend(unsuited().map(|(name, metadata, data)| seed(name, &metadata, data)));
    seeds
}

/// Returns inputs for the `schemas` target: lists of kinds, sizes and payloads.
pub fn schemas() -> Vec<Seed> {
    let list = |name, parts: &[(u8, Vec<u8>)]| {
        let mut bytes = Vec::new();
        for (kind, payload) in parts {
            bytes.push(*kind);
            let size = u16::try_from(payload.len()).expect("it is small");
            bytes.extend(size.to_le_bytes());
            bytes.extend(payload);
        }
        Seed::new(name, bytes)
    };
    let event = schema_events::sample().encode();
    let [kinds, flags] = schema_events::sample_maps();
    let changed = |at: usize, bytes: &[u8]| {
        let mut event = event.clone();
        event[at..at + bytes.len()].copy_from_slice(bytes);
        event
    };
    let xml = concat!(
        "<instrumentationManifest xmlns=\"http://schemas.microsoft.com/win/2004/08/events\">",
        "<instrumentation><events><provider name=\"Source\" ",
        "guid=\"{1d5f8a60-7d1b-4c35-9e02-51a60b7c0002}\"><events><event value=\"1\"/></events>",
        "</provider></events></instrumentation></instrumentationManifest>",
    );
    let chunk = |xml: &str, total, number| {
        let provider = schema_events::PROVIDER;
        let record = schema_events::chunk(provider, 1, xml.as_bytes(), total, number);
        (0x80, record.user_data)
    };
    let (first, second) = xml.split_at(100);
    vec![
        list("event_and_maps", &[(33, kinds.clone()), (32, event.clone()), (33, flags)]),
        list("map_alone", &[(33, kinds[16..].to_vec())]),
        list("manifest_in_chunks", &[chunk(second, 2, 1), chunk(first, 2, 0)]),
        list("no_manifest", &[chunk("<a/", 1, 0)]),
        list("cut", &[(32, event[..200].to_vec())]),
        list("another_source", &[(32, changed(48, &[1]))]),
        // The structure contains itself.
        list("nested_without_end", &[(32, changed(112 + 7 * 24 + 8, &[7, 0, 2, 0]))]),
    ]
}
