//! A device that a driver added.

use super::{error::KernelError, file::File, runner::Runner};
use crate::{
    execution::identity::Identity,
    services::kmdf::{
        device::pnp,
        file::{close_abandoned, create_file, why_unreachable},
        state::device::sddl,
    },
};

/// A device that a driver added.
pub struct Device {
    runner: Runner,
    handle: u64,
}

impl Device {
    pub(super) fn new(runner: &Runner, handle: u64) -> Self {
        Self {
            runner: runner.clone(),
            handle,
        }
    }

    /// Opens the device from a process (`CreateFile`).
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails the open.
    pub fn open(&self, identity: Identity) -> Result<File, KernelError> {
        self.open_file("", identity)
    }

    /// Opens a file on the device from a process. The name is the part of the path after
    /// the device, for instance `\channel`.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails the open.
    pub fn open_file(&self, name: &str, identity: Identity) -> Result<File, KernelError> {
        let device = self.handle;
        let name = name.to_owned();
        File::open(&self.runner, "the device", identity, move |context| {
            create_file(context, device, &name)
                .map_err(|status| (why_unreachable(context, device), status))
        })
    }

    /// Takes the device to D3 and back to D0.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails a power callback.
    pub fn power_cycle(&self) -> Result<(), KernelError> {
        let device = self.handle;
        let status = self.runner.kmdf(Identity::SYSTEM, move |context| {
            pnp::power_cycle(context, device)
        })?;
        if status.is_success() {
            Ok(())
        } else {
            Err(KernelError::Status {
                routine: "the power cycle",
                status,
            })
        }
    }

    /// Returns the security descriptor that the driver assigned to the device, as a string.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has bugchecked.
    pub fn sddl(&self) -> Result<Option<String>, KernelError> {
        let device = self.handle;
        Ok(self
            .runner
            .kmdf(Identity::SYSTEM, move |context| sddl(context, device))?)
    }

    /// Removes the device in an orderly way. Has no effect on a device that is gone.
    ///
    /// # Errors
    ///
    /// Returns [`KernelError::Vetoed`], and the device stays, if a [`File`] is open on it or the
    /// driver refuses. Returns an error if the kernel bugchecks, for instance over a request that was
    /// never completed.
    pub fn remove(&self) -> Result<(), KernelError> {
        let device = self.handle;
        let removed = self.runner.kmdf(Identity::SYSTEM, move |context| {
            close_abandoned(context, device);
            pnp::remove_device(context, device)
        })?;
        removed.map_err(|veto| KernelError::Vetoed(veto.to_string()))
    }

    /// Removes the device by surprise: the driver is notified after the device is gone. Open
    /// files keep the device object alive until the last one is closed.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks, for instance over a request that was never
    /// completed.
    pub fn surprise_remove(self) -> Result<(), KernelError> {
        let device = self.handle;
        self.runner.kmdf(Identity::SYSTEM, move |context| {
            pnp::surprise_remove(context, device);
        })?;
        Ok(())
    }
}
