//! The object manager: handles, references, and callbacks for them.

pub mod callbacks;
pub mod filters;
pub mod handles;
pub mod links;
pub mod names;
pub mod namespace;
pub mod object_attributes;
pub mod security;
pub mod waits;
