//! The binding of drivers to the framework, the driver object, and queries about the framework.

pub mod verifier;
pub mod version;
pub mod wdfldr;
