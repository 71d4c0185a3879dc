//! The executive: pool, lookaside lists, locks, timers, callbacks and work items.

pub mod callbacks;
pub mod exceptions;
pub mod fast_mutexes;
pub mod interlocked;
pub mod lookaside;
pub mod named_events;
pub mod pool;
pub mod push_locks;
pub mod resources;
pub mod rundown_protection;
pub mod rundowns;
pub mod shared_locks;
pub mod timers;
pub mod times;
pub mod uuids;
pub mod work_items;
