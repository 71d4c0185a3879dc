//! Several sessions at once, and what the provider is told of them.

use etw_sample_interface::{Burst, IOCTL_BURST, IOCTL_GET_STATISTICS, Statistics, keyword};
use zerocopy::{FromBytes, IntoBytes};

use super::scenario::{
    INFORMATION, SUCCESS, Scenario, VERBOSE, WARNING, count, names, provider, up_to,
};
use crate::{
    stage::{Failure, Stage, holds, same},
    world::{File, Filter, Room},
};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "composite-of-two-sessions",
        proves: "the provider is told the highest level, any of the sessions' any-keywords, and \
                 what all of them want all of; and each session's own filter still holds",
        requirements: &["R-E4", "R-E6", "R-O10"],
        run: composite,
    },
    Scenario {
        name: "disable-by-one-of-two",
        proves: "when one session disables the provider, the other goes on, with its filter alone",
        requirements: &["R-E3", "R-E4"],
        run: disable_by_one,
    },
    Scenario {
        name: "eight-sessions",
        proves: "eight sessions enable the provider and get the same; the ninth is refused with \
                 error 1450",
        requirements: &["R-O8"],
        run: eight_sessions,
    },
    Scenario {
        name: "capture-state",
        proves: "a session that asks gets the provider's state, each time once",
        requirements: &["R-E1", "R-E5"],
        run: capture_state,
    },
    Scenario {
        name: "losses-are-counted",
        proves: "what a session without room cannot take is counted by the session and by the \
                 provider, and nothing else is missing",
        requirements: &["R-O11", "R-O13"],
        run: losses,
    },
];

/// `ERROR_NO_SYSTEM_RESOURCES`.
const NO_SYSTEM_RESOURCES: u32 = 1450;

/// The provider's own statistics.
pub fn statistics(stage: &mut Stage<'_>, file: File) -> Result<Statistics, Failure> {
    let answer = stage.control(file, IOCTL_GET_STATISTICS, &[], size_of::<Statistics>())?;
    same("the status of the statistics", &SUCCESS, &answer.status)?;
    let found = Statistics::read_from_bytes(&answer.output);
    holds(
        "the statistics",
        "104 bytes",
        &answer.output.len(),
        found.is_ok(),
    )?;
    Ok(found.unwrap_or_default())
}

/// Enabled, level, match-any and match-all, as the provider knows them.
type Wanted = (u32, u32, u64, u64);

fn wanted(stage: &mut Stage<'_>, file: File) -> Result<Wanted, Failure> {
    let found = statistics(stage, file)?;
    Ok((found.enabled, found.level, found.match_any, found.match_all))
}

fn composite(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    same("before", &(0, 0, 0, 0), &wanted(stage, file)?)?;
    let requests = stage.start("Requests")?;
    let filter = Filter {
        level: INFORMATION,
        any: keyword::REQUEST | keyword::READ,
        all: keyword::REQUEST,
        ids: None,
    };
    stage.enable(requests, provider(), &filter)?;
    let one = (
        1,
        u32::from(INFORMATION),
        keyword::REQUEST | keyword::READ,
        keyword::REQUEST,
    );
    same("with one session", &one, &wanted(stage, file)?)?;
    let load = stage.start("Load")?;
    let filter = Filter {
        level: VERBOSE,
        any: keyword::LOAD,
        all: keyword::LOAD,
        ids: None,
    };
    stage.enable(load, provider(), &filter)?;
    let both = (
        1,
        u32::from(VERBOSE),
        keyword::REQUEST | keyword::READ | keyword::LOAD,
        0,
    );
    same("with two sessions", &both, &wanted(stage, file)?)?;
    stage.write(file, b"x")?;
    burst(stage, file, 3)?;
    stage.disable(requests, provider())?;
    let other = (1, u32::from(VERBOSE), keyword::LOAD, keyword::LOAD);
    same("with the other session", &other, &wanted(stage, file)?)?;
    let load = stage.stop(load)?;
    same("when both are gone", &0, &wanted(stage, file)?.0)?;
    same("of the load", &vec!["Burst"; 3], &names(&load))?;
    let requests = stage.stop(requests)?;
    holds(
        "of the requests",
        "one Write, and nothing verbose",
        &names(&requests),
        count(&requests, "Write") == 1
            && requests
                .events
                .iter()
                .all(|seen| seen.event.descriptor.level <= INFORMATION),
    )
}

/// Has the driver write events.
fn burst(stage: &mut Stage<'_>, file: File, count: u32) -> Result<(), Failure> {
    let burst = Burst { count, sender: 7 };
    let answer = stage.control(file, IOCTL_BURST, burst.as_bytes(), 0)?;
    same("the burst's status", &SUCCESS, &answer.status)
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
    same("notifications by it", &(before + 1), &after.notifications)?;
    same(
        "what remains",
        &(1, u32::from(INFORMATION)),
        &(after.enabled, after.level),
    )?;
    stage.write(file, b"to one")?;
    let first = stage.stop(first)?;
    let second = stage.stop(second)?;
    same(
        "writes that the first and the second session saw",
        &(1, 2),
        &(count(&first, "Write"), count(&second, "Write")),
    )?;
    same(
        "what was written, in detail, for the first and the second session",
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
    same(
        "the ninth session's error",
        &Some(NO_SYSTEM_RESOURCES),
        &refused.err().and_then(|error| error.code),
    )?;
    stage.write(file, b"to eight")?;
    let ninth = stage.stop(ninth)?;
    same("events of the ninth", &0, &ninth.events.len())?;
    for session in sessions {
        let recording = stage.stop(session)?;
        same("what each got", &vec!["Write"], &names(&recording))?;
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
    same("what it got", &vec!["State"; 2], &names(&recording))?;
    for seen in &recording.events {
        same("opcode DC start", &3, &seen.event.descriptor.opcode)?;
    }
    Ok(())
}

fn losses(stage: &mut Stage<'_>) -> Result<(), Failure> {
    const ASKED: u32 = 100_000;
    stage.load_driver()?;
    let file = stage.open()?;
    let scarce = stage.start_with("Scarce", Room::Scarce)?;
    let filter = Filter {
        any: keyword::LOAD,
        ..up_to(VERBOSE)
    };
    stage.enable(scarce, provider(), &filter)?;
    burst(stage, file, ASKED)?;
    let counted = statistics(stage, file)?;
    // A session at WARNING level is told nothing of all this.
    let aside = stage.start("Aside")?;
    stage.enable(aside, provider(), &up_to(WARNING))?;
    let aside = stage.stop(aside)?;
    same("events of a session aside", &0, &aside.events.len())?;
    let recording = stage.stop(scarce)?;
    holds("events lost", "some", &recording.lost, recording.lost > 0)?;
    same(
        "events recorded and lost",
        &u64::from(ASKED),
        &(recording.events.len() as u64 + recording.lost),
    )?;
    same(
        "losses as the provider counts them",
        &recording.lost,
        &counted.failed_without_memory,
    )?;
    let mut last = None;
    for seen in &recording.events {
        let number = seen
            .event
            .fields
            .iter()
            .find(|(name, _)| &**name == "Number")
            .and_then(|(_, value)| value.to_string().parse::<u32>().ok());
        holds("the numbers in order", "rising", &number, number > last)?;
        last = number;
    }
    Ok(())
}
