//! Scenarios about activities, and about events at raised IRQL.

use std::time::Duration;

use etl_file::internals::spans;
use etl_file::{Decoded, Guid};
use etw_sample_interface::{
    IOCTL_ECHO, IOCTL_ECHO_IN_DPC, IOCTL_SET_TIMER, IOCTL_WAIT, IOCTL_WAKE, TIMER_PERIOD_MS,
    TimerControl, keyword, traced,
};
use zerocopy::IntoBytes;

use super::{
    scenario::{START, STOP, SUCCESS, Scenario, VERBOSE, names, provider, up_to},
    sessions::statistics,
};
use crate::{
    client,
    host::{File, Filter, Recording, Session, Source},
    stage::{Failure, Stage, expect_equal, expect_that},
};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "activity-of-the-sender",
        proves: "each request has its own activity, related to the activity of the sender",
        requirements: &["R-O6", "R-O7", "R-O4"],
        run: of_the_sender,
    },
    Scenario {
        name: "activity-across-threads",
        proves: "requests that are pending at the same time, and that other requests complete, keep \
                 their own activities",
        requirements: &["R-O6"],
        run: across_threads,
    },
    Scenario {
        name: "one-activity-with-the-client",
        proves: "an activity runs from the client's call through the driver's DPC and back: the events \
                 of the client, which runs in user mode, and of the driver have its id",
        requirements: &["R-O6", "R-O7"],
        run: one_with_the_client,
    },
    Scenario {
        name: "traced-requests",
        proves: "the driver returns the activity id of a traced request in front of its output, and \
                 refuses a traced request without one",
        requirements: &["R-O6"],
        run: traced_requests,
    },
    Scenario {
        name: "events-at-dispatch-level",
        proves: "a DPC's event has the request's activity; a timer's events have no activity",
        requirements: &["R-C2", "R-O7", "R-E8"],
        run: at_dispatch_level,
    },
];

/// The sender's activity.
const CLIENT: &str = "9d3a6c11-7e0b-4d9e-8b52-6c1f0f6a2e01";

fn requests(stage: &mut Stage<'_>) -> Result<Session, Failure> {
    let session = stage.start("Activities")?;
    let filter = Filter { any: keyword::REQUEST | keyword::TIMER, ..up_to(VERBOSE) };
    stage.enable(session, provider(), &filter)?;
    Ok(session)
}

/// Returns the events of device control requests.
fn controls(recording: &Recording) -> Vec<&Decoded> {
    recording
        .events
        .iter()
        .map(|seen| &seen.event)
        .filter(|event| event.event_name.as_deref() == Some("DeviceControl"))
        .collect()
}

fn of_the_sender(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let session = requests(stage)?;
    let client: Option<Guid> = CLIENT.parse().ok();
    stage.set_activity(client)?;
    stage.control(file, IOCTL_ECHO, b"with", 4)?;
    stage.set_activity(None)?;
    stage.control(file, IOCTL_ECHO, b"none", 4)?;
    let recording = stage.stop(session)?;
    let events = controls(&recording);
    let opcodes: Vec<u8> = events.iter().map(|event| event.descriptor.opcode).collect();
    expect_equal("the opcodes", &vec![START, STOP, START, STOP], &opcodes)?;
    let related: Vec<_> = events.iter().map(|event| event.related_activity).collect();
    expect_equal("the related activities", &vec![client, None, None, None], &related)?;
    let activities: Vec<_> = events.iter().map(|event| event.activity).collect();
    expect_that(
        "the activities",
        "two different ones, none of them null or the sender's",
        &activities,
        activities[0] == activities[1]
            && activities[2] == activities[3]
            && activities[0] != activities[2]
            && activities
                .iter()
                .all(|activity| *activity != Guid::default() && Some(*activity) != client),
    )
}

fn one_with_the_client(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let session = requests(stage)?;
    stage.enable(session, Source::Provider(client()), &up_to(VERBOSE))?;
    let (answer, activity) = stage.traced_control(file, IOCTL_ECHO_IN_DPC, b"deferred", 8)?;
    expect_equal("the echo", &b"deferred".to_vec(), &answer.output)?;
    // A request that the same client sends without an activity does not belong to this one.
    stage.control(file, IOCTL_ECHO, b"other", 5)?;
    let recording = stage.stop(session)?;
    let all: Vec<Decoded> = recording.events.iter().map(|seen| seen.event.clone()).collect();
    let events: Vec<&Decoded> = all.iter().filter(|event| event.activity == activity).collect();
    let path: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event.provider == client(),
                event.event_name.as_deref().unwrap_or_default(),
                event.descriptor.opcode,
            )
        })
        .collect();
    expect_equal(
        "the events of the activity (of the client, name, opcode)",
        &vec![
            (true, "Request", START),
            (false, "DeviceControl", START),
            (false, "DpcRan", 0),
            (false, "DeviceControl", STOP),
            (true, "Request", STOP),
        ],
        &path,
    )?;
    // In a timeline, the driver's span is nested in the client's span.
    let found: Vec<_> = spans::spans(&all)
        .into_iter()
        .filter(|span| all[span.start].activity == activity)
        .map(|span| all[span.start].provider)
        .collect();
    expect_equal(
        "the providers of the activity's spans, from the outer to the inner one",
        &vec![client(), crate::provider()],
        &found,
    )?;
    expect_equal("all events of requests", &(events.len() + 2), &recording.events.len())
}

