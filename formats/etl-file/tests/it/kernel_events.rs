//! Decodes kernel events, classic events and WPP messages from our writer.

use etl_file::decode::{Problem, Value};
use etl_file::internals::kernel::{self, Form};
use etl_file::write::{AppendError, Buffer, ClassicRecord, KernelForm, KernelRecord, WppRecord};
use etl_file::{EncodedRecord, FileTime, Guid, PointerSize};
use etl_fixtures::kernel_records::{encoded, generated, payload, perfinfo, utf16};

fn decode_kernel(record: &KernelRecord) -> kernel::Record {
    kernel::decode(&record.encode().unwrap()).unwrap()
}

fn names(record: &kernel::Record) -> (Option<&str>, Option<&str>) {
    (record.class_name.as_deref(), record.event_name.as_deref())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn system(hook: u16, version: u8, payload: Vec<u8>) -> KernelRecord {
    KernelRecord {
        hook,
        version,
        thread_id: 0x44,
        process_id: 0x55,
        timestamp: 1234,
        kernel_time: 3,
        user_time: 4,
        payload,
        ..KernelRecord::default()
    }
}

#[test]
fn every_layout_consumes_its_records_exactly() {
    let mut count = 0;
    for class in kernel::classes() {
        for event in &class.events {
            for layout in &event.layouts {
                for version in layout.first..=layout.last {
                    for size in [PointerSize::Four, PointerSize::Eight] {
                        let (payload, expected) = payload(&layout.fields, size);
                        let what = format!("{}/{} v{version} {size:?}", class.name, event.name);
                        let record =
                            KernelRecord { pointer_size: size, ..system(0, version, payload) };
                        let bytes = encoded(class, event.opcode, record);
                        let decoded = kernel::decode(&bytes).unwrap();
                        assert_eq!(decoded.problems, [], "{what}");
                        assert_eq!(decoded.leftover, [0_u8; 0], "{what}");
                        assert_eq!(names(&decoded), (Some(&*class.name), Some(&*event.name)));
                        // The alternative layouts of a version can differ only in the form of a
                        // text.
                        assert_eq!(decoded.fields, expected, "{what}");
                        count += 1;
                    }
                }
            }
        }
    }
    assert!(count > 500, "{count} layouts");
}

// The bytes of this test are written by hand from the table in ETL-14.4.
#[test]
fn a_process_has_its_sid_and_names() {
    let mut payload = Vec::new();
    payload.extend(0xFFFF_8A81_1122_3344_u64.to_le_bytes());
    payload.extend([0x10, 0x27, 0, 0, 0x04, 0, 0, 0, 1, 0, 0, 0, 0x03, 1, 0, 0]);
    payload.extend(0x1AB0_0000_u64.to_le_bytes());
    payload.extend(0x8_u32.to_le_bytes());
    payload.extend([0xA0; 8]); // TOKEN_USER: address, attributes, padding
    payload.extend([0; 8]);
    payload.extend([1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0]);
    payload.extend(b"sample.exe\0");
    payload.extend(utf16("sample.exe /x"));
    payload.extend(utf16("Contoso.Sample_1.0"));
    payload.extend(utf16("App"));
    let decoded = decode_kernel(&system(0x0301, 4, payload.clone()));
    assert_eq!(names(&decoded), (Some("Process"), Some("Start")));
    assert_eq!(decoded.problems, []);
    let shown: Vec<String> =
        decoded.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        shown,
        [
            "UniqueProcessKey=0xffff8a8111223344", "ProcessId=10000", "ParentId=4", "SessionId=1",
            "ExitStatus=259", "DirectoryTableBase=0x1ab00000", "Flags=0x8", "UserSID=S-1-5-32-544",
            "ImageFileName=\"sample.exe\"", "CommandLine=\"sample.exe /x\"",
            "PackageFullName=\"Contoso.Sample_1.0\"", "ApplicationId=\"App\"",
        ]
    );
    // The header contains the creator.
    assert_eq!((decoded.process_id, decoded.thread_id), (Some(0x55), Some(0x44)));
    payload.extend(134_117_966_450_000_000_u64.to_le_bytes());
    let ended = decode_kernel(&system(0x0327, 5, payload));
    assert_eq!(ended.problems, []);
    let exit = ended.field("ExitTime").unwrap().to_string();
    assert_eq!(exit, "2026-01-02T03:04:05.0000000Z");
}

