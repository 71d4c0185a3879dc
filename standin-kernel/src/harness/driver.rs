//! A loaded driver.

use std::{panic::Location, path::Path, sync::Arc};

use super::{
    device::Device,
    device_config::DeviceConfig,
    driver_memory::DriverMemory,
    error::{KernelError, OPENING},
    file::File,
    request::Owner,
    runner::Runner,
};
use crate::{
    execution::{call::Call, identity::Identity, routine::At, strings::text_bytes},
    ground::{
        NtStatus,
        abi::DriverObject,
        backtrace::Explained,
        bugcheck::{BugCheck, Violation, Violations},
        flight,
        image::Image,
        loader,
        rule::Rule,
    },
    services::{
        composition::{
            exports::{address_in, default_dispatch},
            system::System,
        },
        etw::{classic::report_left_with_wmi, registration::report_left_registered},
        kmdf::{
            binding::{framework_unload, handle_of, unload_routine, version_of},
            device::pnp,
            file_opening::{create_file, why_unreachable},
            state::device::control_device_of,
        },
        managers::registry::{paths::service_path, value::RegistryValue},
        ntoskrnl::{
            io::{
                devices, irp, lifetime,
                plug_and_play::{life, life::FilterError},
                send,
            },
            leaks,
            ob::namespace,
        },
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
    #[track_caller]
    pub(super) fn load(runner: &Runner, path: &Path, service: &str) -> Result<Self, KernelError> {
        let loaded_at = Location::caller();
        create_service_key(runner, service)?;
        let nt = &runner.system().ntoskrnl;
        let resolve = |module: &str, name: &str| address_in(nt, module, name);
        let image = Arc::new(loader::load(path, &resolve)?);
        runner.system().environment.images.add(&image);
        flight::note_image(image.base());
        let dispatch = default_dispatch();
        let objects = Arc::new(DriverMemory::new(&image, service, dispatch));
        let driver = Self {
            runner: runner.clone(),
            image: Arc::clone(&image),
            memory: Arc::clone(&objects),
        };
        let name = format!(r"\Driver\{service}");
        let object = objects.object.address();
        irp::note_default_dispatch(&mut nt.state(), dispatch);
        namespace::enter(&mut nt.state(), &name, object, namespace::DRIVER);
        let status = runner.run(Identity::SYSTEM, move |context| {
            let arguments = [objects.object.address(), objects.registry_path.address()];
            NtStatus::from_register(context.call_driver("DriverEntry", image.entry(), arguments))
        })?;
        if status.is_success() {
            let object = driver.memory.object.address();
            runner.ntoskrnl(Identity::SYSTEM, move |context| {
                devices::finish_initialization(context, object);
                lifetime::reinitialize(context, object);
            })?;
            driver.image.discard();
            if let Some(guard) = runner.guard() {
                guard.loaded(driver.image.name(), loaded_at);
            }
            return Ok(driver);
        }
        let violations = driver.forget(None)?;
        if violations.is_empty() {
            Err(KernelError::Status { routine: "DriverEntry", status })
        } else {
            Err(KernelError::FailedEntry { status, violations: Violations(violations) })
        }
    }

    /// Returns the image's imports, each as `module!name`.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        self.image.imports()
    }

    /// Returns the imports that the stand-in kernel does not provide, each as `module!name`, sorted.
    ///
    /// The driver is loaded anyway. The first call to such a routine, or the first use of such a
    /// variable, causes a bugcheck that names it.
    #[must_use]
    pub fn unprovided_imports(&self) -> &[String] {
        self.image.unprovided().names()
    }

    /// Returns the version of KMDF that the driver is bound to, or `None` if it is not bound.
    #[must_use]
    pub fn framework_version(&self) -> Option<(u32, u32)> {
        let mut framework = self.runner.system().kmdf.framework();
        version_of(&mut framework, self.memory.object.address())
    }

    /// Returns whether the driver can add devices, that is, has an `EvtDriverDeviceAdd` callback
    /// or, if it is a WDM driver, an `AddDevice` routine.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has bugchecked.
    pub fn adds_devices(&self) -> Result<bool, KernelError> {
        Ok(self.adder()?.is_some())
    }

    /// Returns the component that adds devices for the driver: the framework or the driver itself.
    fn adder(&self) -> Result<Option<Owner>, KernelError> {
        let object = self.memory.object.address();
        let adds = self
            .runner
            .kmdf(Identity::SYSTEM, move |context| pnp::adds_devices(context, object))?;
        if adds {
            return Ok(Some(Owner::Framework));
        }
        let routine = self
            .runner
            .ntoskrnl(Identity::SYSTEM, move |context| life::add_device_routine(context, object))?;
        Ok((routine != 0).then_some(Owner::Driver))
    }

    /// Returns whether the driver has created a device itself, as WDM drivers do.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has bugchecked.
    pub fn has_own_device(&self) -> Result<bool, KernelError> {
        Ok(self.own_device()?.is_some() || self.control_device()?.is_some())
    }

    fn own_device(&self) -> Result<Option<u64>, KernelError> {
        let object = self.memory.object.address();
        Ok(self
            .runner
            .ntoskrnl(Identity::SYSTEM, move |context| devices::first_of_driver(context, object))?)
    }

    /// Returns the driver's first control device with a name that programs can open.
    fn control_device(&self) -> Result<Option<u64>, KernelError> {
        let object = self.memory.object.address();
        Ok(self.runner.kmdf(Identity::SYSTEM, move |context| {
            let driver = handle_of(context, object)?;
            control_device_of(context, driver)
        })?)
    }

    /// Opens the first device that the driver has created itself (`CreateFile`).
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such device, or if the driver fails the open.
    pub fn open_own_device(&self, identity: Identity) -> Result<File, KernelError> {
        self.open_own_file("", identity)
    }

    /// Opens a file on the first device that the driver has created itself. `name` is the part of
    /// the path after the device, for instance `\channel`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such device, or if the driver fails the open.
    pub fn open_own_file(&self, name: &str, identity: Identity) -> Result<File, KernelError> {
        let device = self.own_device()?;
        let name = name.to_owned();
        if device.is_none()
            && let Some(device) = self.control_device()?
        {
            return File::open(
                &self.runner,
                "the control device",
                identity,
                move |context, create| {
                    create_file(context, device, &name, create)
                        .map_err(|status| (why_unreachable(context, device), status))
                },
            );
        }
        let opened = self.runner.ntoskrnl(identity, move |context| {
            let device = device.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
            send::open(context, device, &name)
        })?;
        let file = opened.map_err(|status| KernelError::Status { routine: OPENING, status })?;
        Ok(File::of_device_object(&self.runner, identity, file))
    }

    /// Offers the driver a device, as the Plug and Play manager does with a root-enumerated device,
    /// and starts it. Calls `EvtDriverDeviceAdd` or, for a WDM driver, `AddDevice`.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails to add or start the device.
    #[track_caller]
    pub fn add_device(&self) -> Result<Device, KernelError> {
        self.add_device_with(DeviceConfig::new())
    }

    /// Offers the driver a device with the given configuration and starts it, as [`Self::add_device`]
    /// does.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails to add or start the device.
    #[track_caller]
    pub fn add_device_with(&self, config: DeviceConfig) -> Result<Device, KernelError> {
        let added_at = Location::caller();
        let owner = self.adder()?.unwrap_or(Owner::Framework);
        let handle = match owner {
            Owner::Framework => {
                let object = self.memory.object.address();
                let offer = config.for_framework()?;
                let added = self.runner.kmdf(Identity::SYSTEM, move |context| {
                    pnp::add_device(context, object, offer)
                })?;
                added.map_err(not_added)?
            }
            Owner::Driver => self.add_device_object(config)?,
        };
        if let Some(guard) = self.runner.guard() {
            guard.added(handle, added_at);
        }
        Ok(Device::new(&self.runner, handle, owner))
    }

    /// Offers a WDM driver a device. Returns the physical `DEVICE_OBJECT`.
    fn add_device_object(&self, config: DeviceConfig) -> Result<u64, KernelError> {
        let (offer, above) = config.for_driver()?;
        let memory = Arc::clone(&self.memory);
        let added = self.runner.ntoskrnl(Identity::SYSTEM, move |context| {
            let object = memory.object.address();
            match above {
                Some(lower) => life::add_filter(context, lower, object).map(|()| lower),
                None => Ok(life::add(context, object, &memory.service, offer)?),
            }
        })?;
        added.map_err(|error| match error {
            FilterError::Vetoed(veto) => KernelError::Vetoed(veto.to_string()),
            FilterError::Failed(status) => not_added(status),
        })
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
        if let Some(guard) = self.runner.guard() {
            guard.unloaded(&name);
        }
        let unloaded = self.runner.kmdf(Identity::SYSTEM, move |context| {
            let object: DriverObject = context.read(address);
            if object.driver_unload == 0 {
                return None;
            }
            let invoked = devices::driver_flag::UNLOAD_INVOKED;
            context.update(address, |object: &mut DriverObject| object.flags |= invoked);
            let routine = unload_routine(context, address);
            let routine = routine.map(|routine| context.environment().images.function(routine));
            if object.driver_unload == context.functions().unload {
                framework_unload(context, At::new(address));
            } else {
                context.call_driver("DriverUnload", object.driver_unload, [address]);
            }
            Some(routine)
        })?;
        let Some(routine) = unloaded else {
            return Err(KernelError::NotUnloadable(name));
        };
        let violations = self.forget(routine)?;
        if violations.is_empty() { Ok(()) } else { Err(Violations(violations).into()) }
    }

    /// Removes the driver's image, pool blocks and registrations, and returns the violations.
    /// `unload` describes the driver's unload routine.
    fn forget(&self, unload: Option<String>) -> Result<Vec<Violation>, BugCheck> {
        let image = Arc::clone(&self.image);
        let driver_object = self.memory.object.address();
        self.runner.run(Identity::SYSTEM, move |context| {
            let system = System::from_thread(context);
            let name = image.name();
            let belongs = |call: &Call| image.contains(call.return_address);
            let nt = System::ntoskrnl_context(context.clone());
            let mut violations =
                leaks::take_left(&nt, &name, driver_object, |address| image.contains(address));
            let leaks = system.pool.take_leaks(belongs);
            let of_pool: Vec<Violation> = leaks
                .into_iter()
                .map(|leak| {
                    let Explained { place, lines, .. } = context.explain(&leak.backtrace);
                    let message = format!(
                        "{name} was unloaded without freeing {} bytes of {} pool with the tag \
                             {}, allocated by {} at {} from {place}",
                        leak.size,
                        if leak.paged { "paged" } else { "non-paged" },
                        leak.tag,
                        leak.allocated_by.name,
                        leak.allocated_by.irql,
                    );
                    Violation::new(Rule::PoolLeak, message, lines)
                })
                .collect();
            violations.extend(of_pool);
            violations.extend(report_left_registered(
                &System::etw_context(context.clone()),
                belongs,
                &name,
                unload.as_deref(),
            ));
            let etw = System::etw_context(context.clone());
            violations.extend(report_left_with_wmi(&etw, belongs, &name));
            let logs = system.etw.recorder().take_left(|address| image.contains(address));
            if logs > 0 {
                let message = format!(
                    "{name} was unloaded without WppAutoLogStop for its recorder log ({logs} in all)"
                );
                violations.push(Violation::new(Rule::LeftQueued, message, Vec::new()));
            }
            system.environment.images.remove(&image);
            violations
        })
    }
}

