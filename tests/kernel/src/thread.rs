//! The threads that run driver code: who they are, their IRQL, and the calls
//! that the driver makes on them.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
    sync::Arc,
};

use crate::{
    clock,
    etw::Guid,
    gateway::Gateways,
    irql::Irql,
    machine::Shared,
    schedule::{self, Baton},
    stack::Stack,
    verifier::{BugCheck, Rule, Violation},
};

/// How many of a thread's last calls a bugcheck reports.
const HISTORY: usize = 16;

/// Process and thread ids, as events record them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The process id.
    pub process: u32,
    /// The thread id.
    pub thread: u32,
}

impl Identity {
    /// The idle thread: what a timer or DPC interrupts on an idle processor.
    pub const IDLE: Self = Self {
        process: 0,
        thread: 0,
    };
    /// A system thread: drivers are loaded and devices started on it, and the
    /// enable callback runs on it.
    pub const SYSTEM: Self = Self {
        process: 4,
        thread: 8,
    };
}

/// A call of a routine by a driver.
#[derive(Clone, Copy)]
pub struct Call {
    number: usize,
    /// Where it returns to: the byte after the call instruction.
    pub return_address: u64,
    /// The caller's IRQL.
    pub irql: Irql,
    /// The caller's stack pointer.
    pub stack: u64,
}

impl Call {
    /// The routine's name.
    pub fn name(&self) -> &'static str {
        Gateways::get()
            .ddi(self.number)
            .map_or("(no call yet)", |ddi| ddi.name)
    }
}

/// Tells whoever waits for a job that the machine stopped.
pub type OnBugCheck = Box<dyn FnOnce(BugCheck)>;

/// The state of a thread that runs driver code.
pub struct Thread {
    shared: Arc<Shared>,
    identity: Cell<Identity>,
    irql: Cell<Irql>,
    call: Cell<Call>,
    history: RefCell<VecDeque<Call>>,
    /// How many calls of the kernel this thread's drivers made.
    calls: Cell<u64>,
    /// The processor that the thread is on.
    processor: u16,
    /// Whose turn it is, where threads take turns, and which of them this is.
    baton: Option<(Arc<Baton>, usize)>,
    stack: Stack,
    /// How many calls of the driver are under way.
    depth: Cell<u32>,
    /// How many of them are of enable callbacks.
    callbacks: Cell<u32>,
    /// Whether `EtwRegister` is under way, which has not stored its handle yet.
    registering: Cell<bool>,
    /// Wait locks that the thread's drivers hold.
    wait_locks: RefCell<Vec<u64>>,
    /// The id that was the thread's before `EVENT_ACTIVITY_CTRL_CREATE_SET_ID`.
    replaced_activity: Cell<Option<Guid>>,
    /// Wakes whoever waits for the job that this thread runs.
    on_bugcheck: RefCell<Option<OnBugCheck>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Thread>>> = const { RefCell::new(None) };
}

/// The thread that this code runs on.
///
/// # Panics
///
/// When driver code reaches the kernel on a thread that is not the machine's,
/// which no driver can bring about.
pub fn current() -> Rc<Thread> {
    try_current().expect("driver code runs on the machine's threads only")
}

/// The thread that this code runs on, if it is a machine's.
pub fn try_current() -> Option<Rc<Thread>> {
    CURRENT.with_borrow(Clone::clone)
}

/// The gateways call this before every routine that a driver calls.
pub extern "win64" fn enter(number: u64, return_address: u64, stack: u64) {
    let thread = current();
    if thread.shared.verifier.has_crashed() {
        park();
    }
    if thread.irql.get() < Irql::DISPATCH_LEVEL {
        thread.turn_may_end();
    }
    let call = Call {
        number: usize::try_from(number).unwrap_or(usize::MAX),
        return_address,
        irql: thread.irql.get(),
        stack,
    };
    thread.call.set(call);
    thread.calls.set(thread.calls.get() + 1);
    {
        let mut history = thread.history.borrow_mut();
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(call);
    }
    let Some(ddi) = Gateways::get().ddi(call.number) else {
        thread.stop(Rule::Internal, format!("gateway {number} leads nowhere"));
    };
    if call.irql > ddi.ceiling {
        thread.stop(
            Rule::irql_of(ddi.name),
            format!(
                "{} was called at {} from {}; the highest IRQL it may be called at is {}",
                ddi.name,
                call.irql,
                thread.shared.place(return_address),
                ddi.ceiling
            ),
        );
    }
}

