//! A device that a driver added.

use super::{
    error::{KernelError, OPENING},
    file::File,
    request::Owner,
    runner::Runner,
};
use crate::{
    execution::identity::Identity,
    ground::{NtStatus, bugcheck::BugCheck},
    services::{
        kmdf::{
            bus::children::children_of,
            device::pnp,
            dma::bus,
            file_opening::{close_abandoned, create_file, why_unreachable},
            interrupt::delivery::raise,
            state::{
                device::{instance_path, sddl},
                request::Completion,
            },
        },
        managers::plug_and_play::PlugAndPlay,
        ntoskrnl::{
            context::Context as NtContext,
            io::{
                plug_and_play::{life, life::FilterError, queries, removal, sent::Request},
                send,
            },
            po::power,
        },
    },
};

/// The error for a DMA access to memory that no driver has mapped.
const NOT_MAPPED: KernelError =
    KernelError::Status { routine: "the DMA access", status: NtStatus::ACCESS_VIOLATION };

/// A device that a driver added.
pub struct Device {
    runner: Runner,
    /// The framework's handle, or the physical `DEVICE_OBJECT` if the driver does not use the framework.
    handle: u64,
    owner: Owner,
}

/// The error for operations that need the framework's hardware support.
const NO_HARDWARE: KernelError = KernelError::NotProvided(
    "the stand-in kernel does not provide interrupts or DMA for the devices of WDM drivers",
);

/// The error for operations that only devices of WDM drivers support.
const NO_STACK: KernelError = KernelError::NotProvided(
    "the device is a KMDF device; the framework handles Plug and Play requests for its driver, and \
     the stand-in kernel sends none",
);

impl Device {
    pub(super) fn new(runner: &Runner, handle: u64, owner: Owner) -> Self {
        Self { runner: runner.clone(), handle, owner }
    }

    pub(super) const fn handle(&self) -> u64 {
        self.handle
    }

    pub(super) const fn owner(&self) -> Owner {
        self.owner
    }

