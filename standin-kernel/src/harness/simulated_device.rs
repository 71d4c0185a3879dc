//! A device that a test simulates, below or beside a driver's device.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{error::KernelError, runner::Runner};
use crate::{
    execution::identity::Identity,
    services::kmdf::{
        io::send::deliver_result,
        state::{
            device_object::Object,
            framework::Context,
            request::Completion,
            simulated::{RequestAction, SimulatedDevices, SimulatedRequest},
        },
    },
};

/// A device that a test simulates. The test's closure handles the device's requests.
#[derive(Clone)]
pub struct SimulatedDevice {
    runner: Runner,
    number: u64,
}

impl SimulatedDevice {
    pub(super) fn new(
        runner: &Runner,
        name: Option<&str>,
        answer: impl FnMut(&SimulatedRequest) -> RequestAction + Send + 'static,
    ) -> Self {
        /// `FILE_DEVICE_UNKNOWN`.
        const UNKNOWN: u32 = 0x22;
        let object = Object::new(0, 0, UNKNOWN, 1);
        let number = runner.system().kmdf.framework().part::<SimulatedDevices>().add(
            object,
            name.map(str::to_owned),
            Arc::new(Mutex::new(answer)),
        );
        Self { runner: runner.clone(), number }
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the device's pending requests, oldest first, and whether the sender has canceled
    /// each request.
    #[must_use]
    pub fn kept(&self) -> Vec<(SimulatedRequest, bool)> {
        let mut framework = self.runner.system().kmdf.framework();
        framework.part::<SimulatedDevices>().kept(self.number)
    }

    /// Completes a pending request of the device. Returns `false` if the request is not pending.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn complete(
        &self,
        request: &SimulatedRequest,
        completion: Completion,
    ) -> Result<bool, KernelError> {
        let (device, number) = (self.number, request.number);
        Ok(self
            .runner
            .kmdf(Identity::SYSTEM, move |context| complete(context, device, number, completion))?)
    }
}

fn complete(context: &Context, device: u64, request: u64, completion: Completion) -> bool {
    let upper = context.framework().part::<SimulatedDevices>().take(device, request);
    if let Some(upper) = upper {
        deliver_result(context, upper, completion);
    }
    upper.is_some()
}
