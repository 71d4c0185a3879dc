//! Registrations, and telling them what sessions want of them.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    sync::atomic::{AtomicU64, Ordering},
    thread::ThreadId,
};

use zerocopy::IntoBytes;

use super::{
    CAPTURE_STATE, DISABLE, ENABLE, Guid,
    composite::{Composite, Enablement},
    controller::FilterData,
    filters::EventFilters,
    open_points::{GroupDenial, OpenPoints},
    routes::{Reach, Route},
    session::Session,
};
use crate::{
    abi::{EventFilterDescriptor, EventFilterHeader},
    memory,
    pool::Block,
    status::NtStatus,
    thread::{Call, Thread},
    verifier::{Rule, Violation},
};

/// Handles look like kernel addresses; user space and null are never issued.
const FIRST_HANDLE: u64 = 0xFFFF_B000_0000_0000;
const HANDLE_STEP: u64 = 0x80;

/// `EVENT_FILTER_TYPE_SCHEMATIZED`.
const SCHEMATIZED: u32 = 0x8000_0000;

/// What sessions enable: a provider, or a group of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A provider's GUID.
    Provider(Guid),
    /// A provider group's GUID.
    Group(Guid),
}

/// One session's enablement of a target.
#[derive(Clone, Debug)]
pub struct SessionEnablement {
    /// Level, keywords, properties.
    pub enablement: Enablement,
    /// The schematized filter, which the provider evaluates.
    pub filter: Option<FilterData>,
    /// The filters that the runtime evaluates.
    pub events: Arc<EventFilters>,
    /// `EVENT_ENABLE_PROPERTY_EXCLUDE_INPRIVATE`.
    pub exclude_in_private: bool,
    /// `EVENT_ENABLE_PROPERTY_STACK_TRACE`: asked for, and not captured here.
    pub stack_walk: bool,
}

/// A registration: what one `EtwRegister` made.
pub struct Registration {
    /// The provider's GUID.
    pub provider: Guid,
    callback: u64,
    context: u64,
    /// The blob of provider traits, once it is set.
    pub traits: Option<Arc<[u8]>>,
    /// The group that the traits name.
    group: Option<Guid>,
    /// Whether the types of data descriptors mean something (ETW-4.3.6).
    pub honours_types: bool,
    registered_by: Call,
    /// The thread that its enable callback runs on.
    in_callback: Option<ThreadId>,
    /// How many events were written with its handle.
    writes: Arc<AtomicU64>,
}

/// A session that runs.
pub struct RunningSession {
    pub session: Arc<Session>,
    /// The providers that it does not reach by groups.
    pub disallowed: HashSet<Guid>,
}

impl RunningSession {
    /// Whether it gets no events of drivers (ETW-3.6.4, ETW-6.1.11).
    fn is_out_of_reach(&self) -> bool {
        self.session.is_private() || self.session.config().paged_memory
    }
}

/// The ETW runtime of a machine.
#[derive(Default)]
pub struct Etw {
    registrations: BTreeMap<u64, Registration>,
    released: HashSet<u64>,
    issued: u64,
    /// What failed calls of `EtwRegister` left in the handles' places.
    pub left_by_failures: HashSet<u64>,
    /// How many registrations of a provider ended after a few events.
    short_lived: HashMap<Guid, u32>,
    /// What is not documented, and how it is to be here.
    pub open: OpenPoints,
    /// The sessions that run, by id.
    pub sessions: BTreeMap<u16, RunningSession>,
    /// Ids of sessions are not used twice.
    pub sessions_started: u16,
    /// Who enables what.
    pub enablements: HashMap<Target, BTreeMap<u16, SessionEnablement>>,
    /// How many notifications were delivered.
    pub notifications: u64,
    /// The groups that no driver may join.
    pub denied_groups: HashMap<Guid, GroupDenial>,
}

/// Why a handle names no registration.
pub enum HandleError {
    /// It is 0: the provider is not registered, and nothing happens.
    Null,
    /// It was released by `EtwUnregister`.
    Released,
    /// It was never issued.
    NeverIssued,
}

/// A notification that is ready to be delivered.
struct Notification {
    handle: u64,
    callback: u64,
    context: u64,
    code: u32,
    composite: Composite,
    filters: Vec<(u16, FilterData)>,
}

impl Etw {
    /// A runtime with the open points as they are to be.
    pub fn new(open: OpenPoints) -> Self {
        Self {
            open,
            ..Self::default()
        }
    }

