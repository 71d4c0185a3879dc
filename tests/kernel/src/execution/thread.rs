//! The threads that run driver code: their identity, IRQL, stack and turns.

use std::{
    any::{Any, TypeId},
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    rc::Rc,
    sync::Arc,
    thread::ThreadId,
};

use super::{
    call::Call,
    environment::Environment,
    identity::Identity,
    schedule::{self, Baton},
    stack::Stack,
};
use crate::ground::{access::Finding, bugcheck::BugCheck, irql::Irql, rule::Rule};

/// The number of a thread's last calls that a bugcheck reports.
const HISTORY: usize = 16;

/// A callback that tells the waiter for a job of a bugcheck.
pub type OnBugCheck = Box<dyn FnOnce(BugCheck)>;

/// The services above the threads, as far as threads call them.
pub trait Host: Any + Send + Sync {
    /// Returns the known defect of an address.
    fn finding(&self, address: u64) -> Option<Finding>;

    /// Runs the work that waited for a thread's IRQL to fall below `DISPATCH_LEVEL`.
    fn irql_lowered(&self, thread: &Rc<Thread>, call: Call);

    /// Returns the thread's state that driver code must preserve. Called when a thread enters
    /// driver code.
    fn driver_entered(&self, thread: &Thread) -> u128;

    /// Checks that state after the driver's routine has returned. `what` names the routine.
    fn driver_left(&self, thread: &Thread, what: &str, before: u128);
}

/// The state of a thread that runs driver code.
pub struct Thread {
    environment: Arc<Environment>,
    host: Arc<dyn Host>,
    id: ThreadId,
    identity: Cell<Identity>,
    pub(super) irql: Cell<Irql>,
    call: Cell<Call>,
    history: RefCell<VecDeque<Call>>,
    /// The number of kernel calls that this thread's drivers made.
    calls: Cell<u64>,
    /// The processor that the thread is on.
    processor: u16,
    /// The baton and the thread's number, if threads take turns.
    baton: Option<(Arc<Baton>, usize)>,
    stack: Stack,
    /// The number of nested calls of driver code.
    pub(super) depth: Cell<u32>,
    /// The rule that driver code breaks by returning at a different IRQL.
    irql_rule: Cell<Rule>,
    /// The state that services keep for this thread, by type.
    locals: RefCell<HashMap<TypeId, Rc<dyn Any>>>,
    /// Wakes the waiter for the job that this thread runs.
    on_bugcheck: RefCell<Option<OnBugCheck>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Thread>>> = const { RefCell::new(None) };
}

/// Returns the thread that this code runs on. Called only where driver code enters the kernel (by
/// the gateways and by faults), which pass the thread on.
///
/// # Panics
///
/// Panics if driver code enters the kernel on a thread that is not a kernel's, which no driver
/// can cause.
pub fn current() -> Rc<Thread> {
    try_current().expect("driver code runs on the kernel's threads only")
}

/// Returns the thread that this code runs on, or `None` if it is not a kernel's thread.
pub fn try_current() -> Option<Rc<Thread>> {
    CURRENT.with_borrow(Clone::clone)
}