#[test]
fn a_process_without_a_sid_has_four_zero_bytes() {
    let mut payload = vec![0; 8 + 16];
    payload.extend(b"\0\0\0\0Idle\0\0\0");
    let decoded = decode_kernel(&system(0x0303, 2, payload));
    assert_eq!(decoded.problems, []);
    assert_eq!(decoded.field("UserSID"), Some(&Value::Null));
    assert_eq!(decoded.field("ImageFileName"), Some(&text("Idle")));
    assert_eq!(decoded.field("CommandLine"), Some(&text("")));
}

#[test]
fn an_address_with_a_low_half_of_zeros_is_still_a_token() {
    let mut payload = vec![0; 8 + 16];
    payload.extend(0xFFFF_8A81_0000_0000_u64.to_le_bytes());
    payload.extend([0; 8]);
    payload.extend([1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0]);
    payload.extend(b"services.exe\0\0\0");
    let decoded = decode_kernel(&system(0x0301, 2, payload));
    assert_eq!(decoded.problems, []);
    let sid = decoded.field("UserSID").unwrap().to_string();
    assert_eq!(sid, "S-1-5-18");
}

#[test]
fn a_thread_may_have_a_name_without_a_new_version() {
    let mut payload = vec![7, 0, 0, 0, 9, 0, 0, 0];
    payload.extend([0x11; 7 * 8]);
    payload.extend([1, 0, 0, 0, 8, 5, 2, 0]);
    let unnamed = decode_kernel(&system(0x0501, 3, payload.clone()));
    assert_eq!((unnamed.fields.len(), unnamed.problems.len()), (14, 0));
    payload.extend(utf16("worker"));
    let named = decode_kernel(&system(0x0501, 3, payload));
    assert_eq!((named.fields.len(), named.problems.len()), (15, 0));
    assert_eq!(named.field("ThreadName"), Some(&text("worker")));
    assert_eq!(named.field("BasePriority"), Some(&Value::UInt(8)));
}

#[test]
fn a_context_switch_names_its_thread_in_the_payload() {
    let payload =
        vec![0xD2, 4, 0, 0, 0x29, 9, 0, 0, 8, 0xFF, 1, 0, 15, 1, 5, 3, 7, 0, 0, 0, 0xEF, 0, 0, 0];
    let bytes = perfinfo(0x0524, 1234, payload).encode().unwrap();
    assert_eq!(bytes.len(), 16 + 24);
    let decoded = kernel::decode(&bytes).unwrap();
    assert_eq!(decoded.problems, []);
    assert_eq!((decoded.process_id, decoded.thread_id), (None, Some(1234)));
    assert_eq!(decoded.field("OldThreadPriority"), Some(&Value::Int(-1)));
    assert_eq!(decoded.field("OldThreadWaitReason"), Some(&Value::Int(15)));
    assert_eq!(decoded.header.timestamp, Some(1234));
}

#[test]
fn a_readied_thread_is_not_the_one_that_runs() {
    let decoded = decode_kernel(&perfinfo(0x0532, 5, vec![7, 0, 0, 0, 1, 0, 0, 0]));
    assert_eq!(decoded.thread_id, None);
    assert_eq!(decoded.field("TThreadId"), Some(&Value::ThreadId(7)));
    let payload = vec![0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0];
    let decoded = decode_kernel(&perfinfo(0x0f2e, 5, payload));
    assert_eq!(decoded.thread_id, Some(9));
}

#[test]
fn an_interrupt_has_its_vector_in_one_byte() {
    let mut payload = 1200_i64.to_le_bytes().to_vec();
    payload.extend(0xFFFF_F801_0000_1000_u64.to_le_bytes());
    payload.extend([1, 0x91, 0, 0]);
    let decoded = decode_kernel(&system(0x0f43, 2, payload));
    assert_eq!(decoded.problems, []);
    assert_eq!(decoded.field("InitialTime"), Some(&Value::Int(1200)));
    assert_eq!(decoded.field("Vector"), Some(&Value::UInt(0x91)));
}

