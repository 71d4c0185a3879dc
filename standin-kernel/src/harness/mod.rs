//! The objects that a test uses (the kernel, drivers, devices, files, requests, sessions,
//! consumers), scripts, and the conformance check.

pub mod answers;
pub mod concurrent_work;
pub mod config;
pub mod conformance;
pub mod device;
pub mod device_config;
pub mod driver;
pub mod driver_memory;
pub mod error;
pub mod file;
pub mod image;
pub mod kernel;
pub mod leak_guard;
pub mod number;
mod power;
pub mod process;
pub mod program;
pub mod recording;
pub mod registry_file;
pub mod request;
pub mod runner;
pub mod script;
pub mod session;
pub mod simulated_device;
