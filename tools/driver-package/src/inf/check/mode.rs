//! The modes of `infverif`, and the rules that differ between them.
//!
//! Sources: "INF Validation Errors and Warnings", "`InfVerif` /h" and "Using a Universal INF File" in
//! Microsoft's driver documentation.

use crate::inf::diagnostic::Severity;

/// The requirements that a file must meet: a mode of `infverif`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `infverif /h`, which the WDK runs for the target platform Desktop: the requirements of a
    /// signature for Windows.
    Desktop,
    /// `infverif /k`: the requirements of declarative drivers.
    Declarative,
    /// `infverif /u`, which the WDK runs for the target platform Universal.
    Universal,
    /// `infverif /w`, which the WDK runs for the target platform Windows Driver.
    #[default]
    Windows,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Desktop, Self::Declarative, Self::Universal, Self::Windows];

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Declarative => "declarative",
            Self::Universal => "universal",
            Self::Windows => "windows",
        }
    }

    /// Returns the mode with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Returns whether a file may be copied to a folder: by its DIRID and subfolder.
    pub(super) fn copies_to(self, dirid: &str, subfolder: &str) -> bool {
        match self {
            Self::Windows => dirid == "13",
            Self::Desktop => dirid == "13" || DESKTOP_FOLDERS.contains(&dirid),
            Self::Universal | Self::Declarative => {
                ["11", "12", "13"].contains(&dirid) || dirid == "10" && !subfolder.is_empty()
            }
        }
    }

    /// Returns whether an `AddReg` section may write below a key.
    pub(super) fn writes_to(self, root: &str, key: &str) -> bool {
        let root = root.to_ascii_uppercase();
        let is_below = |known: &&str| {
            let start = key.get(..known.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(known))
                && key
                    .get(known.len()..)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('\\'))
        };
        match (self, root.as_str()) {
            (_, "HKR") => true,
            (Self::Windows, _) => false,
            (_, "HKCR") => true,
            (Self::Desktop, "HKLM") => DESKTOP_KEYS.iter().any(is_below),
            (Self::Universal | Self::Declarative, "HKLM") => UNIVERSAL_KEYS.iter().any(is_below),
            _ => false,
        }
    }

    /// Returns the rule about a file's folder.
    pub(super) const fn folder_rule(self) -> &'static Rule {
        match self {
            Self::Desktop | Self::Windows => &FOLDER_NOT_ISOLATED,
            Self::Declarative | Self::Universal => &FOLDER_NOT_OF_SYSTEM,
        }
    }

    /// Returns the rule about the key of an `AddReg` section, or about a value in it.
    pub(super) const fn key_rule(self, names_value: bool) -> &'static Rule {
        match (self, names_value) {
            (Self::Desktop | Self::Windows, false) => &KEY_NOT_ISOLATED,
            (Self::Desktop | Self::Windows, true) => &VALUE_NOT_ISOLATED,
            (Self::Declarative | Self::Universal, _) => &KEY_NOT_RELATIVE,
        }
    }
}

/// A rule whose severity depends on the mode.
#[derive(Debug)]
pub(super) struct Rule {
    /// The number of `infverif`'s error.
    pub code: u16,
    declarative: Option<Severity>,
    universal: Option<Severity>,
    windows: Option<Severity>,
}

const E: Option<Severity> = Some(Severity::Error);
const W: Option<Severity> = Some(Severity::Warning);

impl Rule {
    const fn new(code: u16, [declarative, universal, windows]: [Option<Severity>; 3]) -> Self {
        Self { code, declarative, universal, windows }
    }

    /// Returns the severity in a mode, or `None` if the mode lacks the rule. Desktop has the rules
    /// of Windows Driver, with exceptions.
    pub const fn severity(&self, mode: Mode) -> Option<Severity> {
        match mode {
            Mode::Declarative => self.declarative,
            Mode::Universal => self.universal,
            Mode::Desktop | Mode::Windows => self.windows,
        }
    }
}

