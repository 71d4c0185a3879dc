//! Requests and queues: the path of a request from its sender through queues to the driver, and
//! back.

pub mod completion;
pub mod directed;
pub mod dispatch;
pub mod ending;
pub mod halt;
pub mod irp;
pub mod pass;
pub mod power;
pub mod queue_routines;
pub mod request_routines;
pub mod retrieve;
pub mod send;
pub mod wdm_dispatch;
