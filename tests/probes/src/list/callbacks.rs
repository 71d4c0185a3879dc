//! Probes about enable callbacks.

use etw_probes_interface::{Callback, phase};
use etw_scenarios::{HostError, Source};

use crate::{
    answers::Values,
    host::Enabling,
    probe::Run,
    stage::{GROUP, SOURCE_ID, Stage, Write, code_of, provider, traits},
};

pub const RUN: &[(&str, Run)] = &[
    ("callback-at-registration", at_registration),
    ("callback-two-sessions", two_sessions),
    ("level-zero", level_zero),
    ("match-any-zero", match_any_zero),
    ("match-all-without-any", match_all_without_any),
    ("direct-and-group", direct_and_group),
    ("callback-in-traits", in_traits),
    ("callback-capture-state", capture_state),
    ("callback-at-unregistration", at_unregistration),
    ("callback-source-id", source_id),
    ("callback-filter", filter),
    ("callback-irql", irql),
    ("second-registration", second_registration),
];

/// Adds the values of a callback.
fn described(values: Values, prefix: &str, callback: &Callback) -> Values {
    let name = |what: &str| format!("{prefix}{what}");
    values
        .with(&name("code"), callback.code)
        .with(&name("level"), callback.level)
        .mask(&name("match_any"), callback.match_any)
        .mask(&name("match_all"), callback.match_all)
}

/// Returns a word for the source id of a callback.
fn source_word(callback: &Callback) -> &'static str {
    if callback.flags & 2 != 0 {
        "null pointer"
    } else if callback.source == [0; 16] {
        "GUID_NULL"
    } else if callback.source == SOURCE_ID.to_bytes() {
        "given"
    } else {
        "other"
    }
}

fn at_registration(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    let session = stage.session()?;
    let enabling = Enabling {
        level: 4,
        any: 3,
        all: 1,
        source: Some(SOURCE_ID),
        filter: Some(vec![0x5A; 8]),
        ..Enabling::default()
    };
    stage.host.enable(session, provider(), &enabling)?;
    let reply = stage.register(0)?;
    let callback = stage.last_callback()?;
    let values = Values::default()
        .with("before_return", reply.numbers[1])
        .with("source", source_word(&callback))
        .with("filter", callback.flags & 1 != 0)
        .with("filter_size", callback.filter_size);
    Ok(described(values, "", &callback))
}

fn two_sessions(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let (a, b) = (stage.session()?, stage.session()?);
    let enabling = |level, any, all| Enabling { level, any, all, ..Enabling::default() };
    stage.host.enable(a, provider(), &enabling(3, 1, 0b011))?;
    stage.host.enable(b, provider(), &enabling(1, 4, 0b110))?;
    let both = stage.last_callback()?;
    stage.host.disable(a, provider(), None)?;
    let one = stage.last_callback()?;
    stage.host.disable(b, provider(), None)?;
    let none = stage.last_callback()?;
    let values = described(Values::default(), "both_", &both);
    let values = described(values, "one_", &one);
    Ok(values.with("none_code", none.code).with("callbacks", stage.callbacks()?.len()))
}

fn level_zero(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    stage.enabled(0)?;
    let alone = stage.last_callback()?;
    stage.enabled(3)?;
    let beside = stage.last_callback()?;
    Ok(Values::default().with("alone", alone.level).with("beside_level_3", beside.level))
}

fn match_any_zero(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    stage.enabled(4)?;
    let callback = stage.last_callback()?;
    Ok(Values::default().mask("match_any", callback.match_any))
}

fn match_all_without_any(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let session = stage.session()?;
    let enabling = Enabling { level: 5, all: 2, ..Enabling::default() };
    stage.host.enable(session, provider(), &enabling)?;
    let callback = stage.last_callback()?;
    for keyword in [1, 3] {
        stage.write(Write { keyword, ..Write::default() })?;
    }
    let recorded = stage.stop(session)?;
    let delivered = |keyword| {
        let mut events = recorded.events.iter();
        events.any(|event| event.descriptor.keyword == keyword)
    };
    Ok(Values::default()
        .mask("match_all", callback.match_all)
        .with("delivered_without_bit", delivered(1))
        .with("delivered_with_bit", delivered(3)))
}

