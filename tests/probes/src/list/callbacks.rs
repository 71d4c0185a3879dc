//! Probes about enable callbacks.

use etw_probes_interface::{Callback, phase};
use etw_scenarios::{HostError, Source};

use crate::{
    answers::Values,
    host::Enabling,
    probe::{Confidence, Probe},
    stage::{GROUP, SOURCE_ID, Stage, Write, code_of, provider, traits},
};

pub const PROBES: &[Probe] = &[
    Probe {
        id: "callback-at-registration",
        text: "What does a provider receive when it registers, if it is already enabled?",
        about: &["O4", "ETW-2.6", "ETW-2.7"],
        source: "Microsoft Learn, EnableTraceEx2",
        confidence: Confidence::Low,
        documented: "a notification with source GUID_NULL, perhaps before EtwRegister returns; pages \
                     differ about filter data",
        assumed: "one callback before EtwRegister returns, with filter data",
        varies: false,
        risky: false,
        stage: at_registration,
    },
    Probe {
        id: "callback-two-sessions",
        text: "What does a provider receive if two sessions enable it, and as they disable it?",
        about: &["ETW-3.2.1", "ETW-3.2.3", "ETW-3.4.6"],
        source: "Microsoft Learn, EnableCallback",
        confidence: Confidence::High,
        documented: "the highest level, the OR of match-any and the AND of match-all; what remains \
                     as one disables",
        assumed: "as documented",
        varies: false,
        risky: false,
        stage: two_sessions,
    },
    Probe {
        id: "level-zero",
        text: "Which level does a provider receive if a session enables level 0, alone and beside a \
               session with level 3?",
        about: &["O1", "ETW-3.3.3"],
        source: "evntprov.h; Microsoft Learn, EnableTrace",
        confidence: Confidence::Low,
        documented: "0 filters no event by level; what is delivered is not documented",
        assumed: "255 in both",
        varies: false,
        risky: false,
        stage: level_zero,
    },
    Probe {
        id: "match-any-zero",
        text: "Which match-any mask does a provider receive if a session passes match-any 0?",
        about: &["ETW-3.4.2", "ETW-3.4.3"],
        source: "Microsoft Learn, EnableTraceEx2",
        confidence: Confidence::Medium,
        documented: "0 counts as all ones",
        assumed: "all ones",
        varies: false,
        risky: false,
        stage: match_any_zero,
    },
    Probe {
        id: "match-all-without-any",
        text: "Does match-all apply if match-any is 0?",
        about: &["O2", "ETW-3.4.4"],
        source: "Microsoft Learn, EnableTraceEx2, two versions",
        confidence: Confidence::Low,
        documented: "an older page says no; by the current page, yes",
        assumed: "yes",
        varies: false,
        risky: false,
        stage: match_all_without_any,
    },
    Probe {
        id: "direct-and-group",
        text: "Which level applies to a provider that one session enables directly at level 2 and \
               through its group at level 5?",
        about: &["O9", "ETW-5.4"],
        source: "none",
        confidence: Confidence::Low,
        documented: "not documented",
        assumed: "level 5, and one copy of each event",
        varies: false,
        risky: false,
        stage: direct_and_group,
    },
    Probe {
        id: "callback-in-traits",
        text: "When does a provider that joins an enabled group receive the notification?",
        about: &["ETW-5.6"],
        source: "none",
        confidence: Confidence::Medium,
        documented: "not documented",
        assumed: "before EtwSetInformation returns",
        varies: false,
        risky: false,
        stage: in_traits,
    },
    Probe {
        id: "callback-capture-state",
        text: "What does a provider receive for a request to capture state, if it is enabled, and if it is not?",
        about: &["ETW-3.2.4"],
        source: "evntprov.h; Microsoft Learn, EnableCallback",
        confidence: Confidence::Medium,
        documented: "code 2 with the composite values; a provider that is not enabled is not \
                     mentioned",
        assumed: "code 2 in both, with zeros if it is not enabled",
        varies: false,
        risky: false,
        stage: capture_state,
    },
    Probe {
        id: "callback-at-unregistration",
        text: "Does EtwUnregister notify a provider that is enabled?",
        about: &["O5", "ETW-2.16"],
        source: "Microsoft Learn, EnableCallback",
        confidence: Confidence::Low,
        documented: "a disable notification with GUID_NULL may come when a provider is stopping",
        assumed: "no",
        varies: false,
        risky: false,
        stage: at_unregistration,
    },
    Probe {
        id: "callback-source-id",
        text: "Which source id does a provider receive: at an enable and a disable with an id, and as \
               the session stops?",
        about: &["ETW-3.2.7"],
        source: "Microsoft Learn, EnableCallback",
        confidence: Confidence::Medium,
        documented: "the id of ENABLE_TRACE_PARAMETERS; GUID_NULL if there is none",
        assumed: "as documented; GUID_NULL as the session stops",
        varies: false,
        risky: false,
        stage: source_id,
    },
    Probe {
        id: "callback-filter",
        text: "Which type and size does the filter data of one session (8 bytes), and of two (8 \
               and 16 bytes), have?",
        about: &["ETW-3.5.2", "ETW-3.5.3"],
        source: "Microsoft Learn, EnableCallback, EVENT_FILTER_HEADER",
        confidence: Confidence::High,
        documented: "a chain of blobs, each of 24 bytes and its data; padding between them is not \
                     documented",
        assumed: "0x80000000, and the size of the whole chain",
        varies: false,
        risky: false,
        stage: filter,
    },
    Probe {
        id: "callback-irql",
        text: "At which IRQL do enable callbacks run?",
        about: &["ETW-1.2.11"],
        source: "wdm.h",
        confidence: Confidence::High,
        documented: "PASSIVE_LEVEL",
        assumed: "PASSIVE_LEVEL",
        varies: false,
        risky: false,
        stage: irql,
    },
    Probe {
        id: "second-registration",
        text: "What does a second registration of a GUID see of a session, and can it have its \
               own traits?",
        about: &["ETW-2.5", "ETW-5.3"],
        source: "Microsoft Learn, \"Provider traits\"",
        confidence: Confidence::High,
        documented: "each registration has its own callback and traits, and sessions enable all \
                     together",
        assumed: "as documented",
        varies: false,
        risky: false,
        stage: second_registration,
    },
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
