//! The state of ntoskrnl.exe's routines, and the context in which they act.

use std::{ops::Deref, sync::Arc};

use parking_lot::Mutex;

use super::super::{
    faults::Faults,
    kmdf::state::framework::{Context as KmdfContext, Kmdf},
    pool::Pool,
};
use crate::{
    execution::context::Context as Execution,
    ground::{clock::Clock, flight},
};

/// The routines that `MmGetSystemRoutineAddress` finds.
#[derive(Clone, Copy)]
pub struct SystemRoutines {
    /// Returns the address of a routine of ntoskrnl.exe, by its name.
    pub find: fn(&str) -> Option<u64>,
    /// The routines that this kernel does not have.
    pub hidden: &'static [&'static str],
}

/// The state of ntoskrnl.exe's routines, except those of ETW.
pub struct Ntoskrnl {
    pool: Arc<Pool>,
    faults: Arc<Faults>,
    clock: Arc<Clock>,
    /// The framework, whose timers come due during waits.
    kmdf: Arc<Kmdf>,
    printed: Mutex<Printed>,
    routines: SystemRoutines,
}

/// What drivers printed.
#[derive(Default)]
struct Printed {
    /// The pieces, oldest first.
    lines: Vec<String>,
    /// Their length in bytes.
    bytes: u64,
}

impl Ntoskrnl {
    /// Creates the state from the services that the routines use.
    pub fn new(
        pool: Arc<Pool>,
        faults: Arc<Faults>,
        clock: Arc<Clock>,
        kmdf: Arc<Kmdf>,
        routines: SystemRoutines,
    ) -> Self {
        Self {
            routines,
            pool,
            faults,
            clock,
            kmdf,
            printed: Mutex::default(),
        }
    }

    /// Returns the lines that drivers printed, oldest first.
    pub fn printed(&self) -> Vec<String> {
        self.printed.lock().lines.clone()
    }
}

/// The context in which the routines act.
pub struct Context {
    nt: Arc<Ntoskrnl>,
    execution: Execution,
}

impl Deref for Context {
    type Target = Execution;

    fn deref(&self) -> &Execution {
        &self.execution
    }
}

impl Context {
    /// Creates the context for a call.
    pub const fn new(nt: Arc<Ntoskrnl>, execution: Execution) -> Self {
        Self { nt, execution }
    }

    /// Returns the kernel's pool.
    pub fn pool(&self) -> &Pool {
        &self.nt.pool
    }

    /// Returns the injected faults.
    pub fn faults(&self) -> &Faults {
        &self.nt.faults
    }

    /// Returns the address of a routine of ntoskrnl.exe, if this kernel has it.
    pub fn address_of(&self, routine: &str) -> Option<u64> {
        let routines = self.nt.routines;
        (routines.find)(routine).filter(|_| !routines.hidden.contains(&routine))
    }

    /// Returns the kernel's clock.
    pub fn clock(&self) -> &Clock {
        &self.nt.clock
    }

    /// Returns the framework's context for the same call.
    pub fn kmdf(&self) -> KmdfContext {
        KmdfContext::new(Arc::clone(&self.nt.kmdf), self.execution.clone())
    }

    /// Keeps a line that a driver printed.
    pub fn print(&self, line: String) {
        let mut printed = self.nt.printed.lock();
        flight::note_output(printed.bytes, &line);
        printed.bytes = printed.bytes.saturating_add(line.len() as u64);
        printed.lines.push(line);
    }
}
