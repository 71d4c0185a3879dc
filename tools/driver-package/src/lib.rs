//! Builds driver packages for Windows without the WDK.
//!
//! - [`inf`] reads and writes INF files, stamps them as `stampinf` does, and checks them against the
//!   rules of `infverif` and the driver that they install.
//! - [`catalog`] writes the security catalog that `inf2cat` would write.
//! - [`sign`] creates a certificate for test machines and signs images and catalogs with it, using
//!   `openssl` and `osslsigncode`.
//! - [`scripts`] writes the scripts and the README of a package.
//! - [`archive`] packs the files of a package.

pub mod archive;
pub mod catalog;
pub mod inf;
pub mod scripts;
pub mod sign;
