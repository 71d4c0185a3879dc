//! The state of the ETW runtime: registrations, sessions and enable info.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    thread::ThreadId,
};

use etl_file::Guid;

use super::{
    enable_info::{Combined, EnableInfo},
    filters::{EventFilters, FilterData},
    limits::MAX_PER_PROVIDER,
    routes::{Route, RouteTable, TargetSession},
    session::running::Session,
    unspecified::UnspecifiedBehaviour,
};
use crate::{
    execution::call::Call,
    ground::{backtrace::Backtrace, tally::Tally},
};

/// `EVENT_CONTROL_CODE_DISABLE_PROVIDER`.
pub const DISABLE: u32 = 0;
/// `EVENT_CONTROL_CODE_ENABLE_PROVIDER`.
pub const ENABLE: u32 = 1;
/// `EVENT_CONTROL_CODE_CAPTURE_STATE`.
const CAPTURE_STATE: u32 = 2;

/// A target of a session: a provider, or a group of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A provider's GUID.
    Provider(Guid),
    /// A provider group's GUID.
    Group(Guid),
}

/// One session's enable info for a target.
#[derive(Clone, Debug)]
pub struct SessionEnableInfo {
    /// The level, keywords and properties.
    pub enable_info: EnableInfo,
    /// The schematized filter, which the provider evaluates.
    pub filter: Option<FilterData>,
    /// The filters that the runtime evaluates.
    pub events: Arc<EventFilters>,
    /// `EVENT_ENABLE_PROPERTY_EXCLUDE_INPRIVATE`.
    pub exclude_in_private: bool,
    /// `EVENT_ENABLE_PROPERTY_STACK_TRACE`: stacks are requested, but not captured here.
    pub stack_walk: bool,
}

/// The routine that registered a provider. It determines the form of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `EtwRegister`: the provider receives the sessions' combined state, and ETW routes its
    /// events.
    Modern,
    /// `EtwRegisterClassicProvider`: the provider receives the trace handle of one session, to which
    /// it writes.
    Classic,
    /// `IoWMIRegistrationControl` for a control block with a callback. The provider is used like a
    /// classic provider.
    Wmi {
        /// The control block's address.
        block: u64,
    },
}

impl Form {
    /// Returns whether the provider writes to one session (ETW-3.6.2).
    pub const fn is_classic(self) -> bool {
        matches!(self, Self::Classic | Self::Wmi { .. })
    }
}

/// Returns the trace handle with which a classic provider writes to a session. It contains the
/// session's id, and the level and flags with which the session enables the provider (ETW-2.23,
/// ETW-3.6.6).
fn trace_handle(session: u16, info: &SessionEnableInfo) -> u64 {
    let EnableInfo { level, match_any, .. } = info.enable_info;
    u64::from(session) | u64::from(level) << 16 | (match_any & 0xFFFF_FFFF) << 32
}

/// Returns the id of the session in a trace handle.
pub const fn session_of(handle: u64) -> u16 {
    (handle & 0xFFFF) as u16
}

/// Returns the level in a trace handle.
pub const fn level_of(handle: u64) -> u8 {
    (handle >> 16 & 0xFF) as u8
}

/// Returns the flags in a trace handle.
pub const fn flags_of(handle: u64) -> u32 {
    (handle >> 32) as u32
}

/// A control block or device object that a driver registered with WMI.
pub struct WmiRegistration {
    /// The registrations of its control GUIDs.
    pub providers: Vec<u64>,
    pub registered_by: Call,
    /// The calls that led to the registration.
    pub backtrace: Backtrace,
}

/// A registration, made by one call to `EtwRegister` or a routine for classic providers.
pub struct Registration {
    /// The provider's GUID.
    pub provider: Guid,
    pub form: Form,
    pub callback: u64,
    pub context: u64,
    /// The provider traits blob, once set.
    pub traits: Option<Arc<[u8]>>,
    /// The group that the traits name.
    pub group: Option<Guid>,
    /// Set once data descriptors' types are evaluated (ETW-4.3.6).
    pub honours_types: bool,
    pub registered_by: Call,
    /// The calls that led to the registration.
    pub backtrace: Backtrace,
    /// The thread on which its enable callback is running.
    pub in_callback: Option<ThreadId>,
    /// The number of events written with its handle.
    pub writes: Arc<Tally>,
}

/// A running session.
pub struct RunningSession {
    pub session: Arc<Session>,
    /// The providers that the session does not enable through a group.
    pub disallowed: HashSet<Guid>,
}

