//! Requests to devices, and their completions.

use std::collections::HashMap;

pub use super::operation::{Completion, IoRequest, RequestKind};
use super::outgoing::Outgoing;
use crate::{
    ground::{NtResult, NtStatus, arena::Block},
    services::managers::{create_parameters::CreateParameters, module_states::ModuleStates},
};

/// The low bits of a control code, which select the buffer transfer method.
pub const METHOD_MASK: u32 = 3;

/// The method with one system buffer for input and output.
pub const METHOD_BUFFERED: u32 = 0;

/// The method with the input in the system buffer, and with the output buffer mapped so that the
/// driver can read it.
pub const METHOD_IN_DIRECT: u32 = 1;

/// The method with the sender's own addresses, which the framework passes only to
/// `EvtIoInCallerContext`.
pub const METHOD_NEITHER: u32 = 3;

/// A request.
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent facts")]
pub struct RequestData {
    pub kind: RequestKind,
    /// The position on the device of a read or write.
    pub offset: u64,
    /// See [`IoRequest::others`].
    pub others: Option<[u64; 3]>,
    /// The parameters of a create request.
    pub create: CreateParameters,
    /// Set if a process, rather than a driver, sent the request (`UserMode`).
    pub is_from_user: bool,
    /// The thread object of the sender, or 0 if a driver created the request.
    pub thread: u64,
    /// The sending driver's addresses of the input and the output, if the receiver receives them.
    pub addresses: Option<[u64; 2]>,
    /// Set if the driver receives the sender's own addresses instead of buffers.
    pub is_neither: bool,
    /// Set if a driver created the request in order to send it.
    pub is_created: bool,
    /// Set while `EvtIoInCallerContext` may use the request.
    pub is_in_caller_context: bool,
    /// The upper driver's request, which ends together with this one.
    pub upper: Option<u64>,
    /// The state of the request when the driver sends it to a target.
    pub outgoing: Outgoing,
    /// Other modules' state for the request.
    pub parts: ModuleStates,
    /// The process that sent the request.
    pub process: u32,
    pub queue: Option<u64>,
    pub file: Option<u64>,
    pub buffer: Block,
    /// The buffer that `METHOD_IN_DIRECT` and `METHOD_OUT_DIRECT` map in addition to the system
    /// buffer.
    pub mapped: Option<Block>,
    pub input_length: usize,
    pub output_length: usize,
    pub information: u64,
    /// `EvtRequestCancel` while the request is cancelable, otherwise 0.
    pub cancel_routine: u64,
    /// Set if the sender or a purge canceled the request.
    pub cancelled: bool,
    /// Set if the driver must be notified of the cancellation.
    pub cancellation_due: bool,
    /// Set if the driver was notified of the cancellation.
    pub cancellation_delivered: bool,
    /// Set if the request was ever presented to the driver.
    pub presented: bool,
    /// The state of the notification that the request's queue is stopping.
    pub stop: Stop,
}

/// The state of a request while its power-managed queue is stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The queue is not stopping.
    None,
    /// The driver was notified, or has no callback for the notification.
    Notified,
    /// The driver leaves the request pending while the device is not in D0.
    Acknowledged,
}

/// A completed request.
pub struct Ended {
    pub description: String,
    pub completion: Option<Completion>,
}

/// The completed requests whose completion the senders have not retrieved yet.
#[derive(Default)]
pub struct EndedRequests(pub HashMap<u64, Ended>);

impl RequestData {
    /// Returns the requested operation.
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

    /// Returns the queue that holds the request.
    pub const fn queue(&self) -> Option<u64> {
        self.queue
    }

    /// Returns whether the request came from a queue: a driver's queue, or the framework's own
    /// queue for creates.
    pub const fn has_queue(&self) -> bool {
        self.queue.is_some() || (matches!(self.kind, RequestKind::Create) && !self.is_created)
    }

    /// Sets the queue that holds the request.
    pub const fn set_queue(&mut self, queue: u64) {
        self.queue = Some(queue);
    }

    /// Returns the file on which the request was sent.
    pub const fn file(&self) -> Option<u64> {
        self.file
    }

