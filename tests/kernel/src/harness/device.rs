//! A device that a driver added.

use super::{error::KernelError, file::File, runner::Runner};
use crate::{
    execution::identity::Identity,
    services::kmdf::{device::pnp, file::create_file, state::device::sddl},
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
    /// When the driver refuses it.
    pub fn open(&self, identity: Identity) -> Result<File, KernelError> {
        self.open_file("", identity)
    }

    /// Opens a file of the device's from a process: the name is what stands after the
    /// device in the path, for instance `\channel`.
    ///
    /// # Errors
    ///
    /// When the driver refuses it.
    pub fn open_file(&self, name: &str, identity: Identity) -> Result<File, KernelError> {
        let device = self.handle;
        let name = name.to_owned();
        File::open(&self.runner, identity, move |context| {
            create_file(context, device, &name)
        })
    }

    /// Sends the device to sleep (D3) and wakes it (D0).
    ///
    /// # Errors
    ///
    /// When the driver refuses.
    pub fn power_cycle(&self) -> Result<(), KernelError> {
        let device = self.handle;
        let status = self.runner.kmdf(Identity::SYSTEM, move |context| {
            pnp::power_cycle(context, device)
        })?;
        if status.is_success() {
            Ok(())
        } else {
            Err(KernelError::Status {
                routine: "the power transition",
                status,
            })
        }
    }

    /// Returns the security descriptor that the driver gave the device, as text.
    ///
    /// # Errors
    ///
    /// When the kernel has bugchecked.
    pub fn sddl(&self) -> Result<Option<String>, KernelError> {
        let device = self.handle;
        Ok(self
            .runner
            .kmdf(Identity::SYSTEM, move |context| sddl(context, device))?)
    }

    /// Removes the device in order.
    ///
    /// # Errors
    ///
    /// When the kernel bugchecks, for instance over a request that was never
    /// completed.
    pub fn remove(self) -> Result<(), KernelError> {
        let device = self.handle;
        self.runner.kmdf(Identity::SYSTEM, move |context| {
            pnp::remove_device(context, device);
        })?;
        Ok(())
    }

    /// Pulls the device out: the driver hears of it when it is gone. Files that are
    /// open keep the device's object; it goes with the last one.
    ///
    /// # Errors
    ///
    /// When the kernel bugchecks, for instance over a request that was never
    /// completed.
    pub fn surprise_remove(self) -> Result<(), KernelError> {
        let device = self.handle;
        self.runner.kmdf(Identity::SYSTEM, move |context| {
            pnp::surprise_remove(context, device);
        })?;
        Ok(())
    }
}
