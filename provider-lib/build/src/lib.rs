//! For build scripts of drivers: makes the resources of the driver's image and has them linked,
//! without the WDK's resource compiler.

pub mod image;
pub mod res;
pub mod version;

pub use image::{BuildError, Image};
