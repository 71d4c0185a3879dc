//! A provider's event log channels, as an INF file adds them ("INF
//! `AddEventProvider` Directive" in Microsoft's driver documentation).

use super::read::number;

/// A channel that a provider writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The full name, such as `Contoso-Driver/Operational`.
    pub name: String,
    /// The definition if it is the provider's own channel; `None` if another provider or Windows
    /// defines it, such as `System`.
    pub own: Option<OwnChannel>,
}

/// A channel that a provider defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnChannel {
    /// The number, 16 to 255.
    pub value: u8,
    /// The channel's settings, if known.
    pub settings: Option<ChannelSettings>,
}

/// A channel's settings in the event log. `None` means the event log's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelSettings {
    /// The channel's type.
    pub kind: ChannelKind,
    /// True if the channel receives events.
    pub enabled: Option<bool>,
    /// The isolation: `Application`, `System` or `Custom`.
    pub isolation: Option<String>,
    /// The security descriptor, in SDDL.
    pub access: Option<String>,
    /// The maximum size of the log file in bytes.
    pub max_size: Option<u64>,
    /// True if a full log file keeps its events (sequential).
    pub retention: Option<bool>,
    /// True if a full log file is kept and a new one started.
    pub auto_backup: Option<bool>,
}

/// The type of a channel, whose value is its number in an INF file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the event log defines the names")]
pub enum ChannelKind {
    #[default]
    Admin = 1,
    Operational = 2,
    Analytic = 3,
    Debug = 4,
}

impl ChannelKind {
    /// All types.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Operational, Self::Analytic, Self::Debug];

    /// Returns the name in a manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "Admin",
            Self::Operational => "Operational",
            Self::Analytic => "Analytic",
            Self::Debug => "Debug",
        }
    }

    /// Returns whether Event Viewer shows the channel to administrators while it is enabled.
    #[must_use]
    pub const fn is_for_administrators(self) -> bool {
        matches!(self, Self::Admin | Self::Operational)
    }
}

/// Returns the INF line that registers a channel.
pub fn line(channel: &Channel, section: &str) -> String {
    let Channel { name, own } = channel;
    match own {
        None => format!("ImportChannel = {name}"),
        Some(OwnChannel { settings: Some(settings), .. }) => {
            format!("AddChannel = {name},{:#x},{section}", settings.kind as u64)
        }
        Some(OwnChannel { settings: None, .. }) => format!("AddChannel = {name},TYPE,{section}"),
    }
}

/// The names of the isolations, numbered from 1.
pub(super) const ISOLATIONS: [&str; 3] = ["Application", "System", "Custom"];

/// An entry of a channel's section.
pub(super) struct Value {
    /// The key.
    pub key: &'static str,
    /// The value; `None` means the default.
    pub text: Option<String>,
    /// The default value, or an empty string if there is none.
    pub default: &'static str,
}

impl Value {
    /// Returns the value, or the default if there is none.
    pub fn effective(&self) -> &str {
        self.text.as_deref().unwrap_or(self.default)
    }

    /// Returns whether a value in an INF file has the same meaning.
    pub fn is(&self, found: &str) -> bool {
        let wanted = self.effective();
        match (number(found), number(wanted)) {
            (Some(found), Some(wanted)) => found == wanted,
            _ => found == wanted,
        }
    }
}

impl OwnChannel {
    /// Returns the known entries of the channel's section.
    pub(super) fn values(&self) -> Vec<Value> {
        let value = |key, text: Option<String>, default| Value { key, text, default };
        let bit = |flag: bool| u32::from(flag).to_string();
        let mut values = Vec::new();
        if let Some(settings) = &self.settings {
            let isolation = settings.isolation.as_deref();
            let isolation = isolation
                .and_then(|word| (1..).zip(ISOLATIONS).find(|(_, known)| *known == word))
                .map(|(number, _): (u32, _)| number.to_string());
            values.push(value("Isolation", isolation, "1"));
            values.push(value("Access", settings.access.clone(), ""));
            values.push(value("Enabled", settings.enabled.map(bit), "0"));
        }
        values.push(value("Value", Some(self.value.to_string()), ""));
        if let Some(settings) = &self.settings {
            let is_circular = settings.kind.is_for_administrators();
            let retention =
                settings.retention.map(|keeps| if keeps { "2" } else { "1" }.to_owned());
            values.push(value(
                "LoggingMaxSize",
                settings.max_size.map(|size| size.to_string()),
                "1048576",
            ));
            values.push(value("LoggingRetention", retention, if is_circular { "1" } else { "2" }));
            values.push(value("LoggingAutoBackup", settings.auto_backup.map(bit), "0"));
        }
        values
    }
}
