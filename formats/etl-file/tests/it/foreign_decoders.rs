//! Compares our reader with two independent decoders, on files from our writer and on a genuine
//! trace, and checks properties that neither decoder checks.

use std::fs;

use etl_file::write::Losses;
use etl_file::{ClockType, LogFileHeader};
use etl_fixtures::decoders;
use etl_fixtures::trace;

const LOSSES: Losses = Losses { events_lost: 7, buffers_lost: 2 };

fn agree_on(header: LogFileHeader, events: u32, losses: Losses) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written.etl");
    let (bytes, written) = trace::file(header, events, losses);
    fs::write(&path, bytes).unwrap();
    assert_eq!(
        decoders::assert_third_party_decoders_agree(&path),
        written.len(),
        "all events are in the file"
    );
}

// R-O1 R-O5 R-T6 R-T7
#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn decoders_agree_on_a_trace_of_one_processor() {
    agree_on(trace::header(ClockType::Qpc, 0x1000, 1), 40, Losses::default());
}

// R-O11
#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn decoders_agree_on_several_processors_and_losses() {
    agree_on(trace::header(ClockType::Qpc, 0x2000, 4), 200, LOSSES);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn decoders_agree_on_the_system_clock() {
    agree_on(trace::header(ClockType::SystemTime, 0x1_0000, 2), 500, LOSSES);
}

mod samples {
    use super::*;

