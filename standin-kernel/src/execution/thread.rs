//! The threads that run driver code: their identity, IRQL, stack and turns.

use std::{
    any::{Any, TypeId},
    cell::{Cell, OnceCell, RefCell},
    collections::{HashMap, VecDeque},
    rc::Rc,
    sync::Arc,
    thread::ThreadId,
};

use super::{
    call::{Call, Preserved},
    environment::Environment,
    identity::Identity,
    schedule::{self, Baton},
    stack::{Stack, Stacks},
    watchdog::Watch,
    yielder::Yielder,
};
use crate::ground::{
    access::AddressError,
    backtrace::{Backtrace, Explained, Step},
    bugcheck::BugCheck,
    clock::Clock,
    irql::Irql,
    memory,
    restore_guard::RestoreGuard,
    rule::Rule,
    shared_data::SharedData,
    unwind::{MAX_FRAMES, Registers},
};

/// The number of a thread's most recent calls that a bugcheck reports.
const HISTORY: usize = 16;

/// The number of waits in a row, with nothing else to run, after which driver code is stopped.
const MAX_IDLE_WAITS: u32 = 20_000;

/// The bugcheck code for driver code that runs forever below `DISPATCH_LEVEL`.
pub(super) const THREAD_STUCK_IN_DEVICE_DRIVER: u32 = 0xEA;

/// The maximum number of frames in a stored backtrace, such as an allocation's.
const SHORT: usize = 24;

/// A callback that reports a bugcheck to the thread that waits for a job.
pub type OnBugCheck = Box<dyn FnOnce(BugCheck)>;

/// The service functions that threads call.
pub trait Host: Any + Send + Sync {
    /// Creates the services' state for a new thread.
    fn of_thread(&self) -> Box<dyn Any>;

    /// Returns the reason that an address is invalid, if it is known.
    fn address_error(&self, address: u64) -> Option<AddressError>;

    /// Returns the kernel's clock.
    fn clock(&self) -> &Clock;

    /// Runs one item of the work that waits for a thread below `DISPATCH_LEVEL`: a work item, or a
    /// system thread until its next wait. Returns `false` if no work waits.
    fn run_work(&self, thread: &Rc<Thread>, call: Call) -> bool;

    /// Returns the counter's reading at which the next timer fires or the next wait of a system thread
    /// ends.
    fn next_due(&self) -> Option<i64>;

    /// Fires the timers that are due by `until`, earliest first, and advances the clock to `until`.
    fn fire_timers(&self, thread: &Rc<Thread>, call: Call, until: i64);

    /// Returns the current contents of the shared user data page. Advances the clock as reading it
    /// does.
    fn shared_data(&self) -> SharedData;

    /// Returns the address of a thread's object. Drivers never access the object itself.
    fn thread_object(&self, thread: &Rc<Thread>) -> u64;

    /// Adds a warning about a driver's call. `sentence` completes the sentence that names the call.
    fn warn(&self, thread: &Rc<Thread>, call: Call, rule: Rule, sentence: &str);

    /// Adds a warning that is not about a call.
    fn warn_once(&self, rule: Rule, sentence: &str);

    /// Runs the work that waited for a thread's IRQL to fall below `DISPATCH_LEVEL`.
    fn irql_lowered(&self, thread: &Rc<Thread>, call: Call);

    /// Returns the thread state that driver code must preserve. Called when a thread enters driver
    /// code.
    fn driver_entered(&self, thread: &Thread) -> u128;

    /// Checks that the state has not changed after the driver routine has returned. `what` names
    /// the routine, and `before` is the state from [`Self::driver_entered`].
    fn driver_left(&self, thread: &Thread, what: &str, before: u128);
}