impl RunningSession {
    /// Returns whether the session receives no events from drivers (ETW-3.6.4, ETW-6.1.11).
    pub fn is_closed_to_drivers(&self) -> bool {
        self.session.is_private() || self.session.config().paged_memory
    }
}

/// The state of the ETW runtime.
#[derive(Default)]
pub struct Etw {
    pub registrations: BTreeMap<u64, Registration>,
    pub released: HashSet<u64>,
    pub issued: u64,
    /// The values that failed `EtwRegister` calls left in handle variables.
    pub left_by_failures: HashSet<u64>,
    /// The number of each provider's registrations that ended after only a few events.
    pub short_lived: HashMap<Guid, u32>,
    /// The choices for unspecified behavior.
    pub unspecified: UnspecifiedBehaviour,
    /// The running sessions, by id.
    pub sessions: BTreeMap<u16, RunningSession>,
    /// The id of the next session. Ids are never reused.
    pub sessions_started: u16,
    /// The enable info, by target and session id.
    pub enable_infos: HashMap<Target, BTreeMap<u16, SessionEnableInfo>>,
    /// The enable info of the sessions that enable every provider, by session id.
    pub every_provider: BTreeMap<u16, SessionEnableInfo>,
    /// The number of delivered notifications.
    pub notifications: u64,
    /// The providers that registered, and their names if their traits have names.
    pub registered: BTreeMap<Guid, Option<String>>,
    /// The groups that no driver is allowed to join.
    pub denied_groups: HashSet<Guid>,
    /// The sessions to which classic providers write, by provider GUID: the last session that
    /// enabled the provider (ETW-3.6.2).
    pub classic_sessions: HashMap<Guid, u16>,
    /// Drivers' registrations with WMI, by the address of the control block or device object.
    pub wmi: BTreeMap<u64, WmiRegistration>,
}

/// The reason that a handle is invalid.
pub enum HandleError {
    /// The handle is 0: the provider is not registered, and the call has no effect.
    Null,
    /// `EtwUnregister` released the handle.
    Released,
    /// `EtwRegister` never returned the handle.
    NeverIssued,
}

/// A notification that is ready to be delivered.
pub struct Notification {
    pub handle: u64,
    /// The provider's GUID.
    pub provider: Guid,
    pub form: Form,
    pub callback: u64,
    pub context: u64,
    pub code: u32,
    pub combined: Combined,
    pub filters: Vec<(u16, FilterData)>,
    /// The trace handle of a classic provider's session, or 0.
    pub trace_handle: u64,
}

impl Notification {
    /// Returns the notification for a registration that no session enables.
    pub const fn of_disable(handle: u64, registration: &Registration) -> Self {
        Self {
            handle,
            provider: registration.provider,
            form: registration.form,
            callback: registration.callback,
            context: registration.context,
            code: DISABLE,
            combined: Combined { level: 0, match_any: 0, match_all: 0 },
            filters: Vec::new(),
            trace_handle: 0,
        }
    }
}

impl Etw {
    /// Creates a runtime with the given choices for unspecified behavior.
    pub fn new(unspecified: UnspecifiedBehaviour) -> Self {
        Self { unspecified, ..Self::default() }
    }

    /// Returns the registration with this handle.
    pub fn registration(&mut self, handle: u64) -> Result<&mut Registration, HandleError> {
        if handle == 0 {
            return Err(HandleError::Null);
        }
        if self.released.contains(&handle) {
            return Err(HandleError::Released);
        }
        self.registrations.get_mut(&handle).ok_or(HandleError::NeverIssued)
    }

    /// Returns the registration with this handle, if it exists.
    pub fn registration_at(&self, handle: u64) -> Option<&Registration> {
        self.registrations.get(&handle)
    }

    /// Returns the number of registrations.
    pub fn registration_count(&self) -> usize {
        self.registrations.len()
    }

    pub fn targets(registration: &Registration) -> impl Iterator<Item = Target> {
        let group = registration.group.filter(|_| !registration.form.is_classic());
        let group = group.map(Target::Group);
        std::iter::once(Target::Provider(registration.provider)).chain(group)
    }

