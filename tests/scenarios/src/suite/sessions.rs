//! Scenarios about several concurrent sessions and the combined enable info that the provider
//! receives.

use etw_sample_interface::{
    Burst, IOCTL_BURST, IOCTL_GET_STATISTICS, NotificationRecord, Registration, Statistics,
    keyword, outcome,
};
use zerocopy::{FromBytes, IntoBytes};

use super::scenario::{
    INFORMATION, SUCCESS, Scenario, VERBOSE, WARNING, count, names, provider, up_to,
};
use crate::{
    host::{BufferSpace, File, Filter},
    stage::{Failure, Stage, expect_equal, expect_that},
};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "composite-of-two-sessions",
        proves: "the provider receives the highest level, the union of the match-any masks and the \
                 intersection of the match-all masks, and each session still records only the \
                 events that pass its own filter",
        requirements: &["R-E4", "R-E6", "R-O10"],
        run: composite,
    },
    Scenario {
        name: "disable-by-one-of-two",
        proves: "when one of two sessions disables the provider, only the filter of the other remains",
        requirements: &["R-E3", "R-E4"],
        run: disable_by_one,
    },
    Scenario {
        name: "eight-sessions",
        proves: "eight sessions can enable a provider and record the same events; the ninth fails \
                 with error 1450",
        requirements: &["R-O8"],
        run: eight_sessions,
    },
    Scenario {
        name: "capture-state",
        proves: "each capture-state request makes the provider write its state once",
        requirements: &["R-E1", "R-E5"],
        run: capture_state,
    },
    Scenario {
        name: "what-etw-told-the-driver",
        proves: "the driver reports that ETW refused none of the provider's settings, and the \
                 values of the first notification",
        requirements: &["R-E1", "R-E6"],
        run: told,
    },
    Scenario {
        name: "losses-are-counted",
        proves: "each event that the driver wrote is recorded or counted as lost by the session; \
                 if the session's writer is paused, the provider counts the same losses",
        requirements: &["R-O11", "R-O13"],
        run: losses,
    },
];

/// `ERROR_NO_SYSTEM_RESOURCES`.
const NO_SYSTEM_RESOURCES: u32 = 1450;

/// Returns the driver's statistics (`IOCTL_GET_STATISTICS`).
pub fn statistics(stage: &mut Stage<'_>, file: File) -> Result<Statistics, Failure> {
    let answer = stage.control(file, IOCTL_GET_STATISTICS, &[], size_of::<Statistics>())?;
    expect_equal("the status of IOCTL_GET_STATISTICS", &SUCCESS, &answer.status)?;
    let found = Statistics::read_from_bytes(&answer.output);
    expect_that(
        "the length of the statistics",
        &format!("{} bytes", size_of::<Statistics>()),
        &answer.output.len(),
        found.is_ok(),
    )?;
    Ok(found.unwrap_or_default())
}

/// The enable state that the provider reports: enabled, level, match-any, match-all.
type EnableState = (u32, u32, u64, u64);

fn enable_state(stage: &mut Stage<'_>, file: File) -> Result<EnableState, Failure> {
    let found = statistics(stage, file)?;
    Ok((found.enabled, found.level, found.match_any, found.match_all))
}

fn composite(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    expect_equal("enable state before any session", &(0, 0, 0, 0), &enable_state(stage, file)?)?;
    let requests = stage.start("Requests")?;
    let filter = Filter {
        level: INFORMATION,
        any: keyword::REQUEST | keyword::READ,
        all: keyword::REQUEST,
        ids: None,
    };
    stage.enable(requests, provider(), &filter)?;
    let one = (1, u32::from(INFORMATION), keyword::REQUEST | keyword::READ, keyword::REQUEST);
    expect_equal("enable state with one session", &one, &enable_state(stage, file)?)?;
    let load = stage.start("Load")?;
    let filter = Filter { level: VERBOSE, any: keyword::LOAD, all: keyword::LOAD, ids: None };
    stage.enable(load, provider(), &filter)?;
    let both = (1, u32::from(VERBOSE), keyword::REQUEST | keyword::READ | keyword::LOAD, 0);
    expect_equal("enable state with two sessions", &both, &enable_state(stage, file)?)?;
    stage.write(file, b"x")?;
    burst(stage, file, 3)?;
    stage.disable(requests, provider())?;
    let other = (1, u32::from(VERBOSE), keyword::LOAD, keyword::LOAD);
    expect_equal("enable state with the other session", &other, &enable_state(stage, file)?)?;
    let load = stage.stop(load)?;
    expect_equal("enabled when both sessions have stopped", &0, &enable_state(stage, file)?.0)?;
    expect_equal("events of the session with the load keyword", &vec!["Burst"; 3], &names(&load))?;
    let requests = stage.stop(requests)?;
    expect_that(
        "events of the session with the request keywords",
        "one Write, and nothing verbose",
        &names(&requests),
        count(&requests, "Write") == 1
            && requests.events.iter().all(|seen| seen.event.descriptor.level <= INFORMATION),
    )
}

/// Makes the driver write `count` events.
fn burst(stage: &mut Stage<'_>, file: File, count: u32) -> Result<(), Failure> {
    let burst = Burst { count, sender: 7 };
    let answer = stage.control(file, IOCTL_BURST, burst.as_bytes(), 0)?;
    expect_equal("the status of IOCTL_BURST", &SUCCESS, &answer.status)
}

