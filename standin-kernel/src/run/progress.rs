//! Progress messages for long steps, on standard error.

use std::{
    io::{self, Write as _},
    time::{Duration, Instant},
};

use crossbeam_channel::{RecvTimeoutError, Sender};
use etl_file::internals::show::Escaped;

/// The time after which a step counts as long.
const LONG: Duration = Duration::from_secs(2);

/// The time between two messages about a long step.
const AGAIN: Duration = Duration::from_secs(10);

/// Writes messages on standard error about each long step.
pub struct Progress(Option<Sender<String>>);

impl Progress {
    /// Starts to watch steps.
    pub fn new() -> Self {
        let (steps, inbox) = crossbeam_channel::unbounded::<String>();
        let watch = move || {
            let mut next = inbox.recv().ok();
            while let Some(step) = next {
                let start = Instant::now();
                let mut wait = LONG;
                next = loop {
                    match inbox.recv_timeout(wait) {
                        Ok(step) => break Some(step),
                        Err(RecvTimeoutError::Disconnected) => break None,
                        Err(RecvTimeoutError::Timeout) => {}
                    }
                    // A message that cannot be written does not matter.
                    let _unread = writeln!(
                        io::stderr(),
                        "Running {} … {} s",
                        Escaped(&step),
                        start.elapsed().as_secs()
                    );
                    wait = AGAIN;
                };
            }
        };
        // If the thread cannot be started, only the messages are missing.
        let started = std::thread::Builder::new().name("progress".to_owned()).spawn(watch);
        Self(started.is_ok().then_some(steps))
    }

    /// Records that a step starts and the previous step has ended.
    pub fn starts(&self, step: &str) {
        if let Some(steps) = &self.0 {
            // The thread reads until the sender is dropped.
            let _sent = steps.send(step.to_owned());
        }
    }
}
