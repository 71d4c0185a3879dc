//! A loaded driver.

use std::{path::Path, sync::Arc};

use super::{device::Device, driver_memory::DriverMemory, error::KernelError, runner::Runner};
use crate::{
    execution::{call::Call, identity::Identity},
    ground::{
        abi::DriverObject,
        bugcheck::{BugCheck, Violation, Violations},
        image::Image,
        loader,
        rule::Rule,
        status::NtStatus,
    },
    services::{
        etw::registration::report_left_registered,
        exports::gateways,
        kmdf::{
            device::pnp,
            driver::{framework_unload, version_of},
        },
        system::System,
    },
};

/// A loaded driver.
pub struct Driver {
    runner: Runner,
    image: Arc<Image>,
    memory: Arc<DriverMemory>,
}

impl Driver {
    /// Maps an image, binds its imports, and calls its entry point.
    pub(super) fn load(runner: &Runner, path: &Path, service: &str) -> Result<Self, KernelError> {
        let resolve = |module: &str, name: &str| gateways().find(module, name);
        let image = Arc::new(loader::load(path, &resolve)?);
        runner.system().environment.images.add(Arc::clone(&image));
        let objects = Arc::new(DriverMemory::new(&image, service));
        let driver = Self {
            runner: runner.clone(),
            image: Arc::clone(&image),
            memory: Arc::clone(&objects),
        };
        let status = runner.run(Identity::SYSTEM, move |context| {
            let arguments = [objects.object.address(), objects.registry_path.address()];
            NtStatus::from_register(context.call_driver("DriverEntry", image.entry(), arguments))
        })?;
        if status.is_success() {
            driver.image.discard();
            return Ok(driver);
        }
        let violations = driver.forget()?;
        if violations.is_empty() {
            Err(KernelError::Status {
                routine: "DriverEntry",
                status,
            })
        } else {
            Err(Violations(violations).into())
        }
    }

    /// Returns the image's imports, each as `module!name`.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        self.image.imports()
    }

    /// Returns the version of KMDF that the driver is bound to, or `None` if it is not bound.
    #[must_use]
    pub fn framework_version(&self) -> Option<(u32, u32)> {
        let mut framework = self.runner.system().kmdf.framework();
        version_of(&mut framework, self.memory.object.address())
    }

    /// Offers the driver a device, as the plug-and-play manager does with a
    /// root-enumerated one, and starts it.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails to add or start the device.
    pub fn add_device(&self) -> Result<Device, KernelError> {
        let memory = Arc::clone(&self.memory);
        let handle = self.runner.kmdf(Identity::SYSTEM, move |context| {
            pnp::add_device(context, memory.object.address())
        })?;
        let handle = handle.map_err(|status| KernelError::Status {
            routine: "adding the device",
            status,
        })?;
        Ok(Device::new(&self.runner, handle))
    }

    /// Unloads the driver: runs its unload routine, and reports pool blocks and registrations
    /// that it left behind. Remove its devices first.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver cannot be unloaded, or if it left pool blocks or
    /// registrations behind.
    pub fn unload(self) -> Result<(), KernelError> {
        let address = self.memory.object.address();
        let name = self.image.name();
        let unloaded = self.runner.kmdf(Identity::SYSTEM, move |context| {
            let object: DriverObject = context.read(address);
            if object.driver_unload == 0 {
                return false;
            }
            if object.driver_unload == context.functions().unload {
                framework_unload(context, address);
            } else {
                context.call_driver("DriverUnload", object.driver_unload, [address]);
            }
            true
        })?;
        if !unloaded {
            return Err(KernelError::NotUnloadable(name));
        }
        let violations = self.forget()?;
        if violations.is_empty() {
            Ok(())
        } else {
            Err(Violations(violations).into())
        }
    }

    /// Removes the driver's image, pool blocks and registrations, and returns the violations.
    fn forget(&self) -> Result<Vec<Violation>, BugCheck> {
        let image = Arc::clone(&self.image);
        self.runner.run(Identity::SYSTEM, move |context| {
            let system = System::of(context);
            let name = image.name();
            let belongs = |call: &Call| image.contains(call.return_address);
            let leaks = system.pool.take_leaks(belongs);
            let mut violations: Vec<Violation> = leaks
                .into_iter()
                .map(|leak| Violation {
                    rule: Rule::PoolLeak,
                    message: format!(
                        "{name} was unloaded without freeing {} bytes of {} pool with the tag {}, \
                         allocated by {} at {} from {}",
                        leak.size,
                        if leak.paged { "paged" } else { "non-paged" },
                        leak.tag,
                        leak.allocated_by.name,
                        leak.allocated_by.irql,
                        context.place(leak.allocated_by.return_address)
                    ),
                })
                .collect();
            violations.extend(report_left_registered(
                &System::etw_context(context.clone()),
                belongs,
                &name,
            ));
            system.environment.images.remove(&image);
            violations
        })
    }
}
