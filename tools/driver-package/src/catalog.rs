//! Security catalogs (`.cat`), which contain the hashes of a driver package's files.
//!
//! A catalog is a PKCS #7 message whose content is a certificate trust list (`szOID_CTL`) with
//! members for each file. Members have one of two versions ([`Version`]). Structures are named as
//! in Microsoft's wincrypt.h and mscat.h. The WDK's `inf2cat` writes the same catalogs.

use authenticode::authenticode_digest;
use object::read::pe::PeFile64;
use sha1::{Digest, Sha1};
use sha2::Sha256;
use yasna::{DERWriter, Tag, TagClass, models::ObjectIdentifier};

const SIGNED_DATA: &[u64] = &[1, 2, 840, 113_549, 1, 7, 2];
const SHA1: &[u64] = &[1, 3, 14, 3, 2, 26];
const SHA256: &[u64] = &[2, 16, 840, 1, 101, 3, 4, 2, 1];
/// `szOID_CTL`.
const TRUST_LIST: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 10, 1];
/// `szOID_CATALOG_LIST`.
const CATALOG_LIST: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 12, 1, 1];
/// `szOID_CATALOG_LIST_MEMBER`.
const LIST_MEMBER: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 12, 1, 2];
/// `szOID_CATALOG_LIST_MEMBER2`.
const LIST_MEMBER_2: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 12, 1, 3];
/// `CAT_NAMEVALUE_OBJID`.
const NAME_VALUE: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 12, 2, 1];
/// `CAT_MEMBERINFO_OBJID`.
const MEMBER_INFO: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 12, 2, 2];
/// `CAT_MEMBERINFO2_OBJID`.
const MEMBER_INFO_2: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 12, 2, 3];
/// `SPC_INDIRECT_DATA_OBJID`.
const INDIRECT_DATA: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 2, 1, 4];
/// `SPC_PE_IMAGE_DATA_OBJID`.
const PE_IMAGE_DATA: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 2, 1, 15];
/// `SPC_CAB_DATA_OBJID`, which marks files that are hashed unchanged.
const FLAT_DATA: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 2, 1, 25];

/// The subject types of images and of other files.
const IMAGE_SUBJECT: &str = "{C689AAB8-8E78-11D0-8C47-00C04FC295EE}";
const FLAT_SUBJECT: &str = "{DE351A42-8E59-11D0-8C47-00C04FC295EE}";

/// `CRYPTCAT_ATTR_AUTHENTICATED | CRYPTCAT_ATTR_NAMEASCII | CRYPTCAT_ATTR_DATAASCII`.
const ATTRIBUTE_FLAGS: u32 = 0x1001_0001;
/// The certificate version of the subjects, which is the same in every catalog.
const CERTIFICATE_VERSION: u32 = 0x200;
/// The placeholder for a file's name.
const OBSOLETE: &str = "<<<Obsolete>>>";

/// The version of a catalog's members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// One member per file, whose tag and digest are the file's SHA-1. Windows has read these
    /// catalogs since Windows 2000.
    #[default]
    One,
    /// Two members per file: one whose tag is the file's SHA-1, without a digest, and one whose tag
    /// and digest are the file's SHA-256. Windows has read these catalogs since Windows 8.
    Two,
}

/// The reason why a file cannot be a member of a catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The file starts like an image but is not one.
    #[error("{name} begins with MZ but is not a 64-bit PE image")]
    Image {
        /// The file's name.
        name: String,
        /// The image reader's error.
        source: object::Error,
    },
    /// The image's headers contain offsets past the end of the file.
    #[error(
        "{name} is truncated: its headers refer to offsets past the end of the file; copy or build \
         the file again"
    )]
    Offsets {
        /// The file's name.
        name: String,
    },
}

/// A file of the driver package.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The file's name.
    pub name: &'a str,
    /// The file's content.
    pub data: &'a [u8],
}

/// A catalog's content.
#[derive(Clone, Copy, Debug)]
pub struct Catalog<'a> {
    /// The files.
    pub members: &'a [Member<'a>],
    /// The devices' hardware IDs, which the catalog contains in lower case.
    pub hardware_ids: &'a [String],
    /// The operating system in `inf2cat`'s notation: `_v100_X64_Vb`.
    pub system: &'a str,
    /// The operating system version: `2:10.0`.
    pub versions: &'a str,
    /// The version of the members.
    pub version: Version,
}

/// An entry of the list.
struct Entry<'a> {
    /// The key for finding the entry: the hash, in the form of the catalog's version.
    tag: Vec<u8>,
    is_image: bool,
    /// The algorithm and the hash, if the entry has a digest.
    digest: Option<(&'static [u64], Vec<u8>)>,
    name: &'a str,
}

fn oid(components: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(components)
}

/// Returns little-endian UTF-16 with a terminating NUL.
fn utf16(text: &str) -> Vec<u8> {
    let units = text.encode_utf16().chain([0]);
    units.flat_map(u16::to_le_bytes).collect()
}

