//! The ETW runtime and the context in which its routines run.

use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use etl_file::Guid;
use parking_lot::{Mutex, MutexGuard};

use super::{
    activities::Activities, recorder_logs::Recorder, routes::Routes, state::Etw,
    unspecified::UnspecifiedBehaviour,
};
use crate::{
    execution::context::ServiceContext,
    ground::{clock::Clock, rule::Rule},
    services::{
        managers::{pool::SoundAddresses, wmi_events::WmiEvents},
        verifier::{addresses::Addresses, borrowed::Borrowed, faults::Faults, warnings::Verifier},
    },
};

/// The number of events to check in detail. Detailed checks are slow.
const MAX_DETAILED_CHECKS: u32 = 20_000;

/// The configuration of the runtime.
#[derive(Clone, Copy)]
pub struct EtwConfig {
    /// The number of processors, each with its own buffers.
    pub processors: u16,
    /// The choices for unspecified behavior.
    pub unspecified_behaviour: UnspecifiedBehaviour,
    /// Passes filter data to enable callbacks in which the chain of filters extends past the end.
    pub hostile_filters: bool,
}

/// The services that the runtime uses.
pub struct Uses {
    /// The clock.
    pub clock: Arc<Clock>,
    /// The verifier.
    pub verifier: Arc<Verifier>,
    /// The injected faults.
    pub faults: Arc<Faults>,
    /// The checks of addresses.
    pub addresses: Arc<Addresses>,
    /// The memory that callbacks borrow.
    pub borrowed: Arc<Borrowed>,
    /// The WMI events that drivers fire.
    pub wmi_events: Arc<WmiEvents>,
}

/// The ETW runtime of a kernel.
pub struct EtwRuntime {
    config: EtwConfig,
    uses: Uses,
    state: Mutex<Etw>,
    routes: Routes,
    activities: Activities,
    /// The session bits that filters have passed to providers.
    instances: AtomicU64,
    no_page_faults: AtomicBool,
    detailed_checks: AtomicU32,
    /// The last message number from the sequence that sessions share.
    sequence: AtomicU32,
    /// The logs of `WppRecorder.sys`.
    recorder: Mutex<Recorder>,
}

/// The locked state of the runtime. Changes are applied to the routes before the lock is released.
pub struct EtwGuard<'a> {
    etw: MutexGuard<'a, Etw>,
    routes: &'a Routes,
    changed: bool,
}

impl Deref for EtwGuard<'_> {
    type Target = Etw;

    fn deref(&self) -> &Etw {
        &self.etw
    }
}

impl DerefMut for EtwGuard<'_> {
    fn deref_mut(&mut self) -> &mut Etw {
        self.changed = true;
        &mut self.etw
    }
}

impl Drop for EtwGuard<'_> {
    fn drop(&mut self) {
        if self.changed {
            self.routes.replace(self.etw.routes());
        }
    }
}

impl EtwRuntime {
    /// Creates a runtime without registrations or sessions.
    pub fn new(config: EtwConfig, uses: Uses) -> Self {
        Self {
            state: Mutex::new(Etw::new(config.unspecified_behaviour)),
            config,
            uses,
            routes: Routes::default(),
            activities: Activities::default(),
            instances: AtomicU64::new(0),
            no_page_faults: AtomicBool::new(false),
            detailed_checks: AtomicU32::new(0),
            sequence: AtomicU32::new(0),
            recorder: Mutex::default(),
        }
    }

    /// Locks the state. The lock is never held during a call to the driver.
    pub fn etw(&self) -> EtwGuard<'_> {
        EtwGuard { etw: self.state.lock(), routes: &self.routes, changed: false }
    }

    /// Returns the activity ids.
    pub const fn activities(&self) -> &Activities {
        &self.activities
    }

    /// Locks the logs of `WppRecorder.sys`. The lock is never held during a bugcheck.
    pub fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock()
    }

    /// Sets whether drivers run where page faults are not allowed.
    pub fn forbid_page_faults(&self, forbidden: bool) {
        self.no_page_faults.store(forbidden, Ordering::Relaxed);
    }
}

/// The runtime, and its state for one thread. All contexts of the thread share this value, so that
/// a call changes no reference counts that other threads also use.
pub struct OfThread {
    runtime: Arc<EtwRuntime>,
    /// Set while `EtwRegister` is running and has not stored its handle yet.
    registering: Cell<bool>,
    /// The thread's activity id before `EVENT_ACTIVITY_CTRL_CREATE_SET_ID`.
    replaced_activity: Cell<Option<Guid>>,
    /// The addresses that the thread recently passed and that were not in freed blocks.
    sound: SoundAddresses,
}

