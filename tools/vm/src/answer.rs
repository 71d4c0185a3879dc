//! The answer file for Windows Setup, and the CD that contains it.

use std::{fmt::Write as _, path::Path};

use sha2::{Digest as _, Sha256};

use crate::{
    error::{Error, Result},
    iso::Files,
    kit::windows_lines,
};

/// The template of the answer file; words between at signs are placeholders.
const TEMPLATE: &str = include_str!("../../../tests/windows/unattended/autounattend.xml");
/// The disk partitions for UEFI.
const DISK_UEFI: &str = include_str!("../../../tests/windows/unattended/disk-uefi.xml");
/// The disk partitions for BIOS.
const DISK_BIOS: &str = include_str!("../../../tests/windows/unattended/disk-bios.xml");
/// The settings that let Setup install Windows 11 without a TPM and Secure Boot.
const LAB: &str = include_str!("../../../tests/windows/unattended/lab.xml");
/// The setting that allows Windows 11 to be set up without a network.
const NO_NETWORK: &str = include_str!("../../../tests/windows/unattended/no-network.xml");
/// The script that prepares Windows at the first logon.
const SETUP: &[u8] = include_bytes!("../../../tests/windows/unattended/setup.cmd");
/// The script that starts the kit's agent whenever Windows starts.
const START: &[u8] = include_bytes!("../../../tests/windows/unattended/start.cmd");

/// A version of Windows to install.
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
    /// All supported systems.
    pub const ALL: [Self; 4] =
        [Self::Windows10, Self::Windows11, Self::Server2022, Self::Server2025];

    /// Returns the name used on the command line.
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

    /// Returns the system with a command-line name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns the index of the edition to install by default: on a client, the only edition in an
    /// evaluation or volume image, or Pro in a consumer image; on a server, Standard with Desktop
    /// Experience.
    #[must_use]
    pub const fn default_index(self, kind: ImageKind) -> u32 {
        match (self, kind) {
            (Self::Windows10 | Self::Windows11, ImageKind::Consumer) => 6,
            (Self::Windows10 | Self::Windows11, _) => 1,
            (Self::Server2022 | Self::Server2025, _) => 2,
        }
    }

    /// Recognizes the system from Microsoft's name for the installation image.
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
            "win11", "windows11", "windows_11", "windows-11", "26100", "26200", "22631",
        ]) {
            Some(Self::Windows11)
        } else if has(&["win10", "windows10", "windows_10", "windows-10", "19045"]) {
            Some(Self::Windows10)
        } else {
            None
        }
    }
}

/// The kinds of installation images, which differ in the product key that Setup requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// An evaluation image, which needs no product key.
    Evaluation,
    /// An image for volume licenses, which contains its product key.
    Volume,
    /// A consumer image from the download pages, with several editions and no product key.
    Consumer,
}

impl ImageKind {
    /// Recognizes the kind from Microsoft's name for the image.
    #[must_use]
    pub fn of_image(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().to_ascii_lowercase();
        if name.contains("eval") {
            Self::Evaluation
        } else if name.starts_with("sw_dvd") || name.contains("business") {
            Self::Volume
        } else {
            Self::Consumer
        }
    }
}

/// The setup keys that Microsoft publishes for key management service clients, by the edition's
/// index in consumer images. They select an edition but do not activate Windows. Home has no key.
/// Source: Microsoft Learn, "Key Management Services (KMS) client activation and product keys"; the
/// indexes were read from the images and are not documented.
const SETUP_KEYS: &[(&[Windows], u32, &str)] = &[
    // Education and Education N.
    (CLIENTS, 4, "NW6C2-QMPVW-D7KKK-3GKT6-VCFB2"),
    (CLIENTS, 5, "2WH4N-8QGBV-H22JP-CT43Q-MDWWJ"),
    // Pro and Pro N.
    (CLIENTS, 6, "W269N-WFGWX-YVC9B-4J6C9-T83GX"),
    (CLIENTS, 7, "MH37W-N47XK-V7XM9-C7227-GCQG9"),
    // Pro Education and Pro Education N.
    (CLIENTS, 8, "6TP4R-GNPTD-KYYHQ-7B7DP-J447Y"),
    (CLIENTS, 9, "YVWGF-BXNMC-HTQYQ-CPQ99-66QFC"),
    // Pro for Workstations and Pro N for Workstations.
    (CLIENTS, 10, "NRG8B-VKK3Q-CXVCJ-9G2XF-6Q84J"),
    (CLIENTS, 11, "9FNHH-K3HBT-3W4TD-6383H-6XYWF"),
    // Standard and Datacenter, each without and with Desktop Experience.
    (&[Windows::Server2022], 1, "VDYBN-27WPP-V4HQT-9VMD4-VMK7H"),
    (&[Windows::Server2022], 2, "VDYBN-27WPP-V4HQT-9VMD4-VMK7H"),
    (&[Windows::Server2022], 3, "WX4NM-KYWYW-QJJR4-XV3QB-6VM33"),
    (&[Windows::Server2022], 4, "WX4NM-KYWYW-QJJR4-XV3QB-6VM33"),
    (&[Windows::Server2025], 1, "TVRH6-WHNXV-R9WG3-9XRFY-MY832"),
    (&[Windows::Server2025], 2, "TVRH6-WHNXV-R9WG3-9XRFY-MY832"),
    (&[Windows::Server2025], 3, "D764K-2NDRG-47T6Q-P8T8W-YP6DF"),
    (&[Windows::Server2025], 4, "D764K-2NDRG-47T6Q-P8T8W-YP6DF"),
];

