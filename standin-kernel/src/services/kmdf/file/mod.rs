//! Files: their opening and closing, and their `FILE_OBJECT`s.

pub mod file_object;
pub mod opening;