fn traced_requests(stage: &mut Stage<'_>) -> Result<(), Failure> {
    const TOO_SMALL: u32 = 0xC000_0023;
    stage.load_driver()?;
    let file = stage.open()?;
    let session = requests(stage)?;
    let id: Guid = CLIENT.parse().unwrap_or_default();
    let input = [&id.to_bytes()[..], b"text"].concat();
    let answer = stage.control(file, traced(IOCTL_ECHO), &input, input.len())?;
    expect_equal("the output", &input, &answer.output)?;
    // The requests have no room for the output, only half an id, and an id without a string.
    for (length, room) in [(20, 19), (8, 20), (16, 20)] {
        let answer = stage.control(file, traced(IOCTL_ECHO), &input[..length], room)?;
        expect_equal("the status", &TOO_SMALL, &answer.status)?;
    }
    let answer = stage.control(file, traced(IOCTL_WAKE), &input, 0)?;
    expect_equal("the status of IOCTL_WAKE", &0xC000_0225, &answer.status)?;
    let recording = stage.stop(session)?;
    let events = controls(&recording);
    let ends: Vec<(u8, bool)> =
        events.iter().map(|event| (event.descriptor.opcode, event.activity == id)).collect();
    let request = |is_sender| [(START, is_sender), (STOP, is_sender)];
    let expected = [true, true, false, true, true].map(request).concat();
    expect_equal("the events (opcode, of the sender)", &expected, &ends)
}

fn across_threads(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let (patient, other) = (stage.open()?, stage.open()?);
    let session = requests(stage)?;
    let first = stage.start_control(patient, IOCTL_WAIT, &[], 8)?;
    let second = stage.start_control(patient, IOCTL_WAIT, &[], 8)?;
    for (request, number) in [(first, 1_u64), (second, 2)] {
        let answer = stage.control(other, IOCTL_WAKE, &[], 0)?;
        expect_equal("the status of IOCTL_WAKE", &SUCCESS, &answer.status)?;
        let woken = stage.finish(request)?;
        expect_equal("the status of IOCTL_WAIT", &SUCCESS, &woken.status)?;
        expect_equal("the output of IOCTL_WAIT", &number.to_le_bytes().to_vec(), &woken.output)?;
    }
    let recording = stage.stop(session)?;
    let events: Vec<Decoded> = controls(&recording).into_iter().cloned().collect();
    let found = spans::spans(&events);
    expect_equal("activities with a start and a stop", &4, &found.len())?;
    let starts: Vec<u8> = events.iter().take(2).map(|event| event.descriptor.opcode).collect();
    expect_equal("the opcodes of the first two events", &vec![START; 2], &starts)?;
    let stops = |activity| {
        events
            .iter()
            .filter(|event| event.activity == activity && event.descriptor.opcode == STOP)
            .count()
    };
    expect_equal(
        "stop events of the first and of the second activity",
        &(1, 1),
        &(stops(events[0].activity), stops(events[1].activity)),
    )
}

/// The number of timer ticks for which a scenario waits.
const TICKS: u64 = 3;

/// Waits until the timer has ticked. The period is a lower bound: Windows rounds it up to the
/// system's tick, and a busy machine takes longer.
fn wait_for_ticks(stage: &mut Stage<'_>, file: File) -> Result<(), Failure> {
    const MAX_PERIODS: u32 = 500;
    for _ in 0..MAX_PERIODS {
        stage.pass(Duration::from_millis(u64::from(TIMER_PERIOD_MS)))?;
        if statistics(stage, file)?.timer_ticks >= TICKS {
            return Ok(());
        }
    }
    let ticks = statistics(stage, file)?.timer_ticks;
    expect_that(
        "timer ticks",
        &format!("{TICKS} or more within {MAX_PERIODS} periods"),
        &ticks,
        ticks >= TICKS,
    )
}

fn at_dispatch_level(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let session = requests(stage)?;
    stage.set_activity(CLIENT.parse().ok())?;
    let answer = stage.control(file, IOCTL_ECHO_IN_DPC, b"deferred", 8)?;
    expect_equal("the echo", &b"deferred".to_vec(), &answer.output)?;
    let timer = |run| TimerControl { run };
    stage.control(file, IOCTL_SET_TIMER, timer(1).as_bytes(), 0)?;
    wait_for_ticks(stage, file)?;
    stage.control(file, IOCTL_SET_TIMER, timer(0).as_bytes(), 0)?;
    stage.set_activity(None)?;
    let recording = stage.stop(session)?;
    expect_equal(
        "the first events",
        &vec!["DeviceControl", "DpcRan", "DeviceControl"],
        &names(&recording)[..3.min(recording.events.len())].to_vec(),
    )?;
    let activity = |index: usize| recording.events[index].event.activity;
    expect_equal("the DPC's activity", &activity(0), &activity(1))?;
    let ticks: Vec<&Decoded> = recording
        .events
        .iter()
        .map(|seen| &seen.event)
        .filter(|event| event.event_name.as_deref() == Some("TimerTicked"))
        .collect();
    expect_that(
        "timer ticks",
        &format!("{TICKS} or more"),
        &ticks.len(),
        ticks.len() as u64 >= TICKS,
    )?;
    for tick in ticks {
        expect_equal("a tick's activity", &Guid::default(), &tick.activity)?;
    }
    Ok(())
}
