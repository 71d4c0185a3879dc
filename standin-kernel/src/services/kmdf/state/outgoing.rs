//! The part of a request that a driver sends to an I/O target.

use super::operation::{Completion, RequestKind};
use crate::ground::{NtStatus, framework_abi::CompletionParameters};

/// A range of memory that a request is formatted with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffer {
    /// The first byte's address.
    pub address: u64,
    /// The number of bytes.
    pub length: u64,
    /// The memory object that the range is in, and the range's offset there. The framework holds a
    /// reference to the object.
    pub memory: Option<(u64, u64)>,
}

/// The operation that a request is formatted for.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The operation.
    pub kind: RequestKind,
    /// The bytes to write, or the control code's input.
    pub input: Buffer,
    /// The buffer for the result.
    pub output: Buffer,
    /// The position on the device.
    pub offset: u64,
    /// The arguments of an internal device control that passes pointers.
    pub others: Option<[Buffer; 3]>,
    /// Set if the format is the request's own, as the driver received it.
    pub is_current_type: bool,
}

/// The receiver of a sent request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lower {
    /// A request of the driver below.
    Request(u64),
    /// A request that a device of the test keeps: the device's number and the request's.
    Simulated(u64, u64),
    /// Nobody: the request ends in the call that sends it.
    Nobody,
}

/// The place of a request on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The driver has the request.
    #[default]
    Idle,
    /// The request waits in a stopped target.
    Queued,
    /// The request is below.
    Sent(Lower),
}

/// The part of a request that a driver sends to an I/O target.
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts")]
#[derive(Default)]
pub struct Outgoing {
    /// The format of the request, once the driver has formatted it.
    pub format: Option<Format>,
    /// The completion routine, or 0, and its context.
    pub routine: u64,
    pub routine_context: u64,
    /// The target that the request was sent to last.
    pub target: Option<u64>,
    pub phase: Phase,
    /// The result from below, before the framework has processed it.
    pub result: Option<Completion>,
    /// The result of `WdfRequestGetStatus`, once the request has a status.
    pub status: Option<NtStatus>,
    /// The parameters of the last completion.
    pub parameters: Option<CompletionParameters>,
    /// Set if the driver or a timer cancelled the request on its way.
    pub is_cancelled: bool,
    /// Set if the time that the driver allowed is over.
    pub is_timed_out: bool,
    /// Set if the driver waits for the request, so that its routine is not called by the completion.
    pub is_awaited: bool,
    /// Set if the request was sent and forgotten: it ends when the driver below ends it.
    pub is_forgotten: bool,
    /// Set if the send ignored the target's state, so that a stop does not wait for it.
    pub ignores_state: bool,
}

impl Outgoing {
    /// Returns whether the request is on its way.
    pub fn is_under_way(&self) -> bool {
        self.phase != Phase::Idle
    }
}
