//! The routines that a driver can call: ntoskrnl.exe, KMDF and ETW; the managers' state and the
//! verifier, which they share; and the composition of all for one kernel.
//!
//! Each service owns its state, receives the other services that it uses when it is created, and
//! runs in its own context, which is passed with each call.

pub mod composition;
pub mod etw;
pub mod kmdf;
pub mod managers;
pub mod ntoskrnl;
pub mod verifier;