    /// Returns every session's enable info for a registration, whether through its provider or its
    /// group (ETW-5.4: both count). A session's disallow list prevents it from enabling a provider
    /// through a group (ETW-5.9), and a private session enables no driver (ETW-3.6.4).
    pub fn enable_infos_of(&self, registration: &Registration) -> Vec<(u16, &SessionEnableInfo)> {
        if registration.form.is_classic() {
            let of_session = self.classic_enable_info(registration.provider);
            return of_session.into_iter().collect();
        }
        let direct = self.enable_infos.get(&Target::Provider(registration.provider));
        let is_direct = |session| direct.is_some_and(|sessions| sessions.contains_key(&session));
        let reaches = |target: Target, id: u16| {
            self.sessions.get(&id).is_some_and(|running| {
                !running.is_closed_to_drivers()
                    && match target {
                        Target::Provider(_) => true,
                        Target::Group(_) => {
                            let replaced = self.unspecified.direct_replaces_group && is_direct(id);
                            !replaced && !running.disallowed.contains(&registration.provider)
                        }
                    }
            })
        };
        Self::targets(registration)
            .filter_map(|target| Some((target, self.enable_infos.get(&target)?)))
            .flat_map(|(target, sessions)| sessions.iter().map(move |one| (target, one)))
            .filter(|(target, (session, _))| reaches(*target, **session))
            .map(|(_, (session, one))| (*session, one))
            .collect()
    }

    /// Returns the enable info of the session to which a classic provider writes.
    fn classic_enable_info(&self, provider: Guid) -> Option<(u16, &SessionEnableInfo)> {
        let id = *self.classic_sessions.get(&provider)?;
        let running = self.sessions.get(&id)?;
        if running.is_closed_to_drivers() {
            return None;
        }
        let sessions = self.enable_infos.get(&Target::Provider(provider))?;
        Some((id, sessions.get(&id)?))
    }

    /// Returns whether classic providers of a target write to a session.
    pub fn is_classic_session(&self, target: Target, session: u16) -> bool {
        matches!(target, Target::Provider(provider)
            if self.classic_sessions.get(&provider) == Some(&session))
    }

    /// Returns the registrations that a session enables through their groups, and their providers.
    pub fn members_enabled_by(&self, session: u16) -> Vec<(u64, Guid)> {
        let group_enabled = |registration: &Registration| {
            registration.group.is_some_and(|group| {
                self.enable_infos
                    .get(&Target::Group(group))
                    .is_some_and(|sessions| sessions.contains_key(&session))
            })
        };
        self.registrations
            .iter()
            .filter(|(_, registration)| group_enabled(registration))
            .map(|(handle, registration)| (*handle, registration.provider))
            .collect()
    }

    /// Returns the registrations of a target, in creation order.
    pub fn registered_as(&self, target: Target) -> Vec<u64> {
        self.registrations
            .iter()
            .filter(|(_, registration)| Self::targets(registration).any(|one| one == target))
            .map(|(handle, _)| *handle)
            .collect()
    }

    /// Returns the registrations that a session enables through a target, in creation order.
    /// `classic` includes classic providers.
    pub fn reached_by(&self, target: Target, session: u16, classic: bool) -> Vec<u64> {
        let session = self.sessions.get(&session);
        if session.is_some_and(RunningSession::is_closed_to_drivers) {
            return Vec::new();
        }
        self.registrations
            .iter()
            .filter(|(_, registration)| Self::targets(registration).any(|one| one == target))
            .filter(|(_, registration)| classic || !registration.form.is_classic())
            .filter(|(_, registration)| {
                matches!(target, Target::Provider(_))
                    || session
                        .is_none_or(|session| !session.disallowed.contains(&registration.provider))
            })
            .map(|(handle, _)| *handle)
            .collect()
    }

    /// Returns the notification to send to a registration now. It carries the resulting state
    /// (ETW-3.2.1, R-E3), or requests a state capture.
    pub fn notification(&self, handle: u64, capture: bool) -> Option<Notification> {
        let registration = self.registrations.get(&handle)?;
        let enable_infos = self.enable_infos_of(registration);
        let mut combined = Combined::combine(enable_infos.iter().map(|(_, one)| one.enable_info));
        // O1
        if self.unspecified.passes_level_zero
            && enable_infos.iter().all(|(_, one)| one.enable_info.level == 0)
            && let Some(combined) = &mut combined
        {
            combined.level = 0;
        }
        let code = match (capture, combined) {
            (true, _) => CAPTURE_STATE,
            (false, Some(_)) => ENABLE,
            (false, None) => DISABLE,
        };
        let of_nothing = Notification::of_disable(handle, registration);
        let trace_handle = enable_infos
            .first()
            .filter(|_| registration.form.is_classic())
            .map_or(0, |(session, info)| trace_handle(*session, info));
        Some(Notification {
            code,
            combined: combined.unwrap_or(of_nothing.combined),
            trace_handle,
            filters: enable_infos
                .into_iter()
                .filter_map(|(session, one)| Some((session, one.filter.clone()?)))
                .collect(),
            ..of_nothing
        })
    }
}

