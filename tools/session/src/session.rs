//! Control of sessions (`StartTrace`, `ControlTrace`, `EnableTraceEx2`).

use std::{
    path::{Path, PathBuf},
    ptr,
};

use etl_file::Guid;
use windows_sys::{
    Win32::{
        Foundation::ERROR_MORE_DATA,
        System::Diagnostics::Etw::{
            CONTROLTRACE_HANDLE, ENABLE_TRACE_PARAMETERS, ENABLE_TRACE_PARAMETERS_VERSION_2,
            EVENT_CONTROL_CODE_CAPTURE_STATE, EVENT_CONTROL_CODE_DISABLE_PROVIDER,
            EVENT_CONTROL_CODE_ENABLE_PROVIDER, EVENT_ENABLE_PROPERTY_PROVIDER_GROUP,
            EVENT_FILTER_DESCRIPTOR, EVENT_FILTER_TYPE_EVENT_ID, EVENT_TRACE_CONTROL_QUERY,
            EVENT_TRACE_CONTROL_STOP, EVENT_TRACE_FILE_MODE_SEQUENTIAL, EVENT_TRACE_PROPERTIES,
            EVENT_TRACE_REAL_TIME_MODE, EnumerateTraceGuidsEx, TRACE_ENABLE_INFO, TRACE_GUID_INFO,
            TRACE_PROVIDER_INSTANCE_INFO, TraceDisallowListQuery, TraceGuidQueryInfo,
            TraceQueryInformation, TraceSetDisallowList, TraceSetInformation,
            WNODE_FLAG_TRACED_GUID,
        },
    },
    core::GUID,
};

use crate::{
    Filter, Ids, Source,
    api::{ControlTraceW, EnableTraceEx2, StartTraceW},
    error::{SessionError, Win32Error},
    guid::{from_windows, to_windows},
    pointer::start,
    process,
    wide::wide,
};

/// The time limit for enabling a provider. With a timeout, the call returns only after the provider
/// has been notified.
const ENABLE_TIMEOUT_MS: u32 = 5_000;

/// The capacity, in UTF-16 units, for the names of a session and its file.
const NAME_CAPACITY: usize = 1024;

/// `EVENT_TRACE_PROPERTIES`, followed by both names.
#[repr(C)]
struct Properties {
    base: EVENT_TRACE_PROPERTIES,
    session: [u16; NAME_CAPACITY],
    file: [u16; NAME_CAPACITY],
}

/// Returns the size of a type in bytes.
fn size<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}

impl Properties {
    fn new() -> Box<Self> {
        let mut base = EVENT_TRACE_PROPERTIES::default();
        base.Wnode.BufferSize = size::<Self>();
        base.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
        // Timestamps are values of the performance counter.
        base.Wnode.ClientContext = 1;
        base.LoggerNameOffset = size::<EVENT_TRACE_PROPERTIES>();
        base.LogFileNameOffset = base.LoggerNameOffset + size::<[u16; NAME_CAPACITY]>();
        Box::new(Self { base, session: [0; NAME_CAPACITY], file: [0; NAME_CAPACITY] })
    }
}

/// The destination of a session's events.
#[derive(Clone, Copy, Debug)]
pub enum Delivery<'a> {
    /// To a file.
    File(&'a Path),
    /// To consumers, in real time.
    RealTime,
    /// To consumers, in real time, and to a file.
    Both(&'a Path),
}

impl<'a> Delivery<'a> {
    const fn file(self) -> Option<&'a Path> {
        match self {
            Self::File(path) | Self::Both(path) => Some(path),
            Self::RealTime => None,
        }
    }

    const fn mode(self) -> u32 {
        match self {
            Self::File(_) => EVENT_TRACE_FILE_MODE_SEQUENTIAL,
            Self::RealTime => EVENT_TRACE_REAL_TIME_MODE,
            // The only file mode, besides circular ones, that can be combined with real time
            // (ETW-6.4.6).
            Self::Both(_) => EVENT_TRACE_FILE_MODE_SEQUENTIAL | EVENT_TRACE_REAL_TIME_MODE,
        }
    }
}

