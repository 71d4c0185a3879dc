//! Records of every kernel event, class and version, with their expected values.

use std::net::{Ipv4Addr, Ipv6Addr};

use etl_file::decode::{Fields, Sid, Value};
use etl_file::internals::kernel::{self, Class, Field, Type};
use etl_file::write::{ClassicRecord, KernelForm, KernelRecord, WppRecord};
use etl_file::{FileTime, Guid, PointerSize};

/// The name of a generated record, for messages.
pub type Name = String;

/// Returns the hook of an event, if its class has hooks.
pub fn hook_of(class: &Class, opcode: u8) -> Option<u16> {
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
                        let record = match hook_of(class, event.opcode) {
                            Some(hook) => KernelRecord {
                                form: form(records.len()),
                                pointer_size,
                                hook,
                                version,
                                thread_id: 0x44,
                                process_id: 0x55,
                                timestamp: 1000,
                                payload,
                                ..KernelRecord::default()
                            }
                            .encode(),
                            None => ClassicRecord {
                                pointer_size,
                                class: class.guid,
                                opcode: event.opcode,
                                version: version.into(),
                                thread_id: 0x44,
                                process_id: 0x55,
                                timestamp: 1000,
                                payload,
                                ..ClassicRecord::default()
                            }
                            .encode(),
                        };
                        records.push((name, record.unwrap()));
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
        let before = out.len();
        let value = append(field.kind, n, pointer_size, &mut out);
        assert!(out.len() > before, "no field is empty");
        if field.kind == Type::Guids {
            // The number before the GUIDs is a count of one.
            out[before - 4..before].copy_from_slice(&1_u32.to_le_bytes());
            values.last_mut().unwrap().1 = Value::UInt(1);
        }
        if field.kind == Type::Compressed {
            // The number before the string is its size.
            out[before - 4..before].copy_from_slice(&4_u32.to_le_bytes());
            values.last_mut().unwrap().1 = Value::UInt(4);
        }
        values.push((field.name.clone(), value));
        if field.name.ends_with("FiltersCount") || &*field.name == "CounterCount" {
            // The number counts the strings of a later field, which has two.
            out[before..].copy_from_slice(&2_u32.to_le_bytes());
            values.last_mut().unwrap().1 = Value::UInt(2);
        }
    }
    (out, values)
}