fn disable_by_one(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let first = stage.start("First")?;
    let second = stage.start("Second")?;
    stage.enable(first, provider(), &up_to(VERBOSE))?;
    stage.enable(second, provider(), &up_to(INFORMATION))?;
    stage.write(file, b"to both")?;
    let before = statistics(stage, file)?.notifications;
    stage.disable(first, provider())?;
    let after = statistics(stage, file)?;
    expect_equal(
        "notifications after the first session disables",
        &(before + 1),
        &after.notifications,
    )?;
    expect_equal(
        "enabled and level that remain",
        &(1, u32::from(INFORMATION)),
        &(after.enabled, after.level),
    )?;
    stage.write(file, b"to one")?;
    let first = stage.stop(first)?;
    let second = stage.stop(second)?;
    expect_equal(
        "number of `Write` events in the first and second sessions",
        &(1, 2),
        &(count(&first, "Write"), count(&second, "Write")),
    )?;
    expect_equal(
        "number of `WriteData` events in the first and second sessions",
        &(1, 0),
        &(count(&first, "WriteData"), count(&second, "WriteData")),
    )
}

fn eight_sessions(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let mut sessions = Vec::new();
    for number in 1..=8 {
        let session = stage.start(&format!("Of8Number{number}"))?;
        stage.enable(session, provider(), &up_to(INFORMATION))?;
        sessions.push(session);
    }
    let ninth = stage.start("Ninth")?;
    let refused = stage.try_enable(ninth, provider(), &up_to(INFORMATION));
    expect_equal(
        "the ninth session's error",
        &Some(NO_SYSTEM_RESOURCES),
        &refused.err().and_then(|error| error.code),
    )?;
    stage.write(file, b"to eight")?;
    let ninth = stage.stop(ninth)?;
    expect_equal("events of the ninth session", &0, &ninth.events.len())?;
    for session in sessions {
        let recording = stage.stop(session)?;
        expect_equal("events of each session", &vec!["Write"], &names(&recording))?;
    }
    Ok(())
}

fn capture_state(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let session = stage.start("State")?;
    stage.enable(session, provider(), &up_to(INFORMATION))?;
    stage.capture_state(session, provider())?;
    stage.capture_state(session, provider())?;
    let recording = stage.stop(session)?;
    expect_equal("the events", &vec!["State"; 2], &names(&recording))?;
    for seen in &recording.events {
        expect_equal("the opcode, which is DC start", &3, &seen.event.descriptor.opcode)?;
    }
    Ok(())
}

/// The control code of a notification that enables the provider.
const ENABLE: u32 = 1;
/// The control code of a notification that disables the provider.
const DISABLE: u32 = 0;

fn told(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let before = statistics(stage, file)?;
    expect_equal(
        "the outcome of the registration",
        &format!("{:x?}", Registration { outcome: outcome::COMPLETE, ..Registration::default() }),
        &format!("{:x?}", before.registration),
    )?;
    expect_equal("notifications before any session", &0, &before.notifications)?;
    let session = stage.start("Told")?;
    let filter =
        Filter { any: keyword::REQUEST | keyword::LOAD, all: keyword::REQUEST, ..up_to(WARNING) };
    stage.enable(session, provider(), &filter)?;
    stage.disable(session, provider())?;
    let after = statistics(stage, file)?;
    stage.stop(session)?;
    expect_equal("the notifications", &2, &after.notifications)?;
    let [first, second, rest @ ..] = &after.first_notifications;
    expect_equal(
        "the first notification: code, level, match-any, match-all",
        &(ENABLE, u32::from(WARNING), filter.any, filter.all),
        &(first.control_code, first.level, first.match_any, first.match_all),
    )?;
    expect_equal("the control code of the second notification", &DISABLE, &second.control_code)?;
    let recorded = [first, second].map(|one| (one.recorded, one.during_registration));
    expect_equal("both are recorded, and arrived after the registration", &[(1, 0); 2], &recorded)?;
    expect_that(
        "the records of notifications that did not arrive",
        "empty",
        &rest,
        rest.iter().all(|one| *one == NotificationRecord::default()),
    )
}

fn losses(stage: &mut Stage<'_>) -> Result<(), Failure> {
    const ASKED: u32 = 100_000;
    stage.load_driver()?;
    let file = stage.open()?;
    let scarce = stage.start_with("Scarce", BufferSpace::Minimal)?;
    let filter = Filter { any: keyword::LOAD, ..up_to(VERBOSE) };
    stage.enable(scarce, provider(), &filter)?;
    burst(stage, file, ASKED)?;
    let counted = statistics(stage, file)?;
    // A session at WARNING level records none of these events.
    let at_warning = stage.start("AtWarning")?;
    stage.enable(at_warning, provider(), &up_to(WARNING))?;
    let at_warning = stage.stop(at_warning)?;
    expect_equal("events of the session at WARNING level", &0, &at_warning.events.len())?;
    let recording = stage.stop(scarce)?;
    expect_equal(
        "the sum of recorded and lost events",
        &u64::from(ASKED),
        &(recording.events.len() as u64 + recording.lost),
    )?;
    if stage.counts_losses_exactly() {
        expect_that("events lost", "some", &recording.lost, recording.lost > 0)?;
        expect_equal(
            "the events that the provider could not write",
            &recording.lost,
            &counted.failed_without_memory,
        )?;
    }
    let mut last = None;
    for seen in &recording.events {
        let number = seen
            .event
            .fields
            .iter()
            .find(|(name, _)| &**name == "Number")
            .and_then(|(_, value)| value.to_string().parse::<u32>().ok());
        expect_that("the numbers of the events", "rising", &number, number > last)?;
        last = number;
    }
    Ok(())
}
