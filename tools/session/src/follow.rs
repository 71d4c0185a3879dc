//! Follows a session from start to stop, and passes on its events as they are written.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex},
};

use windows_sys::Win32::{
    Foundation::ERROR_WMI_INSTANCE_NOT_FOUND, System::Diagnostics::Etw::EVENT_RECORD,
};

use crate::{
    Filter, Source,
    consumer::{Consumer, Feed},
    error::{SessionError, Win32Error},
    process,
    session::{self, Buffers, Counts, Delivery, OwnSession},
};

/// A session to follow.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    /// The session's name.
    pub session: &'a str,
    /// The file that keeps the events, if any.
    pub file: Option<&'a Path>,
    /// The providers and groups to enable.
    pub enables: &'a [(Source, Filter)],
    /// True to make the providers and groups write their state.
    pub capture_state: bool,
    /// The duration in seconds; if `None`, Ctrl+C or the end of the output ends the session.
    pub seconds: Option<u64>,
}

/// Starts a session, passes its events to `handler`, and stops the session.
///
/// The session ends when Ctrl+C is pressed, the console is closed, the time has elapsed or the
/// handler fails. `ready` is called once the providers are enabled. Returns the session's counters,
/// or `None` if another program stopped the session.
///
/// # Errors
///
/// Fails if the session cannot be started, consumed or stopped, if a provider cannot be enabled, or
/// with the handler's error. The session keeps running only if stopping it fails, which is
/// reported, or if this process is killed or panics.
pub fn follow(
    live: &Live<'_>,
    ready: impl FnOnce(),
    handler: impl FnMut(&EVENT_RECORD) -> io::Result<()> + Send + 'static,
) -> Result<Option<Counts>, SessionError> {
    let _done = process::catch_interrupts()?;
    let delivery = live.file.map_or(Delivery::RealTime, Delivery::Both);
    let session = OwnSession::start(live.session, delivery, Buffers::default())?;
    let (handler, failure) = keeping_failure(handler);
    let consumer = Consumer::attach(Feed::Session(live.session), handler)?;
    let enabled = enable(&session, live);
    if enabled.is_ok() {
        ready();
        process::wait(live.seconds, || consumer.is_over() || failure.is_set());
    }
    let stopped = match session.stop() {
        Ok(counts) => Ok(Some(counts)),
        // Another program has stopped it.
        Err(error) if error.code == ERROR_WMI_INSTANCE_NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    };
    // The events in the stopped session's buffers are still on their way.
    if stopped.is_ok() && !failure.is_set() {
        consumer.finish();
    }
    let closed = consumer.close();
    if let (Err(_), Err(error)) = (&enabled, &stopped) {
        session::warn_of_running(error);
    }
    enabled?;
    let counts = stopped?;
    closed?;
    failure.into_result().map(|()| counts)
}

fn enable(session: &OwnSession, live: &Live<'_>) -> Result<(), Win32Error> {
    let session = session.session();
    for (source, filter) in live.enables {
        session.enable(*source, filter)?;
    }
    if live.capture_state {
        for (source, _) in live.enables {
            session.capture_state(*source)?;
        }
    }
    Ok(())
}

/// Passes the events of a recorded file to `handler`, until the end or Ctrl+C.
///
/// # Errors
///
/// Fails if the file cannot be read, or with the handler's error.
pub fn replay(
    file: &Path,
    handler: impl FnMut(&EVENT_RECORD) -> io::Result<()> + Send + 'static,
) -> Result<(), SessionError> {
    process::require_windows()?;
    let _done = process::catch_interrupts()?;
    let (handler, failure) = keeping_failure(handler);
    let consumer = Consumer::attach(Feed::File(file), handler)?;
    process::wait(None, || consumer.is_over() || failure.is_set());
    consumer.close()?;
    failure.into_result()
}

/// The first error of a handler on the consumer's thread.
#[derive(Clone, Default)]
struct Failed(Arc<Mutex<Option<io::Error>>>);

impl Failed {
    fn is_set(&self) -> bool {
        self.0.lock().is_ok_and(|failed| failed.is_some())
    }

    /// Returns the error, unless it only means that the reader of the output is gone.
    fn into_result(self) -> Result<(), SessionError> {
        let failed = self.0.lock().ok().and_then(|mut failed| failed.take());
        match failed {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(SessionError::Output(error))
            }
            _ => Ok(()),
        }
    }
}

/// Returns a handler that stops at its first error, and that error.
fn keeping_failure(
    mut handler: impl FnMut(&EVENT_RECORD) -> io::Result<()> + Send + 'static,
) -> (impl FnMut(&EVENT_RECORD) + Send + 'static, Failed) {
    let failed = Failed::default();
    let keep = failed.clone();
    let checked = move |record: &EVENT_RECORD| {
        if !keep.is_set()
            && let Err(error) = handler(record)
            && let Ok(mut failed) = keep.0.lock()
        {
            failed.get_or_insert(error);
        }
    };
    (checked, failed)
}

#[cfg(test)]
mod tests;
