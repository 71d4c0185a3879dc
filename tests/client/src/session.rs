//! Controlling sessions (`StartTrace`, `ControlTrace`, `EnableTraceEx2`).

use std::{path::Path, ptr};

use etl_file::Guid;
use etw_scenarios::{Filter, Ids, Source};
use windows_sys::{
    Win32::{
        Foundation::ERROR_MORE_DATA,
        System::Diagnostics::Etw::{
            CONTROLTRACE_HANDLE, ControlTraceW, ENABLE_TRACE_PARAMETERS,
            ENABLE_TRACE_PARAMETERS_VERSION_2, EVENT_CONTROL_CODE_CAPTURE_STATE,
            EVENT_CONTROL_CODE_DISABLE_PROVIDER, EVENT_CONTROL_CODE_ENABLE_PROVIDER,
            EVENT_ENABLE_PROPERTY_PROVIDER_GROUP, EVENT_FILTER_DESCRIPTOR,
            EVENT_FILTER_TYPE_EVENT_ID, EVENT_TRACE_CONTROL_QUERY, EVENT_TRACE_CONTROL_STOP,
            EVENT_TRACE_FILE_MODE_SEQUENTIAL, EVENT_TRACE_PROPERTIES, EVENT_TRACE_REAL_TIME_MODE,
            EnableTraceEx2, EnumerateTraceGuidsEx, StartTraceW, TRACE_ENABLE_INFO, TRACE_GUID_INFO,
            TRACE_PROVIDER_INSTANCE_INFO, TraceDisallowListQuery, TraceGuidQueryInfo,
            TraceQueryInformation, TraceSetDisallowList, TraceSetInformation,
            WNODE_FLAG_TRACED_GUID,
        },
    },
    core::GUID,
};

use crate::{
    error::{Failure, Win32Error},
    guid::{from_windows, to_windows},
    process,
    wide::wide,
};

/// How long enabling a provider may take. With a time to wait, the call returns when the provider
/// has been told.
const ENABLE_TIMEOUT_MS: u32 = 5_000;

/// Units that a session's name, or the name of its file, can have here.
const NAME_CAPACITY: usize = 1024;

/// `EVENT_TRACE_PROPERTIES` with room for both names behind it.
#[repr(C)]
struct Properties {
    base: EVENT_TRACE_PROPERTIES,
    session: [u16; NAME_CAPACITY],
    file: [u16; NAME_CAPACITY],
}

/// Bytes, as Windows counts them.
fn size<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}

impl Properties {
    fn new() -> Box<Self> {
        let mut base = EVENT_TRACE_PROPERTIES::default();
        base.Wnode.BufferSize = size::<Self>();
        base.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
        // Timestamps count the performance counter.
        base.Wnode.ClientContext = 1;
        base.LoggerNameOffset = size::<EVENT_TRACE_PROPERTIES>();
        base.LogFileNameOffset = base.LoggerNameOffset + size::<[u16; NAME_CAPACITY]>();
        Box::new(Self {
            base,
            session: [0; NAME_CAPACITY],
            file: [0; NAME_CAPACITY],
        })
    }
}

/// Where a session's events go.
#[derive(Clone, Copy, Debug)]
pub enum Delivery<'a> {
    /// To a file.
    File(&'a Path),
    /// To consumers, as they come.
    RealTime,
}

/// How many buffers a session has, and how large they are; zeros leave it to the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    /// Kilobytes.
    pub kilobytes: u32,
    /// The least number.
    pub least: u32,
    /// The most.
    pub most: u32,
}

/// What a session has counted (`EVENT_TRACE_PROPERTIES`).
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Events that it could not take.
    pub events_lost: u32,
    /// Buffers that it wrote.
    pub buffers_written: u32,
    /// Buffers that it could not write.
    pub buffers_lost: u32,
    /// Buffers that no consumer took in time.
    pub real_time_buffers_lost: u32,
}

/// A session that runs.
pub struct Session {
    handle: CONTROLTRACE_HANDLE,
}

/// A session that was started here, and is stopped with this value at the latest.
pub struct OwnSession {
    session: Session,
    running: bool,
}

