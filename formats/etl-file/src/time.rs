//! Points in time: FILETIME, SYSTEMTIME, and a session's clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A FILETIME: the number of 100 ns units since 1601-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileTime(i64);

/// The number of 100 ns units from 1601-01-01 to 1970-01-01.
const UNIX_EPOCH: i64 = 116_444_736_000_000_000;

impl FileTime {
    /// Returns the time that is `units` × 100 ns after 1601-01-01 UTC.
    #[must_use]
    pub const fn from_raw(units: i64) -> Self {
        Self(units)
    }

    /// Returns the number of 100 ns units since 1601-01-01 UTC.
    #[must_use]
    pub const fn raw(self) -> i64 {
        self.0
    }

    /// Converts nanoseconds since the Unix epoch, rounded down to 100 ns and clamped to the range.
    #[must_use]
    pub fn from_unix_nanos(nanos: i128) -> Self {
        Self(saturate(nanos.div_euclid(100) + i128::from(UNIX_EPOCH)))
    }

    /// Returns the number of nanoseconds since the Unix epoch.
    #[must_use]
    pub fn unix_nanos(self) -> i128 {
        (i128::from(self.0) - i128::from(UNIX_EPOCH)) * 100
    }
}

/// Formats the time as ISO 8601 in UTC with a resolution of 100 ns, or as its raw count outside the
/// years -9999 to 9999.
impl fmt::Display for FileTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(self.unix_nanos()) {
            Ok(time) => write!(f, "{}", time.strftime("%Y-%m-%dT%H:%M:%S%.7fZ")),
            Err(_) => write!(f, "FILETIME {}", self.0),
        }
    }
}

/// The error for text that is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a time in UTC such as 2026-01-31T23:59:59.5Z")]
pub struct NotATime;

/// Parses a time in the output format, with any number of digits; without a time zone, it is in
/// UTC.
impl FromStr for FileTime {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let time: jiff::Timestamp =
            text.parse().or_else(|_| format!("{text}Z").parse()).map_err(|_| NotATime)?;
        Ok(Self::from_unix_nanos(time.as_nanosecond()))
    }
}

impl serde::Serialize for FileTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A SYSTEMTIME: a date and time of day in eight 16-bit fields.
///
/// In a time zone, it is instead the rule for a switch: `year` is 0, and `day` is the week of the
/// month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SystemTime {
    /// The year, or 0 in a rule.
    pub year: u16,
    /// The month, 1 to 12.
    pub month: u16,
    /// The day of the week; 0 is Sunday.
    pub day_of_week: u16,
    /// The day of the month, or the week in a rule.
    pub day: u16,
    /// The hour.
    pub hour: u16,
    /// The minute.
    pub minute: u16,
    /// The second.
    pub second: u16,
    /// The millisecond.
    pub millisecond: u16,
}

impl SystemTime {
    /// Reads the 16 bytes of the structure.
    #[must_use]
    pub const fn from_bytes(b: [u8; 16]) -> Self {
        Self {
            year: u16::from_le_bytes([b[0], b[1]]),
            month: u16::from_le_bytes([b[2], b[3]]),
            day_of_week: u16::from_le_bytes([b[4], b[5]]),
            day: u16::from_le_bytes([b[6], b[7]]),
            hour: u16::from_le_bytes([b[8], b[9]]),
            minute: u16::from_le_bytes([b[10], b[11]]),
            second: u16::from_le_bytes([b[12], b[13]]),
            millisecond: u16::from_le_bytes([b[14], b[15]]),
        }
    }

    /// Returns the 16 bytes of the structure.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        let fields = [
            self.year, self.month, self.day_of_week, self.day, self.hour, self.minute, self.second,
            self.millisecond,
        ];
        let mut bytes = [0; 16];
        for (to, from) in bytes.chunks_exact_mut(2).zip(fields) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        bytes
    }
}

impl fmt::Display for SystemTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}",
            self.year, self.month, self.day, self.hour, self.minute, self.second, self.millisecond
        )
    }
}

impl serde::Serialize for SystemTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The unit of a trace's timestamps (`ReservedFlags` of `TRACE_LOGFILE_HEADER`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClockType {
    /// 1: performance counter ticks.
    #[default]
    Qpc,
    /// 2: units of 100 ns since 1601, a FILETIME.
    SystemTime,
    /// 3: processor cycles.
    CpuCycles,
    /// An undocumented value.
    Other(u32),
}

