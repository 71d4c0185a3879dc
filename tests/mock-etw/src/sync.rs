//! The standard library's locks, in a form that `ThreadSanitizer` understands: it sees only code that
//! is compiled for it, and so not the standard library's slow paths. Each lock counts how often it was
//! taken and released, with the ordering that the lock itself has.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        self, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A mutex that a panic does not poison.
pub struct Mutex<T> {
    lock: sync::Mutex<T>,
    order: AtomicUsize,
}

impl<T> Mutex<T> {
    /// Creates a mutex.
    pub const fn new(value: T) -> Self {
        Self { lock: sync::Mutex::new(value), order: AtomicUsize::new(0) }
    }

    /// Waits until the mutex is free, and takes it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard::new(held, &self.order)
    }
}

/// The right to use a mutex's value.
pub struct MutexGuard<'a, T> {
    /// `None` only while a condition is awaited.
    held: Option<sync::MutexGuard<'a, T>>,
    order: &'a AtomicUsize,
}

impl<'a, T> MutexGuard<'a, T> {
    fn new(held: sync::MutexGuard<'a, T>, order: &'a AtomicUsize) -> Self {
        order.fetch_add(1, Ordering::Acquire);
        Self { held: Some(held), order }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.order.fetch_add(1, Ordering::Release);
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("the mutex is held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("the mutex is held")
    }
}

/// Lets threads wait for changes of a mutex's value.
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// Creates a condition variable.
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits while a condition holds. The mutex is free meanwhile.
    pub fn wait_while<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(&mut **guard) {
            guard.order.fetch_add(1, Ordering::Release);
            let held = guard.held.take().expect("the mutex is held");
            let held = self.0.wait(held).unwrap_or_else(PoisonError::into_inner);
            guard.order.fetch_add(1, Ordering::Acquire);
            guard.held = Some(held);
        }
    }
}
