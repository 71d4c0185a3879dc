//! For build scripts of drivers that use `wdk-etw`: makes the resources of the driver's image and
//! has them linked, with no message compiler and no resource compiler.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // wdk_build::configure_wdk_binary_build()?;
//!     wdk_etw_build::compile("src/trace.rs")?;
//!     Ok(())
//! }
//! ```
//!
//! What comes out is what mc.exe and rc.exe would make of a manifest with the same events: a
//! `WEVT_TEMPLATE` resource, a message table and a version resource, so that `tracerpt`, Event
//! Viewer, Windows Performance Analyzer and `wevtutil` decode the driver's events from its image.
//! Events that describe themselves (`TraceLogging`) need none of it.
//!
//! Manifests are read, checked and written by the crate `etw-manifest`, which makes the resources
//! too; it is here as [`manifest`].

pub mod declaration;
pub mod image;
pub mod import;
pub mod version;

use std::path::PathBuf;

pub use etw_manifest as manifest;
pub use image::{BuildError, Image, declared, manifest_of, package_folder};

/// Gives the image the resources of the provider that a source file declares.
///
/// It gets a version resource, too, which says what the package's `Cargo.toml` says. To be called
/// from a build script; the path is from the package's folder.
///
/// # Errors
///
/// [`BuildError`] says what is wrong; for a mistake in the declaration with line and column.
pub fn compile(declaration: impl Into<PathBuf>) -> Result<(), BuildError> {
    Image::of_package()?.declaration(declaration).embed()
}
