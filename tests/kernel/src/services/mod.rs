//! The routines that a driver can call: pool, ntoskrnl.exe, KMDF and ETW, and the verifier and
//! faults that they share.
//!
//! Each service owns its state, is given at its making what else it uses, and acts in a
//! context of its own, which it gets with each call.

#[cfg(test)]
mod abi_table;
pub mod addresses;
pub mod borrowed;
pub mod etw;
pub mod exports;
pub mod faults;
pub mod kmdf;
pub mod ntoskrnl;
pub mod pool;
pub mod strings;
pub mod system;
pub mod verifier;
pub mod wdfldr;
