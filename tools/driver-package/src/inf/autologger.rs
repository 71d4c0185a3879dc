//! The sessions that Windows starts while it boots (`AutoLogger`), as an INF file adds them ("INF
//! `AddAutoLogger` and `UpdateAutoLogger` Directives" in Microsoft's driver documentation).

/// A session that Windows starts while it boots, and that enables a provider.
///
/// The numbers have the names and ranges of [`etw_wire::autologger`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoLogger {
    /// The session's name.
    pub session: String,
    /// The session's GUID, without braces.
    pub guid: String,
    /// The path of the log file, below the folder for drivers' data.
    pub file: Option<String>,
    /// The numbers of the session.
    pub values: Vec<(&'static str, u64)>,
    /// The numbers of the provider in the session.
    pub provider_values: Vec<(&'static str, u64)>,
}

/// The folder for drivers' data, as in a file whose strings have been replaced.
pub(super) const DRIVER_DATA: &str = r"%DriverData%\";

impl AutoLogger {
    /// Returns whether two providers describe the session differently.
    pub(super) fn differs(&self, other: &Self) -> bool {
        (&self.guid, &self.file, &self.values) != (&other.guid, &other.file, &other.values)
    }

    /// Returns the line that adds the session.
    pub(super) fn line(&self, section: &str) -> String {
        format!("AddAutoLogger = {},{{{}}},{section}", self.session, self.guid)
    }
}

/// Returns a number in a file's form: masks and codes in hexadecimal digits.
pub(super) fn written(key: &str, value: u64) -> String {
    let is_mask = key.starts_with("Match") || (key.starts_with("Enable") && key != "Enabled");
    if is_mask || key == "LogFileMode" { format!("{value:#x}") } else { value.to_string() }
}
