//! The probes' host on a Windows machine on which the driver etw-probes-driver is installed.

use std::{path::PathBuf, thread, time::Duration};

use etl_file::Guid;
use etw_probes::{Completed, Enabling, Host, Recorded, SessionPlan, System, Thread};
use etw_scenarios::{Filter, HostError, Session, Slots, Source};
use etw_session::{
    error::Win32Error,
    guid::to_windows,
    session::{self, Buffers, Delivery, OwnSession},
};
use windows_sys::Win32::{
    Security::{CreateWellKnownSid, SECURITY_MAX_SID_SIZE, WinBuiltinAdministratorsSid},
    System::{
        Diagnostics::Etw::{
            EVENT_CONTROL_CODE_CAPTURE_STATE, EVENT_CONTROL_CODE_DISABLE_PROVIDER,
            EVENT_CONTROL_CODE_ENABLE_PROVIDER, EVENT_FILTER_TYPE_EVENT_ID,
            EVENT_FILTER_TYPE_SCHEMATIZED, EVENT_TRACE_INDEPENDENT_SESSION_MODE,
            EVENT_TRACE_USE_PAGED_MEMORY, EventAccessControl, EventAccessRemove,
            EventSecuritySetDACL, WMIGUID_QUERY,
        },
        Threading::{GetCurrentProcessId, GetCurrentThreadId},
    },
};

use crate::{
    device::Device,
    error::Failure,
    host::{set_activity, stop},
    version,
};

/// The first words in the names of this process's sessions.
const PREFIX: &str = "EtwSampleClient probes";

/// A host that probes this Windows machine.
pub struct Windows {
    folder: PathBuf,
    device: Device,
    sessions: Slots<(OwnSession, PathBuf)>,
    /// The number of sessions that were started.
    started: usize,
    /// The groups whose permissions were changed.
    denied: Vec<Guid>,
}

/// Returns the bytes of a schematized filter: an `EVENT_FILTER_HEADER` and the data (ETW-1.1.5).
fn schematized(data: &[u8]) -> Vec<u8> {
    const HEADER: usize = 24;
    const ID: u16 = 1;
    let size = u32::try_from(HEADER + data.len()).unwrap_or(u32::MAX);
    let mut bytes = vec![0; HEADER];
    bytes[..2].copy_from_slice(&ID.to_le_bytes());
    bytes[16..20].copy_from_slice(&size.to_le_bytes());
    bytes.extend(data);
    bytes
}

/// Returns an event id filter that passes these ids (ETW-1.1.6).
fn event_ids(ids: &[u16]) -> Vec<u8> {
    let count = u16::try_from(ids.len()).unwrap_or(u16::MAX);
    let mut bytes = vec![1, 0];
    bytes.extend(count.to_le_bytes());
    bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    bytes
}

impl Windows {
    /// Opens the driver's device, and returns a host that writes traces to `folder`.
    pub fn new(folder: PathBuf) -> Result<Self, Failure> {
        let device = Device::open_probes()?;
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::Write { path: folder.clone(), error })?;
        let sessions = Slots::new("session", "is not running");
        Ok(Self { folder, device, sessions, started: 0, denied: Vec::new() })
    }

    fn session(&self, session: Session) -> Result<&session::Session, HostError> {
        Ok(self.sessions.get(session.0)?.0.session())
    }

    /// Restores the permissions of groups that were changed.
    fn allow_groups(&mut self) -> Result<(), HostError> {
        for group in self.denied.drain(..) {
            let group = to_windows(group);
            // SAFETY: the GUID is a local that the call reads.
            let code = unsafe { EventAccessRemove(&raw const group) };
            Win32Error::check("EventAccessRemove", code)?;
        }
        Ok(())
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        if let Err(error) = self.allow_groups() {
            eprintln!("warning: cannot restore the permissions of a provider group: {error}");
        }
    }
}

impl Host for Windows {
    fn system(&self) -> Result<System, HostError> {
        Ok(version::system()?)
    }

    fn thread(&self) -> Thread {
        Thread {
            // SAFETY: the call has no preconditions.
            process: unsafe { GetCurrentProcessId() },
            // SAFETY: as above.
            thread: unsafe { GetCurrentThreadId() },
        }
    }

    fn control(&mut self, code: u32, input: &[u8], output: usize) -> Result<Completed, HostError> {
        let answer = self.device.start_control(code, input, output)?.finish()?;
        Ok(Completed { status: answer.status, output: answer.output })
    }

