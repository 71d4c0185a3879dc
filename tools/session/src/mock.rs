//! A mock of the ETW and TDH routines that Wine lacks. It checks the arguments against the
//! documentation, and delivers a test's events.

#![allow(non_snake_case, reason = "the routines have the names of Windows")]
#![allow(
    clippy::unused_self,
    clippy::non_send_fields_in_send_ty,
    clippy::significant_drop_tightening,
    reason = "the value of a test's mock is the permission to use the state, which is locked"
)]

use std::{
    collections::BTreeMap,
    ffi::c_void,
    ptr,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use windows_sys::{
    Win32::{
        Foundation::{
            ERROR_ALREADY_EXISTS, ERROR_BAD_LENGTH, ERROR_CTX_CLOSE_PENDING,
            ERROR_INSUFFICIENT_BUFFER, ERROR_INVALID_HANDLE, ERROR_INVALID_PARAMETER,
            ERROR_NOT_FOUND, ERROR_WMI_INSTANCE_NOT_FOUND, FILETIME, SetLastError,
        },
        System::Diagnostics::Etw::{
            CONTROLTRACE_HANDLE, ENABLE_TRACE_PARAMETERS, EVENT_CONTROL_CODE_CAPTURE_STATE,
            EVENT_HEADER_EXTENDED_DATA_ITEM, EVENT_MAP_INFO, EVENT_RECORD,
            EVENT_TRACE_CONTROL_QUERY, EVENT_TRACE_CONTROL_STOP, EVENT_TRACE_LOGFILEW,
            EVENT_TRACE_PROPERTIES, EVENT_TRACE_REAL_TIME_MODE, PROCESS_TRACE_MODE_EVENT_RECORD,
            PROCESS_TRACE_MODE_REAL_TIME, PROCESSTRACE_HANDLE, TDH_CONTEXT, TRACE_EVENT_INFO,
            WNODE_FLAG_TRACED_GUID,
        },
    },
    core::{GUID, PCWSTR},
};

use etl_file::{EventRecord, Guid};

use crate::guid::{from_windows, to_windows};

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `StartTrace`: the session's name, its mode and its file.
    Start(String, u32, String),
    /// `EnableTraceEx2`: the provider, the control code, level and masks, and `EnableProperty`.
    Enable(Guid, u32, u8, u64, u64, u32),
    /// `ControlTrace` with the stop code.
    Stop(String),
    /// `OpenTrace`.
    Open(String),
    /// `CloseTrace`.
    Close,
}

/// A running session.
struct Running {
    name: String,
    handle: u64,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    sessions: Vec<Running>,
    handles: u64,
    /// The traces that consumers have opened: their names, callbacks and contexts.
    consumers: BTreeMap<u64, (String, EVENT_TRACE_LOGFILEW)>,
    /// The events that a provider writes when it is enabled or must capture its state.
    events: Vec<EventRecord>,
    /// The events that the session delivers next.
    pending: Vec<EventRecord>,
    /// The events that a stopped session delivers after some time.
    late: (Duration, Vec<EventRecord>),
    /// The error code that each failing routine returns.
    failures: BTreeMap<&'static str, u32>,
    /// The `TRACE_EVENT_INFO` of events that TDH knows, by provider and event id.
    schemas: BTreeMap<(Guid, u16), Vec<u8>>,
    maps: BTreeMap<String, Vec<u8>>,
}

// SAFETY: its callbacks and contexts are used only on the thread of `ProcessTrace`.
unsafe impl Send for State {}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();
/// Only one test at a time uses the mock.
static TEST: Mutex<()> = Mutex::new(());

