//! Builds driver packages for Windows without the WDK.
//!
//! - [`inf`] reads an INF file, stamps it as `stampinf` does, and checks it against the rules of
//!   `infverif` and against the driver that it installs.
//! - [`catalog`] writes the security catalog that `inf2cat` would write.
//! - [`sign`] creates a certificate for test machines and signs images and catalogs with it, using
//!   `openssl` and `osslsigncode`.
//! - [`archive`] packs the files of a package.

pub mod archive;
pub mod catalog;
pub mod inf;
pub mod sign;
