//! Scripts that exercise a driver without writing Rust.
//!
//! A script has one step per line; `#` starts a comment. Bytes are a string in double quotes, or
//! hexadecimal digits after `hex:`. Numbers are decimal, or hexadecimal after `0x`.
//!
//! | Step | Effect |
//! |---|---|
//! | `add-device` | adds a device and starts it |
//! | `open [PROCESS THREAD]` | opens the device from a process and thread |
//! | `write BYTES` | writes to the device |
//! | `read LENGTH` | reads from the device |
//! | `ioctl CODE [BYTES] [LENGTH]` | sends a device control with input bytes and an output length |
//! | `expect STATUS [BYTES]` | fails unless the last request ended with this status and output |
//! | `close` | closes the device |
//! | `advance MILLISECONDS` | advances the clock |
//! | `power-cycle` | takes the device to D3 and back to D0 |
//! | `capture-state` | requests the state of all enabled providers and groups |
//! | `remove` | removes the device |
//!
//! Several clients can run a script together ([`Clients`]). Each client runs the requests
//! between `open` and `close` on a file of its own; a seed decides how the clients interleave.
//! The first client alone runs the other steps between `open` and `close`, and all steps
//! outside.

mod error;
mod run;
mod steps;

pub use self::{
    error::{Problem, ScriptError},
    run::{Clients, Done, Observer},
    steps::Script,
};
