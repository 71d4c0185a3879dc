//! The values of sessions that Windows starts while it boots (`AutoLogger`), in the registry and in INF
//! files.
//!
//! Sources: "INF `AddAutoLogger` and `UpdateAutoLogger` Directives" in Microsoft's driver documentation, and
//! "Configuring and Starting an `AutoLogger` Session" in the Win32 documentation.

/// A numeric setting of a session, or of a provider in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name in the registry and in an INF file.
    pub key: &'static str,
    /// The name in a Rust declaration; `None` for a value that declarations cannot set.
    pub ident: Option<&'static str>,
    /// The minimum value.
    pub least: u64,
    /// The maximum value.
    pub most: u64,
    /// The default value, if it does not depend on the machine.
    pub default: Option<u64>,
    /// The names of values in a Rust declaration.
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

const SEQUENTIAL: u64 = 0x1;
const CIRCULAR: u64 = 0x2;
const APPEND: u64 = 0x4;
/// The bit of `LogFileMode` that begins a file when the previous one is full
/// (`EVENT_TRACE_FILE_MODE_NEWFILE`). The file's name needs `%d`.
pub const NEW_FILE: u64 = 0x8;
const PREALLOCATE: u64 = 0x20;
const REAL_TIME: u64 = 0x100;
const BUFFERING: u64 = 0x400;
const PRIVATE: u64 = 0x800;
const INDEPENDENT_SESSION: u64 = 0x0800_0000;

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
        ("Sequential", SEQUENTIAL),
        ("Circular", CIRCULAR),
        ("RealTime", REAL_TIME),
        ("Buffering", BUFFERING),
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

/// The maximum number of characters in the path of a session's file.
pub const MAX_FILE_NAME: usize = 1024;

/// The modes that exclude each other (ETW-6.4.2): a bit, the bits that it excludes, and the message.
const EXCLUSIVE: [(u64, u64, &str); 6] = [
    (
        SEQUENTIAL,
        CIRCULAR | NEW_FILE,
        "LogFileMode has 0x1 (sequential), which excludes 0x2 (circular) and 0x8 (new files)",
    ),
    (
        CIRCULAR,
        APPEND | NEW_FILE,
        "LogFileMode has 0x2 (circular), which excludes 0x4 (append) and 0x8 (new files)",
    ),
    (NEW_FILE, APPEND, "LogFileMode has 0x8 (new files), which excludes 0x4 (append)"),
    (
        APPEND,
        REAL_TIME | PRIVATE,
        "LogFileMode has 0x4 (append), which excludes 0x100 (real time) and 0x800 (private)",
    ),
    (
        PRIVATE,
        REAL_TIME | INDEPENDENT_SESSION,
        "LogFileMode has 0x800 (private), which excludes 0x100 (real time) and 0x8000000 (independent)",
    ),
    (
        BUFFERING,
        SEQUENTIAL | CIRCULAR | APPEND | NEW_FILE | REAL_TIME,
        "LogFileMode has 0x400 (buffering, in memory only), which excludes the modes of files (0x1, 0x2, 0x4, \
         0x8) and 0x100 (real time)",
    ),
];