/// The size and number of a session's buffers; zero means the system's default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    /// The size of a buffer in kilobytes.
    pub kilobytes: u32,
    /// The minimum number of buffers.
    pub minimum: u32,
    /// The maximum number of buffers.
    pub maximum: u32,
    /// Additional bits of `LogFileMode`.
    pub modes: u32,
}

/// The counters of a session (`EVENT_TRACE_PROPERTIES`).
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// The number of lost events.
    pub events_lost: u32,
    /// The number of written buffers.
    pub buffers_written: u32,
    /// The number of buffers that could not be written to the file.
    pub buffers_lost: u32,
    /// The number of buffers that no consumer read in time.
    pub real_time_buffers_lost: u32,
}

/// Returns the absolute path of a session's file. Windows resolves relative paths in another folder
/// than this process's.
///
/// # Errors
///
/// Fails if the current folder is unknown.
pub fn absolute(path: &Path) -> Result<PathBuf, SessionError> {
    std::path::absolute(path).map_err(|error| SessionError::Folder { path: path.to_owned(), error })
}

/// A running session.
pub struct Session {
    handle: CONTROLTRACE_HANDLE,
}

/// A session that this process started. Dropping this value stops it.
pub struct OwnSession {
    session: Session,
    running: bool,
}

impl OwnSession {
    /// Starts a session.
    ///
    /// # Errors
    ///
    /// Fails on Wine, if the file's path cannot be made absolute, and if the session cannot be
    /// started.
    pub fn start(
        name: &str,
        delivery: Delivery<'_>,
        buffers: Buffers,
    ) -> Result<Self, SessionError> {
        process::require_windows()?;
        let mut properties = Properties::new();
        properties.base.BufferSize = buffers.kilobytes;
        properties.base.MinimumBuffers = buffers.minimum;
        properties.base.MaximumBuffers = buffers.maximum;
        properties.base.LogFileMode = delivery.mode();
        if !matches!(delivery, Delivery::File(_)) {
            // Events are shown after at most a second.
            properties.base.FlushTimer = 1;
        }
        if let Some(path) = delivery.file() {
            let path = wide(absolute(path)?);
            // A name that is too long is truncated; the system then rejects it.
            let length = path.len().min(NAME_CAPACITY - 1);
            properties.file[..length].copy_from_slice(&path[..length]);
        } else {
            properties.base.LogFileNameOffset = 0;
        }
        properties.base.LogFileMode |= buffers.modes;
        let name = wide(name);
        let mut handle = CONTROLTRACE_HANDLE::default();
        // SAFETY: the name ends with a NUL, and the structure is as large as it states, and
        // contains both names' offsets.
        let code = unsafe {
            StartTraceW(
                &raw mut handle,
                name.as_ptr(),
                (&raw mut *properties).cast::<EVENT_TRACE_PROPERTIES>(),
            )
        };
        Win32Error::check("StartTrace", code)?;
        Ok(Self { session: Session { handle }, running: true })
    }

    /// Stops the session.
    ///
    /// # Errors
    ///
    /// Fails if the session is not running or cannot be stopped.
    pub fn stop(mut self) -> Result<Counts, Win32Error> {
        self.running = false;
        self.session.control(EVENT_TRACE_CONTROL_STOP)
    }

    /// Returns the session.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }
}

impl Drop for OwnSession {
    fn drop(&mut self) {
        if self.running
            && let Err(error) = self.session.control(EVENT_TRACE_CONTROL_STOP)
        {
            warn_of_running(&error);
        }
    }
}

/// Warns about a session that cannot be stopped.
pub(crate) fn warn_of_running(error: &Win32Error) {
    eprintln!(
        "warning: cannot stop the session, so it is still running (`logman query -ets` lists it): \
         {error}"
    );
}