const CLIENTS: &[Windows] = &[Windows::Windows10, Windows::Windows11];

/// The command-line word that means "no product key".
pub const NO_KEY: &str = "none";

/// Returns the product key for an edition of an image: the requested key or, if the image contains
/// none, the edition's published setup key. Returns `None` for an evaluation image and for
/// [`NO_KEY`].
///
/// # Errors
///
/// Fails with [`Error::Plan`] if the requested key is malformed, or if no key is published for the
/// edition.
pub fn product_key(
    image: &Path,
    windows: Windows,
    index: u32,
    named: Option<&str>,
) -> Result<Option<String>> {
    match (named, ImageKind::of_image(image)) {
        (Some(NO_KEY), _) | (None, ImageKind::Evaluation | ImageKind::Volume) => Ok(None),
        (Some(key), _) if is_key(key) => Ok(Some(key.to_ascii_uppercase())),
        (Some(key), _) => Err(Error::Plan(format!(
            "{key:?} is not a product key; expected five groups of five letters and digits, or {NO_KEY}"
        ))),
        (None, ImageKind::Consumer) => SETUP_KEYS
            .iter()
            .find(|(systems, of, _)| systems.contains(&windows) && *of == index)
            .map(|(.., key)| Some((*key).to_owned()))
            .ok_or_else(|| {
                Error::Plan(format!(
                    "Setup of {} asks for a product key, and Microsoft publishes none for edition \
                     {index} of consumer images; choose another edition with `--image`, or pass a \
                     key with `--product-key` (`--product-key {NO_KEY}` is for images that need no \
                     key)",
                    windows.title()
                ))
            }),
    }
}

/// Returns whether text has the form of a product key.
fn is_key(text: &str) -> bool {
    let is_group =
        |group: &str| group.len() == 5 && group.chars().all(|one| one.is_ascii_alphanumeric());
    text.split('-').count() == 5 && text.split('-').all(is_group)
}

/// Returns the system that an image installs: the requested system, or the system that the image's
/// file name states.
///
/// # Errors
///
/// Fails with [`Error::UnknownWindows`] if neither determines the system.
pub fn windows_of(image: &Path, named: Option<Windows>) -> Result<Windows> {
    named.or_else(|| Windows::of_image(image)).ok_or_else(|| {
        let known: Vec<String> =
            Windows::ALL.iter().map(|one| format!("{} ({})", one.name(), one.title())).collect();
        Error::UnknownWindows { path: image.to_owned(), known: known.join(", ") }
    })
}

/// The contents of an answer file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The system.
    pub windows: Windows,
    /// The edition's index in the image.
    pub index: u32,
    /// The image's language, such as `en-US`.
    pub language: String,
    /// True if the machine has UEFI firmware.
    pub is_uefi: bool,
    /// The product key for an image that does not contain one. See [`product_key`].
    pub product_key: Option<String>,
}

impl Answer {
    /// Returns the answer file.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Plan`] if `language` is not a language name.
    pub fn to_xml(&self) -> Result<String> {
        let is_word = |one: char| one.is_ascii_alphanumeric() || one == '-';
        if self.language.is_empty() || !self.language.chars().all(is_word) {
            return Err(Error::Plan(format!(
                "{:?} is not a language name; expected a name such as en-US",
                self.language
            )));
        }
        let (disk, partition) = if self.is_uefi { (DISK_UEFI, "3") } else { (DISK_BIOS, "2") };
        let is_11 = self.windows == Windows::Windows11;
        let only = |text: &'static str, is_wanted: bool| if is_wanted { text } else { "" };
        let blocks = [
            ("@disk@", disk),
            ("@lab@", only(LAB, is_11)),
            ("@no-network@", only(NO_NETWORK, is_11)),
        ];
        let key = self.product_key.as_deref();
        if let Some(key) = key.filter(|key| !is_key(key)) {
            return Err(Error::Plan(format!(
                "{key:?} is not a product key; expected five groups of five letters and digits"
            )));
        }
        let key = key.map_or_else(String::new, |key| format!("          <Key>{key}</Key>\n"));
        let mut text = TEMPLATE.replace("@key@\n", &key);
        for (word, block) in blocks {
            // A block consists of whole lines; an empty block does not leave a blank line.
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
    /// Fails like [`Answer::to_xml`].
    pub fn files(&self) -> Result<Files> {
        Ok(Files::from([
            ("autounattend.xml".to_owned(), windows_lines(self.to_xml()?.as_bytes())),
            ("wdk-etw/setup.cmd".to_owned(), windows_lines(SETUP)),
            ("wdk-etw/start.cmd".to_owned(), windows_lines(START)),
        ]))
    }

    /// Returns a hash of the CD's contents. Base images made with different contents are kept
    /// separately.
    ///
    /// # Errors
    ///
    /// Fails like [`Answer::to_xml`].
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

/// Formats bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
