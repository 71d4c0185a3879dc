//! Tests the stand-in kernel with the drivers that `cargo xtask test` builds, and its command line.

#![cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]

mod bench;
mod c_drivers;
mod cli;
mod common;
#[cfg(target_os = "linux")]
mod confinement;
mod conformance;
mod diagnostics;
mod driver;
mod etw_results;
mod exceptions;
mod facades;
mod faults;
mod filters;
mod foreign_decoders;
mod foreign_emulator;
mod guide;
mod hardware;
mod image;
mod kmdf;
mod kmdf_cases;
mod kmdf_dma;
mod kmdf_hardware;
mod kmdf_io;
mod kmdf_io_target;
mod kmdf_object;
mod kmdf_synchronization;
mod leak_guard;
mod minimal;
mod notifications;
mod ntoskrnl;
mod outputs;
mod panics;
mod parallel;
mod routines;
mod rules;
mod sample;
mod scheduling;
mod scripts;
mod sessions;
mod several;
mod small_image;
mod statuses;
mod stress;
mod tracelogging;
mod verifier;
mod wdm;
mod wdm_pnp;
mod wpp;

#[path = "../../../tests/drivers/kmdf/src/commands.rs"]
mod kmdf_commands;
#[path = "../../../tests/drivers/wdm/src/commands.rs"]
mod wdm_commands;
#[path = "../../../tests/drivers/wdm-pnp/src/commands.rs"]
mod wdm_pnp_commands;
