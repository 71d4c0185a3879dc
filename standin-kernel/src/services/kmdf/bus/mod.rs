//! Bus drivers: the devices that a driver enumerates as children of its own.

pub mod children;
pub mod description;
pub mod list;
pub mod pdo;
pub mod pdo_init;
pub mod removal;
pub mod retrieve;
