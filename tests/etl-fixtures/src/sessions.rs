//! Traces of a driver's session and of a kernel session, which can be merged.

use etl_file::write::{ClassicRecord, KernelRecord, Losses, WppRecord};
use etl_file::{ClockType, FileTime, Guid};

use crate::trace;

/// Returns the trace of a session that started `later` × 100 ns after the fixture's.
pub fn driver_trace(clock: ClockType, later: i64, events: u32, losses: Losses) -> Vec<u8> {
    let mut header = trace::header(clock, 0x1000, 2);
    header.start_time = FileTime::from_raw(trace::START.raw() + later);
    header.start_clock = match clock {
        ClockType::SystemTime => header.start_time.raw(),
        _ => header.start_clock + later,
    };
    header.session_name = format!("Session {later}");
    trace::file(header, events, losses).0
}

/// The ticks per second of the kernel trace's counter.
pub const FREQUENCY: i64 = 2_500_000;

fn kernel(hook: u16, timestamp: i64, payload: &[&[u8]]) -> Vec<u8> {
    let record = KernelRecord {
        hook,
        version: 3,
        thread_id: 0x44,
        process_id: 0x55,
        timestamp,
        payload: payload.concat(),
        ..KernelRecord::default()
    };
    record.encode().unwrap()
}

/// Returns the trace of a kernel session: records of every form, a stack, and records that describe
/// the session.
pub fn kernel_trace() -> Vec<u8> {
    let mut header = trace::header(ClockType::Qpc, 0x1000, 2);
    header.perf_frequency = FREQUENCY;
    "NT Kernel Logger".clone_into(&mut header.session_name);
    let start = header.start_clock;
    let at = |ticks: i64| start + ticks;
    let pair = [0x55_u32.to_le_bytes(), 0x44_u32.to_le_bytes()].concat();
    let frames = [0xFFFF_F800_0000_1000_u64, 0x1234].map(u64::to_le_bytes).concat();
    let classic = ClassicRecord {
        class: Guid::from_bytes([5; 16]),
        opcode: 3,
        timestamp: at(1500),
        payload: vec![1, 2, 3],
        ..ClassicRecord::default()
    };
    let wpp = WppRecord {
        message: 10,
        guid: Some(Guid::from_bytes([6; 16])),
        timestamp: Some(at(1600)),
        arguments: vec![9; 5],
        ..WppRecord::default()
    };
    let mut narrow = trace::manifest_event(3, at(1700)).encode().unwrap();
    narrow[2] = 0x12;
    let disk = [&[0_u8; 40][..], &1000_u64.to_le_bytes()].concat();
    let records = [
        (0, at(0), kernel(0x0050, at(0), &[&[0; 48]])),
        (0, at(0), kernel(0x0005, at(0), &[&[0; 36]])),
        (0, at(1000), kernel(0x0524, at(1000), &[&[7; 24]])),
        // An interval of 400 ticks.
        (1, at(1100), kernel(0x0F44, at(1100), &[&at(700).to_le_bytes(), &[0; 8]])),
        // The context switch's stack, from another processor.
        (1, at(1200), kernel(0x1820, at(1200), &[&at(1000).to_le_bytes(), &pair, &frames])),
        (0, at(1300), kernel(0x010A, at(1300), &[&disk, &[0; 4]])),
        (0, at(1400), kernel(0x0008, at(1400), &[&[0; 4]])),
        (0, at(1500), classic.encode().unwrap()),
        (0, at(1600), wpp.encode().unwrap()),
        (0, at(1700), narrow),
    ];
    let buffers = [0, 1].map(|processor| {
        let own = records.iter().filter(|(of, ..)| *of == processor);
        trace::buffer(0x1000, processor, own.map(|(_, time, bytes)| (*time, bytes.clone())))
    });
    trace::of_buffers(header, at(2000), buffers)
}
