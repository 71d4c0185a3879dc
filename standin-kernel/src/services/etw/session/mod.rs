//! Sessions.

pub mod config;
pub mod counts;
pub mod inner;
pub mod realtime;
pub mod running;
pub mod sink;
