//! The machine: what a test loads drivers into and uses their devices on.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use crossbeam_channel::{RecvError, Sender};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use zerocopy::IntoBytes;

use crate::{
    abi::{DriverExtension, DriverObject, UnicodeString},
    arena::Arena,
    clock::{self, Clock},
    etw::{
        Activities, ControlError, EnableParameters, Etw, GroupDenial, Guid, Mailbox, OpenPoints,
        Routes, Session, SessionConfig, SessionHandle, SessionReport, SessionStatistics, Target,
        controller, report_left_registered,
    },
    faults::{Fault, Faults},
    gateway::Gateways,
    image::{Image, LoadError},
    kmdf::{self, Completion, Framework, IoRequest, RegistryValue, RequestKind},
    lent::Lent,
    lock_order::LockOrder,
    memory,
    pool::{Block, Pool},
    schedule::{Baton, Schedule},
    status::NtStatus,
    thread::{self, Call, Identity, Thread},
    verifier::{BugCheck, Rule, Verifier, Violation, Violations},
};

/// How many events are looked at more closely, which takes time.
const CLOSER_LOOKS: u32 = 20_000;

/// What a machine is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    /// What its clock shows at first: the same run has the same timestamps.
    pub start: SystemTime,
    /// How many processors it has, 1 to 64. All but the first run what
    /// [`Kernel::together`] gives them.
    pub processors: u16,
    /// What is not documented of ETW.
    pub open_points: OpenPoints,
    /// Whether each block of non-paged pool ends where inaccessible memory begins, and is
    /// inaccessible once it is freed.
    pub special_pool: bool,
    /// Whether the filters that enable callbacks get lead past their end.
    pub hostile_filters: bool,
}

impl Default for KernelConfig {
    /// One processor, and the present time.
    fn default() -> Self {
        Self {
            start: SystemTime::now(),
            processors: 1,
            open_points: OpenPoints::default(),
            special_pool: false,
            hostile_filters: false,
        }
    }
}

/// What the machine's threads share.
pub struct Shared {
    /// What it is made of.
    pub config: KernelConfig,
    /// The clock.
    pub clock: Arc<Clock>,
    /// What is found wrong.
    pub verifier: Verifier,
    /// Routines that are to fail.
    pub faults: Faults,
    /// The framework's objects.
    pub framework: Mutex<Framework>,
    /// Where events go.
    pub routes: Routes,
    /// The activity ids.
    pub activities: Activities,
    /// Pool that is paged.
    pub paged: Arena,
    images: RwLock<Vec<Arc<Image>>>,
    pool: Mutex<Pool>,
    etw: Mutex<Etw>,
    lent: Mutex<Lent>,
    lock_order: Mutex<LockOrder>,
    printed: Mutex<Vec<String>>,
    /// The most of the stack that was used, by what was called.
    stacks: Mutex<BTreeMap<String, usize>>,
    /// Bits of sessions that providers were told in filters.
    instances: AtomicU64,
    no_page_faults: AtomicBool,
    closer_looks: AtomicU32,
    calls: AtomicU64,
    /// Whether threads run at once, so that none may close pageable memory.
    parallel: AtomicBool,
}

/// The ETW runtime, while it is locked. What was changed meanwhile shows in the routes
/// before it is unlocked.
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