static KEY_NOT_RELATIVE: Rule = Rule::new(1304, [W, E, None]);
static FOLDER_NOT_OF_SYSTEM: Rule = Rule::new(1306, [W, E, None]);
/// The file removes or changes something, which Windows does itself.
pub(super) static REMOVES: Rule = Rule::new(1309, [W, E, E]);
static KEY_NOT_ISOLATED: Rule = Rule::new(1320, [None, None, E]);
static VALUE_NOT_ISOLATED: Rule = Rule::new(1321, [None, None, E]);
static FOLDER_NOT_ISOLATED: Rule = Rule::new(1322, [None, None, E]);
/// A registry value of a service is outside the key `Parameters`.
pub(super) static OUTSIDE_PARAMETERS: Rule = Rule::new(1323, [None, None, E]);
/// `PnpLockdown` is missing.
pub(super) static UNLOCKED: Rule = Rule::new(1324, [W, W, E]);
/// A session's file is outside the folder for drivers' data.
pub(super) static FILE_NOT_ISOLATED: Rule = Rule::new(1326, [W, W, E]);

/// The directives that a universal INF file must not contain.
pub(super) const REMOVING: [&str; 13] = [
    "BitReg", "DelFiles", "DelProperty", "DelReg", "DelService", "Ini2Reg", "LogConfig",
    "ProfileItems", "RegisterDlls", "RenFiles", "UnregisterDlls", "UpdateIniFields", "UpdateInis",
];

/// The DIRIDs besides 13 that `infverif /h` accepted in April 2024.
const DESKTOP_FOLDERS: [&str; 17] = [
    "10", "11", "12", "23", "51", "52", "55", "16422", "16425", "16426", "16427", "16428", "66000",
    "66001", "66002", "66003", "66004",
];

/// The keys below HKLM that `infverif /h` accepted in April 2024.
const DESKTOP_KEYS: [&str; 33] = [
    r"SYSTEM\CurrentControlSet",
    r"SOFTWARE\Classes",
    r"SOFTWARE\Khronos",
    r"SOFTWARE\Microsoft\Analog\Providers",
    r"SOFTWARE\Microsoft\Cellular\MVSettings\DeviceSpecific\CellUX",
    r"SOFTWARE\Microsoft\Cryptography\Calais\Readers",
    r"SOFTWARE\Microsoft\Cryptography\Calais\SmartCards",
    r"SOFTWARE\Microsoft\Cryptography\DRM_RNG",
    r"SOFTWARE\Microsoft\EAPOL",
    r"SOFTWARE\Microsoft\Palm\DelayManipulationDuration",
    r"SOFTWARE\Microsoft\Shell\OEM\QuickActions\ColorProfileQuickAction",
    r"SOFTWARE\Microsoft\Speech_OneCore\AudioInput",
    r"SOFTWARE\Microsoft\Windows Media Foundation",
    r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\AdaptiveDisplayBrightness",
    r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\drivers.desc",
    r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\Drivers32",
    r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\ICM",
    r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\OpenGlDrivers",
    r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon\Notify\ScCertProp",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\App Paths",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\Audio",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\Authentication",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\Control Panel",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\Controls Folder",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\Explorer",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\Reliability\UserDefined",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\Run",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\RunOnce",
    r"SOFTWARE\Microsoft\Windows\CurrentVersion\Uninstall",
    r"SOFTWARE\Wow6432Node\Microsoft\Windows Media Foundation",
    r"SOFTWARE\Wow6432Node\Khronos",
    r"SOFTWARE\WowAA32Node\Microsoft\Windows Media Foundation",
    r"SOFTWARE\WowAA32Node\Khronos",
];

/// The keys below HKLM that a universal INF file may write.
const UNIVERSAL_KEYS: [&str; 4] = [
    r"SOFTWARE\Classes",
    r"SOFTWARE\Microsoft\Windows Media Foundation",
    r"SOFTWARE\WOW6432Node\Microsoft\Windows Media Foundation",
    r"SOFTWARE\WOW3232Node\Microsoft\Windows Media Foundation",
];
