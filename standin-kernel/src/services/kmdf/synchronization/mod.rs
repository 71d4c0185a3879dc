//! Spin locks, wait locks, the locks behind a synchronization scope, and waits.

pub mod lock;
pub mod presentation;
pub mod wait;
