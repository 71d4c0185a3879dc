//! The kernel. A test loads drivers into it and advances its clock.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, SystemTime},
};

use etl_file::Guid;

use super::{
    config::KernelConfig,
    driver::Driver,
    error::{KernelError, OPENING},
    file::File,
    registry_file::RegistryFile,
    runner::Runner,
    simulated_device::SimulatedDevice,
};
use crate::{
    execution::{coroutine::pass_time, identity::Identity},
    ground::{NtStatus, bugcheck::Violation, clock, clock::Clock},
    services::{
        composition::{
            exports,
            system::{Checks, System},
        },
        etw::{controller, recorder_logs::RecorderMessage, service::EtwConfig},
        kmdf::{
            file_opening::{create_file, why_unreachable},
            state::{
                device::{Unreachable, find_device},
                simulated::{RequestAction, SimulatedRequest},
            },
        },
        managers::registry::{paths::parameters_path, value::RegistryValue},
        ntoskrnl::{
            io,
            io::{error_log::ErrorLogEntry, files},
        },
        verifier::faults::Fault,
    },
};

/// A kernel's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// The number of calls from drivers into the kernel. Each call is checked against the routine's
    /// IRQL limits.
    pub calls: u64,
    /// The number of allocated pool blocks.
    pub allocations: u64,
    /// The number of freed pool blocks.
    pub frees: u64,
    /// The number of enable callbacks that were called.
    pub notifications: u64,
    /// The number of currently registered providers.
    pub registrations: usize,
}

/// A stand-in kernel.
///
/// Its handles ([`Driver`], `Device`, [`File`]) can be used from any thread; driver code
/// runs on the kernel's processors.
///
/// Dropping the kernel and the last of its handles panics if a driver is still loaded or a device
/// still exists, because leaks were not checked. The panic names the source line that loaded the
/// driver or added the device. There is no panic after a bugcheck, while the thread panics, or
/// after [`Self::leave_behind`].
#[derive(Clone)]
pub struct Kernel {
    runner: Runner,
    processors: u16,
}

impl Default for Kernel {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernel {
    /// Creates a kernel with one processor, whose clock starts at the current time.
    #[must_use]
    pub fn new() -> Self {
        Self::with_config(KernelConfig::default())
    }

    /// Creates a kernel whose clock starts at `time`, so that identical runs have identical timestamps.
    #[must_use]
    pub fn starting_at(time: SystemTime) -> Self {
        Self::with_config(KernelConfig { start: time, ..KernelConfig::default() })
    }

    /// Creates a kernel from a configuration.
    ///
    /// # Panics
    ///
    /// Panics if the number of processors is not 1 to 64, or if the operating system cannot
    /// create a thread.
    #[must_use]
    pub fn with_config(config: KernelConfig) -> Self {
        assert!(
            (1..=64).contains(&config.processors),
            "the number of processors must be 1 to 64, not {}",
            config.processors
        );
        let etw = EtwConfig {
            processors: config.processors,
            unspecified_behaviour: config.unspecified_behaviour,
            hostile_filters: config.hostile_filters,
        };
        let system = System::new(
            Clock::starting_at(config.start),
            Checks {
                special_pool: config.special_pool,
                notes: config.notes,
                time_limit: config.time_limit,
            },
            etw,
            exports::function_table(),
            exports::kernel_routine,
        );
        Self { runner: Runner::start(system), processors: config.processors }
    }

    /// Returns the runner of the kernel's jobs.
    pub(super) const fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Returns the number of processors.
    pub(super) const fn processors(&self) -> u16 {
        self.processors
    }

    /// Loads a driver: maps the file, binds its imports, and calls its entry
    /// point. The service is named after the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a driver, or if its entry point fails. An import that the
    /// kernel does not provide causes a bugcheck only when the driver uses it; see
    /// [`Driver::unprovided_imports`].
    #[track_caller]
    pub fn load(&self, path: &Path) -> Result<Driver, KernelError> {
        let service =
            path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        self.load_as(path, &service)
    }

    /// Loads a driver like [`Self::load`], but under the given service name. The service has a
    /// registry key, whose path is passed to the driver's entry point.
    ///
    /// # Errors
    ///
    /// Returns an error in the cases that [`Self::load`] lists.
    #[track_caller]
    pub fn load_as(&self, path: &Path, service: &str) -> Result<Driver, KernelError> {
        Driver::load(&self.runner, path, service)
    }

