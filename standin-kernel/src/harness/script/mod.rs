//! Scripts that exercise a driver without writing Rust.
//!
//! A script has one step per line; `#` starts a comment. Bytes are a string in double quotes, or
//! hexadecimal digits after `hex:`. Numbers are decimal, or hexadecimal after `0x`.
//!
//! [`Script::STEPS`] lists the steps. The steps `parameter`, `fault` and `filter` at the start of a
//! script are taken before the driver is loaded, so that they apply to its entry point.
//!
//! Several clients can run a script together ([`Clients`]). Each client runs the requests
//! between `open` and `close` on a file of its own; a seed decides how the clients interleave.
//! The first client alone runs the other steps between `open` and `close`, and all steps
//! outside.

mod error;
mod expectation;
mod filter;
mod run;
mod steps;
mod syntax;
mod words;

pub use self::{
    error::{Problem, ScriptError},
    run::{Clients, Done, Observer, Setting},
    steps::Script,
    syntax::{FILTER_SETTINGS, STEPS, StepSyntax},
    words::provider,
};
