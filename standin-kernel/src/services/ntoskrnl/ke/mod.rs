//! The kernel: dispatcher objects, spin locks, DPCs, APCs, processors, threads and times.

pub mod apcs;
pub mod bugchecks;
pub mod device_queues;
pub mod dispatcher;
pub mod dpc;
pub mod events;
pub mod guarded_mutexes;
pub mod header;
pub mod irql;
pub mod mutexes;
pub mod processors;
pub mod queues;
pub mod spin_locks;
pub mod stack_limits;
pub mod thread_objects;
pub mod threads;
pub mod timers;
pub mod times;
