//! The routines by which drivers ask the plug-and-play manager about devices.

pub mod interfaces;
pub mod keys;
pub mod reports;