impl Shared {
    /// The pool.
    pub fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock()
    }

    /// The ETW runtime. The lock is never held over a call of the driver.
    pub fn etw(&self) -> EtwGuard<'_> {
        EtwGuard {
            etw: self.etw.lock(),
            routes: &self.routes,
            changed: false,
        }
    }

    /// Whether threads run at once.
    pub fn is_parallel(&self) -> bool {
        self.parallel.load(Ordering::Relaxed)
    }

    /// Which locks were held where callbacks are waited for, and which callbacks took.
    pub fn lock_order(&self) -> MutexGuard<'_, LockOrder> {
        self.lock_order.lock()
    }

    /// What callbacks were lent.
    pub fn lent(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock()
    }

    /// The images that are loaded.
    pub fn images(&self) -> RwLockReadGuard<'_, Vec<Arc<Image>>> {
        self.images.read()
    }

    fn images_mut(&self) -> RwLockWriteGuard<'_, Vec<Arc<Image>>> {
        self.images.write()
    }

    /// Keeps a line that a driver printed.
    pub fn print(&self, line: String) {
        self.printed.lock().push(line);
    }

    /// Notes how much of the stack a call of the driver used.
    pub fn note_stack(&self, what: &str, bytes: usize) {
        let mut stacks = self.stacks.lock();
        if let Some(most) = stacks.get_mut(what) {
            *most = bytes.max(*most);
        } else {
            stacks.insert(what.to_owned(), bytes);
        }
    }

    /// Notes that a provider was told of a session by its bit.
    pub fn tell_of_instance(&self, bit: u64) {
        self.instances.fetch_or(bit, Ordering::Relaxed);
    }

    /// The bits of sessions that providers were told.
    pub fn instances(&self) -> u64 {
        self.instances.load(Ordering::Relaxed)
    }

    /// Whether drivers run where page faults are not allowed.
    pub fn page_faults_forbidden(&self) -> bool {
        self.no_page_faults.load(Ordering::Relaxed)
    }

    /// Whether one more event is looked at closely.
    pub fn looks_closer(&self) -> bool {
        self.closer_looks.load(Ordering::Relaxed) < CLOSER_LOOKS
            && self.closer_looks.fetch_add(1, Ordering::Relaxed) < CLOSER_LOOKS
    }

    /// Whether a number is an address of memory that drivers can reach.
    pub fn is_kernel_address(&self, value: u64) -> bool {
        Arena::non_paged().contains(value)
            || self.paged.contains(value)
            || self.is_driver_code(value)
    }

    /// Closes or opens pageable memory, where there is one thread at a time.
    pub fn set_pageable_accessible(&self, accessible: bool) {
        if self.is_parallel() {
            return;
        }
        self.paged.set_accessible(accessible);
        for image in self.images().iter().filter(|image| image.has_pageable()) {
            image.set_pageable_accessible(accessible);
        }
    }

    /// A return address in words: image, offset and, where known, symbol.
    pub fn place(&self, return_address: u64) -> String {
        self.images()
            .iter()
            .find_map(|image| image.place(return_address))
            .map_or_else(
                || format!("0x{return_address:016X}, outside every loaded driver"),
                |place| place.to_string(),
            )
    }

    /// An instruction's address in words, if it is a driver's.
    pub fn instruction(&self, address: u64) -> Option<String> {
        let images = self.images();
        let place = images.iter().find_map(|image| image.instruction(address))?;
        Some(place.to_string())
    }

    /// Whether an address is in a loaded driver, or is the framework's own
    /// unload routine, which a driver object may hold.
    pub fn is_driver_code(&self, address: u64) -> bool {
        self.images().iter().any(|image| image.contains(address))
    }
}

type Job = Box<dyn FnOnce(&Thread) + Send>;