impl OfThread {
    /// Creates the initial state of a thread.
    pub fn new(runtime: Arc<EtwRuntime>) -> Self {
        Self {
            runtime,
            registering: Cell::new(false),
            replaced_activity: Cell::new(None),
            sound: SoundAddresses::default(),
        }
    }
}

/// The context in which the runtime's routines run.
pub type Context = ServiceContext<Rc<OfThread>>;

impl Context {
    fn runtime(&self) -> &EtwRuntime {
        &self.service.runtime
    }

    /// Locks the state. The lock is never held during a call to the driver.
    pub fn etw(&self) -> EtwGuard<'_> {
        self.runtime().etw()
    }

    /// Locks the logs of `WppRecorder.sys`. The lock is never held during a bugcheck.
    pub fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.runtime().recorder()
    }

    /// Returns the runtime's configuration.
    pub fn config(&self) -> &EtwConfig {
        &self.runtime().config
    }

    /// Returns the routes of events.
    pub fn routes(&self) -> &Routes {
        &self.runtime().routes
    }

    /// Returns the activity ids.
    pub fn activities(&self) -> &Activities {
        &self.runtime().activities
    }

    /// Returns the kernel's clock.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.runtime().uses.clock
    }

    /// Returns the kernel's verifier.
    pub fn verifier(&self) -> &Verifier {
        &self.runtime().uses.verifier
    }

    /// Returns the injected faults.
    pub fn faults(&self) -> &Faults {
        &self.runtime().uses.faults
    }

    /// Returns the checks of addresses.
    pub fn addresses(&self) -> &Addresses {
        &self.runtime().uses.addresses
    }

    /// Returns the memory that callbacks borrow.
    pub fn borrowed(&self) -> &Borrowed {
        &self.runtime().uses.borrowed
    }

    /// Returns the WMI events that drivers fire.
    pub fn wmi_events(&self) -> &WmiEvents {
        &self.runtime().uses.wmi_events
    }

    /// Adds a warning, once per rule and caller.
    pub fn warn(&self, rule: Rule, sentence: impl FnOnce() -> String) {
        self.verifier().warn(self, rule, sentence);
    }

    /// Checks an address that a driver passes.
    pub fn check_address(&self, what: &str, address: u64, length: u64) {
        let sound = &self.service.sound;
        self.addresses().check(self, sound, what, address, length);
    }

    /// Returns whether a number is an address in memory that drivers can access.
    pub fn is_kernel_address(&self, value: u64) -> bool {
        self.addresses().is_kernel_address(value)
    }

    /// Records that a filter passed a session's bit to a provider.
    pub fn tell_of_instance(&self, bit: u64) {
        self.runtime().instances.fetch_or(bit, Ordering::Relaxed);
    }

    /// Returns the session bits that filters have passed to providers.
    pub fn instances(&self) -> u64 {
        self.runtime().instances.load(Ordering::Relaxed)
    }

    /// Returns whether drivers run where page faults are not allowed.
    pub fn page_faults_forbidden(&self) -> bool {
        self.runtime().no_page_faults.load(Ordering::Relaxed)
    }

    /// Returns the last message number from the sequence that sessions share.
    pub fn sequence(&self) -> &AtomicU32 {
        &self.runtime().sequence
    }

    /// Counts an event, and returns whether to check it in detail.
    pub fn should_check_in_detail(&self) -> bool {
        let looks = &self.runtime().detailed_checks;
        looks.load(Ordering::Relaxed) < MAX_DETAILED_CHECKS
            && looks.fetch_add(1, Ordering::Relaxed) < MAX_DETAILED_CHECKS
    }

    /// Returns whether `EtwRegister` is running on this thread and has not stored its handle yet.
    pub fn is_registering(&self) -> bool {
        self.service.registering.get()
    }

    /// Runs the part of `EtwRegister` that precedes the storing of the handle.
    pub fn while_registering(&self, body: impl FnOnce()) {
        let before = self.service.registering.replace(true);
        body();
        self.service.registering.set(before);
    }

    /// Records the id that `EVENT_ACTIVITY_CTRL_CREATE_SET_ID` replaced, or clears the record when
    /// the id is restored.
    pub fn note_replaced_activity(&self, replaced: Option<Guid>) {
        self.service.replaced_activity.set(replaced);
    }

    /// Returns the id that `EVENT_ACTIVITY_CTRL_CREATE_SET_ID` replaced, if there is one.
    pub fn replaced_activity(&self) -> Option<Guid> {
        self.service.replaced_activity.get()
    }
}
