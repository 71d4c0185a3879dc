//! Security: access checks, tokens and security descriptors.

pub mod access;
pub mod capture;
pub mod descriptors;
pub mod security_descriptors;
pub mod tokens;
