//! The confinement of the process that runs a driver.

mod files;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use std::path::Path;

use anyhow::Result;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

use self::files::Files;

pub use system::Confinement;

/// Permanently confines this process to the rights that it needs to load an image.
///
/// On Linux, it can from now on read only the image, its PDB and this program, which is enough for
/// [`Kernel::load`](crate::Kernel::load), and it ends with its parent process. It must have only
/// one thread. Returns a sentence for each kind of access that this system cannot prevent.
///
/// # Errors
///
/// Returns an error if a confinement mechanism that the system provides fails.
pub fn confine(image: &Path) -> Result<Vec<&'static str>> {
    let confinement = Confinement::of_this_system();
    let files = Files { image, described_by: &[], trace: None, folder: None };
    confinement.apply(Confinement::parent(), files)?;
    Ok(confinement.missing().collect())
}
