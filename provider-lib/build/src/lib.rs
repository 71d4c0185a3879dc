//! Support for build scripts of drivers that use `wdk-etw`: writes the resources of the driver's
//! image and links them, without a message compiler or resource compiler.
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
//! The result equals the output of mc.exe and rc.exe for a manifest with the same events: a
//! `WEVT_TEMPLATE` resource, a message table and a version resource. With these, `tracerpt`, Event
//! Viewer, Windows Performance Analyzer and `wevtutil` decode the driver's events from its image.
//! `TraceLogging` events do not need the resources. Windows finds the image if the provider is installed:
//! by the driver's INF file or by a manifest, which `cargo etw inf new` and `cargo etw manifest write` write.
//!
//! The source file contains the module with `#[wdk_etw::provider(…)]`, and may contain other items, such
//! as hooks; it may be `src/lib.rs`. A build script cannot read a provider inside a macro or a function;
//! cargo warns about it. A driver can have several providers, in one source file or in several, and
//! library crates can have their own: see [`Image::declaration`] and [`export`]. The image's resources
//! cover all of them.
//!
//! The crate `etw-manifest`, re-exported as `manifest`, reads, checks and writes manifests and
//! their resources.

pub mod configuration;
pub mod declaration;
mod embed;
pub mod image;
pub mod import;
mod library;
mod several;
pub mod version;

use std::path::PathBuf;

pub use embed::Image;
pub use etw_manifest as manifest;
pub use image::{BuildError, declared, declared_in, manifest_in, manifest_of, package_folder};
pub use library::{export, export_dependencies};
pub use several::manifest_of_all;
pub use wdk_etw_schema::Configuration;

/// Adds the resources of the providers that a source file declares to the package's image, together
/// with the resources that libraries export ([`export`]).
///
/// Also adds a version resource that is derived from the package's `Cargo.toml`. Call this function
/// from a build script; the path is relative to the package's folder.
///
/// # Errors
///
/// Fails with [`BuildError`], which contains the line and column of each mistake in the
/// declaration.
pub fn compile(declaration: impl Into<PathBuf>) -> Result<(), BuildError> {
    Image::of_package().inspect_err(BuildError::tell_cargo)?.declaration(declaration).embed()
}
