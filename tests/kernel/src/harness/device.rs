//! A device that a driver added.

use super::{error::KernelError, file::File, runner::Runner};
use crate::{
    execution::identity::Identity,
    ground::status::NtStatus,
    services::kmdf::{
        bus::children::children_of,
        device::pnp,
        dma::bus,
        file::{close_abandoned, create_file, why_unreachable},
        interrupt::delivery::raise,
        state::device::{instance_path, sddl},
    },
};

/// The error of an access by DMA to memory that no driver has mapped.
const NOT_MAPPED: KernelError = KernelError::Status {
    routine: "the DMA access",
    status: NtStatus::ACCESS_VIOLATION,
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

    pub(super) const fn handle(&self) -> u64 {
        self.handle
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

    /// Raises an interrupt of the device, by its number in the order in which the driver created its
    /// interrupts. The service routine runs at DIRQL, and its DPC after it. Returns whether the driver
    /// claims the interrupt.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver has no such interrupt, if the interrupt is not connected because
    /// the device has no resource for it or is not in D0, or if the kernel bugchecks.
    pub fn interrupt(&self, number: usize) -> Result<bool, KernelError> {
        let device = self.handle;
        let raised = self.runner.kmdf(Identity::IDLE, move |context| {
            raise(context, device, number)
        })?;
        raised.map_err(|status| KernelError::Status {
            routine: "the interrupt",
            status,
        })
    }

    /// Reads memory as the device does by DMA: from a common buffer, or from the buffer of a transfer that
    /// the driver has programmed and not completed. The address is the one that the driver gives the
    /// device.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver has not mapped all of the memory, or if the kernel has bugchecked.
    pub fn dma_read(&self, address: u64, length: usize) -> Result<Vec<u8>, KernelError> {
        let read = self.runner.kmdf(Identity::IDLE, move |context| {
            bus::read(&mut context.framework(), address, length)
        })?;
        read.ok_or(NOT_MAPPED)
    }

    /// Writes memory as the device does by DMA. See [`Self::dma_read`].
    ///
    /// # Errors
    ///
    /// Returns an error if the driver has not mapped all of the memory, or if the kernel has bugchecked.
    pub fn dma_write(&self, address: u64, bytes: &[u8]) -> Result<(), KernelError> {
        let bytes = bytes.to_vec();
        let written = self.runner.kmdf(Identity::IDLE, move |context| {
            bus::write(&mut context.framework(), address, &bytes)
        })?;
        written.ok_or(NOT_MAPPED)
    }

    /// Returns the children that the device's driver, a bus driver, has reported: physical devices, for
    /// which no driver is loaded yet. [`DeviceConfig::above`](crate::DeviceConfig::above) puts a
    /// driver's device above one. They are removed with their bus.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has bugchecked.
    pub fn children(&self) -> Result<Vec<Self>, KernelError> {
        let device = self.handle;
        let children = self.runner.kmdf(Identity::SYSTEM, move |context| {
            children_of(context, device)
        })?;
        let children = children.into_iter();
        Ok(children
            .map(|child| Self::new(&self.runner, child))
            .collect())
    }

    /// Returns the device instance path, for instance `ROOT\\SAMPLE\\0000`.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has bugchecked.
    pub fn instance_path(&self) -> Result<String, KernelError> {
        let device = self.handle;
        Ok(self.runner.kmdf(Identity::SYSTEM, move |context| {
            instance_path(context, device)
        })?)
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