/// The mock, for a test.
pub struct Mock(#[expect(dead_code, reason = "the lock is held")] MutexGuard<'static, ()>);

impl Mock {
    /// Returns a mock without sessions.
    pub fn new() -> Self {
        let test = TEST.lock().unwrap_or_else(PoisonError::into_inner);
        *lock() = Some(State::default());
        Self(test)
    }

    /// Makes providers write these events when they are enabled.
    pub fn writes(&self, events: Vec<EventRecord>) {
        with(|state| state.events = events);
    }

    /// Makes a session deliver these events only some time after it has stopped.
    pub fn writes_late(&self, after: Duration, events: Vec<EventRecord>) {
        with(|state| state.late = (after, events));
    }

    /// Makes a routine fail.
    pub fn fails(&self, routine: &'static str, code: u32) {
        with(|state| state.failures.insert(routine, code));
    }

    /// Adds a schema to TDH.
    pub fn knows(&self, provider: Guid, id: u16, schema: Vec<u8>) {
        with(|state| state.schemas.insert((provider, id), schema));
    }

    /// Adds a map to TDH.
    pub fn knows_map(&self, name: &str, map: Vec<u8>) {
        with(|state| state.maps.insert(name.to_owned(), map));
    }

    /// Returns the calls so far.
    pub fn calls(&self) -> Vec<Call> {
        with(|state| state.calls.clone())
    }
}

/// Returns the names of the running sessions.
pub fn running() -> Vec<String> {
    with(|state| state.sessions.iter().map(|one| one.name.clone()).collect())
}

/// Starts a session as Windows does at boot.
pub fn start_at_boot(name: &str) {
    with(|state| {
        state.handles += 1;
        let handle = state.handles;
        state.sessions.push(Running { name: name.to_owned(), handle });
    });
}

/// Stops a session in place of another program.
pub fn stop_from_outside(name: &str) {
    with(|state| state.sessions.retain(|one| one.name != name));
    CHANGED.notify_all();
}

fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<T>(action: impl FnOnce(&mut State) -> T) -> T {
    action(lock().as_mut().expect("a test holds the mock"))
}

/// Reads a NUL-terminated string.
fn text(text: PCWSTR) -> String {
    let units = (0..).map(|index| {
        // SAFETY: the string ends with a NUL, and reading stops at the NUL.
        let unit = unsafe { text.add(index) };
        // SAFETY: as above.
        unsafe { *unit }
    });
    String::from_utf16(&units.take_while(|unit| *unit != 0).collect::<Vec<_>>()).unwrap()
}

fn failure(state: &State, routine: &str) -> Option<u32> {
    state.failures.get(routine).copied()
}

/// Checks that the properties have room for both names, and returns the properties.
unsafe fn properties<'a>(
    properties: *mut EVENT_TRACE_PROPERTIES,
) -> Result<&'a mut EVENT_TRACE_PROPERTIES, u32> {
    // SAFETY: the caller passes a structure.
    let properties = unsafe { &mut *properties };
    let size = properties.Wnode.BufferSize as usize;
    let base = size_of::<EVENT_TRACE_PROPERTIES>();
    if size < base || properties.Wnode.Flags & WNODE_FLAG_TRACED_GUID == 0 {
        return Err(ERROR_BAD_LENGTH);
    }
    let fits = |offset: u32| {
        let offset = offset as usize;
        offset == 0 || (base..size).contains(&offset)
    };
    if properties.LoggerNameOffset == 0
        || !fits(properties.LoggerNameOffset)
        || !fits(properties.LogFileNameOffset)
    {
        return Err(ERROR_INVALID_PARAMETER);
    }
    Ok(properties)
}

pub unsafe fn StartTraceW(
    handle: *mut CONTROLTRACE_HANDLE,
    name: PCWSTR,
    given: *mut EVENT_TRACE_PROPERTIES,
) -> u32 {
    // SAFETY: the caller passes a structure.
    let properties = match unsafe { properties(given) } {
        Ok(properties) => properties,
        Err(code) => return code,
    };
    let file = match properties.LogFileNameOffset {
        0 => String::new(),
        offset => {
            // SAFETY: the offset is inside the structure.
            text(unsafe { given.byte_add(offset as usize) }.cast())
        }
    };
    // A session without a file must have real-time consumers.
    if file.is_empty() && properties.LogFileMode & EVENT_TRACE_REAL_TIME_MODE == 0 {
        return ERROR_INVALID_PARAMETER;
    }
    let name = text(name);
    with(|state| {
        if let Some(code) = failure(state, "StartTrace") {
            return code;
        }
        if state.sessions.iter().any(|one| one.name == name) {
            return ERROR_ALREADY_EXISTS;
        }
        state.handles += 1;
        state.calls.push(Call::Start(name.clone(), properties.LogFileMode, file));
        state.sessions.push(Running { name, handle: state.handles });
        // SAFETY: the caller passes an out-parameter.
        unsafe { (*handle).Value = state.handles };
        0
    })
}