impl Thread {
    /// Makes this operating system thread one of the machine's.
    pub fn become_current(
        shared: Arc<Shared>,
        processor: u16,
        baton: Option<(Arc<Baton>, usize)>,
    ) -> Rc<Self> {
        let thread = Rc::new(Self {
            calls: Cell::new(0),
            processor,
            baton,
            stack: Stack::new(),
            depth: Cell::new(0),
            callbacks: Cell::new(0),
            registering: Cell::new(false),
            wait_locks: RefCell::default(),
            replaced_activity: Cell::new(None),
            shared,
            identity: Cell::new(Identity::SYSTEM),
            irql: Cell::new(Irql::PASSIVE_LEVEL),
            call: Cell::new(Call {
                number: usize::MAX,
                return_address: 0,
                irql: Irql::PASSIVE_LEVEL,
                stack: 0,
            }),
            history: RefCell::new(VecDeque::with_capacity(HISTORY)),
            on_bugcheck: RefCell::new(None),
        });
        CURRENT.set(Some(Rc::clone(&thread)));
        crate::traps::watch_this_thread();
        thread
    }

    /// The machine that the thread belongs to.
    pub const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Who the thread is.
    pub const fn identity(&self) -> Identity {
        self.identity.get()
    }

    /// The thread's IRQL.
    pub const fn irql(&self) -> Irql {
        self.irql.get()
    }

    /// The driver's call that is being served.
    pub const fn call(&self) -> Call {
        self.call.get()
    }

    /// The processor that the thread is on.
    pub const fn processor(&self) -> u16 {
        self.processor
    }

    /// The stack that driver code runs on.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Takes how many calls of the kernel the thread's drivers made since this was last
    /// asked.
    pub fn take_calls(&self) -> u64 {
        self.calls.take()
    }

    /// A point where another thread's turn may come.
    pub fn turn_may_end(&self) {
        if let Some((baton, number)) = &self.baton {
            baton.point(*number);
        }
    }

    /// Waits for another thread, by asking again and again. `what` completes "waits for".
    pub fn wait_for<T>(&self, what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
        let mut looks = 0;
        loop {
            if let Some(found) = ready() {
                return found;
            }
            if self.shared.verifier.has_crashed() {
                park();
            }
            if !self.give_way(looks) {
                let call = self.call();
                self.stop(
                    Rule::Deadlock,
                    format!(
                        "{} was called from {}, and waits for {what}, which nothing brings about",
                        call.name(),
                        self.shared.place(call.return_address)
                    ),
                );
            }
            looks += 1;
        }
    }

    /// Whether other threads run together with this one.
    pub fn has_company(&self) -> bool {
        self.baton.is_some() || self.shared.is_parallel()
    }

    /// Lets other threads go on, having done so `looks` times already; whether there is a
    /// point in it.
    pub fn give_way(&self, looks: u128) -> bool {
        match &self.baton {
            Some((baton, number)) => baton.give_way(*number),
            None => schedule::pause(looks),
        }
    }

    /// Whether an enable callback runs on this thread.
    pub const fn is_in_enable_callback(&self) -> bool {
        self.callbacks.get() > 0
    }

    /// Calls an enable callback by `body`, and sees that it does not take long (ETW-2.14).
    pub fn in_enable_callback(&self, body: impl FnOnce() -> u64) {
        /// A callback that lets so much time pass has waited for something.
        const LONGEST: std::time::Duration = std::time::Duration::from_secs(1);
        let start = self.shared.clock.last();
        self.callbacks.set(self.callbacks.get() + 1);
        body();
        self.callbacks.set(self.callbacks.get() - 1);
        let took = self.shared.clock.last() - start;
        if took > clock::ticks(LONGEST) {
            self.stop(
                Rule::EnableCallbackBlocks,
                format!(
                    "an enable callback took {} ms; it must not wait",
                    took / (clock::Clock::FREQUENCY / 1000)
                ),
            );
        }
    }