/// The state of a thread that runs driver code.
pub struct Thread {
    environment: Arc<Environment>,
    services: Box<dyn Any>,
    host: Arc<dyn Host>,
    id: ThreadId,
    identity: Cell<Identity>,
    pub(super) irql: Cell<Irql>,
    call: Cell<Call>,
    history: RefCell<VecDeque<Call>>,
    /// The calls whose routines are running, outermost first. A routine can call the driver, which
    /// can call another routine.
    in_progress: RefCell<Vec<Call>>,
    /// The number of calls to the kernel that this thread's drivers made.
    calls: Cell<u64>,
    /// The number of calls at the last wait during which nothing else happened, and the number of such
    /// waits in a row.
    idle_waits: Cell<(u64, u32)>,
    /// The processor on which the thread runs.
    processor: u16,
    /// The baton and the thread's index, if threads take turns.
    baton: Option<(Arc<Baton>, usize)>,
    stacks: Stacks,
    /// The number of nested calls to driver code outside the running DPCs, or `None` outside DPCs.
    depth_of_dpcs: Cell<Option<u32>>,
    /// The watchdog's watch over driver code on this thread.
    pub(super) watch: Watch,
    /// The calls since the last entry into driver code that raised the IRQL and are still in
    /// effect, in order of increasing IRQL.
    pub(super) raises: RefCell<Vec<Raise>>,
    /// The number of nested calls to driver code.
    pub(super) depth: Cell<u32>,
    /// The driver routine that the kernel called from outside and that has not returned.
    pub(super) inside: RefCell<Option<String>>,
    /// The rule that driver code breaks by returning at a different IRQL.
    irql_rule: Cell<Rule>,
    /// The address of the registers with which the driver continues after the current call, if an
    /// exception was raised in it, and otherwise 0.
    pub(super) continuation: Cell<u64>,
    /// The state that services keep for this thread, indexed by type.
    locals: RefCell<HashMap<TypeId, Rc<dyn Any>>>,
    /// Set if the thread runs only while another thread resumes it.
    coroutine: OnceCell<Yielder>,
    /// Called on a bugcheck, to wake the thread that waits for the current job.
    on_bugcheck: RefCell<Option<OnBugCheck>>,
}

/// A call that raised the IRQL.
#[derive(Clone)]
pub(super) struct Raise {
    /// The IRQL after the call.
    pub to: Irql,
    /// The routine that raised it.
    pub routine: &'static str,
    /// The calls that led to the routine.
    pub backtrace: Backtrace,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Thread>>> = const { RefCell::new(None) };
}

/// Returns the current thread. Called only when driver code enters the kernel (in gateways and
/// after faults).
///
/// # Panics
///
/// Panics if the thread does not belong to a kernel. No driver can cause this.
pub fn current() -> Rc<Thread> {
    try_current().expect("driver code runs on the kernel's threads only")
}

/// Returns the current thread, or `None` if it does not belong to a kernel.
pub fn try_current() -> Option<Rc<Thread>> {
    CURRENT.with_borrow(Clone::clone)
}

impl Thread {
    /// Turns the current operating system thread into a thread of a kernel.
    pub fn become_current(
        environment: Arc<Environment>,
        host: Arc<dyn Host>,
        processor: u16,
        baton: Option<(Arc<Baton>, usize)>,
    ) -> Rc<Self> {
        let stacks = Stacks::new();
        environment.live_stacks.add(&stacks);
        let thread = Rc::new(Self {
            watch: Watch::over_this_thread(environment.time_limit),
            raises: RefCell::default(),
            environment,
            services: host.of_thread(),
            host,
            id: std::thread::current().id(),
            identity: Cell::new(Identity::SYSTEM),
            irql: Cell::new(Irql::PASSIVE_LEVEL),
            call: Cell::new(Call::NONE),
            history: RefCell::new(VecDeque::with_capacity(HISTORY)),
            in_progress: RefCell::default(),
            calls: Cell::new(0),
            idle_waits: Cell::default(),
            processor,
            baton,
            stacks,
            depth_of_dpcs: Cell::new(None),
            depth: Cell::new(0),
            inside: RefCell::default(),
            irql_rule: Cell::new(Rule::CallbackIrql),
            continuation: Cell::new(0),
            locals: RefCell::default(),
            coroutine: OnceCell::new(),
            on_bugcheck: RefCell::new(None),
        });
        CURRENT.set(Some(Rc::clone(&thread)));
        thread
    }

