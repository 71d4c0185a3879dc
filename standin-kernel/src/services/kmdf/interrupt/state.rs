//! The state of an interrupt.

use std::thread::ThreadId;

use crate::{
    ground::{abi::InterruptConfig, arena::Block, irql::Irql},
    services::kmdf::{
        deferred::timer::forget_dpc,
        state::framework::{Context, Data, ObjectRoutine},
        synchronization::presentation::Lock,
        work::{WorkKind, forget_work},
    },
};

/// The resource of an interrupt.
#[derive(Clone, Copy)]
pub struct Line {
    pub vector: u32,
    /// The message number, or 0 for a line-based interrupt.
    pub message: u32,
    pub is_message: bool,
}

/// An interrupt.
pub struct InterruptData {
    pub device: u64,
    /// The interrupt's parent. The parent's callbacks are serialized with the DPC.
    pub associated: u64,
    pub config: InterruptConfig,
    /// The lock that is held while the DPC or work item runs.
    pub serialization: Option<Lock>,
    /// The resource, once it is assigned.
    pub line: Option<Line>,
    /// The index of the resource that the driver chose, in the device's list.
    pub chosen: Option<usize>,
    /// Set while the device is in D0 and the driver has not disabled the interrupt.
    pub is_connected: bool,
    /// The thread that owns the interrupt's lock, and the thread's IRQL before it acquired the
    /// lock.
    pub held: Option<(ThreadId, Irql)>,
    /// The `KINTERRUPT`, once the driver has requested it.
    pub object: Option<Block>,
}

impl Data for InterruptData {
    const NAME: &'static str = "WDFINTERRUPT";
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(stop_before_delete);

    fn is_frameworks(&self) -> bool {
        true
    }
}

impl InterruptData {
    /// Returns whether the driver handles the interrupt at `PASSIVE_LEVEL`.
    pub const fn is_passive(&self) -> bool {
        self.config.passive_handling != 0
    }

    /// Returns the IRQL at which the driver handles the interrupt.
    pub const fn irql(&self) -> Irql {
        if self.is_passive() { Irql::PASSIVE_LEVEL } else { Irql::DIRQL }
    }
}

fn stop_before_delete(context: &Context, interrupt: u64) {
    forget_dpc(context, interrupt);
    forget_work(context, WorkKind::Interrupt, interrupt);
}