impl Thread {
    /// Turns this operating system thread into a thread of a kernel.
    pub fn become_current(
        environment: Arc<Environment>,
        host: Arc<dyn Host>,
        processor: u16,
        baton: Option<(Arc<Baton>, usize)>,
    ) -> Rc<Self> {
        let thread = Rc::new(Self {
            environment,
            host,
            id: std::thread::current().id(),
            identity: Cell::new(Identity::SYSTEM),
            irql: Cell::new(Irql::PASSIVE_LEVEL),
            call: Cell::new(Call::NONE),
            history: RefCell::new(VecDeque::with_capacity(HISTORY)),
            calls: Cell::new(0),
            processor,
            baton,
            stack: Stack::new(),
            depth: Cell::new(0),
            irql_rule: Cell::new(Rule::CallbackIrql),
            locals: RefCell::default(),
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

    /// Returns the id of the operating system thread, by which locks identify their owners.
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

    /// Returns the last call that the thread's drivers made.
    pub const fn last_call(&self) -> Call {
        self.call.get()
    }

    /// Returns the processor that the thread is on.
    pub const fn processor(&self) -> u16 {
        self.processor
    }

    /// Returns the stack that driver code runs on.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns a return address in words.
    pub fn place(&self, return_address: u64) -> String {
        self.environment.images.place(return_address)
    }

    /// Returns a service's state for this thread.
    pub fn local<T: Default + 'static>(&self) -> Rc<T> {
        let mut locals = self.locals.borrow_mut();
        let local = locals
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Rc::new(T::default()));
        Rc::clone(local)
            .downcast()
            .unwrap_or_else(|_| unreachable!("locals are kept by their types"))
    }

    /// Records a call by the thread's driver. Ends the thread if the kernel has bugchecked, and
    /// may let other threads run first.
    pub(super) fn enter(&self, name: &'static str, return_address: u64, stack: u64) -> Call {
        if self.environment.has_crashed() {
            park();
        }
        if self.irql.get() < Irql::DISPATCH_LEVEL {
            self.turn_may_end();
        }
        let call = Call {
            name,
            return_address,
            irql: self.irql.get(),
            stack,
        };
        self.call.set(call);
        self.calls.set(self.calls.get() + 1);
        let mut history = self.history.borrow_mut();
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(call);
        call
    }

    /// Returns the number of kernel calls that the thread's drivers made since the last call of
    /// this method.
    pub fn take_calls(&self) -> u64 {
        self.calls.take()
    }

    /// Marks a point where the thread's turn can end.
    pub fn turn_may_end(&self) {
        if let Some((baton, number)) = &self.baton {
            baton.point(*number);
        }
    }

    /// Returns whether other threads run together with this one.
    pub fn has_company(&self) -> bool {
        self.baton.is_some() || self.environment.is_parallel()
    }

    /// Lets other threads run. `looks` is the number of earlier calls in the same wait. Returns
    /// `false` if waiting longer is pointless.
    pub fn give_way(&self, looks: u128) -> bool {
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

    /// Runs `body` as another identity.
    pub fn as_identity<R>(&self, identity: Identity, body: impl FnOnce() -> R) -> R {
        let before = self.identity.replace(identity);
        let result = body();
        self.identity.set(before);
        result
    }

    /// Returns the rule that driver code breaks if it returns at an IRQL different from the one it
    /// was called at.
    pub const fn irql_rule(&self) -> Rule {
        self.irql_rule.get()
    }

    /// Runs `body`, in which driver code that returns at a different IRQL breaks `rule`.
    pub fn with_irql_rule<R>(&self, rule: Rule, body: impl FnOnce() -> R) -> R {
        let before = self.irql_rule.replace(rule);
        let result = body();
        self.irql_rule.set(before);
        result
    }

    /// Bugchecks because a driver broke a rule.
    pub fn stop(&self, rule: Rule, sentence: String) -> ! {
        let message = match rule.number() {
            Some(number) => format!("{sentence} [{number}]"),
            None => sentence,
        };
        self.bugcheck(rule.bugcheck_code(), [rule.parameter(), 0, 0, 0], message)
    }

    /// Bugchecks. The thread never runs again, as on Windows, but the process continues and
    /// reports.
    pub fn bugcheck(&self, code: u32, parameters: [u64; 4], message: String) -> ! {
        let bugcheck = BugCheck {
            code,
            parameters,
            message,
            irql: self.irql(),
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
        self.environment.crash(&bugcheck);
        if let Some(tell) = self.on_bugcheck.take() {
            tell(bugcheck);
        }
        park()
    }
}

/// Ends a thread whose kernel has bugchecked.
pub(super) fn park() -> ! {
    loop {
        std::thread::park();
    }
}
