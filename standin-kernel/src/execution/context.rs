//! The context of a call: its thread, its IRQL, and the call site in the driver.

use std::{ops::Deref, rc::Rc};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{
    call::Call,
    routine::{At, Out},
    stack::Returned,
    thread::{Raise, Thread, park},
};
use crate::ground::{
    irql::Irql,
    memory::{self, BadAddress},
    restore_guard::RestoreGuard,
    rule::Rule,
};

/// The context in which a service acts: a driver's call through a gateway, or a job of a test.
#[derive(Clone)]
pub struct Context {
    thread: Rc<Thread>,
    call: Call,
}

impl Deref for Context {
    type Target = Thread;

    fn deref(&self) -> &Thread {
        &self.thread
    }
}

impl Context {
    /// Creates the context of a call.
    pub const fn new(thread: Rc<Thread>, call: Call) -> Self {
        Self { thread, call }
    }

    /// Creates the context of a job that is not a driver's call.
    pub fn of_job(thread: &Rc<Thread>) -> Self {
        Self::new(Rc::clone(thread), thread.last_call())
    }

    /// Returns the thread.
    pub const fn thread(&self) -> &Rc<Thread> {
        &self.thread
    }

    /// Returns the current call.
    pub const fn call(&self) -> Call {
        self.call
    }

    /// Describes the call site of the current call: the innermost call in the author's code.
    pub fn caller(&self) -> String {
        let backtrace = self.backtrace();
        if backtrace.is_empty() {
            // A job of a test acts on behalf of the last call, whose frames no longer exist.
            return self.place(self.call.return_address);
        }
        self.explain(&backtrace).place
    }

    /// Returns a sentence about the current call. `what` completes "was called from PLACE".
    pub fn sentence(&self, what: &str) -> String {
        format!("{} was called from {} {what}", self.call.name, self.caller())
    }

    /// Bugchecks because a driver broke a rule in its current call. `what` completes "was called
    /// from PLACE".
    pub fn stop_call(&self, rule: Rule, what: &str) -> ! {
        self.stop(rule, self.sentence(what))
    }

    /// Polls until `ready` returns a value. `what` completes "would wait forever for".
    pub fn wait_for<T>(&self, what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
        let mut looks = 0;
        loop {
            if let Some(found) = ready() {
                return found;
            }
            if self.environment().has_crashed() {
                park();
            }
            if self.irql() < Irql::DISPATCH_LEVEL
                && self.coroutine().is_none()
                && self.host().run_work(&self.thread, self.call)
            {
                continue;
            }
            if !self.give_way(looks) {
                self.stop_call(Rule::Deadlock, &format!("and would wait forever for {what}"));
            }
            looks += 1;
        }
    }

    /// Makes pageable memory inaccessible or accessible as the IRQL changes.
    fn page(&self, old_irql: Irql, new_irql: Irql) {
        let (before, after) = (old_irql < Irql::DISPATCH_LEVEL, new_irql < Irql::DISPATCH_LEVEL);
        if before != after {
            self.environment().set_pageable_accessible(after);
        }
    }

    /// Raises the IRQL, and returns the previous one.
    pub fn raise_irql(&self, new_irql: Irql) -> Irql {
        let from = self.irql();
        if new_irql < from {
            self.stop_call(
                Rule::IrqlNotRaised,
                &format!("to raise the IRQL from {from} to {new_irql}, a lower IRQL"),
            );
        }
        if new_irql > from {
            self.raises.borrow_mut().push(Raise {
                to: new_irql,
                routine: self.call.name,
                backtrace: self.short_backtrace(),
            });
        }
        self.page(from, new_irql);
        self.irql.replace(new_irql)
    }

    /// Lowers the IRQL. Below `DISPATCH_LEVEL`, pending work runs immediately.
    pub fn lower_irql(&self, new_irql: Irql) {
        let from = self.irql();
        if new_irql > from {
            self.stop_call(
                Rule::IrqlNotLowered,
                &format!("to lower the IRQL from {from} to {new_irql}, a higher IRQL"),
            );
        }
        self.page(self.irql.replace(new_irql), new_irql);
        self.raises.borrow_mut().retain(|raise| raise.to <= new_irql);
        if new_irql < Irql::DISPATCH_LEVEL {
            self.host().irql_lowered(&self.thread, self.call);
        }
    }

    /// Calls a driver routine at the current IRQL, and returns its return register. `what` names
    /// the callback in reports.
    pub fn call_driver<const N: usize>(
        &self,
        what: &str,
        address: u64,
        arguments: [u64; N],
    ) -> u64 {
        self.call_driver_lowering(self.irql(), what, address, arguments)
    }