impl OwnSession {
    /// Starts a session.
    pub fn start(name: &str, delivery: Delivery<'_>, buffers: Buffers) -> Result<Self, Failure> {
        process::require_windows()?;
        let mut properties = Properties::new();
        properties.base.BufferSize = buffers.kilobytes;
        properties.base.MinimumBuffers = buffers.least;
        properties.base.MaximumBuffers = buffers.most;
        match delivery {
            Delivery::File(path) => {
                properties.base.LogFileMode = EVENT_TRACE_FILE_MODE_SEQUENTIAL;
                let path = wide(path);
                // A longer name would be cut; the system says what it thinks of this one.
                let length = path.len().min(NAME_CAPACITY - 1);
                properties.file[..length].copy_from_slice(&path[..length]);
            }
            Delivery::RealTime => {
                properties.base.LogFileMode = EVENT_TRACE_REAL_TIME_MODE;
                properties.base.LogFileNameOffset = 0;
                properties.base.FlushTimer = 1;
            }
        }
        let name = wide(name);
        let mut handle = CONTROLTRACE_HANDLE::default();
        // SAFETY: the name ends with a NUL, and the structure is as large as it says, with
        // its names' offsets inside.
        let code = unsafe {
            StartTraceW(
                &raw mut handle,
                name.as_ptr(),
                (&raw mut *properties).cast::<EVENT_TRACE_PROPERTIES>(),
            )
        };
        Win32Error::check("StartTrace", code)?;
        Ok(Self {
            session: Session { handle },
            running: true,
        })
    }

    /// Stops the session.
    pub fn stop(mut self) -> Result<Counts, Win32Error> {
        self.running = false;
        self.session.control(EVENT_TRACE_CONTROL_STOP)
    }

    /// The session.
    pub const fn session(&self) -> &Session {
        &self.session
    }
}

impl Drop for OwnSession {
    fn drop(&mut self) {
        if self.running
            && let Err(error) = self.session.control(EVENT_TRACE_CONTROL_STOP)
        {
            eprintln!("warning: a session is left running: {error}");
        }
    }
}

impl Session {
    /// Finds a session that runs.
    pub fn named(name: &str) -> Result<Self, Failure> {
        process::require_windows()?;
        let mut properties = Properties::new();
        let name = wide(name);
        // SAFETY: the name ends with a NUL, and the structure is as large as it says.
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
        Ok(Self {
            handle: CONTROLTRACE_HANDLE { Value: value },
        })
    }

    fn control(&self, code: u32) -> Result<Counts, Win32Error> {
        let mut properties = Properties::new();
        // SAFETY: the structure is as large as it says.
        let result = unsafe {
            ControlTraceW(
                self.handle,
                ptr::null(),
                (&raw mut *properties).cast::<EVENT_TRACE_PROPERTIES>(),
                code,
            )
        };
        // The counters are there even where a name had no room.
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
        let (guid, properties) = match source {
            Source::Provider(guid) => (guid, 0),
            Source::Group(guid) => (guid, EVENT_ENABLE_PROPERTY_PROVIDER_GROUP),
        };
        let mut ids = filter.ids.as_ref().map(event_ids);
        let mut descriptor = ids.as_mut().map(|bytes| EVENT_FILTER_DESCRIPTOR {
            Ptr: bytes.as_ptr().expose_provenance() as u64,
            Size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            Type: EVENT_FILTER_TYPE_EVENT_ID,
        });
        let parameters = ENABLE_TRACE_PARAMETERS {
            Version: ENABLE_TRACE_PARAMETERS_VERSION_2,
            EnableProperty: properties,
            FilterDescCount: u32::from(descriptor.is_some()),
            EnableFilterDesc: descriptor
                .as_mut()
                .map_or_else(ptr::null_mut, ptr::from_mut),
            ..ENABLE_TRACE_PARAMETERS::default()
        };
        let guid = to_windows(guid);
        // SAFETY: the GUID, the parameters and the filter they point to are locals that
        // outlive the call.
        let result = unsafe {
            EnableTraceEx2(
                self.handle,
                &raw const guid,
                code,
                filter.level,
                filter.any,
                filter.all,
                ENABLE_TIMEOUT_MS,
                &raw const parameters,
            )
        };
        Win32Error::check("EnableTraceEx2", result)
    }

    /// Enables a provider or group.
    pub fn enable(&self, source: Source, filter: &Filter) -> Result<(), Win32Error> {
        self.control_provider(source, EVENT_CONTROL_CODE_ENABLE_PROVIDER, filter)
    }

    /// Disables a provider or group.
    pub fn disable(&self, source: Source) -> Result<(), Win32Error> {
        let code = EVENT_CONTROL_CODE_DISABLE_PROVIDER;
        self.control_provider(source, code, &Filter::default())
    }

    /// Asks a provider or group for its state.
    pub fn capture_state(&self, source: Source) -> Result<(), Win32Error> {
        let code = EVENT_CONTROL_CODE_CAPTURE_STATE;
        self.control_provider(source, code, &Filter::default())
    }

    /// Says which providers are not enabled by their groups.
    pub fn disallow(&self, providers: &[Guid]) -> Result<(), Win32Error> {
        let guids: Vec<GUID> = providers.iter().copied().map(to_windows).collect();
        // SAFETY: the GUIDs are as many as the length says, and outlive the call.
        let code = unsafe {
            TraceSetInformation(
                self.handle,
                TraceSetDisallowList,
                guids.as_ptr().cast(),
                u32::try_from(size_of_val(guids.as_slice())).unwrap_or(u32::MAX),
            )
        };
        Win32Error::check("TraceSetInformation", code)
    }

