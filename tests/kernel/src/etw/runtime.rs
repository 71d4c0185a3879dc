//! Registrations, and telling them what sessions want of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use zerocopy::IntoBytes;

use super::{
    CAPTURE_STATE, DISABLE, ENABLE, Guid,
    composite::{Composite, Enablement},
    controller::FilterData,
    filters::EventFilters,
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
    pub events: EventFilters,
}

/// What becomes of traits that name a group which the driver may not join (5.8). That it
/// is denied is documented, and not what else happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupDenial {
    /// None of them are set.
    #[default]
    RefusesAll,
    /// All but the group are set; the call fails all the same.
    RefusesTheGroup,
}

/// A registration: what one `EtwRegister` made.
pub struct Registration {
    /// The provider's GUID.
    pub provider: Guid,
    callback: u64,
    context: u64,
    /// The blob of provider traits, once it is set.
    pub traits: Option<Vec<u8>>,
    /// The group that the traits name.
    group: Option<Guid>,
    /// Whether the types of data descriptors mean something (4.3.6).
    pub honours_types: bool,
    registered_by: Call,
    in_callback: bool,
}

/// The ETW runtime of a machine.
#[derive(Default)]
pub struct Etw {
    registrations: BTreeMap<u64, Registration>,
    released: HashSet<u64>,
    issued: u64,
    /// The sessions that run, by id.
    pub sessions: BTreeMap<u16, Session>,
    /// Ids of sessions are not used twice.
    pub sessions_started: u16,
    /// Who enables what.
    pub enablements: HashMap<Target, BTreeMap<u16, SessionEnablement>>,
    /// The activity ids of threads that have one.
    pub activities: HashMap<u32, Guid>,
    /// How many activity ids were created.
    pub activities_created: u64,
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
    /// (5.4: where both, each counts). A session's disallow list keeps it from reaching a
    /// provider by a group (5.9), and a private session reaches no driver (3.6.4).
    pub fn enablements_of(&self, registration: &Registration) -> Vec<(u16, &SessionEnablement)> {
        let reaches = |target: Target, session: u16| {
            self.sessions.get(&session).is_some_and(|session| {
                !session.is_private()
                    && match target {
                        Target::Provider(_) => true,
                        Target::Group(_) => !session.disallowed.contains(&registration.provider),
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

    /// The registrations that a session reaches by a target, in the order they were made.
    pub fn reached_by(&self, target: Target, session: u16) -> Vec<u64> {
        let session = self.sessions.get(&session);
        if session.is_some_and(Session::is_private) {
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
    /// resulting state (3.2.1, R-E3), or that state is to be captured.
    fn notification(&self, handle: u64, capture: bool) -> Option<Notification> {
        let registration = self.registrations.get(&handle)?;
        let enablements = self.enablements_of(registration);
        let composite = Composite::of(enablements.iter().map(|(_, one)| one.enablement));
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

/// The bit that stands for a session in a write's filter argument (3.5.5).
pub const fn instance_bit(session: u16) -> u64 {
    1 << (session % 64)
}

/// The chain of schematized filters, one per session that set one (3.5.3, R-E6).
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

/// Tells a registration what has become of it: calls its enable callback, at
/// `PASSIVE_LEVEL` on a system thread.
pub fn notify(thread: &Thread, handle: u64, capture: bool, source: Guid) {
    let notification = {
        let mut etw = thread.shared().etw();
        let Some(notification) = etw.notification(handle, capture) else {
            return;
        };
        if notification.callback == 0 {
            return;
        }
        etw.notifications += 1;
        if let Ok(registration) = etw.registration(handle) {
            registration.in_callback = true;
        }
        notification
    };
    let loan = Loan::new(thread, source, &notification.filters);
    let composite = notification.composite;
    thread.call_driver(
        "the enable callback",
        notification.callback,
        [
            loan.source.address(),
            u64::from(notification.code),
            u64::from(composite.level),
            composite.match_any,
            composite.match_all,
            loan.filter_address(),
            notification.context,
        ],
    );
    loan.take_back();
    if let Ok(registration) = thread.shared().etw().registration(notification.handle) {
        registration.in_callback = false;
    }
}

/// Memory that a callback may read while it runs, and no longer (3.2.8).
struct Loan {
    source: Block,
    chain: Block,
    chain_length: usize,
    descriptor: Option<Block>,
}

impl Loan {
    fn new(thread: &Thread, source: Guid, filters: &[(u16, FilterData)]) -> Self {
        let put = |bytes: &[u8]| {
            let block = Block::zeroed(bytes.len());
            if let Err(error) = memory::write_bytes(block.address(), bytes) {
                thread.stop_for_address(error);
            }
            block
        };
        let bytes = filter_chain(filters);
        let chain = put(&bytes);
        let descriptor = EventFilterDescriptor {
            pointer: chain.address(),
            size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            kind: SCHEMATIZED,
        };
        Self {
            source: put(&source.to_bytes()),
            chain,
            chain_length: bytes.len(),
            descriptor: (!filters.is_empty()).then(|| put(descriptor.as_bytes())),
        }
    }

    fn filter_address(&self) -> u64 {
        self.descriptor.as_ref().map_or(0, Block::address)
    }

    /// Spoils the memory, so that a driver that kept a pointer reads nonsense.
    fn take_back(self) {
        const POISON: u8 = 0xDD;
        let spoil = |block: &Block, length: usize| {
            let spoilt = memory::write_bytes(block.address(), &vec![POISON; length]);
            debug_assert!(spoilt.is_ok(), "the kernel's own memory is writable");
        };
        spoil(&self.source, 16);
        spoil(&self.chain, self.chain_length);
        if let Some(descriptor) = &self.descriptor {
            spoil(descriptor, size_of::<EventFilterDescriptor>());
        }
    }
}

/// Makes a registration and, where sessions enable its GUID already, tells it so
/// before its handle is out (2.6, R-E9).
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
                in_callback: false,
            },
        );
        let enabled = !etw.enablements_of_handle(handle).is_empty();
        (handle, enabled)
    };
    if enabled {
        notify(thread, handle, false, Guid::NULL);
    }
    handle
}

/// Ends a registration.
pub fn unregister(thread: &Thread, handle: u64) -> NtStatus {
    let call = thread.call();
    let in_callback = match thread.shared().etw().registration(handle) {
        Ok(registration) => Ok(registration.in_callback),
        Err(error) => Err(error),
    };
    match in_callback {
        Ok(true) => thread.stop(
            Rule::UnregisterInCallback,
            format!(
                "EtwUnregister was called from {} inside the registration's own enable callback, \
                 where it would wait for itself",
                thread.shared().place(call.return_address)
            ),
        ),
        Ok(false) => {
            let mut etw = thread.shared().etw();
            etw.registrations.remove(&handle);
            etw.released.insert(handle);
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
    let Some(CheckedTraits { group }) = check_traits(&blob) else {
        return NtStatus::INVALID_PARAMETER;
    };
    let joined = {
        let mut etw = thread.shared().etw();
        let denial = group.and_then(|group| etw.denied_groups.get(&group).copied());
        let Ok(registration) = etw.registration(handle) else {
            return NtStatus::INVALID_HANDLE;
        };
        if registration.traits.is_some() {
            return NtStatus::INVALID_PARAMETER;
        }
        if denial == Some(GroupDenial::RefusesAll) {
            return NtStatus::ACCESS_DENIED;
        }
        registration.traits = Some(blob);
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
    // Membership takes effect now, and so does the group's enablement (5.6).
    if joined {
        notify(thread, handle, false, Guid::NULL);
    }
    NtStatus::SUCCESS
}

/// A blob of traits that is well-formed.
#[derive(Debug, PartialEq, Eq)]
pub struct CheckedTraits {
    /// The group that it names.
    pub group: Option<Guid>,
}

/// Checks a blob of traits (R-T1, R-T2, R-T5); nothing if it is malformed.
#[must_use]
pub fn check_traits(blob: &[u8]) -> Option<CheckedTraits> {
    const GROUP: u8 = 1;
    let (size, rest) = blob.split_first_chunk::<2>()?;
    if usize::from(u16::from_le_bytes(*size)) != blob.len() {
        return None;
    }
    let name = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(rest.get(..name)?).ok()?;
    let mut rest = rest.get(name + 1..)?;
    let mut group = None;
    while !rest.is_empty() {
        let (size, _) = rest.split_first_chunk::<2>()?;
        let size = usize::from(u16::from_le_bytes(*size));
        let one = rest.get(..size)?;
        let (kind, data) = one.get(2..)?.split_first()?;
        if *kind == GROUP {
            let bytes: [u8; 16] = data.try_into().ok()?;
            if group.replace(Guid::from_bytes(bytes)).is_some() {
                return None;
            }
        }
        rest = rest.get(size..)?;
    }
    Some(CheckedTraits { group })
}

/// Reports and removes the registrations of a driver that is gone, whose
/// callbacks would run code that is no longer there (2.1).
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
        let group = checked.group.expect("a group");
        assert_eq!(group.to_string(), "faaf2f61-9b26-4591-9bb1-b9b8bae2d34c");
        assert_eq!(
            check_traits(b"\x05\0ab\0"),
            Some(CheckedTraits { group: None })
        );
    }

    #[test]
    fn malformed_traits_are_refused_at_every_length() {
        let good = example();
        for length in 0..good.len() {
            let mut cut = good[..length].to_vec();
            assert_eq!(check_traits(&cut), None, "the size field says more");
            if length >= 2 {
                cut[..2].copy_from_slice(&u16::try_from(length).unwrap().to_le_bytes());
                // Only cuts between whole traits are whole blobs.
                assert_eq!(
                    check_traits(&cut).is_some(),
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