    fn start_session(&mut self, plan: SessionPlan) -> Result<Session, HostError> {
        let number = self.started;
        self.started += 1;
        let path = self.folder.join(format!("probes-{number}.etl"));
        let mode = |is_set, mode| if is_set { mode } else { 0 };
        let (minimum, maximum) = if plan.few_buffers { (2, 2) } else { (16, 128) };
        let buffers = Buffers {
            kilobytes: if plan.buffer_kb == 0 { 64 } else { plan.buffer_kb },
            minimum,
            maximum,
            modes: mode(plan.independent, EVENT_TRACE_INDEPENDENT_SESSION_MODE)
                | mode(plan.paged, EVENT_TRACE_USE_PAGED_MEMORY),
        };
        let name = format!("{PREFIX} {number}");
        let session = OwnSession::start(&name, Delivery::File(&path), buffers)?;
        Ok(Session(self.sessions.add((session, path))))
    }

    fn stop_session(&mut self, session: Session) -> Result<Recorded, HostError> {
        let (trace, lost) = stop(self.sessions.take(session.0)?)?;
        Recorded::from_trace(&trace, lost)
    }

    fn enable(
        &mut self,
        session: Session,
        source: Source,
        enabling: &Enabling,
    ) -> Result<(), HostError> {
        let data = enabling.filter.as_deref().map(schematized);
        let ids = enabling.ids.as_deref().map(event_ids);
        let filters: Vec<(u32, &[u8])> = data
            .iter()
            .map(|bytes| (EVENT_FILTER_TYPE_SCHEMATIZED, bytes.as_slice()))
            .chain(ids.iter().map(|bytes| (EVENT_FILTER_TYPE_EVENT_ID, bytes.as_slice())))
            .collect();
        let filter =
            Filter { level: enabling.level, any: enabling.any, all: enabling.all, ids: None };
        let code = EVENT_CONTROL_CODE_ENABLE_PROVIDER;
        let session = self.session(session)?;
        Ok(session.control_with(source, code, &filter, enabling.source, &filters)?)
    }

    fn disable(
        &mut self,
        session: Session,
        source: Source,
        id: Option<Guid>,
    ) -> Result<(), HostError> {
        let code = EVENT_CONTROL_CODE_DISABLE_PROVIDER;
        let session = self.session(session)?;
        Ok(session.control_with(source, code, &Filter::default(), id, &[])?)
    }

    fn capture_state(&mut self, session: Session, source: Source) -> Result<(), HostError> {
        let code = EVENT_CONTROL_CODE_CAPTURE_STATE;
        let session = self.session(session)?;
        Ok(session.control_with(source, code, &Filter::default(), None, &[])?)
    }

    fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), HostError> {
        set_activity(activity)
    }

    /// Grants administrators the right to query the group, and removes all other rights.
    fn deny_group(&mut self, group: Guid) -> Result<(), HostError> {
        let mut sid = [0_u8; SECURITY_MAX_SID_SIZE as usize];
        let mut size = SECURITY_MAX_SID_SIZE;
        // SAFETY: the buffer has the given size; no domain is needed.
        let made = unsafe {
            CreateWellKnownSid(
                WinBuiltinAdministratorsSid,
                std::ptr::null_mut(),
                sid.as_mut_ptr().cast(),
                &raw mut size,
            )
        };
        if made == 0 {
            return Err(Win32Error::last("CreateWellKnownSid").into());
        }
        self.denied.push(group);
        let group = to_windows(group);
        // SAFETY: the GUID and the SID are locals that the call reads.
        let code = unsafe {
            EventAccessControl(
                &raw const group,
                EventSecuritySetDACL.cast_unsigned(),
                sid.as_mut_ptr().cast(),
                WMIGUID_QUERY,
                true,
            )
        };
        Ok(Win32Error::check("EventAccessControl", code)?)
    }

    fn pass(&mut self, time: Duration) -> Result<(), HostError> {
        thread::sleep(time);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), HostError> {
        for (session, _) in self.sessions.drain() {
            session.stop()?;
        }
        self.allow_groups()?;
        self.set_activity(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_the_headers_layout() {
        let filter = schematized(&[7; 8]);
        assert_eq!(filter.len(), 32);
        assert_eq!(filter[..2], [1, 0]);
        assert_eq!(filter[16..24], [32, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(filter[24..], [7; 8]);
        assert_eq!(event_ids(&[1, 0x0203]), [1, 0, 2, 0, 1, 0, 3, 2]);
    }

    #[test]
    fn the_device_is_missing_without_the_driver() {
        let error = Windows::new(PathBuf::from("unused")).err().unwrap();
        assert!(matches!(error, Failure::NoProbesDevice | Failure::Win32(_)), "{error}");
    }
}
