//! The plug-and-play manager and the power manager: what drivers ask them, and what they send to the
//! devices of drivers without the framework.

pub mod bus;
pub mod changes;
pub mod interfaces;
pub mod keys;
pub mod life;
pub mod minor;
pub mod power;
pub mod properties;
pub mod queries;
pub mod removal;
pub mod reports;
pub mod sent;