    /// Returns the thread's environment.
    pub const fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    /// Returns the services of the thread's kernel.
    pub const fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// Returns the services' state for the thread.
    pub fn services(&self) -> &dyn Any {
        &*self.services
    }

    /// Returns the id of the operating system thread, which identifies the owners of locks.
    pub const fn id(&self) -> ThreadId {
        self.id
    }

    /// Returns the thread's identity.
    pub const fn identity(&self) -> Identity {
        self.identity.get()
    }

    /// Returns the thread's IRQL.
    pub const fn irql(&self) -> Irql {
        self.irql.get()
    }

    /// Returns the most recent call that the thread's drivers made.
    pub const fn last_call(&self) -> Call {
        self.call.get()
    }

    /// Returns the processor on which the thread runs.
    pub const fn processor(&self) -> u16 {
        self.processor
    }

    /// Returns the stack on which driver code currently runs: the thread's own or the DPC stack.
    pub fn stack(&self) -> &Stack {
        if self.depth_of_dpcs.get().is_some() { self.stacks.of_dpcs() } else { self.stacks.own() }
    }

    /// Returns the thread's stacks.
    pub const fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// Runs `body`, in which driver code runs on the DPC stack.
    pub(super) fn on_stack_of_dpcs<R>(&self, body: impl FnOnce() -> R) -> R {
        let depth = self.depth_of_dpcs.get().unwrap_or_else(|| self.depth.get());
        let _before = RestoreGuard::replace(&self.depth_of_dpcs, Some(depth));
        body()
    }

    /// Returns the number of nested calls to driver code on stacks other than the current one.
    pub(super) fn depth_of_stack(&self) -> u32 {
        self.depth_of_dpcs.get().unwrap_or(0)
    }

    /// Describes a return address.
    pub fn place(&self, return_address: u64) -> String {
        self.environment.images.place(return_address)
    }

