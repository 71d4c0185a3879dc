//! The sample driver's client on Windows.
//!
//! It is a controller of ETW sessions, a consumer of their events (decoded by TDH), and a
//! user of the sample driver's device; and it plays the scenarios that the stand-in kernel
//! plays, on the real system.

#[cfg(not(windows))]
compile_error!("the client is a Windows program; `cargo xtask client` builds it from elsewhere");

mod arguments;
mod commands;
mod consumer;
mod device;
mod devnode;
mod error;
mod guid;
mod install;
mod process;
mod session;
mod tdh;
mod wide;
mod world;

use std::process::ExitCode;

use crate::error::Failure;

/// Something the client was asked to do failed.
const FAILED: u8 = 1;

fn run() -> Result<(), Failure> {
    let matches = arguments::command().get_matches();
    commands::run(&matches)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(FAILED)
        }
    }
}
