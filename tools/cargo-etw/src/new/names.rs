//! The names of a new driver, which are all derived from its package's name.

use etw_wire::{Guid, GuidError};
use heck::ToUpperCamelCase as _;
use thiserror::Error;

/// The names of a new driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The driver's package: `contoso-sensor`.
    pub package: String,
    /// The image's name without extension, and the service's name: `contoso_sensor`.
    pub image: String,
    /// The company in the INF file: `Contoso`.
    pub company: String,
    /// The provider: `Contoso.Sensor`.
    pub provider: String,
    /// The provider's GUID.
    pub guid: Guid,
    /// The device interface class.
    pub interface: Guid,
    /// The device's hardware ID: `Root\ContosoSensor`.
    pub hardware_id: String,
}

/// The reasons why a name is invalid for a driver.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// The name is empty.
    #[error("the package's name is empty; name it, such as contoso-sensor")]
    Empty,
    /// The name starts with a digit or a hyphen.
    #[error(
        "`{0}` cannot be a driver's package name: it starts with {1:?}; start with a letter or `_`"
    )]
    Start(String, char),
    /// The name contains a character that is not allowed in a package, service or file name.
    #[error(
        "`{0}` cannot be a driver's package name: it contains {1:?}; use ASCII letters, digits, \
         `-` and `_`, because the file's and the service's names are derived from it"
    )]
    Character(String, char),
    /// The name already has another meaning.
    #[error("`{0}` cannot be a driver's package name: it is {1}; choose another name")]
    Reserved(String, &'static str),
    /// The name is too long.
    #[error(
        "`{0}` cannot be a driver's package name: it has {len} characters; expected at most \
         {MAX_LENGTH}, because the hardware ID Root\\… that contains it is limited to 199",
        len = .0.len()
    )]
    Length(String),
    /// The provider's name is invalid.
    #[error("`{0}` cannot be a provider's name: {1}")]
    Provider(String, String),
}

/// The maximum length of a package's name in characters: a hardware ID has at most 199, including
/// five for `Root\` (`MAX_DEVICE_ID_LEN` is 200, including the terminator).
const MAX_LENGTH: usize = 194;

/// Rust's keywords, strict and reserved.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "_",
];

/// Folders that cargo creates in the target folder.
const CARGO_FOLDERS: &[&str] = &["build", "deps", "examples", "incremental"];

/// The crates in Rust's distribution.
const RUST_CRATES: &[&str] = &["alloc", "core", "proc_macro", "std", "test"];

/// The crates that the new driver uses.
const USED_CRATES: &[&str] = &[
    "etl_file", "standin_kernel", "wdk", "wdk_alloc", "wdk_build", "wdk_etw", "wdk_etw_build",
    "wdk_macros", "wdk_panic", "wdk_sys",
];

/// Device names, which Windows does not allow as file names.
const DEVICES: &[&str] = &["aux", "con", "nul", "prn", "conin", "conout"];

/// The services of Windows' own drivers whose names a new driver could get by accident.
const SERVICES: &[&str] = &[
    "acpi", "afd", "beep", "bowser", "bthenum", "bthusb", "cdrom", "cng", "disk", "dxgkrnl",
    "fastfat", "fileinfo", "hidclass", "hidusb", "http", "i8042prt", "kbdclass", "ks", "monitor",
    "mouclass", "mountmgr", "msfs", "ndis", "netbt", "npfs", "ntfs", "null", "partmgr", "pci",
    "pcw", "processr", "refs", "sdbus", "serial", "stornvme", "storport", "tcpip", "tdx", "tpm",
    "umbus", "usbccgp", "usbhub", "usbport", "usbxhci", "vdrvroot", "vmbus", "volmgr", "volsnap",
    "volume", "wdf01000", "winusb", "wof",
];

impl Names {
    /// Derives the names from a package name; `provider`, if given, is the provider's name.
    pub fn new(package: &str, provider: Option<&str>) -> Result<Self, NameError> {
        check(package)?;
        let image = package.replace('-', "_");
        let mut words = image.split('_').filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default().to_upper_camel_case();
        let rest = words.collect::<Vec<_>>().join("_").to_upper_camel_case();
        let usual = if rest.is_empty() { first.clone() } else { format!("{first}.{rest}") };
        let provider = provider.unwrap_or(&usual).to_owned();
        let refused = |why: String| NameError::Provider(provider.clone(), why);
        if let Some(bad) = provider
            .chars()
            .find(|letter| !letter.is_ascii_graphic() || "\"\\%;,={}".contains(*letter))
        {
            return Err(refused(format!(
                "it contains {bad:?}; use ASCII letters, digits, `.`, `-` and `_`, such as {usual}"
            )));
        }
        let guid = |name: &str| {
            Guid::of_name(name).map_err(|error: GuidError| refused(error.message().to_owned()))
        };
        if provider.is_empty() {
            return Err(refused(format!("it is empty; name it, such as {usual}")));
        }
        Ok(Self {
            package: package.to_owned(),
            company: first.clone(),
            guid: guid(&provider)?,
            interface: guid(&format!("{provider}.Device"))?,
            hardware_id: format!(r"Root\{first}{rest}"),
            image,
            provider,
        })
    }
}