    /// Returns a service's state for this thread.
    pub fn local<T: Default + 'static>(&self) -> Rc<T> {
        let mut locals = self.locals.borrow_mut();
        let local = locals.entry(TypeId::of::<T>()).or_insert_with(|| Rc::new(T::default()));
        Rc::clone(local)
            .downcast()
            .unwrap_or_else(|_| unreachable!("each local is stored under its own TypeId"))
    }

    /// Records a call by the thread's driver. Can let other threads run first. Ends the thread if
    /// the kernel has bugchecked.
    pub(super) fn enter(
        &self,
        name: &'static str,
        return_address: u64,
        stack: u64,
        preserved: Preserved,
    ) -> Call {
        if self.environment.has_crashed() {
            park();
        }
        if self.irql.get() < Irql::DISPATCH_LEVEL {
            self.turn_may_end();
            // Another thread may have caused a bugcheck during its turn.
            if self.environment.has_crashed() {
                park();
            }
        }
        let call = Call { name, return_address, irql: self.irql.get(), stack, preserved };
        self.call.set(call);
        self.calls.set(self.calls.get() + 1);
        let mut history = self.history.borrow_mut();
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(call);
        drop(history);
        self.in_progress.borrow_mut().push(call);
        self.watch.note_step();
        if self.watch.is_over() {
            let limit = self.watch.limit_with_calls();
            self.stop_stuck(&format!("ran for {limit:?} of processor time"));
        }
        call
    }

    /// Bugchecks because driver code does not return. `what` completes "driver code".
    fn stop_stuck(&self, what: &str) -> ! {
        let backtrace = self.backtrace();
        let place = self.explain(&backtrace).place;
        let Call { name, irql, .. } = self.call.get();
        self.bugcheck(
            THREAD_STUCK_IN_DEVICE_DRIVER,
            [0; 4],
            format!(
                "driver code {what} at {irql} and did not return; its last call is {name} from {place}"
            ),
            &backtrace,
        );
    }

    /// Records that the running routine waited and nothing else happened meanwhile. Bugchecks if the
    /// driver only does that: nothing is left that could end its loop.
    pub(super) fn note_idle_wait(&self) {
        let (calls, waits) = self.idle_waits.get();
        let waits = if self.calls.get() == calls + 1 { waits + 1 } else { 1 };
        self.idle_waits.set((self.calls.get(), waits));
        if waits == MAX_IDLE_WAITS {
            self.stop_stuck(&format!(
                "waited {waits} times in a row, without another call and with nothing else to run,"
            ));
        }
    }

    /// Records that the routine of the last call returns.
    pub(super) fn leave(&self) {
        self.in_progress.borrow_mut().pop();
        self.watch.note_step();
    }

    /// Returns the calls that led to the running routine, from the routine's call to the outermost
    /// frame of driver code.
    pub fn backtrace(&self) -> Backtrace {
        self.backtrace_of(MAX_FRAMES)
    }

    /// Returns the innermost frames of [`Self::backtrace`].
    pub fn short_backtrace(&self) -> Backtrace {
        self.backtrace_of(SHORT)
    }

    fn backtrace_of(&self, limit: usize) -> Backtrace {
        let mut steps = Backtrace::new();
        for call in self.in_progress.borrow().iter().rev() {
            if steps.len() >= limit {
                break;
            }
            if !steps.is_empty() {
                steps.push(Step::Routine(call.name));
            }
            self.walk(call.registers(), true, limit - steps.len(), &mut steps);
        }
        steps
    }

    /// Returns the calls that led to an instruction of driver code, or to an instruction after a call.
    pub(super) fn backtrace_from(&self, registers: Registers, is_return: bool) -> Backtrace {
        let mut steps = Backtrace::new();
        self.walk(registers, is_return, MAX_FRAMES, &mut steps);
        let outer = self.backtrace();
        if let (Some(call), false) = (self.in_progress.borrow().last(), outer.is_empty()) {
            if !steps.is_empty() {
                steps.push(Step::Routine(call.name));
            }
            steps.extend(outer);
        }
        steps
    }

    fn walk(&self, registers: Registers, is_return: bool, limit: usize, backtrace: &mut Backtrace) {
        let read = |address: u64| {
            // Driver code has no other stacks, and the walk must not read other memory.
            self.stacks.contains(address).then(|| memory::read(address).ok()).flatten()
        };
        let images = &self.environment.images;
        let frames = images.walk(registers, is_return, limit, read);
        backtrace.extend(frames.into_iter().map(Step::Code));
    }

    /// Describes a backtrace.
    pub fn explain(&self, backtrace: &Backtrace) -> Explained {
        self.environment.images.explain(backtrace)
    }

    /// Returns the number of calls to the kernel that the thread's drivers made since the last call of
    /// this method.
    pub fn take_calls(&self) -> u64 {
        self.calls.take()
    }

    /// Marks a point at which the thread's turn can end.
    pub fn turn_may_end(&self) {
        if let Some((baton, number)) = &self.baton {
            baton.point(*number);
        }
    }

    /// Makes this thread a coroutine, which runs only while another thread resumes it.
    pub(super) fn enter_coroutine(&self, yielder: Yielder) {
        // A thread becomes a coroutine when it starts, and remains one.
        drop(self.coroutine.set(yielder));
    }

    /// Returns the coroutine's view of this thread, if it is a coroutine.
    pub fn coroutine(&self) -> Option<&Yielder> {
        self.coroutine.get()
    }

    /// Lets the resuming thread run, at most until the counter reads `deadline`. Returns `false` if
    /// this thread is not a coroutine.
    pub fn pause(&self, deadline: Option<i64>) -> bool {
        let Some(yielder) = self.coroutine() else {
            return false;
        };
        self.watch.set_inside(false);
        if !yielder.pause(deadline) {
            park();
        }
        self.watch.set_inside(true);
        if self.environment.has_crashed() {
            park();
        }
        true
    }

    /// Records that the wait in which this thread paused is over.
    pub fn wait_is_over(&self) {
        if let Some(yielder) = self.coroutine() {
            yielder.go_on();
        }
    }

    /// Returns the number of nested calls to driver code.
    pub const fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// Returns whether other threads run together with this thread.
    pub fn has_company(&self) -> bool {
        self.baton.is_some() || self.environment.is_parallel()
    }

    /// Lets other threads run. `looks` is the number of previous calls in this wait. Returns
    /// `false` if waiting longer is pointless.
    pub fn give_way(&self, looks: u128) -> bool {
        if self.pause(None) {
            return looks < schedule::HOPELESS as u128;
        }
        match &self.baton {
            Some((baton, number)) => baton.give_way(*number),
            None => schedule::pause(looks),
        }
    }

    /// Sends a bugcheck to `on_bugcheck` from now on.
    pub fn watch(&self, on_bugcheck: OnBugCheck) {
        self.on_bugcheck.replace(Some(on_bugcheck));
    }

    /// Runs a job as `identity`, and sends a bugcheck during the job to `on_bugcheck`.
    pub fn run_job(&self, identity: Identity, on_bugcheck: OnBugCheck, job: impl FnOnce()) {
        self.on_bugcheck.replace(Some(on_bugcheck));
        self.as_identity(identity, job);
        self.on_bugcheck.take();
    }

    /// Runs `body` with another identity.
    pub fn as_identity<R>(&self, identity: Identity, body: impl FnOnce() -> R) -> R {
        let _before = RestoreGuard::replace(&self.identity, identity);
        body()
    }

    /// Returns the rule that driver code breaks by returning at an IRQL different from the IRQL at its
    /// call.
    pub const fn irql_rule(&self) -> Rule {
        self.irql_rule.get()
    }

    /// Runs `body`, in which driver code that returns at a different IRQL breaks `rule`.
    pub fn with_irql_rule<R>(&self, rule: Rule, body: impl FnOnce() -> R) -> R {
        let _before = RestoreGuard::replace(&self.irql_rule, rule);
        body()
    }

    /// Bugchecks because a driver broke a rule in its current call.
    pub fn stop(&self, rule: Rule, sentence: String) -> ! {
        self.stop_at(rule, sentence, &self.backtrace())
    }

    /// Bugchecks because a driver broke a rule at the innermost location of `backtrace`.
    pub fn stop_at(&self, rule: Rule, sentence: String, backtrace: &Backtrace) -> ! {
        let message = match rule.number() {
            Some(number) => format!("{sentence} [{number}]"),
            None => sentence,
        };
        let parameters = [rule.parameter(), 0, 0, 0];
        self.bugcheck(rule.bugcheck_code(), parameters, message, backtrace)
    }

    /// Bugchecks. As on Windows, the thread never runs again, but the process continues and reports the
    /// bugcheck.
    pub fn bugcheck(
        &self,
        code: u32,
        parameters: [u64; 4],
        message: String,
        backtrace: &Backtrace,
    ) -> ! {
        let bugcheck = BugCheck {
            code,
            parameters,
            message,
            irql: self.irql(),
            stack: self.explain(backtrace).lines,
            calls: self
                .history
                .borrow()
                .iter()
                .rev()
                .map(|call| {
                    let place = self.place(call.return_address);
                    format!("{} at {} from {place}", call.name, call.irql)
                })
                .collect(),
        };
        self.environment.count_calls(self.take_calls());
        if let Some(routine) = self.inside.take() {
            // The thread never returns, so its stack use is recorded now.
            let is_dpc = self.depth_of_dpcs.get() == Some(0);
            let stack = if is_dpc { self.stack() } else { self.stacks.own() };
            self.environment.note_stack(&routine, stack.most_used());
        }
        self.environment.crash(&bugcheck);
        self.end_with(bugcheck)
    }

    /// Ends the thread because its kernel has bugchecked, and wakes the thread that waits for it.
    pub(super) fn end_with(&self, bugcheck: BugCheck) -> ! {
        if let Some(tell) = self.on_bugcheck.take() {
            tell(bugcheck);
        }
        park()
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.environment.live_stacks.remove(&self.stacks);
    }
}

/// Ends a thread whose kernel has bugchecked.
pub(super) fn park() -> ! {
    loop {
        std::thread::park();
    }
}