    /// Calls a driver routine that must return at the IRQL `to`. See [`Self::call_driver`].
    pub fn call_driver_lowering<const N: usize>(
        &self,
        new_irql: Irql,
        what: &str,
        address: u64,
        arguments: [u64; N],
    ) -> u64 {
        self.enter_driver(Some(new_irql), what, address, arguments)
    }

    /// Calls a driver routine that acquires or releases a lock, and so may return at another IRQL.
    /// See [`Self::call_driver`].
    pub fn call_driver_with_lock<const N: usize>(
        &self,
        what: &str,
        address: u64,
        arguments: [u64; N],
    ) {
        self.enter_driver(None, what, address, arguments);
    }

    fn enter_driver<const N: usize>(
        &self,
        new_irql: Option<Irql>,
        what: &str,
        address: u64,
        arguments: [u64; N],
    ) -> u64 {
        const { assert!(N <= 8, "no driver routine has more parameters") };
        let mut all = [0; 8];
        for (slot, argument) in all.iter_mut().zip(arguments) {
            *slot = argument;
        }
        if !self.environment().images.contains(address) {
            self.stop(
                Rule::BadCallback,
                format!("{what} is 0x{address:016X}, which is not code of a loaded driver"),
            );
        }
        let before = self.irql();
        let outermost = self.depth.get() == 0;
        let is_first_on_stack = self.depth.get() == self.depth_of_stack();
        if outermost {
            self.inside.replace(Some(what.to_owned()));
            self.watch.set_inside(true);
        } else {
            self.watch.note_step();
        }
        let state = outermost.then(|| self.host().driver_entered(self));
        let depth = RestoreGuard::replace(&self.depth, self.depth.get() + 1);
        // Raises of the IRQL before this call must not be reported as raises by this call.
        let raises = self.raises.take();
        // SAFETY: the address was checked to be in code of a driver that is still mapped. The
        // driver's compiler makes the routine follow the Windows calling convention. Only this call
        // runs driver code on this thread's stack.
        let returned = unsafe { self.stack().call(address, &all) };
        drop(depth);
        if outermost {
            self.watch.set_inside(false);
        } else {
            self.watch.note_step();
        }
        let after = self.irql();
        if new_irql.is_some_and(|new_irql| new_irql != after) {
            self.stop_for_irql(what, before, after);
        }
        if new_irql.is_some() {
            self.raises.replace(raises);
        } else {
            self.raises.borrow_mut().splice(..0, raises);
        }
        if is_first_on_stack {
            let used = self.stack().take_most_used();
            self.environment().note_stack(what, used);
        }
        if let Some(state) = state {
            self.inside.take();
            self.host().driver_left(self, what, state);
        }
        self.check_state(what, returned);
        returned.result
    }

    /// Warns if a driver routine did not leave the processor in the state that the calling convention
    /// requires. The state has already been restored.
    fn check_state(&self, what: &str, returned: Returned) {
        if returned.has_direction_flag() {
            let sentence = format!(
                "{what} returned with the direction flag set, which the calling convention requires to be clear; \
                 the kernel has cleared it"
            );
            self.host().warn_once(Rule::DirectionFlag, &sentence);
        }
        if let Some(register) = returned.changed_control() {
            let sentence = format!(
                "{what} returned with {register} changed, which the calling convention requires it \
                 to preserve; the kernel has restored it"
            );
            self.host().warn_once(Rule::FloatControl, &sentence);
        }
    }

    /// Bugchecks because a driver routine returned at another IRQL.
    fn stop_for_irql(&self, what: &str, before: Irql, after: Irql) -> ! {
        let sentence = format!("{what} was called at {before} and returned at {after}");
        let raise = self.raises.borrow().last().cloned();
        let Some(raise) = raise.filter(|raise| after > before && raise.to == after) else {
            self.stop(self.irql_rule(), sentence);
        };
        let place = self.explain(&raise.backtrace).place;
        let routine = raise.routine;
        self.stop_at(
            self.irql_rule(),
            format!("{sentence}; {routine} raised the IRQL from {place}, and nothing lowered it"),
            &raise.backtrace,
        )
    }

    /// Calls a driver routine at a raised IRQL. See [`Self::call_driver`].
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

    /// Runs `body` as a DPC: at `DISPATCH_LEVEL`, with driver code on the processor's DPC stack. Work
    /// that waits for a lower IRQL runs afterwards.
    pub fn as_dpc<R>(&self, body: impl FnOnce() -> R) -> R {
        let before = self.raise_irql(Irql::DISPATCH_LEVEL);
        let result = self.on_stack_of_dpcs(body);
        self.lower_irql(before);
        result
    }

