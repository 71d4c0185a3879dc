//! The events that an image's resources describe, which a message compiler generates.
//!
//! A driver's `.sys` (or any image, of 64 or 32 bits) contains its providers in the `WEVT_TEMPLATE`
//! resource and its strings in a message table. The resources contain the same information as the
//! original manifest, except for the events' symbols.

use std::io;
use std::path::{Path, PathBuf};

use etw_manifest::resources::{DecodeError, Decoded, decode};

use object::FileKind;
use object::LittleEndian as LE;
use object::pe::{ImageNtHeaders32, ImageNtHeaders64};
use object::read::pe::{
    ImageNtHeaders, PeFile, ResourceDirectory, ResourceDirectoryEntryData, ResourceNameOrId,
};

use crate::decode::catalog::Catalog;
use crate::input::{MAX_IMAGE, read};

/// The types of the resources.
const TEMPLATES: &str = "WEVT_TEMPLATE";
const MESSAGE_TABLE: u16 = 11;

/// The reason why an image's resources could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The file could not be read.
    #[error("cannot read the image {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a well-formed PE image.
    #[error("cannot read {}: it is not a well-formed PE image: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: object::Error,
    },
    /// The image describes no events.
    #[error("{} has no WEVT_TEMPLATE resource, so it describes no events", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The resources are malformed.
    #[error("cannot read the resources of {}: {source}", path.display())]
    Resource {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: DecodeError,
    },
}

/// Reads the events that an image's resources describe.
///
/// # Errors
/// Fails with [`ImageError`] if the file cannot be read, or if its resources are missing or
/// damaged.
pub fn described(path: impl AsRef<Path>) -> Result<Decoded, ImageError> {
    let path = path.as_ref();
    let data =
        read(path, MAX_IMAGE).map_err(|source| ImageError::Io { path: path.to_owned(), source })?;
    let found = resources(&data)
        .map_err(|reason| ImageError::Malformed { path: path.to_owned(), reason })?;
    let (Some(templates), messages) = found else {
        return Err(ImageError::Missing { path: path.to_owned() });
    };
    decode(templates, messages.unwrap_or_default())
        .map_err(|source| ImageError::Resource { path: path.to_owned(), source })
}

impl Catalog {
    /// Loads the events that an image's resources describe. Replaces providers that are already in
    /// the catalog. Skips damaged parts that are not needed to decode events, and returns the
    /// damage.
    ///
    /// # Errors
    /// Fails with [`ImageError`] if the file cannot be read, or if its resources are missing or
    /// damaged.
    pub fn load_image(&mut self, path: impl AsRef<Path>) -> Result<Vec<DecodeError>, ImageError> {
        let decoded = described(path)?;
        self.add_model(&decoded.manifest);
        Ok(decoded.skipped)
    }

    /// Adds the providers in the bytes of a `WEVT_TEMPLATE` resource, with strings from the bytes
    /// of a message table, which may be empty. Skips damaged parts that are not needed to decode
    /// events, and returns the damage.
    ///
    /// # Errors
    /// Fails with [`DecodeError`] if the bytes are malformed; the catalog is then unchanged.
    pub fn add_resources(
        &mut self,
        templates: &[u8],
        messages: &[u8],
    ) -> Result<Vec<DecodeError>, DecodeError> {
        let decoded = decode(templates, messages)?;
        self.add_model(&decoded.manifest);
        Ok(decoded.skipped)
    }
}

/// The bytes of an image's `WEVT_TEMPLATE` resource and message table.
type Resources<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Finds the resources of an image.
fn resources(data: &[u8]) -> object::Result<Resources<'_>> {
    // 32-bit and 64-bit images differ only in the headers that precede the resources.
    match FileKind::parse(data) {
        Ok(FileKind::Pe32) => resources_of::<ImageNtHeaders32>(data),
        _ => resources_of::<ImageNtHeaders64>(data),
    }
}

/// Finds the resources of an image with 32-bit or 64-bit headers.
fn resources_of<Nt: ImageNtHeaders>(data: &[u8]) -> object::Result<Resources<'_>> {
    let image = PeFile::<Nt>::parse(data)?;
    let sections = image.section_table();
    let directories = image.data_directories();
    let Some(directory) = directories.resource_directory(data, &sections)? else {
        return Ok((None, None));
    };
    let find = |wanted: &dyn Fn(ResourceNameOrId) -> bool| -> object::Result<Option<&[u8]>> {
        Ok(find(directory, wanted)?.and_then(|(address, size)| {
            let at = sections.pe_data_at(data, address)?;
            at.get(..size as usize)
        }))
    };
    let templates = find(&|name| match name {
        ResourceNameOrId::Name(name) => {
            name.to_string_lossy(directory).is_ok_and(|name| name.eq_ignore_ascii_case(TEMPLATES))
        }
        ResourceNameOrId::Id(_) => false,
    })?;
    let messages = find(&|name| matches!(name, ResourceNameOrId::Id(id) if id == MESSAGE_TABLE))?;
    Ok((templates, messages))
}

/// Returns the address and size of the first resource of a type, with any name and language.
fn find(
    directory: ResourceDirectory<'_>,
    wanted: &dyn Fn(ResourceNameOrId) -> bool,
) -> object::Result<Option<(u32, u32)>> {
    let root = directory.root()?;
    let Some(of_type) = root.entries.iter().find(|entry| wanted(entry.name_or_id())) else {
        return Ok(None);
    };
    let mut data = of_type.data(directory)?;
    // The levels are type, name and language; two levels remain.
    for _ in 0..2 {
        data = match data {
            ResourceDirectoryEntryData::Table(table) => match table.entries.first() {
                Some(entry) => entry.data(directory)?,
                None => return Ok(None),
            },
            entry @ ResourceDirectoryEntryData::Data(_) => entry,
        };
    }
    Ok(match data {
        ResourceDirectoryEntryData::Data(entry) => {
            Some((entry.offset_to_data.get(LE), entry.size.get(LE)))
        }
        ResourceDirectoryEntryData::Table(_) => None,
    })
}
