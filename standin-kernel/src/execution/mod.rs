//! The execution of driver code: threads, their stacks and schedules, the gateways through which
//! drivers call the kernel, and faults.
//!
//! This layer does not depend on the routines: gateways are generated from a table of routines, and
//! threads call the services in the upper layers through [`thread::Host`].

mod accessors;
pub mod call;
pub mod context;
pub mod coroutine;
pub mod declarations;
pub mod environment;
pub mod exceptions;
mod fault;
mod frame;
pub mod gateway;
pub mod identity;
mod intercept;
pub mod kinds;
mod origin;
mod protection;
pub mod routine;
pub mod schedule;
pub mod stack;
pub mod strings;
pub mod thread;
pub mod traps;
pub mod watchdog;
pub mod yielder;
