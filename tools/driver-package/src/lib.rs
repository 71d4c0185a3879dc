//! Driver packages for Windows, made where there is no WDK.
//!
//! - [`inf`] reads an INF file, stamps it as `stampinf` does, and checks it against the rules of
//!   `infverif` and against the driver that it installs.
//! - [`catalog`] makes the security catalog that `inf2cat` would make.
//! - [`sign`] makes a certificate for test machines and signs images and catalogs with it, by
//!   `openssl` and `osslsigncode`.
//! - [`archive`] packs the files of a package.

pub mod archive;
pub mod catalog;
pub mod inf;
pub mod sign;
