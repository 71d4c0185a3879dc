//! A coroutine's view of its thread. The thread runs only while resumed (see [`super::coroutine`]).

use std::cell::Cell;

use crossbeam_channel::{Receiver, Sender};

use crate::ground::bugcheck::BugCheck;

/// The reason that a coroutine stopped running.
pub enum Pause {
    /// The coroutine waits, at most until the counter reads the deadline.
    Waits {
        /// The counter's reading at which the wait ends.
        deadline: Option<i64>,
        /// Set if the coroutine has run driver code since it was resumed.
        has_run: bool,
    },
    /// The coroutine's body returned.
    Ended,
    /// The kernel bugchecked.
    BugCheck(Box<BugCheck>),
}

/// The thread's ends of the channels that connect it to the threads that resume it.
pub struct Yielder {
    resumed: Receiver<()>,
    pauses: Sender<Pause>,
    /// Set if the thread is waiting and has polled without success since it last ran.
    is_polling: Cell<bool>,
}

impl Yielder {
    /// Creates a coroutine's view from the ends of two channels.
    pub const fn new(resumed: Receiver<()>, pauses: Sender<Pause>) -> Self {
        Self { resumed, pauses, is_polling: Cell::new(false) }
    }

    /// Stops the thread until it is resumed. Returns `false` if it can no longer be resumed.
    pub fn pause(&self, deadline: Option<i64>) -> bool {
        let pause = Pause::Waits { deadline, has_run: !self.is_polling.replace(true) };
        self.pauses.send(pause).is_ok() && self.resumed.recv().is_ok()
    }

    /// Records that the wait is over.
    pub fn go_on(&self) {
        self.is_polling.set(false);
    }
}
