//! The version resource (`VERSIONINFO`), which Explorer and installers show.
//!
//! Source: `VS_VERSIONINFO`, `VS_FIXEDFILEINFO` and their children in Microsoft's Win32
//! documentation.

use std::num::TryFromIntError;

use etw_manifest::res::{self, ENGLISH, Name, Resource};

/// The content of a version resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// The four parts of the file's version, the most significant first.
    pub number: [u16; 4],
    /// The file's version as a string, which can contain more than the numbers.
    pub version: String,
    /// The company that made the file.
    pub company: String,
    /// A description of the file.
    pub description: String,
    /// The original file name.
    pub file: String,
    /// The name of the product that the file belongs to.
    pub product: String,
    /// The copyright notice.
    pub copyright: String,
    /// True if the file was built with debug assertions (`VS_FF_DEBUG`).
    pub debug: bool,
}

/// `VOS_NT_WINDOWS32`.
const FILE_OS: u32 = 0x0004_0004;
/// `VFT_DRV`.
const FILE_TYPE: u32 = 3;
/// `VFT2_DRV_SYSTEM`.
const FILE_SUBTYPE: u32 = 7;
/// UTF-16, the encoding of the strings.
const CODE_PAGE: u16 = 1200;

/// A block of the resource: its value and its child blocks.
struct Block {
    key: String,
    value: Value,
    below: Vec<Self>,
}

enum Value {
    None,
    Bytes(Vec<u8>),
    Text(String),
}

fn align(out: &mut Vec<u8>, start: usize) {
    let length = (out.len() - start).next_multiple_of(4);
    out.resize(start + length, 0);
}

impl Block {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), TryFromIntError> {
        let start = out.len();
        let units = |text: &str| -> Vec<u8> {
            let units = text.encode_utf16().chain([0]);
            units.flat_map(u16::to_le_bytes).collect()
        };
        // The length of a string is in UTF-16 units; the length of another value is in bytes.
        let (value, length, is_text) = match &self.value {
            Value::None => (Vec::new(), 0, true),
            Value::Bytes(bytes) => (bytes.clone(), bytes.len(), false),
            Value::Text(text) => {
                let value = units(text);
                let length = value.len() / 2;
                (value, length, true)
            }
        };
        out.extend(0_u16.to_le_bytes());
        out.extend(u16::try_from(length)?.to_le_bytes());
        out.extend(u16::from(is_text).to_le_bytes());
        out.extend(units(&self.key));
        align(out, start);
        out.extend(value);
        for block in &self.below {
            align(out, start);
            block.write(out)?;
        }
        let length = u16::try_from(out.len() - start)?;
        if let Some(place) = out.get_mut(start..start + 2) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }
}

impl Version {
    fn fixed(&self) -> Vec<u8> {
        const SIGNATURE: u32 = 0xFEEF_04BD;
        const STRUCTURE_VERSION: u32 = 0x0001_0000;
        const DEBUG: u32 = 1;
        const FLAGS_MASK: u32 = 0x3F;
        let [a, b, c, d] = self.number.map(u32::from);
        let (high, low) = (a << 16 | b, c << 16 | d);
        [
            SIGNATURE,
            STRUCTURE_VERSION,
            high,
            low,
            // The product's version, which equals the file's.
            high,
            low,
            FLAGS_MASK,
            if self.debug { DEBUG } else { 0 },
            FILE_OS,
            FILE_TYPE,
            FILE_SUBTYPE,
            // The date, which is not set.
            0,
            0,
        ]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect()
    }