fn direct_and_group(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    stage.need_traits(0, &traits("Member", Some(GROUP), None))?;
    let session = stage.session()?;
    stage.enable(session, Source::Group(GROUP), 5)?;
    stage.enable(session, provider(), 2)?;
    let callback = stage.last_callback()?;
    stage.write(Write::default())?;
    let recorded = stage.stop(session)?;
    Ok(Values::default().with("level", callback.level).with("recorded", recorded.events.len()))
}

fn in_traits(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    let session = stage.session()?;
    stage.enable(session, Source::Group(GROUP), 5)?;
    let registered = stage.register(0)?;
    stage.need_traits(0, &traits("Member", Some(GROUP), None))?;
    let callback = stage.last_callback()?;
    Ok(Values::default()
        .with("at_registration", registered.numbers[1])
        .with("during_call", callback.phase == phase::SETTING)
        .with("source", source_word(&callback)))
}

fn capture_state(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let idle = stage.session()?;
    let error = code_of(stage.host.capture_state(idle, provider()))?;
    let without = stage.callbacks()?;
    let mut values = Values::default()
        .with("error_if_not_enabled", error)
        .with("callbacks_if_not_enabled", without.len());
    if let Some(callback) = without.last() {
        values = described(values, "not_enabled_", callback);
    }
    let session = stage.session()?;
    let enabling = Enabling { level: 4, any: 3, all: 1, ..Enabling::default() };
    stage.host.enable(session, provider(), &enabling)?;
    stage.host.capture_state(session, provider())?;
    let callback = stage.last_callback()?;
    Ok(described(values, "enabled_", &callback))
}

fn at_unregistration(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    stage.enabled(4)?;
    let reply = stage.unregister(0)?;
    let mut values = Values::default().with("callbacks", reply.numbers[0]);
    if reply.numbers[0] > 0 {
        let callback = stage.last_callback()?;
        values = values
            .with("code", callback.code)
            .with("source", source_word(&callback))
            .with("before_return", callback.phase == phase::UNREGISTERING);
    }
    Ok(values.status("status", reply.statuses[0]))
}

fn source_id(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let enabling = Enabling { level: 4, source: Some(SOURCE_ID), ..Enabling::default() };
    let session = stage.session()?;
    stage.host.enable(session, provider(), &enabling)?;
    let enable = source_word(&stage.last_callback()?);
    stage.host.disable(session, provider(), Some(SOURCE_ID))?;
    let disable = source_word(&stage.last_callback()?);
    stage.host.enable(session, provider(), &enabling)?;
    stage.stop(session)?;
    let stop = source_word(&stage.last_callback()?);
    Ok(Values::default().with("enable", enable).with("disable", disable).with("stop", stop))
}

fn filter(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    let mut values = Values::default();
    for (name, size) in [("one", 8), ("two", 16)] {
        let session = stage.session()?;
        let enabling = Enabling { level: 4, filter: Some(vec![0x5A; size]), ..Enabling::default() };
        stage.host.enable(session, provider(), &enabling)?;
        let callback = stage.last_callback()?;
        values = values
            .mask(&format!("{name}_type"), u64::from(callback.filter_type))
            .with(&format!("{name}_size"), callback.filter_size);
    }
    Ok(values)
}

fn irql(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    let session = stage.enabled(4)?;
    stage.register(0)?;
    stage.enable(session, provider(), 5)?;
    stage.host.capture_state(session, provider())?;
    stage.host.disable(session, provider(), None)?;
    stage.enable(session, provider(), 5)?;
    stage.unregister(0)?;
    let callbacks = stage.callbacks()?;
    let irqls = || callbacks.iter().map(|callback| callback.irql);
    Ok(Values::default()
        .with("lowest", irqls().min().unwrap_or(0))
        .with("highest", irqls().max().unwrap_or(0)))
}

fn second_registration(stage: &mut Stage<'_>) -> Result<Values, HostError> {
    stage.register(0)?;
    stage.register(1)?;
    let session = stage.enabled(5)?;
    let callbacks = stage.callbacks()?;
    let of = |slot| callbacks.iter().filter(|callback| callback.slot == slot).count();
    let (first, second) = (of(0), of(1));
    stage.need_traits(0, &traits("First", None, None))?;
    let status = stage.set_traits(1, &traits("Second", Some(GROUP), None))?;
    stage.unregister(0)?;
    stage.write(Write { slot: 1, ..Write::default() })?;
    let recorded = stage.stop(session)?;
    Ok(Values::default()
        .with("callbacks_of_first", first)
        .with("callbacks_of_second", second)
        .status("traits_of_second", status)
        .with("events_after_first_ended", recorded.events.len()))
}