    /// The registration behind a handle.
    pub fn registration(&mut self, handle: u64) -> Result<&mut Registration, HandleError> {
        if handle == 0 {
            return Err(HandleError::Null);
        }
        if self.released.contains(&handle) {
            return Err(HandleError::Released);
        }
        self.registrations
            .get_mut(&handle)
            .ok_or(HandleError::NeverIssued)
    }

    /// The registration behind a handle, if there is one.
    pub fn registration_at(&self, handle: u64) -> Option<&Registration> {
        self.registrations.get(&handle)
    }

    /// How many registrations there are.
    pub fn registration_count(&self) -> usize {
        self.registrations.len()
    }

    fn targets(registration: &Registration) -> impl Iterator<Item = Target> {
        let group = registration.group.map(Target::Group);
        std::iter::once(Target::Provider(registration.provider)).chain(group)
    }

    /// Every session's enablement of a registration, directly or by its group
    /// (ETW-5.4: where both, each counts). A session's disallow list keeps it from reaching a
    /// provider by a group (ETW-5.9), and a private session reaches no driver (ETW-3.6.4).
    pub fn enablements_of(&self, registration: &Registration) -> Vec<(u16, &SessionEnablement)> {
        let direct = self
            .enablements
            .get(&Target::Provider(registration.provider));
        let is_direct = |session| direct.is_some_and(|sessions| sessions.contains_key(&session));
        let reaches = |target: Target, id: u16| {
            self.sessions.get(&id).is_some_and(|running| {
                !running.is_out_of_reach()
                    && match target {
                        Target::Provider(_) => true,
                        Target::Group(_) => {
                            let replaced = self.open.direct_replaces_group && is_direct(id);
                            !replaced && !running.disallowed.contains(&registration.provider)
                        }
                    }
            })
        };
        Self::targets(registration)
            .filter_map(|target| Some((target, self.enablements.get(&target)?)))
            .flat_map(|(target, sessions)| sessions.iter().map(move |one| (target, one)))
            .filter(|(target, (session, _))| reaches(*target, **session))
            .map(|(_, (session, one))| (*session, one))
            .collect()
    }

