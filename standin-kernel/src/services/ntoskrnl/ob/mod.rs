//! The object manager: handles, references, and callbacks for them.

pub mod callbacks;
pub mod filters;
pub mod handles;
pub mod namespace;
pub mod object_attributes;
