//! A `WEVT_TEMPLATE` resource with every kind of field, and images that contain it.

use std::fs;
use std::path::{Path, PathBuf};

use etl_file::Guid;

/// Assembles a resource from its parts.
#[derive(Debug)]
pub struct Builder(pub Vec<u8>);

impl Builder {
    /// Returns the offset of the next part.
    pub fn at(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap()
    }

    /// Appends numbers.
    pub fn numbers(&mut self, numbers: &[u32]) -> &mut Self {
        self.0.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        self
    }

    fn patch(&mut self, at: u32, value: u32) {
        let at = at as usize;
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Appends a text with its size, and returns its offset.
    pub fn text(&mut self, text: &str) -> u32 {
        let at = self.at();
        let units: Vec<u8> = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        let size = (4 + units.len()).next_multiple_of(4);
        self.numbers(&[u32::try_from(size).unwrap()]);
        self.0.extend(units);
        self.0.resize(at as usize + size, 0);
        at
    }
}

/// The provider that the resource describes.
pub const PROVIDER: Guid = Guid::from_u128(0x1122_3344_5566_7788_99aa_bbcc_ddee_ff00);

/// Returns a resource with an event that has every kind of field.
pub fn resource() -> Vec<u8> {
    let mut made = Builder(b"CRIM".to_vec());
    made.numbers(&[0, 0x1_0005, 1]);
    made.0.extend(PROVIDER.to_bytes());
    made.numbers(&[36]);
    made.0.extend(b"WEVT");
    made.numbers(&[0, u32::MAX, 2, 7, 0, 4, 0]);
    let map = made.at();
    made.0.extend(b"VMAP");
    made.numbers(&[28, 0, 0, 1, 5, u32::MAX]);
    let templates = made.at();
    made.0.extend(b"TTBL");
    made.numbers(&[0, 1]);
    let template = made.at();
    made.0.extend(b"TEMP");
    made.numbers(&[40, 4, 5, template + 40, 1, 0, 0, 0, 0]);
    // Flags; types or members; map; count and length; name.
    let fields = made.at();
    made.numbers(&[0, 0x08_08, map, 0, 0]); // number: u32 as unsignedInt, with a map
    made.numbers(&[4, 0x0F_0E, 0, 0, 0]); // data: its length is `number`
    made.numbers(&[0x10, 0x01_01, 0, 0, 0]); // texts: their count is `number`
    made.numbers(&[9, 0x1_0004, 0, 3, 0]); // an array of three structures with one member
    made.numbers(&[2, 0x01_01, 0, 0x10_0000, 0]); // its member, of 16 units
    for (number, name) in ["number", "data", "texts", "all", "inner"].into_iter().enumerate() {
        let at = made.text(name);
        made.patch(fields + 20 * u32::try_from(number).unwrap() + 16, at);
    }
    let events = made.at();
    made.patch(36 + 20 + 8, events);
    made.patch(36 + 16 + 4, templates);
    made.0.extend(b"EVNT");
    made.numbers(&[0, 1, 0, 0x0002_0007, 0, 1, 0, u32::MAX, template, 0, 0, 0, 0, 0, 0]);
    made.0
}

/// Returns the offset of a tag in the resources.
pub fn tag(resource: &[u8], tag: &[u8]) -> usize {
    let at = resource.windows(tag.len()).position(|bytes| bytes == tag);
    at.expect("the resource has the tag")
}

/// Links an image with the resources, for a machine type.
pub fn image(folder: &Path, machine: &str) -> PathBuf {
    image_with(folder, machine, resource())
}

/// Links an image with a `WEVT_TEMPLATE` resource, for a machine type.
pub fn image_with(folder: &Path, machine: &str, data: Vec<u8>) -> PathBuf {
    let mut res = Builder(Vec::new());
    // The empty entry at the start of the `.res` file.
    res.numbers(&[0, 0x20, 0xFFFF, 0xFFFF, 0, 0, 0, 0]);
    let mut kind: Vec<u8> = "WEVT_TEMPLATE\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    kind.extend(0xFFFF_u16.to_le_bytes());
    kind.extend(1_u16.to_le_bytes());
    kind.resize(kind.len().next_multiple_of(4), 0);
    let header = 8 + kind.len() + 16;
    res.numbers(&[u32::try_from(data.len()).unwrap(), u32::try_from(header).unwrap()]);
    res.0.extend(kind);
    res.numbers(&[0, 0x0409_0030, 0, 0]);
    res.0.extend(data);
    let file = folder.join("events.res");
    let image = folder.join("events.dll");
    fs::write(&file, res.0).unwrap();
    let output = etw_test_support::lld_link()
        .args(["/dll", "/noentry"])
        .arg(format!("/machine:{machine}"))
        .arg(format!("/out:{}", image.display()))
        .arg(&file)
        .output()
        .expect("the linker starts; Debian's package lld-19 has one");
    assert!(output.status.success(), "{output:?}");
    image
}
