//! The routines that a driver can call: pool, ntoskrnl.exe, KMDF and ETW, and the verifier and the
//! fault injection that they share.
//!
//! Each service owns its state, receives the other services that it uses when it is created, and
//! runs in its own context, which is passed with each call.

pub mod addresses;
pub mod borrowed;
pub mod create_parameters;
pub mod etw;
pub mod exports;
pub mod faults;
pub mod kmdf;
pub mod managers;
pub mod ntoskrnl;
pub mod parts;
pub mod strings;
pub mod system;
pub mod tokens;
pub mod verifier;
pub mod wdfldr;
