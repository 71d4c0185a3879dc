//! The kernel: what a test loads drivers into, and whose time it moves.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, SystemTime},
};

use etl_file::Guid;

use super::{config::KernelConfig, driver::Driver, error::KernelError, file::File, runner::Runner};
use crate::{
    execution::identity::Identity,
    ground::{
        bugcheck::Violation,
        clock::{self, Clock},
        status::NtStatus,
    },
    services::{
        etw::{controller, service::EtwConfig},
        exports,
        faults::Fault,
        kmdf::{
            file::create_file,
            registry::{Parameters, RegistryValue},
            state::device::find_device,
            timer::run_timers,
        },
        system::System,
    },
};

/// The counts of a kernel so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Calls of the kernel by drivers, each checked against its IRQL ceiling.
    pub calls: u64,
    /// Pool blocks that were allocated.
    pub allocations: u64,
    /// Pool blocks that were freed.
    pub frees: u64,
    /// Enable callbacks that were called.
    pub notifications: u64,
    /// Providers that are registered now.
    pub registrations: usize,
}

/// A stand-in kernel. Its handles ([`Driver`], `Device`, [`File`]) may be
/// used from any thread; driver code runs on the kernel's processors.
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
    /// Makes a kernel of one processor whose clock starts at the present time.
    #[must_use]
    pub fn new() -> Self {
        Self::with_config(KernelConfig::default())
    }

    /// Makes a kernel whose clock starts at `time`: the same run has the same
    /// timestamps.
    #[must_use]
    pub fn starting_at(time: SystemTime) -> Self {
        Self::with_config(KernelConfig {
            start: time,
            ..KernelConfig::default()
        })
    }

    /// Makes a kernel by its configuration.
    ///
    /// # Panics
    ///
    /// When it has no processor or more than 64, or the system has no thread left.
    #[must_use]
    pub fn with_config(config: KernelConfig) -> Self {
        assert!(
            (1..=64).contains(&config.processors),
            "a kernel has 1 to 64 processors, not {}",
            config.processors
        );
        let etw = EtwConfig {
            processors: config.processors,
            unspecified_behaviour: config.unspecified_behaviour,
            hostile_filters: config.hostile_filters,
        };
        let system = System::new(
            Clock::starting_at(config.start),
            config.special_pool,
            etw,
            exports::function_table(),
        );
        Self {
            runner: Runner::start(system),
            processors: config.processors,
        }
    }

    /// Returns what runs the kernel's jobs.
    pub(super) const fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Returns the number of processors.
    pub(super) const fn processors(&self) -> u16 {
        self.processors
    }

    /// Loads a driver: maps the file, binds its imports, and calls its entry
    /// point. The service has the file's name.
    ///
    /// # Errors
    ///
    /// When the file is no driver, imports what the kernel does not provide, or
    /// its entry point fails.
    pub fn load(&self, path: &Path) -> Result<Driver, KernelError> {
        let service = path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        self.load_as(path, &service)
    }

    /// As [`Self::load`], for a service of another name.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn load_as(&self, path: &Path, service: &str) -> Result<Driver, KernelError> {
        Driver::load(&self.runner, path, service)
    }

    /// Opens a device by a path (`CreateFile`): its name or a symbolic link, for
    /// instance `\\.\MyDevice`, and what follows is the file's name. It reaches
    /// control devices, too.
    ///
    /// # Errors
    ///
    /// When nothing has this name, or the driver refuses.
    pub fn open(&self, path: &str, identity: Identity) -> Result<File, KernelError> {
        let path = path.to_owned();
        File::open(&self.runner, identity, move |context| {
            let (device, name) =
                find_device(context, &path).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
            create_file(context, device, &name)
        })
    }

    /// Makes a routine fail. Faults of one routine come in the order they were injected.
    ///
    /// # Errors
    ///
    /// When the routine is none that can be made to fail.
    pub fn inject(&self, fault: Fault) -> Result<(), KernelError> {
        if !Fault::ROUTINES.contains(&fault.routine) {
            return Err(KernelError::NoSuchFault(fault.routine));
        }
        self.runner.system().faults.add(fault);
        Ok(())
    }

    /// Forgets the faults that were injected and have not come yet.
    pub fn clear_faults(&self) {
        self.runner.system().faults.clear();
    }

    /// Gives a thread an activity id, as a program does with its own thread
    /// (`EventActivityIdControl`): events that name no activity carry it.
    pub fn set_thread_activity(&self, identity: Identity, activity: Guid) {
        self.runner
            .system()
            .etw
            .activities()
            .set(identity.thread, activity);
    }

    /// Lets time pass on an idle kernel: timers that come due fire.
    ///
    /// # Errors
    ///
    /// When the kernel bugchecks.
    pub fn advance(&self, duration: Duration) -> Result<(), KernelError> {
        self.runner.run(Identity::IDLE, move |context| {
            let clock = &System::of(context).clock;
            let kmdf = System::kmdf_context(context.clone());
            let etw = System::etw_context(context.clone());
            let until = clock.last().saturating_add(clock::ticks(duration));
            while let Some(flush) = controller::next_flush(&etw).filter(|at| *at <= until) {
                run_timers(&kmdf, flush.max(clock.last()));
                controller::flush_what_is_due(&etw);
            }
            run_timers(&kmdf, until);
        })?;
        Ok(())
    }

    /// Returns the counts so far.
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

    /// Returns what the verifier saw that is wrong and is not a bugcheck, each once for every
    /// place in a driver that it comes from.
    #[must_use]
    pub fn warnings(&self) -> Vec<Violation> {
        self.runner.system().verifier.warnings()
    }

    /// Returns the most bytes of the 24 KiB of kernel stack that drivers used, by what was called.
    /// The stack that the kernel itself would use is not in it.
    #[must_use]
    pub fn stack_use(&self) -> BTreeMap<String, usize> {
        self.runner.system().environment.stack_use()
    }

    /// Says whether drivers run where page faults are not allowed, as in the path of paging:
    /// events have to be written with `EVENT_WRITE_FLAG_NO_FAULTING` then.
    pub fn forbid_page_faults(&self, forbidden: bool) {
        self.runner.system().etw.forbid_page_faults(forbidden);
    }

    /// Sets a value of a service's parameters key in the registry, which a driver
    /// opens with `WdfDriverOpenParametersRegistryKey`. Services are known by the
    /// name that a driver is loaded as, before it is loaded or after.
    pub fn set_parameter(&self, service: &str, name: &str, value: impl Into<RegistryValue>) {
        self.runner
            .system()
            .kmdf
            .framework()
            .part::<Parameters>()
            .set(service, name, value.into());
    }

    /// Returns a value of a service's parameters key, as it is now.
    #[must_use]
    pub fn parameter(&self, service: &str, name: &str) -> Option<RegistryValue> {
        self.runner
            .system()
            .kmdf
            .framework()
            .part::<Parameters>()
            .get(service, name)
    }
}
