//! Records of every kernel event, class and version, with their expected values.

use std::net::{Ipv4Addr, Ipv6Addr};

use etl_file::decode::{Fields, Sid, Value};
use etl_file::internals::kernel::{self, Class, Field, Type};
use etl_file::write::{ClassicRecord, KernelForm, KernelRecord, WppRecord};
use etl_file::{FileTime, Guid, PointerSize};

/// The name of a generated record, for messages.
pub type Name = String;

/// Returns the hook of an event, if its class has hooks.
fn hook_of(class: &Class, opcode: u8) -> Option<u16> {
    let group = class.group?;
    Some(if &*class.name == "Image" && opcode == 0x0a {
        0x030a
    } else {
        u16::from_le_bytes([opcode, group])
    })
}

/// Returns a record of every event, version and pointer size in system records, and records of a
/// few classic events and WPP messages.
pub fn generated() -> Vec<(Name, Vec<u8>)> {
    let mut records = Vec::new();
    for class in kernel::classes() {
        for event in &class.events {
            for layout in &event.layouts {
                // A layout of all versions, 0 to 255, needs no record of each.
                let versions = layout.first..=layout.last;
                for version in versions.filter(|one| *one < 8 || *one == layout.last) {
                    for pointer_size in [PointerSize::Eight, PointerSize::Four] {
                        let name =
                            format!("{}/{} v{version} {pointer_size:?}", class.name, event.name);
                        let (payload, _) = payload(&layout.fields, pointer_size);
                        let record = KernelRecord {
                            form: form(records.len()),
                            pointer_size,
                            version,
                            thread_id: 0x44,
                            process_id: 0x55,
                            timestamp: 1000,
                            payload,
                            ..KernelRecord::default()
                        };
                        records.push((name, encoded(class, event.opcode, record)));
                    }
                }
            }
        }
    }
    let wpp = WppRecord {
        message: 10,
        sequence: Some(1),
        guid: Some(Guid::from_u128(0x77)),
        timestamp: Some(1000),
        thread_and_process: Some((0x44, 0x55)),
        arguments: b"text\0".to_vec(),
        ..WppRecord::default()
    };
    records.push(("WPP".to_owned(), wpp.encode().unwrap()));
    records
}

/// Returns an event's record with the values of a kernel record: a kernel record if its class has
/// hooks, otherwise a classic one.
pub fn encoded(class: &Class, opcode: u8, record: KernelRecord) -> Vec<u8> {
    let encoded = match hook_of(class, opcode) {
        Some(hook) => KernelRecord { hook, ..record }.encode(),
        None => ClassicRecord {
            pointer_size: record.pointer_size,
            class: class.guid,
            opcode,
            version: record.version.into(),
            thread_id: record.thread_id,
            process_id: record.process_id,
            timestamp: record.timestamp,
            payload: record.payload,
            ..ClassicRecord::default()
        }
        .encode(),
    };
    encoded.unwrap()
}

/// Returns the record forms in turn.
const fn form(n: usize) -> KernelForm {
    match n % 3 {
        0 => KernelForm::System,
        1 => KernelForm::Compact,
        _ => KernelForm::PerfInfo,
    }
}

/// Returns a payload and the values of its fields. No two fields have the same bytes.
pub fn payload(fields: &[Field], pointer_size: PointerSize) -> (Vec<u8>, Fields) {
    let mut out = Vec::new();
    let mut values = Fields::new();
    for (n, field) in fields.iter().enumerate() {
        let n = u8::try_from(n + 1).unwrap();
        let (bytes, value) = sample(field.kind, n, pointer_size);
        assert!(!bytes.is_empty(), "no field is empty");
        // The number before GUIDs is their count, and the number before a compressed string is its
        // size.
        match field.kind {
            Type::Guids => put_last(1, &mut out, &mut values),
            Type::Compressed => put_last(4, &mut out, &mut values),
            _ => {}
        }
        out.extend(bytes);
        values.push((field.name.clone(), value));
        if field.name.ends_with("FiltersCount") || &*field.name == "CounterCount" {
            // The number counts the strings of a later field, which has two.
            put_last(2, &mut out, &mut values);
        }
    }
    (out, values)
}

/// Replaces the last field, a 32-bit number.
fn put_last(number: u32, out: &mut Vec<u8>, values: &mut Fields) {
    out.truncate(out.len() - 4);
    out.extend(number.to_le_bytes());
    values.last_mut().unwrap().1 = Value::UInt(number.into());
}