    /// Runs a job of the Plug and Play manager with the device's physical `DEVICE_OBJECT`.
    fn manage<R: Send + 'static>(
        &self,
        job: impl FnOnce(&NtContext, u64) -> R + Send + 'static,
    ) -> Result<R, BugCheck> {
        let physical = self.handle;
        self.runner.ntoskrnl(Identity::SYSTEM, move |context| job(context, physical))
    }

    /// Opens the device on behalf of a process (`CreateFile`).
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails the open.
    pub fn open(&self, identity: Identity) -> Result<File, KernelError> {
        self.open_file("", identity)
    }

    /// Opens a file on the device on behalf of a process. The name is the part of the path after the
    /// device, for instance `\channel`.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails the open.
    pub fn open_file(&self, name: &str, identity: Identity) -> Result<File, KernelError> {
        let device = self.handle;
        let name = name.to_owned();
        if self.owner == Owner::Driver {
            let opened = self.runner.ntoskrnl(identity, move |context| {
                if context.nodes().node(device).is_none() {
                    return Err(NtStatus::NO_SUCH_DEVICE);
                }
                send::open(context, device, &name)
            })?;
            let file = opened.map_err(|status| KernelError::Status { routine: OPENING, status })?;
            return Ok(File::of_device_object(&self.runner, identity, file));
        }
        File::open(&self.runner, "the device", identity, move |context, create| {
            create_file(context, device, &name, create)
                .map_err(|status| (why_unreachable(context, device), status))
        })
    }

    /// Raises an interrupt of the device. `number` is the interrupt's index in the order in which
    /// the driver created its interrupts. The service routine runs at DIRQL, followed by its DPC.
    /// Returns whether the driver claims the interrupt.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver has no such interrupt, if the interrupt is not connected (the
    /// device has no resource for it or is not in D0), or if the kernel bugchecks.
    pub fn interrupt(&self, number: usize) -> Result<bool, KernelError> {
        if self.owner == Owner::Driver {
            return Err(NO_HARDWARE);
        }
        let device = self.handle;
        let raised =
            self.runner.kmdf(Identity::IDLE, move |context| raise(context, device, number))?;
        raised.map_err(|status| KernelError::Status { routine: "the interrupt", status })
    }

    /// Reads memory as the device does by DMA: from a common buffer, or from the buffer of a
    /// programmed transfer that is not completed yet. `address` is a logical address that the
    /// driver passed to the device.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver has not mapped all of the memory, or if the kernel has bugchecked.
    pub fn dma_read(&self, address: u64, length: usize) -> Result<Vec<u8>, KernelError> {
        if self.owner == Owner::Driver {
            return Err(NO_HARDWARE);
        }
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
        if self.owner == Owner::Driver {
            return Err(NO_HARDWARE);
        }
        let bytes = bytes.to_vec();
        let written = self.runner.kmdf(Identity::IDLE, move |context| {
            bus::write(&mut context.framework(), address, &bytes)
        })?;
        written.ok_or(NOT_MAPPED)
    }

    /// Returns the children that the device's driver, a bus driver, has reported. They are physical
    /// devices for which no driver is loaded yet. [`DeviceConfig::above`](crate::DeviceConfig::above)
    /// places a driver's device above a child. The children are removed with their bus.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has bugchecked.
    pub fn children(&self) -> Result<Vec<Self>, KernelError> {
        if self.owner == Owner::Driver {
            return Ok(Vec::new());
        }
        let device = self.handle;
        let children =
            self.runner.kmdf(Identity::SYSTEM, move |context| children_of(context, device))?;
        let children = children.into_iter();
        Ok(children.map(|child| Self::new(&self.runner, child, Owner::Framework)).collect())
    }

    /// Returns the device instance path, for instance `ROOT\\SAMPLE\\0000`.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has bugchecked.
    pub fn instance_path(&self) -> Result<String, KernelError> {
        if self.owner == Owner::Driver {
            let node = self.manage(|context, physical| context.nodes().node(physical))?;
            return Ok(node.map_or_else(String::new, |node| node.instance));
        }
        let device = self.handle;
        Ok(self.runner.kmdf(Identity::SYSTEM, move |context| instance_path(context, device))?)
    }

    /// Powers the device down to D3 and back up to D0.
    ///
    /// The device of a WDM driver receives the requests of a system that sleeps and wakes up, to
    /// which the power policy owner reacts with device power requests. A KMDF device whose driver
    /// fails a power callback is removed.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails a power callback.
    pub fn power_cycle(&self) -> Result<(), KernelError> {
        let device = self.handle;
        let status = match self.owner {
            Owner::Framework => self
                .runner
                .kmdf(Identity::SYSTEM, move |context| pnp::power_cycle(context, device))?,
            Owner::Driver => self.manage(power::cycle)?,
        };
        if status.is_success() {
            Ok(())
        } else {
            Err(KernelError::Status { routine: "the power cycle", status })
        }
    }

    /// Returns the security descriptor that the driver assigned to the device, as a string.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has bugchecked.
    pub fn sddl(&self) -> Result<Option<String>, KernelError> {
        if self.owner == Owner::Driver {
            return Ok(None);
        }
        let device = self.handle;
        Ok(self.runner.kmdf(Identity::SYSTEM, move |context| sddl(context, device))?)
    }

    /// Removes the device in an orderly way. Does nothing if the device is already gone.
    ///
    /// # Errors
    ///
    /// Returns [`KernelError::Vetoed`], and the device stays, if a [`File`] is open on it or the driver
    /// refuses. Returns an error if the kernel bugchecks, for instance because of a request that was
    /// never completed.
    pub fn remove(&self) -> Result<(), KernelError> {
        if self.owner == Owner::Driver {
            let removed = self.manage(|context, physical| {
                send::close_abandoned(context, physical);
                removal::remove(context, physical)
            })?;
            return removed.map_err(|veto| KernelError::Vetoed(veto.to_string()));
        }
        let device = self.handle;
        let removed = self.runner.kmdf(Identity::SYSTEM, move |context| {
            close_abandoned(context, device);
            pnp::remove_device(context, device)
        })?;
        removed.map_err(|veto| KernelError::Vetoed(veto.to_string()))
    }

    /// Removes the device by surprise: its driver is notified only after the device is gone. Open
    /// files keep the device object alive until the last file is closed.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks, for instance because of a request that was never
    /// completed.
    pub fn surprise_remove(self) -> Result<(), KernelError> {
        if self.owner == Owner::Driver {
            self.manage(removal::surprise_remove)?;
            return Ok(());
        }
        let device = self.handle;
        self.runner.kmdf(Identity::SYSTEM, move |context| {
            pnp::surprise_remove(context, device);
        })?;
        Ok(())
    }

    /// Stops the device and starts it again, as the Plug and Play manager does to rebalance resources
    /// (`IRP_MN_QUERY_STOP_DEVICE`, `IRP_MN_STOP_DEVICE` and `IRP_MN_START_DEVICE`).
    ///
    /// # Errors
    ///
    /// Returns [`KernelError::VetoedStop`] if a driver refuses; the device then keeps working. Returns an
    /// error if the device does not start again, which is then removed, or if the kernel bugchecks.
    pub fn rebalance(&self) -> Result<(), KernelError> {
        const STARTING: &str = "starting the device again";
        if self.owner == Owner::Framework {
            let device = self.handle;
            let rebalance = move |context: &_| pnp::rebalance(context, device);
            return match self.runner.kmdf(Identity::SYSTEM, rebalance)? {
                Ok(status) if status.is_success() => Ok(()),
                Ok(status) => Err(KernelError::Status { routine: STARTING, status }),
                Err(veto) => Err(KernelError::VetoedStop(veto.to_string())),
            };
        }
        let restarted = self.manage(life::rebalance)?;
        restarted.map_err(|error| match error {
            FilterError::Vetoed(veto) => KernelError::VetoedStop(veto.to_string()),
            FilterError::Failed(status) => KernelError::Status { routine: STARTING, status },
        })
    }

    /// Sends a request of the Plug and Play manager, the power manager or WMI to the top of the
    /// device's stack: `IRP_MJ_PNP` (27), `IRP_MJ_POWER` (22) or `IRP_MJ_SYSTEM_CONTROL` (23) with
    /// this minor function and these parameters. Returns the completion. Its output is a copy of
    /// the memory that the drivers returned; the memory itself is freed.
    ///
    /// # Errors
    ///
    /// Returns an error if the device is gone, if its driver uses the framework, or if the kernel
    /// bugchecks, for instance because a driver neither completes the request nor passes it down.
    pub fn send(
        &self,
        major: u8,
        minor: u8,
        parameters: [u64; 4],
    ) -> Result<Completion, KernelError> {
        if self.owner == Owner::Framework {
            return Err(NO_STACK);
        }
        let answer = self.manage(move |context, physical| {
            context.nodes().node(physical)?;
            let request = Request { major, minor, parameters, information: 0 };
            Some(queries::ask(context, physical, &request))
        })?;
        let (outcome, output) = answer.ok_or(KernelError::Status {
            routine: "sending the request",
            status: NtStatus::NO_SUCH_DEVICE,
        })?;
        Ok(Completion { status: outcome.status, information: outcome.information, output })
    }
}
