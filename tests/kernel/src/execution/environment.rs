//! The kernel around its threads: the drivers' images, pageable memory, the bugcheck.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;

use crate::ground::{arena::Arena, bugcheck::BugCheck, images::Images};

/// The environment that all threads of a kernel share.
pub struct Environment {
    /// The images that are loaded.
    pub images: Images,
    /// Memory that is paged.
    pub paged: Arena,
    /// Whether threads run at once, so that none may close pageable memory.
    parallel: AtomicBool,
    has_crashed: AtomicBool,
    crash: Mutex<Option<BugCheck>>,
    /// The most of the stack that was used, by the routine that was called.
    stacks: Mutex<BTreeMap<String, usize>>,
}

impl Environment {
    /// Makes an environment without drivers.
    pub fn new() -> Self {
        Self {
            images: Images::default(),
            paged: Arena::reserve(),
            parallel: AtomicBool::new(false),
            has_crashed: AtomicBool::new(false),
            crash: Mutex::default(),
            stacks: Mutex::default(),
        }
    }

    /// Returns whether threads run at once.
    pub fn is_parallel(&self) -> bool {
        self.parallel.load(Ordering::Relaxed)
    }

    /// Says whether threads run at once from now on.
    pub fn set_parallel(&self, parallel: bool) {
        self.parallel.store(parallel, Ordering::Relaxed);
    }

    /// Closes or opens pageable memory, where there is one thread at a time.
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

    /// Notes a bugcheck; the first one stays.
    pub fn crash(&self, bugcheck: &BugCheck) {
        self.crash.lock().get_or_insert_with(|| bugcheck.clone());
        self.has_crashed.store(true, Ordering::Release);
    }

    /// Returns the bugcheck, if there was one.
    pub fn crashed(&self) -> Option<BugCheck> {
        self.crash.lock().clone()
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

    /// Returns the most of the stack that was used, by the routine that was called.
    pub fn stack_use(&self) -> BTreeMap<String, usize> {
        self.stacks.lock().clone()
    }
}
