//! The Plug and Play manager: its answers to drivers, and the requests that it sends to the devices
//! of WDM drivers.

pub mod bus;
pub mod changes;
pub mod interfaces;
pub mod keys;
pub mod life;
pub mod minor;
pub mod properties;
pub mod queries;
pub mod removal;
pub mod reports;
pub mod sent;
