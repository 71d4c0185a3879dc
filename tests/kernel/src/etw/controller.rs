//! What a controller does: starts and stops sessions, and enables providers.

use std::collections::HashSet;

use super::{
    Guid,
    composite::Enablement,
    filters::EventFilters,
    runtime::{self, Etw, SessionEnablement, Target},
    session::{Session, SessionConfig, SessionReport},
};
use crate::thread::Thread;

/// Sessions on a system (3.6.3).
const MOST_SESSIONS: usize = 64;
/// Private sessions of a process (R-O8; 3.6.4 names both 4 and 8).
const MOST_PRIVATE: usize = 4;
/// Sessions that enable one provider (3.6.1, R-O8).
const MOST_PER_PROVIDER: usize = 8;
/// Bytes of a schematized filter (3.5.7).
const LARGEST_FILTER: usize = 1024;

/// A session, as a controller names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionHandle(pub(super) u16);

/// A schematized filter: the provider's own, in the provider's own format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterData {
    /// Which of the provider's filters it is.
    pub id: u16,
    /// Its version.
    pub version: u8,
    /// What the provider makes of it; 1,000 bytes at most.
    pub data: Vec<u8>,
}

/// How to enable a provider or group (`EnableTraceEx2`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnableParameters {
    /// Events up to this level; 0 for all.
    pub level: u8,
    /// Events with any of these keywords; 0 for all.
    pub match_any: u64,
    /// Events with all of these keywords.
    pub match_all: u64,
    /// `EVENT_ENABLE_PROPERTY_IGNORE_KEYWORD_0`: drop events without keyword.
    pub ignore_keyword_0: bool,
    /// What the provider is told about who enables it.
    pub source: Option<Guid>,
    /// A filter for the provider to evaluate.
    pub filter: Option<FilterData>,
    /// Filters for the runtime to evaluate; not for groups.
    pub events: EventFilters,
}

/// Why a controller's call failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// `ERROR_NO_SYSTEM_RESOURCES`: as many sessions run as can.
    #[error("{MOST_SESSIONS} sessions are running; another one cannot be started (error 1450)")]
    TooManySessions,
    /// `ERROR_NO_SYSTEM_RESOURCES`: as many private sessions run as can.
    #[error(
        "{MOST_PRIVATE} private sessions of process {0} are running; another one cannot be started \
         (error 1450)"
    )]
    TooManyPrivate(u32),
    /// `ERROR_NO_SYSTEM_RESOURCES`: as many sessions enable the provider as can.
    #[error("{MOST_PER_PROVIDER} sessions enable {{{0}}} already; another one cannot (error 1450)")]
    TooManyForProvider(Guid),
    /// `ERROR_ALREADY_EXISTS`: session names are compared without case.
    #[error("a session named \"{0}\" is running already (error 183)")]
    AlreadyExists(String),
    /// `ERROR_BAD_LENGTH` or `ERROR_INVALID_PARAMETER`.
    #[error("{0} (error 87)")]
    InvalidParameter(String),
    /// `ERROR_WMI_INSTANCE_NOT_FOUND`: the session was stopped.
    #[error("the session is not running (error 4201)")]
    NotRunning,
    /// The session's file could not be written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What went wrong.
        error: etl_file::write::WriteError,
    },
}

/// Starts a session.
pub fn start(thread: &Thread, config: SessionConfig) -> Result<SessionHandle, ControlError> {
    let mut etw = thread.shared().etw();
    if etw
        .sessions
        .values()
        .any(|session| session.name().eq_ignore_ascii_case(&config.name))
    {
        return Err(ControlError::AlreadyExists(config.name));
    }
    // Private sessions do not count among those of the system (3.6.3).
    let (most, too_many) = config
        .private
        .map_or((MOST_SESSIONS, ControlError::TooManySessions), |process| {
            (MOST_PRIVATE, ControlError::TooManyPrivate(process))
        });
    let others = etw.sessions.values();
    if others
        .filter(|session| session.private() == config.private)
        .count()
        >= most
    {
        return Err(too_many);
    }
    let id = etw.sessions_started + 1;
    let session = Session::start(id, config, &thread.shared().clock)?;
    etw.sessions_started = id;
    etw.sessions.insert(id, session);
    Ok(SessionHandle(id))
}

