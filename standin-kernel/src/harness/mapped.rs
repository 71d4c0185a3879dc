//! Images that are mapped without a kernel, for programs that call their functions directly.

use std::{collections::BTreeMap, fs, path::Path};

use object::read::pe::{ExportTarget, PeFile64};

use crate::ground::{
    image::Image,
    loader::{LoadError, Resolve, load_bytes},
};

/// An image in this process whose imports are bound to routines that the program chooses.
///
/// The image calls these routines directly rather than through a gateway, so calls cost as much as
/// on Windows. Dropping the image unmaps its code.
pub struct MappedImage {
    image: Image,
    /// The addresses of the exported functions, by name.
    exports: BTreeMap<String, u64>,
}

impl MappedImage {
    /// Maps a driver's image. `resolve` returns the routine for an import, given its module and
    /// name. If it returns `None`, the import is bound to an address that faults.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be loaded as a driver.
    pub fn load(path: &Path, resolve: Resolve<'_>) -> Result<Self, LoadError> {
        let data =
            fs::read(path).map_err(|error| LoadError::File { path: path.to_owned(), error })?;
        let image = load_bytes(path, &data, resolve)?;
        let exports = exports(&data, &image).map_err(|error| LoadError::Malformed {
            path: path.to_owned(),
            what: format!("exports: {error}"),
        })?;
        Ok(Self { image, exports })
    }

    /// Returns the entry point's address.
    #[must_use]
    pub const fn entry(&self) -> u64 {
        self.image.entry()
    }

    /// Returns the address of an exported function.
    #[must_use]
    pub fn export(&self, name: &str) -> Option<u64> {
        self.exports.get(name).copied()
    }

    /// Returns the imports that are not bound to a routine, each as `module!name`.
    #[must_use]
    pub fn unprovided(&self) -> &[String] {
        self.image.unprovided().names()
    }
}

fn exports(data: &[u8], image: &Image) -> object::Result<BTreeMap<String, u64>> {
    let Some(table) = PeFile64::parse(data)?.export_table()? else {
        return Ok(BTreeMap::new());
    };
    let exports = table.exports()?.into_iter().filter_map(|export| {
        let ExportTarget::Address(offset) = export.target else {
            return None;
        };
        let address = image.base().checked_add(u64::from(offset))?;
        let name = String::from_utf8_lossy(export.name?).into_owned();
        // A damaged table can name any offset.
        image.contains(address).then_some((name, address))
    });
    Ok(exports.collect())
}
