//! The object manager: handles, references, and callbacks for them.

pub mod callbacks;
pub mod directories;
pub mod filters;
pub mod handles;
pub mod object_attributes;
