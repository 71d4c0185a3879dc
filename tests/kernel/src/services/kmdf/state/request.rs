//! Requests: what a device's users send, and what they get back.

use std::collections::HashMap;

use super::framework::Data;
use crate::ground::{arena::Block, status::NtStatus};

/// The low bits of a control code: how its buffers reach the driver.
pub const METHOD_MASK: u32 = 3;

/// One system buffer for input and output.
pub const METHOD_BUFFERED: u32 = 0;

/// The sender's own addresses, which the framework hands out to `EvtIoInCallerContext` alone.
pub const METHOD_NEITHER: u32 = 3;

/// The operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A file is being opened.
    Create,
    /// `ReadFile`.
    Read,
    /// `WriteFile`.
    Write,
    /// `DeviceIoControl`.
    DeviceControl {
        /// The control code.
        code: u32,
    },
}

/// A request as its sender makes it.
pub struct IoRequest {
    /// The operation that it asks for.
    pub kind: RequestKind,
    /// The bytes to write, or the control code's input.
    pub input: Vec<u8>,
    /// The number of bytes that the sender has room for.
    pub output_length: usize,
}

/// The completion of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The status that the driver completed it with.
    pub status: NtStatus,
    /// The driver's count of bytes.
    pub information: u64,
    /// The bytes that reach the sender: as many as the count says, if the status
    /// is no error.
    pub output: Vec<u8>,
}

/// A request.
pub struct RequestData {
    pub kind: RequestKind,
    pub queue: Option<u64>,
    pub file: Option<u64>,
    pub buffer: Block,
    /// The buffer that `METHOD_IN_DIRECT` and `METHOD_OUT_DIRECT` map beside the system buffer.
    pub mapped: Option<Block>,
    pub input_length: usize,
    pub output_length: usize,
    pub information: u64,
    /// `EvtRequestCancel`, while the request is cancelable; else 0.
    pub cancel_routine: u64,
    /// Whether its sender, or a purge, cancelled it.
    pub cancelled: bool,
    /// Whether the driver was told so.
    pub told_of_cancellation: bool,
    /// Whether the driver has ever had it.
    pub presented: bool,
    /// The state of the notification that its queue stops.
    pub stop: Stop,
}

impl Data for RequestData {
    const NAME: &'static str = "WDFREQUEST";

    fn is_frameworks(&self) -> bool {
        true
    }
}

/// A request's part in its queue's stop for power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The queue does not stop.
    None,
    /// The driver was told, or would have been if it had a callback.
    Told,
    /// The driver holds it while the device is out of its working state.
    Acknowledged,
}

/// A request that is over.
pub struct Ended {
    pub description: String,
    pub completion: Option<Completion>,
}

/// Requests that are over, and whose senders have not asked yet.
#[derive(Default)]
pub struct EndedRequests(pub HashMap<u64, Ended>);

impl RequestData {
    /// The operation that it asks for.
    pub const fn kind(&self) -> RequestKind {
        self.kind
    }

    /// Returns the input's length in bytes.
    pub const fn input_length(&self) -> u64 {
        self.input_length as u64
    }

    /// Returns the output's length in bytes.
    pub const fn output_length(&self) -> u64 {
        self.output_length as u64
    }

    /// Returns the queue it went to.
    pub const fn queue(&self) -> Option<u64> {
        self.queue
    }

    /// Puts it in a queue's keeping.
    pub const fn set_queue(&mut self, queue: u64) {
        self.queue = Some(queue);
    }

    /// Returns the file that it was sent by.
    pub const fn file(&self) -> Option<u64> {
        self.file
    }

    /// Where its input is, and how long it is.
    pub const fn input(&self) -> (u64, u64) {
        (self.buffer.address(), self.input_length())
    }

    /// Where its output goes, and how long that may be.
    pub fn output(&self) -> (u64, u64) {
        let block = self.mapped.as_ref().unwrap_or(&self.buffer);
        (block.address(), self.output_length())
    }

    /// Returns whether the driver gets its buffers from the framework, as it does not with
    /// `METHOD_NEITHER`.
    pub const fn has_buffers(&self) -> bool {
        !matches!(self.kind, RequestKind::DeviceControl { code } if code & METHOD_MASK == METHOD_NEITHER)
    }

    /// Returns whether the driver has made it cancelable and not been called for it.
    pub const fn is_cancelable(&self) -> bool {
        self.cancel_routine != 0 && !self.told_of_cancellation
    }

    /// Returns whether it was cancelled.
    pub const fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Cancels it.
    pub const fn set_cancelled(&mut self) {
        self.cancelled = true;
    }

    /// Returns whether the driver knows that it was cancelled.
    pub const fn was_told_of_cancellation(&self) -> bool {
        self.told_of_cancellation
    }

    /// The driver is being told that it was cancelled.
    pub const fn set_told_of_cancellation(&mut self) {
        self.told_of_cancellation = true;
    }

    /// Returns whether the driver has ever had it.
    pub const fn was_presented(&self) -> bool {
        self.presented
    }

    /// The driver has it now.
    pub const fn set_presented(&mut self) {
        self.presented = true;
    }

    /// Returns whether it is a read or write of nothing.
    pub const fn is_empty(&self) -> bool {
        match self.kind {
            RequestKind::Read => self.output_length == 0,
            RequestKind::Write => self.input_length == 0,
            RequestKind::Create | RequestKind::DeviceControl { .. } => false,
        }
    }
}

/// Returns a request in words.
pub fn describe(request: &RequestData) -> String {
    match request.kind {
        RequestKind::Create => "a create request".to_owned(),
        RequestKind::Read => format!("a read of {} bytes", request.output_length),
        RequestKind::Write => format!("a write of {} bytes", request.input_length),
        RequestKind::DeviceControl { code } => format!("device control 0x{code:08X}"),
    }
}
