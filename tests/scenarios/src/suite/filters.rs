//! Scenarios about the filters of sessions.

use etw_sample_interface::{IOCTL_SIMULATE_READS, Reads, keyword};
use zerocopy::IntoBytes;

use super::scenario::{
    INFORMATION, SUCCESS, Scenario, VERBOSE, WARNING, count, names, provider, up_to,
};
use crate::{
    host::{Filter, Ids, Recording},
    stage::{Failure, Stage, expect_equal, expect_that},
};

/// A control code that the driver does not support.
const UNKNOWN_IOCTL: u32 = 0x0022_2FFC;

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "levels",
        proves: "a session records the events up to its level; level 0 records all",
        requirements: &["R-O3", "R-O10", "R-E8"],
        run: levels,
    },
    Scenario {
        name: "keywords",
        proves: "a session records the events that have any of its keywords; 0 records all",
        requirements: &["R-O3", "R-O10", "R-K1"],
        run: keywords,
    },
    Scenario {
        name: "local-and-remote-reads",
        proves: "any=READ records all reads; any=READ with all=READ|LOCAL records only local reads",
        requirements: &["R-K3", "R-E8"],
        run: local_and_remote_reads,
    },
    Scenario {
        name: "event-ids",
        proves: "an event id filter passes only the given ids, or only the others",
        requirements: &["R-O10", "R-O5"],
        run: event_ids,
    },
];

/// Loads the driver, sends requests of several kinds, and unloads the driver.
fn whole_life(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    stage.write(file, b"some bytes")?;
    stage.read(file, 4)?;
    stage.control(file, UNKNOWN_IOCTL, &[], 0)?;
    stage.close(file)?;
    stage.unload_driver()
}

/// Returns an event's level, its keyword, and a string with its name, opcode and fields. They are
/// the same in every session.
fn key(recording: &Recording, index: usize) -> (u8, u64, String) {
    let seen = &recording.events[index];
    let fields: Vec<String> =
        seen.event.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let descriptor = seen.event.descriptor;
    let name = seen.event.event_name.as_deref().unwrap_or_default();
    (descriptor.level, descriptor.keyword, format!("{name} {} {fields:?}", descriptor.opcode))
}

fn keys(recording: &Recording) -> Vec<(u8, u64, String)> {
    (0..recording.events.len()).map(|index| key(recording, index)).collect()
}

fn levels(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let mut sessions = Vec::new();
    for level in [0, 2, WARNING, INFORMATION, VERBOSE, 255] {
        let session = stage.start(&format!("Level{level}"))?;
        stage.enable(session, provider(), &up_to(level))?;
        sessions.push((level, session));
    }
    whole_life(stage)?;
    let mut everything = Vec::new();
    for (level, session) in sessions {
        let recording = stage.stop(session)?;
        expect_equal("events lost", &0, &recording.lost)?;
        if level == 0 {
            everything = keys(&recording);
            let of = |level| everything.iter().filter(|key| key.0 == level).count();
            let found = (of(WARNING), of(INFORMATION), of(VERBOSE));
            expect_that(
                "warnings, information and verbose events",
                "some of each",
                &found,
                found.0 == 1 && found.1 > 4 && found.2 > 2,
            )?;
            continue;
        }
        let mut expected = everything.clone();
        expected.retain(|key| key.0 <= level);
        expect_equal(
            format!("events of the session with level {level}"),
            &expected,
            &keys(&recording),
        )?;
    }
    Ok(())
}

fn keywords(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let masks = [
        0,
        u64::MAX,
        keyword::REQUEST,
        keyword::LIFECYCLE,
        keyword::POWER | keyword::LIFECYCLE,
        keyword::TIMER,
        1 << 40,
    ];
    let mut sessions = Vec::new();
    for any in masks {
        let session = stage.start(&format!("Keywords{any:x}"))?;
        let filter = Filter { any, ..up_to(VERBOSE) };
        stage.enable(session, provider(), &filter)?;
        sessions.push((any, session));
    }
    whole_life(stage)?;
    let mut everything = Vec::new();
    for (any, session) in sessions {
        let recording = stage.stop(session)?;
        if any == 0 {
            everything = keys(&recording);
            expect_that(
                "events of the session without keywords",
                "requests, power and lifecycle",
                &everything,
                [keyword::REQUEST, keyword::POWER, keyword::LIFECYCLE]
                    .into_iter()
                    .all(|wanted| everything.iter().any(|key| key.1 & wanted != 0)),
            )?;
            continue;
        }
        let mut expected = everything.clone();
        expected.retain(|key| key.1 & any != 0);
        expect_equal(
            format!("events of the session with keywords 0x{any:x}"),
            &expected,
            &keys(&recording),
        )?;
    }
    Ok(())
}

fn local_and_remote_reads(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let (read, local, remote) = (keyword::READ, keyword::LOCAL, keyword::REMOTE);
    let cases = [
        ("all reads", read, 0, 3, 2),
        ("local reads", read, read | local, 3, 0),
        ("remote reads", read, read | remote, 0, 2),
        ("neither", read, local | remote, 0, 0),
        ("by local keyword", local, 0, 3, 0),
    ];
    let mut sessions = Vec::new();
    for (name, any, all, ..) in cases {
        let session = stage.start(name)?;
        let filter = Filter { any, all, ..up_to(INFORMATION) };
        stage.enable(session, provider(), &filter)?;
        sessions.push(session);
    }
    let reads = Reads { local: 3, remote: 2 };
    let answer = stage.control(file, IOCTL_SIMULATE_READS, reads.as_bytes(), 0)?;
    expect_equal("the status of IOCTL_SIMULATE_READS", &SUCCESS, &answer.status)?;
    for ((name, _, _, locals, remotes), session) in cases.into_iter().zip(sessions) {
        let recording = stage.stop(session)?;
        expect_equal(
            format!("local and remote reads of the session \"{name}\""),
            &(locals, remotes),
            &(count(&recording, "LocalRead"), count(&recording, "RemoteRead")),
        )?;
        expect_equal(
            format!("events of the session \"{name}\""),
            &(locals + remotes),
            &recording.events.len(),
        )?;
    }
    Ok(())
}

fn event_ids(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let chosen = [1, 4];
    let only = stage.start("Only")?;
    let filter =
        |ids| Filter { any: keyword::LIFECYCLE | keyword::POWER, ids: Some(ids), ..up_to(VERBOSE) };
    stage.enable(only, provider(), &filter(Ids::Only(chosen.to_vec())))?;
    let without = stage.start("Without")?;
    stage.enable(without, provider(), &filter(Ids::Without(chosen.to_vec())))?;
    whole_life(stage)?;
    let only = stage.stop(only)?;
    expect_equal(
        "events of the session with ids 1 and 4",
        &vec!["DriverLoaded", "DeviceAdded"],
        &names(&only),
    )?;
    let without = stage.stop(without)?;
    expect_equal(
        "events of the session with all other ids",
        &vec!["D0Entry", "D0Exit", "DriverUnloaded"],
        &names(&without),
    )
}
