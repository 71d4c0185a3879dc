//! The state of kernel managers that several services use: pool, registry, devices, thread objects,
//! tokens and WMI events. The routines are in `ntoskrnl` and `kmdf`.

pub mod bus_driver;
pub mod create_parameters;
pub mod device_properties;
pub mod module_states;
pub mod nodes;
pub mod plug_and_play;
pub mod pool;
pub mod registry;
pub mod thread_objects;
pub mod tokens;
pub mod wmi_events;
