//! The verifier: warnings, and the rules for enable callbacks.
//!
//! The services check the other rules themselves. They report violations through the thread
//! (`Thread::stop`), or add them to the verifier as warnings.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use etl_file::Guid;
use parking_lot::Mutex;

use crate::{
    execution::{context::Context, thread::Thread},
    ground::{
        backtrace::Explained,
        bugcheck::Violation,
        clock::{self, Clock},
        lock_order::LockOrder,
        rule::{Rule, Severity},
    },
};

/// The maximum number of warnings, and the maximum number of notes. Later ones are dropped.
const MAX_WARNINGS: usize = 1000;

/// The maximum time that an enable callback may take. A callback that takes longer is reported as
/// blocking.
const MAX_CALLBACK_TIME: Duration = Duration::from_secs(1);

/// The verifier of a kernel.
pub struct Verifier {
    clock: Arc<Clock>,
    /// Set to record notes.
    notes: bool,
    warnings: Mutex<Warnings>,
    lock_order: Mutex<LockOrder>,
}

#[derive(Default)]
struct Warnings {
    all: Vec<Violation>,
    /// The number of notes in `all`. Notes do not reduce the number of warnings that fit.
    notes: usize,
    /// The indices of the warnings in `all`, by rule and cause.
    known: HashMap<(Rule, Cause), usize>,
}

/// A cause of warnings. For each cause and rule, one warning is recorded, which counts its
/// occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The driver's call with this return address.
    Call(u64),
    /// A provider's event with this id and version, and with event metadata at this address.
    Event(Guid, u16, u8, u64),
    /// A provider's event with this name. Several call sites can have metadata with the same name.
    Named(Guid, String),
    /// Anything in the driver.
    Any,
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
    pub fn new(clock: Arc<Clock>, notes: bool) -> Self {
        Self { clock, notes, warnings: Mutex::default(), lock_order: Mutex::default() }
    }

    /// Counts another occurrence of a warning that is already recorded. Returns `true` if there is
    /// such a warning, or if no more warnings can be recorded.
    fn is_known(&self, rule: Rule, cause: &Cause) -> bool {
        if rule.severity() == Severity::Note && !self.notes {
            return true;
        }
        let mut warnings = self.warnings.lock();
        let Some(at) = warnings.known.get(&(rule, cause.clone())).copied() else {
            return warnings.is_full(rule);
        };
        if let Some(known) = warnings.all.get_mut(at) {
            known.count += 1;
        }
        true
    }

    /// Adds a warning about a call, once per rule and caller. `sentence` completes the sentence
    /// that names the call.
    pub fn warn(&self, context: &Context, rule: Rule, sentence: impl FnOnce() -> String) {
        let cause = Cause::Call(context.call().return_address);
        if !self.is_known(rule, &cause) {
            self.keep(context, rule, cause, None, &sentence());
        }
    }

    /// Adds a warning about an event, once per rule and event. `event` describes the event and, if
    /// the event has a name, returns its cause by name.
    pub fn warn_of_event(
        &self,
        context: &Context,
        rule: Rule,
        cause: Cause,
        event: impl FnOnce() -> (String, Option<Cause>),
        sentence: impl FnOnce() -> String,
    ) {
        if self.is_known(rule, &cause) {
            return;
        }
        let (event, named) = event();
        let Some(named) = named else {
            self.keep(context, rule, cause, Some(&event), &sentence());
            return;
        };
        if !self.is_known(rule, &named) {
            self.keep(context, rule, named.clone(), Some(&event), &sentence());
        }
        let mut warnings = self.warnings.lock();
        if let Some(at) = warnings.known.get(&(rule, named)).copied() {
            warnings.known.insert((rule, cause), at);
        }
    }

    /// Adds a warning that is not about a call, once per rule.
    pub fn warn_once(&self, rule: Rule, message: impl FnOnce() -> String) {
        if !self.is_known(rule, &Cause::Any) {
            let violation = Violation::new(rule, message(), Vec::new());
            self.warnings.lock().add(Cause::Any, violation);
        }
    }

    fn keep(
        &self,
        context: &Context,
        rule: Rule,
        cause: Cause,
        event: Option<&str>,
        sentence: &str,
    ) {
        let Explained { place, lines, .. } = context.explain(&context.backtrace());
        let call = context.call();
        let event = event.map_or_else(String::new, |event| format!("{event}: "));
        let message =
            format!("{event}{} was called at {} from {place} {sentence}", call.name, call.irql);
        let violation = Violation::new(rule, message, lines);
        self.warnings.lock().add(cause, violation);
    }

    /// Returns either the recorded notes or the recorded warnings.
    pub fn kept(&self, notes: bool) -> Vec<Violation> {
        let warnings = self.warnings.lock();
        let all = warnings.all.iter();
        all.filter(|violation| (violation.rule.severity() == Severity::Note) == notes)
            .cloned()
            .collect()
    }

    /// Returns whether an enable callback is running on a thread.
    pub fn is_in_enable_callback(thread: &Thread) -> bool {
        local(thread).callbacks.get() > 0
    }

    /// Calls an enable callback through `body`, and bugchecks if it takes too long (ETW-2.14).
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

    /// Records the start of a call that waits for enable callbacks, and the locks held during the
    /// call.
    pub fn note_wait_for_callbacks(&self, context: &Context) {
        for lock in &*local(context).wait_locks.borrow() {
            let is_inverted = self.lock_order.lock().over_waits(*lock);
            stop_for_lock_order(context, is_inverted);
        }
    }
}

impl Warnings {
    /// Returns whether the list that a violation of the rule belongs to, warnings or notes, is
    /// full.
    const fn is_full(&self, rule: Rule) -> bool {
        let count = match rule.severity() {
            Severity::Note => self.notes,
            _ => self.all.len() - self.notes,
        };
        count >= MAX_WARNINGS
    }

    /// Adds a warning, or counts it if another thread has already added it.
    fn add(&mut self, cause: Cause, violation: Violation) {
        let key = (violation.rule, cause);
        if let Some(known) = self.known.get(&key).and_then(|at| self.all.get_mut(*at)) {
            known.count += violation.count;
            return;
        }
        if self.is_full(violation.rule) {
            return;
        }
        if violation.rule.severity() == Severity::Note {
            self.notes += 1;
        }
        self.known.insert(key, self.all.len());
        self.all.push(violation);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn note(number: u64) -> (Cause, Violation) {
        let rule = Rule::ALL.iter().copied();
        let mut notes = rule.filter(|rule| rule.severity() == Severity::Note);
        let violation = Violation::new(notes.next().unwrap(), number.to_string(), Vec::new());
        (Cause::Call(number), violation)
    }

    #[test]
    fn notes_leave_room_for_warnings() {
        let mut warnings = Warnings::default();
        for number in 0..2000 {
            let (cause, note) = note(number);
            warnings.add(cause, note);
        }
        assert_eq!(warnings.all.len(), MAX_WARNINGS);
        let rule = Rule::RegistrationChurn;
        assert!(!warnings.is_full(rule));
        warnings.add(Cause::Any, Violation::new(rule, String::new(), Vec::new()));
        assert_eq!(warnings.all.last().unwrap().rule, rule);
    }

    #[test]
    fn two_threads_keep_one_warning() {
        let mut warnings = Warnings::default();
        // Both threads have seen that the warning does not exist yet.
        for _ in 0..2 {
            let rule = Rule::RegistrationChurn;
            warnings.add(Cause::Call(1), Violation::new(rule, String::new(), Vec::new()));
        }
        assert_eq!((warnings.all.len(), warnings.all[0].count), (1, 2));
    }
}
