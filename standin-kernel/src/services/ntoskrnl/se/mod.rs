//! Security: access checks, tokens and security descriptors.

pub mod access;
pub mod accounts;
pub mod capture;
pub mod descriptors;
pub mod impersonation;
pub mod logon_sessions;
pub mod security_descriptors;
pub mod token_objects;
pub mod tokens;
