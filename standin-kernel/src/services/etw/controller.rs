//! The controller, which starts and stops sessions and enables providers.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use etl_file::Guid;

use super::{
    enable_info::EnableInfo,
    error::ControlError,
    filters::{EventFilters, FilterData},
    limits::{MAX_FILTER_BYTES, MAX_PER_PROVIDER, MAX_PRIVATE, MAX_PROCESSES, MAX_SESSIONS},
    notify::{Cause, notify_all},
    service::{Context, EtwRuntime},
    session::{
        config::{SessionConfig, SessionReport},
        running::Session,
    },
    state::{Etw, RunningSession, SessionEnableInfo, Target},
    unspecified::PagedSession,
};
use crate::ground::abi::EventFilterHeader;

/// A controller's handle to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionHandle(pub(super) u16);

/// The parameters for enabling a provider or group (`EnableTraceEx2`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnableParameters {
    /// The highest level of events to record; 0 for all levels.
    pub level: u8,
    /// The match-any mask: events need at least one of these keywords; 0 for all events.
    pub match_any: u64,
    /// The match-all mask: events need all of these keywords.
    pub match_all: u64,
    /// `EVENT_ENABLE_PROPERTY_IGNORE_KEYWORD_0`: drops events without a keyword.
    pub ignore_keyword_0: bool,
    /// The source id passed to the enable callback.
    pub source: Option<Guid>,
    /// Filter data that the provider evaluates.
    pub filter: Option<FilterData>,
    /// Filters that the runtime evaluates. Groups do not support them.
    pub events: EventFilters,
    /// `EVENT_ENABLE_PROPERTY_EXCLUDE_INPRIVATE`: drops events that are marked as private.
    pub exclude_in_private: bool,
    /// `EVENT_ENABLE_PROPERTY_STACK_TRACE`: accepted, but no stacks are captured.
    pub stack_walk: bool,
    /// The processes in which to enable the provider (`EVENT_FILTER_TYPE_PID`), at most eight;
    /// empty for all. A process filter never enables a driver (ETW-3.5.12).
    pub only_processes: Vec<u32>,
}

/// Starts a session.
pub fn start(context: &Context, config: SessionConfig) -> Result<SessionHandle, ControlError> {
    let mut etw = context.etw();
    if etw
        .sessions
        .values()
        .any(|running| running.session.config().name.eq_ignore_ascii_case(&config.name))
    {
        return Err(ControlError::AlreadyExists(config.name));
    }
    // Private sessions do not count toward the system's limit (ETW-3.6.3).
    let (most, too_many) =
        config.private.map_or((MAX_SESSIONS, ControlError::TooManySessions), |process| {
            (MAX_PRIVATE, ControlError::TooManyPrivate(process))
        });
    let others = etw.sessions.values();
    if others.filter(|running| running.session.config().private == config.private).count() >= most {
        return Err(too_many);
    }
    let id = etw.sessions_started + 1;
    let session = Session::start(id, config, context.clock(), context.config().processors)?;
    etw.sessions_started = id;
    etw.sessions
        .insert(id, RunningSession { session: Arc::new(session), disallowed: HashSet::new() });
    Ok(SessionHandle(id))
}

/// Enables a target for a session, or replaces its parameters (ETW-3.1.3). A provider that is
/// not registered yet is enabled when it registers (ETW-3.1.6).
pub fn enable(
    context: &Context,
    session: SessionHandle,
    target: Target,
    parameters: &EnableParameters,
) -> Result<(), ControlError> {
    check(parameters)?;
    let reached = {
        let mut etw = context.etw();
        let running = etw.sessions.get(&session.0).ok_or(ControlError::NotRunning)?;
        refuse_for_groups(target, &running.session, parameters)?;
        refuse_paged(&etw, running)?;
        refuse_the_ninth(&etw, target, session.0)?;
        // A driver is not a process, so a process filter does not enable it (ETW-3.5.12).
        if !parameters.only_processes.is_empty() {
            etw.forget(target, session.0);
            return Ok(());
        }
        let info = enable_info(&etw, parameters);
        let sessions = etw.enable_infos.entry(target).or_default();
        sessions.insert(session.0, info);
        if let Target::Provider(provider) = target {
            etw.classic_sessions.insert(provider, session.0);
        }
        etw.reached_by(target, session.0, true)
    };
    let cause = Cause { source: parameters.source.unwrap_or(Guid::NULL), ..Cause::CHANGE };
    notify_all(context, reached, cause);
    Ok(())
}

/// Enables every provider for a session: those that are registered now, and those that register
/// later.
pub fn enable_every_provider(
    context: &Context,
    session: SessionHandle,
    parameters: &EnableParameters,
) -> Result<(), ControlError> {
    check(parameters)?;
    let registered: BTreeSet<Guid> = {
        let mut etw = context.etw();
        let running = etw.sessions.get(&session.0).ok_or(ControlError::NotRunning)?;
        refuse_paged(&etw, running)?;
        if !parameters.only_processes.is_empty() {
            etw.every_provider.remove(&session.0);
            return Ok(());
        }
        let info = enable_info(&etw, parameters);
        etw.every_provider.insert(session.0, info);
        let all = etw.registrations.values().map(|one| one.provider);
        all.filter(|provider| {
            let target = Target::Provider(*provider);
            let sessions = etw.enable_infos.get(&target);
            sessions.is_none_or(|sessions| !sessions.contains_key(&session.0))
        })
        .collect()
    };
    for provider in registered {
        enable(context, session, Target::Provider(provider), parameters)?;
    }
    Ok(())
}

