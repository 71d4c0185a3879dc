//! The values of sessions that Windows starts while it boots (`AutoLogger`), in the registry and in INF
//! files.
//!
//! Sources: "INF `AddAutoLogger` and `UpdateAutoLogger` Directives" in Microsoft's driver documentation, and
//! "Configuring and Starting an `AutoLogger` Session" in the Win32 documentation.

/// A number that a session has, or a provider in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name in the registry and in an INF file.
    pub key: &'static str,
    /// The name in a declaration in Rust; `None` for a value that declarations do not have.
    pub ident: Option<&'static str>,
    /// The least value.
    pub least: u64,
    /// The greatest value.
    pub most: u64,
    /// The value without an entry, if it does not depend on the machine.
    pub default: Option<u64>,
    /// The names of values in a declaration in Rust.
    pub names: &'static [(&'static str, u64)],
}

impl Setting {
    /// Returns whether a number is allowed.
    #[must_use]
    pub const fn accepts(&self, value: u64) -> bool {
        self.least <= value && value <= self.most
    }

    const fn named(self, names: &'static [(&'static str, u64)]) -> Self {
        Self { names, ..self }
    }
}

/// The bit of `LogFileMode` that begins a file when the previous one is full
/// (`EVENT_TRACE_FILE_MODE_NEWFILE`).
pub const NEW_FILE: u64 = 0x8;

const MAX: u64 = u32::MAX as u64;

/// The values of a session, besides the name of its file.
pub const SESSION: &[Setting] = &[
    setting("Start", Some("start"), 0, 1, None),
    // In KB, less than 1 MB.
    setting("BufferSize", Some("buffer_size"), 1, 1023, None),
    setting("ClockType", Some("clock_type"), 1, 3, Some(1)).named(&[
        ("Performance", 1),
        ("System", 2),
        ("Cycle", 3),
    ]),
    setting("DisableRealtimePersistence", Some("disable_realtime_persistence"), 0, 1, Some(0)),
    setting("FileMax", Some("file_max"), 1, 16, None),
    // In seconds; without it, buffers are flushed when they are full.
    setting("FlushTimer", Some("flush_timer"), 0, MAX, Some(0)),
    setting("LogFileMode", Some("log_file_mode"), 0, MAX, Some(1)).named(&[
        ("Sequential", 0x1),
        ("Circular", 0x2),
        ("NewFile", NEW_FILE),
        ("RealTime", 0x100),
        ("Buffering", 0x400),
    ]),
    // In MB; 0 is no limit.
    setting("MaxFileSize", Some("max_file_size"), 0, MAX, Some(100)),
    setting("MaximumBuffers", Some("maximum_buffers"), 2, MAX, None),
    // Two for each processor.
    setting("MinimumBuffers", Some("minimum_buffers"), 2, MAX, None),
];

/// The values of a provider in a session.
pub const PROVIDER: &[Setting] = &[
    setting("Enabled", None, 0, 1, Some(0)),
    // For providers without keywords.
    setting("EnableFlags", None, 0, MAX, None),
    setting("EnableLevel", Some("enable_level"), 0, 0xFF, None).named(&[
        ("LogAlways", 0),
        ("Critical", 1),
        ("Error", 2),
        ("Warning", 3),
        ("Info", 4),
        ("Verbose", 5),
    ]),
    setting("EnableProperty", Some("enable_property"), 0, MAX, Some(0)),
    setting("MatchAnyKeyword", Some("match_any_keyword"), 0, u64::MAX, Some(0)),
    setting("MatchAllKeyword", Some("match_all_keyword"), 0, u64::MAX, Some(0)),
];

const fn setting(
    key: &'static str,
    ident: Option<&'static str>,
    least: u64,
    most: u64,
    default: Option<u64>,
) -> Setting {
    Setting { key, ident, least, most, default, names: &[] }
}

/// The most characters in the path of a session's file.
pub const MAX_FILE_NAME: usize = 1024;

/// Returns what is wrong with the combination of a session's values, which `value` returns by their keys.
#[must_use]
pub fn conflict(value: impl Fn(&str) -> Option<u64>) -> Option<&'static str> {
    if let (Some(minimum), Some(maximum)) = (value("MinimumBuffers"), value("MaximumBuffers"))
        && maximum < minimum
    {
        return Some("MaximumBuffers is less than MinimumBuffers");
    }
    let makes_files = value("LogFileMode").is_some_and(|mode| mode & NEW_FILE != 0);
    (makes_files && value("FileMax").is_some())
        .then_some("FileMax is not possible with a LogFileMode that begins new files (0x8)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_names_are_unique_and_defaults_are_accepted() {
        for table in [SESSION, PROVIDER] {
            for (number, one) in table.iter().enumerate() {
                assert!(one.default.is_none_or(|value| one.accepts(value)), "{}", one.key);
                assert!(one.names.iter().all(|(_, value)| one.accepts(*value)), "{}", one.key);
                let others = table.iter().skip(number + 1);
                assert!(others.clone().all(|other| other.key != one.key), "{}", one.key);
            }
        }
        let levels = PROVIDER.iter().find(|one| one.key == "EnableLevel").map(|one| one.names);
        let standard = crate::winmeta::LEVELS.iter().map(|level| (level.ident, level.value.into()));
        assert!(levels.into_iter().flatten().copied().eq(standard));
    }

    #[test]
    fn conflicts_are_found() {
        let of = |values: &'static [(&str, u64)]| {
            conflict(|key| values.iter().find(|(known, _)| *known == key).map(|(_, value)| *value))
        };
        assert_eq!(of(&[("MinimumBuffers", 4), ("MaximumBuffers", 4)]), None);
        assert!(of(&[("MinimumBuffers", 4), ("MaximumBuffers", 3)]).is_some());
        assert_eq!(of(&[("LogFileMode", 1), ("FileMax", 4)]), None);
        assert!(of(&[("LogFileMode", 9), ("FileMax", 4)]).is_some());
    }
}