    /// Creates a device that the test simulates: `answer` is called for each request that a driver
    /// sends to the device. If the device has a name, for instance `\\Device\\Lower`, drivers can
    /// open it as an I/O target. [`DeviceConfig`](crate::DeviceConfig) can place a driver's device
    /// above a simulated one.
    ///
    /// `answer` must not use the kernel, because a driver waits while it runs.
    pub fn simulate_device(
        &self,
        name: Option<&str>,
        answer: impl FnMut(&SimulatedRequest) -> RequestAction + Send + 'static,
    ) -> SimulatedDevice {
        SimulatedDevice::new(&self.runner, name, answer)
    }

    /// Opens a device by a path (`CreateFile`): the device's name or a symbolic link, for instance
    /// `\\.\MyDevice`, optionally followed by a file name. Control devices can also be opened.
    ///
    /// # Errors
    ///
    /// Returns an error if no device has this name, or if the driver fails the open.
    pub fn open(&self, path: &str, identity: Identity) -> Result<File, KernelError> {
        let wanted = path.to_owned();
        let opened = self.runner.ntoskrnl(identity, move |context| {
            let by_name = io::devices::find(context, &wanted);
            let (device, name) = by_name.or_else(|| context.nodes().find(&wanted))?;
            Some(io::send::open(context, device, &name))
        })?;
        if let Some(opened) = opened {
            let file = opened.map_err(|status| KernelError::Status { routine: OPENING, status })?;
            return Ok(File::of_device_object(&self.runner, identity, file));
        }
        let what = format!("`{path}`");
        let path = path.to_owned();
        File::open(&self.runner, &what, identity, move |context, create| {
            let found = find_device(context, &path);
            let (device, name) =
                found.ok_or((Some(Unreachable::NoDevice), NtStatus::OBJECT_NAME_NOT_FOUND))?;
            create_file(context, device, &name, create)
                .map_err(|status| (why_unreachable(context, device), status))
        })
    }

    /// Returns notes on the symbols of driver images, for instance that line information is missing.
    pub(crate) fn notes_on_symbols(&self) -> Vec<String> {
        self.runner.system().environment.images.notes()
    }

    /// Makes a routine fail. Faults of the same routine occur in the order in which they were injected.
    ///
    /// # Errors
    ///
    /// Returns an error if the routine is not one of [`Fault::routines`].
    pub fn inject(&self, fault: Fault) -> Result<(), KernelError> {
        if !Fault::routines().contains(&fault.routine) {
            return Err(KernelError::NoSuchFault(fault.routine));
        }
        self.runner.system().faults.add(fault);
        Ok(())
    }

    /// Removes the injected faults that have not occurred yet.
    pub fn clear_faults(&self) {
        self.runner.system().faults.clear();
    }

    /// Sets a thread's activity id, as a program does for its own thread (`EventActivityIdControl`).
    /// Events written without an activity id carry this id.
    pub fn set_thread_activity(&self, identity: Identity, activity: Guid) {
        self.runner.system().etw.activities().set(identity.thread, activity);
    }

    /// Advances the clock of an idle kernel and fires the timers that come due.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn advance(&self, duration: Duration) -> Result<(), KernelError> {
        self.runner.run(Identity::IDLE, move |context| {
            let clock = &System::from_thread(context).clock;
            let etw = System::etw_context(context.clone());
            let until = clock.last().saturating_add(clock::ticks(duration));
            while let Some(flush) = controller::next_flush(&etw).filter(|at| *at <= until) {
                pass_time(context, flush.max(clock.last()));
                controller::flush_what_is_due(&etw);
            }
            pass_time(context, until);
        })?;
        Ok(())
    }

    /// Returns the `FILETIME` that corresponds to a reading of the performance counter.
    pub(super) fn file_time(&self, counter: i64) -> i64 {
        self.runner.system().clock.file_time(counter)
    }

    /// Allows drivers and devices to remain when the kernel is dropped. For programs that return
    /// early with an error.
    pub fn leave_behind(&self) {
        if let Some(guard) = self.runner.guard() {
            guard.turn_off();
        }
    }