/// Enables a target for a session, or changes how it is enabled: what was there
/// is replaced (3.1.3). A provider that is not registered yet is enabled when it
/// registers (3.1.6).
pub fn enable(
    thread: &Thread,
    session: SessionHandle,
    target: Target,
    parameters: &EnableParameters,
) -> Result<(), ControlError> {
    if let Some(filter) = &parameters.filter
        && filter.data.len() + size_of::<crate::abi::EventFilterHeader>() > LARGEST_FILTER
    {
        return Err(ControlError::InvalidParameter(format!(
            "a filter of {} bytes is larger than {LARGEST_FILTER} bytes with its header",
            filter.data.len()
        )));
    }
    if let Some(complaint) = parameters.events.complaint() {
        return Err(ControlError::InvalidParameter(complaint));
    }
    let reached = {
        let mut etw = thread.shared().etw();
        let Some(running) = etw.sessions.get(&session.0) else {
            return Err(ControlError::NotRunning);
        };
        refuse_for_groups(target, running, parameters)?;
        let sessions = etw.enablements.entry(target).or_default();
        if let Target::Provider(guid) = target
            && !sessions.contains_key(&session.0)
            && sessions.len() >= MOST_PER_PROVIDER
        {
            return Err(ControlError::TooManyForProvider(guid));
        }
        sessions.insert(
            session.0,
            SessionEnablement {
                enablement: Enablement {
                    level: parameters.level,
                    match_any: parameters.match_any,
                    match_all: parameters.match_all,
                    ignore_keyword_0: parameters.ignore_keyword_0,
                },
                filter: parameters.filter.clone(),
                events: parameters.events.clone(),
            },
        );
        etw.reached_by(target, session.0)
    };
    for handle in reached {
        runtime::notify(
            thread,
            handle,
            false,
            parameters.source.unwrap_or(Guid::NULL),
        );
    }
    Ok(())
}

/// What cannot be done with a group (5.13, R-G4).
fn refuse_for_groups(
    target: Target,
    session: &Session,
    parameters: &EnableParameters,
) -> Result<(), ControlError> {
    let Target::Group(group) = target else {
        return Ok(());
    };
    let refuse = |why| ControlError::InvalidParameter(format!("{{{group}}} is a group: {why}"));
    if session.is_private() {
        return Err(refuse("a private session cannot control one"));
    }
    if !parameters.events.is_empty() {
        return Err(refuse("filters by event id or name do not apply to one"));
    }
    Ok(())
}

/// Sets the providers that a session does not reach by groups, in place of those before
/// (`TraceSetDisallowList`, 5.9 to 5.11). Members are told at once.
pub fn set_disallow_list(
    thread: &Thread,
    session: SessionHandle,
    providers: &[Guid],
) -> Result<(), ControlError> {
    let changed: Vec<u64> = {
        let mut etw = thread.shared().etw();
        let members = etw.members_enabled_by(session.0);
        let Some(running) = etw.sessions.get_mut(&session.0) else {
            return Err(ControlError::NotRunning);
        };
        let list: HashSet<Guid> = providers.iter().copied().collect();
        let before = std::mem::replace(&mut running.disallowed, list);
        members
            .into_iter()
            .filter(|(_, provider)| {
                before.contains(provider) != running.disallowed.contains(provider)
            })
            .map(|(handle, _)| handle)
            .collect()
    };
    for handle in changed {
        runtime::notify(thread, handle, false, Guid::NULL);
    }
    Ok(())
}

/// Disables a target for a session.
pub fn disable(
    thread: &Thread,
    session: SessionHandle,
    target: Target,
    source: Option<Guid>,
) -> Result<(), ControlError> {
    let reached = {
        let mut etw = thread.shared().etw();
        if !etw.sessions.contains_key(&session.0) {
            return Err(ControlError::NotRunning);
        }
        if etw.forget(target, session.0) {
            etw.reached_by(target, session.0)
        } else {
            Vec::new()
        }
    };
    for handle in reached {
        runtime::notify(thread, handle, false, source.unwrap_or(Guid::NULL));
    }
    Ok(())
}

