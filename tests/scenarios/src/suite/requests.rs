//! Scenarios about valid and invalid requests.

use etw_sample_interface::{
    Burst, IOCTL_BURST, IOCTL_ECHO, IOCTL_ECHO_IN_DPC, IOCTL_GET_STATISTICS, IOCTL_SET_TIMER,
    IOCTL_SIMULATE_READS, IOCTL_WAIT, IOCTL_WAKE, MAX_BURST, MAX_READS, Reads, Statistics,
};
use zerocopy::IntoBytes;

use super::scenario::{CANCELLED, INFORMATION, SUCCESS, Scenario, count, provider, up_to};
use crate::stage::{Failure, Stage, expect_equal};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "bad-requests",
        proves: "each invalid control code and size is rejected with the right status, and an event \
                 reports the code and the status",
        requirements: &["R-C6", "R-O1"],
        run: bad_requests,
    },
    Scenario {
        name: "good-requests",
        proves: "valid requests return the right bytes, and their events report the sizes",
        requirements: &["R-C6"],
        run: good_requests,
    },
    Scenario {
        name: "cancelled-requests",
        proves: "a pending request completes when it is canceled and when its file is closed",
        requirements: &["R-C6", "R-O6"],
        run: cancelled,
    },
];

const INVALID_PARAMETER: u32 = 0xC000_000D;
const INVALID_DEVICE_REQUEST: u32 = 0xC000_0010;
const BUFFER_TOO_SMALL: u32 = 0xC000_0023;
const INVALID_BUFFER_SIZE: u32 = 0xC000_0206;
const NOT_FOUND: u32 = 0xC000_0225;

/// A control code, its input, the size of its output buffer, and the expected status.
type Wrong = (u32, Vec<u8>, usize, u32);

fn wrong_requests() -> Vec<Wrong> {
    let burst = |count| Burst { count, sender: 0 }.as_bytes().to_vec();
    let reads = |local, remote| Reads { local, remote }.as_bytes().to_vec();
    let longer = |mut bytes: Vec<u8>| {
        bytes.push(0);
        bytes
    };
    let all = size_of::<Statistics>();
    vec![
        // The control codes are unknown: another function, another method, another device type.
        (0x0022_2FFC, vec![], 0, INVALID_DEVICE_REQUEST),
        (IOCTL_ECHO | 3, vec![1], 1, INVALID_DEVICE_REQUEST),
        (IOCTL_GET_STATISTICS ^ (1 << 16), vec![], all, INVALID_DEVICE_REQUEST),
        (IOCTL_ECHO, vec![], 8, BUFFER_TOO_SMALL),
        (IOCTL_ECHO, vec![1, 2, 3], 2, BUFFER_TOO_SMALL),
        (IOCTL_ECHO, vec![1], 0, BUFFER_TOO_SMALL),
        (IOCTL_ECHO_IN_DPC, vec![1, 2, 3], 2, BUFFER_TOO_SMALL),
        (IOCTL_SET_TIMER, vec![], 0, BUFFER_TOO_SMALL),
        (IOCTL_SET_TIMER, vec![1, 0, 0], 0, BUFFER_TOO_SMALL),
        (IOCTL_SET_TIMER, vec![1, 0, 0, 0, 0], 0, INVALID_BUFFER_SIZE),
        (IOCTL_SET_TIMER, vec![2, 0, 0, 0], 0, INVALID_PARAMETER),
        (IOCTL_GET_STATISTICS, vec![], 0, BUFFER_TOO_SMALL),
        (IOCTL_GET_STATISTICS, vec![], all - 1, BUFFER_TOO_SMALL),
        (IOCTL_BURST, burst(1)[..7].to_vec(), 0, BUFFER_TOO_SMALL),
        (IOCTL_BURST, longer(burst(1)), 0, INVALID_BUFFER_SIZE),
        (IOCTL_BURST, burst(MAX_BURST + 1), 0, INVALID_PARAMETER),
        (IOCTL_SIMULATE_READS, vec![0; 7], 0, BUFFER_TOO_SMALL),
        (IOCTL_SIMULATE_READS, longer(reads(0, 0)), 0, INVALID_BUFFER_SIZE),
        (IOCTL_SIMULATE_READS, reads(0, MAX_READS + 1), 0, INVALID_PARAMETER),
        (IOCTL_SIMULATE_READS, reads(u32::MAX, 0), 0, INVALID_PARAMETER),
        (IOCTL_WAIT, vec![], 7, BUFFER_TOO_SMALL),
        (IOCTL_WAKE, vec![], 0, NOT_FOUND),
    ]
}