/// Checks a package's name, which becomes the name of a crate, a file and a service.
fn check(name: &str) -> Result<(), NameError> {
    let mut letters = name.chars();
    let first = letters.next().ok_or(NameError::Empty)?;
    if let Some(bad) =
        name.chars().find(|letter| !letter.is_ascii_alphanumeric() && !"-_".contains(*letter))
    {
        return Err(NameError::Character(name.to_owned(), bad));
    }
    if first.is_ascii_digit() || first == '-' {
        return Err(NameError::Start(name.to_owned(), first));
    }
    if name.len() > MAX_LENGTH {
        return Err(NameError::Length(name.to_owned()));
    }
    let reserved = |what| Err(NameError::Reserved(name.to_owned(), what));
    // The library's name. Windows ignores case in file and service names.
    let library = name.replace('-', "_").to_ascii_lowercase();
    let is_in = |list: &[&str]| list.contains(&library.as_str());
    if !name.contains(|letter: char| letter.is_ascii_alphanumeric()) {
        return reserved("without a letter or a digit");
    }
    if is_in(KEYWORDS) {
        return reserved("a keyword of Rust");
    }
    if is_in(RUST_CRATES) {
        return reserved("the name of a crate of Rust's distribution");
    }
    if is_in(CARGO_FOLDERS) {
        return reserved("the name of a folder that cargo creates in its target folder");
    }
    if is_in(USED_CRATES) {
        return reserved("the name of a crate that drivers or their tests depend on");
    }
    let is_port = ["com", "lpt"].iter().any(|port| {
        library.strip_prefix(port).is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']))
    });
    if is_port || is_in(DEVICES) {
        return reserved("the name of a device on Windows, which no file can have");
    }
    if is_in(SERVICES) {
        return reserved("the name of a service that comes with Windows");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str) -> String {
        Names::new(name, None).unwrap_err().to_string()
    }

    #[test]
    fn every_name_is_made_of_the_packages() {
        let names = Names::new("contoso-temperature_sensor", None).unwrap();
        assert_eq!(names.image, "contoso_temperature_sensor");
        assert_eq!(names.provider, "Contoso.TemperatureSensor");
        assert_eq!(names.company, "Contoso");
        assert_eq!(names.hardware_id, r"Root\ContosoTemperatureSensor");
        assert_eq!(names.guid, Guid::of_name("Contoso.TemperatureSensor").unwrap());
        assert_ne!(names.guid, names.interface);
        let names = Names::new("_sensor7", None).unwrap();
        assert_eq!(names.provider, "Sensor7");
        assert_eq!(names.hardware_id, r"Root\Sensor7");
    }

    #[test]
    fn the_provider_can_have_another_name() {
        let names = Names::new("sensor", Some("Contoso-Sensor/Main")).unwrap();
        assert_eq!(names.provider, "Contoso-Sensor/Main");
        assert_eq!(names.guid, Guid::of_name("Contoso-Sensor/Main").unwrap());
        let error = Names::new("sensor", Some("a \"b\"")).unwrap_err();
        assert!(error.to_string().contains("contains ' '"), "{error}");
        let error = Names::new("sensor", Some("")).unwrap_err();
        assert!(error.to_string().contains("it is empty"), "{error}");
    }

    #[test]
    fn names_that_no_driver_can_have_are_refused_with_the_reason() {
        for (name, part) in [
            ("", "is empty"),
            ("7up", "starts with '7'"),
            ("-x", "starts with '-'"),
            ("a b", "contains ' '"),
            ("a.b", "contains '.'"),
            ("gerät", "contains 'ä'"),
            (r"a\b", r"contains '\\'"),
            ("_", "without a letter"),
            ("match", "keyword of Rust"),
            ("core", "Rust's distribution"),
            ("Proc-Macro", "Rust's distribution"),
            ("deps", "folder that cargo creates"),
            ("wdk-sys", "depend on"),
            ("CON", "device on Windows"),
            ("com1", "device on Windows"),
            ("NULL", "comes with Windows"),
            ("tcpip", "comes with Windows"),
        ] {
            let error = error(name);
            assert!(error.contains(part), "{name}: {error}");
        }
        assert!(error(&"x".repeat(195)).contains("195 characters"));
        Names::new(&"x".repeat(194), None).unwrap();
        Names::new("com10", None).unwrap();
        Names::new("null2", None).unwrap();
    }
}