/// Why a call of the machine failed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The file is no driver that can be loaded here.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The machine stopped.
    #[error(transparent)]
    BugCheck(#[from] BugCheck),
    /// A routine of the driver failed.
    #[error("{routine} returned {status}")]
    Status {
        /// The routine.
        routine: &'static str,
        /// What it returned.
        status: NtStatus,
    },
    /// The driver did something wrong that shows at its unload.
    #[error(transparent)]
    Violations(#[from] Violations),
    /// A controller's call failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The routine cannot be made to fail.
    #[error("{0} cannot be made to fail; there are {known}", known = Fault::ROUTINES.join(", "))]
    NoSuchFault(&'static str),
    /// The driver has no unload routine.
    #[error("{0} has no unload routine, so it cannot be unloaded")]
    NotUnloadable(String),
    /// The driver holds the request, and nothing is left that would make it
    /// complete it; time may have to pass first.
    #[error("the driver has not completed the request yet")]
    Pending,
}

/// What the machine has seen so far.
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

/// A piece of work for [`Kernel::together`].
pub type Work = Box<dyn FnOnce() + Send>;

/// How a piece of work ended.
enum End {
    Done,
    Panicked(Box<dyn std::any::Any + Send>),
    Stopped(BugCheck),
}

/// Runs a piece of work on a thread of its own.
fn run_piece(
    shared: Arc<Shared>,
    processor: u16,
    baton: Option<(Arc<Baton>, usize)>,
    over: &Sender<End>,
    piece: Work,
) {
    if let Some((baton, number)) = &baton {
        baton.wait(*number);
    }
    let thread = Thread::become_current(shared, processor, baton.clone());
    let stopped = over.clone();
    thread.watch(Box::new(move |bugcheck| {
        // Nobody waits any more when sending fails.
        drop(stopped.send(End::Stopped(bugcheck)));
    }));
    let end = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(piece)) {
        Ok(()) => thread
            .shared()
            .verifier
            .crashed()
            .map_or(End::Done, End::Stopped),
        Err(payload) => End::Panicked(payload),
    };
    thread
        .shared()
        .calls
        .fetch_add(thread.take_calls(), Ordering::Relaxed);
    drop(over.send(end));
    if let Some((baton, number)) = baton {
        baton.finish(number);
    }
}

/// A stand-in kernel. Its handles ([`Driver`], [`Device`], [`File`]) may be used
/// from any thread; driver code runs on the machine's one processor.
#[derive(Clone)]
pub struct Kernel {
    shared: Arc<Shared>,
    jobs: Sender<Job>,
}

impl Default for Kernel {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernel {
    /// A machine of one processor whose clock starts at the present time.
    #[must_use]
    pub fn new() -> Self {
        Self::with_config(KernelConfig::default())
    }

    /// A machine whose clock starts at `time`: the same run has the same
    /// timestamps.
    #[must_use]
    pub fn starting_at(time: SystemTime) -> Self {
        Self::with_config(KernelConfig {
            start: time,
            ..KernelConfig::default()
        })
    }

    /// A machine that is made as one likes.
    ///
    /// # Panics
    ///
    /// When it has no processor or more than 64, or the system has no thread left.
    #[must_use]
    pub fn with_config(config: KernelConfig) -> Self {
        assert!(
            (1..=64).contains(&config.processors),
            "a machine has 1 to 64 processors, not {}",
            config.processors
        );
        let shared = Arc::new(Shared {
            clock: Arc::new(Clock::starting_at(config.start)),
            verifier: Verifier::default(),
            faults: Faults::default(),
            framework: Mutex::default(),
            routes: Routes::default(),
            activities: Activities::default(),
            paged: Arena::reserve(),
            images: RwLock::default(),
            pool: Mutex::new(Pool::new(config.special_pool)),
            etw: Mutex::new(Etw::new(config.open_points)),
            lent: Mutex::default(),
            lock_order: Mutex::default(),
            printed: Mutex::default(),
            stacks: Mutex::default(),
            instances: AtomicU64::new(0),
            no_page_faults: AtomicBool::new(false),
            closer_looks: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            parallel: AtomicBool::new(false),
            config,
        });
        let (jobs, inbox) = crossbeam_channel::unbounded::<Job>();
        let machine = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("processor 0".to_owned())
            .spawn(move || {
                let thread = Thread::become_current(machine, 0, None);
                for job in inbox {
                    job(&thread);
                }
            })
            .expect("a thread for the processor");
        Self { shared, jobs }
    }

    /// Runs several pieces of work together, each on a thread of its own, and waits until
    /// all are done. They use the machine as ever.
    ///
    /// # Errors
    ///
    /// When the machine stops.
    ///
    /// # Panics
    ///
    /// When one of them does, or the system has no thread left.
    pub fn together(&self, schedule: Schedule, work: Vec<Work>) -> Result<(), KernelError> {
        if let Some(bugcheck) = self.shared.verifier.crashed() {
            return Err(bugcheck.into());
        }
        let baton = match schedule {
            Schedule::Seeded(seed) => Some(Arc::new(Baton::new(work.len(), seed))),
            Schedule::Parallel => None,
        };
        let parallel = schedule == Schedule::Parallel;
        self.shared.parallel.store(parallel, Ordering::Relaxed);
        let (over, ends) = crossbeam_channel::unbounded();
        let count = work.len();
        for (number, piece) in work.into_iter().enumerate() {
            let processor = if parallel {
                u16::try_from(number).unwrap_or(0) % self.shared.config.processors
            } else {
                0
            };
            let shared = Arc::clone(&self.shared);
            let baton = baton.clone().map(|baton| (baton, number));
            let over = over.clone();
            std::thread::Builder::new()
                .name(format!("thread {number}"))
                .spawn(move || run_piece(shared, processor, baton, &over, piece))
                .expect("a thread for the work");
        }
        let mut result = Ok(());
        for _ in 0..count {
            match ends.recv() {
                Ok(End::Done) => {}
                Ok(End::Panicked(payload)) => std::panic::resume_unwind(payload),
                Ok(End::Stopped(bugcheck)) => {
                    result = Err(bugcheck.into());
                    break;
                }
                Err(RecvError) => break,
            }
        }
        self.shared.parallel.store(false, Ordering::Relaxed);
        result
    }

    /// Runs a job on the machine's processor and waits for its end, or for the
    /// machine's.
    fn run<R: Send + 'static>(
        &self,
        identity: Identity,
        job: impl FnOnce(&Thread) -> R + Send + 'static,
    ) -> Result<R, BugCheck> {
        if let Some(bugcheck) = self.shared.verifier.crashed() {
            return Err(bugcheck);
        }
        // A thread of the machine's own does it itself.
        if let Some(thread) = thread::try_current()
            && Arc::ptr_eq(thread.shared(), &self.shared)
        {
            thread.turn_may_end();
            return Ok(thread.as_identity(identity, || {
                let result = job(&thread);
                kmdf::run_work(&thread);
                controller::after_job(&thread);
                result
            }));
        }
        let (answer, result) = crossbeam_channel::bounded(1);
        let stopped = answer.clone();
        let sent = self.jobs.send(Box::new(move |thread| {
            // Nobody waits any more when sending fails, so nothing is lost.
            let on_bugcheck = Box::new(move |bugcheck| drop(stopped.send(Err(bugcheck))));
            thread.run_job(identity, on_bugcheck, || {
                let result = job(thread);
                kmdf::run_work(thread);
                controller::after_job(thread);
                let shared = thread.shared();
                shared
                    .calls
                    .fetch_add(thread.take_calls(), Ordering::Relaxed);
                drop(answer.send(Ok(result)));
            });
        }));
        assert!(sent.is_ok(), "the processor outlives the machine's handles");
        result.recv().unwrap_or_else(|_| {
            Err(self
                .shared
                .verifier
                .crashed()
                .expect("only a bugcheck ends a job early"))
        })
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
        let image = Arc::new(Image::load(path)?);
        self.shared.images_mut().push(Arc::clone(&image));
        let objects = Arc::new(DriverMemory::new(&image, service));
        let driver = Driver {
            kernel: self.clone(),
            image: Arc::clone(&image),
            memory: Arc::clone(&objects),
        };
        let status = self.run(Identity::SYSTEM, move |thread| {
            let arguments = [objects.object.address(), objects.registry_path.address()];
            NtStatus::from_register(thread.call_driver("DriverEntry", image.entry(), arguments))
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

    /// Starts a session (`StartTrace`).
    ///
    /// # Errors
    ///
    /// When the session cannot be started or its file not be created.
    pub fn start_session(&self, config: SessionConfig) -> Result<SessionHandle, KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::start(thread, config)
        })??)
    }

    /// Stops a session and finishes its file (`ControlTrace`).
    ///
    /// # Errors
    ///
    /// When the session is not running, or its file cannot be written.
    pub fn stop_session(&self, session: SessionHandle) -> Result<SessionReport, KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::stop(thread, session)
        })??)
    }

    /// Writes what a session has in its buffers (`ControlTrace`): for a session in memory,
    /// a file of what it holds now.
    ///
    /// # Errors
    ///
    /// When the session is not running, or its file cannot be written.
    pub fn flush_session(&self, session: SessionHandle) -> Result<(), KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::running(thread, session)?.flush()
        })??)
    }

    /// Enables a provider or group for a session, or changes how
    /// (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// When the session is not running, or the provider has too many.
    pub fn enable(
        &self,
        session: SessionHandle,
        target: Target,
        parameters: EnableParameters,
    ) -> Result<(), KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::enable(thread, session, target, &parameters)
        })??)
    }

    /// Disables a provider or group for a session (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn disable(
        &self,
        session: SessionHandle,
        target: Target,
        source: Option<Guid>,
    ) -> Result<(), KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::disable(thread, session, target, source)
        })??)
    }

    /// Asks a provider or group to describe its state (`EnableTraceEx2`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn capture_state(
        &self,
        session: SessionHandle,
        target: Target,
        source: Option<Guid>,
    ) -> Result<(), KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::capture_state(thread, session, target, source)
        })??)
    }

    /// Tells a provider or group a control code of an enable callback that is none of those
    /// there are, as a later Windows may.
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn send_control_code(&self, target: Target, code: u32) -> Result<(), KernelError> {
        self.run(Identity::SYSTEM, move |thread| {
            controller::send_code(thread, target, code);
        })?;
        Ok(())
    }

    /// How often a provider that is registered was used to write an event, whether or not
    /// a session wanted it.
    #[must_use]
    pub fn writes_of(&self, provider: Guid) -> u64 {
        self.shared.etw().writes_of(provider)
    }

    /// Whether a driver is told level 0 where every session asks for it
    /// ([`OpenPoints::level_0_is_told`]), from the next notification on.
    pub fn tell_level_0(&self, told: bool) {
        self.shared.etw().open.level_0_is_told = told;
    }

    /// Sets the providers that a session does not reach by groups, in place of those before
    /// (`TraceSetInformation` with `TraceSetDisallowList`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn set_disallow_list(
        &self,
        session: SessionHandle,
        providers: Vec<Guid>,
    ) -> Result<(), KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            controller::set_disallow_list(thread, session, &providers)
        })??)
    }

    /// Lets no driver join a group from now on.
    pub fn deny_group(&self, group: Guid, denial: GroupDenial) {
        self.shared.etw().denied_groups.insert(group, denial);
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
        self.shared.faults.add(fault);
        Ok(())
    }

    /// Forgets the faults that were injected and have not come yet.
    pub fn clear_faults(&self) {
        self.shared.faults.clear();
    }

    /// Gives a thread an activity id, as a program does with its own thread
    /// (`EventActivityIdControl`): events that name no activity carry it.
    pub fn set_thread_activity(&self, identity: Identity, activity: Guid) {
        self.shared.activities.set(identity.thread, activity);
    }

    /// Lets time pass on an idle machine: timers that come due fire.
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn advance(&self, duration: Duration) -> Result<(), KernelError> {
        self.run(Identity::IDLE, move |thread| {
            let clock = &thread.shared().clock;
            let until = clock.last().saturating_add(clock::ticks(duration));
            while let Some(flush) = controller::next_flush(thread).filter(|at| *at <= until) {
                kmdf::run_timers(thread, flush.max(clock.last()));
                controller::flush_what_is_due(thread);
            }
            kmdf::run_timers(thread, until);
        })?;
        Ok(())
    }

    /// What the machine has seen so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let (allocations, frees) = self.shared.pool().counts();
        let etw = self.shared.etw();
        Statistics {
            calls: self.shared.calls.load(Ordering::Relaxed),
            allocations,
            frees,
            notifications: etw.notifications,
            registrations: etw.registration_count(),
        }
    }

    /// What drivers printed with `DbgPrint`, oldest first.
    #[must_use]
    pub fn debug_output(&self) -> Vec<String> {
        self.shared.printed.lock().clone()
    }

    /// What the verifier saw that is wrong and does not stop a machine, each once for every
    /// place in a driver that it comes from.
    #[must_use]
    pub fn warnings(&self) -> Vec<Violation> {
        self.shared.verifier.warnings()
    }

    /// The most bytes of the 24 KiB of kernel stack that drivers used, by what was called.
    /// What the kernel itself would use is not in it.
    #[must_use]
    pub fn stack_use(&self) -> BTreeMap<String, usize> {
        self.shared.stacks.lock().clone()
    }

    /// Says whether drivers run where page faults are not allowed, as in the path of paging:
    /// events have to be written with `EVENT_WRITE_FLAG_NO_FAULTING` then.
    pub fn forbid_page_faults(&self, forbidden: bool) {
        let flag = &self.shared.no_page_faults;
        flag.store(forbidden, Ordering::Relaxed);
    }

    /// What a session has done so far (`ControlTrace` with `EVENT_TRACE_CONTROL_QUERY`).
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn query_session(&self, session: SessionHandle) -> Result<SessionStatistics, KernelError> {
        self.with_session(session, |session| Ok(session.statistics()))
    }

    /// Keeps a session's full buffers from being written, as a disk that is too slow does,
    /// or lets them go again.
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn hold_writer(&self, session: SessionHandle, hold: bool) -> Result<(), KernelError> {
        self.with_session(session, move |session| {
            session.hold_writer(hold);
            Ok(())
        })
    }

    /// Makes the next so many buffers of a session impossible to write to its file. They are
    /// lost.
    ///
    /// # Errors
    ///
    /// When the session is not running.
    pub fn fail_writes(&self, session: SessionHandle, buffers: u32) -> Result<(), KernelError> {
        self.with_session(session, move |session| {
            session.fail_writes(buffers);
            Ok(())
        })
    }

    /// Attaches a consumer to a session that delivers in real time (`OpenTrace`,
    /// `ProcessTrace`).
    ///
    /// # Errors
    ///
    /// When the session is not running, or does not deliver in real time.
    pub fn open_consumer(&self, session: SessionHandle) -> Result<Consumer, KernelError> {
        let (session, mailbox) = self.with_session(session, |session| {
            session
                .attach()
                .map(|mailbox| (Arc::clone(session), mailbox))
        })?;
        Ok(Consumer { session, mailbox })
    }

    fn with_session<R: Send + 'static>(
        &self,
        session: SessionHandle,
        body: impl FnOnce(&Arc<Session>) -> Result<R, ControlError> + Send + 'static,
    ) -> Result<R, KernelError> {
        Ok(self.run(Identity::SYSTEM, move |thread| {
            body(&controller::running(thread, session)?)
        })??)
    }
}