#[test]
fn a_connection_has_addresses_and_ports_in_network_order() {
    let mut payload = vec![1, 2, 0, 0, 100, 0, 0, 0, 10, 0, 0, 1, 192, 168, 0, 2, 1, 0xBB, 0xC0, 1];
    payload.extend([5, 0, 0, 0]);
    payload.extend(0xFFFF_8A81_0000_0010_u64.to_le_bytes());
    let decoded = decode_kernel(&system(0x060b, 2, payload));
    assert_eq!(names(&decoded), (Some("TcpIp"), Some("RecvIPV4")));
    assert_eq!(decoded.problems, []);
    let of = |name: &str| decoded.field(name).unwrap().to_string();
    assert_eq!((of("daddr"), of("dport")), ("10.0.0.1".into(), "443".into()));
    assert_eq!((of("saddr"), of("sport")), ("192.168.0.2".into(), "49153".into()));
    assert_eq!(decoded.field("PID"), Some(&Value::ProcessId(0x201)));
}

#[test]
fn a_32_bit_header_may_have_a_64_bit_payload() {
    let mut payload = 0x7FF6_1234_5678_u64.to_le_bytes().to_vec();
    payload.extend([9, 0, 0, 0, 1, 0, 0, 0]);
    let narrow = PointerSize::Four;
    let sample = KernelRecord { pointer_size: narrow, ..perfinfo(0x0f2e, 5, payload) };
    let decoded = decode_kernel(&sample);
    assert_eq!(decoded.problems, []);
    assert_eq!(decoded.pointer_size, PointerSize::Eight);
    let address = Value::Pointer(0x7FF6_1234_5678);
    assert_eq!(decoded.field("InstructionPointer"), Some(&address));
    // Address lists fit both pointer sizes, so the upper halves decide.
    let mut stack = vec![0; 16];
    stack.extend(0xFFFF_F801_0000_1000_u64.to_le_bytes());
    stack.extend(0x7FF6_1234_5678_u64.to_le_bytes());
    let stack = KernelRecord { pointer_size: PointerSize::Four, ..system(0x1820, 2, stack) };
    let frames = vec![Value::Pointer(0xFFFF_F801_0000_1000), Value::Pointer(0x7FF6_1234_5678)];
    let decoded = decode_kernel(&stack);
    assert_eq!(decoded.field("Stack"), Some(&Value::Array(frames)));
    let mut narrow = vec![0; 16];
    narrow.extend([0x78, 0x56, 0x34, 0x12, 0x00, 0x10, 0x40, 0x77]);
    let narrow = KernelRecord { payload: narrow, ..stack };
    let frames = vec![Value::Pointer(0x1234_5678), Value::Pointer(0x7740_1000)];
    let decoded = decode_kernel(&narrow);
    assert_eq!(decoded.field("Stack"), Some(&Value::Array(frames)));
}

#[test]
fn header_bytes_that_the_version_counts_are_skipped() {
    for items in 0..=8 {
        for form in [KernelForm::System, KernelForm::Compact, KernelForm::PerfInfo] {
            let record = KernelRecord {
                form,
                extra: vec![0x1111; items],
                ..system(0x030b, 2, vec![7, 0, 0, 0])
            };
            let decoded = decode_kernel(&record);
            assert_eq!(decoded.header.version, 2);
            assert_eq!(decoded.problems, [], "{items} items, {form:?}");
            assert_eq!(decoded.field("ProcessId"), Some(&Value::ProcessId(7)));
        }
    }
    let record = KernelRecord { extra: vec![0; 9], ..system(0x030b, 2, Vec::new()) };
    let error = record.encode().unwrap_err().to_string();
    assert_eq!(error, "the record's header has 9 additional items, but it can have at most 8");
}

#[test]
fn unknown_events_keep_their_bytes() {
    let version = decode_kernel(&system(0x0301, 9, vec![1, 2, 3]));
    assert_eq!(names(&version), (Some("Process"), Some("Start")));
    assert_eq!(version.leftover, [1, 2, 3]);
    assert_eq!(version.problems, [Problem::UnknownVersion { version: 9, last: 5 }]);
    let event = decode_kernel(&system(0x03FE, 2, vec![1]));
    assert_eq!(names(&event), (Some("Process"), None));
    assert_eq!((event.leftover, event.problems), (vec![1], vec![Problem::UnknownKernelEvent]));
    let class = decode_kernel(&system(0x7F01, 2, vec![1]));
    assert_eq!(names(&class), (None, None));
    assert_eq!((class.leftover, class.problems), (vec![1], vec![Problem::UnknownKernelEvent]));
}

