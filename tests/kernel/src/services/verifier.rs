//! The verifier: warnings, and the rules for enable callbacks.
//!
//! The services check the other rules themselves. They report violations through the thread
//! (`Thread::stop`) or keep them here as warnings.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use etl_file::Guid;
use parking_lot::Mutex;

use crate::{
    execution::{context::Context, thread::Thread},
    ground::{
        bugcheck::Violation,
        clock::{self, Clock},
        lock_order::LockOrder,
        rule::Rule,
    },
};

/// The most warnings that are kept; later ones are dropped.
const MAX_WARNINGS: usize = 1000;

/// The most time that an enable callback may take. One that takes longer has waited.
const MAX_CALLBACK_TIME: Duration = Duration::from_secs(1);

/// The verifier of a kernel.
pub struct Verifier {
    clock: Arc<Clock>,
    warnings: Mutex<Warnings>,
    lock_order: Mutex<LockOrder>,
}

#[derive(Default)]
struct Warnings {
    all: Vec<Violation>,
    /// The broken rules and the places that broke them. Each pair causes one warning.
    known: HashSet<(Rule, u64)>,
}

/// The verifier's state for a thread.
#[derive(Default)]
struct Local {
    /// The number of running enable callbacks.
    callbacks: Cell<u32>,
    /// The wait locks that the thread's drivers hold.
    wait_locks: RefCell<Vec<u64>>,
}

impl Verifier {
    /// Creates a verifier without warnings.
    pub fn new(clock: Arc<Clock>) -> Self {
        Self {
            clock,
            warnings: Mutex::default(),
            lock_order: Mutex::default(),
        }
    }

    /// Returns whether a warning for this rule and this caller is new.
    fn is_new(&self, rule: Rule, caller: u64) -> bool {
        let mut warnings = self.warnings.lock();
        warnings.all.len() < MAX_WARNINGS && warnings.known.insert((rule, caller))
    }

    /// Keeps a warning, once for each rule and caller. The sentence continues the one about the
    /// call.
    pub fn warn(&self, context: &Context, rule: Rule, sentence: impl FnOnce() -> String) {
        let call = context.call();
        if self.is_new(rule, call.return_address) {
            let place = context.caller();
            self.keep(Violation {
                rule,
                message: format!(
                    "{} was called at {} from {place} {}",
                    call.name,
                    call.irql,
                    sentence()
                ),
            });
        }
    }

    /// Keeps a warning that does not concern a call, once for each rule.
    pub fn warn_once(&self, rule: Rule, message: impl FnOnce() -> String) {
        if self.is_new(rule, 0) {
            self.keep(Violation {
                rule,
                message: message(),
            });
        }
    }

    fn keep(&self, violation: Violation) {
        let mut warnings = self.warnings.lock();
        warnings.all.push(violation);
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> Vec<Violation> {
        let warnings = self.warnings.lock();
        warnings.all.clone()
    }

    /// Returns whether an enable callback runs on a thread.
    pub fn is_in_enable_callback(thread: &Thread) -> bool {
        local(thread).callbacks.get() > 0
    }

    /// Calls an enable callback by `body`, and bugchecks if it takes too long (ETW-2.14).
    pub fn in_enable_callback(
        &self,
        context: &Context,
        provider: Guid,
        body: impl FnOnce() -> u64,
    ) {
        let start = self.clock.last();
        let local = local(context);
        local.callbacks.set(local.callbacks.get() + 1);
        context.with_irql_rule(Rule::EnableCallbackIrql, body);
        local.callbacks.set(local.callbacks.get() - 1);
        let took = self.clock.last() - start;
        if took > clock::ticks(MAX_CALLBACK_TIME) {
            context.stop(
                Rule::EnableCallbackBlocks,
                format!(
                    "the enable callback of the provider {{{provider}}} took {} ms (limit: {} ms); \
                     an enable callback must not block",
                    took / (Clock::FREQUENCY / 1000),
                    MAX_CALLBACK_TIME.as_millis()
                ),
            );
        }
    }

    /// Records that a driver has acquired a wait lock. An enable callback must not acquire a lock
    /// that is ever held during a call that waits for that callback (ETW-2.14).
    pub fn note_wait_lock(&self, context: &Context, lock: u64) {
        local(context).wait_locks.borrow_mut().push(lock);
        if Self::is_in_enable_callback(context) {
            let is_inverted = self.lock_order.lock().in_callbacks(lock);
            stop_for_lock_order(context, is_inverted);
        }
    }

    /// Records that a driver has released a wait lock, on any thread.
    pub fn note_wait_lock_released(thread: &Thread, lock: u64) {
        let local = local(thread);
        let mut held = local.wait_locks.borrow_mut();
        if let Some(at) = held.iter().rposition(|one| *one == lock) {
            held.remove(at);
        }
    }

    /// Records the start of a call that waits for enable callbacks, and the locks held during
    /// it.
    pub fn note_wait_for_callbacks(&self, context: &Context) {
        for lock in &*local(context).wait_locks.borrow() {
            let is_inverted = self.lock_order.lock().over_waits(*lock);
            stop_for_lock_order(context, is_inverted);
        }
    }
}

fn local(thread: &Thread) -> Rc<Local> {
    thread.local()
}

fn stop_for_lock_order(context: &Context, is_inverted: bool) {
    if is_inverted {
        context.stop(
            Rule::EnableCallbackBlocks,
            format!(
                "{} was called from {}: the driver holds a wait lock that an enable callback \
                 acquires during a call that waits for enable callbacks to return",
                context.call().name,
                context.caller()
            ),
        );
    }
}
