//! Probes about sessions, their limits and their losses.

use etw_probes_interface::place;
use etw_scenarios::{HostError, Session, Source};

use crate::{
    answers::Values,
    host::{Enabling, SessionPlan},
    probe::Run,
    stage::{GROUP, Stage, Write, code_of, provider, traits},
};

/// The number of sessions that can enable a provider (ETW-3.6.1).
const MAX_PER_PROVIDER: usize = 8;

/// A session with buffers of 4 KB.
const SMALL: SessionPlan =
    SessionPlan { buffer_kb: 4, few_buffers: false, independent: false, paged: false };

/// A session with large buffers.
const LARGE: SessionPlan = SessionPlan { buffer_kb: 64, ..SMALL };

/// Returns an event that does not fit in a 4 KB buffer, but fits in a 64 KB buffer.
fn large_event() -> Write {
    Write { size: 20_000, ..Write::default() }
}

pub const RUN: &[(&str, Run)] = &[
    ("limit-of-eight", |stage| limit(stage, provider())),
    ("limit-by-group", |stage| limit(stage, Source::Group(GROUP))),
    ("enable-before-registration", before_registration),
    ("group-with-filter", group_with_filter),
    ("paged-session", paged),
    ("loss-bystander", bystander),
    ("loss-independent", |stage| independent(stage, LARGE)),
    ("loss-of-independent", |stage| independent(stage, SMALL)),
    ("loss-counts", counts),
];

fn limit(stage: &mut Stage<'_>, source: Source) -> Result<Values, HostError> {
    stage.register(0)?;
    stage.need_traits(0, &traits("Member", Some(GROUP), None))?;
    for _ in 0..MAX_PER_PROVIDER {
        let session = stage.session()?;
        stage.enable(session, source, 4)?;
    }
    let ninth = stage.session()?;
    let error = code_of(stage.enable(ninth, provider(), 4))?;
    Ok(Values::default().with("ninth_error", error))
}

fn before_registration(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    let session = stage.session()?;
    let first = code_of(stage.enable(session, provider(), 3))?;
    let second = code_of(stage.enable(session, provider(), 4))?;
    stage.register(0)?;
    let callback = stage.last_callback()?;
    Ok(Values::default()
        .with("first_error", first)
        .with("second_error", second)
        .with("level_at_registration", callback.level))
}

fn group_with_filter(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    let session = stage.session()?;
    let enabling = Enabling { level: 4, ids: Some(vec![1]), ..Enabling::default() };
    let error = code_of(stage.host.enable(session, Source::Group(GROUP), &enabling))?;
    Ok(Values::default().with("error", error))
}

fn paged(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let session =
        stage.host.start_session(SessionPlan { paged: true, ..SessionPlan::default() })?;
    let error = code_of(stage.enable(session, provider(), 5))?;
    let callbacks = stage.callbacks()?.len();
    let written = stage.write(Write::default())?;
    let recorded = stage.stop(session)?;
    Ok(Values::default()
        .with("enable_error", error)
        .with("callbacks", callbacks)
        .status("status", written.status)
        .with("recorded", recorded.events.len()))
}

fn bystander(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let small = stage.enabled_by(SMALL, 5)?;
    let large = stage.enabled_by(LARGE, 5)?;
    let written = stage.write(large_event())?;
    let small = stage.stop(small)?;
    let large = stage.stop(large)?;
    Ok(Values::default()
        .status("status", written.status)
        .with("recorded_with_room", large.events.len())
        .with("recorded_without_room", small.events.len())
        .with("lost_with_room", large.lost)
        .with("lost_without_room", small.lost))
}

/// Writes an event that fits in the buffers of only one of two sessions. The session with this plan
/// is independent; the buffers of the other session have the other size.
fn independent(stage: &mut Stage<'_>, plan: SessionPlan) -> Result<Values, HostError> {
    stage.register(0)?;
    let other = if plan == SMALL { LARGE } else { SMALL };
    let independent = stage.enabled_by(SessionPlan { independent: true, ..plan }, 5)?;
    let ordinary = stage.enabled_by(other, 5)?;
    let written = stage.write(large_event())?;
    let (independent, ordinary) = (stage.stop(independent)?, stage.stop(ordinary)?);
    Ok(Values::default()
        .status("status", written.status)
        .with("recorded_by_independent", independent.events.len())
        .with("recorded_by_ordinary", ordinary.events.len())
        .with("lost_by_independent", independent.lost)
        .with("lost_by_ordinary", ordinary.lost))
}

fn counts(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let session: Session = stage.enabled_by(SessionPlan { few_buffers: true, ..SMALL }, 5)?;
    // At DISPATCH_LEVEL, nothing adds buffers (ETW-6.3.4).
    let written =
        stage.write(Write { place: place::RAISED, size: 100, count: 2000, ..Write::default() })?;
    let recorded = stage.stop(session)?;
    Ok(Values::default()
        .with("some_failed", written.failed > 0)
        .with("failed_are_lost", written.failed == recorded.lost)
        .with("succeeded_are_recorded", written.succeeded == recorded.events.len() as u64))
}
