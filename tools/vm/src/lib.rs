//! Runs a driver's test stages on a real Windows in QEMU.
//!
//! - [`install`] installs Windows from an image without questions, and keeps it as a base image;
//!   [`answer`] writes the answer file.
//! - [`kit`] puts the driver's package and the stages on a CD.
//! - [`run`] runs them on an overlay of the base image, and brings the results out.
//! - [`report`] is what the user sees.
//!
//! Below them, [`qemu`], [`qmp`] and [`accelerator`] start and control QEMU, [`watch`] follows a
//! machine by the messages of its serial port ([`protocol`]), and [`iso`] and [`disk`] are the images
//! by which files come in and go out.
//!
//! The guest needs no network, no guest tools and no drivers: disks are SATA, messages go to COM1.
//! Tests run a small Linux in the place of Windows, which follows the same protocol. No Windows has
//! been run with this crate yet.
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
