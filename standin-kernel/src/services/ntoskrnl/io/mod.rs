//! The I/O manager: device objects, requests (`IRP`), and the operations of processes on devices.

pub mod build;
pub mod cancel;
pub mod device_files;
pub mod devices;
pub mod error_log;
pub mod events;
pub mod file_information;
pub mod files;
pub mod irp;
pub mod lifetime;
pub mod notifications;
pub mod plug_and_play;
pub mod pointers;
pub mod power_states;
pub mod remove_locks;
pub mod safe_queues;
pub mod send;
pub mod share_access;
pub mod shutdown;
pub mod stacks;
pub mod wmi;
pub mod work_items;
