//! Pairs each of our events with the same event in another decoder's output.

use std::cmp::Ordering;
use std::collections::HashMap;

use etw_wire::Guid;

use super::event::OtherEvent;
use super::property::Property;
use super::time::OtherTime;
use super::value::unsigned;
use etl_file::{Decoded, FileTime};

/// The parts of an event's identity that a pair must share, and the required nearness of its times.
struct Pass {
    provider: bool,
    id: bool,
    process_and_thread: bool,
    time: Nearness,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nearness {
    /// The times are equal.
    Equal,
    /// The times can be equal, given their precision.
    Near,
    /// The times are ignored: events are paired in order.
    Any,
}

/// The passes over the unpaired events, strictest first. Later passes pair events whose identities
/// differ in part, so that this is reported as one event's difference instead of two events without
/// a partner.
const PASSES: [Pass; 8] = [
    Pass::new(true, true, true, Nearness::Equal),
    Pass::new(true, true, true, Nearness::Near),
    Pass::new(true, true, false, Nearness::Equal),
    Pass::new(true, false, true, Nearness::Near),
    Pass::new(false, true, true, Nearness::Near),
    Pass::new(true, false, false, Nearness::Equal),
    Pass::new(true, true, true, Nearness::Any),
    Pass::new(true, true, false, Nearness::Any),
];

impl Pass {
    const fn new(provider: bool, id: bool, process_and_thread: bool, time: Nearness) -> Self {
        Self { provider, id, process_and_thread, time }
    }

    /// Returns the parts of an identity that this pass compares.
    fn key(&self, identity: &Identity) -> Identity {
        Identity {
            provider: identity.provider.filter(|_| self.provider),
            id: identity.id.filter(|_| self.id),
            process: identity.process.filter(|_| self.process_and_thread),
            thread: identity.thread.filter(|_| self.process_and_thread),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    provider: Option<Guid>,
    id: Option<u64>,
    process: Option<u64>,
    thread: Option<u64>,
}

/// Returns the index of the other decoder's event for each of ours.
pub(super) fn pair(ours: &[Decoded], theirs: &[OtherEvent]) -> Vec<Option<usize>> {
    let mut names: HashMap<&str, Guid> = HashMap::new();
    for event in ours {
        if let Some(name) = &event.provider_name {
            names.entry(name).or_insert(event.provider);
        }
    }
    let our_identities: Vec<Identity> = ours.iter().map(of_ours).collect();
    let their_identities: Vec<Identity> =
        theirs.iter().map(|event| of_theirs(event, &names)).collect();
    let times: Vec<Option<OtherTime>> = theirs
        .iter()
        .map(|event| OtherTime::parse(event.properties.get(&Property::Time)?))
        .collect();
    let mut partners: Vec<Option<usize>> = vec![None; ours.len()];
    let mut is_taken = vec![false; theirs.len()];
    for pass in &PASSES {
        let mut groups: HashMap<Identity, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for (at, identity) in our_identities.iter().enumerate() {
            if partners.get(at).is_some_and(Option::is_none) {
                groups.entry(pass.key(identity)).or_default().0.push(at);
            }
        }
        for (at, identity) in their_identities.iter().enumerate() {
            if is_taken.get(at) == Some(&false)
                && let Some(group) = groups.get_mut(&pass.key(identity))
            {
                group.1.push(at);
            }
        }
        let time_of = |at: usize| times.get(at).copied().flatten();
        for (left, mut right) in groups.into_values() {
            let mut found = Vec::new();
            if pass.time == Nearness::Any {
                found.extend(left.into_iter().zip(right));
            } else {
                right.retain(|at| time_of(*at).and_then(|time| time.unix_nanos()).is_some());
                // The sort is stable: events with equal times stay in file order.
                right.sort_by_key(|at| time_of(*at).and_then(|time| time.unix_nanos()));
                let our_time = |at: usize| ours.get(at).map(|event| event.time);
                along(&left, &right, &our_time, &time_of, pass.time, &mut found);
            }
            for (own, other) in found {
                if let (Some(partner), Some(taken)) =
                    (partners.get_mut(own), is_taken.get_mut(other))
                {
                    *partner = Some(other);
                    *taken = true;
                }
            }
        }
    }
    partners
}

/// Walks two lists in time order, and pairs the events whose times are equal or close.
fn along(
    left: &[usize],
    right: &[usize],
    our_time: &dyn Fn(usize) -> Option<FileTime>,
    their_time: &dyn Fn(usize) -> Option<OtherTime>,
    nearness: Nearness,
    found: &mut Vec<(usize, usize)>,
) {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    while let (Some(&&own), Some(&&other)) = (left.peek(), right.peek()) {
        let (Some(time), Some(theirs)) = (our_time(own), their_time(other)) else {
            return;
        };
        let is_same = match nearness {
            Nearness::Equal => theirs.is(time),
            Nearness::Near | Nearness::Any => theirs.is_near(time),
        };
        if is_same {
            found.push((own, other));
            left.next();
            right.next();
        } else if Some(time.unix_nanos()).cmp(&theirs.unix_nanos()) == Ordering::Less {
            left.next();
        } else {
            right.next();
        }
    }
}

fn of_ours(event: &Decoded) -> Identity {
    Identity {
        provider: Some(event.provider),
        id: Some(event.descriptor.id.into()),
        process: Some(event.process_id.into()),
        thread: Some(event.thread_id.into()),
    }
}

fn of_theirs(event: &OtherEvent, names: &HashMap<&str, Guid>) -> Identity {
    let text = |property| event.properties.get(&property).map(String::as_str);
    let number = |property| text(property).and_then(unsigned);
    let guid = text(Property::Provider).and_then(|text| text.trim().parse().ok());
    let by_name = || names.get(text(Property::ProviderName)?).copied();
    Identity {
        provider: guid.or_else(by_name),
        id: number(Property::Id),
        process: number(Property::Process),
        thread: number(Property::Thread),
    }
}