/// Rejects parameters that no target supports.
fn check(parameters: &EnableParameters) -> Result<(), ControlError> {
    if let Some(filter) = &parameters.filter
        && filter.data.len() + size_of::<EventFilterHeader>() > MAX_FILTER_BYTES
    {
        return Err(ControlError::InvalidParameter(format!(
            "the filter data is {} bytes long; the maximum, including the header, is \
             {MAX_FILTER_BYTES}",
            filter.data.len()
        )));
    }
    if let Some(complaint) = parameters.events.complaint() {
        return Err(ControlError::InvalidParameter(complaint));
    }
    if parameters.only_processes.len() > MAX_PROCESSES {
        return Err(ControlError::InvalidParameter(format!(
            "a process filter can contain at most {MAX_PROCESSES} processes, not {}",
            parameters.only_processes.len()
        )));
    }
    Ok(())
}

/// Rejects a session in paged memory, if such sessions cannot enable a driver's provider.
fn refuse_paged(etw: &Etw, running: &RunningSession) -> Result<(), ControlError> {
    if running.session.config().paged_memory
        && etw.unspecified.paged_session == PagedSession::CannotEnable
    {
        return Err(ControlError::InvalidParameter(
            "a session in paged memory cannot enable a driver's provider (ETW-6.1.11)".to_owned(),
        ));
    }
    Ok(())
}

fn enable_info(etw: &Etw, parameters: &EnableParameters) -> SessionEnableInfo {
    SessionEnableInfo {
        enable_info: EnableInfo {
            level: parameters.level,
            match_any: parameters.match_any,
            match_all: parameters.match_all,
            ignore_keyword_0: parameters.ignore_keyword_0,
            all_without_any: etw.unspecified.match_all_without_any,
        },
        filter: parameters.filter.clone(),
        events: Arc::new(parameters.events.clone()),
        exclude_in_private: parameters.exclude_in_private,
        stack_walk: parameters.stack_walk,
    }
}

/// Rejects a ninth session for a provider (ETW-3.6.1).
fn refuse_the_ninth(etw: &Etw, target: Target, session: u16) -> Result<(), ControlError> {
    let providers = match target {
        Target::Provider(guid) => HashSet::from([guid]),
        Target::Group(group) if etw.unspecified.group_counts_toward_limit => etw.members(group),
        Target::Group(_) => return Ok(()),
    };
    for provider in providers {
        let sessions = etw.sessions_on(provider);
        if !sessions.contains(&session) && sessions.len() >= MAX_PER_PROVIDER {
            return Err(ControlError::TooManyForProvider(provider));
        }
    }
    Ok(())
}

/// Rejects parameters that a group does not support (ETW-5.13, R-G4).
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
        return Err(refuse("a private session cannot enable or disable a group"));
    }
    if !parameters.events.is_empty() {
        return Err(refuse("filters by event id or name do not apply to groups"));
    }
    Ok(())
}

