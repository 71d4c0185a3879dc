//! A request that was sent.

use super::{error::KernelError, runner::Runner};
use crate::{
    execution::{identity::Identity, thread},
    services::kmdf::{
        io::send::{cancel, outcome},
        state::request::Completion,
    },
};

/// A request that was sent.
pub struct Request {
    runner: Runner,
    identity: Identity,
    handle: u64,
}

impl Request {
    pub(super) fn new(runner: &Runner, identity: Identity, handle: u64) -> Self {
        Self {
            runner: runner.clone(),
            identity,
            handle,
        }
    }

    /// Returns the completion of the request, or nothing if the driver still holds it.
    ///
    /// # Errors
    ///
    /// When the kernel bugchecks.
    pub fn try_finish(&self) -> Result<Option<Completion>, KernelError> {
        let request = self.handle;
        Ok(self
            .runner
            .kmdf(self.identity, move |context| outcome(context, request))?)
    }

    /// Returns the completion of the request. A thread of `Kernel::together` gives the
    /// others some time to end it.
    ///
    /// # Errors
    ///
    /// [`KernelError::Pending`] if the driver still holds it.
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

    /// Cancels the request (`CancelIoEx`): one that waits in a queue ends, and the
    /// driver is called for one that it holds and made cancelable.
    ///
    /// # Errors
    ///
    /// When the kernel bugchecks.
    pub fn cancel(&self) -> Result<(), KernelError> {
        let request = self.handle;
        self.runner
            .kmdf(self.identity, move |context| cancel(context, request))?;
        Ok(())
    }
}
