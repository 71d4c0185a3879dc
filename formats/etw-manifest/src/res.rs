//! Compiled resource files (`.res`), which `link.exe` and `lld-link` accept as inputs.
//!
//! Source: "RESOURCEHEADER structure" and "Resource File Formats" in Microsoft's Win32
//! documentation.

/// A resource's type or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A number.
    Id(u16),
    /// A string. The system ignores its case; linkers sort by its upper-case form.
    Text(&'static str),
}

impl Name {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Id(id) => {
                out.extend(0xFFFF_u16.to_le_bytes());
                out.extend(id.to_le_bytes());
            }
            Self::Text(text) => {
                out.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
            }
        }
    }
}

/// A resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The type.
    pub kind: Name,
    /// The name or number, unique within the type.
    pub name: Name,
    /// The language (`LANGID`).
    pub language: u16,
    /// The content.
    pub data: Vec<u8>,
}

/// `RT_MESSAGETABLE`.
pub const MESSAGE_TABLE: Name = Name::Id(11);
/// `RT_VERSION`.
pub const VERSION: Name = Name::Id(16);
/// The type of the resource in which decoders find a provider's events.
pub const WEVT_TEMPLATE: Name = Name::Text("WEVT_TEMPLATE");

/// US English, the fallback if no resource has the user's language.
pub const ENGLISH: u16 = 0x0409;

/// `MOVEABLE | PURE`, which resource compilers write and Windows ignores.
const MEMORY_FLAGS: u16 = 0x0030;

/// The size in bytes of the two fields before the names and the five fields after them.
const AROUND_NAMES: usize = 8 + 16;

fn align(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Returns the bytes of a `.res` file with these resources.
///
/// # Errors
///
/// Fails if a resource is larger than 4 GiB.
pub fn file(resources: &[Resource]) -> Result<Vec<u8>, std::num::TryFromIntError> {
    // The file starts with an empty resource, which distinguishes it from the 16-bit format.
    let empty = Resource { kind: Name::Id(0), name: Name::Id(0), language: 0, data: Vec::new() };
    let mut out = Vec::new();
    write(&empty, 0, &mut out)?;
    for resource in resources {
        write(resource, MEMORY_FLAGS, &mut out)?;
    }
    Ok(out)
}

fn write(
    resource: &Resource,
    memory_flags: u16,
    out: &mut Vec<u8>,
) -> Result<(), std::num::TryFromIntError> {
    let mut names = Vec::new();
    resource.kind.write(&mut names);
    resource.name.write(&mut names);
    align(&mut names);
    out.extend(u32::try_from(resource.data.len())?.to_le_bytes());
    out.extend(u32::try_from(AROUND_NAMES + names.len())?.to_le_bytes());
    out.extend(names);
    let data_version = 0_u32;
    out.extend(data_version.to_le_bytes());
    out.extend(memory_flags.to_le_bytes());
    out.extend(resource.language.to_le_bytes());
    let version = 0_u32;
    let characteristics = 0_u32;
    out.extend(version.to_le_bytes());
    out.extend(characteristics.to_le_bytes());
    out.extend_from_slice(&resource.data);
    align(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_starts_with_the_empty_resource() {
        let bytes = file(&[]).unwrap();
        let mut expected = [0_u8; 32];
        expected[4] = 32;
        for at in [8, 9, 12, 13] {
            expected[at] = 0xFF;
        }
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_resource_is_padded_to_four_bytes() {
        let one = Resource {
            kind: Name::Text("AB"),
            name: Name::Id(1),
            language: ENGLISH,
            data: vec![1, 2, 3],
        };
        let bytes = file(&[one]).unwrap();
        let expected = [
            3, 0, 0, 0, 36, 0, 0, 0, // sizes
            b'A', 0, b'B', 0, 0, 0, 0xFF, 0xFF, 1, 0, 0, 0, // names, padded
            0, 0, 0, 0, 0x30, 0, 9, 4, 0, 0, 0, 0, 0, 0, 0, 0, // the rest
            1, 2, 3, 0,
        ];
        assert_eq!(bytes[32..], expected);
    }
}
