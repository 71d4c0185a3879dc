//! Writes a file with any number of manifest and `TraceLogging` events, for measuring how fast it
//! is read:
//!
//! ```text
//! cargo run --release -p etl --example generate -- --events 10000000 --processors 4 -o big.etl
//! ```
//!
//! The events are a microsecond apart and rotate among the processors, as in a busy driver's trace.
//! With `--frames`, each event has a stack with that many frames in a separate record, `--delay`
//! events later; with `--keys`, the stack is defined by a key at the end of the file.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::PathBuf;

use clap::{Arg, Command, value_parser};
use etl_file::write::{AppendError, Buffer, Finish, KernelRecord, LogFile};
use etl_file::{ClockType, EncodedRecord, FileTime};
use etl_fixtures::trace;

/// Clock ticks between two events: a microsecond at 10 MHz.
const TICK: i64 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let number = |name: &'static str, default: &'static str| {
        Arg::new(name).long(name).default_value(default).value_parser(value_parser!(u32))
    };
    let arguments = Command::new("generate")
        .arg(number("events", "1000000"))
        .arg(number("processors", "4"))
        .arg(number("buffer-size", "65536"))
        .arg(number("frames", "0"))
        .arg(number("delay", "1000"))
        .arg(number("keys", "0"))
        .arg(Arg::new("out").short('o').required(true).value_parser(value_parser!(PathBuf)))
        .get_matches();
    let get = |name: &str| arguments.get_one::<u32>(name).copied().unwrap_or_default();
    let out = arguments.get_one::<PathBuf>("out").ok_or("no output")?;
    let (frames, delay, keys) = (get("frames"), get("delay"), get("keys"));
    let (events, processors) = (get("events"), u16::try_from(get("processors"))?);
    let header = trace::header(ClockType::Qpc, get("buffer-size"), processors.into());
    let mut now = header.start_clock;
    let mut buffers: Vec<Buffer> =
        (0..processors).map(|processor| Buffer::new(header.buffer_size, processor)).collect();
    let file = BufWriter::with_capacity(1 << 20, File::create(out)?);
    let mut log = LogFile::create(file, header)?;
    for n in 0..events {
        now += TICK;
        let event = if n % 9 < 4 {
            trace::trace_logging_event(n, now)
        } else {
            trace::manifest_event(n, now)
        };
        let mut records = vec![EncodedRecord::new(&event)?];
        if frames != 0 && n >= delay {
            let of = now - i64::from(delay) * TICK;
            let event = (event.process_id, event.thread_id);
            records.push(stack(now, of, event, frames, (keys != 0).then_some(n % keys.max(1)))?);
        }
        // Consecutive events share a processor, because threads do not change processors with each
        // event.
        let at = (n / 8) as usize % buffers.len();
        for record in records {
            append(&mut log, &mut buffers, at, &record, now)?;
        }
    }
    for key in 0..keys {
        now += TICK;
        let record = definition(now, key, frames)?;
        append(&mut log, &mut buffers, 0, &record, now)?;
    }
    for buffer in buffers.iter().filter(|buffer| !buffer.is_empty()) {
        log.append(buffer, now)?;
    }
    log.finish(Finish {
        end_time: FileTime::from_raw(trace::START.raw() + i64::from(events) * TICK),
        ..Finish::default()
    })?;
    Ok(())
}

/// Appends a record to a buffer, which is first written to the file if it is full.
fn append<W: Write + Seek>(
    log: &mut LogFile<W>,
    buffers: &mut [Buffer],
    at: usize,
    record: &EncodedRecord,
    now: i64,
) -> Result<(), Box<dyn Error>> {
    let buffer = buffers.get_mut(at).ok_or("no processors")?;
    if buffer.try_append_record(record, now) == Err(AppendError::Full) {
        log.append(buffer, now)?;
        buffer.reset();
        buffer.try_append_record(record, now)?;
    }
    Ok(())
}

/// Returns addresses in user-mode code, or in the kernel for even numbers.
fn addresses(number: u32, frames: u32) -> impl Iterator<Item = u8> {
    let base = if number.is_multiple_of(2) { 0xFFFF_F801_0000_0000 } else { 0x7FF6_0000_0000_u64 };
    let frames = (0..frames).map(move |frame| base + u64::from(number) * 0x100 + u64::from(frame));
    frames.flat_map(u64::to_le_bytes)
}

/// Returns the stack record for the event with timestamp `of`. It contains the frames or, if `key`
/// is set, a reference to them.
fn stack(
    now: i64,
    of: i64,
    (process, thread): (u32, u32),
    frames: u32,
    key: Option<u32>,
) -> Result<EncodedRecord, Box<dyn Error>> {
    let mut payload = of.to_le_bytes().to_vec();
    payload.extend(process.to_le_bytes());
    payload.extend(thread.to_le_bytes());
    let hook = match key {
        None => {
            payload.extend(addresses(0, frames));
            0x1820
        }
        Some(key) => {
            payload.extend(u64::from(key).to_le_bytes());
            if key.is_multiple_of(2) { 0x1825 } else { 0x1826 }
        }
    };
    kernel(now, hook, payload)
}

/// Returns the record that defines a key's frames.
fn definition(now: i64, key: u32, frames: u32) -> Result<EncodedRecord, Box<dyn Error>> {
    let mut payload = u64::from(key).to_le_bytes().to_vec();
    payload.extend(addresses(key, frames));
    kernel(now, 0x1824, payload)
}

fn kernel(timestamp: i64, hook: u16, payload: Vec<u8>) -> Result<EncodedRecord, Box<dyn Error>> {
    let record = KernelRecord { hook, version: 2, timestamp, payload, ..KernelRecord::default() };
    Ok(EncodedRecord::try_from(&record)?)
}