impl Session {
    /// Finds a running session by its name.
    ///
    /// # Errors
    ///
    /// Fails on Wine, and if no session has this name.
    pub fn named(name: &str) -> Result<Self, SessionError> {
        process::require_windows()?;
        let mut properties = Properties::new();
        let name = wide(name);
        // SAFETY: the name ends with a NUL, and the structure is as large as it states.
        let code = unsafe {
            ControlTraceW(
                CONTROLTRACE_HANDLE::default(),
                name.as_ptr(),
                (&raw mut *properties).cast::<EVENT_TRACE_PROPERTIES>(),
                EVENT_TRACE_CONTROL_QUERY,
            )
        };
        Win32Error::check("ControlTrace", code)?;
        // SAFETY: the query has filled in the session's handle.
        let value = unsafe { properties.base.Wnode.Anonymous1.HistoricalContext };
        Ok(Self { handle: CONTROLTRACE_HANDLE { Value: value } })
    }

    fn control(&self, code: u32) -> Result<Counts, Win32Error> {
        let mut properties = Properties::new();
        // SAFETY: the structure is as large as it states.
        let result = unsafe {
            ControlTraceW(
                self.handle,
                ptr::null(),
                (&raw mut *properties).cast::<EVENT_TRACE_PROPERTIES>(),
                code,
            )
        };
        // The counters are valid even if a name did not fit.
        if result != ERROR_MORE_DATA {
            Win32Error::check("ControlTrace", result)?;
        }
        Ok(Counts {
            events_lost: properties.base.EventsLost,
            buffers_written: properties.base.BuffersWritten,
            buffers_lost: properties.base.LogBuffersLost,
            real_time_buffers_lost: properties.base.RealTimeBuffersLost,
        })
    }

    fn control_provider(
        &self,
        source: Source,
        code: u32,
        filter: &Filter,
    ) -> Result<(), Win32Error> {
        let ids = filter.ids.as_ref().map(event_ids);
        let filters: Vec<(u32, &[u8])> =
            ids.iter().map(|bytes| (EVENT_FILTER_TYPE_EVENT_ID, bytes.as_slice())).collect();
        self.control_with(source, code, filter, None, &filters)
    }

    /// Calls `EnableTraceEx2` with a source id and with `filters`, which are pairs of a type and
    /// data, instead of the ids in `filter`.
    ///
    /// # Errors
    ///
    /// Fails if Windows rejects the call.
    pub fn control_with(
        &self,
        source: Source,
        code: u32,
        filter: &Filter,
        source_id: Option<Guid>,
        filters: &[(u32, &[u8])],
    ) -> Result<(), Win32Error> {
        let (guid, properties) = match source {
            Source::Provider(guid) => (guid, 0),
            Source::Group(guid) => (guid, EVENT_ENABLE_PROPERTY_PROVIDER_GROUP),
        };
        let mut descriptors: Vec<EVENT_FILTER_DESCRIPTOR> = filters
            .iter()
            .map(|(kind, bytes)| EVENT_FILTER_DESCRIPTOR {
                Ptr: bytes.as_ptr().expose_provenance() as u64,
                Size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                Type: *kind,
            })
            .collect();
        let parameters = ENABLE_TRACE_PARAMETERS {
            Version: ENABLE_TRACE_PARAMETERS_VERSION_2,
            EnableProperty: properties,
            SourceId: to_windows(source_id.unwrap_or_default()),
            FilterDescCount: u32::try_from(descriptors.len()).unwrap_or(u32::MAX),
            EnableFilterDesc: if descriptors.is_empty() {
                ptr::null_mut()
            } else {
                descriptors.as_mut_ptr()
            },
            ..ENABLE_TRACE_PARAMETERS::default()
        };
        let guid = to_windows(guid);
        // SAFETY: the GUID, the parameters and the filter that they point to are locals that
        // outlive the call.
        let result = unsafe {
            EnableTraceEx2(
                self.handle, &raw const guid, code, filter.level, filter.any, filter.all,
                ENABLE_TIMEOUT_MS, &raw const parameters,
            )
        };
        Win32Error::check("EnableTraceEx2", result)
    }

    /// Enables a provider or group.
    ///
    /// # Errors
    ///
    /// Fails if Windows rejects the call.
    pub fn enable(&self, source: Source, filter: &Filter) -> Result<(), Win32Error> {
        self.control_provider(source, EVENT_CONTROL_CODE_ENABLE_PROVIDER, filter)
    }

