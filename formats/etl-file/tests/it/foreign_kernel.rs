//! Compares our decoding of kernel records with dissect.etl, which has its own schemas, on files
//! from our writer.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use etl_file::LogFileHeader;
use etl_file::decode::Value;
use etl_file::internals::kernel::{self, Form};
use etl_file::write::KernelRecord;
use etl_fixtures::kernel_records::generated;
use etl_fixtures::{decoders, kernel_records, trace};
use serde_json::{Value as Json, json};

/// Returns the values that dissect.etl reads from the records in a file, without the header event.
fn dissect(records: &[Vec<u8>]) -> Vec<Json> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel.etl");
    let records = (1000..).zip(records.iter().cloned());
    fs::write(&path, trace::of_records(LogFileHeader::default(), i64::MAX, records)).unwrap();
    decoders::dump("dissect_kernel.py", &path).split_off(1)
}

/// Returns a value in dissect.etl's form: without the interpretation that the type implies.
fn raw(value: &Value) -> Json {
    match value {
        Value::UInt(number)
        | Value::Hex(number)
        | Value::Pointer(number)
        | Value::ProcessId(number)
        | Value::ThreadId(number) => json!(number),
        Value::Int(number) => json!(number),
        Value::FileTime(time) => json!(time.raw()),
        Value::NtStatus(status) => json!(status),
        Value::Text(text) => json!(text),
        Value::Guid(guid) => json!(hex(&guid.to_bytes())),
        Value::Ipv4(address) => json!(u32::from_le_bytes(address.octets())),
        Value::Ipv6(address) => json!(hex(&address.octets())),
        Value::Port(port) => json!(port.swap_bytes()),
        Value::Sid(sid) => json!(sid.to_string()),
        Value::Binary(bytes) => json!(bytes),
        Value::Array(values) => values.iter().map(raw).collect(),
        other => panic!("no kernel event has {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// The events that dissect.etl reads differently or not at all, with the reason. Each key is the
/// start of an event's name, version and pointer size, and must match an event.
const DISAGREEMENTS: &[(&str, &str)] = &[
    ("PerfInfo/ISR v2", VECTOR),
    ("PerfInfo/ISR-MSI v2", VECTOR),
    ("PerfInfo/ISR-PASS v2", VECTOR),
    ("PerfInfo/ISR v1 Four", WMI_TIME),
    ("PerfInfo/ISR-PASS v1 Four", WMI_TIME),
    ("PerfInfo/ThreadedDPC v2 Four", WMI_TIME),
    ("PerfInfo/DPC v1 Four", WMI_TIME),
    ("PerfInfo/DPC v2 Four", WMI_TIME),
    ("PerfInfo/TimerDPC v1 Four", WMI_TIME),
    ("PerfInfo/TimerDPC v2 Four", WMI_TIME),
    ("PerfInfo/IOTimer v2 Four", WMI_TIME),
    ("PageFault/HardFault v2 Four", WMI_TIME),
    ("FileIo/PreOpCompletion v3 Four", WMI_TIME),
    ("FileIo/PostOpCompletion v3 Four", WMI_TIME),
    ("TcpIp/", CONNECTION),
    ("UdpIp/", CONNECTION),
    ("Registry/", STATUS),
    ("Thread/Start v3", NAME),
    ("Thread/End v3", NAME),
    ("Thread/DCStart v3", NAME),
    ("Thread/DCEnd v3", NAME),
    ("Thread/KernelQueueDequeue v2", LIST),
    ("SystemConfig/ProcessorGroup v2", LIST),
    ("StackWalk/Key", LIST),
    ("SystemConfig/PnP v4", TEXTS),
    ("SystemConfig/PnP v5", TEXTS),
    ("PerfInfo/PmcCtrConfig v2", TEXTS),
    ("StackWalk/Stack v2", "it expects exactly 32 frames"),
    ("EventTrace/ProviderBinaryPath v2", "our GUIDs are values, its GUIDs are bytes in a list"),
    ("EventTrace/BuildInfo v2", "UTF-16 in genuine files, 8-bit text in its schema"),
    ("ALPC/ALPC-Wait-For-New-Message v2", "both kinds of text occur, its schema has one"),
    ("SystemConfig/PhyDisk", "its spare bytes are two characters"),
    ("PerfInfo/Mark v0", "its padding is a character"),
];

/// Microsoft's documentation, `TraceEvent` and `LinuxKI` have an 8-bit vector and 16 reserved bits.
const VECTOR: &str = "its vector is 16 bits wide, and 8 bits are reserved";
/// `Extension("WmiTime")` is 64 bits wide on every machine.
const WMI_TIME: &str = "its InitialTime has the size of a pointer";
/// Genuine records from 64-bit machines are consumed exactly if this is an address.
const CONNECTION: &str = "its connection id is 32 bits wide";
const STATUS: &str = "our status is an NTSTATUS, the lower half of its pointer";
const NAME: &str = "the thread's name is not part of its version 3";
const TEXTS: &str = "a list of strings, but its schema has a single string";
const LIST: &str = "its list of addresses has a single address";

fn compare(theirs: &Json, ours: &kernel::Record) -> Result<bool, String> {
    let Some(fields) = theirs["fields"].as_object() else {
        let failed = |error| Err(format!("dissect.etl fails: {error}"));
        return theirs.get("error").map_or(Ok(false), failed);
    };
    let same = ours.fields.len() == fields.len()
        && ours.fields.iter().zip(fields.values()).all(|((_, value), theirs)| match value {
            // dissect.etl returns 8-bit text as bytes.
            Value::Text(text) => *theirs == **text || *theirs == hex(text.as_bytes()),
            value => raw(value) == *theirs,
        });
    if same {
        Ok(true)
    } else {
        let ours: Vec<String> =
            ours.fields.iter().map(|(n, v)| format!("{n}={}", raw(v))).collect();
        Err(format!("ours {}, theirs {}", ours.join(" "), line_of(fields)))
    }
}

fn line_of(fields: &serde_json::Map<String, Json>) -> String {
    let fields = fields.iter().map(|(name, value)| format!("{name}={value}"));
    fields.collect::<Vec<_>>().join(" ")
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn dissect_reads_the_same_values() {
    let records = generated();
    let bytes: Vec<Vec<u8>> = records.iter().map(|(_, bytes)| bytes.clone()).collect();
    let lines = dissect(&bytes);
    assert_eq!(lines.len(), records.len());
    let mut same = 0;
    let mut used = BTreeSet::new();
    for ((name, bytes), line) in records.iter().zip(&lines) {
        let ours = kernel::decode(bytes).unwrap();
        assert_header(name, line, &ours);
        match compare(line, &ours) {
            Ok(known) => same += usize::from(known),
            Err(error) => {
                let reason = DISAGREEMENTS.iter().find(|(key, _)| name.starts_with(key));
                let (key, _) = reason.unwrap_or_else(|| panic!("{name}: {error}"));
                used.insert(*key);
            }
        }
    }
    let unused: Vec<&(&str, &str)> =
        DISAGREEMENTS.iter().filter(|(key, _)| !used.contains(key)).collect();
    assert!(unused.is_empty(), "{unused:?}");
    assert!(same > 750, "{same} of {} records agree", records.len());
}

/// Compares the parts of the header that dissect.etl returns for every form.
fn assert_header(name: &str, line: &Json, ours: &kernel::Record) {
    let header = &ours.header;
    let expected = match header.form {
        Form::System => "SystemHeader",
        Form::CompactSystem => "CompactSystemHeader",
        Form::PerfInfo => "PerfinfoTraceHeader",
        Form::Classic => "EventTraceHeader",
        Form::ClassicInstance => "EventInstanceGUIDHeader",
        Form::Wpp => "MessageTraceHeader",
    };
    assert_eq!(line["header"], expected, "{name}");
    assert!(line["raw_ts"].as_i64() >= Some(1000), "{name}");
    assert_eq!(line["tid"], json!(header.thread_id), "{name}");
    assert_eq!(line["pid"], json!(header.process_id), "{name}");
    if let Some(hook) = header.hook {
        assert_eq!(line["hook"], json!(hook), "{name}");
        assert_eq!(line["version"], json!(header.version), "{name}");
    }
    if header.form != Form::Wpp {
        assert_eq!(line["cls"], json!(ours.class.to_string()), "{name}");
    }
}

// Both decoders skip the additional header bytes that the version states.
#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn dissect_skips_the_same_header_bytes() {
    let mut records = Vec::new();
    for items in 0..=8 {
        let record = KernelRecord {
            hook: 0x030b,
            version: 2,
            extra: vec![0x1111; items],
            payload: vec![7, 0, 0, 0],
            ..KernelRecord::default()
        };
        records.push(record.encode().unwrap());
    }
    for (record, line) in records.iter().zip(dissect(&records)) {
        let ours = kernel::decode(record).unwrap();
        assert_eq!(ours.fields.len(), 1);
        assert_eq!(line["payload"], hex(&record[ours.header.payload..]));
        assert_eq!(line["payload"], "07000000");
    }
}

mod samples {
    use super::*;

    #[test]
    #[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
    fn records_of_a_genuine_trace_are_consumed_exactly() {
        let file = fs::read(etw_test_support::sample("etl/AMSITrace.etl")).unwrap();
        let mut known = 0;
        for record in kernel_records::records_of(&file) {
            if let Some(decoded) = kernel::decode(record) {
                assert_eq!(decoded.problems, [], "{decoded:?}");
                known += 1;
            }
        }
        assert_eq!(known, 1, "PartitionInfoExtension, beside the header event");
    }
}