#[expect(clippy::too_many_lines, reason = "there is one arm for each type")]
fn append(kind: Type, n: u8, pointer_size: PointerSize, out: &mut Vec<u8>) -> Value {
    let small = u32::from(n) + 0x0102_0300;
    let large = u64::from(small) << 32 | 0x0506_0708;
    let pointer = match pointer_size {
        PointerSize::Four => u64::from(small),
        PointerSize::Eight => 0xFFFF_F800_0000_1000 + (u64::from(n) << 16),
    };
    let wide = &pointer.to_le_bytes()[..pointer_size.bytes()];
    match kind {
        Type::U8 => {
            out.push(n);
            Value::UInt(n.into())
        }
        Type::I8 => {
            out.push(n.wrapping_neg());
            Value::Int(-i64::from(n))
        }
        Type::U16 => {
            out.extend([n, 1]);
            Value::UInt(0x100 + u64::from(n))
        }
        Type::I16 => {
            out.extend((-i16::from(n)).to_le_bytes());
            Value::Int(-i64::from(n))
        }
        Type::U32 | Type::Hex32 | Type::Process | Type::Thread | Type::Status => {
            out.extend(small.to_le_bytes());
            match kind {
                Type::U32 => Value::UInt(small.into()),
                Type::Hex32 => Value::Hex(small.into()),
                Type::Process => Value::ProcessId(small.into()),
                Type::Thread => Value::ThreadId(small.into()),
                _ => Value::NtStatus(small),
            }
        }
        Type::I32 => {
            out.extend((-i32::from(n)).to_le_bytes());
            Value::Int(-i64::from(n))
        }
        Type::U64 | Type::Hex64 | Type::I64 | Type::Ticks | Type::TickDuration | Type::FileTime => {
            out.extend(large.to_le_bytes());
            let signed = i64::try_from(large).unwrap();
            match kind {
                Type::U64 | Type::TickDuration => Value::UInt(large),
                Type::Hex64 => Value::Hex(large),
                Type::FileTime => Value::FileTime(FileTime::from_raw(signed)),
                _ => Value::Int(signed),
            }
        }
        Type::Pointer | Type::Size | Type::WideProcess | Type::WideThread => {
            out.extend(wide);
            match kind {
                Type::Pointer => Value::Pointer(pointer),
                Type::Size => Value::UInt(pointer),
                Type::WideProcess => Value::ProcessId(pointer),
                _ => Value::ThreadId(pointer),
            }
        }
        Type::WideStatus => {
            out.extend(wide);
            Value::NtStatus(u32::try_from(pointer & 0xFFFF_FFFF).unwrap())
        }
        Type::Guid => {
            out.extend([n; 16]);
            Value::Guid(Guid::from_bytes([n; 16]))
        }
        Type::Sid => {
            out.extend(vec![0xAB; 2 * pointer_size.bytes()]);
            out.extend([1, 2, 0, 0, 0, 0, 0, 5, n, 0, 0, 0, 7, 0, 0, 0]);
            Value::Sid(Sid { revision: 1, authority: 5, subauthorities: vec![n.into(), 7] })
        }
        Type::Ansi => {
            let text = format!("ansi-{n}");
            out.extend(text.as_bytes());
            out.push(0);
            Value::Text(text)
        }
        Type::Utf16 => {
            let text = format!("w\u{e9}-{n}");
            out.extend(utf16(&text));
            Value::Text(text)
        }
        Type::Texts(_) => {
            let texts = ["one", "two"].map(|text| format!("{text}-{n}"));
            for text in &texts {
                out.extend(utf16(text));
            }
            Value::Array(texts.map(Value::Text).into())
        }
        Type::Units(units) => {
            let text = format!("{}", n % 10);
            let end = out.len() + 2 * usize::from(units);
            out.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
            out.resize(end, 0);
            Value::Text(text)
        }
        Type::Bytes(count) => {
            let bytes = vec![n; count.into()];
            out.extend(&bytes);
            Value::Binary(bytes)
        }
        Type::F32 => {
            out.extend(f32::from(n).to_le_bytes());
            Value::Float(n.into())
        }
        Type::F64 => {
            out.extend(f64::from(n).to_le_bytes());
            Value::Double(n.into())
        }
        Type::Bool => {
            out.extend([n, 0, 0, 0]);
            Value::Bool(true)
        }
        Type::CountedAnsi => {
            out.extend([2, 0, b'c', b'a']);
            Value::Text("ca".to_owned())
        }
        Type::CountedUtf16 => {
            out.extend([4, 0, b'c', 0, b'w', 0]);
            Value::Text("cw".to_owned())
        }
        Type::Hardware(count) => {
            out.extend(vec![n; count.into()]);
            Value::Text(vec![format!("{n:02x}"); count.into()].join(":"))
        }
        Type::Compressed => {
            // The chunk is not compressed.
            out.extend([3, 0x30, b'a', 0, b'b', 0]);
            Value::Text("ab".to_owned())
        }
        Type::Rest => {
            out.extend([n; 5]);
            Value::Binary(vec![n; 5])
        }
        Type::Ipv4 => {
            out.extend([10, 0, 0, n]);
            Value::Ipv4(Ipv4Addr::new(10, 0, 0, n))
        }
        Type::Ipv6 => {
            out.extend([n; 16]);
            Value::Ipv6(Ipv6Addr::from([n; 16]))
        }
        Type::Port => {
            out.extend([0x12, n]);
            Value::Port(0x1200 + u16::from(n))
        }
        Type::Pointers => {
            out.extend(wide);
            out.extend(wide);
            Value::Array(vec![Value::Pointer(pointer); 2])
        }
        Type::TicksList => {
            out.extend(large.to_le_bytes());
            Value::Array(vec![Value::Int(i64::try_from(large).unwrap())])
        }
        Type::Guids => {
            out.extend([n; 16]);
            Value::Array(vec![Value::Guid(Guid::from_bytes([n; 16]))])
        }
    }
}

/// Returns a NUL-terminated UTF-16 string.
pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
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