    fn strings(&self) -> Vec<Block> {
        let numbers = self.number.map(|part| part.to_string()).join(".");
        [
            ("CompanyName", &self.company),
            ("FileDescription", &self.description),
            ("FileVersion", &self.version),
            ("InternalName", &self.file),
            ("LegalCopyright", &self.copyright),
            ("OriginalFilename", &self.file),
            ("ProductName", &self.product),
            ("ProductVersion", &numbers),
        ]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(key, text)| Block {
            key: key.to_owned(),
            value: Value::Text(text.clone()),
            below: Vec::new(),
        })
        .collect()
    }

    /// Returns the version resource.
    ///
    /// # Errors
    ///
    /// Returns an error if the resource would be larger than 64 KiB.
    pub fn resource(&self) -> Result<Resource, TryFromIntError> {
        let list = |key: &str, below| Block { key: key.to_owned(), value: Value::None, below };
        let table = list(&format!("{ENGLISH:04x}{CODE_PAGE:04x}"), self.strings());
        let [first, second] = [ENGLISH, CODE_PAGE].map(u16::to_le_bytes);
        let translation = Block {
            key: "Translation".to_owned(),
            value: Value::Bytes([first, second].concat()),
            below: Vec::new(),
        };
        let root = Block {
            key: "VS_VERSION_INFO".to_owned(),
            value: Value::Bytes(self.fixed()),
            below: vec![
                list("StringFileInfo", vec![table]),
                list("VarFileInfo", vec![translation]),
            ],
        };
        let mut data = Vec::new();
        root.write(&mut data)?;
        Ok(Resource { kind: res::VERSION, name: Name::Id(1), language: ENGLISH, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block in the form described by `VS_VERSIONINFO`.
    #[derive(Debug, PartialEq)]
    struct Read {
        key: String,
        is_text: bool,
        value: Vec<u8>,
        below: Vec<Self>,
    }

    fn u16_at(data: &[u8], at: usize) -> usize {
        usize::from(u16::from_le_bytes([data[at], data[at + 1]]))
    }

    fn utf16(bytes: &[u8]) -> String {
        let units: Vec<u16> =
            (0..bytes.len() / 2).map(|at| u16::try_from(u16_at(bytes, 2 * at)).unwrap()).collect();
        String::from_utf16(&units).unwrap()
    }

    /// Reads the block at `start`, a multiple of 4, and returns it with its end.
    fn block(data: &[u8], start: usize) -> (Read, usize) {
        assert!(start.is_multiple_of(4), "a block at {start}");
        let end = start + u16_at(data, start);
        let is_text = u16_at(data, start + 4) == 1;
        let size = u16_at(data, start + 2) * if is_text { 2 } else { 1 };
        let mut at = start + 6;
        while u16_at(data, at) != 0 {
            at += 2;
        }
        let key = utf16(&data[start + 6..at]);
        at = (at + 2).next_multiple_of(4);
        // The padding before a value or a child may be missing at the end of a block.
        let value = data[at.min(end)..(at + size).min(end)].to_vec();
        assert_eq!(value.len(), size, "{key}");
        at += size;
        let mut below = Vec::new();
        while at < end {
            let (child, after) = block(data, at.next_multiple_of(4));
            below.push(child);
            at = after;
        }
        assert_eq!(at.max(end), at, "{key}: {at} is not {end}");
        let read = Read { key, is_text, value, below };
        (read, end)
    }

    #[test]
    fn a_version_resource_reads_back() {
        let version = Version {
            number: [1, 2, 3, 4],
            version: "1.2.3-beta".to_owned(),
            company: "Contoso".to_owned(),
            file: "disk.sys".to_owned(),
            product: "Disks".to_owned(),
            debug: true,
            ..Version::default()
        };
        let resource = version.resource().unwrap();
        assert_eq!((resource.kind, resource.name), (res::VERSION, Name::Id(1)));
        let (root, end) = block(&resource.data, 0);
        assert_eq!(end, resource.data.len());
        assert_eq!((root.key.as_str(), root.is_text), ("VS_VERSION_INFO", false));
        let (words, rest) = root.value.as_chunks::<4>();
        assert!(rest.is_empty());
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        assert_eq!(
            words,
            [
                0xFEEF_04BD, 0x0001_0000, 0x0001_0002, 0x0003_0004, 0x0001_0002, 0x0003_0004, 0x3F,
                1, 0x0004_0004, 3, 7, 0, 0
            ]
        );
        let [strings, variables] = &root.below[..] else {
            panic!("{root:?}");
        };
        assert_eq!(
            (strings.key.as_str(), variables.key.as_str()),
            ("StringFileInfo", "VarFileInfo")
        );
        let [table] = &strings.below[..] else {
            panic!("{strings:?}");
        };
        assert_eq!(table.key, "040904b0");
        let strings: Vec<(String, String)> =
            table.below.iter().map(|one| (one.key.clone(), utf16(&one.value))).collect();
        let expected = [
            ("CompanyName", "Contoso\0"),
            ("FileVersion", "1.2.3-beta\0"),
            ("InternalName", "disk.sys\0"),
            ("OriginalFilename", "disk.sys\0"),
            ("ProductName", "Disks\0"),
            ("ProductVersion", "1.2.3.4\0"),
        ];
        let expected = expected.map(|(key, text)| (key.to_owned(), text.to_owned()));
        assert_eq!(strings, expected, "empty strings are omitted");
        let [translation] = &variables.below[..] else {
            panic!("{variables:?}");
        };
        assert_eq!(translation.key, "Translation");
        assert_eq!((translation.is_text, &translation.value[..]), (false, &[9, 4, 0xB0, 4][..]));
    }

    #[test]
    fn only_a_debug_build_is_marked_as_one() {
        let flags = |debug| {
            let version = Version { debug, ..Version::default() };
            version.fixed()[28]
        };
        assert_eq!((flags(false), flags(true)), (0, 1));
    }

    #[test]
    fn a_resource_of_more_than_64_kib_is_refused() {
        let version = |length: usize| Version { company: "x".repeat(length), ..Version::default() };
        version(32_000).resource().unwrap();
        version(33_000).resource().unwrap_err();
    }
}
