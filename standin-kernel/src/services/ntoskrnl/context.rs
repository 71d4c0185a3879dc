//! The state of ntoskrnl.exe's routines, and the context in which they run.

use std::sync::{Arc, atomic::AtomicUsize};

use parking_lot::{Mutex, MutexGuard};

use crate::{
    execution::{context::ServiceContext, routine::Routine},
    ground::{clock::Clock, flight, irql::Irql, memory::BadAddress, rule::Rule},
    services::{
        managers::{
            module_states::ModuleStates,
            nodes::Nodes,
            plug_and_play::PlugAndPlay,
            pool::{Pool, Tag, Wanted},
            registry::store::Registry,
            thread_objects::ThreadObjects,
            wmi_events::WmiEvents,
        },
        verifier::faults::Faults,
    },
};

/// The routines that `MmGetSystemRoutineAddress` finds.
#[derive(Clone, Copy)]
pub struct SystemRoutines {
    /// Returns the address of an ntoskrnl.exe routine, by name.
    pub find: fn(&str) -> Option<u64>,
    /// The routines that this kernel hides.
    pub hidden: &'static [&'static str],
}

/// The services that the routines use.
pub struct Uses {
    /// The kernel's pool.
    pub pool: Arc<Pool>,
    /// The injected faults.
    pub faults: Arc<Faults>,
    /// The kernel's clock.
    pub clock: Arc<Clock>,
    /// The registry.
    pub registry: Arc<Registry>,
    /// The devices that the Plug and Play manager knows: KMDF and WDM drivers' devices.
    pub devices: Arc<dyn PlugAndPlay>,
    /// The devices of WDM drivers.
    pub nodes: Arc<Nodes>,
    /// The addresses of threads' objects.
    pub thread_objects: Arc<ThreadObjects>,
    /// The WMI events that drivers fire.
    pub wmi_events: Arc<WmiEvents>,
}

/// The state of ntoskrnl.exe's routines, except ETW's.
pub struct Ntoskrnl {
    uses: Uses,
    printed: Mutex<Printed>,
    state: Arc<Mutex<ModuleStates>>,
    processors: u16,
    routines: SystemRoutines,
    queued_apcs: AtomicUsize,
}

/// The lines that drivers printed.
#[derive(Default)]
struct Printed {
    /// The lines, oldest first.
    lines: Vec<String>,
    /// The total length of the lines in bytes.
    bytes: u64,
}

impl Ntoskrnl {
    /// Creates the routines' state from the services that they use and the modules' state.
    pub fn new(
        uses: Uses,
        state: Arc<Mutex<ModuleStates>>,
        routines: SystemRoutines,
        processors: u16,
    ) -> Self {
        Self {
            uses,
            routines,
            processors,
            printed: Mutex::default(),
            state,
            queued_apcs: AtomicUsize::new(0),
        }
    }

    /// Locks the modules' state. The lock is never held during a call to the driver or a bugcheck.
    pub fn state(&self) -> MutexGuard<'_, ModuleStates> {
        self.state.lock()
    }

    /// Returns the kernel's clock.
    pub fn clock(&self) -> &Clock {
        &self.uses.clock
    }

    /// Returns the devices of WDM drivers.
    pub fn nodes(&self) -> &Nodes {
        &self.uses.nodes
    }

    /// Returns the number of processors.
    pub const fn processors(&self) -> u16 {
        self.processors
    }

    /// Returns the number of queued APCs. It changes only while the state is locked. Every call
    /// that lowers the IRQL reads it.
    pub const fn queued_apcs(&self) -> &AtomicUsize {
        &self.queued_apcs
    }

    /// Returns the lines that drivers printed, oldest first.
    pub fn printed(&self) -> Vec<String> {
        self.printed.lock().lines.clone()
    }
}

/// A module's exports.
pub type Entries = &'static [Routine<Context>];

/// The context in which the routines run.
pub type Context = ServiceContext<Arc<Ntoskrnl>>;

impl Context {
    /// Returns the kernel's pool.
    pub fn pool(&self) -> &Pool {
        &self.service.uses.pool
    }

    /// Returns the injected faults.
    pub fn faults(&self) -> &Faults {
        &self.service.uses.faults
    }

    /// Returns the address of an ntoskrnl.exe routine, if this kernel has the routine.
    pub fn address_of(&self, routine: &str) -> Option<u64> {
        let routines = self.service.routines;
        (routines.find)(routine).filter(|_| !routines.hidden.contains(&routine))
    }

    /// Returns the kernel's clock.
    pub fn clock(&self) -> &Clock {
        &self.service.uses.clock
    }

    /// Returns the kernel's registry.
    pub fn registry(&self) -> &Registry {
        &self.service.uses.registry
    }

