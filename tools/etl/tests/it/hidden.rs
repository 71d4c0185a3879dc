//! Tests that no output has the addresses of network adapters.

use crate::page;
use crate::run::Folder;
use etl_file::write::ClassicRecord;
use etl_file::{EncodedRecord, EventRecord, ExtendedItem, Guid, LogFileHeader, ext_type};
use etl_fixtures::{kernel_records, trace};

/// The address in an interface's GUID, in a field, and in a device's instance id.
const ADDRESSES: [[u8; 6]; 3] = [
    [0x02, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE],
    [0x06, 0x11, 0x22, 0x33, 0x44, 0x5A],
    [0x0A, 0x36, 0x9F, 0x12, 0x34, 0x5B],
];
const OUTPUTS: [&[&str]; 6] = [
    &["--format", "table"],
    &["--format", "json"],
    &["--format", "csv"],
    &["--format", "csv", "--fields"],
    &["--format", "perfetto"],
    &["--format", "json", "--names", "--process", "7"],
];

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn digits(address: &[u8], separator: &str) -> String {
    let pairs: Vec<String> = address.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(separator)
}

/// Returns a trace with the addresses in records that describe adapters, and in other events.
fn file() -> Vec<u8> {
    let [of_guid, of_field, of_device] = ADDRESSES;
    let classic = |class: u128, opcode, version, payload| {
        let class = Guid::from_u128(class);
        let record = ClassicRecord { class, opcode, version, payload, ..ClassicRecord::default() };
        EncodedRecord::try_from(&record).unwrap()
    };
    let mut interface = kernel_records::network_interface();
    let guid: Guid = "a395e6eb-f383-11f0-9fc2-02aabbccddee".parse().unwrap();
    interface[12..28].copy_from_slice(&guid.to_bytes());
    let id = digits(&[&of_device[..3], &[0xFF, 0xFF], &of_device[3..], &[0]].concat(), "");
    let id = wide(&format!(r"PCI\VEN_8086&DEV_1533\{id}"));
    let device = [vec![0; 12], id, wide("Adapter"), wide("Name"), wide("Pdo")].concat();
    // `PhysAddress` is binary, and `Note` a string.
    let mut schema = b"\0\0\0E\0PhysAddress\0\x0ENote\0\x01".to_vec();
    schema[0] = u8::try_from(schema.len()).unwrap();
    let schema = ExtendedItem { ext_type: ext_type::EVENT_SCHEMA_TL, data: schema };
    let note = wide(&format!("{} {guid}", digits(&of_field, "-")));
    let described = EventRecord {
        process_id: 7,
        extended: vec![schema],
        user_data: [&[6, 0], &of_field[..], &note].concat(),
        ..EventRecord::default()
    };
    let mut activity = guid.to_bytes();
    activity[0] = 7;
    let undescribed = EventRecord {
        process_id: 7,
        provider: Guid::from_u128(5),
        activity_id: Guid::from_bytes(activity),
        user_data: [&[1][..], &of_guid, &[2], &of_device].concat(),
        ..EventRecord::default()
    };
    let string = EventRecord {
        process_id: 7,
        string_only: true,
        user_data: wide(&format!("up: {}", digits(&of_device, ":").to_lowercase())),
        ..EventRecord::default()
    };
    let event = |event: EventRecord| EncodedRecord::new(&event).unwrap();
    let records = [
        event(undescribed),
        event(string),
        classic(0x9b79_ee91_b5fd_41c0_a243_4248_e266_e9d0, 36, 0, interface),
        classic(0x01853a65_418f_4f36_aefc_dc0f1d2fd235, 22, 3, device),
        event(described),
    ];
    let header = LogFileHeader { buffer_size: 0x1_0000, ..LogFileHeader::default() };
    trace::of_records(header, 1000, (100..).zip(records))
}

/// Returns the forms of addresses that bytes contain.
fn found(bytes: &[u8]) -> Vec<String> {
    let upper = bytes.to_ascii_uppercase();
    let mut found = Vec::new();
    for address in ADDRESSES {
        let narrow = [
            digits(&address, ""),
            digits(&address, ":"),
            digits(&address, "-"),
            digits(&[&address[..3], &[0xFF, 0xFF], &address[3..]].concat(), ""),
        ];
        for text in narrow {
            let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            for form in [text.as_bytes(), &wide] {
                if upper.windows(form.len()).any(|window| window == form) {
                    found.push(format!("{text} in {} bytes", form.len()));
                }
            }
        }
        if bytes.windows(6).any(|window| window == address) {
            found.push(format!("{address:02x?}"));
        }
    }
    found
}

#[test]
fn no_output_has_the_address_of_an_adapter() {
    let folder = Folder::with("all.etl", file());
    let all = found(&folder.read("all.etl"));
    assert_eq!(all.len(), 7, "{all:?}");
    folder.etl(&["merge", "all.etl", "--out", "merged.etl"]).ok();
    folder.etl(&["merge", "all.etl", "--process", "7", "--out", "part.etl"]).ok();
    folder.etl(&["merge", "merged.etl", "--compress", "--out", "again.etl"]).ok();
    for file in ["merged.etl", "part.etl"] {
        assert_eq!(found(&folder.read(file)), [""; 0], "{file}");
    }
    for file in ["all.etl", "merged.etl", "part.etl", "again.etl"] {
        // What a merge hides is gone; what `dump` hides is hidden there, too.
        let more: &[&str] = if file == "all.etl" { &[] } else { &["--hardware-addresses"] };
        for output in OUTPUTS {
            let ran = folder.etl(&[&["dump", file], output, more].concat()).ok();
            assert_eq!(found(&ran.bytes), [""; 0], "{file} {output:?}");
            assert!(ran.bytes.len() > 100, "{file} {output:?}");
        }
        folder.etl(&["report", file, "--out", "page.html"]).ok();
        let html = folder.read("page.html");
        assert_eq!(found(&html), [""; 0], "{file}");
        assert_eq!(found(page::data(str::from_utf8(&html).unwrap()).as_bytes()), [""; 0], "{file}");
    }
    let shown = folder.etl(&["dump", "all.etl", "--format", "json", "--hardware-addresses"]).ok();
    assert!(found(&shown.bytes).len() >= 6, "{:?}", found(&shown.bytes));
    folder.etl(&["merge", "all.etl", "--hardware-addresses", "--out", "same.etl"]).ok();
    assert_eq!(found(&folder.read("same.etl")), all);
    // A UUID's time and the rest of a note stay.
    let lines = folder.etl(&["dump", "all.etl", "--format", "json"]).ok().lines();
    assert_eq!(lines[3]["fields"]["InterfaceGuid"], "a395e6eb-f383-11f0-9fc2-000000000000");
    let note = "00-00-00-00-00-00 a395e6eb-f383-11f0-9fc2-000000000000";
    assert_eq!(lines[5]["fields"]["Note"], note);
    assert_eq!(lines[5]["fields"]["PhysAddress"], "000000000000");
}