fn bad_requests(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let session = stage.start("BadRequests")?;
    stage.enable(session, provider(), &up_to(3))?;
    let wrong = wrong_requests();
    for (code, input, output, status) in &wrong {
        let answer = stage.control(file, *code, input, *output)?;
        expect_equal(
            format!(
                "the status of 0x{code:x} with input {input:?} and an output buffer of {output} bytes"
            ),
            &format!("{status:08x}"),
            &format!("{:08x}", answer.status),
        )?;
        expect_equal("the output", &Vec::new(), &answer.output)?;
    }
    let recording = stage.stop(session)?;
    let reported: Vec<Vec<String>> = recording
        .events
        .iter()
        .map(|seen| seen.event.fields.iter().map(|(_, value)| value.to_string()).collect())
        .collect();
    let expected: Vec<Vec<String>> = wrong
        .iter()
        .map(|(code, _, _, status)| vec![format!("{code:#x}"), format!("0x{status:08x}")])
        .collect();
    expect_equal("codes and statuses in the events", &expected, &reported)?;
    expect_equal("BadRequest events", &wrong.len(), &count(&recording, "BadRequest"))
}

fn good_requests(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let session = stage.start("GoodRequests")?;
    stage.enable(session, provider(), &up_to(INFORMATION))?;
    expect_equal("the status of a write", &SUCCESS, &stage.write(file, b"0123456789")?.status)?;
    let read = stage.read(file, 6)?;
    expect_equal("the output of a read", &b"012345".to_vec(), &read.output)?;
    let echo = stage.control(file, IOCTL_ECHO, b"echo", 16)?;
    expect_equal("the output of IOCTL_ECHO", &b"echo".to_vec(), &echo.output)?;
    let recording = stage.stop(session)?;
    let reported: Vec<String> = recording
        .events
        .iter()
        .map(|seen| {
            let values: Vec<String> =
                seen.event.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            values.join(" ")
        })
        .collect();
    let code = format!("Code={IOCTL_ECHO:#x}");
    expect_equal(
        "the events",
        &vec![
            "Length=10 Status=0x00000000".to_owned(),
            "Requested=6 Returned=6 Status=0x00000000".to_owned(),
            code.clone(),
            format!("{code} Returned=4 Status=0x00000000"),
        ],
        &reported,
    )
}

fn cancelled(stage: &mut Stage<'_>) -> Result<(), Failure> {
    stage.load_driver()?;
    let file = stage.open()?;
    let session = stage.start("Cancelled")?;
    stage.enable(session, provider(), &up_to(INFORMATION))?;
    let waits = stage.start_control(file, IOCTL_WAIT, &[], 8)?;
    stage.cancel(waits)?;
    let answer = stage.finish(waits)?;
    expect_equal("the status of the canceled request", &CANCELLED, &answer.status)?;
    let waits = stage.start_control(file, IOCTL_WAIT, &[], 8)?;
    stage.close(file)?;
    let answer = stage.finish(waits)?;
    expect_equal("the status of the request whose file was closed", &CANCELLED, &answer.status)?;
    let recording = stage.stop(session)?;
    expect_equal("BadRequest events", &2, &count(&recording, "BadRequest"))?;
    expect_equal("DeviceControl events", &4, &count(&recording, "DeviceControl"))
}