impl Etw {
    /// Returns the routes of all registrations.
    pub fn routes(&self) -> RouteTable {
        self.registrations
            .iter()
            .map(|(handle, registration)| (*handle, self.route(registration)))
            .collect()
    }

    pub fn route(&self, registration: &Registration) -> Route {
        let mut target_sessions: Vec<TargetSession> = self
            .enable_infos_of(registration)
            .into_iter()
            .filter_map(|(id, one)| {
                Some(TargetSession {
                    session: Arc::clone(&self.sessions.get(&id)?.session),
                    enable_info: one.enable_info,
                    events: Arc::clone(&one.events),
                    exclude_in_private: one.exclude_in_private,
                    stack_walk: one.stack_walk,
                })
            })
            .collect();
        target_sessions.sort_by_key(|target| target.session.id());
        Route {
            provider: registration.provider,
            traits: registration.traits.clone(),
            honours_types: registration.honours_types,
            writes: Arc::clone(&registration.writes),
            target_sessions,
        }
    }

    /// Returns the sessions that count toward a provider's limit (ETW-3.6.1, O9).
    pub fn sessions_on(&self, provider: Guid) -> HashSet<u16> {
        let direct = self.enable_infos.get(&Target::Provider(provider));
        let groups = self
            .registrations
            .values()
            .filter(|registration| {
                self.unspecified.group_counts_toward_limit && registration.provider == provider
            })
            .filter_map(|registration| self.enable_infos.get(&Target::Group(registration.group?)));
        direct.into_iter().chain(groups).flat_map(|sessions| sessions.keys().copied()).collect()
    }

    /// Counts a registration that ends after only a few events. Returns whether the provider had
    /// many of them (ETW-2.18).
    pub fn churns(&mut self, registration: &Registration) -> bool {
        const FEW_EVENTS: std::ops::RangeInclusive<u64> = 1..=4;
        const MANY: u32 = 8;
        if !FEW_EVENTS.contains(&registration.writes.sum()) {
            return false;
        }
        let ended = self.short_lived.entry(registration.provider).or_default();
        *ended += 1;
        *ended >= MANY
    }

    /// Returns the number of writes through a provider's registrations.
    pub fn writes_of(&self, provider: Guid) -> u64 {
        self.registrations
            .values()
            .filter(|registration| registration.provider == provider)
            .map(|registration| registration.writes.sum())
            .sum()
    }

    /// Returns the registered providers that are members of a group.
    pub fn members(&self, group: Guid) -> HashSet<Guid> {
        self.registrations
            .values()
            .filter(|registration| registration.group == Some(group))
            .map(|registration| registration.provider)
            .collect()
    }
}

impl Etw {
    /// Enables a provider for the sessions that enable every provider, unless they already enable it
    /// or the provider's session limit is reached.
    pub fn enable_for_every_provider(&mut self, provider: Guid) {
        for (session, info) in self.every_provider.clone() {
            if self.sessions_on(provider).len() < MAX_PER_PROVIDER {
                let sessions = self.enable_infos.entry(Target::Provider(provider));
                sessions.or_default().entry(session).or_insert(info);
                self.classic_sessions.entry(provider).or_insert(session);
            }
        }
    }

    /// Returns the targets that a session enables: first providers, then groups, each sorted by GUID.
    pub fn targets_of(&self, session: u16) -> Vec<Target> {
        let infos = self.enable_infos.iter();
        let mut targets: Vec<Target> = infos
            .filter(|(_, sessions)| sessions.contains_key(&session))
            .map(|(target, _)| *target)
            .collect();
        targets.sort_by_key(|target| match target {
            Target::Provider(guid) => (0, *guid),
            Target::Group(guid) => (1, *guid),
        });
        targets
    }

    /// Removes a session's enable info for a target. Returns whether it existed.
    pub fn forget(&mut self, target: Target, session: u16) -> bool {
        if self.is_classic_session(target, session)
            && let Target::Provider(provider) = target
        {
            self.classic_sessions.remove(&provider);
        }
        let Some(sessions) = self.enable_infos.get_mut(&target) else {
            return false;
        };
        let was = sessions.remove(&session).is_some();
        if sessions.is_empty() {
            self.enable_infos.remove(&target);
        }
        was
    }

    /// Returns each session's enable info for the registration with this handle.
    pub fn enable_infos_of_handle(&self, handle: u64) -> Vec<(u16, &SessionEnableInfo)> {
        self.registration_at(handle)
            .map(|registration| self.enable_infos_of(registration))
            .unwrap_or_default()
    }
}
