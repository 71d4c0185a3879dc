//! Scenarios about registration, unregistration and provider traits.

use etw_sample_interface::{PROVIDER_GROUP, PROVIDER_NAME, keyword};

use super::scenario::{INFORMATION, Scenario, VERBOSE, names, provider, up_to};
use crate::{
    host::Filter,
    stage::{Failure, Stage, expect_equal, expect_that},
};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "enabled-before-it-is-there",
        proves: "a session that enables the provider before the driver is loaded records its first \
                 event",
        requirements: &["R-E9", "R-E2"],
        run: enabled_before,
    },
    Scenario {
        name: "unloaded-while-enabled",
        proves: "a driver can be unloaded while a session enables its provider, and is traced again \
                 after it is reloaded",
        requirements: &["R-C2", "R-E9"],
        run: unloaded_while_enabled,
    },
    Scenario {
        name: "session-that-nobody-enables-for",
        proves: "a session that enables no provider records no events",
        requirements: &["R-O9"],
        run: nothing_asked,
    },
    Scenario {
        name: "traits-in-every-event",
        proves: "every event, manifest-based or TraceLogging, carries the provider's name, group and \
                 custom traits",
        requirements: &["R-T5", "R-T6", "R-T7", "R-D2"],
        run: traits,
    },
    Scenario {
        name: "time-and-processes",
        proves: "events have rising timestamps and the id of the process that caused them",
        requirements: &["R-O1"],
        run: time,
    },
];

/// The type of the custom trait whose value the declaration contains.
const FIXED_TRAIT: u8 = 128;
/// The type of the custom trait whose value is the name of the driver's service.
const SERVICE_TRAIT: u8 = 129;

fn lifecycle() -> Filter {
    Filter { any: keyword::LIFECYCLE, ..up_to(VERBOSE) }
}

const LIFE: [&str; 3] = ["DriverLoaded", "DeviceAdded", "DriverUnloaded"];

fn enabled_before(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let session = stage.start("Before")?;
    stage.enable(session, provider(), &lifecycle())?;
    stage.load_driver()?;
    let recording = stage.stop(session)?;
    expect_equal("the events", &LIFE[..2].to_vec(), &names(&recording))
}

fn unloaded_while_enabled(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let session = stage.start("Twice")?;
    stage.enable(session, provider(), &lifecycle())?;
    for _ in 0..2 {
        stage.load_driver()?;
        stage.unload_driver()?;
    }
    let recording = stage.stop(session)?;
    expect_equal("the events", &[LIFE, LIFE].concat(), &names(&recording))
}

fn nothing_asked(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let session = stage.start("Deaf")?;
    stage.load_driver()?;
    let file = stage.open()?;
    stage.write(file, b"unheard")?;
    stage.close(file)?;
    stage.unload_driver()?;
    let recording = stage.stop(session)?;
    expect_equal("the events", &Vec::<&str>::new(), &names(&recording))
}

fn traits(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let session = stage.start("Traits")?;
    stage.enable(session, provider(), &up_to(INFORMATION))?;
    stage.load_driver()?;
    let file = stage.open()?;
    stage.write(file, b"x")?;
    let recording = stage.stop(session)?;
    let names = names(&recording);
    expect_that(
        "the events",
        "some manifest-based and some TraceLogging events",
        &names,
        names.contains(&"DriverLoaded") && names.contains(&"Write"),
    )?;
    for seen in &recording.events {
        let of = seen.event.event_name.as_deref().unwrap_or_default();
        let found = seen.traits.clone().unwrap_or_default();
        expect_equal(format!("the provider name in {of}"), &PROVIDER_NAME, &found.name.as_str())?;
        expect_equal(
            format!("the provider group in {of}"),
            &PROVIDER_GROUP.parse().ok(),
            &found.group,
        )?;
        expect_equal(
            format!("the fixed trait in {of}"),
            &Some(&(FIXED_TRAIT, b"sample".to_vec())),
            &found.others.first(),
        )?;
        let service = found.others.iter().find(|(kind, _)| *kind == SERVICE_TRAIT);
        expect_that(
            "the service's name",
            "a trait of type 129 with UTF-16 text",
            &service,
            service.is_some_and(|(_, name)| !name.is_empty() && name.len().is_multiple_of(2)),
        )?;
    }
    Ok(())
}

fn time(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let session = stage.start("Time")?;
    stage.enable(session, provider(), &up_to(INFORMATION))?;
    for _ in 0..5 {
        stage.write(file, b"tick")?;
    }
    let recording = stage.stop(session)?;
    expect_equal("the events", &vec!["Write"; 5], &names(&recording))?;
    let processes: Vec<u32> = recording.events.iter().map(|seen| seen.event.process_id).collect();
    expect_that(
        "the process ids",
        "the same for all events, and not the system process's",
        &processes,
        processes.iter().all(|process| *process == processes[0] && *process > 4),
    )?;
    let times: Vec<i64> = recording.events.iter().map(|seen| seen.event.timestamp).collect();
    expect_that("the timestamps", "rising", &times, times.is_sorted())
}