#[test]
fn records_of_another_length_keep_the_fields_that_fit() {
    let short = decode_kernel(&system(0x0532, 2, vec![7, 0, 0, 0, 1]));
    let shown: Vec<String> = short.fields.iter().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(shown, ["TThreadId=7", "AdjustReason=1"]);
    assert_eq!(
        short.problems[0].to_string(),
        "field `AdjustIncrement` at payload offset 5: the data ends inside the field"
    );
    let cut = decode_kernel(&system(0x030b, 2, vec![7, 0]));
    assert_eq!((cut.fields.len(), cut.leftover), (0, vec![7, 0]));
    let long = decode_kernel(&system(0x030b, 2, vec![7, 0, 0, 0, 8, 9]));
    assert_eq!(long.fields.len(), 1);
    assert_eq!(long.leftover, [8, 9]);
    assert_eq!(long.problems, [Problem::Surplus { bytes: 2 }]);
    assert_eq!(long.problems[0].to_string(), "2 bytes follow the last known field");
}

#[test]
fn no_length_of_any_record_panics() {
    for (_, bytes) in generated() {
        for length in 0..bytes.len() {
            let record = &bytes[..length];
            if let Some(decoded) = kernel::decode(record) {
                let payload = &record[decoded.header.payload..];
                assert!(payload.ends_with(&decoded.leftover));
            }
        }
    }
}

#[test]
fn no_changed_byte_panics_or_loses_bytes() {
    let mut random = 0x1234_5678_9ABC_DEF0_u64;
    for (name, bytes) in generated() {
        for _ in 0..40 {
            let mut changed = bytes.clone();
            for _ in 0..3 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let at = usize::try_from(random >> 33).unwrap() % changed.len();
                let [.., byte, _] = random.to_be_bytes();
                changed[at] = byte;
            }
            let Some(decoded) = kernel::decode(&changed) else {
                continue;
            };
            let payload = &changed[decoded.header.payload..];
            assert!(payload.ends_with(&decoded.leftover), "{name}");
            let whole = decoded.leftover.is_empty();
            assert!(whole || !decoded.problems.is_empty(), "{name}: {changed:?}");
        }
    }
}

#[test]
fn classic_events_of_any_class_keep_their_payload() {
    let class = Guid::from_u128(0x1111_2222_3333_4444_5555_6666_7777_8888);
    let record = ClassicRecord {
        class,
        opcode: 3,
        level: 4,
        version: 0x102,
        thread_id: 0x44,
        process_id: 0x55,
        timestamp: -5,
        payload: vec![1, 2, 3],
        ..ClassicRecord::default()
    };
    let decoded = kernel::decode(&record.encode().unwrap()).unwrap();
    assert_eq!(decoded.header.form, Form::Classic);
    assert_eq!((decoded.class, decoded.header.opcode, decoded.header.level), (class, 3, 4));
    assert_eq!((decoded.header.version, decoded.header.timestamp), (0x102, Some(-5)));
    assert_eq!((decoded.leftover, decoded.problems), (vec![1, 2, 3], vec![Problem::NoClass]));
    let parent = Guid::from_u128(7);
    let instance = ClassicRecord { instance: Some((8, 9, parent)), ..record };
    let decoded = kernel::decode(&instance.encode().unwrap()).unwrap();
    assert_eq!(decoded.header.form, Form::ClassicInstance);
    let found = decoded.header.instance.unwrap();
    assert_eq!((found.id, found.parent, found.parent_class), (8, 9, parent));
    assert_eq!(decoded.leftover, [1, 2, 3]);
}

