//! The header event of a trace.

use super::error::ReadError;
use super::event::PointerSize;
use crate::cursor::{Cursor, utf16_until_nul};
use crate::header::{LogFileHeader, TimeZone};
use crate::layout;
use crate::time::{ClockType, FileTime, SystemTime};

/// A trace's header: the settings of the session, and the totals at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    /// The settings of the session.
    pub session: LogFileHeader,
    /// The layout version, major and minor: 1.5 or 2.0 (ETL-4.12).
    pub layout_version: (u8, u8),
    /// The pointer size of the machine that recorded the trace.
    pub pointer_size: u32,
    /// The number of buffers at the start: 1.
    pub start_buffers: u32,
    /// The number of buffers that the header states. If recording was interrupted, the file can
    /// contain more or fewer.
    pub buffers_written: u32,
    /// The time at which the session stopped, if it stopped.
    pub end_time: Option<FileTime>,
    /// The number of events that were not recorded.
    pub events_lost: u32,
    /// The number of buffers that were not written.
    pub buffers_lost: u32,
}

impl TraceHeader {
    /// Reads the header event, which is a trace's first record. `offset` is the offset of `bytes`
    /// in the file; `logger_id` comes from the buffer header.
    pub(super) fn parse(bytes: &[u8], offset: u64, logger_id: u16) -> Result<Self, ReadError> {
        let too_short = || ReadError::TooShort { offset, what: "trace's header event" };
        let system = bytes.get(..layout::SYSTEM_HEADER).ok_or_else(too_short)?;
        let width = match system.get(2..4) {
            Some(&[layout::HEADER_SYSTEM32, layout::MARKER]) => PointerSize::Four,
            Some(&[layout::HEADER_SYSTEM64, layout::MARKER]) => PointerSize::Eight,
            _ => return Err(ReadError::NoHeaderEvent { offset }),
        };
        let mut c = Cursor::new(system);
        // The caller has checked the version and type; the hook of a header event is 0.
        let size = c.u32().and_then(|_| c.u16()).ok_or_else(too_short)?;
        if c.u16() != Some(0) {
            return Err(ReadError::NoHeaderEvent { offset });
        }
        let record = bytes.get(..usize::from(size)).ok_or_else(too_short)?;
        let other = match width {
            PointerSize::Four => PointerSize::Eight,
            PointerSize::Eight => PointerSize::Four,
        };
        let parsed = parse_fields(record, width, logger_id);
        // The header type can contradict the pointer size of the layout; the fields after the name
        // pointers would then be misread.
        if !parsed.as_ref().is_some_and(is_plausible)
            && let Some(found) = parse_fields(record, other, logger_id).filter(is_plausible)
        {
            return Ok(found);
        }
        parsed.ok_or_else(too_short)
    }
}

impl TraceHeader {
    /// Returns true if a record with hook 0 has the fields of a header event.
    pub(super) fn is_header(record: &[u8]) -> bool {
        let found = Self::parse(record, 0, 0);
        found.is_ok_and(|found| is_plausible(&found) && matches!(found.pointer_size, 4 | 8))
    }
}

/// Returns true if the fields whose offsets depend on the pointer size have values that Windows
/// writes.
const fn is_plausible(header: &TraceHeader) -> bool {
    let session = &header.session;
    !matches!(session.clock, ClockType::Other(_))
        && session.perf_frequency > 0
        && session.start_time.raw() > 0
}

/// Reads the fields after the first eight bytes, which have been checked.
fn parse_fields(record: &[u8], width: PointerSize, logger_id: u16) -> Option<TraceHeader> {
    let c = &mut Cursor::new(record);
    let mut session = LogFileHeader {
        thread_id: c.skip(8)?.u32()?,
        process_id: c.u32()?,
        start_clock: c.i64()?,
        // After the kernel and user times.
        buffer_size: c.skip(8)?.u32()?,
        os_major: c.u8()?,
        os_minor: c.u8()?,
        logger_id,
        ..LogFileHeader::default()
    };
    let layout_version = (c.u8()?, c.u8()?);
    session.os_build = c.u32()?;
    session.processors = c.u32()?;
    let end_time = c.i64()?;
    session.timer_resolution = c.u32()?;
    session.maximum_file_size = c.u32()?;
    session.log_file_mode = c.u32()?;
    let buffers_written = c.u32()?;
    let start_buffers = c.u32()?;
    let pointer_size = c.u32()?;
    let events_lost = c.u32()?;
    session.cpu_mhz = c.u32()?;
    c.skip(2 * width.bytes())?; // LoggerName, LogFileName (ETL-4.24)
    session.time_zone = parse_zone(c)?;
    // After the padding that aligns BootTime with either pointer size (ETL-4.26).
    session.boot_time = FileTime::from_raw(c.skip(4)?.i64()?);
    session.perf_frequency = c.i64()?;
    session.start_time = FileTime::from_raw(c.i64()?);
    session.clock = ClockType::from_raw(c.u32()?);
    let buffers_lost = c.u32()?;
    session.session_name = utf16_until_nul(c.rest());
    let name_bytes = 2 * (session_name_units(c.rest()) + 1);
    session.log_file_name = utf16_until_nul(c.rest().get(name_bytes..).unwrap_or_default());
    Some(TraceHeader {
        session,
        layout_version,
        pointer_size,
        start_buffers,
        buffers_written,
        end_time: (end_time != 0).then_some(FileTime::from_raw(end_time)),
        events_lost,
        buffers_lost,
    })
}

/// Returns the number of UTF-16 code units of the name at the start of `bytes`, without the NUL.
fn session_name_units(bytes: &[u8]) -> usize {
    bytes.as_chunks::<2>().0.iter().take_while(|&&unit| unit != [0, 0]).count()
}

fn parse_zone(c: &mut Cursor<'_>) -> Option<TimeZone> {
    Some(TimeZone {
        bias: c.i32()?,
        standard_name: utf16_until_nul(c.take(64)?),
        standard_date: SystemTime::from_bytes(c.array()?),
        standard_bias: c.i32()?,
        daylight_name: utf16_until_nul(c.take(64)?),
        daylight_date: SystemTime::from_bytes(c.array()?),
        daylight_bias: c.i32()?,
    })
}