/// A consumer in real time.
pub struct Consumer {
    session: Arc<Session>,
    mailbox: Arc<Mailbox>,
}

impl Consumer {
    /// The events that were delivered since this was last asked: whole buffers, as they
    /// were flushed. Losses are told by events of [`crate::RT_LOST_EVENT`].
    #[must_use]
    pub fn take(&self) -> Vec<etl_file::EventRecord> {
        self.mailbox.take()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.session.detach(&self.mailbox);
    }
}

impl Kernel {
    /// Sets a value of a service's parameters key in the registry, which a driver
    /// opens with `WdfDriverOpenParametersRegistryKey`. Services are known by the
    /// name that a driver is loaded as, before it is loaded or after.
    pub fn set_parameter(&self, service: &str, name: &str, value: impl Into<RegistryValue>) {
        kmdf::lock_framework(&self.shared)
            .parameters
            .set(service, name, value.into());
    }

    /// A value of a service's parameters key, as it is now.
    #[must_use]
    pub fn parameter(&self, service: &str, name: &str) -> Option<RegistryValue> {
        kmdf::lock_framework(&self.shared)
            .parameters
            .get(service, name)
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
        let handle = self
            .run(identity, move |thread| {
                let (device, name) =
                    kmdf::find_device(thread, &path).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
                kmdf::create_file(thread, device, &name)
            })?
            .map_err(|status| KernelError::Status {
                routine: "opening the device",
                status,
            })?;
        Ok(File {
            kernel: self.clone(),
            identity,
            handle,
        })
    }
}

