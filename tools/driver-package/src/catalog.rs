//! Security catalogs (`.cat`), which contain the hashes of a driver package's files.
//!
//! A catalog is a PKCS #7 message whose content is a certificate trust list (`szOID_CTL`), with a
//! member for each file. The members have the first version of their format, which names files by
//! their SHA-1. The structures have the names of Microsoft's wincrypt.h and mscat.h. The WDK's
//! `inf2cat` makes the same catalogs.

use authenticode::authenticode_digest;
use object::read::pe::PeFile64;
use sha1::{Digest as _, Sha1};
use yasna::{DERWriter, Tag, TagClass, models::ObjectIdentifier};

const SIGNED_DATA: &[u64] = &[1, 2, 840, 113_549, 1, 7, 2];
const SHA1: &[u64] = &[1, 3, 14, 3, 2, 26];
/// `szOID_CTL`.
const TRUST_LIST: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 10, 1];
/// `szOID_CATALOG_LIST`.
const CATALOG_LIST: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 12, 1, 1];
/// `szOID_CATALOG_LIST_MEMBER`.
const LIST_MEMBER: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 12, 1, 2];
/// `CAT_NAMEVALUE_OBJID`.
const NAME_VALUE: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 12, 2, 1];
/// `CAT_MEMBERINFO_OBJID`.
const MEMBER_INFO: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 12, 2, 2];
/// `SPC_INDIRECT_DATA_OBJID`.
const INDIRECT_DATA: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 2, 1, 4];
/// `SPC_PE_IMAGE_DATA_OBJID`.
const PE_IMAGE_DATA: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 2, 1, 15];
/// `SPC_CAB_DATA_OBJID`, which marks any file that is hashed unchanged.
const FLAT_DATA: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 2, 1, 25];

/// The subject types of images and of other files.
const IMAGE_SUBJECT: &str = "{C689AAB8-8E78-11D0-8C47-00C04FC295EE}";
const FLAT_SUBJECT: &str = "{DE351A42-8E59-11D0-8C47-00C04FC295EE}";

/// `CRYPTCAT_ATTR_AUTHENTICATED | CRYPTCAT_ATTR_NAMEASCII | CRYPTCAT_ATTR_DATAASCII`.
const ATTRIBUTE_FLAGS: u32 = 0x1001_0001;
/// The certificate version of the subjects, the same in every catalog.
const CERTIFICATE_VERSION: u32 = 0x200;
/// The placeholder for a file's name.
const OBSOLETE: &str = "<<<Obsolete>>>";

