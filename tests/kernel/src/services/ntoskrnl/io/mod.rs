//! The I/O manager: device objects, requests (`IRP`), and what a process does with a device.

pub mod cancel;
pub mod device_queues;
pub mod devices;
pub mod irp;
pub mod lifetime;
pub mod send;
pub mod shutdown;