    /// Returns the counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let system = self.runner.system();
        let (allocations, frees) = system.pool.counts();
        let etw = system.etw.etw();
        Statistics {
            calls: self.runner.calls(),
            allocations,
            frees,
            notifications: etw.notifications,
            registrations: etw.registration_count(),
        }
    }

    /// Returns the lines that drivers printed with `DbgPrint`, oldest first.
    #[must_use]
    pub fn debug_output(&self) -> Vec<String> {
        self.runner.system().ntoskrnl.printed()
    }

    /// Notifies drivers that the system shuts down. They stay loaded.
    ///
    /// Sends `IRP_MJ_SHUTDOWN` to the devices that `IoRegisterShutdownNotification` and
    /// `IoRegisterLastChanceShutdownNotification` named.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks, for instance because of a request that is not
    /// completed.
    pub fn shut_down(&self) -> Result<(), KernelError> {
        self.runner.ntoskrnl(Identity::SYSTEM, |context| {
            io::shutdown::shut_down(context);
        })?;
        Ok(())
    }

    /// Returns the entries that drivers wrote to the system's event log with `IoWriteErrorLogEntry`, oldest
    /// first.
    #[must_use]
    pub fn error_log(&self) -> Vec<ErrorLogEntry> {
        io::error_log::entries(&self.runner.system().ntoskrnl)
    }

    /// Returns the messages in the logs of `WppRecorder.sys`, which keep each driver's newest messages.
    #[must_use]
    pub fn recorder_messages(&self) -> Vec<RecorderMessage> {
        self.runner.system().etw.recorder().messages()
    }

    /// Returns the verifier's warnings: the violations that do not bugcheck. A violation is
    /// reported once for each event that causes it or, if no event does, once for each driver
    /// source line.
    #[must_use]
    pub fn warnings(&self) -> Vec<Violation> {
        self.runner.system().verifier.kept(false)
    }

    /// Returns the verifier's notes, which are about style: the code works, but its trace is less useful
    /// to readers. `KernelConfig::notes` turns them off.
    #[must_use]
    pub fn notes(&self) -> Vec<Violation> {
        self.runner.system().verifier.kept(true)
    }

    /// Returns the peak use of the 24 KiB kernel stack in bytes, by the name of the driver routine
    /// that the kernel called. The stack space that the Windows kernel's own code would use is not
    /// included.
    #[must_use]
    pub fn stack_use(&self) -> BTreeMap<String, usize> {
        self.runner.system().environment.stack_use()
    }

    /// Sets whether drivers run where page faults are not allowed, as in the paging path. Drivers
    /// must then write events with `EVENT_WRITE_FLAG_NO_FAULTING`.
    pub fn forbid_page_faults(&self, forbidden: bool) {
        self.runner.system().etw.forbid_page_faults(forbidden);
    }

    /// Sets whether processes open files for synchronous requests from now on, as `CreateFile` does
    /// without `FILE_FLAG_OVERLAPPED`. While a request on such a file is sent to the driver, the
    /// thread is in a critical region.
    pub fn open_synchronous(&self, is_synchronous: bool) {
        io::send::open_synchronous(&self.runner.system().ntoskrnl, is_synchronous);
    }

    /// Sets the folder that drivers find at `\??\C:`, the system volume. Drivers cannot access
    /// anything outside it, neither through `..` nor through symbolic links. If no folder is set,
    /// there is no volume.
    pub fn set_folder(&self, folder: &Path) {
        files::set_folder(&self.runner.system().ntoskrnl, folder);
    }

    /// Sets a value in a service's parameters key in the registry, which the driver opens with
    /// `WdfDriverOpenParametersRegistryKey`, or with `Parameters` below its registry path. The driver is
    /// loaded under this service name; the value can be set before or after the load.
    ///
    /// # Panics
    ///
    /// Panics if the service name or the value name is invalid.
    pub fn set_parameter(&self, service: &str, name: &str, value: impl Into<RegistryValue>) {
        self.set_registry_value(&parameters_path(service), name, value)
            .expect("both names are valid in the registry");
    }

    /// Returns the current value in a service's parameters key, or `None` if there is none.
    #[must_use]
    pub fn parameter(&self, service: &str, name: &str) -> Option<RegistryValue> {
        self.registry_value(&parameters_path(service), name)
    }

    /// Sets a value of a registry key, given the key's absolute path, for instance
    /// `\Registry\Machine\Software\Contoso`. Creates the key if it does not exist. An empty name denotes
    /// the key's default value.
    ///
    /// # Errors
    ///
    /// Returns an error if the path or the name is invalid.
    pub fn set_registry_value(
        &self,
        path: &str,
        name: &str,
        value: impl Into<RegistryValue>,
    ) -> Result<(), KernelError> {
        let registry = &self.runner.system().registry;
        registry.set_at(path, name, value.into()).map_err(|status| KernelError::Status {
            routine: "setting a value in the registry",
            status,
        })
    }

    /// Returns the current value of a registry key, given the key's absolute path, or `None` if
    /// there is none.
    #[must_use]
    pub fn registry_value(&self, path: &str, name: &str) -> Option<RegistryValue> {
        self.runner.system().registry.value_of(path, name)
    }

    /// Applies the changes in a Registry Editor file to the registry.
    ///
    /// # Errors
    ///
    /// Returns an error if a path or a name in the file is invalid.
    pub fn import_registry(&self, file: &RegistryFile) -> Result<(), KernelError> {
        file.apply(&self.runner.system().registry)
            .map_err(|status| KernelError::Status { routine: "changing the registry", status })
    }
}