/// Reasons why a file cannot be a catalog's member.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The file begins like an image but is not one.
    #[error("{name} begins with MZ but is not a 64-bit PE image")]
    Image {
        /// The file's name.
        name: String,
        /// The reader's error.
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
    /// The devices' hardware ids. The catalog has them in lower case.
    pub hardware_ids: &'a [String],
    /// The operating system, as `inf2cat` names it: `_v100_X64_Vb`.
    pub system: &'a str,
    /// The kernel's versions: `2:10.0`.
    pub versions: &'a str,
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
    let tag = Tag {
        tag_class: TagClass::Universal,
        tag_number,
    };
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
fn write_indirect_data(writer: DERWriter<'_>, is_image: bool, hash: &[u8]) {
    writer.write_sequence(|writer| {
        writer.next().write_sequence(|writer| {
            if is_image {
                writer.next().write_oid(&oid(PE_IMAGE_DATA));
                writer.next().write_sequence(|writer| {
                    // Of the three flags, only `includeResources` is set.
                    writer.next().write_bitvec_bytes(&[0b1010_0000], 3);
                    writer
                        .next()
                        .write_tagged(Tag::context(0), write_obsolete_link);
                });
            } else {
                writer.next().write_oid(&oid(FLAT_DATA));
                write_obsolete_link(writer.next());
            }
        });
        writer.next().write_sequence(|writer| {
            writer.next().write_sequence(|writer| {
                writer.next().write_oid(&oid(SHA1));
                writer.next().write_null();
            });
            writer.next().write_bytes(hash);
        });
    });
}

/// Returns a member's hash, and whether the member is an image. An image is hashed without its
/// signature, any other file unchanged.
fn hash(member: &Member<'_>) -> Result<(bool, Vec<u8>), CatalogError> {
    let mut hasher = Sha1::new();
    if !member.data.starts_with(b"MZ") {
        hasher.update(member.data);
        return Ok((false, hasher.finalize().to_vec()));
    }
    let name = || member.name.to_owned();
    let image = PeFile64::parse(member.data).map_err(|source| CatalogError::Image {
        name: name(),
        source,
    })?;
    if authenticode_digest(&image, &mut hasher).is_err() {
        return Err(CatalogError::Offsets { name: name() });
    }
    Ok((true, hasher.finalize().to_vec()))
}

/// Returns a member's tag in the catalog: its hash in hexadecimal digits.
fn tag(hash: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    hash.iter()
        .flat_map(|byte| [byte >> 4, byte & 0xF])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

impl Catalog<'_> {
    /// Encodes the catalog without a signature; `time` has the form `YYMMDDhhmmssZ`.
    ///
    /// # Errors
    ///
    /// Fails if a member begins like an image but is not one.
    pub fn encode(&self, time: &str) -> Result<Vec<u8>, CatalogError> {
        const UTC_TIME: u64 = 23;
        const ID_LENGTH: usize = 16;
        let mut members = Vec::new();
        for member in self.members {
            let (is_image, hash) = hash(member)?;
            members.push((tag(&hash), is_image, hash, member.name));
        }
        // Readers search the members by their tags.
        members.sort();
        let mut id = Sha1::new();
        for (tag, ..) in &members {
            id.update(tag);
        }
        let mut id = id.finalize().to_vec();
        id.truncate(ID_LENGTH);
        let list = |writer: DERWriter<'_>| {
            writer.write_sequence(|writer| {
                writer.next().write_sequence(|writer| {
                    writer.next().write_oid(&oid(CATALOG_LIST));
                });
                writer.next().write_bytes(&id);
                write_universal(writer.next(), UTC_TIME, time.as_bytes());
                writer.next().write_sequence(|writer| {
                    writer.next().write_oid(&oid(LIST_MEMBER));
                    writer.next().write_null();
                });
                writer.next().write_sequence(|writer| {
                    for (tag, is_image, hash, name) in &members {
                        self.write_member(writer.next(), tag, *is_image, hash, name);
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
                        // An unsigned catalog has neither algorithms nor signers.
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

    /// Returns the attributes of the catalog as a whole.
    fn attributes(&self) -> Vec<(String, String)> {
        let ids = self.hardware_ids.iter().zip(1..);
        let ids = ids.map(|(id, number)| (format!("HWID{number}"), id.to_ascii_lowercase()));
        let system = ("OS".to_owned(), self.system.to_owned());
        std::iter::once(system).chain(ids).collect()
    }

    fn write_member(
        &self,
        writer: DERWriter<'_>,
        tag: &str,
        is_image: bool,
        hash: &[u8],
        name: &str,
    ) {
        let subject = if is_image {
            IMAGE_SUBJECT
        } else {
            FLAT_SUBJECT
        };
        writer.write_sequence(|writer| {
            writer.next().write_bytes(&utf16(tag));
            writer.next().write_set_of(|writer| {
                write_attribute(writer.next(), NAME_VALUE, |writer| {
                    write_name_value(writer, "OSAttr", self.versions);
                });
                write_attribute(writer.next(), NAME_VALUE, |writer| {
                    write_name_value(writer, "File", &name.to_ascii_lowercase());
                });
                write_attribute(writer.next(), MEMBER_INFO, |writer| {
                    writer.write_sequence(|writer| {
                        write_bmp(writer.next(), subject);
                        writer.next().write_u32(CERTIFICATE_VERSION);
                    });
                });
                write_attribute(writer.next(), INDIRECT_DATA, |writer| {
                    write_indirect_data(writer, is_image, hash);
                });
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_only_looks_like_an_image_is_refused_by_its_name() {
        let catalog = Catalog {
            members: &[Member {
                name: "a.sys",
                data: b"MZ and no more",
            }],
            hardware_ids: &[r"root\a".to_owned()],
            system: "_v100_X64_Vb",
            versions: "2:10.0",
        };
        let error = catalog.encode("261121000000Z").unwrap_err().to_string();
        assert!(error.starts_with("a.sys begins with MZ"), "{error}");
    }
}