/// Returns big-endian UTF-16.
fn bmp(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// Writes bytes with a universal ASN.1 tag.
fn write_universal(writer: DERWriter<'_>, tag_number: u64, bytes: &[u8]) {
    let tag = Tag { tag_class: TagClass::Universal, tag_number };
    writer.write_tagged_implicit(tag, |writer| writer.write_bytes(bytes));
}

fn write_bmp(writer: DERWriter<'_>, text: &str) {
    const BMP_STRING: u64 = 30;
    write_universal(writer, BMP_STRING, &bmp(text));
}

/// Writes a `CAT_NAMEVALUE`.
fn write_name_value(writer: DERWriter<'_>, name: &str, value: &str) {
    writer.write_sequence(|writer| {
        write_bmp(writer.next(), name);
        writer.next().write_u32(ATTRIBUTE_FLAGS);
        writer.next().write_bytes(&utf16(value));
    });
}

/// Writes an attribute with one value.
fn write_attribute(writer: DERWriter<'_>, kind: &[u64], value: impl FnOnce(DERWriter<'_>)) {
    writer.write_sequence(|writer| {
        writer.next().write_oid(&oid(kind));
        writer.next().write_set(|writer| value(writer.next()));
    });
}

/// Writes an `SpcLink` to the placeholder.
fn write_obsolete_link(writer: DERWriter<'_>) {
    writer.write_tagged(Tag::context(2), |writer| {
        writer.write_tagged_implicit(Tag::context(0), |writer| {
            writer.write_bytes(&bmp(OBSOLETE));
        });
    });
}

/// Writes an `SpcIndirectDataContent`.
fn write_indirect_data(writer: DERWriter<'_>, is_image: bool, (algorithm, hash): (&[u64], &[u8])) {
    writer.write_sequence(|writer| {
        writer.next().write_sequence(|writer| {
            if is_image {
                writer.next().write_oid(&oid(PE_IMAGE_DATA));
                writer.next().write_sequence(|writer| {
                    // Only one of the three flags, `includeResources`, is set.
                    writer.next().write_bitvec_bytes(&[0b1010_0000], 3);
                    writer.next().write_tagged(Tag::context(0), write_obsolete_link);
                });
            } else {
                writer.next().write_oid(&oid(FLAT_DATA));
                write_obsolete_link(writer.next());
            }
        });
        writer.next().write_sequence(|writer| {
            writer.next().write_sequence(|writer| {
                writer.next().write_oid(&oid(algorithm));
                writer.next().write_null();
            });
            writer.next().write_bytes(hash);
        });
    });
}

/// Returns a member's hash, and true if the member is an image. An image is hashed without its
/// signature, any other file unchanged.
fn hash<D: Digest + digest::Update>(member: &Member<'_>) -> Result<(bool, Vec<u8>), CatalogError> {
    let mut hasher = D::new();
    if !member.data.starts_with(b"MZ") {
        Digest::update(&mut hasher, member.data);
        return Ok((false, hasher.finalize().to_vec()));
    }
    let name = || member.name.to_owned();
    let image = PeFile64::parse(member.data)
        .map_err(|source| CatalogError::Image { name: name(), source })?;
    if authenticode_digest(&image, &mut hasher).is_err() {
        return Err(CatalogError::Offsets { name: name() });
    }
    Ok((true, hasher.finalize().to_vec()))
}

