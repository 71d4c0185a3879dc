//! Builds KMDF drivers in Rust without the WDK.
//!
//! - [`driver`] finds a driver in any cargo workspace and builds its image, without changing the
//!   workspace's files.
//! - [`standin`] contains the stand-ins for wdk-sys and wdk-build, which the build uses instead of
//!   Microsoft's crates.
//! - [`toolchain`] finds or installs a Rust toolchain for Windows and a linker.
//! - [`link`] makes the image independent of the folder and user that build it. A program that uses
//!   this crate calls [`link::run_if_asked`] first, because rustc runs it as the linker.
//! - [`packages`] installs operating system packages.
//! - [`files`] reads and writes files with errors that name the files.
//! - [`process`] runs other programs, and [`progress`] shows the progress of steps.

mod c_tools;
mod config;
mod dependencies;
pub mod driver;
pub mod files;
pub mod link;
mod messages;
mod missing;
pub mod packages;
pub mod process;
mod profile;
pub mod progress;
pub mod standin;
pub mod toolchain;
mod version;