impl ClockType {
    /// Converts the number in the file.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        match raw {
            1 => Self::Qpc,
            2 => Self::SystemTime,
            3 => Self::CpuCycles,
            other => Self::Other(other),
        }
    }

    /// Returns the number in the file.
    #[must_use]
    pub const fn raw(self) -> u32 {
        match self {
            Self::Qpc => 1,
            Self::SystemTime => 2,
            Self::CpuCycles => 3,
            Self::Other(raw) => raw,
        }
    }
}

/// A session's clock, which converts timestamps to absolute times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The unit of timestamps.
    pub kind: ClockType,
    /// The performance counter's ticks per second.
    pub perf_frequency: i64,
    /// The processor speed in MHz, which scales [`ClockType::CpuCycles`].
    pub cpu_mhz: u32,
    /// The clock's reading when the session started.
    pub start_clock: i64,
    /// The absolute time when the session started.
    pub start_time: FileTime,
}

impl Clock {
    /// Returns the absolute time of a timestamp, rounded down to 100 ns (ETL-6.2).
    ///
    /// If the clock type is unknown or its frequency is not positive, timestamps cannot be
    /// converted and the result is the start time.
    #[must_use]
    pub fn to_file_time(&self, raw: i64) -> FileTime {
        let Some((units, ticks)) = self.rate() else {
            return self.start_time;
        };
        let delta = i128::from(raw) - i128::from(self.start_clock);
        let elapsed = (delta * units).div_euclid(ticks);
        FileTime(saturate(i128::from(self.start_time.0) + elapsed))
    }

    /// Returns the reading at an absolute time, rounded down to a tick, or `None` if timestamps
    /// cannot be converted.
    #[must_use]
    pub fn from_file_time(&self, time: FileTime) -> Option<i64> {
        let (units, ticks) = self.rate()?;
        let elapsed = i128::from(time.0) - i128::from(self.start_time.0);
        let ticks = (elapsed * ticks).div_euclid(units);
        Some(saturate(i128::from(self.start_clock) + ticks))
    }

    /// Returns the time between two readings, or `None` if the second is before the first or
    /// timestamps cannot be converted.
    #[must_use]
    pub fn between(&self, first: i64, second: i64) -> Option<Duration> {
        let (units, ticks) = self.rate()?;
        let passed = i128::from(second) - i128::from(first);
        u64::try_from(passed * units * 100 / ticks).ok().map(Duration::from_nanos)
    }

    /// Returns the clock's rate, as a number of 100 ns units and the number of ticks in that time,
    /// or `None` if timestamps cannot be converted.
    pub(crate) fn rate(&self) -> Option<(i128, i128)> {
        let (units, ticks) = match self.kind {
            ClockType::Qpc => (10_000_000, i128::from(self.perf_frequency)),
            ClockType::SystemTime => (1, 1),
            ClockType::CpuCycles => (10, i128::from(self.cpu_mhz)),
            ClockType::Other(_) => return None,
        };
        (ticks > 0).then_some((units, ticks))
    }

    /// Returns a buffer's `TimeStamp` as a clock reading. In merged files it is a FILETIME,
    /// whatever the clock (ETL-12.7); the interpretation that is nearer to the session's start is
    /// used.
    pub(crate) fn reading_of_buffer(&self, timestamp: i64) -> i64 {
        let from_start = |time: FileTime| time.0.abs_diff(self.start_time.0);
        let as_reading = from_start(self.to_file_time(timestamp));
        let as_time = from_start(FileTime(timestamp));
        match self.from_file_time(FileTime(timestamp)) {
            Some(reading) if as_time < as_reading => reading,
            _ => timestamp,
        }
    }
}