/// Returns a hash in hexadecimal digits.
fn digits(hash: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    hash.iter()
        .flat_map(|byte| [byte >> 4, byte & 0xF])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

impl Catalog<'_> {
    /// Encodes the unsigned catalog; `time` has the form `YYMMDDhhmmssZ`.
    ///
    /// # Errors
    ///
    /// Fails if a member starts like an image but is not one.
    pub fn encode(&self, time: &str) -> Result<Vec<u8>, CatalogError> {
        const UTC_TIME: u64 = 23;
        const ID_LENGTH: usize = 16;
        let entries = self.entries()?;
        let mut id = Sha1::new();
        for entry in &entries {
            Digest::update(&mut id, &entry.tag);
        }
        let mut id = id.finalize().to_vec();
        id.truncate(ID_LENGTH);
        let member = match self.version {
            Version::One => LIST_MEMBER,
            Version::Two => LIST_MEMBER_2,
        };
        let list = |writer: DERWriter<'_>| {
            writer.write_sequence(|writer| {
                writer.next().write_sequence(|writer| {
                    writer.next().write_oid(&oid(CATALOG_LIST));
                });
                writer.next().write_bytes(&id);
                write_universal(writer.next(), UTC_TIME, time.as_bytes());
                writer.next().write_sequence(|writer| {
                    writer.next().write_oid(&oid(member));
                    writer.next().write_null();
                });
                writer.next().write_sequence(|writer| {
                    for entry in &entries {
                        self.write_member(writer.next(), entry);
                    }
                });
                writer.next().write_tagged(Tag::context(0), |writer| {
                    writer.write_sequence(|writer| {
                        for (name, value) in self.attributes() {
                            writer.next().write_sequence(|writer| {
                                writer.next().write_oid(&oid(NAME_VALUE));
                                let value = yasna::construct_der(|writer| {
                                    write_name_value(writer, &name, &value);
                                });
                                writer.next().write_bytes(&value);
                            });
                        }
                    });
                });
            });
        };
        Ok(yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_oid(&oid(SIGNED_DATA));
                writer.next().write_tagged(Tag::context(0), |writer| {
                    writer.write_sequence(|writer| {
                        writer.next().write_u8(1);
                        // An unsigned catalog has no algorithms and no signers.
                        writer.next().write_set(|_| {});
                        writer.next().write_sequence(|writer| {
                            writer.next().write_oid(&oid(TRUST_LIST));
                            writer.next().write_tagged(Tag::context(0), list);
                        });
                        writer.next().write_set(|_| {});
                    });
                });
            });
        }))
    }

    /// Returns the list's entries sorted by tag, as readers expect.
    fn entries(&self) -> Result<Vec<Entry<'_>>, CatalogError> {
        let mut entries = Vec::new();
        for member in self.members {
            let name = member.name;
            let (is_image, hash_1) = hash::<Sha1>(member)?;
            if self.version == Version::One {
                entries.push(Entry {
                    tag: utf16(&digits(&hash_1)),
                    is_image,
                    digest: Some((SHA1, hash_1)),
                    name,
                });
                continue;
            }
            let (_, hash_256) = hash::<Sha256>(member)?;
            entries.push(Entry { tag: hash_1, is_image, digest: None, name });
            entries.push(Entry {
                tag: hash_256.clone(),
                is_image,
                digest: Some((SHA256, hash_256)),
                name,
            });
        }
        entries.sort_by(|one, other| (&one.tag, one.name).cmp(&(&other.tag, other.name)));
        Ok(entries)
    }

    /// Returns the attributes of the whole catalog.
    fn attributes(&self) -> Vec<(String, String)> {
        let ids = self.hardware_ids.iter().zip(1..);
        let ids = ids.map(|(id, number)| (format!("HWID{number}"), id.to_ascii_lowercase()));
        let system = ("OS".to_owned(), self.system.to_owned());
        std::iter::once(system).chain(ids).collect()
    }

    fn write_member(&self, writer: DERWriter<'_>, entry: &Entry<'_>) {
        writer.write_sequence(|writer| {
            writer.next().write_bytes(&entry.tag);
            writer.next().write_set_of(|writer| {
                write_attribute(writer.next(), NAME_VALUE, |writer| {
                    write_name_value(writer, "OSAttr", self.versions);
                });
                write_attribute(writer.next(), NAME_VALUE, |writer| {
                    write_name_value(writer, "File", &entry.name.to_ascii_lowercase());
                });
                match self.version {
                    Version::One => write_attribute(writer.next(), MEMBER_INFO, |writer| {
                        write_member_info(writer, entry.is_image);
                    }),
                    Version::Two => write_attribute(writer.next(), MEMBER_INFO_2, |writer| {
                        write_member_info_2(writer, entry.is_image);
                    }),
                }
                if let Some((algorithm, hash)) = &entry.digest {
                    write_attribute(writer.next(), INDIRECT_DATA, |writer| {
                        write_indirect_data(writer, entry.is_image, (algorithm, hash));
                    });
                }
            });
        });
    }
}

/// Writes a `CAT_MEMBERINFO`.
fn write_member_info(writer: DERWriter<'_>, is_image: bool) {
    let subject = if is_image { IMAGE_SUBJECT } else { FLAT_SUBJECT };
    writer.write_sequence(|writer| {
        write_bmp(writer.next(), subject);
        writer.next().write_u32(CERTIFICATE_VERSION);
    });
}

/// Writes a `CAT_MEMBERINFO2`: a choice between subject types, without a value.
fn write_member_info_2(writer: DERWriter<'_>, is_image: bool) {
    const IMAGE: u64 = 0;
    const FLAT: u64 = 2;
    let choice = Tag::context(if is_image { IMAGE } else { FLAT });
    writer.write_tagged_implicit(choice, |writer| writer.write_bytes(&[]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_only_looks_like_an_image_is_refused_by_its_name() {
        let catalog = Catalog {
            members: &[Member { name: "a.sys", data: b"MZ and no more" }],
            hardware_ids: &[r"root\a".to_owned()],
            system: "_v100_X64_Vb",
            versions: "2:10.0",
            version: Version::One,
        };
        let error = catalog.encode("261121000000Z").unwrap_err().to_string();
        assert!(error.starts_with("a.sys begins with MZ"), "{error}");
    }
}
