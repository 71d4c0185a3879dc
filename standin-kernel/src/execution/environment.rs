//! The environment of a kernel's threads: drivers' images, pageable memory and the bugcheck.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

use super::stack::LiveStacks;
use crate::ground::{arena::Arena, bugcheck::BugCheck, images::Images};

/// The environment that all threads of a kernel share.
pub struct Environment {
    /// The loaded images.
    pub images: Images,
    /// The paged memory.
    pub paged: Arena,
    /// The stacks of the threads that run driver code.
    pub live_stacks: LiveStacks,
    /// The processor time that driver code may use without calling the kernel.
    pub time_limit: Duration,
    /// Set if threads run in parallel, so that no thread may make pageable memory inaccessible.
    parallel: AtomicBool,
    has_crashed: AtomicBool,
    crash: Mutex<Option<BugCheck>>,
    /// The number of calls from drivers into the kernel.
    calls: AtomicU64,
    /// The peak stack use in bytes, by the name of the called routine.
    stacks: Mutex<BTreeMap<String, usize>>,
}

impl Environment {
    /// Creates an environment without drivers.
    pub fn new(time_limit: Duration) -> Self {
        Self {
            time_limit,
            images: Images::default(),
            paged: Arena::reserve(),
            live_stacks: LiveStacks::default(),
            parallel: AtomicBool::new(false),
            has_crashed: AtomicBool::new(false),
            crash: Mutex::default(),
            calls: AtomicU64::new(0),
            stacks: Mutex::default(),
        }
    }

    /// Returns whether threads run in parallel.
    pub fn is_parallel(&self) -> bool {
        self.parallel.load(Ordering::Relaxed)
    }

    /// Sets whether threads run in parallel from now on.
    pub fn set_parallel(&self, parallel: bool) {
        self.parallel.store(parallel, Ordering::Relaxed);
    }

    /// Makes pageable memory inaccessible or accessible, unless threads run in parallel.
    pub fn set_pageable_accessible(&self, accessible: bool) {
        if self.is_parallel() {
            return;
        }
        self.paged.set_accessible(accessible);
        self.images.set_pageable_accessible(accessible);
    }

    /// Returns whether the kernel has bugchecked.
    pub fn has_crashed(&self) -> bool {
        self.has_crashed.load(Ordering::Acquire)
    }

    /// Records a bugcheck. Only the first bugcheck is stored.
    pub fn crash(&self, bugcheck: &BugCheck) {
        self.crash.lock().get_or_insert_with(|| bugcheck.clone());
        self.has_crashed.store(true, Ordering::Release);
    }

    /// Returns the bugcheck, if there was one.
    pub fn crashed(&self) -> Option<BugCheck> {
        self.crash.lock().clone()
    }

    /// Adds calls from drivers into the kernel.
    pub fn count_calls(&self, calls: u64) {
        self.calls.fetch_add(calls, Ordering::Relaxed);
    }

    /// Returns the number of calls from drivers into the kernel.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Records the stack use of a call to the driver.
    pub fn note_stack(&self, what: &str, bytes: usize) {
        let mut stacks = self.stacks.lock();
        if let Some(most) = stacks.get_mut(what) {
            *most = bytes.max(*most);
        } else {
            stacks.insert(what.to_owned(), bytes);
        }
    }

    /// Returns the peak stack use in bytes, by the name of the called routine.
    pub fn stack_use(&self) -> BTreeMap<String, usize> {
        self.stacks.lock().clone()
    }
}
