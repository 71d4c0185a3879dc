//! The sample driver's client for Windows.
//!
//! The client controls ETW sessions, consumes their events (decoded by TDH) and sends requests to
//! the sample driver's device. On Windows, it also runs the scenarios that run in the stand-in
//! kernel.

#[cfg(not(windows))]
compile_error!("the client is a Windows program; `cargo xtask client` cross-compiles it");

mod arguments;
mod commands;
mod device;
mod devices;
mod devnode;
mod error;
mod host;
mod install;
mod probes_host;
mod trace;
mod version;

use std::process::ExitCode;

/// The exit code of a command that failed.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let action = match arguments::parse(std::env::args_os()) {
        Ok(action) => action,
        // Prints the message and exits, with success after --help and --version.
        Err(error) => error.exit(),
    };
    // SAFETY: the program's code is mapped until the process ends, and the registration ends with
    // the process.
    if let Err(error) = unsafe { trace::provider::register() } {
        eprintln!("warning: the client's own events are not traced: {error}");
    }
    let result = commands::run(&action);
    if let Err(error) = trace::provider::unregister() {
        eprintln!("warning: {error}");
    }
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(FAILED)
        }
    }
}
