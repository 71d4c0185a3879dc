//! A request sent to a device.

use super::{error::KernelError, runner::Runner};
use crate::{
    execution::{identity::Identity, thread},
    services::{
        kmdf::{
            io::send::{cancel, outcome},
            state::request::Completion,
        },
        ntoskrnl::io::send,
    },
};

/// The component that serves a device's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The framework, for its driver.
    Framework,
    /// A WDM driver.
    Driver,
}

/// A request sent to a device.
pub struct Request {
    runner: Runner,
    identity: Identity,
    handle: u64,
    owner: Owner,
}

impl Request {
    pub(super) fn new(runner: &Runner, identity: Identity, handle: u64, owner: Owner) -> Self {
        Self { runner: runner.clone(), identity, handle, owner }
    }

    /// Returns the request's completion, or `None` if the driver has not completed the request.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn try_finish(&self) -> Result<Option<Completion>, KernelError> {
        let request = self.handle;
        if self.owner == Owner::Driver {
            let outcome = self
                .runner
                .ntoskrnl(self.identity, move |context| send::outcome(context, request))?;
            return Ok(outcome.map(|outcome| Completion {
                status: outcome.status,
                information: outcome.information,
                output: outcome.output,
            }));
        }
        Ok(self.runner.kmdf(self.identity, move |context| outcome(context, request))?)
    }

    /// Returns the request's completion. On a `Kernel::together` thread, lets the other threads run
    /// until the request is complete.
    ///
    /// # Errors
    ///
    /// Returns [`KernelError::Pending`] if the driver does not complete the request.
    pub fn finish(self) -> Result<Completion, KernelError> {
        let mut looks = 0;
        loop {
            if let Some(completion) = self.try_finish()? {
                return Ok(completion);
            }
            let others = thread::try_current().is_some_and(|thread| thread.give_way(looks));
            if !others {
                return Err(KernelError::Pending);
            }
            looks += 1;
        }
    }

    /// Cancels the request (`CancelIoEx`). If the request is in a queue, it is completed. If the
    /// driver owns the request and has made it cancelable, the driver's cancel routine is called.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn cancel(&self) -> Result<(), KernelError> {
        let request = self.handle;
        if self.owner == Owner::Driver {
            self.runner.ntoskrnl(self.identity, move |context| {
                send::cancel(context, request);
            })?;
            return Ok(());
        }
        self.runner.kmdf(self.identity, move |context| cancel(context, request))?;
        Ok(())
    }
}
