//! The I/O manager: device objects, requests (`IRP`), and what a process does with a device.

pub mod build;
pub mod cancel;
pub mod device_queues;
pub mod devices;
pub mod error_log;
pub mod irp;
pub mod lifetime;
pub mod pointers;
pub mod remove_locks;
pub mod safe_queues;
pub mod send;
pub mod shutdown;
pub mod stacks;
