//! The static and dynamic children of a bus device, as its driver reported them.

use crate::services::kmdf::state::{device::DeviceData, framework::Context};

/// The state of a child between its report and its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// The driver reported the child, and the Plug and Play manager has not enumerated it yet.
    Pending,
    /// The child is present.
    Present,
    /// The driver reported the child missing.
    Missing,
}

/// A bus driver's record of a child.
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts")]
#[derive(Default)]
pub struct Child {
    /// Set if the child was reported missing.
    pub is_missing: bool,
    /// Set once the Plug and Play manager knows the child.
    pub is_reported: bool,
    /// Set if the driver allows the child's requests to be forwarded to the parent's queues.
    pub forwards_to_parent: bool,
    /// `EvtDeviceEject`, or 0.
    pub eject: u64,
    /// The list that enumerated the child, and the child's number in the list.
    pub listed: Option<(u64, u64)>,
    /// Set if the bus driver itself drives the device, so that no other driver is needed.
    pub is_raw: bool,
    /// Set once the driver has assigned the device id, which every child requires.
    pub has_device_id: bool,
}

/// The static children of a bus device.
#[derive(Default)]
pub struct StaticChildren {
    pub devices: Vec<u64>,
    /// The number of iterations in progress.
    pub locks: u32,
}

/// Runs `body` on the record of a child.
pub fn with_child<R>(context: &Context, device: u64, body: impl FnOnce(&mut Child) -> R) -> R {
    context.with::<DeviceData, _>(device, |device| body(device.part::<Child>()))
}

/// Returns the state of a child.
pub const fn state_of(child: &Child) -> ChildState {
    match (child.is_missing, child.is_reported) {
        (true, _) => ChildState::Missing,
        (false, true) => ChildState::Present,
        (false, false) => ChildState::Pending,
    }
}

impl ChildState {
    /// Returns whether these flags (`WDF_RETRIEVE_CHILD_FLAGS`) select the state.
    pub const fn is_in(self, flags: u32) -> bool {
        const PRESENT: u32 = 1;
        const MISSING: u32 = 2;
        const PENDING: u32 = 4;
        flags
            & match self {
                Self::Present => PRESENT,
                Self::Missing => MISSING,
                Self::Pending => PENDING,
            }
            != 0
    }
}

/// Returns the children of a bus device that the Plug and Play manager knows, oldest first.
pub fn children_of(context: &Context, device: u64) -> Vec<u64> {
    let mut framework = context.framework();
    let mut children = framework.all::<DeviceData>();
    children.retain(|child| {
        framework.get::<DeviceData>(*child).is_ok_and(|child| {
            child.init.child_of == Some(device)
                && state_of(child.part::<Child>()) == ChildState::Present
        })
    });
    children
}
