//! What an image says of its own events: the resources that a message compiler puts into it.
//!
//! A driver's `.sys` (or any image, of 64 or 32 bits) holds its providers in the resource
//! `WEVT_TEMPLATE` and its texts in a message table. They say the same as the manifest that
//! they were made of, but for the symbols of events.

mod bytes;
mod error;
mod messages;
mod wevt;

use std::path::Path;

use object::FileKind;
use object::LittleEndian as LE;
use object::pe::{ImageNtHeaders32, ImageNtHeaders64};
use object::read::pe::{
    ImageNtHeaders, PeFile, ResourceDirectory, ResourceDirectoryEntryData, ResourceNameOrId,
};

pub use error::{ImageError, ResourceError};
use messages::Messages;

use crate::manifest::{Catalog, Provider};

/// The resources' types.
const TEMPLATES: &str = "WEVT_TEMPLATE";
const MESSAGE_TABLE: u16 = 11;

impl Catalog {
    /// Loads what an image says of its events. A provider that is known already is replaced.
    ///
    /// # Errors
    /// [`ImageError`] if the file cannot be read, or has no such resources, or damaged ones.
    pub fn load_image(&mut self, path: impl AsRef<Path>) -> Result<(), ImageError> {
        let path = path.as_ref();
        let data = std::fs::read(path).map_err(|source| ImageError::Io {
            path: path.to_owned(),
            source,
        })?;
        let providers = providers(&data).map_err(|source| ImageError::Resource {
            path: path.to_owned(),
            source,
        })?;
        self.insert(providers);
        Ok(())
    }

    /// Adds the providers of the bytes of a `WEVT_TEMPLATE` resource, with the texts of the
    /// bytes of a message table, which may be none.
    ///
    /// # Errors
    /// [`ResourceError`] if they are malformed; the catalog is as before.
    pub fn add_resources(
        &mut self,
        templates: &[u8],
        messages: &[u8],
    ) -> Result<(), ResourceError> {
        let messages = if messages.is_empty() {
            Messages::default()
        } else {
            Messages::parse(messages)?
        };
        self.insert(wevt::providers(templates, &messages)?);
        Ok(())
    }
}

/// The providers of an image.
fn providers(data: &[u8]) -> Result<Vec<Provider>, ResourceError> {
    // The resources are the same in both; what stands before them is not.
    match FileKind::parse(data) {
        Ok(FileKind::Pe32) => providers_of::<ImageNtHeaders32>(data),
        _ => providers_of::<ImageNtHeaders64>(data),
    }
}

/// The providers of an image with such headers.
fn providers_of<Nt: ImageNtHeaders>(data: &[u8]) -> Result<Vec<Provider>, ResourceError> {
    let malformed = |error: object::Error| ResourceError::Image(error.to_string());
    let image = PeFile::<Nt>::parse(data).map_err(malformed)?;
    let sections = image.section_table();
    let directory = image
        .data_directories()
        .resource_directory(data, &sections)
        .map_err(malformed)?
        .ok_or(ResourceError::Missing(TEMPLATES))?;
    let find = |wanted: &dyn Fn(ResourceNameOrId) -> bool| -> Result<Option<&[u8]>, ResourceError> {
        let entry = find(directory, wanted).map_err(malformed)?;
        Ok(entry.and_then(|(address, size)| {
            let at = sections.pe_data_at(data, address)?;
            at.get(..size as usize)
        }))
    };
    let templates = find(&|name| match name {
        ResourceNameOrId::Name(name) => name
            .to_string_lossy(directory)
            .is_ok_and(|name| name.eq_ignore_ascii_case(TEMPLATES)),
        ResourceNameOrId::Id(_) => false,
    })?;
    let templates = templates.ok_or(ResourceError::Missing(TEMPLATES))?;
    let messages = find(&|name| matches!(name, ResourceNameOrId::Id(id) if id == MESSAGE_TABLE))?;
    let messages = messages.map_or_else(|| Ok(Messages::default()), Messages::parse)?;
    wevt::providers(templates, &messages)
}

/// The address and size of the first resource of a type, whatever its name and language.
fn find(
    directory: ResourceDirectory<'_>,
    wanted: &dyn Fn(ResourceNameOrId) -> bool,
) -> object::Result<Option<(u32, u32)>> {
    let root = directory.root()?;
    let Some(of_type) = root.entries.iter().find(|entry| wanted(entry.name_or_id())) else {
        return Ok(None);
    };
    let mut data = of_type.data(directory)?;
    // Type, name, language: two more levels.
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
