//! The file systems' library.

pub mod mappings;
pub mod names;
