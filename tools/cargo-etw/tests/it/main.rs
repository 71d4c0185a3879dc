//! Tests the `cargo etw` program.

mod build;
mod common;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod foreign_decoders;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod guide;
mod new;
mod own;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod sample;
mod strangers;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod vm;
mod wpp;
