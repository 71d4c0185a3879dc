//! The answer file of Windows Setup, and the CD that has it.

use std::{fmt::Write as _, path::Path};

use sha2::{Digest as _, Sha256};

use crate::{
    error::{Error, Result},
    iso::Files,
    kit::windows_lines,
};

/// The answer file, with a word between at signs for what differs.
const TEMPLATE: &str = include_str!("../../../tests/windows/unattended/autounattend.xml");
/// The disk's partitions for UEFI.
const DISK_UEFI: &str = include_str!("../../../tests/windows/unattended/disk-uefi.xml");
/// The disk's partitions for a BIOS.
const DISK_BIOS: &str = include_str!("../../../tests/windows/unattended/disk-bios.xml");
/// The settings with which Setup installs Windows 11 on a machine without TPM and Secure Boot.
const LAB: &str = include_str!("../../../tests/windows/unattended/lab.xml");
/// The setting with which Windows 11 asks for no network.
const NO_NETWORK: &str = include_str!("../../../tests/windows/unattended/no-network.xml");
/// Runs at the first logon, and prepares Windows.
const SETUP: &[u8] = include_bytes!("../../../tests/windows/unattended/setup.cmd");
/// Runs at each start of Windows, and starts the agent of a kit.
const START: &[u8] = include_bytes!("../../../tests/windows/unattended/start.cmd");

/// A Windows that can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Windows 10 22H2.
    Windows10,
    /// Windows 11 24H2 and later.
    Windows11,
    /// Windows Server 2022.
    Server2022,
    /// Windows Server 2025.
    Server2025,
}

impl Windows {
    /// Every known system.
    pub const ALL: [Self; 4] = [
        Self::Windows10,
        Self::Windows11,
        Self::Server2022,
        Self::Server2025,
    ];

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Windows10 => "10",
            Self::Windows11 => "11",
            Self::Server2022 => "2022",
            Self::Server2025 => "2025",
        }
    }

    /// Returns the full name.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Windows10 => "Windows 10",
            Self::Windows11 => "Windows 11",
            Self::Server2022 => "Windows Server 2022",
            Self::Server2025 => "Windows Server 2025",
        }
    }

    /// Returns the system with a name of the command line.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns the index of the edition that is installed by default: on evaluation images, the one
    /// edition of a client, and the Standard edition of a server with its desktop.
    #[must_use]
    pub const fn default_index(self) -> u32 {
        match self {
            Self::Windows10 | Self::Windows11 => 1,
            Self::Server2022 | Self::Server2025 => 2,
        }
    }

    /// Tells the system from the name of its installation image, as Microsoft names them.
    #[must_use]
    pub fn of_image(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if has(&["server"]) {
            if has(&["26100", "2025"]) {
                Some(Self::Server2025)
            } else if has(&["20348", "2022"]) {
                Some(Self::Server2022)
            } else {
                None
            }
        } else if has(&[
            "win11",
            "windows11",
            "windows_11",
            "windows-11",
            "26100",
            "26200",
            "22631",
        ]) {
            Some(Self::Windows11)
        } else if has(&["win10", "windows10", "windows_10", "windows-10", "19045"]) {
            Some(Self::Windows10)
        } else {
            None
        }
    }
}

/// Returns the system that an image installs: the one named, or the one that its name tells.
///
/// # Errors
///
/// [`Error::UnknownWindows`].
pub fn windows_of(image: &Path, named: Option<Windows>) -> Result<Windows> {
    named.or_else(|| Windows::of_image(image)).ok_or_else(|| {
        let known: Vec<String> = Windows::ALL
            .iter()
            .map(|one| format!("{} ({})", one.name(), one.title()))
            .collect();
        Error::UnknownWindows {
            path: image.to_owned(),
            known: known.join(", "),
        }
    })
}

/// What an answer file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The system.
    pub windows: Windows,
    /// The edition's index in the image.
    pub index: u32,
    /// The image's language, such as `en-US`.
    pub language: String,
    /// Whether the machine has UEFI firmware.
    pub is_uefi: bool,
}

impl Answer {
    /// Returns the answer file.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`] if the language is no language's name.
    pub fn to_xml(&self) -> Result<String> {
        let is_word = |one: char| one.is_ascii_alphanumeric() || one == '-';
        if self.language.is_empty() || !self.language.chars().all(is_word) {
            return Err(Error::Plan(format!(
                "{:?} is not a language's name; expected one such as en-US",
                self.language
            )));
        }
        let (disk, partition) = if self.is_uefi {
            (DISK_UEFI, "3")
        } else {
            (DISK_BIOS, "2")
        };
        let is_11 = self.windows == Windows::Windows11;
        let only = |text: &'static str, is_wanted: bool| if is_wanted { text } else { "" };
        let blocks = [
            ("@disk@", disk),
            ("@lab@", only(LAB, is_11)),
            ("@no-network@", only(NO_NETWORK, is_11)),
        ];
        let mut text = TEMPLATE.to_owned();
        for (word, block) in blocks {
            // A block takes whole lines, without its own line for nothing.
            text = text.replace(&format!("{word}\n"), block);
        }
        Ok(text
            .replace("@partition@", partition)
            .replace("@index@", &self.index.to_string())
            .replace("@language@", &self.language))
    }

    /// Returns the files of the answer CD.
    ///
    /// # Errors
    ///
    /// As [`Answer::to_xml`].
    pub fn files(&self) -> Result<Files> {
        Ok(Files::from([
            (
                "autounattend.xml".to_owned(),
                windows_lines(self.to_xml()?.as_bytes()),
            ),
            ("wdk-etw/setup.cmd".to_owned(), windows_lines(SETUP)),
            ("wdk-etw/start.cmd".to_owned(), windows_lines(START)),
        ]))
    }

    /// Returns a hash of all that the CD has: an image made with another is another image.
    ///
    /// # Errors
    ///
    /// As [`Answer::to_xml`].
    pub fn version(&self) -> Result<String> {
        let mut hash = Sha256::new();
        for (name, contents) in self.files()? {
            hash.update(name.as_bytes());
            hash.update([0]);
            hash.update(&contents);
        }
        Ok(hex(&hash.finalize()))
    }
}

/// Returns bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
