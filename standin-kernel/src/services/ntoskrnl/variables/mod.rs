//! The variables that ntoskrnl.exe exports.

pub mod constant;
pub mod per_kernel;
