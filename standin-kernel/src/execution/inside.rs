//! The inside of a thread that runs only while another one resumes it (see [`super::coroutine`]).

use std::cell::Cell;

use crossbeam_channel::{Receiver, Sender};

use crate::ground::bugcheck::BugCheck;

/// The reason that a coroutine gave its processor back.
pub enum Pause {
    /// It waits, at most until the counter reads the deadline.
    Waits {
        /// The counter's reading at which the wait ends.
        deadline: Option<i64>,
        /// Set if the coroutine ran driver code since it was resumed.
        has_run: bool,
    },
    /// Its body returned.
    Ended,
    /// Its kernel bugchecked.
    BugCheck(Box<BugCheck>),
}

/// The thread's ends of the connection with those that resume it.
pub struct Inside {
    resumed: Receiver<()>,
    pauses: Sender<Pause>,
    /// Set if the thread waits and has looked in vain since it ran.
    is_polling: Cell<bool>,
}

impl Inside {
    /// Creates the inside of a thread from the ends of two channels.
    pub const fn new(resumed: Receiver<()>, pauses: Sender<Pause>) -> Self {
        Self { resumed, pauses, is_polling: Cell::new(false) }
    }

    /// Gives the processor back until the thread is resumed. Returns `false` if that cannot happen any
    /// more.
    pub fn pause(&self, deadline: Option<i64>) -> bool {
        let pause = Pause::Waits { deadline, has_run: !self.is_polling.replace(true) };
        self.pauses.send(pause).is_ok() && self.resumed.recv().is_ok()
    }

    /// Notes that the wait is over.
    pub fn go_on(&self) {
        self.is_polling.set(false);
    }
}
