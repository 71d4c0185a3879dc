//! The routines of the C library.

pub mod code_page;
pub mod format;
pub mod letters;
pub mod memory;
pub mod numbers;
pub mod strings;
pub mod text;
