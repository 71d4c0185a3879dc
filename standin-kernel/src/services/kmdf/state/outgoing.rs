//! The state of a request that a driver sends to an I/O target.

use super::operation::{Completion, RequestKind};
use crate::ground::{NtStatus, abi::CompletionParameters};

/// A memory range in a request's format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffer {
    /// The first byte's address.
    pub address: u64,
    /// The number of bytes.
    pub length: u64,
    /// The memory object that contains the range, and the range's offset in the object. The
    /// framework holds a reference to the object.
    pub memory: Option<(u64, u64)>,
}

/// The operation for which a request is formatted.
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
    /// Set if the format is the form in which the driver received the request.
    pub is_current_type: bool,
}

/// The receiver of a sent request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lower {
    /// A request to a lower driver.
    Request(u64),
    /// A pending request of a simulated device: the device's number, and the request's number.
    Simulated(u64, u64),
    /// No receiver. The request ends during the call that sends it.
    Nobody,
}

/// The phase of a sent request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The driver owns the request.
    #[default]
    Idle,
    /// The request waits in a stopped target.
    Queued,
    /// A lower device owns the request.
    Sent(Lower),
}

/// The state of a request that a driver sends to an I/O target.
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts")]
#[derive(Default)]
pub struct Outgoing {
    /// The format of the request, once the driver has formatted it.
    pub format: Option<Format>,
    /// Set once the request was completed after its last formatting.
    pub is_spent: bool,
    /// The completion routine, or 0, and its context.
    pub routine: u64,
    pub routine_context: u64,
    /// The target to which the request was last sent.
    pub target: Option<u64>,
    pub phase: Phase,
    /// The lower device's result, before the framework has processed it.
    pub result: Option<Completion>,
    /// The result of `WdfRequestGetStatus`, once the request has a status.
    pub status: Option<NtStatus>,
    /// The parameters of the last completion.
    pub parameters: Option<CompletionParameters>,
    /// Set if the driver or a timer canceled the request after it was sent.
    pub is_cancelled: bool,
    /// Set if the request has exceeded the driver's timeout.
    pub is_timed_out: bool,
    /// Set if the driver waits for the request, so that completion does not call its routine.
    pub is_awaited: bool,
    /// Set if the request was sent and forgotten, so that it ends when the lower driver completes
    /// it.
    pub is_forgotten: bool,
    /// Set if the send ignored the target's state, so that a stop does not wait for the request.
    pub ignores_state: bool,
}

impl Outgoing {
    /// Returns whether the request is currently sent.
    pub fn is_under_way(&self) -> bool {
        self.phase != Phase::Idle
    }
}