/// 64-bit addresses before a string or a list, after a header that implies 32 bits: both pointer
/// sizes consume such a payload exactly.
#[test]
fn upper_halves_of_addresses_are_neither_text_nor_frames() {
    const OBJECT: u64 = 0xFFFF_E001_2345_6780;
    let narrow = |hook, form, payload: Vec<u8>| {
        let decoded = decode_kernel(&KernelRecord {
            pointer_size: PointerSize::Four,
            form,
            ..system(hook, 2, payload)
        });
        assert_eq!(decoded.problems, []);
        decoded
    };
    let file = [OBJECT.to_le_bytes().to_vec(), utf16(r"\a\b.sys")].concat();
    let decoded = narrow(0x0424, KernelForm::System, file);
    assert_eq!(decoded.pointer_size, PointerSize::Eight);
    assert_eq!(decoded.field("FileObject"), Some(&Value::Pointer(OBJECT)));
    assert_eq!(decoded.field("FileName"), Some(&text(r"\a\b.sys")));
    let file = [vec![0x80, 0x67, 0x45, 0x83], utf16(r"\a\b.sys")].concat();
    let decoded = narrow(0x0424, KernelForm::System, file);
    assert_eq!(decoded.pointer_size, PointerSize::Four);
    assert_eq!(decoded.field("FileName"), Some(&text(r"\a\b.sys")));

    let mut key = 1000_i64.to_le_bytes().to_vec();
    key.extend([0; 8]);
    key.extend(OBJECT.to_le_bytes());
    key.extend(utf16("Software"));
    let decoded = narrow(0x090B, KernelForm::Compact, key);
    assert_eq!(decoded.field("KeyHandle"), Some(&Value::Pointer(OBJECT)));
    assert_eq!(decoded.field("KeyName"), Some(&text("Software")));

    let frames = [0xFFFF_F800_0000_1000_u64, 0x7FF6_0000_2000];
    let stack = [&[OBJECT][..], &frames].concat();
    let stack = stack.into_iter().flat_map(u64::to_le_bytes).collect();
    let decoded = narrow(0x1822, KernelForm::PerfInfo, stack);
    assert_eq!(decoded.field("StackKey"), Some(&Value::Pointer(OBJECT)));
    let expected = Value::Array(frames.map(Value::Pointer).into());
    assert_eq!(decoded.field("StackFrame"), Some(&expected));
    // Genuine lists of 32-bit addresses with an odd number of frames.
    let stack = [0x8345_6780_u32, 0x8210_0000, 0x8210_1000, 0x7700_2000];
    let stack = stack.into_iter().flat_map(u32::to_le_bytes).collect();
    let decoded = narrow(0x1822, KernelForm::PerfInfo, stack);
    assert_eq!(decoded.pointer_size, PointerSize::Four);
}

#[test]
fn classic_events_of_kernel_classes_have_their_fields() {
    let image = [0x7FF6_0000_0000_u64.to_le_bytes().as_slice(), &0x55_u32.to_le_bytes()].concat();
    let guid = Guid::from_u128(0x99).to_bytes();
    let pdb = [image.as_slice(), &guid, &3_u32.to_le_bytes(), b"sample.pdb\0"].concat();
    let versions = [image.as_slice(), &0x1234_5678_u32.to_le_bytes(), &[1, 0, 2, 0]].concat();
    for (opcode, payload, event, field, value) in [
        (32, &image, "None", "ProcessId", Value::ProcessId(0x55)),
        (36, &pdb, "DbgIdRSDS", "Age", Value::UInt(3)),
        (37, &pdb, "DbgIdILRSDS", "PdbFileName", text("sample.pdb")),
        (38, &versions, "DbgPPDB", "MinorVersion", Value::UInt(2)),
        (40, &image, "DbgDeterm", "ProcessId", Value::ProcessId(0x55)),
    ] {
        let record = ClassicRecord {
            class: Guid::from_u128(0xb3e6_75d7_2554_4f18_830b_2762_7325_60de),
            opcode,
            payload: payload.clone(),
            ..ClassicRecord::default()
        };
        let decoded = kernel::decode(&record.encode().unwrap()).unwrap();
        assert_eq!(names(&decoded), (Some("ImageId"), Some(event)));
        assert_eq!(decoded.problems, [], "{event}");
        assert_eq!(decoded.field(field), Some(&value), "{event}");
    }
}