    /// Disables a provider or group.
    ///
    /// # Errors
    ///
    /// Fails if Windows rejects the call.
    pub fn disable(&self, source: Source) -> Result<(), Win32Error> {
        let code = EVENT_CONTROL_CODE_DISABLE_PROVIDER;
        self.control_provider(source, code, &Filter::default())
    }

    /// Asks a provider or group to write its state.
    ///
    /// # Errors
    ///
    /// Fails if Windows rejects the call.
    pub fn capture_state(&self, source: Source) -> Result<(), Win32Error> {
        let code = EVENT_CONTROL_CODE_CAPTURE_STATE;
        self.control_provider(source, code, &Filter::default())
    }

    /// Sets the providers that groups do not enable.
    ///
    /// # Errors
    ///
    /// Fails if Windows rejects the call.
    pub fn disallow(&self, providers: &[Guid]) -> Result<(), Win32Error> {
        let guids: Vec<GUID> = providers.iter().copied().map(to_windows).collect();
        // SAFETY: the slice has the given length and outlives the call; an empty list is null.
        let code = unsafe {
            TraceSetInformation(
                self.handle,
                TraceSetDisallowList,
                start(&guids).cast(),
                u32::try_from(size_of_val(guids.as_slice())).unwrap_or(u32::MAX),
            )
        };
        Win32Error::check("TraceSetInformation", code)
    }

    /// Returns the providers that groups do not enable.
    ///
    /// # Errors
    ///
    /// Fails if Windows rejects the call.
    pub fn disallowed(&self) -> Result<Vec<Guid>, Win32Error> {
        const MAX_PROVIDERS: usize = 256;
        let mut guids = [GUID::default(); MAX_PROVIDERS];
        let mut length = 0;
        // SAFETY: the buffer is as large as the given size and outlives the call.
        let code = unsafe {
            TraceQueryInformation(
                self.handle,
                TraceDisallowListQuery,
                guids.as_mut_ptr().cast(),
                size::<[GUID; MAX_PROVIDERS]>(),
                &raw mut length,
            )
        };
        Win32Error::check("TraceQueryInformation", code)?;
        let count = length as usize / size_of::<GUID>();
        Ok(guids.iter().take(count).map(from_windows).collect())
    }
}

/// Stops a running session, and returns its counters.
///
/// # Errors
///
/// Fails if no session has this name, or if the session cannot be stopped.
pub fn stop(name: &str) -> Result<Counts, SessionError> {
    Ok(Session::named(name)?.control(EVENT_TRACE_CONTROL_STOP)?)
}

/// Returns an `EVENT_FILTER_EVENT_ID`: a byte that is 1 if events with the ids pass, a reserved
/// byte, the number of ids, and the ids.
fn event_ids(ids: &Ids) -> Vec<u8> {
    let (pass, ids) = match ids {
        Ids::Only(ids) => (1, ids),
        Ids::Without(ids) => (0, ids),
    };
    let count = u16::try_from(ids.len()).unwrap_or(u16::MAX);
    let mut bytes = vec![pass, 0];
    bytes.extend(count.to_le_bytes());
    bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    bytes
}

/// The enable info of one session for a provider (`TRACE_ENABLE_INFO`).
#[derive(Clone, Copy, Debug)]
pub struct EnableInfo {
    /// The session's logger id.
    pub session: u16,
    /// The level.
    pub level: u8,
    /// The match-any mask.
    pub any: u64,
    /// The match-all mask.
    pub all: u64,
}

/// A provider's registrations, and the sessions that enable the provider.
#[derive(Clone, Debug, Default)]
pub struct Registrations {
    /// The number of registered instances, both in processes and in drivers.
    pub instances: u32,
    /// The enable info of each session that enables the first instance.
    pub enable_infos: Vec<EnableInfo>,
}