pub unsafe fn ControlTraceW(
    handle: CONTROLTRACE_HANDLE,
    name: PCWSTR,
    given: *mut EVENT_TRACE_PROPERTIES,
    code: u32,
) -> u32 {
    // SAFETY: the caller passes a structure.
    let properties = match unsafe { properties(given) } {
        Ok(properties) => properties,
        Err(code) => return code,
    };
    let name = if name.is_null() { None } else { Some(text(name)) };
    let result = with(|state| {
        let is_it = |one: &Running| {
            name.as_ref().map_or(one.handle == handle.Value, |name| one.name == *name)
        };
        let Some(index) = state.sessions.iter().position(is_it) else {
            return ERROR_WMI_INSTANCE_NOT_FOUND;
        };
        if let Some(code) = failure(state, "ControlTrace") {
            return code;
        }
        match code {
            EVENT_TRACE_CONTROL_QUERY => {
                properties.Wnode.Anonymous1.HistoricalContext = state.sessions[index].handle;
            }
            EVENT_TRACE_CONTROL_STOP => {
                let session = state.sessions.remove(index);
                state.calls.push(Call::Stop(session.name));
                properties.EventsLost = 3;
            }
            _ => return ERROR_INVALID_PARAMETER,
        }
        0
    });
    CHANGED.notify_all();
    result
}

#[expect(clippy::too_many_arguments, reason = "the routine has them")]
pub unsafe fn EnableTraceEx2(
    session: CONTROLTRACE_HANDLE,
    provider: *const GUID,
    code: u32,
    level: u8,
    any: u64,
    all: u64,
    _timeout: u32,
    parameters: *const ENABLE_TRACE_PARAMETERS,
) -> u32 {
    // SAFETY: the caller passes a GUID.
    let provider = from_windows(unsafe { &*provider });
    // SAFETY: the caller passes the parameters.
    let property = unsafe { (*parameters).EnableProperty };
    let result = with(|state| {
        if let Some(code) = failure(state, "EnableTraceEx2") {
            return code;
        }
        if state.sessions.iter().all(|one| one.handle != session.Value) {
            return ERROR_INVALID_HANDLE;
        }
        state.calls.push(Call::Enable(provider, code, level, any, all, property));
        if code != EVENT_CONTROL_CODE_CAPTURE_STATE {
            state.pending.append(&mut state.events);
        }
        0
    });
    CHANGED.notify_all();
    result
}

pub unsafe fn OpenTraceW(file: *mut EVENT_TRACE_LOGFILEW) -> PROCESSTRACE_HANDLE {
    // SAFETY: the caller passes a structure.
    let file = unsafe { *file };
    // SAFETY: both members of the union are numbers.
    let mode = unsafe { file.Anonymous1.ProcessTraceMode };
    assert_ne!(mode & PROCESS_TRACE_MODE_EVENT_RECORD, 0);
    let is_live = mode & PROCESS_TRACE_MODE_REAL_TIME != 0;
    let name = text(if is_live { file.LoggerName } else { file.LogFileName });
    let found = with(|state| {
        if let Some(code) = failure(state, "OpenTrace") {
            return Err(code);
        }
        state.handles += 1;
        state.calls.push(Call::Open(name.clone()));
        state.consumers.insert(state.handles, (name, file));
        Ok(state.handles)
    });
    match found {
        Ok(handle) => PROCESSTRACE_HANDLE { Value: handle },
        Err(code) => {
            // SAFETY: the call has no preconditions.
            unsafe { SetLastError(code) };
            PROCESSTRACE_HANDLE { Value: u64::MAX }
        }
    }
}

/// Delivers the session's events until the session has stopped or the trace is closed.
pub unsafe fn ProcessTrace(
    handles: *const PROCESSTRACE_HANDLE,
    count: u32,
    _start: *const FILETIME,
    _end: *const FILETIME,
) -> u32 {
    assert_eq!(count, 1);
    // SAFETY: the caller passes one handle.
    let handle = unsafe { (*handles).Value };
    loop {
        let mut guard = lock();
        let state = guard.as_mut().expect("a test holds the mock");
        let Some((name, file)) = state.consumers.get(&handle).cloned() else {
            return 0;
        };
        let events = std::mem::take(&mut state.pending);
        let is_running = state.sessions.iter().any(|one| one.name == name);
        if events.is_empty() {
            if !is_running {
                let (after, late) = std::mem::take(&mut state.late);
                if late.is_empty() {
                    return 0;
                }
                // Closing the trace ends the wait.
                let until = Instant::now() + after;
                while guard.as_ref().is_some_and(|state| state.consumers.contains_key(&handle))
                    && Instant::now() < until
                {
                    guard = CHANGED
                        .wait_timeout(guard, Duration::from_millis(20))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0;
                }
                guard.as_mut().expect("a test holds the mock").pending = late;
                continue;
            }
            drop(CHANGED.wait_timeout(guard, Duration::from_millis(20)));
            continue;
        }
        drop(guard);
        for event in &events {
            deliver(event, &file);
        }
    }
}

