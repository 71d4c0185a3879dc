//! Bus drivers: the child devices that a driver enumerates.

pub mod children;
pub mod description;
pub mod list;
pub mod pdo;
pub mod pdo_init;
pub mod removal;
pub mod retrieve;
