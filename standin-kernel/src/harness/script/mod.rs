//! Scripts that exercise a driver without writing Rust.
//!
//! A script has one step per line; `#` starts a comment. Bytes are written as a string in double
//! quotes, or as hexadecimal digits after `hex:`. Numbers are decimal, or hexadecimal after `0x`.
//!
//! [`Script::STEPS`] lists the steps. The steps `parameter`, `fault` and `filter` at the start of a
//! script run before the driver is loaded, so that they apply to its entry point.
//!
//! Several clients can run a script together ([`Clients`]). Each client opens its own file and runs
//! the requests between `open` and `close` on it; a seed decides how the clients interleave. Only
//! the first client runs other steps, and the steps outside of `open` and `close`.

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