/// The structures that a driver's entry point gets.
struct DriverMemory {
    object: Block,
    registry_path: Block,
    _extension: Block,
    _texts: [Block; 2],
}

impl DriverMemory {
    fn new(image: &Image, service: &str) -> Self {
        let (path_text, path) = unicode_string(&format!(
            r"\Registry\Machine\System\CurrentControlSet\Services\{service}"
        ));
        let (name_text, driver_name) = unicode_string(&format!(r"\Driver\{service}"));
        let object = Block::zeroed(size_of::<DriverObject>());
        let extension = Block::zeroed(size_of::<DriverExtension>());
        let registry_path = Block::zeroed(size_of::<UnicodeString>());
        let fill = |block: &Block, bytes: &[u8]| {
            memory::write_bytes(block.address(), bytes).expect("the kernel's own memory");
        };
        fill(&registry_path, path.as_bytes());
        fill(
            &object,
            DriverObject {
                // IO_TYPE_DRIVER
                kind: 4,
                size: i16::try_from(size_of::<DriverObject>()).unwrap_or(i16::MAX),
                reserved: 0,
                device_object: 0,
                flags: 0,
                reserved_1: 0,
                driver_start: image.base(),
                driver_size: u32::try_from(image.size()).unwrap_or(u32::MAX),
                reserved_2: 0,
                driver_section: 0,
                driver_extension: extension.address(),
                driver_name,
                hardware_database: 0,
                fast_io_dispatch: 0,
                driver_init: image.entry(),
                driver_start_io: 0,
                driver_unload: 0,
                major_function: [0; 28],
            }
            .as_bytes(),
        );
        fill(
            &extension,
            DriverExtension {
                driver_object: object.address(),
                add_device: 0,
                count: 0,
                reserved: 0,
                service_key_name: driver_name,
            }
            .as_bytes(),
        );
        Self {
            object,
            registry_path,
            _extension: extension,
            _texts: [path_text, name_text],
        }
    }
}

