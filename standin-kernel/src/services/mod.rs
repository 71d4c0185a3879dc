//! The routines that a driver can call: pool, ntoskrnl.exe, KMDF and ETW, and the verifier and
//! faults that they share.
//!
//! Each service owns its state, receives the other services that it uses when it is created,
//! and acts in a context of its own, which is passed with each call.

#[cfg(test)]
mod abi_source;
#[cfg(test)]
mod abi_table;
#[cfg(test)]
mod abi_types;
#[cfg(test)]
mod abi_uses;
pub mod addresses;
pub mod borrowed;
pub mod bus_driver;
#[cfg(test)]
mod coverage;
pub mod create_parameters;
pub mod device_properties;
pub mod etw;
pub mod exports;
pub mod faults;
pub mod kmdf;
pub mod nodes;
pub mod ntoskrnl;
pub mod parameters;
pub mod parts;
pub mod plug_and_play;
pub mod pool;
pub mod registry;
pub mod strings;
pub mod system;
pub mod thread_objects;
pub mod verifier;
pub mod wdfldr;
pub mod wmi_events;
