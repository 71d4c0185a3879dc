//! The Kernel-Mode Driver Framework: the function table, framework objects, devices, queues,
//! requests, timers, DPCs, work items, locks, memory, strings and registry keys.

pub mod buffer;
pub mod bus;
pub mod collection;
pub mod creation;
pub mod device;
pub mod dma;
pub mod driver;
pub mod driver_version;
pub mod file;
pub mod file_object;
pub mod interrupt;
pub mod io;
pub mod io_target;
pub mod lock;
pub mod miniport;
pub mod object;
pub mod object_routines;
pub mod presentation;
pub mod registry;
pub mod resource;
pub mod state;
pub mod table;
pub mod text_routines;
pub mod timer;
pub mod usb;
pub mod verifier_routines;
pub mod wait;
pub mod wdm_dispatch;
pub mod wdm_request;
pub mod wmi;
pub mod work;
pub mod work_item;
