//! Writes a file of any number of events, a mix of manifest and `TraceLogging` events, to measure
//! how fast it is read:
//!
//! ```text
//! cargo run --release -p etl-file --example generate -- --events 10000000 --processors 4 -o big.etl
//! ```
//!
//! The events lie a microsecond apart, on the processors in turn, as a busy driver would write them.

#[allow(
    dead_code,
    reason = "the tests use more of the fixture than this example"
)]
#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use clap::{Arg, Command, value_parser};
use etl_file::write::{AppendError, Buffer, Finish, LogFile};
use etl_file::{ClockType, FileTime};

/// Ticks of the clock between two events: a microsecond at 10 MHz.
const TICK: i64 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let number = |name: &'static str, default: &'static str| {
        Arg::new(name)
            .long(name)
            .default_value(default)
            .value_parser(value_parser!(u32))
    };
    let arguments = Command::new("generate")
        .arg(number("events", "1000000"))
        .arg(number("processors", "4"))
        .arg(number("buffer-size", "65536"))
        .arg(
            Arg::new("out")
                .short('o')
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .get_matches();
    let get = |name: &str| arguments.get_one::<u32>(name).copied().unwrap_or_default();
    let out = arguments.get_one::<PathBuf>("out").ok_or("no output")?;
    let (events, processors) = (get("events"), u16::try_from(get("processors"))?);
    let header = fixture::header(ClockType::Qpc, get("buffer-size"), processors.into());
    let mut now = header.start_clock;
    let mut buffers: Vec<Buffer> = (0..processors)
        .map(|processor| Buffer::new(header.buffer_size, processor))
        .collect();
    let file = BufWriter::with_capacity(1 << 20, File::create(out)?);
    let mut log = LogFile::create(file, header)?;
    for n in 0..events {
        now += TICK;
        let event = if n % 9 < 4 {
            fixture::trace_logging_event(n, now)
        } else {
            fixture::manifest_event(n, now)
        };
        // Runs of some events, as threads do not change the processor for each of them.
        let at = (n / 8) as usize % buffers.len();
        let buffer = buffers.get_mut(at).ok_or("no processors")?;
        if buffer.try_append(&event) == Err(AppendError::Full) {
            log.append(buffer, now)?;
            buffer.reset();
            buffer.try_append(&event)?;
        }
    }
    for buffer in buffers.iter().filter(|buffer| !buffer.is_empty()) {
        log.append(buffer, now)?;
    }
    log.finish(Finish {
        end_time: FileTime::from_raw(fixture::START.raw() + i64::from(events) * TICK),
        ..Finish::default()
    })?;
    Ok(())
}