    /// A driver has acquired a wait lock on this thread. An enable callback must not, if the
    /// lock is ever held over a call that waits for that callback (ETW-2.14).
    pub fn note_wait_lock(&self, lock: u64) {
        self.wait_locks.borrow_mut().push(lock);
        if self.is_in_enable_callback() {
            let with = self.shared.lock_order().in_callbacks(lock);
            self.stop_for_lock_order(with);
        }
    }

    /// A driver has released a wait lock, on whatever thread.
    pub fn note_wait_lock_released(&self, lock: u64) {
        let mut held = self.wait_locks.borrow_mut();
        if let Some(at) = held.iter().rposition(|one| *one == lock) {
            held.remove(at);
        }
    }

    /// A call that waits for enable callbacks starts, with whatever locks are held.
    pub fn note_wait_for_callbacks(&self) {
        for lock in &*self.wait_locks.borrow() {
            let with = self.shared.lock_order().over_waits(*lock);
            self.stop_for_lock_order(with);
        }
    }

    fn stop_for_lock_order(&self, is_inverted: bool) {
        if is_inverted {
            let call = self.call();
            self.stop(
                Rule::EnableCallbackBlocks,
                format!(
                    "{} was called from {}: a wait lock that an enable callback acquires is held \
                     over a call that waits for enable callbacks to return",
                    call.name(),
                    self.shared.place(call.return_address)
                ),
            );
        }
    }

    /// Whether `EtwRegister` is under way on this thread.
    pub const fn is_registering(&self) -> bool {
        self.registering.get()
    }

    /// Runs a part of `EtwRegister` that comes before the handle is stored.
    pub fn while_registering(&self, body: impl FnOnce()) {
        let before = self.registering.replace(true);
        body();
        self.registering.set(before);
    }

    /// Notes the id that `EVENT_ACTIVITY_CTRL_CREATE_SET_ID` replaced, or that the thread has
    /// it again.
    pub fn note_replaced_activity(&self, replaced: Option<Guid>) {
        self.replaced_activity.set(replaced);
    }

    /// The id that was replaced, if it was.
    pub const fn replaced_activity(&self) -> Option<Guid> {
        self.replaced_activity.get()
    }

    /// Keeps a warning, once for each rule and caller.
    pub fn warn(&self, rule: Rule, sentence: impl FnOnce() -> String) {
        let call = self.call();
        let verifier = &self.shared.verifier;
        if verifier.is_new(rule, call.return_address) {
            let place = self.shared.place(call.return_address);
            verifier.warn(Violation {
                rule,
                message: format!(
                    "{} was called at {} from {place} {}",
                    call.name(),
                    call.irql,
                    sentence()
                ),
            });
        }
    }

    /// Closes or opens pageable memory as the IRQL changes.
    fn page(&self, from: Irql, to: Irql) {
        let (before, after) = (from < Irql::DISPATCH_LEVEL, to < Irql::DISPATCH_LEVEL);
        if before != after {
            self.shared.set_pageable_accessible(after);
        }
    }

    /// From now on a bugcheck goes to `on_bugcheck`.
    pub fn watch(&self, on_bugcheck: OnBugCheck) {
        self.on_bugcheck.replace(Some(on_bugcheck));
    }

    /// Runs a job as `identity`; a bugcheck meanwhile goes to `on_bugcheck`.
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

    /// Raises the IRQL, and returns what it was.
    pub fn raise_irql(&self, to: Irql) -> Irql {
        let from = self.irql.get();
        if to < from {
            let call = self.call();
            self.stop(
                Rule::IrqlNotRaised,
                format!(
                    "{} was called to raise the IRQL from {from} to {to}, at {}",
                    call.name(),
                    self.shared.place(call.return_address)
                ),
            );
        }
        self.page(from, to);
        self.irql.replace(to)
    }

