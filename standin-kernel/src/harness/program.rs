//! Programs with user-mode ETW providers, which a test simulates.

use etl_file::{EventDescriptor, Guid};

use super::{error::KernelError, kernel::Kernel, runner::Runner};
use crate::{
    execution::identity::Identity,
    ground::{NtResult, NtStatus, abi},
    services::etw::{event::Content, registration, state::Form, write::write_content},
};

/// A program's registered provider, with which a test writes events as if the program ran beside
/// the driver. Sessions enable it, and record its events in the same trace as the driver's.
///
/// The kernel runs only drivers, so the test decides which events the program writes. A provider
/// that is dropped without [`Self::stop`] stays registered.
pub struct Program {
    runner: Runner,
    identity: Identity,
    handle: u64,
}

/// An event that a program writes.
#[derive(Clone, Debug)]
pub struct ProgramEvent {
    /// The descriptor. A `TraceLogging` event has channel 11.
    pub descriptor: EventDescriptor,
    /// The activity id, or `None` to use the activity id of the program's thread.
    pub activity: Option<Guid>,
    /// The metadata of a `TraceLogging` event.
    pub metadata: Option<Vec<u8>>,
    /// The fields' data.
    pub data: Vec<u8>,
}

impl Kernel {
    /// Registers a provider of a program that runs as `identity` (`EventRegister`). The provider's
    /// GUID is the standard hash of `name`.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is not a valid provider name, or if the kernel bugchecks.
    pub fn start_program(&self, identity: Identity, name: &str) -> Result<Program, KernelError> {
        let refused = || KernelError::Status {
            routine: "EventRegister",
            status: NtStatus::INVALID_PARAMETER,
        };
        let id = Guid::of_name(name).map_err(|_| refused())?;
        // The traits contain their size and the name.
        let size = u16::try_from(name.len() + 3).map_err(|_| refused())?;
        let traits = [&size.to_le_bytes(), name.as_bytes(), b"\0"].concat();
        let (handle, result) = self.runner().etw(identity, move |context| {
            let handle = registration::register(context, id, 0, 0, Form::Modern);
            (handle, registration::set_traits(context, handle, traits))
        })?;
        refuse("EventSetInformation", result)?;
        Ok(Program { runner: self.runner().clone(), identity, handle })
    }
}

impl Program {
    /// Writes an event (`EventWriteEx`) to the sessions that enable the event.
    ///
    /// # Errors
    ///
    /// Returns an error if a session has no room for the event, or if the kernel bugchecks.
    pub fn write(&self, event: ProgramEvent) -> Result<(), KernelError> {
        let handle = self.handle;
        let EventDescriptor { id, version, channel, level, opcode, task, keyword } =
            event.descriptor;
        let descriptor =
            abi::EventDescriptor { id, version, channel, level, opcode, task, keyword };
        let content =
            Content { payload: event.data, event_metadata: event.metadata, ..Content::default() };
        let result = self.runner.etw(self.identity, move |context| {
            write_content(context, handle, descriptor, event.activity, content, false)
        })?;
        refuse("EventWriteEx", result)
    }

    /// Unregisters the provider (`EventUnregister`).
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn stop(self) -> Result<(), KernelError> {
        let handle = self.handle;
        let result = self
            .runner
            .etw(self.identity, move |context| registration::unregister(context, handle))?;
        refuse("EventUnregister", result)
    }
}

fn refuse(routine: &'static str, result: NtResult) -> Result<(), KernelError> {
    result.map_err(|status| KernelError::Status { routine, status })
}
