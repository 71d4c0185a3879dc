//! An open file.

use super::{
    error::{KernelError, OPENING},
    request::{Owner, Request},
    runner::Runner,
};
use crate::{
    execution::identity::Identity,
    ground::NtStatus,
    services::{
        composition::system::System,
        kmdf::{
            file_opening::close_file,
            io::pass::submit,
            state::{
                device::Unreachable,
                file::FileData,
                framework::Context,
                request::{Completion, IoRequest, RequestKind},
            },
        },
        managers::create_parameters::CreateParameters,
        ntoskrnl::{
            io::{plug_and_play::removal, send, send::Operation},
            ke::apcs,
        },
    },
};

/// The reason that a device cannot be opened, if the driver did not fail the open, and the status.
pub(super) type Refused = (Option<Unreachable>, NtStatus);

/// A file that a process has opened on a device.
///
/// A file that is dropped without [`File::close`] is closed when its device is removed, as if its
/// process had ended.
pub struct File {
    runner: Runner,
    identity: Identity,
    handle: u64,
    owner: Owner,
    /// Set if requests to a KMDF driver acquire the file's lock.
    is_synchronous: bool,
}

impl File {
    /// Opens a file with `open`, which returns its handle. Errors name the file as `what`.
    pub(super) fn open(
        runner: &Runner,
        what: &str,
        identity: Identity,
        open: impl FnOnce(&Context, CreateParameters) -> Result<u64, Refused> + Send + 'static,
    ) -> Result<Self, KernelError> {
        let create = send::process_parameters(&runner.system().ntoskrnl);
        let opened = runner.kmdf(identity, move |context| open(context, create))?;
        let handle = opened.map_err(|(why, status)| {
            let refused = KernelError::Status { routine: OPENING, status };
            why.map_or(refused, |why| KernelError::CannotOpen {
                what: what.to_owned(),
                why: why.to_string(),
                status,
            })
        })?;
        let is_synchronous = create.is_synchronous();
        Ok(Self {
            runner: runner.clone(),
            identity,
            handle,
            owner: Owner::Framework,
            is_synchronous,
        })
    }

    /// Returns a file on a WDM driver's device.
    pub(super) fn of_device_object(runner: &Runner, identity: Identity, handle: u64) -> Self {
        let owner = Owner::Driver;
        Self { runner: runner.clone(), identity, handle, owner, is_synchronous: false }
    }

    /// Starts a read of `length` bytes (`ReadFile`).
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn start_read(&self, length: usize) -> Result<Request, KernelError> {
        self.submit(IoRequest::new(RequestKind::Read, Vec::new(), length))
    }

    /// Starts a write (`WriteFile`).
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn start_write(&self, bytes: &[u8]) -> Result<Request, KernelError> {
        self.submit(IoRequest::new(RequestKind::Write, bytes.to_vec(), 0))
    }

    /// Starts a device control (`DeviceIoControl`). The control code determines how the driver
    /// receives the buffers.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn start_device_control(
        &self,
        code: u32,
        input: &[u8],
        output_length: usize,
    ) -> Result<Request, KernelError> {
        self.submit(IoRequest::new(
            RequestKind::DeviceControl { code },
            input.to_vec(),
            output_length,
        ))
    }

    /// Starts a device control whose second buffer contains data. With `METHOD_IN_DIRECT`, the
    /// driver reads the data; with the other methods, it overwrites it.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn start_device_control_with(
        &self,
        code: u32,
        input: &[u8],
        second: &[u8],
    ) -> Result<Request, KernelError> {
        let kind = RequestKind::DeviceControl { code };
        let mut request = IoRequest::new(kind, input.to_vec(), second.len());
        request.output_contents = second.to_vec();
        self.submit(request)
    }

    /// Reads `length` bytes and waits for completion.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks, or if the driver does not complete the request.
    pub fn read(&self, length: usize) -> Result<Completion, KernelError> {
        self.start_read(length)?.finish()
    }

    /// Writes bytes and waits for completion.
    ///
    /// # Errors
    ///
    /// Returns an error in the cases that [`Self::read`] lists.
    pub fn write(&self, bytes: &[u8]) -> Result<Completion, KernelError> {
        self.start_write(bytes)?.finish()
    }

    /// Sends a device control and waits for completion.
    ///
    /// # Errors
    ///
    /// Returns an error in the cases that [`Self::read`] lists.
    pub fn device_control(
        &self,
        code: u32,
        input: &[u8],
        output_length: usize,
    ) -> Result<Completion, KernelError> {
        self.start_device_control(code, input, output_length)?.finish()
    }

    /// Sends a device control whose second buffer contains data, as
    /// [`Self::start_device_control_with`] does, and waits for completion.
    ///
    /// # Errors
    ///
    /// Returns an error in the cases that [`Self::read`] lists.
    pub fn device_control_with(
        &self,
        code: u32,
        input: &[u8],
        second: &[u8],
    ) -> Result<Completion, KernelError> {
        self.start_device_control_with(code, input, second)?.finish()
    }

    /// Closes the file (`CloseHandle`).
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn close(self) -> Result<(), KernelError> {
        let file = self.handle;
        match self.owner {
            Owner::Framework => {
                self.runner.kmdf(self.identity, move |context| close_file(context, file))?;
            }
            Owner::Driver => self.runner.ntoskrnl(self.identity, move |context| {
                send::close(context, file);
                removal::finish_removals(context);
            })?,
        }
        Ok(())
    }

    fn submit(&self, request: IoRequest) -> Result<Request, KernelError> {
        let file = self.handle;
        if self.owner == Owner::Driver {
            let operation = match request.kind {
                RequestKind::Read => Operation::Read(request.output_length),
                RequestKind::DeviceControl { code } => {
                    let mut output = request.output_contents;
                    output.resize(request.output_length, 0);
                    Operation::Control(code, request.input, output)
                }
                _ => Operation::Write(request.input),
            };
            let number = self
                .runner
                .ntoskrnl(self.identity, move |context| send::submit(context, file, &operation))?;
            return Ok(Request::new(&self.runner, self.identity, number, self.owner));
        }
        let is_synchronous = self.is_synchronous;
        let send = move |context: &Context| {
            let nt = System::ntoskrnl_context((**context).clone());
            apcs::in_region(&nt, is_synchronous, || submit(context, file, &request))
        };
        let handle = self
            .runner
            .kmdf(self.identity, send)?
            .map_err(|status| KernelError::Status { routine: "sending the request", status })?;
        Ok(Request::new(&self.runner, self.identity, handle, self.owner))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.owner == Owner::Driver {
            send::abandon(&self.runner.system().ntoskrnl, self.handle);
            return;
        }
        let mut framework = self.runner.system().kmdf.framework();
        if let Ok(file) = framework.get::<FileData>(self.handle) {
            file.abandoned = true;
        }
    }
}