    /// Returns the devices that the Plug and Play manager knows.
    pub fn devices(&self) -> &dyn PlugAndPlay {
        &*self.service.uses.devices
    }

    /// Returns the devices of WDM drivers.
    pub fn nodes(&self) -> &Nodes {
        &self.service.uses.nodes
    }

    /// Returns the addresses of threads' objects.
    pub fn thread_objects(&self) -> &ThreadObjects {
        &self.service.uses.thread_objects
    }

    /// Returns the WMI events that drivers fire.
    pub fn wmi_events(&self) -> &WmiEvents {
        &self.service.uses.wmi_events
    }

    /// Returns the number of processors.
    pub fn processors(&self) -> u16 {
        self.service.processors
    }

    /// Locks the modules' state. The lock is never held during a call to the driver or a bugcheck.
    pub fn state(&self) -> MutexGuard<'_, ModuleStates> {
        self.service.state()
    }

    /// Runs `body` on a module's state.
    pub fn with_state<T, R>(&self, body: impl FnOnce(&mut T) -> R) -> R
    where
        T: Default + Send + 'static,
    {
        body(self.state().get())
    }

    /// Allocates a zeroed block of pool for the current call.
    pub fn allocate(&self, size: usize, tag: Tag, paged: bool) -> Option<u64> {
        let wanted = Wanted { size, tag, paged, uninitialized: false, cache_aligned: false };
        self.pool().allocate(wanted, self, self.call())
    }

    /// Frees a block that a module of this kernel allocated and that only this module can free.
    pub fn free_own(&self, block: u64) {
        drop(self.pool().free(block, self, self.call()));
    }

    /// Runs `body` atomically: no other thread changes the kernel's objects during the call. `body`
    /// reads and writes memory at addresses that the driver passed. Bugchecks for a bad address.
    pub fn atomically<R>(
        &self,
        body: impl FnOnce(&mut ModuleStates) -> Result<R, BadAddress>,
    ) -> R {
        let result = body(&mut self.state());
        self.checked(result)
    }

    /// Returns the state without a thread, which other modules need to call these routines.
    pub const fn ntoskrnl(&self) -> &Arc<Ntoskrnl> {
        &self.service
    }

    /// Reads bytes, given an address and a length that the driver passed. Bugchecks for a bad
    /// address.
    pub fn bytes(&self, at: u64, length: u64) -> Vec<u8> {
        /// The maximum length of one copy, so that a wrong length counts as a bad address.
        const LIMIT: u64 = 1 << 32;
        self.read_bytes(at, usize::try_from(length.min(LIMIT)).unwrap_or(usize::MAX))
    }

    /// Bugchecks because the driver misused a kernel object. `what` completes "was called from PLACE".
    pub fn stop_for_misuse(&self, what: &str) -> ! {
        self.stop_call(Rule::ObjectMisused, what)
    }

    /// Bugchecks because the address that the driver passed is not the address of `what`.
    pub fn stop_for_wrong(&self, address: u64, what: &str) -> ! {
        self.stop_for_misuse(&format!("with 0x{address:016X}, which is not {what}"))
    }

    /// Bugchecks because the stand-in kernel does not support the driver's request to a routine.
    /// `what` completes "was called from PLACE".
    pub fn stop_for_unprovided(&self, what: &str) -> ! {
        let what = format!("{what}, which the stand-in kernel does not provide");
        self.stop_call(Rule::NotProvided, &what)
    }

    /// Bugchecks if the caller's IRQL is higher than an argument allows. `what` completes "was called".
    pub fn require_irql(&self, highest: Irql, what: &str) {
        let irql = self.call().irql;
        if irql > highest {
            self.stop(
                Rule::irql_of(self.call().name),
                format!(
                    "{} was called {what} at {irql} from {}; the highest IRQL for that is {highest}",
                    self.call().name,
                    self.caller()
                ),
            );
        }
    }

    /// Bugchecks if the caller's IRQL is lower than the routine requires.
    pub fn require_at_least(&self, lowest: Irql) {
        let irql = self.call().irql;
        if irql < lowest {
            self.stop_for_misuse(&format!("at {irql}; it may be called at IRQL >= {lowest}"));
        }
    }

    /// Adds a warning or a note about the current call. `what` completes "was called at IRQL from PLACE".
    pub fn warn(&self, rule: Rule, what: &str) {
        self.host().warn(self.thread(), self.call(), rule, what);
    }

    /// Stores a line that a driver printed.
    pub fn print(&self, line: String) {
        let mut printed = self.service.printed.lock();
        flight::note_output(printed.bytes, &line);
        printed.bytes = printed.bytes.saturating_add(line.len() as u64);
        printed.lines.push(line);
    }
}