/// A counted string and the memory that its text is in.
fn unicode_string(text: &str) -> (Block, UnicodeString) {
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let block = Block::zeroed(bytes.len());
    memory::write_bytes(block.address(), &bytes).expect("the kernel's own memory");
    let length = u16::try_from(bytes.len()).expect("a path is shorter than 32,767 characters");
    let string = UnicodeString {
        length,
        maximum_length: length,
        reserved: 0,
        buffer: block.address(),
    };
    (block, string)
}

/// A loaded driver.
pub struct Driver {
    kernel: Kernel,
    image: Arc<Image>,
    memory: Arc<DriverMemory>,
}

impl Driver {
    /// What the image imports, each as `module!name`.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        self.image.imports()
    }

    /// The version of KMDF that the driver was built for, unless it has ended its binding.
    #[must_use]
    pub fn framework_version(&self) -> Option<(u32, u32)> {
        kmdf::version_of(&self.kernel.shared, self.memory.object.address())
    }

    /// Offers the driver a device, as the plug-and-play manager does with a
    /// root-enumerated one, and starts it.
    ///
    /// # Errors
    ///
    /// When the driver refuses the device or cannot start it.
    pub fn add_device(&self) -> Result<Device, KernelError> {
        let memory = Arc::clone(&self.memory);
        let handle = self.kernel.run(Identity::SYSTEM, move |thread| {
            kmdf::add_device(thread, memory.object.address())
        })?;
        let handle = handle.map_err(|status| KernelError::Status {
            routine: "adding the device",
            status,
        })?;
        Ok(Device {
            kernel: self.kernel.clone(),
            handle,
        })
    }

    /// Unloads the driver: its unload routine runs, and what it left behind is
    /// reported. Devices are to be removed before.
    ///
    /// # Errors
    ///
    /// When the driver cannot be unloaded, or left pool or registrations behind.
    pub fn unload(self) -> Result<(), KernelError> {
        let address = self.memory.object.address();
        let name = self.image.name();
        let unloaded = self.kernel.run(Identity::SYSTEM, move |thread| {
            let object: DriverObject = thread.read(address);
            if object.driver_unload == 0 {
                return false;
            }
            if object.driver_unload == Gateways::get().framework_unload() {
                kmdf::framework_unload(address);
            } else {
                thread.call_driver("DriverUnload", object.driver_unload, [address]);
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

    /// Takes the driver's leftovers away, and its image, and says what they were.
    fn forget(&self) -> Result<Vec<Violation>, BugCheck> {
        let image = Arc::clone(&self.image);
        self.kernel.run(Identity::SYSTEM, move |thread| {
            let shared = thread.shared();
            let name = image.name();
            let belongs = |call: &Call| image.contains(call.return_address);
            let leaks = shared.pool().take_leaks(&shared.paged, belongs);
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
                        leak.allocated_by.name(),
                        leak.allocated_by.irql,
                        shared.place(leak.allocated_by.return_address)
                    ),
                })
                .collect();
            violations.extend(report_left_registered(thread, belongs, &name));
            shared
                .images_mut()
                .retain(|loaded| !Arc::ptr_eq(loaded, &image));
            violations
        })
    }
}

