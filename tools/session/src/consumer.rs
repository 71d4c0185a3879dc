//! A consumer of events from a session in real time, or from a file (`OpenTrace`, `ProcessTrace`).

use std::{
    path::Path,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use windows_sys::Win32::{
    Foundation::ERROR_CTX_CLOSE_PENDING,
    System::Diagnostics::Etw::{
        EVENT_RECORD, EVENT_TRACE_LOGFILEW, PROCESS_TRACE_MODE_EVENT_RECORD,
        PROCESS_TRACE_MODE_REAL_TIME, PROCESSTRACE_HANDLE,
    },
};

use crate::{
    api::{CloseTrace, OpenTraceW, ProcessTrace},
    error::Win32Error,
    wide::wide,
};

/// The function that receives each event on the consumer's thread.
type Handler = Box<dyn FnMut(&EVENT_RECORD) + Send>;

/// The time limit for a consumer to receive the last events of a session that has stopped.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// A running consumer.
pub struct Consumer {
    handle: PROCESSTRACE_HANDLE,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Win32Error>>>,
}

unsafe extern "system" fn deliver(record: *mut EVENT_RECORD) {
    // SAFETY: ETW passes a record that lasts as long as this call.
    let record = unsafe { &*record };
    let handler = record.UserContext.cast::<Handler>();
    // SAFETY: the context is the handler that `ProcessTrace`'s thread keeps alive, and that
    // thread alone calls this.
    let handler = unsafe { &mut *handler };
    handler(record);
}

/// The source of a consumer's events.
#[derive(Clone, Copy)]
pub enum Feed<'a> {
    /// The session with this name, in real time.
    Session(&'a str),
    /// A recorded file.
    File(&'a Path),
}

impl Consumer {
    /// Attaches to a session or a file. `handler` receives its events until the session stops, the
    /// file ends, or this value is closed.
    ///
    /// # Errors
    ///
    /// Fails if the trace cannot be opened.
    pub fn attach(
        feed: Feed<'_>,
        handler: impl FnMut(&EVENT_RECORD) + Send + 'static,
    ) -> Result<Self, Win32Error> {
        let mut name = match feed {
            Feed::Session(session) => wide(session),
            Feed::File(path) => wide(path),
        };
        let handler: Box<Handler> = Box::new(Box::new(handler));
        // The consumer's thread frees the handler.
        let handler = Box::into_raw(handler);
        let mut file =
            EVENT_TRACE_LOGFILEW { Context: handler.cast(), ..EVENT_TRACE_LOGFILEW::default() };
        let mode = match feed {
            Feed::Session(_) => {
                file.LoggerName = name.as_mut_ptr();
                PROCESS_TRACE_MODE_REAL_TIME
            }
            Feed::File(_) => {
                file.LogFileName = name.as_mut_ptr();
                0
            }
        };
        file.Anonymous1.ProcessTraceMode = mode | PROCESS_TRACE_MODE_EVENT_RECORD;
        file.Anonymous2.EventRecordCallback = Some(deliver);
        // SAFETY: the name ends with a NUL, and the structure is a local that the call reads.
        let handle = unsafe { OpenTraceW(&raw mut file) };
        if handle.Value == u64::MAX {
            let error = Win32Error::last("OpenTrace");
            // SAFETY: the pointer came from a box, and `OpenTrace` has not kept it.
            drop(unsafe { Box::from_raw(handler) });
            return Err(error);
        }
        let over = Arc::new(AtomicBool::new(false));
        let over_in_thread = Arc::clone(&over);
        let context = handler.expose_provenance();
        let thread = thread::spawn(move || {
            // SAFETY: the handle was opened for one trace; null means no time limits.
            let code = unsafe { ProcessTrace(&raw const handle, 1, ptr::null(), ptr::null()) };
            let handler = ptr::with_exposed_provenance_mut::<Handler>(context);
            // SAFETY: the pointer came from a box, and no more events are delivered.
            drop(unsafe { Box::from_raw(handler) });
            over_in_thread.store(true, Ordering::Relaxed);
            Win32Error::check("ProcessTrace", code)
        });
        Ok(Self { handle, over, thread: Some(thread) })
    }

    /// Returns true if no more events will arrive.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Waits up to five seconds until a stopped session has delivered its last event. Windows drops
    /// the events that it has not delivered when the trace is closed.
    pub fn finish(&self) {
        let until = Instant::now() + LAST_EVENTS;
        while !self.is_over() && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Detaches from the session.
    ///
    /// # Errors
    ///
    /// Fails if the trace could not be processed or closed.
    pub fn close(mut self) -> Result<(), Win32Error> {
        // SAFETY: the trace was opened, and is closed once.
        let code = unsafe { CloseTrace(self.handle) };
        // The trace closes once the thread has delivered the remaining events.
        let closed = if code == ERROR_CTX_CLOSE_PENDING {
            Ok(())
        } else {
            Win32Error::check("CloseTrace", code)
        };
        let processed = match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // The panic hook has already reported the thread's panic.
            _ => Ok(()),
        };
        processed.and(closed)
    }
}