/// Returns the error for a device that the driver did not add or start.
const fn not_added(status: NtStatus) -> KernelError {
    KernelError::Status { routine: "adding the device", status }
}

/// Creates a service's key. Values that every driver service has are set unless the test has
/// already set them.
fn create_service_key(runner: &Runner, service: &str) -> Result<(), KernelError> {
    /// `REG_EXPAND_SZ`.
    const EXPAND_SZ: u32 = 2;
    /// `SERVICE_KERNEL_DRIVER`, `SERVICE_DEMAND_START` and `SERVICE_ERROR_NORMAL`.
    const NUMBERS: [(&str, u32); 3] = [("Type", 1), ("Start", 3), ("ErrorControl", 1)];
    let image = format!(r"\SystemRoot\System32\drivers\{service}.sys");
    let image = RegistryValue::Other(EXPAND_SZ, text_bytes(&image));
    let numbers = NUMBERS.map(|(name, number)| (name, RegistryValue::Dword(number)));
    let registry = &runner.system().registry;
    let path = service_path(service);
    let created = registry.create_all(&path).and_then(|key| {
        for (name, value) in numbers.into_iter().chain([("ImagePath", image)]) {
            if registry.value(key, name).is_err() {
                registry.set_value(key, name, value)?;
            }
        }
        Ok(())
    });
    created.map_err(|status| KernelError::Status { routine: "creating the service's key", status })
}
