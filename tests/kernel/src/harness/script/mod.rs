//! Scripts: what to do with a driver, without writing Rust.
//!
//! One step a line; `#` starts a comment. Bytes are a text in double quotes or
//! hexadecimal digits after `hex:`. Numbers may be hexadecimal, with `0x`.
//!
//! | step | what it does |
//! |---|---|
//! | `add-device` | adds a device and starts it |
//! | `open [PROCESS THREAD]` | opens the device, as a process and thread |
//! | `write BYTES` | writes to it |
//! | `read LENGTH` | reads from it |
//! | `ioctl CODE [BYTES] [LENGTH]` | sends a device control with input and room for output |
//! | `expect STATUS [BYTES]` | fails unless the last request ended so |
//! | `close` | closes the device |
//! | `advance MILLISECONDS` | lets time pass |
//! | `power-cycle` | takes the device out of its working state and back |
//! | `capture-state` | asks what is enabled to describe its state |
//! | `remove` | removes the device |
//!
//! Several clients can do it together ([`Clients`]): each does what is between `open` and
//! `close` with a file of its own, taking turns by a seed; the first one alone does the steps
//! there that are not requests, and all that is outside.

mod error;
mod run;
mod steps;

pub use self::{
    error::{Problem, ScriptError},
    run::{Clients, Done},
    steps::Script,
};