/// Asks what a target reaches to write events that describe its state (R-E5).
pub fn capture_state(
    thread: &Thread,
    session: SessionHandle,
    target: Target,
    source: Option<Guid>,
) -> Result<(), ControlError> {
    let reached = {
        let etw = thread.shared().etw();
        if !etw.sessions.contains_key(&session.0) {
            return Err(ControlError::NotRunning);
        }
        etw.reached_by(target, session.0)
    };
    for handle in reached {
        runtime::notify(thread, handle, true, source.unwrap_or(Guid::NULL));
    }
    Ok(())
}

/// Writes what a session has in its buffers (`ControlTrace` with
/// `EVENT_TRACE_CONTROL_FLUSH`).
pub fn flush(thread: &Thread, session: SessionHandle) -> Result<(), ControlError> {
    let mut etw = thread.shared().etw();
    let session = etw.sessions.get_mut(&session.0);
    session
        .ok_or(ControlError::NotRunning)?
        .flush_now(&thread.shared().clock)
}

/// Tells what sessions enable that stopped by themselves, their files being full (6.4.4).
pub fn tell_of_full_sessions(thread: &Thread) {
    let full: Vec<u16> = {
        let mut etw = thread.shared().etw();
        let sessions = etw.sessions.iter_mut();
        sessions
            .filter_map(|(id, session)| session.take_full().then_some(*id))
            .collect()
    };
    for session in full {
        release(thread, session);
    }
}

/// Takes all that a session enables away, and tells it so, with a null source (3.1.8,
/// R-E2).
fn release(thread: &Thread, session: u16) {
    let targets: Vec<Target> = {
        let mut etw = thread.shared().etw();
        let mut targets: Vec<Target> = etw
            .enablements
            .iter()
            .filter(|(_, sessions)| sessions.contains_key(&session))
            .map(|(target, _)| *target)
            .collect();
        targets.sort_by_key(|target| format!("{target:?}"));
        for target in &targets {
            etw.forget(*target, session);
        }
        targets
    };
    for target in targets {
        let reached = thread.shared().etw().reached_by(target, session);
        for handle in reached {
            runtime::notify(thread, handle, false, Guid::NULL);
        }
    }
}

/// Stops a session: what it enabled is told so, with a null source (3.1.8,
/// R-E2), and its file is finished.
pub fn stop(thread: &Thread, session: SessionHandle) -> Result<SessionReport, ControlError> {
    if !thread.shared().etw().sessions.contains_key(&session.0) {
        return Err(ControlError::NotRunning);
    }
    release(thread, session.0);
    let session = thread.shared().etw().sessions.remove(&session.0);
    session
        .ok_or(ControlError::NotRunning)?
        .finish(&thread.shared().clock)
}

impl Etw {
    /// Takes a session's enablement of a target away; whether there was one.
    fn forget(&mut self, target: Target, session: u16) -> bool {
        let Some(sessions) = self.enablements.get_mut(&target) else {
            return false;
        };
        let was = sessions.remove(&session).is_some();
        if sessions.is_empty() {
            self.enablements.remove(&target);
        }
        was
    }

    /// Every session's enablement of the registration behind a handle.
    pub fn enablements_of_handle(&self, handle: u64) -> Vec<(u16, &SessionEnablement)> {
        self.registration_at(handle)
            .map(|registration| self.enablements_of(registration))
            .unwrap_or_default()
    }

    /// A new activity id: unique until the machine's end, and no GUID (6.5.4).
    pub const fn create_activity_id(&mut self) -> Guid {
        self.activities_created += 1;
        let mut bytes = [0; 16];
        if let Some(low) = bytes.first_chunk_mut::<8>() {
            *low = self.activities_created.to_le_bytes();
        }
        if let Some(high) = bytes.last_chunk_mut::<8>() {
            *high = *b"\x80testkrn";
        }
        Guid::from_bytes(bytes)
    }
}