#[test]
fn wpp_messages_have_the_parts_that_their_flags_name() {
    let guid = Guid::from_u128(0x77);
    let full = WppRecord {
        message: 12,
        sequence: Some(5),
        guid: Some(guid),
        timestamp: Some(99),
        thread_and_process: Some((0x44, 0x55)),
        arguments: vec![1, 2, 3, 4],
        ..WppRecord::default()
    };
    let decoded = kernel::decode(&full.encode().unwrap()).unwrap();
    assert_eq!((decoded.class, decoded.header.message), (guid, 12));
    assert_eq!(names(&decoded), (Some("WPP"), Some("Message12")));
    assert_eq!(decoded.header.timestamp, Some(99));
    assert_eq!((decoded.process_id, decoded.thread_id), (Some(0x55), Some(0x44)));
    assert_eq!(decoded.field("Sequence"), Some(&Value::UInt(5)));
    assert_eq!(decoded.field("Arguments"), Some(&Value::Binary(vec![1, 2, 3, 4])));
    let bare = WppRecord {
        component: Some(0x10),
        guid: None,
        sequence: None,
        timestamp: None,
        thread_and_process: None,
        ..full
    };
    let decoded = kernel::decode(&bare.encode().unwrap()).unwrap();
    assert_eq!(decoded.header.timestamp, None);
    assert_eq!((decoded.process_id, decoded.thread_id), (None, None));
    assert_eq!(decoded.field("ComponentId"), Some(&Value::Hex(0x10)));
    assert_eq!(decoded.field("Arguments"), Some(&Value::Binary(vec![1, 2, 3, 4])));
}

#[test]
fn records_are_appended_with_another_timestamp() {
    let mut buffer = Buffer::new(0x1000, 0);
    for (_, bytes) in generated().into_iter().take(20) {
        let record = EncodedRecord::from_bytes(&bytes).unwrap();
        assert_eq!(record.size(), bytes.len());
        buffer.reset();
        buffer.try_append_record(&record, 777).unwrap();
        let appended = &buffer.records()[..bytes.len()];
        let decoded = kernel::decode(appended).unwrap();
        let before = kernel::decode(&bytes).unwrap();
        let expected = before.header.timestamp.map(|_| 777);
        assert_eq!(decoded.header.timestamp, expected);
        assert_eq!(decoded.fields, before.fields);
    }
    for bytes in [&b"no record"[..], &[9, 0, 0x14, 0xC0, 0, 0, 0, 0]] {
        let error = EncodedRecord::from_bytes(bytes).unwrap_err();
        assert!(error.to_string().contains("not one whole record"), "{error}");
    }
    let large = KernelRecord { payload: vec![0; 65535], ..KernelRecord::default() };
    let error = EncodedRecord::try_from(&large).unwrap_err();
    assert!(error.to_string().contains("at most 65535"), "{error}");
    let full = KernelRecord { payload: vec![0; 0xF00], ..KernelRecord::default() };
    let full = EncodedRecord::try_from(&full).unwrap();
    buffer.reset();
    buffer.try_append_record(&full, 1).unwrap();
    assert_eq!(buffer.try_append_record(&full, 1), Err(AppendError::Full));
}

