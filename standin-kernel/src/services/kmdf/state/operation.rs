//! Requests to devices, and their results.

use crate::{ground::NtStatus, services::managers::create_parameters::CreateParameters};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// The opening of a file.
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
    /// A device control that only drivers send (`IRP_MJ_INTERNAL_DEVICE_CONTROL`).
    InternalDeviceControl {
        /// The control code.
        code: u32,
    },
    /// The last handle of a file was closed (`IRP_MJ_CLEANUP`).
    Cleanup,
    /// The file is closed, and its requests have ended (`IRP_MJ_CLOSE`).
    Close,
}

/// A request, as its sender creates it.
pub struct IoRequest {
    /// The requested operation.
    pub kind: RequestKind,
    /// The bytes to write, or the control code's input.
    pub input: Vec<u8>,
    /// The size of the sender's output buffer in bytes.
    pub output_length: usize,
    /// The position on the device of a read or write.
    pub offset: u64,
    /// The arguments of an internal device control that passes pointers instead of buffers:
    /// `Others.Argument1`, `2` and `4`.
    pub others: Option<[u64; 3]>,
    /// The previous contents of the output buffer, which `METHOD_IN_DIRECT` passes to the driver.
    pub output_contents: Vec<u8>,
    /// Set if a driver, rather than a process, sends the request (`KernelMode`).
    pub is_from_driver: bool,
    /// The sender's own addresses of the input and the output. With `METHOD_NEITHER`, the receiver
    /// receives these addresses if a driver sends the request.
    pub addresses: Option<[u64; 2]>,
    /// The parameters of a create request.
    pub create: CreateParameters,
}

impl IoRequest {
    /// Creates a request at position 0.
    pub const fn new(kind: RequestKind, input: Vec<u8>, output_length: usize) -> Self {
        Self {
            kind,
            input,
            output_length,
            offset: 0,
            others: None,
            output_contents: Vec::new(),
            is_from_driver: false,
            addresses: None,
            create: CreateParameters::OF_PROCESS,
        }
    }
}

/// The completion of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The status with which the driver completed the request.
    pub status: NtStatus,
    /// The number of bytes that the driver reported.
    pub information: u64,
    /// The output: [`Self::information`] bytes, or an empty vector if the status is an error.
    pub output: Vec<u8>,
}

impl Completion {
    /// Returns the completion of a failed request, without output.
    #[must_use]
    pub const fn failure(status: NtStatus) -> Self {
        Self { status, information: 0, output: Vec::new() }
    }

    /// Returns the completion of a successful request with this output.
    #[must_use]
    pub const fn success(output: Vec<u8>) -> Self {
        Self { status: NtStatus::SUCCESS, information: output.len() as u64, output }
    }
}