/// Returns the reason why a session cannot combine its values and its file's name, if there is one.
/// `value` returns a value by its key.
#[must_use]
pub fn conflict(
    value: impl Fn(&str) -> Option<u64>,
    file_name: Option<&str>,
) -> Option<&'static str> {
    if let (Some(minimum), Some(maximum)) = (value("MinimumBuffers"), value("MaximumBuffers"))
        && maximum < minimum
    {
        return Some("MaximumBuffers is less than MinimumBuffers");
    }
    let mode = value("LogFileMode").unwrap_or(SEQUENTIAL);
    let has = |bits: u64| mode & bits != 0;
    if let Some((.., why)) = EXCLUSIVE.iter().find(|(one, others, _)| has(*one) && has(*others)) {
        return Some(why);
    }
    let (size, files) = (value("MaxFileSize"), value("FileMax"));
    if has(BUFFERING) && (file_name.is_some() || size.is_some() || files.is_some()) {
        return Some(
            "LogFileMode 0x400 (buffering) keeps events in memory only; remove FileName, \
             MaxFileSize and FileMax",
        );
    }
    // ETW-6.4.9
    if has(CIRCULAR | NEW_FILE | PREALLOCATE) && size == Some(0) {
        return Some(
            "LogFileMode 0x2 (circular), 0x8 (new files) and 0x20 (preallocated) need a MaxFileSize that is \
             not 0",
        );
    }
    if has(NEW_FILE) && files.is_some() {
        return Some("FileMax cannot be used with a LogFileMode that begins new files (0x8)");
    }
    let has_number = file_name.is_some_and(|name| name.contains("%d"));
    (has(NEW_FILE) && !has_number)
        .then_some("LogFileMode 0x8 (new files) needs %d in FileName, for the number of a file")
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
        let named = |values: &[(&str, u64)], file| {
            let value =
                |key: &str| values.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
            conflict(value, file)
        };
        let of = |values: &[(&str, u64)]| named(values, None);
        assert_eq!(of(&[("MinimumBuffers", 4), ("MaximumBuffers", 4)]), None);
        assert!(of(&[("MinimumBuffers", 4), ("MaximumBuffers", 3)]).is_some());
        assert_eq!(of(&[("LogFileMode", 1), ("FileMax", 4)]), None);
        let numbered = Some("boot%d.etl");
        let new_files = ("LogFileMode", NEW_FILE);
        assert_eq!(named(&[new_files], numbered), None);
        assert!(named(&[new_files, ("FileMax", 4)], numbered).is_some());
        assert!(named(&[new_files], Some("boot.etl")).is_some());
        assert!(of(&[new_files]).is_some());
        for mode in [CIRCULAR, NEW_FILE, PREALLOCATE | SEQUENTIAL] {
            let sized = |size| named(&[("LogFileMode", mode), ("MaxFileSize", size)], numbered);
            assert_eq!(sized(1), None, "{mode:#x}");
            assert!(sized(0).is_some(), "{mode:#x}");
        }
        assert_eq!(of(&[("LogFileMode", SEQUENTIAL), ("MaxFileSize", 0)]), None);
        let buffering = ("LogFileMode", BUFFERING);
        assert_eq!(of(&[buffering, ("BufferSize", 64), ("MaximumBuffers", 64)]), None);
        for of_file in ["MaxFileSize", "FileMax"] {
            assert!(of(&[buffering, (of_file, 4)]).is_some(), "{of_file}");
        }
        assert!(named(&[buffering], Some("boot.etl")).is_some());
    }

    /// ETW-6.4.2, ETW-6.4.6
    #[test]
    fn modes_that_exclude_each_other_are_conflicts() {
        let modes = [SEQUENTIAL, CIRCULAR, APPEND, NEW_FILE, REAL_TIME, BUFFERING, PRIVATE];
        let together = [
            SEQUENTIAL | APPEND,
            SEQUENTIAL | REAL_TIME,
            CIRCULAR | REAL_TIME,
            NEW_FILE | REAL_TIME,
            SEQUENTIAL | PRIVATE,
            CIRCULAR | PRIVATE,
            NEW_FILE | PRIVATE,
            BUFFERING | PRIVATE,
        ];
        for (place, one) in modes.iter().enumerate() {
            for other in modes.iter().skip(place + 1) {
                let mode = one | other;
                let value = |key: &str| (key == "LogFileMode").then_some(mode);
                // Only this mode has no file.
                let file = (mode & BUFFERING == 0).then_some("boot%d.etl");
                let is_possible = conflict(value, file).is_none();
                assert_eq!(is_possible, together.contains(&mode), "{mode:#x}");
            }
        }
    }
}