/// Sets the providers that a session does not enable through a group, replacing the previous list
/// (`TraceSetDisallowList`, ETW-5.9 to ETW-5.11). Notifies the groups' members immediately.
pub fn set_disallow_list(
    context: &Context,
    session: SessionHandle,
    providers: &[Guid],
) -> Result<(), ControlError> {
    let changed: Vec<u64> = {
        let mut etw = context.etw();
        let members = etw.members_enabled_by(session.0);
        let running = etw.sessions.get_mut(&session.0).ok_or(ControlError::NotRunning)?;
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
    notify_all(context, changed, Cause::CHANGE);
    Ok(())
}

/// Returns the targets that a session enables.
pub fn targets_of(runtime: &EtwRuntime, session: SessionHandle) -> Vec<Target> {
    runtime.etw().targets_of(session.0)
}

/// Returns the parameters with which a session enables a target now, or will enable it on
/// registration.
pub fn parameters_of(
    runtime: &EtwRuntime,
    session: SessionHandle,
    target: Target,
) -> Option<EnableParameters> {
    let etw = runtime.etw();
    let sessions = etw.enable_infos.get(&target);
    let info = sessions.and_then(|sessions| sessions.get(&session.0)).or_else(|| match target {
        Target::Provider(_) => etw.every_provider.get(&session.0),
        Target::Group(_) => None,
    })?;
    Some(EnableParameters {
        level: info.enable_info.level,
        match_any: info.enable_info.match_any,
        match_all: info.enable_info.match_all,
        ignore_keyword_0: info.enable_info.ignore_keyword_0,
        source: None,
        filter: info.filter.clone(),
        events: (*info.events).clone(),
        exclude_in_private: info.exclude_in_private,
        stack_walk: info.stack_walk,
        only_processes: Vec::new(),
    })
}

/// Disables a target for a session.
pub fn disable(
    context: &Context,
    session: SessionHandle,
    target: Target,
    source: Option<Guid>,
) -> Result<(), ControlError> {
    let reached = {
        let mut etw = context.etw();
        if !etw.sessions.contains_key(&session.0) {
            return Err(ControlError::NotRunning);
        }
        // A classic provider that another session has taken over is not notified.
        let classic = etw.is_classic_session(target, session.0);
        if etw.forget(target, session.0) {
            etw.reached_by(target, session.0, classic)
        } else {
            Vec::new()
        }
    };
    let cause = Cause { source: source.unwrap_or(Guid::NULL), ..Cause::CHANGE };
    notify_all(context, reached, cause);
    Ok(())
}

/// Requests that the providers of a target write events that describe their state (R-E5).
pub fn capture_state(
    context: &Context,
    session: SessionHandle,
    target: Target,
    source: Option<Guid>,
) -> Result<(), ControlError> {
    let reached = {
        let etw = context.etw();
        if !etw.sessions.contains_key(&session.0) {
            return Err(ControlError::NotRunning);
        }
        let classic = etw.is_classic_session(target, session.0);
        etw.reached_by(target, session.0, classic)
    };
    let cause = Cause { capture: true, source: source.unwrap_or(Guid::NULL), ..Cause::CHANGE };
    notify_all(context, reached, cause);
    Ok(())
}

/// Calls the enable callbacks of a target's providers with any control code, because later versions
/// of Windows may add control codes (ETW-3.2.5).
pub fn send_code(context: &Context, target: Target, code: u32) {
    let reached = context.etw().registered_as(target);
    notify_all(context, reached, Cause { code: Some(code), ..Cause::CHANGE });
}

/// Returns a running session.
pub fn running(context: &Context, session: SessionHandle) -> Result<Arc<Session>, ControlError> {
    let etw = context.etw();
    let running = etw.sessions.get(&session.0);
    running.map(|running| Arc::clone(&running.session)).ok_or(ControlError::NotRunning)
}

/// Runs the work that sessions start themselves. Called when no other job is running.
pub fn after_job(context: &Context) {
    tell_of_full_sessions(context);
    flush_what_is_due(context);
}

/// Notifies the providers of sessions that stopped because their files were full (ETW-6.4.4).
fn tell_of_full_sessions(context: &Context) {
    let full: Vec<u16> = {
        let etw = context.etw();
        let sessions = etw.sessions.iter();
        sessions.filter_map(|(id, running)| running.session.take_full().then_some(*id)).collect()
    };
    for session in full {
        release(context, session);
    }
}

/// Flushes the buffers of sessions whose flush timers are due (ETW-6.3.8).
pub fn flush_what_is_due(context: &Context) {
    let now = context.clock().last();
    let sessions: Vec<Arc<Session>> = {
        let etw = context.etw();
        let sessions = etw.sessions.values();
        sessions
            .filter(|running| running.session.flush_due().is_some_and(|due| due <= now))
            .map(|running| Arc::clone(&running.session))
            .collect()
    };
    for session in sessions {
        session.flush_if_due(now);
    }
}

/// Returns the time of the next flush by a flush timer, if any is set.
pub fn next_flush(context: &Context) -> Option<i64> {
    let etw = context.etw();
    let sessions = etw.sessions.values();
    sessions.filter_map(|running| running.session.flush_due()).min()
}

/// Disables everything that a session enables. Notifies the providers with a null source
/// (ETW-3.1.8, R-E2).
fn release(context: &Context, session: u16) {
    let targets: Vec<(Target, bool)> = {
        let mut etw = context.etw();
        etw.every_provider.remove(&session);
        let targets = etw.targets_of(session).into_iter();
        let targets: Vec<_> =
            targets.map(|target| (target, etw.is_classic_session(target, session))).collect();
        for (target, _) in &targets {
            etw.forget(*target, session);
        }
        targets
    };
    for (target, classic) in targets {
        let reached = context.etw().reached_by(target, session, classic);
        notify_all(context, reached, Cause::CHANGE);
    }
}

/// Stops a session after a bugcheck, and finishes its file. Driver code no longer runs, so no
/// provider is notified.
pub fn salvage(
    runtime: &EtwRuntime,
    session: SessionHandle,
) -> Result<SessionReport, ControlError> {
    let session = runtime.etw().sessions.remove(&session.0);
    session.ok_or(ControlError::NotRunning)?.session.finish()
}

/// Stops a session and finishes its file. Notifies the providers that the session enabled, with a
/// null source (ETW-3.1.8, R-E2).
pub fn stop(context: &Context, session: SessionHandle) -> Result<SessionReport, ControlError> {
    if !context.etw().sessions.contains_key(&session.0) {
        return Err(ControlError::NotRunning);
    }
    release(context, session.0);
    let session = context.etw().sessions.remove(&session.0);
    session.ok_or(ControlError::NotRunning)?.session.finish()
}