/// Returns the bytes of a field and its value.
fn sample(kind: Type, n: u8, pointer_size: PointerSize) -> (Vec<u8>, Value) {
    let small = u32::from(n) + 0x0102_0300;
    let large = u64::from(small) << 32 | 0x0506_0708;
    let pointer = match pointer_size {
        PointerSize::Four => u64::from(small),
        PointerSize::Eight => 0xFFFF_F800_0000_1000 + (u64::from(n) << 16),
    };
    let signed = i64::try_from(large).unwrap();
    let negative = Value::Int(-i64::from(n));
    let guid = Value::Guid(Guid::from_bytes([n; 16]));
    let four = small.to_le_bytes().to_vec();
    let eight = large.to_le_bytes().to_vec();
    let wide = pointer.to_le_bytes()[..pointer_size.bytes()].to_vec();
    match kind {
        Type::U8 => (vec![n], Value::UInt(n.into())),
        Type::I8 => (vec![n.wrapping_neg()], negative),
        Type::U16 => (vec![n, 1], Value::UInt(0x100 + u64::from(n))),
        Type::I16 => ((-i16::from(n)).to_le_bytes().to_vec(), negative),
        Type::I32 => ((-i32::from(n)).to_le_bytes().to_vec(), negative),
        Type::U32 => (four, Value::UInt(small.into())),
        Type::Hex32 => (four, Value::Hex(small.into())),
        Type::Process => (four, Value::ProcessId(small.into())),
        Type::Thread => (four, Value::ThreadId(small.into())),
        Type::Status => (four, Value::NtStatus(small)),
        Type::U64 | Type::TickDuration => (eight, Value::UInt(large)),
        Type::I64 | Type::Ticks => (eight, Value::Int(signed)),
        Type::Hex64 => (eight, Value::Hex(large)),
        Type::FileTime => (eight, Value::FileTime(FileTime::from_raw(signed))),
        Type::Pointer => (wide, Value::Pointer(pointer)),
        Type::Pointers => (wide.repeat(2), Value::Array(vec![Value::Pointer(pointer); 2])),
        Type::Size => (wide, Value::UInt(pointer)),
        Type::WideProcess => (wide, Value::ProcessId(pointer)),
        Type::WideThread => (wide, Value::ThreadId(pointer)),
        Type::WideStatus => (wide, Value::NtStatus(u32::try_from(pointer & 0xFFFF_FFFF).unwrap())),
        Type::TicksList => (eight, Value::Array(vec![Value::Int(signed)])),
        Type::F32 => (f32::from(n).to_le_bytes().to_vec(), Value::Float(n.into())),
        Type::F64 => (f64::from(n).to_le_bytes().to_vec(), Value::Double(n.into())),
        Type::Bool => (vec![n, 0, 0, 0], Value::Bool(true)),
        Type::Guid => (vec![n; 16], guid),
        Type::Guids => (vec![n; 16], Value::Array(vec![guid])),
        Type::Sid => {
            let sid = [1, 2, 0, 0, 0, 0, 0, 5, n, 0, 0, 0, 7, 0, 0, 0];
            let value = Sid { revision: 1, authority: 5, subauthorities: vec![n.into(), 7] };
            ([&vec![0xAB; 2 * pointer_size.bytes()][..], &sid].concat(), Value::Sid(value))
        }
        Type::Ansi => (format!("ansi-{n}\0").into_bytes(), Value::Text(format!("ansi-{n}"))),
        Type::Utf16 => {
            let text = format!("w\u{e9}-{n}");
            (utf16(&text), Value::Text(text))
        }
        Type::Texts(_) => {
            let texts = ["one", "two"].map(|text| format!("{text}-{n}"));
            let bytes = texts.each_ref().map(|text| utf16(text)).concat();
            (bytes, Value::Array(texts.map(Value::Text).into()))
        }
        Type::Units(units) => {
            let text = (n % 10).to_string();
            let mut bytes = utf16(&text);
            bytes.resize(2 * usize::from(units), 0);
            (bytes, Value::Text(text))
        }
        Type::CountedAnsi => (vec![2, 0, b'c', b'a'], Value::Text("ca".to_owned())),
        Type::CountedUtf16 => (vec![4, 0, b'c', 0, b'w', 0], Value::Text("cw".to_owned())),
        Type::Bytes(count) => (vec![n; count.into()], Value::Binary(vec![n; count.into()])),
        Type::Hardware(count) => {
            let digits = vec![format!("{n:02x}"); count.into()];
            (vec![n; count.into()], Value::Text(digits.join(":")))
        }
        // The chunk is not compressed.
        Type::Compressed => (vec![3, 0x30, b'a', 0, b'b', 0], Value::Text("ab".to_owned())),
        Type::Rest => (vec![n; 5], Value::Binary(vec![n; 5])),
        Type::Ipv4 => (vec![10, 0, 0, n], Value::Ipv4(Ipv4Addr::new(10, 0, 0, n))),
        Type::Ipv6 => (vec![n; 16], Value::Ipv6(Ipv6Addr::from([n; 16]))),
        Type::Port => (vec![0x12, n], Value::Port(0x1200 + u16::from(n))),
    }
}