    /// Returns the address and length of the input.
    pub const fn input(&self) -> (u64, u64) {
        let address = match self.addresses {
            Some([input, _]) => input,
            None => self.buffer.address(),
        };
        (address, self.input_length())
    }

    /// Returns the address and length of the output buffer.
    pub fn output(&self) -> (u64, u64) {
        let block = self.mapped.as_ref().unwrap_or(&self.buffer);
        let address = self.addresses.map_or_else(|| block.address(), |[_, output]| output);
        (address, self.output_length())
    }

    /// Returns the address and length of the input that the framework provides, or the status that
    /// explains why it provides no input.
    pub fn provided_input(&mut self) -> NtResult<(u64, u64)> {
        self.provided(self.kind != RequestKind::Read, self.input())
    }

    /// Returns the address and length of the output buffer that the framework provides, or the
    /// status that explains why it provides no buffer.
    pub fn provided_output(&mut self) -> NtResult<(u64, u64)> {
        self.provided(self.kind != RequestKind::Write, self.output())
    }

    const fn provided(&self, has_it: bool, range: (u64, u64)) -> NtResult<(u64, u64)> {
        if !has_it || !self.has_data() {
            Err(NtStatus::INVALID_DEVICE_REQUEST)
        } else if range.1 == 0 {
            Err(NtStatus::BUFFER_TOO_SMALL)
        } else if self.has_buffers() {
            Ok(range)
        } else {
            Err(NtStatus::INVALID_DEVICE_REQUEST)
        }
    }

    /// Returns whether requests of this kind have data.
    pub const fn has_data(&self) -> bool {
        !matches!(self.kind, RequestKind::Create | RequestKind::Cleanup | RequestKind::Close)
    }

    /// Returns whether the driver receives the buffers from the framework. With `METHOD_NEITHER`,
    /// and if the device's I/O type is neither buffered nor direct, the framework provides only the
    /// buffers of drivers: a process could free its own buffers.
    pub const fn has_buffers(&self) -> bool {
        let is_internal = matches!(self.kind, RequestKind::InternalDeviceControl { .. });
        !self.is_neither || is_internal || !self.is_from_user
    }

    /// Returns whether the request is cancelable and its cancel routine has not been called.
    pub const fn is_cancelable(&self) -> bool {
        self.cancel_routine != 0 && !self.cancellation_delivered
    }

    /// Returns whether the request was canceled.
    pub const fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Marks the request as canceled.
    pub const fn set_cancelled(&mut self) {
        self.cancelled = true;
    }

    /// Records that the driver was notified of the cancellation.
    pub const fn set_cancellation_delivered(&mut self) {
        self.cancellation_due = true;
        self.cancellation_delivered = true;
    }

    /// Removes a cancellation of which the driver was notified, so that the driver can make the
    /// request cancelable again.
    pub const fn forget_cancellation(&mut self) {
        if self.cancellation_delivered {
            self.cancel_routine = 0;
            self.cancellation_due = false;
            self.cancellation_delivered = false;
        }
    }

    /// Returns whether the request was ever presented to the driver.
    pub const fn was_presented(&self) -> bool {
        self.presented
    }

    /// Records that the request was presented to the driver.
    pub const fn set_presented(&mut self) {
        self.presented = true;
    }

    /// Returns whether the request is a read or write of 0 bytes.
    pub const fn is_empty(&self) -> bool {
        match self.kind {
            RequestKind::Read => self.output_length == 0,
            RequestKind::Write => self.input_length == 0,
            _ => false,
        }
    }
}

/// Describes a request for use in a message.
pub fn describe(request: &RequestData) -> String {
    if request.is_created {
        return "a request that the driver created".to_owned();
    }
    match request.kind {
        RequestKind::Create => "a create request".to_owned(),
        RequestKind::Read => format!("a read of {} bytes", request.output_length),
        RequestKind::Write => format!("a write of {} bytes", request.input_length),
        RequestKind::DeviceControl { code } => format!("device control 0x{code:08X}"),
        RequestKind::InternalDeviceControl { code } => {
            format!("internal device control 0x{code:08X}")
        }
        RequestKind::Cleanup => "a cleanup request".to_owned(),
        RequestKind::Close => "a close request".to_owned(),
    }
}
