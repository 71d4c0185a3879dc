//! I/O targets: the devices to which a driver sends requests.

use std::collections::VecDeque;

use super::device::Below;
use crate::{ground::arena::Block, services::managers::create_parameters::CreateParameters};

/// `WDF_IO_TARGET_STATE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Requests are sent if the target is open. A new target is in this state.
    Started = 1,
    /// Requests wait.
    Stopped = 2,
    /// The target is closed unless the removal of its device fails.
    ClosedForQueryRemove = 3,
    /// The target is closed.
    Closed = 4,
    /// The target is being deleted.
    Deleted = 5,
    /// Requests are refused.
    Purged = 6,
}

/// A device that was opened by name as a target.
pub struct OpenedByName {
    pub path: String,
    /// The parameters of the open.
    pub create: CreateParameters,
}

/// The callbacks for the removal of a target's device.
#[derive(Clone, Copy, Default)]
pub struct RemovalCallbacks {
    pub query_remove: u64,
    pub remove_canceled: u64,
    pub remove_complete: u64,
}

/// An I/O target.
pub struct TargetData {
    /// The device whose driver owns the target.
    pub device: u64,
    /// Set for the target that the framework creates for the next lower device.
    pub is_local: bool,
    pub state: State,
    /// The device that receives the requests, while the target is open.
    pub to: Option<Below>,
    /// The file that the target has open, if it opened a driver's device by name.
    pub file: Option<u64>,
    /// The name with which the target was last opened.
    pub name: Option<OpenedByName>,
    pub callbacks: RemovalCallbacks,
    /// The requests that were sent and have not ended.
    pub sent: Vec<u64>,
    /// The requests that wait until the target is started.
    pub queued: VecDeque<u64>,
    /// The `FILE_OBJECT` of the open file.
    pub file_object: Option<Block>,
}

impl TargetData {
    /// Creates a target that belongs to a device.
    pub const fn new(device: u64) -> Self {
        Self {
            device,
            is_local: false,
            state: State::Started,
            to: None,
            file: None,
            name: None,
            callbacks: RemovalCallbacks { query_remove: 0, remove_canceled: 0, remove_complete: 0 },
            sent: Vec::new(),
            queued: VecDeque::new(),
            file_object: None,
        }
    }

    /// Creates a device's target for its next lower device.
    pub fn local(device: u64, below: Below) -> Self {
        Self { is_local: true, state: State::Started, to: Some(below), ..Self::new(device) }
    }
}
