//! Runs a driver's test stages on real Windows in QEMU.
//!
//! - [`install`] installs Windows unattended from an image, and keeps the result as a base image;
//!   [`answer`] writes the answer file.
//! - [`kit`] puts the driver's package and the stages on a CD.
//! - [`run`] runs the stages on an overlay of the base image, and copies the results to the host.
//! - [`report`] presents the results to the user.
//!
//! Below them, [`qemu`], [`qmp`] and [`accelerator`] start and control QEMU, [`watch`] follows a
//! virtual machine through the messages on its serial port ([`protocol`]), and [`iso`] and [`disk`]
//! write and read the images that transfer files.
//!
//! The guest needs no network, guest tools or drivers: disks are SATA, and messages go to COM1.
//! Tests run a small Linux system that follows the same protocol as Windows. This crate has not
//! been run with Windows yet.
#![cfg(unix)]

pub mod accelerator;
pub mod answer;
pub mod bugcheck;
pub mod disk;
pub mod error;
pub mod install;
pub mod interrupt;
pub mod iso;
pub mod kit;
pub mod protocol;
pub mod qemu;
pub mod qmp;
pub mod report;
pub mod run;
pub mod watch;

pub use error::{Error, Result};
pub use report::Report;