/// Returns a provider's registrations (`TraceGuidQueryInfo`).
///
/// # Errors
///
/// Fails on Wine, and if the provider is unknown to Windows.
pub fn registrations(provider: Guid) -> Result<Registrations, SessionError> {
    process::require_windows()?;
    let guid = to_windows(provider);
    let mut buffer = vec![0_u64; 512];
    let mut length = 0;
    // SAFETY: input and output are as large as the given sizes and outlive the call.
    let code = unsafe {
        EnumerateTraceGuidsEx(
            TraceGuidQueryInfo,
            (&raw const guid).cast(),
            size::<GUID>(),
            buffer.as_mut_ptr().cast(),
            u32::try_from(size_of_val(buffer.as_slice())).unwrap_or(0),
            &raw mut length,
        )
    };
    Win32Error::check("EnumerateTraceGuidsEx", code)?;
    let bytes: Vec<u8> =
        buffer.iter().flat_map(|word| word.to_le_bytes()).take(length as usize).collect();
    Ok(parse_registrations(&bytes))
}

/// A Windows structure that can be read from bytes.
///
/// # Safety
///
/// Every bit pattern must be a valid value of the type.
unsafe trait Plain: Copy {
    /// Reads a value at `offset`, or returns `None` if too few bytes follow.
    fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        let bytes = bytes.get(offset..)?.get(..size_of::<Self>())?;
        // SAFETY: the slice has the size of the type, and every bit pattern is valid for the type.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

// SAFETY: the structure consists of integers.
unsafe impl Plain for TRACE_GUID_INFO {}
// SAFETY: the structure consists of integers.
unsafe impl Plain for TRACE_PROVIDER_INSTANCE_INFO {}
// SAFETY: the structure consists of integers.
unsafe impl Plain for TRACE_ENABLE_INFO {}

/// Reads a `TRACE_GUID_INFO`, the `TRACE_PROVIDER_INSTANCE_INFO` of the first instance, and its
/// `TRACE_ENABLE_INFO`s.
fn parse_registrations(bytes: &[u8]) -> Registrations {
    let instance_offset = size_of::<TRACE_GUID_INFO>();
    let instances = TRACE_GUID_INFO::read(bytes, 0).map_or(0, |info| info.InstanceCount);
    let instance = TRACE_PROVIDER_INSTANCE_INFO::read(bytes, instance_offset)
        .filter(|_| instances > 0)
        .unwrap_or_default();
    let first = instance_offset + size_of::<TRACE_PROVIDER_INSTANCE_INFO>();
    let enable_infos = (0..instance.EnableCount as usize)
        .map_while(|index| {
            TRACE_ENABLE_INFO::read(bytes, first + index * size_of::<TRACE_ENABLE_INFO>())
        })
        .filter(|info| info.IsEnabled != 0)
        .map(|info| EnableInfo {
            session: info.LoggerId,
            level: info.Level,
            any: info.MatchAnyKeyword,
            all: info.MatchAllKeyword,
        })
        .collect();
    Registrations { instances, enable_infos }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_of_ids_has_the_headers_layout() {
        assert_eq!(event_ids(&Ids::Only(vec![1, 0x0203])), [1, 0, 2, 0, 1, 0, 3, 2]);
        assert_eq!(event_ids(&Ids::Without(vec![])), [0, 0, 0, 0]);
    }

    #[test]
    fn truncated_registrations_are_read_up_to_the_last_whole_enable_info() {
        let mut bytes = Vec::new();
        for word in [1_u32, 0, 0, 2, 77, 0] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [1_u32, 5 | 9 << 16, 0, 0, 1, 2, 3, 4] {
            bytes.extend(word.to_le_bytes());
        }
        let found = parse_registrations(&bytes);
        assert_eq!(found.instances, 1);
        // The count is 2, but only one TRACE_ENABLE_INFO follows.
        assert_eq!(found.enable_infos.len(), 1);
        let one = found.enable_infos[0];
        assert_eq!((one.session, one.level), (9, 5));
        assert_eq!((one.any, one.all), (0x2_0000_0001, 0x4_0000_0003));
        assert_eq!(parse_registrations(&[]).instances, 0);
    }
}