/// Returns a NUL-terminated UTF-16 string.
pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// Returns an event of the thread 9 in the process 7.
pub fn event(hook: u16, version: u8, timestamp: i64, payload: Vec<u8>) -> KernelRecord {
    let (thread_id, process_id) = (9, 7);
    let none = KernelRecord::default();
    KernelRecord { hook, version, timestamp, thread_id, process_id, payload, ..none }
}

/// Returns a performance event, whose header contains no thread.
pub fn perfinfo(hook: u16, timestamp: i64, payload: Vec<u8>) -> KernelRecord {
    let form = KernelForm::PerfInfo;
    KernelRecord { form, hook, version: 2, timestamp, payload, ..KernelRecord::default() }
}

/// Returns the payload of an event of the class Process, version 2.
pub fn process(id: u32, image: &str) -> Vec<u8> {
    let command_line = utf16(&format!("{image} /run"));
    [&[0; 8][..], &id.to_le_bytes(), &[0; 16], image.as_bytes(), &[0], &command_line].concat()
}

/// Returns the payload of an event of the class Thread, version 3.
pub fn thread(process: u32, id: u32, name: &str) -> Vec<u8> {
    [&process.to_le_bytes()[..], &id.to_le_bytes(), &[0; 64], &utf16(name)].concat()
}

/// Returns the payload of an event of the class Image, version 1, for an image of 64 KiB.
pub fn image(base: u64, process: u32, path: &str) -> Vec<u8> {
    let size = 0x10_000_u64.to_le_bytes();
    [&base.to_le_bytes()[..], &size, &process.to_le_bytes(), &utf16(path)].concat()
}

/// Returns the payload of a context switch to a thread, version 2.
pub fn switch(to: u32) -> Vec<u8> {
    [&to.to_le_bytes()[..], &[0; 20]].concat()
}

/// Returns the payload of a record that contains another event's stack, or the stack's key.
pub fn stack(time: i64, process: u32, thread: u32, frames: &[u64]) -> Vec<u8> {
    let frames: Vec<u8> = frames.iter().flat_map(|frame| frame.to_le_bytes()).collect();
    [&time.to_le_bytes()[..], &process.to_le_bytes(), &thread.to_le_bytes(), &frames].concat()
}

/// Returns the records of a file except its header event. Relies only on the records' sizes.
pub fn records_of(file: &[u8]) -> Vec<&[u8]> {
    let u16_at =
        |bytes: &[u8], at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let u32_at = |bytes: &[u8], at: usize| u16_at(bytes, at) | u16_at(bytes, at + 2) << 16;
    let size = u32_at(file, 0);
    let mut records = Vec::new();
    for buffer in file.chunks(size) {
        let used = u32_at(buffer, 0x30);
        let mut at = 72;
        while at < used {
            let kernel = matches!(buffer[at + 2], 1..=4 | 0x10 | 0x11);
            let size = u16_at(buffer, at + if kernel { 4 } else { 0 });
            records.push(&buffer[at..at + size]);
            at += size.next_multiple_of(8);
        }
    }
    records.split_off(1)
}

/// Returns the payload of a network adapter's event, a `MIB_IF_ROW2`. The current address is
/// 02:00:00:00:00:01, and the permanent address is 02:00:00:00:00:02.
pub fn network_interface() -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        bytes.resize(2 * 257, 0);
        bytes
    };
    let address = |last| {
        let mut bytes = vec![2, 0, 0, 0, 0, last];
        bytes.resize(32, 0);
        bytes
    };
    let mut row = 0x6_0000_0000_0000_u64.to_le_bytes().to_vec();
    row.extend(20_u32.to_le_bytes());
    row.extend([0x11; 16]);
    row.extend([text("Ethernet"), text("Example GbE Adapter")].concat());
    row.extend(6_u32.to_le_bytes());
    row.extend([address(1), address(2)].concat());
    row.extend([1500_u32, 6].into_iter().flat_map(u32::to_le_bytes));
    row.resize(1192, 0);
    row.extend(1_000_000_000_u64.to_le_bytes());
    row.resize(1344, 0);
    row.extend(77_u64.to_le_bytes());
    row
}
