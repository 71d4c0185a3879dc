//! Times in other decoders' output: ISO 8601, with any number of digits.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use etl_file::{FileTime, SystemTime};

/// A time in another decoder's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OtherTime {
    /// Nanoseconds since the Unix epoch; in UTC if the text has an offset.
    nanos: i128,
    /// The number of digits after the decimal point.
    digits: u32,
    /// True if the text contains the offset from UTC.
    has_offset: bool,
}

impl OtherTime {
    /// Reads a time such as `2026-01-02T03:04:05.1234567Z` or `2026-01-01T22:04:05.123456700-05:00`.
    ///
    /// Ignores the text direction marks that Windows inserts into the times of messages.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text: String = text.trim().chars().filter(|c| *c != '\u{200E}').collect();
        // Jiff also accepts basic and partial formats, which no decoder writes.
        if text.as_bytes().get(10) != Some(&b'T') {
            return None;
        }
        let (_, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let digits = u32::try_from(digits).ok().filter(|digits| *digits <= 9)?;
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            return Some(Self { nanos: time.as_nanosecond(), digits, has_offset: true });
        }
        let civil: DateTime = text.parse().ok()?;
        Some(Self { nanos: nanos_of(civil)?, digits, has_offset: false })
    }

    /// Returns the nanoseconds since the Unix epoch, if the text contains the offset from UTC.
    pub(super) const fn unix_nanos(&self) -> Option<i128> {
        if self.has_offset { Some(self.nanos) } else { None }
    }

    /// Returns the precision of the text, in nanoseconds.
    const fn step(&self) -> i128 {
        10_i128.pow(9 - self.digits)
    }

    /// Returns true if the text is this time in all of its digits. Missing digits may have been cut
    /// off or rounded.
    const fn is_nanos(&self, nanos: i128) -> bool {
        let step = self.step();
        let cut = nanos.div_euclid(step) * step;
        let rounded = (nanos + step / 2).div_euclid(step) * step;
        self.nanos == cut || self.nanos == rounded
    }

    /// Returns true if the text denotes this time in UTC.
    pub(super) fn is(&self, time: FileTime) -> bool {
        self.has_offset && self.is_nanos(time.unix_nanos())
    }

    /// Returns true if the text can denote the same time after a conversion that lost precision: it
    /// is less than a microsecond, or less than the text's precision, away.
    pub(super) fn is_near(&self, time: FileTime) -> bool {
        let step = self.step().max(1_000);
        self.has_offset && (self.nanos - time.unix_nanos()).abs() <= step
    }

    /// Returns true if the text denotes this date and time, in UTC or without a zone.
    pub(super) fn is_system_time(&self, time: SystemTime) -> bool {
        let parts = (|| {
            DateTime::new(
                i16::try_from(time.year).ok()?,
                i8::try_from(time.month).ok()?,
                i8::try_from(time.day).ok()?,
                i8::try_from(time.hour).ok()?,
                i8::try_from(time.minute).ok()?,
                i8::try_from(time.second).ok()?,
                i32::from(time.millisecond).checked_mul(1_000_000)?,
            )
            .ok()
        })();
        parts.and_then(nanos_of).is_some_and(|nanos| self.is_nanos(nanos))
    }
}

/// Returns the nanoseconds from the Unix epoch to a time in UTC.
fn nanos_of(time: DateTime) -> Option<i128> {
    let zoned = time.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_nanosecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-02T03:04:05.1234567Z.
    const TIME: FileTime = FileTime::from_raw(134_117_966_451_234_567);

    fn is(text: &str) -> bool {
        OtherTime::parse(text).is_some_and(|time| time.is(TIME))
    }

    #[test]
    fn times_are_equal_with_the_digits_and_offset_that_they_have() {
        assert_eq!(TIME.to_string(), "2026-01-02T03:04:05.1234567Z");
        for text in [
            "2026-01-02T03:04:05.1234567Z",
            "2026-01-02T03:04:05.123456700Z",
            "2026-01-01T22:04:05.123456700-05:00",
            "2026-01-01T22:05:05.123456700-04:59",
            "2026-01-02T03:04:05.123Z",
            "2026-01-02T03:04:05.123456Z",
            "2026-01-02T03:04:05.123457Z",
            "2026-01-02T03:04:05Z",
            "\u{200E}2026\u{200E}-\u{200E}01\u{200E}-\u{200E}02T03:04:05.123456700Z",
        ] {
            assert!(is(text), "{text}");
        }
        for text in [
            "2026-01-02T03:04:05.1234568Z", "2026-01-02T03:04:05.123456701Z",
            "2026-01-02T03:04:05.123458Z", "2026-01-02T03:04:05.124Z", "2026-01-02T03:04:06Z",
            "2026-01-02T03:04:05.1234567+01:00", "2026-01-02T03:04:05.1234567",
            "2026-01-02 03:04:05.1234567Z", "1/2/2026 3:04:05 AM", "134117966451234567", "",
        ] {
            assert!(!is(text), "{text}");
        }
    }

    #[test]
    fn a_near_time_may_be_that_of_the_same_event() {
        let near = |text: &str| OtherTime::parse(text).unwrap().is_near(TIME);
        assert!(near("2026-01-02T03:04:05.1234568Z"));
        assert!(near("2026-01-02T03:04:05.124Z"));
        assert!(!near("2026-01-02T03:04:05.1234599Z"));
    }

    #[test]
    fn system_times_need_no_zone() {
        let time = SystemTime {
            year: 2020,
            month: 2,
            day_of_week: 1,
            day: 17,
            hour: 12,
            minute: 48,
            second: 57,
            millisecond: 751,
        };
        let is =
            |text: &str| OtherTime::parse(text).is_some_and(|other| other.is_system_time(time));
        assert!(is("2020-02-17T12:48:57.751"));
        assert!(is("2020-02-17T12:48:57.751000000Z"));
        assert!(is("2020-02-17T12:48:57"));
        assert!(!is("2020-02-17T12:48:57.752Z"));
        let rule = SystemTime { year: 0, ..time };
        let other = OtherTime::parse("2020-02-17T12:48:57.751").unwrap();
        assert!(!other.is_system_time(rule));
        let bad = SystemTime { month: 13, ..time };
        assert!(!other.is_system_time(bad));
    }

    #[test]
    fn only_a_time_with_an_offset_is_a_point_in_time() {
        let nanos = |text| OtherTime::parse(text).unwrap().unix_nanos();
        let expected = Some(1_767_323_045_123_456_700);
        assert_eq!(nanos("2026-01-02T03:04:05.1234567Z"), expected);
        assert_eq!(nanos("2026-01-02T04:04:05.1234567+01:00"), expected);
        assert_eq!(nanos("2026-01-02T03:04:05.1234567"), None);
    }
}