/// A device that a driver added.
pub struct Device {
    kernel: Kernel,
    handle: u64,
}

impl Device {
    /// Opens the device from a process (`CreateFile`).
    ///
    /// # Errors
    ///
    /// When the driver refuses it.
    pub fn open(&self, identity: Identity) -> Result<File, KernelError> {
        let device = self.handle;
        let handle = self
            .kernel
            .run(identity, move |thread| {
                kmdf::create_file(thread, device, "")
            })?
            .map_err(|status| KernelError::Status {
                routine: "opening the device",
                status,
            })?;
        Ok(File {
            kernel: self.kernel.clone(),
            identity,
            handle,
        })
    }

    /// Sends the device to sleep (D3) and wakes it (D0).
    ///
    /// # Errors
    ///
    /// When the driver refuses.
    pub fn power_cycle(&self) -> Result<(), KernelError> {
        let device = self.handle;
        let status = self.kernel.run(Identity::SYSTEM, move |thread| {
            kmdf::power_cycle(thread, device)
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

    /// The security descriptor that the driver gave the device, as text.
    ///
    /// # Errors
    ///
    /// When the machine has stopped.
    pub fn sddl(&self) -> Result<Option<String>, KernelError> {
        let device = self.handle;
        Ok(self
            .kernel
            .run(Identity::SYSTEM, move |thread| kmdf::sddl(thread, device))?)
    }

    /// Removes the device in order.
    ///
    /// # Errors
    ///
    /// When the machine stops, for instance over a request that was never
    /// completed.
    pub fn remove(self) -> Result<(), KernelError> {
        let device = self.handle;
        self.kernel.run(Identity::SYSTEM, move |thread| {
            kmdf::remove_device(thread, device);
        })?;
        Ok(())
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
        let handle = self
            .kernel
            .run(identity, move |thread| {
                kmdf::create_file(thread, device, &name)
            })?
            .map_err(|status| KernelError::Status {
                routine: "opening the device",
                status,
            })?;
        Ok(File {
            kernel: self.kernel.clone(),
            identity,
            handle,
        })
    }

    /// Pulls the device out: the driver hears of it when it is gone. Files that are
    /// open keep the device's object; it goes with the last one.
    ///
    /// # Errors
    ///
    /// When the machine stops, for instance over a request that was never
    /// completed.
    pub fn surprise_remove(self) -> Result<(), KernelError> {
        let device = self.handle;
        self.kernel.run(Identity::SYSTEM, move |thread| {
            kmdf::surprise_remove(thread, device);
        })?;
        Ok(())
    }
}

/// A file that a process has open on a device.
pub struct File {
    kernel: Kernel,
    identity: Identity,
    handle: u64,
}

/// A request that was sent.
pub struct Request {
    kernel: Kernel,
    identity: Identity,
    handle: u64,
}

impl File {
    fn submit(&self, request: IoRequest) -> Result<Request, KernelError> {
        let file = self.handle;
        let handle = self
            .kernel
            .run(self.identity, move |thread| {
                kmdf::submit(thread, file, &request)
            })?
            .map_err(|status| KernelError::Status {
                routine: "sending the request",
                status,
            })?;
        Ok(Request {
            kernel: self.kernel.clone(),
            identity: self.identity,
            handle,
        })
    }

    /// Starts a read of `length` bytes (`ReadFile`).
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn start_read(&self, length: usize) -> Result<Request, KernelError> {
        self.submit(IoRequest {
            kind: RequestKind::Read,
            input: Vec::new(),
            output_length: length,
        })
    }

    /// Starts a write (`WriteFile`).
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn start_write(&self, bytes: &[u8]) -> Result<Request, KernelError> {
        self.submit(IoRequest {
            kind: RequestKind::Write,
            input: bytes.to_vec(),
            output_length: 0,
        })
    }

    /// Starts a device control (`DeviceIoControl`).
    ///
    /// # Errors
    ///
    /// When the code is not for buffered data, or the machine stops.
    pub fn start_device_control(
        &self,
        code: u32,
        input: &[u8],
        output_length: usize,
    ) -> Result<Request, KernelError> {
        self.submit(IoRequest {
            kind: RequestKind::DeviceControl { code },
            input: input.to_vec(),
            output_length,
        })
    }

    /// Reads `length` bytes and waits for the end.
    ///
    /// # Errors
    ///
    /// When the machine stops, or the driver keeps the request.
    pub fn read(&self, length: usize) -> Result<Completion, KernelError> {
        self.start_read(length)?.finish()
    }

    /// Writes bytes and waits for the end.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn write(&self, bytes: &[u8]) -> Result<Completion, KernelError> {
        self.start_write(bytes)?.finish()
    }

    /// Sends a device control and waits for the end.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn device_control(
        &self,
        code: u32,
        input: &[u8],
        output_length: usize,
    ) -> Result<Completion, KernelError> {
        self.start_device_control(code, input, output_length)?
            .finish()
    }

    /// Closes the file (`CloseHandle`).
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn close(self) -> Result<(), KernelError> {
        let file = self.handle;
        self.kernel
            .run(self.identity, move |thread| kmdf::close_file(thread, file))?;
        Ok(())
    }
}

impl Request {
    /// How the request ended, or nothing if the driver still holds it.
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn try_finish(&self) -> Result<Option<Completion>, KernelError> {
        let request = self.handle;
        Ok(self
            .kernel
            .run(self.identity, move |thread| kmdf::outcome(thread, request))?)
    }

    /// How the request ended. A thread of [`Kernel::together`] gives the others some time to
    /// end it.
    ///
    /// # Errors
    ///
    /// [`KernelError::Pending`] if the driver still holds it.
    pub fn finish(self) -> Result<Completion, KernelError> {
        let mut looks = 0;
        loop {
            if let Some(completion) = self.try_finish()? {
                return Ok(completion);
            }
            let others = thread::try_current().is_some_and(|thread| thread.give_way(looks));
            if !others {
                return Err(KernelError::Pending);
            }
            looks += 1;
        }
    }

    /// Cancels the request (`CancelIoEx`): one that waits in a queue ends, and the
    /// driver is called for one that it holds and made cancelable.
    ///
    /// # Errors
    ///
    /// When the machine stops.
    pub fn cancel(&self) -> Result<(), KernelError> {
        let request = self.handle;
        self.kernel
            .run(self.identity, move |thread| kmdf::cancel(thread, request))?;
        Ok(())
    }
}