/// Clamps a value to the range of `i64`.
fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: FileTime = FileTime::from_raw(132_264_173_104_203_138);

    fn clock(kind: ClockType) -> Clock {
        Clock {
            kind,
            perf_frequency: 3_000_000,
            cpu_mhz: 2_500,
            start_clock: 1_000,
            start_time: START,
        }
    }

    #[test]
    fn performance_counter_ticks_scale_by_the_frequency() {
        let time = clock(ClockType::Qpc).to_file_time(1_000 + 3_000_000 * 7 + 1);
        assert_eq!(time.raw(), START.raw() + 70_000_000 + 3);
    }

    #[test]
    fn readings_are_apart_by_the_rate_of_their_clock() {
        let between = |kind, first, second| clock(kind).between(first, second);
        let nanos = |nanos| Some(Duration::from_nanos(nanos));
        assert_eq!(between(ClockType::Qpc, 10, 13), nanos(1000));
        assert_eq!(between(ClockType::SystemTime, 10, 13), nanos(300));
        assert_eq!(between(ClockType::CpuCycles, 10, 15), nanos(2));
        assert_eq!(between(ClockType::Qpc, 10, 10), nanos(0));
        assert_eq!(between(ClockType::Qpc, 13, 10), None);
        assert_eq!(between(ClockType::Other(7), 10, 13), None);
        for perf_frequency in [0, -1] {
            let clock = Clock { perf_frequency, ..clock(ClockType::Qpc) };
            assert_eq!(clock.between(13, 10), None);
            assert_eq!(clock.between(10, 13), None);
        }
    }

    #[test]
    fn cycles_scale_by_the_processor_speed() {
        let time = clock(ClockType::CpuCycles).to_file_time(1_000 + 2_500_000);
        assert_eq!(time.raw(), START.raw() + 10_000);
    }

    #[test]
    fn system_time_counts_from_the_anchor_without_scale() {
        let time = clock(ClockType::SystemTime).to_file_time(1_234);
        assert_eq!(time.raw(), START.raw() + 234);
    }

    #[test]
    fn time_stamp_before_the_start_is_an_earlier_time() {
        let time = clock(ClockType::Qpc).to_file_time(999);
        assert_eq!(time.raw(), START.raw() - 4);
    }

    #[test]
    fn extreme_readings_saturate() {
        let mut clock = clock(ClockType::Qpc);
        clock.perf_frequency = 1;
        assert_eq!(clock.to_file_time(i64::MAX).raw(), i64::MAX);
        assert_eq!(clock.to_file_time(i64::MIN).raw(), i64::MIN);
    }

    #[test]
    fn clock_without_scale_stays_at_the_start() {
        let mut broken = clock(ClockType::Qpc);
        broken.perf_frequency = 0;
        assert_eq!(broken.to_file_time(5_000), START);
        assert_eq!(clock(ClockType::Other(9)).to_file_time(5_000), START);
    }

    #[test]
    fn a_time_has_a_reading() {
        for kind in [ClockType::Qpc, ClockType::SystemTime, ClockType::CpuCycles] {
            let clock = clock(kind);
            for raw in [1_000, 7_000_000, -50_000_000] {
                let time = clock.to_file_time(raw);
                let back = clock.from_file_time(time).unwrap();
                assert!(clock.to_file_time(back).raw().abs_diff(time.raw()) <= 1);
                assert!(raw.abs_diff(back) <= 250, "{kind:?}: {raw} and {back}");
            }
        }
        let mut broken = clock(ClockType::Qpc);
        broken.perf_frequency = 0;
        assert_eq!(broken.from_file_time(START), None);
        assert_eq!(clock(ClockType::Other(9)).from_file_time(START), None);
        assert_eq!(broken.reading_of_buffer(START.raw()), START.raw());
    }

    #[test]
    fn the_time_of_a_buffer_is_a_reading_or_a_file_time() {
        for kind in [ClockType::Qpc, ClockType::CpuCycles] {
            let clock = clock(kind);
            let later = 1_000 + 30_000_000;
            assert_eq!(clock.reading_of_buffer(later), later, "{kind:?}");
            let time = clock.to_file_time(later).raw();
            assert_eq!(clock.reading_of_buffer(time), later, "{kind:?}");
        }
        let system = clock(ClockType::SystemTime);
        assert_eq!(system.reading_of_buffer(START.raw()), 1_000);
    }

    #[test]
    fn file_time_is_written_in_utc_with_seven_digits() {
        assert_eq!(
            FileTime::from_unix_nanos(1_581_943_737_751_881_099).to_string(),
            "2020-02-17T12:48:57.7518810Z"
        );
        assert_eq!(FileTime::from_raw(0).to_string(), "1601-01-01T00:00:00.0000000Z");
        assert_eq!(FileTime::from_raw(i64::MAX).to_string(), "FILETIME 9223372036854775807");
    }

    #[test]
    fn system_time_reads_back() {
        let bytes = [0xE4, 7, 2, 0, 1, 0, 17, 0, 12, 0, 48, 0, 57, 0, 239, 2];
        let time = SystemTime::from_bytes(bytes);
        assert_eq!(time.to_string(), "2020-02-17T12:48:57.751");
        assert_eq!(time.to_bytes(), bytes);
    }

    #[test]
    fn a_buffers_time_stamp_is_a_time_if_that_is_nearer_to_the_start() {
        let clock = Clock {
            kind: ClockType::Qpc,
            perf_frequency: 10_000_000,
            cpu_mhz: 0,
            start_clock: 1_000,
            start_time: FileTime::from_raw(3_000),
        };
        assert_eq!(clock.reading_of_buffer(1_999), 1_999);
        assert_eq!(clock.reading_of_buffer(2_000), 2_000);
        assert_eq!(clock.reading_of_buffer(2_001), 1);
    }
}