    /// Lowers the IRQL; below `DISPATCH_LEVEL`, DPCs that wait run at once.
    pub fn lower_irql(&self, to: Irql) {
        if to > self.irql.get() {
            let call = self.call();
            self.stop(
                Rule::IrqlNotLowered,
                format!(
                    "{} was called to lower the IRQL from {} to {to}, at {}",
                    call.name(),
                    self.irql.get(),
                    self.shared.place(call.return_address)
                ),
            );
        }
        self.page(self.irql.replace(to), to);
        if to < Irql::DISPATCH_LEVEL {
            crate::kmdf::run_dpcs(self);
        }
    }

    /// Calls a routine of the driver's at the present IRQL and returns its
    /// return register. `what` names the callback in reports.
    pub fn call_driver<const N: usize>(
        &self,
        what: &str,
        address: u64,
        arguments: [u64; N],
    ) -> u64 {
        const { assert!(N <= 8, "no driver routine has more parameters") };
        let mut all = [0; 8];
        for (slot, argument) in all.iter_mut().zip(arguments) {
            *slot = argument;
        }
        if !self.shared.is_driver_code(address) {
            self.stop(
                Rule::BadCallback,
                format!("{what} is 0x{address:016X}, which is not code of a loaded driver"),
            );
        }
        let before = self.irql();
        let outermost = self.depth.get() == 0;
        let activity = outermost.then(|| self.activity());
        self.depth.set(self.depth.get() + 1);
        // SAFETY: the address was checked to be in code of a driver that is still mapped;
        // that the routine there keeps the Windows calling convention is the driver's
        // compiler's part. Drivers run on this thread's stack only by this call.
        let result = unsafe { self.stack.call(address, &all) };
        self.depth.set(self.depth.get() - 1);
        let after = self.irql();
        if before != after {
            let rule = if self.is_in_enable_callback() {
                Rule::EnableCallbackIrql
            } else {
                Rule::CallbackIrql
            };
            self.stop(
                rule,
                format!("{what} was called at {before} and returned at {after}"),
            );
        }
        if let Some(activity) = activity {
            self.shared.note_stack(what, self.stack.take_most_used());
            if self.activity() != activity {
                self.warn_of_activity(what);
            }
        }
        result
    }

    /// The thread's activity id.
    fn activity(&self) -> Guid {
        self.shared.activities.of_thread(self.identity().thread)
    }

    fn warn_of_activity(&self, what: &str) {
        let verifier = &self.shared.verifier;
        if verifier.is_new(Rule::ActivityNotRestored, 0) {
            verifier.warn(Violation {
                rule: Rule::ActivityNotRestored,
                message: format!(
                    "{what} returned with another activity id than it was called with; whatever \
                     the thread does next will carry it"
                ),
            });
        }
    }

    /// As [`Self::call_driver`], at a raised IRQL.
    pub fn call_driver_at<const N: usize>(
        &self,
        irql: Irql,
        what: &str,
        address: u64,
        arguments: [u64; N],
    ) -> u64 {
        let before = self.raise_irql(irql);
        let result = self.call_driver(what, address, arguments);
        self.lower_irql(before);
        result
    }

    /// Stops the machine: the verifier found what a driver must never do.
    pub fn stop(&self, rule: Rule, sentence: String) -> ! {
        self.bugcheck(rule.bugcheck_code(), [rule.parameter(), 0, 0, 0], {
            let tag = rule.number();
            if tag.is_empty() {
                sentence
            } else {
                format!("{sentence} [{tag}]")
            }
        })
    }

    /// Stops the machine with a bugcheck. The thread never runs again, as no
    /// thread of a real machine does; the process goes on and reports.
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
                    format!(
                        "{} at {} from {}",
                        call.name(),
                        call.irql,
                        self.shared.place(call.return_address)
                    )
                })
                .collect(),
        };
        self.shared.verifier.crash(&bugcheck);
        if let Some(tell) = self.on_bugcheck.take() {
            tell(bugcheck);
        }
        park()
    }
}

/// The machine has stopped, and the thread with it.
fn park() -> ! {
    loop {
        std::thread::park();
    }
}