    /// The providers' registrations that a session's group enablements are about.
    pub fn members_enabled_by(&self, session: u16) -> Vec<(u64, Guid)> {
        let group_enabled = |registration: &Registration| {
            registration.group.is_some_and(|group| {
                self.enablements
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

    /// The registrations that a target is about, in the order they were made.
    pub fn registered_as(&self, target: Target) -> Vec<u64> {
        self.registrations
            .iter()
            .filter(|(_, registration)| Self::targets(registration).any(|one| one == target))
            .map(|(handle, _)| *handle)
            .collect()
    }

    /// The registrations that a session reaches by a target, in the order they were made.
    pub fn reached_by(&self, target: Target, session: u16) -> Vec<u64> {
        let session = self.sessions.get(&session);
        if session.is_some_and(RunningSession::is_out_of_reach) {
            return Vec::new();
        }
        self.registrations
            .iter()
            .filter(|(_, registration)| Self::targets(registration).any(|one| one == target))
            .filter(|(_, registration)| {
                matches!(target, Target::Provider(_))
                    || session
                        .is_none_or(|session| !session.disallowed.contains(&registration.provider))
            })
            .map(|(handle, _)| *handle)
            .collect()
    }

    /// The notification that a registration gets now. What is said is the
    /// resulting state (ETW-3.2.1, R-E3), or that state is to be captured.
    fn notification(&self, handle: u64, capture: bool) -> Option<Notification> {
        let registration = self.registrations.get(&handle)?;
        let enablements = self.enablements_of(registration);
        let mut composite = Composite::of(enablements.iter().map(|(_, one)| one.enablement));
        // O1
        if self.open.level_0_is_told
            && enablements.iter().all(|(_, one)| one.enablement.level == 0)
            && let Some(composite) = &mut composite
        {
            composite.level = 0;
        }
        let code = match (capture, composite) {
            (true, _) => CAPTURE_STATE,
            (false, Some(_)) => ENABLE,
            (false, None) => DISABLE,
        };
        Some(Notification {
            handle,
            callback: registration.callback,
            context: registration.context,
            code,
            composite: composite.unwrap_or(Composite {
                level: 0,
                match_any: 0,
                match_all: 0,
            }),
            filters: enablements
                .into_iter()
                .filter_map(|(session, one)| Some((session, one.filter.clone()?)))
                .collect(),
        })
    }
}

impl Etw {
    /// The routes of all registrations.
    pub fn routes(&self) -> HashMap<u64, Arc<Route>> {
        self.registrations
            .iter()
            .map(|(handle, registration)| (*handle, Arc::new(self.route(registration))))
            .collect()
    }

    fn route(&self, registration: &Registration) -> Route {
        let mut reaches: Vec<Reach> = self
            .enablements_of(registration)
            .into_iter()
            .filter_map(|(id, one)| {
                Some(Reach {
                    session: Arc::clone(&self.sessions.get(&id)?.session),
                    enablement: one.enablement,
                    events: Arc::clone(&one.events),
                    exclude_in_private: one.exclude_in_private,
                    stack_walk: one.stack_walk,
                })
            })
            .collect();
        reaches.sort_by_key(|reach| reach.session.id());
        Route {
            provider: registration.provider,
            traits: registration.traits.clone(),
            honours_types: registration.honours_types,
            writes: Arc::clone(&registration.writes),
            reaches,
        }
    }

    /// The sessions that count to those that can enable a provider (ETW-3.6.1, O9).
    pub fn sessions_on(&self, provider: Guid) -> HashSet<u16> {
        let direct = self.enablements.get(&Target::Provider(provider));
        let groups = self
            .registrations
            .values()
            .filter(|registration| {
                self.open.group_counts_to_the_eight && registration.provider == provider
            })
            .filter_map(|registration| self.enablements.get(&Target::Group(registration.group?)));
        direct
            .into_iter()
            .chain(groups)
            .flat_map(|sessions| sessions.keys().copied())
            .collect()
    }

    /// Whether a registration that ends is one of many that wrote a few events (ETW-2.18).
    fn churns(&mut self, registration: &Registration) -> bool {
        const FEW_EVENTS: std::ops::RangeInclusive<u64> = 1..=4;
        const MANY: u32 = 8;
        if !FEW_EVENTS.contains(&registration.writes.load(Ordering::Relaxed)) {
            return false;
        }
        let ended = self.short_lived.entry(registration.provider).or_default();
        *ended += 1;
        *ended >= MANY
    }

    /// How often a provider's registrations were used to write an event.
    pub fn writes_of(&self, provider: Guid) -> u64 {
        self.registrations
            .values()
            .filter(|registration| registration.provider == provider)
            .map(|registration| registration.writes.load(Ordering::Relaxed))
            .sum()
    }

    /// The providers that are registered as members of a group.
    pub fn members(&self, group: Guid) -> HashSet<Guid> {
        self.registrations
            .values()
            .filter(|registration| registration.group == Some(group))
            .map(|registration| registration.provider)
            .collect()
    }
}

/// The bit that stands for a session in a write's filter argument (ETW-3.5.5).
pub const fn instance_bit(session: u16) -> u64 {
    1 << (session % 64)
}

/// The chain of schematized filters, one per session that set one (ETW-3.5.3, R-E6).
fn filter_chain(filters: &[(u16, FilterData)]) -> Vec<u8> {
    let mut chain = Vec::new();
    for (number, (session, filter)) in filters.iter().enumerate() {
        let size = size_of::<EventFilterHeader>() + filter.data.len();
        let padded = size.next_multiple_of(8);
        let last = number + 1 == filters.len();
        let header = EventFilterHeader {
            id: filter.id,
            version: filter.version,
            reserved: [0; 5],
            instance_id: instance_bit(*session),
            size: u32::try_from(size).unwrap_or(u32::MAX),
            next_offset: if last {
                0
            } else {
                u32::try_from(padded).unwrap_or(u32::MAX)
            },
        };
        let start = chain.len();
        chain.extend_from_slice(header.as_bytes());
        chain.extend_from_slice(&filter.data);
        chain.resize(start + if last { size } else { padded }, 0);
    }
    chain
}

/// What a notification says beside the state.
#[derive(Clone, Copy)]
pub struct Cause {
    /// Whether state is to be captured.
    pub capture: bool,
    /// What the controller said of itself.
    pub source: Guid,
    /// Whether filters are told.
    pub filters: bool,
    /// A control code to tell in place of the one that is true.
    pub code: Option<u32>,
}

impl Cause {
    /// A change of the sessions' state, by a controller that says nothing of itself.
    pub const CHANGE: Self = Self {
        capture: false,
        source: Guid::NULL,
        filters: true,
        code: None,
    };
}

/// Tells a registration what has become of it: calls its enable callback, at
/// `PASSIVE_LEVEL` on a system thread. Notifications to one registration come one after
/// another, each with the state that holds when its turn has come (ETW-2.9).
pub fn notify(thread: &Thread, handle: u64, cause: Cause) {
    let this = std::thread::current().id();
    let turn = || -> Option<(Option<Notification>, Option<ThreadId>)> {
        let mut etw = thread.shared().etw();
        let running_on = etw.registration_at(handle).and_then(|one| one.in_callback);
        if running_on.is_some_and(|other| other != this) {
            return None;
        }
        let notification = etw.notification(handle, cause.capture);
        let notification = notification.filter(|one| one.callback != 0);
        if notification.is_some() {
            etw.notifications += 1;
            if let Ok(registration) = etw.registration(handle) {
                registration.in_callback = Some(this);
            }
        }
        Some((notification, running_on))
    };
    let (notification, outer) = thread.wait_for("a notification to end", turn);
    let Some(mut notification) = notification else {
        return;
    };
    if !cause.filters {
        notification.filters.clear();
    }
    check_callback(thread, &notification);
    let loan = Loan::new(thread, cause.source, &notification.filters);
    let composite = notification.composite;
    thread.in_enable_callback(|| {
        thread.call_driver(
            "the enable callback",
            notification.callback,
            [
                loan.source.address(),
                u64::from(cause.code.unwrap_or(notification.code)),
                u64::from(composite.level),
                composite.match_any,
                composite.match_all,
                loan.filter_address(),
                notification.context,
            ],
        )
    });
    loan.take_back(thread);
    if let Ok(registration) = thread.shared().etw().registration(notification.handle) {
        registration.in_callback = outer;
    }
}

/// A registration's callback and its context must be there as long as it is (ETW-2.1).
fn check_callback(thread: &Thread, notification: &Notification) {
    let shared = thread.shared();
    let gone = [
        ("code", notification.callback),
        ("context", notification.context),
    ]
    .into_iter()
    .find_map(|(what, address)| Some((what, address, shared.about_what_is_gone(address)?)));
    if let Some((what, address, why)) = gone {
        thread.stop(
            Rule::DiscardedCode,
            format!("an enable callback's {what} at 0x{address:016X} {why}"),
        );
    }
}

/// Memory that a callback may read while it runs, and no longer (ETW-3.2.8).
struct Loan {
    source: Block,
    chain: Block,
    /// Where the chain ends.
    end: u64,
    descriptor: Option<Block>,
}

impl Loan {
    fn new(thread: &Thread, source: Guid, filters: &[(u16, FilterData)]) -> Self {
        let put = |bytes: &[u8]| {
            let block = Block::guarded(bytes.len());
            if let Err(error) = memory::write_bytes(block.address(), bytes) {
                thread.stop_for_address(error);
            }
            block
        };
        let shared = thread.shared();
        let mut bytes = filter_chain(filters);
        if shared.config.hostile_filters {
            mislead(&mut bytes);
        }
        // It ends where the memory does.
        let room = bytes.len().next_multiple_of(16) - bytes.len();
        let chain = put(&[vec![0; room], bytes.clone()].concat());
        let start = chain.address() + room as u64;
        let descriptor = EventFilterDescriptor {
            pointer: start,
            size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            kind: SCHEMATIZED,
        };
        let end = start + bytes.len() as u64;
        for (session, _) in filters {
            shared.tell_of_instance(instance_bit(*session));
        }
        shared.lent().lend_filter(end);
        Self {
            source: put(&source.to_bytes()),
            chain,
            end,
            descriptor: (!filters.is_empty()).then(|| put(descriptor.as_bytes())),
        }
    }

    fn filter_address(&self) -> u64 {
        self.descriptor.as_ref().map_or(0, Block::address)
    }

    /// Takes the memory back: who kept a pointer to it faults there.
    fn take_back(self, thread: &Thread) {
        let mut lent = thread.shared().lent();
        lent.filter_is_back(self.end);
        lent.take_back(self.source.address(), 16);
        lent.take_back(self.chain.address(), self.end - self.chain.address());
        if let Some(descriptor) = &self.descriptor {
            let size = size_of::<EventFilterDescriptor>() as u64;
            lent.take_back(descriptor.address(), size);
        }
    }
}

/// Makes a chain of filters lead past its end.
fn mislead(chain: &mut [u8]) {
    /// Where `NextOffset` is in a header.
    const NEXT_OFFSET: usize = 20;
    let mut at = 0;
    while let Some(next) = chain.get_mut(at + NEXT_OFFSET..at + NEXT_OFFSET + 4) {
        let Ok(bytes) = <[u8; 4]>::try_from(&*next) else {
            return;
        };
        match u32::from_le_bytes(bytes) {
            0 => {
                next.copy_from_slice(&0x1000_u32.to_le_bytes());
                return;
            }
            step => at += step as usize,
        }
    }
}

/// Makes a registration and, where sessions enable its GUID already, tells it so
/// before its handle is out (ETW-2.6, R-E9).
pub fn register(thread: &Thread, provider: Guid, callback: u64, context: u64) -> u64 {
    let (handle, enabled) = {
        let mut etw = thread.shared().etw();
        let handle = FIRST_HANDLE + etw.issued * HANDLE_STEP;
        etw.issued += 1;
        etw.registrations.insert(
            handle,
            Registration {
                provider,
                callback,
                context,
                traits: None,
                group: None,
                honours_types: false,
                registered_by: thread.call(),
                in_callback: None,
                writes: Arc::default(),
            },
        );
        let enabled = !etw.enablements_of_handle(handle).is_empty();
        (handle, enabled)
    };
    if enabled {
        let cause = Cause {
            filters: thread.shared().etw().open.filters_at_registration,
            ..Cause::CHANGE
        };
        thread.while_registering(|| notify(thread, handle, cause));
    }
    handle
}

/// Ends a registration, after its enable callback has returned wherever it runs (ETW-2.12).
pub fn unregister(thread: &Thread, handle: u64) -> NtStatus {
    let call = thread.call();
    let this = std::thread::current().id();
    let known = || match thread.shared().etw().registration(handle) {
        Ok(registration) => match registration.in_callback {
            Some(other) if other != this => None,
            mine => Some(Ok(mine.is_some())),
        },
        Err(error) => Some(Err(error)),
    };
    match thread.wait_for("an enable callback to return", known) {
        Ok(true) => thread.stop(
            Rule::UnregisterInCallback,
            format!(
                "EtwUnregister was called from {} inside the registration's own enable callback, \
                 where it would wait for itself",
                thread.shared().place(call.return_address)
            ),
        ),
        Ok(false) => {
            let churn;
            let tell = {
                let mut etw = thread.shared().etw();
                let enabled = !etw.enablements_of_handle(handle).is_empty();
                let registration = etw.registrations.remove(&handle);
                etw.released.insert(handle);
                churn = registration.as_ref().is_some_and(|one| etw.churns(one));
                registration
                    .filter(|_| enabled && etw.open.disabled_at_unregistration)
                    .filter(|registration| registration.callback != 0)
            };
            if churn {
                thread.warn(Rule::RegistrationChurn, || {
                    "again: the provider is registered for every few events".to_owned()
                });
            }
            // O5: the registration is gone, and its callback may still be told so.
            if let Some(registration) = tell {
                let loan = Loan::new(thread, Guid::NULL, &[]);
                let source = loan.source.address();
                let arguments = [source, u64::from(DISABLE), 0, 0, 0, 0, registration.context];
                thread.call_driver("the enable callback", registration.callback, arguments);
                loan.take_back(thread);
            }
            NtStatus::SUCCESS
        }
        Err(error) => refuse(thread, handle, &error),
    }
}

/// What a call with a handle that names nothing comes to: nothing for 0, a stop
/// for one that is stale or made up.
pub fn refuse(thread: &Thread, handle: u64, error: &HandleError) -> NtStatus {
    let call = thread.call();
    let from = || thread.shared().place(call.return_address);
    match error {
        HandleError::Null => NtStatus::INVALID_HANDLE,
        HandleError::Released => thread.stop(
            Rule::HandleReleased,
            format!(
                "{} was called from {} with the registration handle 0x{handle:016X}, which \
                 EtwUnregister had released",
                call.name(),
                from()
            ),
        ),
        HandleError::NeverIssued if thread.shared().etw().left_by_failures.contains(&handle) => {
            thread.warn(Rule::HandleOfFailure, || {
                format!("with 0x{handle:016X}, which is no handle: EtwRegister had failed")
            });
            NtStatus::INVALID_HANDLE
        }
        HandleError::NeverIssued => thread.stop(
            Rule::HandleNeverIssued,
            format!(
                "{} was called from {} with 0x{handle:016X}, which EtwRegister never gave out",
                call.name(),
                from()
            ),
        ),
    }
}

/// Sets a registration's traits, once (R-T3, R-T4), and with them its group.
pub fn set_traits(thread: &Thread, handle: u64, blob: Vec<u8>) -> NtStatus {
    let CheckedTraits { group, doubtful } = match check_traits(&blob) {
        Ok(checked) => checked,
        Err((rule, what)) => {
            thread.warn(rule, || format!("with traits {what}"));
            return NtStatus::INVALID_PARAMETER;
        }
    };
    for (rule, what) in doubtful {
        thread.warn(rule, || format!("with traits {what}"));
    }
    let joined = {
        let mut etw = thread.shared().etw();
        let denial = group.and_then(|group| etw.denied_groups.get(&group).copied());
        let Ok(registration) = etw.registration(handle) else {
            return NtStatus::INVALID_HANDLE;
        };
        if registration.traits.is_some() {
            let status = etw.open.second_traits;
            drop(etw);
            thread.warn(Rule::TraitsSetTwice, || {
                "for a registration that has traits already".to_owned()
            });
            return status;
        }
        if denial == Some(GroupDenial::RefusesAll) {
            return NtStatus::ACCESS_DENIED;
        }
        registration.traits = Some(blob.into());
        registration.honours_types = true;
        if denial.is_some() {
            return NtStatus::ACCESS_DENIED;
        }
        let before = etw.enablements_of_handle(handle).len();
        if let Ok(registration) = etw.registration(handle) {
            registration.group = group;
        }
        etw.enablements_of_handle(handle).len() > before
    };
    // Membership takes effect now, and so does the group's enablement (ETW-5.6).
    if joined {
        notify(thread, handle, Cause::CHANGE);
    }
    NtStatus::SUCCESS
}

/// A blob of traits that is well-formed.
#[derive(Debug, PartialEq, Eq)]
pub struct CheckedTraits {
    /// The group that it names.
    pub group: Option<Guid>,
    /// What is accepted, and should not be there.
    pub doubtful: Vec<(Rule, String)>,
}

/// Checks a blob of traits (R-T1, R-T2, R-T5). An error is the rule that it breaks, and
/// what is wrong, to follow "traits".
pub fn check_traits(blob: &[u8]) -> Result<CheckedTraits, (Rule, String)> {
    const GROUP: u8 = 1;
    /// More is copied into every event than should be (ETW-4.3.4).
    const ADVISED: usize = 255;
    let malformed = |what: String| Err((Rule::MalformedTraits, what));
    let Some((size, rest)) = blob.split_first_chunk::<2>() else {
        return malformed(format!("of {} bytes, which have no size", blob.len()));
    };
    let says = usize::from(u16::from_le_bytes(*size));
    if says != blob.len() {
        return malformed(format!("of {} bytes that say they are {says}", blob.len()));
    }
    let Some(end) = rest.iter().position(|byte| *byte == 0) else {
        return malformed("whose name does not end".to_owned());
    };
    let (name, rest) = rest.split_at(end);
    if std::str::from_utf8(name).is_err() {
        return malformed("whose name is not UTF-8".to_owned());
    }
    let mut doubtful = Vec::new();
    if blob.len() > ADVISED {
        doubtful.push((
            Rule::LargeTraits,
            format!("of {} bytes, which every event carries", blob.len()),
        ));
    }
    let mut rest = rest.get(1..).unwrap_or_default();
    let mut group = None;
    while !rest.is_empty() {
        let at = blob.len() - rest.len();
        let size = rest.first_chunk::<2>().copied().map(u16::from_le_bytes);
        let one = size
            .and_then(|size| rest.get(..usize::from(size)))
            .and_then(|one| one.get(2..)?.split_first());
        let Some((kind, data)) = one else {
            return malformed(format!("of which the one at offset {at} does not fit"));
        };
        match *kind {
            GROUP => {
                let Ok(bytes) = <[u8; 16]>::try_from(data) else {
                    let what = format!("whose group has {} bytes, not 16", data.len());
                    return Err((Rule::GroupTrait, what));
                };
                if group.replace(Guid::from_bytes(bytes)).is_some() {
                    return Err((Rule::GroupTrait, "that name two groups".to_owned()));
                }
            }
            0 | 2..=127 => doubtful.push((
                Rule::ReservedTrait,
                format!("of type {kind}, which is not a driver's to use"),
            )),
            _ => {}
        }
        rest = rest.get(data.len() + 3..).unwrap_or_default();
    }
    Ok(CheckedTraits { group, doubtful })
}

/// Reports and removes the registrations of a driver that is gone, whose
/// callbacks would run code that is no longer there (ETW-2.1).
pub fn report_left_registered(
    thread: &Thread,
    belongs: impl Fn(&Call) -> bool,
    driver: &str,
) -> Vec<Violation> {
    let left: Vec<(u64, Guid, Call)> = {
        let mut etw = thread.shared().etw();
        let left: Vec<_> = etw
            .registrations
            .iter()
            .filter(|(_, registration)| belongs(&registration.registered_by))
            .map(|(handle, registration)| {
                (*handle, registration.provider, registration.registered_by)
            })
            .collect();
        for (handle, ..) in &left {
            etw.registrations.remove(handle);
            etw.released.insert(*handle);
        }
        left
    };
    left.into_iter()
        .map(|(handle, provider, call)| Violation {
            rule: Rule::ProviderLeftRegistered,
            message: format!(
                "{driver} was unloaded without EtwUnregister for the provider {{{provider}}}: its \
                 handle 0x{handle:016X} was made by {} at {} from {}",
                call.name(),
                call.irql,
                thread.shared().place(call.return_address)
            ),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked example of the traits' layout: name, group, custom trait 128.
    fn example() -> Vec<u8> {
        let mut blob = vec![0x2B, 0];
        blob.extend_from_slice(b"Contoso.Sample\0\x13\0\x01");
        blob.extend_from_slice(&[
            0x61, 0x2F, 0xAF, 0xFA, 0x26, 0x9B, 0x91, 0x45, 0x9B, 0xB1, 0xB9, 0xB8, 0xBA, 0xE2,
            0xD3, 0x4C,
        ]);
        blob.extend_from_slice(&[7, 0, 0x80, 1, 2, 3, 4]);
        blob
    }

    // R-T1, R-T2, R-T5
    #[test]
    fn traits_are_checked_and_the_group_found() {
        let checked = check_traits(&example()).expect("well-formed");
        assert_eq!(checked.doubtful, []);
        let group = checked.group.expect("a group");
        assert_eq!(group.to_string(), "faaf2f61-9b26-4591-9bb1-b9b8bae2d34c");
        assert_eq!(
            check_traits(b"\x05\0ab\0"),
            Ok(CheckedTraits {
                group: None,
                doubtful: Vec::new()
            })
        );
    }

    #[test]
    fn malformed_traits_are_refused_at_every_length() {
        let good = example();
        for length in 0..good.len() {
            let mut cut = good[..length].to_vec();
            assert!(check_traits(&cut).is_err(), "the size field says more");
            if length >= 2 {
                cut[..2].copy_from_slice(&u16::try_from(length).unwrap().to_le_bytes());
                // Only cuts between whole traits are whole blobs.
                assert_eq!(
                    check_traits(&cut).is_ok(),
                    [17, 36].contains(&length),
                    "{length}"
                );
            }
        }
    }

    // R-E6
    #[test]
    fn a_chain_links_every_sessions_filter() {
        let filter = |id, data: &[u8]| FilterData {
            id,
            version: 2,
            data: data.to_vec(),
        };
        let chain = filter_chain(&[(1, filter(7, b"abc")), (3, filter(8, b"z"))]);
        let first: EventFilterHeader = zerocopy::FromBytes::read_from_prefix(&chain).unwrap().0;
        assert_eq!((first.id, first.instance_id, first.size), (7, 2, 27));
        assert_eq!(first.next_offset, 32);
        let second: EventFilterHeader = zerocopy::FromBytes::read_from_prefix(&chain[32..])
            .unwrap()
            .0;
        assert_eq!((second.id, second.instance_id, second.size), (8, 8, 25));
        assert_eq!((second.next_offset, chain.len()), (0, 57));
    }
}
