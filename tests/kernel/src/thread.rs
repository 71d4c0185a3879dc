//! The threads that run driver code: who they are, their IRQL, and the calls
//! that the driver makes on them.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
    sync::Arc,
};

use crate::{
    gateway::Gateways,
    irql::Irql,
    machine::Shared,
    verifier::{BugCheck, Rule},
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
type OnBugCheck = Box<dyn FnOnce(BugCheck)>;

/// The state of a thread that runs driver code.
pub struct Thread {
    shared: Arc<Shared>,
    identity: Cell<Identity>,
    irql: Cell<Irql>,
    call: Cell<Call>,
    history: RefCell<VecDeque<Call>>,
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
    CURRENT.with_borrow(|current| {
        Rc::clone(
            current
                .as_ref()
                .expect("driver code runs on the machine's threads only"),
        )
    })
}

/// The gateways call this before every routine that a driver calls.
pub extern "win64" fn enter(number: u64, return_address: u64) {
    let thread = current();
    let call = Call {
        number: usize::try_from(number).unwrap_or(usize::MAX),
        return_address,
        irql: thread.irql.get(),
    };
    thread.call.set(call);
    {
        let mut history = thread.history.borrow_mut();
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(call);
    }
    thread.shared.verifier.count_call();
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
    pub fn become_current(shared: Arc<Shared>) -> Rc<Self> {
        let thread = Rc::new(Self {
            shared,
            identity: Cell::new(Identity::SYSTEM),
            irql: Cell::new(Irql::PASSIVE_LEVEL),
            call: Cell::new(Call {
                number: usize::MAX,
                return_address: 0,
                irql: Irql::PASSIVE_LEVEL,
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
        self.irql.set(to);
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
        let result = call_win64(address, all);
        let after = self.irql();
        if before != after {
            self.stop(
                Rule::CallbackIrql,
                format!("{what} was called at {before} and returned at {after}"),
            );
        }
        result
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
        loop {
            std::thread::park();
        }
    }
}

/// Calls code of the Windows calling convention. The callee reads as many of
/// the arguments as it declares; the rest lie in registers and stack slots that
/// the convention lets a caller fill as it likes.
fn call_win64(address: u64, a: [u64; 8]) -> u64 {
    type Routine = extern "win64" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u64;
    // SAFETY: `call_driver` checked that the address is in the executable code of
    // a driver that is still mapped; that the routine there keeps the Windows
    // calling convention is the driver's compiler's part.
    let routine: Routine = unsafe { core::mem::transmute::<u64, Routine>(address) };
    routine(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7])
}