    /// Which providers are not enabled by their groups.
    pub fn disallowed(&self) -> Result<Vec<Guid>, Win32Error> {
        const MOST: usize = 256;
        let mut guids = [GUID::default(); MOST];
        let mut length = 0;
        // SAFETY: the room is as large as the length says, and outlives the call.
        let code = unsafe {
            TraceQueryInformation(
                self.handle,
                TraceDisallowListQuery,
                guids.as_mut_ptr().cast(),
                size::<[GUID; MOST]>(),
                &raw mut length,
            )
        };
        Win32Error::check("TraceQueryInformation", code)?;
        let count = length as usize / size_of::<GUID>();
        Ok(guids.iter().take(count).map(from_windows).collect())
    }
}

/// `EVENT_FILTER_EVENT_ID`: whether the ids pass, a reserved byte, their number, the ids.
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

/// What one session wants of a provider.
#[derive(Clone, Copy, Debug)]
pub struct Enablement {
    /// The session's number.
    pub session: u16,
    /// The level.
    pub level: u8,
    /// Any of these keywords.
    pub any: u64,
    /// All of these.
    pub all: u64,
}

/// How a provider is registered and enabled.
#[derive(Clone, Debug, Default)]
pub struct Registrations {
    /// How many instances there are, the drivers' included.
    pub instances: u32,
    /// What sessions want of the first.
    pub enablements: Vec<Enablement>,
}

/// Asks the system about a provider (`TraceGuidQueryInfo`).
pub fn registrations(provider: Guid) -> Result<Registrations, Failure> {
    process::require_windows()?;
    let guid = to_windows(provider);
    // As for any such list: the call says how much room it takes.
    let mut room = vec![0_u64; 512];
    let mut length = 0;
    // SAFETY: input and output are as large as their lengths say, and outlive the call.
    let code = unsafe {
        EnumerateTraceGuidsEx(
            TraceGuidQueryInfo,
            (&raw const guid).cast(),
            size::<GUID>(),
            room.as_mut_ptr().cast(),
            u32::try_from(size_of_val(room.as_slice())).unwrap_or(0),
            &raw mut length,
        )
    };
    Win32Error::check("EnumerateTraceGuidsEx", code)?;
    let bytes: Vec<u8> = room
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .take(length as usize)
        .collect();
    Ok(parse_registrations(&bytes))
}

/// `TRACE_GUID_INFO`, then for the first instance `TRACE_PROVIDER_INSTANCE_INFO` and as many
/// `TRACE_ENABLE_INFO` as that says.
fn parse_registrations(bytes: &[u8]) -> Registrations {
    let word = |at: usize| {
        bytes
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    };
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let instances = word(0);
    if instances == 0 {
        return Registrations::default();
    }
    let instance = size_of::<TRACE_GUID_INFO>();
    let count = word(instance + 4) as usize;
    let first = instance + size_of::<TRACE_PROVIDER_INSTANCE_INFO>();
    let enablements = (0..count)
        .map(|index| first + index * size_of::<TRACE_ENABLE_INFO>())
        .filter(|at| at + size_of::<TRACE_ENABLE_INFO>() <= bytes.len() && word(*at) != 0)
        .map(|at| {
            let [level, _, low, high] = word(at + 4).to_le_bytes();
            Enablement {
                session: u16::from_le_bytes([low, high]),
                level,
                any: long(at + 16),
                all: long(at + 24),
            }
        })
        .collect();
    Registrations {
        instances,
        enablements,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_of_ids_is_laid_out_as_the_header_says() {
        assert_eq!(
            event_ids(&Ids::Only(vec![1, 0x0203])),
            [1, 0, 2, 0, 1, 0, 3, 2]
        );
        assert_eq!(event_ids(&Ids::Without(vec![])), [0, 0, 0, 0]);
    }

    #[test]
    fn registrations_are_read_as_far_as_they_go() {
        let mut bytes = Vec::new();
        for word in [1_u32, 0, 0, 2, 77, 0] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [1_u32, 5 | 9 << 16, 0, 0, 1, 2, 3, 4] {
            bytes.extend(word.to_le_bytes());
        }
        let found = parse_registrations(&bytes);
        assert_eq!(found.instances, 1);
        // The second one it speaks of is not there.
        assert_eq!(found.enablements.len(), 1);
        let one = found.enablements[0];
        assert_eq!((one.session, one.level), (9, 5));
        assert_eq!((one.any, one.all), (0x2_0000_0001, 0x4_0000_0003));
        assert_eq!(parse_registrations(&[]).instances, 0);
    }
}
