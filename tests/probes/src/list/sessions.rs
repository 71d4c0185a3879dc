//! Probes about sessions, their limits and their losses.

use etw_probes_interface::place;
use etw_scenarios::{HostError, Session, Source};

use crate::{
    answers::Values,
    host::{Enabling, SessionPlan},
    probe::{Confidence, Probe},
    stage::{GROUP, Stage, Write, code_of, provider, traits},
};

/// The number of sessions that can enable a provider (ETW-3.6.1).
const MAX_PER_PROVIDER: usize = 8;

/// A session with buffers of 4 KB.
const SMALL: SessionPlan =
    SessionPlan { buffer_kb: 4, few_buffers: false, independent: false, paged: false };

/// A session with large buffers.
const LARGE: SessionPlan = SessionPlan { buffer_kb: 64, ..SMALL };

/// An event that does not fit into a buffer of 4 KB, and fits into one of 64 KB.
fn large_event() -> Write {
    Write { size: 20_000, ..Write::default() }
}

pub const PROBES: &[Probe] = &[
    Probe {
        id: "limit-of-eight",
        text: "Which error does the ninth session that enables a provider get?",
        about: &["ETW-3.6.1"],
        source: "Microsoft Learn, EnableTraceEx2",
        confidence: Confidence::High,
        documented: "ERROR_NO_SYSTEM_RESOURCES (1450)",
        assumed: "1450",
        varies: false,
        risky: false,
        stage: |stage| limit(stage, provider()),
    },
    Probe {
        id: "limit-by-group",
        text: "Which error does a ninth session that enables a provider get, if eight enable its \
               group?",
        about: &["O9", "ETW-3.6.5"],
        source: "none",
        confidence: Confidence::Low,
        documented: "not documented",
        assumed: "none: the group does not count",
        varies: false,
        risky: false,
        stage: |stage| limit(stage, Source::Group(GROUP)),
    },
    Probe {
        id: "enable-before-registration",
        text: "Which errors does a controller that enables a provider get before the provider \
               registers, and then again with another level?",
        about: &["ETW-3.1.5", "ETW-3.1.6"],
        source: "Microsoft Learn, EnableTraceEx2, two versions",
        confidence: Confidence::Medium,
        documented: "none; by an older page, ERROR_INVALID_FUNCTION (1) the second time",
        assumed: "none",
        varies: false,
        risky: false,
        stage: before_registration,
    },
    Probe {
        id: "group-with-filter",
        text: "Which error does a controller that enables a group with an event id filter get?",
        about: &["ETW-5.13"],
        source: "Microsoft Learn, \"Provider traits\"",
        confidence: Confidence::Low,
        documented: "groups do not support it; the error is not documented",
        assumed: "ERROR_INVALID_PARAMETER (87)",
        varies: false,
        risky: false,
        stage: group_with_filter,
    },
    Probe {
        id: "paged-session",
        text: "Is a session in paged memory refused when it enables a driver, or when the driver \
               writes?",
        about: &["O10", "ETW-6.1.11"],
        source: "Microsoft Learn, Logging mode constants",
        confidence: Confidence::Low,
        documented: "it cannot receive events of kernel-mode providers; the way is not documented",
        assumed: "it enables the driver and receives no events",
        varies: false,
        risky: true,
        stage: paged,
    },
    Probe {
        id: "loss-bystander",
        text: "If an event fits into one session's buffers and not into another's: what does the \
               write return, who records it, who counts a loss?",
        about: &["O6", "ETW-1.3.18", "ETW-1.3.23", "ETW-6.1.3", "ETW-6.1.6"],
        source: "Microsoft Learn, EventWriteEx; \"Logging mode constants\"",
        confidence: Confidence::Low,
        documented: "STATUS_BUFFER_OVERFLOW by way of ERROR_MORE_DATA, and none records it; the \
                     counts are not documented",
        assumed: "as documented; the session without room counts a loss",
        varies: false,
        risky: false,
        stage: bystander,
    },
    Probe {
        id: "loss-independent",
        text: "If an event fits into an independent session's buffers and not into an ordinary \
               one's: what does the write return, and who records it?",
        about: &["O6", "ETW-6.1.4", "ETW-6.1.5"],
        source: "Microsoft Learn, \"Logging mode constants\"",
        confidence: Confidence::Low,
        documented: "the independent session records it; the status is not documented",
        assumed: "STATUS_BUFFER_OVERFLOW, and the independent session records it",
        varies: false,
        risky: false,
        stage: |stage| independent(stage, LARGE),
    },
    Probe {
        id: "loss-of-independent",
        text: "If an event fits into an ordinary session's buffers and not into an independent one's: \
               what does the write return, and who records it?",
        about: &["ETW-6.1.4", "ETW-6.1.5"],
        source: "Microsoft Learn, \"Logging mode constants\"",
        confidence: Confidence::Low,
        documented: "the ordinary session records it; the status is not documented",
        assumed: "STATUS_SUCCESS, and the ordinary session records it",
        varies: false,
        risky: false,
        stage: |stage| independent(stage, SMALL),
    },
    Probe {
        id: "loss-counts",
        text: "Does the number of failed writes equal the number of lost events, and the number \
               of successful writes the number of recorded events?",
        about: &["ETW-6.3.5", "ETW-1.3.19"],
        source: "Microsoft Learn, EVENT_TRACE_PROPERTIES",
        confidence: Confidence::Medium,
        documented: "EventsLost counts events that were not recorded",
        assumed: "yes, and writes fail with STATUS_NO_MEMORY",
        varies: false,
        risky: false,
        stage: counts,
    },
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

/// Writes an event that fits into only one of two sessions' buffers. The session with this plan is
/// independent; the other session's buffers have the other size.
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
