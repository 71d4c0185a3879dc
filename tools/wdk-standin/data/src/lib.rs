//! The declarations of the WDK's headers as JSON. README.md describes the format of each file.

#![no_std]

/// The functions: the framework's function table, the kernel's routines, and those that the headers
/// define inline.
pub const FUNCTIONS: &str = include_str!("../functions.json");

/// Routines that modules export and the headers do not declare.
pub const OTHERS: &str = include_str!("../others.json");

/// The structures, unions, enumerations, aliases and function pointer types.
pub const TYPES: &str = include_str!("../types.json");