#[test]
fn the_configuration_that_merging_adds_is_decoded() {
    let class = Guid::from_u128(0x9b79_ee91_b5fd_41c0_a243_4248_e266_e9d0);
    let of = |opcode, payload: Vec<u8>| {
        let record = ClassicRecord { class, opcode, payload, ..ClassicRecord::default() };
        kernel::decode(&record.encode().unwrap()).unwrap()
    };
    let mapping = [utf16(r"\Device\HarddiskVolume3\"), utf16(r"C:\")].concat();
    let decoded = of(35, mapping);
    assert_eq!(decoded.class_name.as_deref(), Some("SystemConfigEx"));
    assert_eq!(decoded.event_name.as_deref(), Some("VolumeMapping"));
    assert_eq!(decoded.field("NtPath"), Some(&text(r"\Device\HarddiskVolume3\")));
    assert_eq!(decoded.field("DosPath"), Some(&text(r"C:\")));
    assert_eq!(decoded.problems, []);
    let install = 132_000_000_000_000_000_i64;
    let build = [install.to_le_bytes().to_vec(), utf16("19041.1.amd64fre"), utf16("Windows 10")];
    let decoded = of(32, build.concat());
    assert_eq!(decoded.field("InstallDate"), Some(&Value::FileTime(FileTime::from_raw(install))));
    assert_eq!(decoded.field("ProductName"), Some(&text("Windows 10")));
    let unknown = of(99, vec![1, 2]);
    assert_eq!(unknown.class_name.as_deref(), Some("SystemConfigEx"));
    assert_eq!(unknown.leftover, [1, 2]);
    assert_eq!(unknown.problems, [Problem::UnknownKernelEvent]);
    assert!(unknown.problems[0].is_of_system() && !Problem::NoClass.is_of_system());

    let interface = of(36, etl_fixtures::kernel_records::network_interface());
    assert_eq!(interface.problems, []);
    let number = |name, number| assert_eq!(interface.field(name), Some(&Value::UInt(number)));
    assert_eq!(interface.field("InterfaceLuid"), Some(&Value::Hex(0x6_0000_0000_0000)));
    assert_eq!(interface.field("Alias"), Some(&text("Ethernet")));
    assert_eq!(interface.field("Description"), Some(&text("Example GbE Adapter")));
    assert_eq!(interface.field("PhysicalAddress"), Some(&text("02:00:00:00:00:01")));
    assert_eq!(interface.field("PermanentPhysicalAddress"), Some(&text("02:00:00:00:00:02")));
    number("Mtu", 1500);
    number("Type", 6);
    number("TransmitLinkSpeed", 1_000_000_000);
    number("OutQLen", 77);
}

#[test]
fn the_assessment_of_a_system_is_decompressed() {
    let class = Guid::from_u128(0xed54_dff8_c409_4cf6_bf83_05e1_e61a_09c4);
    let of = |size: u32, compressed: &[u8]| {
        let numbers = [1_u32, size].map(u32::to_le_bytes).concat();
        let payload = [&numbers, compressed].concat();
        let record = ClassicRecord { class, opcode: 33, payload, ..ClassicRecord::default() };
        kernel::decode(&record.encode().unwrap()).unwrap()
    };
    // A stored chunk, and a compressed chunk with a literal and a match.
    let stored: Vec<u8> = "<a/>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let stored = [&[7, 0x30][..], &stored].concat();
    let decoded = of(8, &stored);
    assert_eq!(decoded.class_name.as_deref(), Some("WinSAT"));
    assert_eq!(decoded.field("Xml"), Some(&text("<a/>")));
    assert_eq!(decoded.problems, []);
    let decoded = of(12, &[4, 0xB0, 0b100, b'a', 0, 7, 0x10]);
    assert_eq!(decoded.field("Xml"), Some(&text("aaaaaa")));
    assert_eq!(decoded.problems, []);
    for size in [9, u32::MAX] {
        let decoded = of(size, &stored);
        let reason = decoded.problems[0].to_string();
        assert!(reason.contains("the compressed text is damaged"), "{reason}");
        assert_eq!(decoded.leftover, stored);
    }
}

#[test]
fn the_metadata_of_performance_tracking_is_of_a_system_class() {
    let class = Guid::from_u128(0xbf6e_f1cb_89b5_490a_80ac_b180_cfbc_ff0f);
    let of = |opcode, payload: Vec<u8>| {
        let record = ClassicRecord { class, opcode, payload, ..ClassicRecord::default() };
        kernel::decode(&record.encode().unwrap()).unwrap()
    };
    // A stored chunk of 8-bit text.
    let decoded = of(33, b"\x04\0\0\0\x03\x30<a/>".to_vec());
    assert_eq!(decoded.class_name.as_deref(), Some("PerfTrackMetaData"));
    assert_eq!((decoded.field("Xml"), decoded.problems.len()), (Some(&text("<a/>")), 0));
    let decoded = of(34, b"Fast\0\x60\xEA\0\0".to_vec());
    assert_eq!(decoded.field("Name"), Some(&text("Fast")));
    assert_eq!(decoded.field("Value"), Some(&Value::UInt(60_000)));
    // Other types are the system's, not of a MOF file that somebody could name.
    assert_eq!(of(35, vec![1]).problems, [Problem::UnknownKernelEvent]);
}