    #[test]
    #[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
    fn decoders_agree_on_a_genuine_trace() {
        let path = etw_test_support::sample("etl/AMSITrace.etl");
        assert_eq!(decoders::assert_third_party_decoders_agree(&path), 19);
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn buffer_header_fields_that_no_decoder_checks_are_correct() {
    let header = trace::header(ClockType::Qpc, 0x1000, 3);
    let (file, _) = trace::file(header, 120, LOSSES);
    let trace = etl_file::Trace::parse(&file).unwrap();
    let buffers: Vec<&[u8]> = file.chunks(0x1000).collect();
    assert!(buffers.len() > 6, "several buffers per processor");
    assert_eq!(file.len(), buffers.len() * 0x1000);
    let mut last_time = [0; 3];
    for (n, buffer) in buffers.iter().enumerate() {
        let used = u32_at(buffer, 0x30);
        assert_eq!(u32_at(buffer, 0x00), 0x1000, "BufferSize");
        assert_eq!(u32_at(buffer, 0x04), used, "SavedOffset");
        assert_eq!(u32_at(buffer, 0x0C), 0, "ReferenceCount");
        assert_eq!(i64_at(buffer, 0x18), i64::try_from(n).unwrap(), "SequenceNumber");
        assert_eq!(i64_at(buffer, 0x20), 0, "clock");
        assert_eq!(u16_at(buffer, 0x2A), 20, "LoggerId");
        assert_eq!(u32_at(buffer, 0x2C), 3, "State");
        assert_eq!(buffer[0x38..0x48], [0; 16], "list links");
        assert_eq!(used % 8, 0, "used bytes are a multiple of 8");
        let filler = &buffer[used as usize..];
        assert!(filler.iter().all(|&byte| byte == 0xFF), "filler");
        let processor = usize::from(u16_at(buffer, 0x28));
        let (flags, kind) = (u16_at(buffer, 0x34), u16_at(buffer, 0x36));
        if n == 0 {
            assert_eq!((flags, kind, processor), (0x21, 4, 0), "first buffer");
            assert_eq!(i64_at(buffer, 0x10), 0, "TimeStamp of the first buffer");
            continue;
        }
        assert_eq!(kind, 0, "BufferType");
        // The losses were recorded before the last three buffers.
        let expected = match buffers.len() - n {
            1 => 0x21,
            3 => 0x26,
            _ => 0x20,
        };
        assert_eq!(flags, expected, "BufferFlag of buffer {n}");
        let time = i64_at(buffer, 0x10);
        assert!(time >= last_time[processor], "flush times grow");
        last_time[processor] = time;
        let newest = trace
            .events()
            .filter(|event| event.buffer as usize == n)
            .map(|event| event.record.timestamp)
            .max()
            .expect("no buffer is empty");
        assert!(time >= newest, "the flush follows every event");
    }
}

#[test]
fn header_event_fields_that_no_decoder_checks_are_correct() {
    let header = trace::header(ClockType::Qpc, 0x2000, 3);
    let (file, _) = trace::file(header.clone(), 60, LOSSES);
    let names: Vec<u8> =
        "Fixture\0C:\\traces\\fixture.etl\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let size = 0x20 + 0x118 + names.len();
    assert_eq!(file[0x48..0x4C], [2, 0, 2, 0xC0], "version, type, marker");
    assert_eq!(usize::from(u16_at(&file, 0x4C)), size, "Size");
    assert_eq!(u16_at(&file, 0x4E), 0, "hook");
    assert_eq!(u32_at(&file, 0x50), 0x11, "ThreadId");
    assert_eq!(u32_at(&file, 0x54), 0x22, "ProcessId");
    assert_eq!(i64_at(&file, 0x58), header.start_clock, "SystemTime");
    assert_eq!(u32_at(&file, 0x68), 0x2000, "BufferSize");
    assert_eq!(file[0x6C..0x70], [10, 0, 1, 5], "OS and layout version");
    assert_eq!(u32_at(&file, 0x70), 19041, "ProviderVersion");
    assert_eq!(u32_at(&file, 0x74), 3, "NumberOfProcessors");
    let end = trace::START.raw() + 600_000;
    assert_eq!(i64_at(&file, 0x78), end, "EndTime");
    assert_eq!(u32_at(&file, 0x80), 156_250, "TimerResolution");
    assert_eq!(u32_at(&file, 0x84), 0, "MaximumFileSize");
    assert_eq!(u32_at(&file, 0x88), 1, "LogFileMode");
    let buffers = u32::try_from(file.len() / 0x2000).unwrap();
    assert_eq!(u32_at(&file, 0x8C), buffers, "BuffersWritten");
    assert_eq!(u32_at(&file, 0x90), 1, "StartBuffers");
    assert_eq!(u32_at(&file, 0x94), 8, "PointerSize");
    assert_eq!(u32_at(&file, 0x98), 7, "EventsLost");
    assert_eq!(u32_at(&file, 0x9C), 3000, "CpuSpeedInMHz");
    assert_eq!(file[0xA0..0xB0], [0; 16], "names are no pointers");
    assert_eq!(file[0xB0..0x160], [0; 0xB0], "UTC, and the gap after it");
    assert_eq!(i64_at(&file, 0x160), header.boot_time.raw(), "BootTime");
    assert_eq!(i64_at(&file, 0x168), 10_000_000, "PerfFreq");
    assert_eq!(i64_at(&file, 0x170), trace::START.raw(), "StartTime");
    assert_eq!(u32_at(&file, 0x178), 1, "ReservedFlags");
    assert_eq!(u32_at(&file, 0x17C), 2, "BuffersLost");
    assert_eq!(file[0x180..0x180 + names.len()], names, "names");
    let used = (0x48 + size).next_multiple_of(8);
    assert_eq!(u32_at(&file, 0x30) as usize, used, "nothing follows");
}

#[test]
fn records_start_at_multiples_of_eight_with_zeros_between() {
    let (file, _) = trace::file(trace::header(ClockType::Qpc, 0x2000, 1), 60, Losses::default());
    let mut gaps = 0;
    for buffer in file.chunks(0x2000).skip(1) {
        let used = u32_at(buffer, 0x30) as usize;
        let mut at = 72;
        while at < used {
            let size = usize::from(u16_at(buffer, at));
            assert_eq!(u16_at(buffer, at + 2), 0xC013, "HeaderType");
            let flags = u16_at(buffer, at + 4);
            let has_items = buffer[at + 0x2B] == 11 || u16_at(buffer, at + 0x28) == 1;
            assert_eq!(flags, u16::from(has_items), "EXTENDED_INFO");
            let next = at + size.next_multiple_of(8);
            assert!(buffer[at + size..next].iter().all(|&byte| byte == 0), "gap");
            gaps += next - at - size;
            at = next;
        }
        assert_eq!(at, used, "the records fill the used bytes");
    }
    assert!(gaps > 0, "the fixture has records that need padding");
}
