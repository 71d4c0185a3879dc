//! The state of kernel managers that several services use: pool, registry, devices, thread objects and
//! WMI events. The routines are in `ntoskrnl` and `kmdf`.

pub mod bus_driver;
pub mod device_properties;
pub mod nodes;
pub mod plug_and_play;
pub mod pool;
pub mod registry;
pub mod thread_objects;
pub mod wmi_events;