/// Calls a consumer's callback with an event.
pub fn deliver(event: &EventRecord, file: &EVENT_TRACE_LOGFILEW) {
    with_record(event, |record| {
        record.UserContext = file.Context;
        // SAFETY: the consumer has set this member.
        let callback = unsafe { file.Anonymous2.EventRecordCallback }.expect("a callback");
        // SAFETY: the record lasts as long as the call.
        unsafe { callback(record) };
    });
}

/// Creates the record that Windows delivers for an event.
pub fn with_record<T>(event: &EventRecord, action: impl FnOnce(&mut EVENT_RECORD) -> T) -> T {
    let mut items: Vec<EVENT_HEADER_EXTENDED_DATA_ITEM> = event
        .extended
        .iter()
        .map(|item| EVENT_HEADER_EXTENDED_DATA_ITEM {
            ExtType: item.ext_type,
            DataSize: u16::try_from(item.data.len()).unwrap(),
            DataPtr: item.data.as_ptr().expose_provenance() as u64,
            ..EVENT_HEADER_EXTENDED_DATA_ITEM::default()
        })
        .collect();
    let mut record = EVENT_RECORD::default();
    let header = &mut record.EventHeader;
    header.ThreadId = event.thread_id;
    header.ProcessId = event.process_id;
    header.TimeStamp = event.timestamp;
    header.ProviderId = to_windows(event.provider);
    header.ActivityId = to_windows(event.activity_id);
    let (to, from) = (&mut header.EventDescriptor, &event.descriptor);
    (to.Id, to.Version, to.Channel, to.Level) = (from.id, from.version, from.channel, from.level);
    (to.Opcode, to.Task, to.Keyword) = (from.opcode, from.task, from.keyword);
    record.ExtendedDataCount = u16::try_from(items.len()).unwrap();
    record.ExtendedData = if items.is_empty() { ptr::null_mut() } else { items.as_mut_ptr() };
    record.UserDataLength = u16::try_from(event.user_data.len()).unwrap();
    record.UserData = if event.user_data.is_empty() {
        ptr::null_mut()
    } else {
        event.user_data.as_ptr().cast_mut().cast::<c_void>()
    };
    action(&mut record)
}

pub unsafe fn CloseTrace(handle: PROCESSTRACE_HANDLE) -> u32 {
    let code = with(|state| {
        state.calls.push(Call::Close);
        let Some((name, _)) = state.consumers.get(&handle.Value) else {
            return ERROR_INVALID_HANDLE;
        };
        // The events of a stopped session are still delivered.
        if !state.sessions.iter().any(|one| one.name == *name) && !state.pending.is_empty() {
            return ERROR_CTX_CLOSE_PENDING;
        }
        state.consumers.remove(&handle.Value);
        0
    });
    CHANGED.notify_all();
    code
}

/// Copies a structure to the caller's buffer, if it fits.
unsafe fn copy(from: Option<&Vec<u8>>, to: *mut u8, size: *mut u32) -> u32 {
    let Some(from) = from else {
        return ERROR_NOT_FOUND;
    };
    let needed = u32::try_from(from.len()).unwrap();
    // SAFETY: the caller passes the size.
    let room = unsafe { *size };
    // SAFETY: as above.
    unsafe { *size = needed };
    if room < needed {
        return ERROR_INSUFFICIENT_BUFFER;
    }
    // SAFETY: the buffer has room for the bytes.
    unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    0
}

pub unsafe fn TdhGetEventInformation(
    record: *const EVENT_RECORD,
    _count: u32,
    _context: *const TDH_CONTEXT,
    buffer: *mut TRACE_EVENT_INFO,
    size: *mut u32,
) -> u32 {
    // SAFETY: the caller passes a record.
    let header = unsafe { (*record).EventHeader };
    let key = (from_windows(&header.ProviderId), header.EventDescriptor.Id);
    // SAFETY: the buffer has the size that the caller states.
    with(|state| unsafe { copy(state.schemas.get(&key), buffer.cast(), size) })
}

pub unsafe fn TdhGetEventMapInformation(
    _record: *const EVENT_RECORD,
    name: PCWSTR,
    buffer: *mut EVENT_MAP_INFO,
    size: *mut u32,
) -> u32 {
    let name = text(name);
    // SAFETY: the buffer has the size that the caller states.
    with(|state| unsafe { copy(state.maps.get(&name), buffer.cast(), size) })
}
