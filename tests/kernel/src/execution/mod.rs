//! Driver code as it runs: threads, their stacks and schedules, the gateways by which it
//! calls the kernel, and its faults.
//!
//! What is called is not known here: gateways are generated from a table of routines, and a
//! thread knows the services above it as a [`thread::Host`].

pub mod call;
pub mod context;
pub mod environment;
pub mod gateway;
pub mod identity;
pub mod routine;
pub mod schedule;
pub mod stack;
pub mod thread;
pub mod traps;
