//! Probes about events, and about timers.

use std::time::Duration;

use etw_probes_interface::{TIMER_PERIOD_MS, operation, write};
use etw_scenarios::HostError;

use crate::{
    answers::Values,
    host::SessionPlan,
    probe::Run,
    stage::{Stage, Write, error, traits},
};

/// The size of an event's header (ETW-1.1.9).
const EVENT_HEADER: u64 = 80;

pub const RUN: &[(&str, Run)] = &[
    ("largest-event", largest),
    ("largest-event-of-buffer", largest_of_buffer),
    ("write-unknown-flags", unknown_flags),
    ("unknown-descriptor-type", unknown_type),
    ("reserved-level", reserved_level),
    ("event-property", property),
    ("timer", timer),
];

fn largest(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let session = stage.enabled_by(SessionPlan { buffer_kb: 256, ..SessionPlan::default() }, 5)?;
    let (payload, above) = stage.largest_payload(Write::default(), 100, 70_000)?;
    let with_item = Write { form: write::RELATED, ..Write::default() };
    let (less, _) = stage.largest_payload(with_item, 100, 70_000)?;
    stage.stop(session)?;
    Ok(Values::default()
        .with("size", payload + EVENT_HEADER)
        .with("size_of_related_item", payload.saturating_sub(less))
        .status("status_above", above))
}

fn largest_of_buffer(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let session = stage.enabled_by(SessionPlan { buffer_kb: 4, ..SessionPlan::default() }, 5)?;
    let (payload, above) = stage.largest_payload(Write::default(), 100, 70_000)?;
    stage.stop(session)?;
    Ok(Values::default().with("size", payload + EVENT_HEADER).status("status_above", above))
}

fn unknown_flags(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let session = stage.enabled(5)?;
    let written = stage.write(Write { flags: 0x10, ..Write::default() })?;
    let recorded = stage.stop(session)?;
    Ok(Values::default().status("status", written.status).with("recorded", recorded.events.len()))
}

fn unknown_type(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    stage.need_traits(0, &traits("Types", None, None))?;
    let session = stage.enabled(5)?;
    let written = stage.write(Write { form: write::UNKNOWN_TYPE, size: 8, ..Write::default() })?;
    let recorded = stage.stop(session)?;
    let first = recorded.events.first();
    Ok(Values::default()
        .status("status", written.status)
        .with("recorded", recorded.events.len())
        .with("payload", first.map_or(0, |event| event.user_data.len()))
        .with("items", first.map_or(0, |event| event.extended.len())))
}

fn reserved_level(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let session = stage.enabled(255)?;
    let written = stage.write(Write { level: 9, ..Write::default() })?;
    let recorded = stage.stop(session)?;
    Ok(Values::default().status("status", written.status).with("recorded", recorded.events.len()))
}

fn property(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let session = stage.enabled(5)?;
    stage.write(Write::default())?;
    let recorded = stage.stop(session)?;
    let event = recorded.events.first().ok_or_else(|| error("the session recorded no event"))?;
    Ok(Values::default().with("bits", u32::from(event.event_property)))
}

fn timer(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    const TIME: Duration = Duration::from_secs(1);
    stage.ask_for(operation::TIMER_START, 0, 0)?;
    stage.host.pass(TIME)?;
    let reply = stage.ask_for(operation::TIMER_STOP, 0, 0)?;
    let [ticks, first, shortest, longest, whole, frequency, ..] = reply.numbers;
    if ticks < 2 || frequency == 0 {
        return Err(error(format!("the timer ticked {ticks} times in a second")));
    }
    let microseconds = |counter: u64| {
        let micro = u128::from(counter) * 1_000_000 / u128::from(frequency);
        u64::try_from(micro).unwrap_or(u64::MAX)
    };
    Ok(Values::default()
        .with("period_us", u64::from(TIMER_PERIOD_MS) * 1000)
        .with("ticks", ticks)
        .with("first_us", microseconds(first))
        .with("shortest_us", microseconds(shortest))
        .with("longest_us", microseconds(longest))
        .with("mean_us", microseconds(whole / (ticks - 1))))
}
