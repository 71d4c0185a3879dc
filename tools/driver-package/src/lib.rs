//! Builds driver packages for Windows without the WDK.
//!
//! - [`inf`] reads and writes INF files, stamps them like `stampinf`, and checks them against
//!   `infverif`'s rules and the driver.
//! - [`catalog`] writes the same security catalog as `inf2cat`.
//! - [`sign`] creates a certificate for test machines and signs images and catalogs with it, using
//!   `openssl` and `osslsigncode`.
//! - [`scripts`] writes the scripts and the README of a package.
//! - [`archive`] packs a package's files into an archive.

pub mod archive;
pub mod catalog;
pub mod inf;
pub mod scripts;
pub mod sign;