    /// Fills `buffer` with the bytes at an address that the driver passed. Bugchecks for an invalid
    /// address.
    pub fn read_into(&self, address: u64, buffer: &mut [u8]) {
        self.checked(memory::read_into(address, buffer));
    }

    /// Reads a structure at an address that the driver passed. Bugchecks for a bad address.
    pub fn read<T: FromBytes + IntoBytes>(&self, address: u64) -> T {
        self.checked(memory::read(address))
    }

    /// Writes a result to an address that the driver passed. Bugchecks for a bad address.
    pub fn write<T: IntoBytes + Immutable>(&self, address: u64, value: &T) {
        self.checked(memory::write(address, value));
    }

    /// Reads a structure at an address that the driver passed, unless the address is null.
    /// Bugchecks for an invalid address.
    pub fn read_optional<T: FromBytes + IntoBytes>(&self, address: u64) -> Option<T> {
        (address != 0).then(|| self.read(address))
    }

    /// Writes a result to an address that the driver passed, unless the address is null. Bugchecks
    /// for an invalid address.
    pub fn write_optional<T: IntoBytes + Immutable>(&self, address: u64, value: &T) {
        if address != 0 {
            self.write(address, value);
        }
    }

    /// Changes a structure at an address that the driver passed, and returns the result of `change`.
    /// Bugchecks for a bad address.
    pub fn update<T, R>(&self, address: u64, change: impl FnOnce(&mut T) -> R) -> R
    where
        T: FromBytes + IntoBytes + Immutable,
    {
        let mut value = self.read(address);
        let result = change(&mut value);
        self.write(address, &value);
        result
    }

    /// Reads bytes at an address that the driver passed. Bugchecks for a bad address.
    pub fn read_bytes(&self, address: u64, length: usize) -> Vec<u8> {
        self.checked(memory::read_bytes(address, length))
    }

    /// Writes bytes to an address that the driver passed. Bugchecks for a bad address.
    pub fn write_bytes(&self, address: u64, bytes: &[u8]) {
        self.checked(memory::write_bytes(address, bytes));
    }

    /// Returns the result of an access to a driver's address. Bugchecks for a bad address.
    pub fn checked<T>(&self, result: Result<T, BadAddress>) -> T {
        result.unwrap_or_else(|error| self.stop_for_address(error))
    }

    /// Bugchecks for an address that cannot be accessed.
    pub fn stop_for_address(&self, error: BadAddress) -> ! {
        let (rule, what) = match self.host().address_error(error.address) {
            Some(error) => {
                (error.rule.unwrap_or(Rule::BadAddress), format!(", which {}", error.what))
            }
            None => (self.rule_for_addresses(), String::new()),
        };
        self.stop(
            rule,
            format!(
                "{} was called at {} from {} with a bad pointer: {error}{what}",
                self.call.name,
                self.call.irql,
                self.caller()
            ),
        )
    }

    /// Returns the rule that a bad pointer in the current call breaks.
    pub fn rule_for_addresses(&self) -> Rule {
        Rule::pointer_of(self.call.name)
    }
}

/// The context in which a kernel service acts: the call, and the state that the service keeps for
/// it.
#[derive(Clone)]
pub struct ServiceContext<S> {
    /// The service's state for the call.
    pub service: S,
    execution: Context,
}

impl<S> ServiceContext<S> {
    /// Creates the service's context for a call or job.
    pub const fn new(service: S, execution: Context) -> Self {
        Self { service, execution }
    }
}

impl<S> Deref for ServiceContext<S> {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.execution
    }
}

impl<T: FromBytes + IntoBytes> At<T> {
    /// Reads the value. Bugchecks for a bad address.
    pub fn read(self, context: &Context) -> T {
        context.read(self.0)
    }

    /// Reads the value, unless the address is null. Bugchecks for a bad address.
    pub fn read_optional(self, context: &Context) -> Option<T> {
        context.read_optional(self.0)
    }
}

impl<T: IntoBytes + Immutable + Copy> At<T> {
    /// Writes the value. Bugchecks for a bad address.
    pub fn write(self, context: &Context, value: T) {
        context.write(self.0, &value);
    }

    /// Writes the value, unless the address is null. Bugchecks for a bad address.
    pub fn write_optional(self, context: &Context, value: T) {
        context.write_optional(self.0, &value);
    }
}

impl<T> Out<T> {
    /// Writes a handle. Bugchecks for a bad address.
    pub fn write(self, context: &Context, handle: u64) {
        context.write(self.0, &handle);
    }
}

impl<T: FromBytes + IntoBytes + Immutable> At<T> {
    /// Changes the value, and returns the result of `change`. Bugchecks for a bad address.
    pub fn update<R>(self, context: &Context, change: impl FnOnce(&mut T) -> R) -> R {
        context.update(self.0, change)
    }
}
