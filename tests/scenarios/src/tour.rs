//! A tour of the sample driver: two sessions, every path.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use etw_sample_interface::{
    IOCTL_ECHO, IOCTL_ECHO_IN_DPC, IOCTL_GET_STATISTICS, IOCTL_SET_TIMER, Statistics, TimerControl,
    keyword,
};
use etw_testkernel::{
    Completion, EnableParameters, File, Guid, Identity, Kernel, KernelError, NtStatus,
    SessionConfig, SessionReport, Target,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::{
    expect::{Expected, event},
    provider,
};

/// A process that uses the device.
const CLIENT: Identity = Identity {
    process: 4242,
    thread: 4244,
};

/// What the client says that it is doing.
const CLIENT_ACTIVITY: &str = "9d3a6c11-7e0b-4d9e-8b52-6c1f0f6a2e01";

/// A control code that the driver does not know.
const UNKNOWN_IOCTL: u32 = 0x0022_2FFC;

const WARNING: u8 = 3;
const INFORMATION: u8 = 4;
const VERBOSE: u8 = 5;

const START: u8 = 1;
const STOP: u8 = 2;
const DC_START: u8 = 3;

/// What a tour left.
#[derive(Debug)]
pub struct Tour {
    /// The session that recorded everything.
    pub everything: SessionReport,
    /// The session that recorded requests, without details, for a while.
    pub requests: SessionReport,
    /// What the stand-in kernel saw.
    pub statistics: etw_testkernel::Statistics,
    /// Sentences of what was found to be so on the way.
    pub verified: Vec<String>,
}

/// Why a tour ended early.
#[derive(Debug, thiserror::Error)]
pub enum TourError {
    /// The stand-in kernel refused or stopped.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The driver answered otherwise than its interface says.
    #[error("{what}: expected {expected}, got {got}")]
    Answer {
        /// What was asked.
        what: &'static str,
        /// What its interface says.
        expected: String,
        /// What came.
        got: String,
    },
}

fn expect<T: PartialEq + std::fmt::Debug>(
    what: &'static str,
    expected: &T,
    got: &T,
) -> Result<(), TourError> {
    if expected == got {
        return Ok(());
    }
    Err(TourError::Answer {
        what,
        expected: format!("{expected:?}"),
        got: format!("{got:?}"),
    })
}

/// Checks that a request succeeded with this output.
fn expect_output(what: &'static str, expected: &[u8], got: &Completion) -> Result<(), TourError> {
    expect(what, &NtStatus::SUCCESS, &got.status)?;
    expect(what, &expected, &got.output.as_slice())
}

/// Drives the driver at `sys` through everything it can do. The sessions' files
/// go to the folder `out`; `progress` is told what is being done.
///
/// # Errors
///
/// When the kernel finds something wrong with the driver, or the driver answers
/// otherwise than its interface says.
pub fn drive(sys: &Path, out: &Path, progress: &mut dyn FnMut(&str)) -> Result<Tour, TourError> {
    let target = Target::Provider(provider());
    let file = |name: &str| -> PathBuf { out.join(name) };
    let mut verified = Vec::new();
    let kernel = Kernel::new();
    kernel.set_thread_activity(CLIENT, client_activity());

    progress("start a session that wants everything, before the driver is there");
    let everything =
        kernel.start_session(SessionConfig::to_file("Everything", file("everything.etl")))?;
    kernel.enable(
        everything,
        target,
        EnableParameters {
            level: VERBOSE,
            ..EnableParameters::default()
        },
    )?;

    progress("load the driver, add its device");
    let driver = kernel.load(sys)?;
    let device = driver.add_device()?;
    verified.push(format!(
        "all {} imports of the image are provided, and its entry point succeeded",
        driver.imports().len()
    ));

    progress("open the device, write and read without the second session");
    let handle = device.open(CLIENT)?;
    expect_output("a write", &[], &handle.write(b"first")?)?;
    expect_output("a read", b"first", &handle.read(64)?)?;

    progress("start a second session, for requests without details");
    let requests =
        kernel.start_session(SessionConfig::to_file("Requests", file("requests.etl")))?;
    kernel.enable(
        requests,
        target,
        EnableParameters {
            level: INFORMATION,
            match_any: keyword::REQUEST,
            ..EnableParameters::default()
        },
    )?;

    progress("write, read, device control, a DPC");
    send_requests(&handle)?;
    verified.push("every request was completed once, with the bytes and status it should".into());

    progress("the periodic timer");
    run_timer(&kernel, &handle)?;
    verified.push(
        "the timer fired at DISPATCH_LEVEL three times in 35 ms, and not once stopped".into(),
    );

    progress("disable the second session, go on");
    kernel.disable(requests, target, None)?;
    expect_output("a read", b"second one", &handle.read(64)?)?;
    let requests = kernel.stop_session(requests)?;

    progress("sleep, wake, capture state, close, remove, unload");
    device.power_cycle()?;
    kernel.capture_state(everything, target, None)?;
    handle.close()?;
    device.remove()?;
    driver.unload()?;
    let statistics = kernel.statistics();
    expect(
        "pool blocks freed",
        &statistics.allocations,
        &statistics.frees,
    )?;
    expect("registrations left", &0, &statistics.registrations)?;
    expect("warnings of the verifier", &Vec::new(), &kernel.warnings())?;
    let deepest = kernel.stack_use().into_values().max().unwrap_or(0);
    verified.push(format!(
        "it used {deepest} of the 24,576 bytes of kernel stack at most"
    ));
    verified.push(format!(
        "{} calls into the kernel were each made at an IRQL that the routine allows",
        statistics.calls
    ));
    verified.push(format!(
        "all {} pool blocks were freed, and the provider was unregistered",
        statistics.allocations
    ));
    let everything = kernel.stop_session(everything)?;
    for report in [&everything, &requests] {
        expect("events lost", &0, &report.events_lost)?;
    }
    verified.push("no session lost an event".into());
    Ok(Tour {
        everything,
        requests,
        statistics,
        verified,
    })
}

/// Sends requests of every kind, good and bad.
fn send_requests(handle: &File) -> Result<(), TourError> {
    expect_output("a write", &[], &handle.write(b"second one")?)?;
    expect_output("a short read", b"second", &handle.read(6)?)?;
    let echo = handle.device_control(IOCTL_ECHO, b"echo", 16)?;
    expect_output("IOCTL_ECHO", b"echo", &echo)?;
    let echo = handle.device_control(IOCTL_ECHO_IN_DPC, b"deferred", 16)?;
    expect_output("IOCTL_ECHO_IN_DPC", b"deferred", &echo)?;
    let unknown = handle.device_control(UNKNOWN_IOCTL, &[], 0)?;
    expect(
        "an unknown control code",
        &NtStatus::INVALID_DEVICE_REQUEST,
        &unknown.status,
    )?;
    let short = handle.device_control(IOCTL_SET_TIMER, &[1], 0)?;
    expect(
        "a timer control that is cut",
        &NtStatus::BUFFER_TOO_SMALL,
        &short.status,
    )
}

/// Lets the timer tick, reads the counters, and sees that it stops.
fn run_timer(kernel: &Kernel, handle: &File) -> Result<(), TourError> {
    let timer = |run| handle.device_control(IOCTL_SET_TIMER, TimerControl { run }.as_bytes(), 0);
    expect_output("IOCTL_SET_TIMER", &[], &timer(1)?)?;
    kernel.advance(Duration::from_millis(35))?;
    expect_output("IOCTL_SET_TIMER", &[], &timer(0)?)?;
    kernel.advance(Duration::from_millis(35))?;
    let answer = handle.device_control(IOCTL_GET_STATISTICS, &[], size_of::<Statistics>())?;
    expect("IOCTL_GET_STATISTICS", &NtStatus::SUCCESS, &answer.status)?;
    let counted = Statistics::read_from_bytes(&answer.output).unwrap_or_default();
    expect(
        "the device's counters",
        &Statistics {
            bytes_read: 11,
            bytes_written: 15,
            timer_ticks: 3,
            // Two sessions have enabled the provider, the first one before it was there.
            notifications: 2,
            enabled: 1,
            level: u32::from(VERBOSE),
            match_any: u64::MAX,
            ..Statistics::default()
        },
        &counted,
    )
}

fn client_activity() -> Guid {
    CLIENT_ACTIVITY.parse().unwrap_or_default()
}

/// Names of statuses are the decoder's business; here they are numbers.
fn status(bits: u32) -> String {
    format!("0x{bits:08x}")
}

const OK: u32 = 0;
const INVALID_DEVICE_REQUEST: u32 = 0xC000_0010;
const BUFFER_TOO_SMALL: u32 = 0xC000_0023;

fn write_data(hex: &str) -> Expected {
    event("WriteData", VERBOSE, keyword::REQUEST).field("Data", &format!("hex:{hex}"))
}

fn write(length: usize) -> Expected {
    event("Write", INFORMATION, keyword::REQUEST)
        .field("Length", &length)
        .field("Status", &status(OK))
}

fn read(requested: usize, returned: usize) -> Expected {
    event("Read", INFORMATION, keyword::REQUEST)
        .field("Requested", &requested)
        .field("Returned", &returned)
        .field("Status", &status(OK))
}

fn control_start(code: u32) -> Expected {
    event("DeviceControl", INFORMATION, keyword::REQUEST)
        .opcode(START)
        .related(client_activity())
        .field("Code", &format!("{code:#x}"))
}

fn control_stop(code: u32, returned: usize, bits: u32) -> Expected {
    event("DeviceControl", INFORMATION, keyword::REQUEST)
        .opcode(STOP)
        .field("Code", &format!("{code:#x}"))
        .field("Returned", &returned)
        .field("Status", &status(bits))
}

fn bad_request(code: u32, bits: u32) -> Expected {
    event("BadRequest", WARNING, keyword::REQUEST)
        .field("Code", &format!("{code:#x}"))
        .field("Status", &status(bits))
}

fn tick(number: u64) -> Expected {
    event("TimerTicked", VERBOSE, keyword::TIMER).field("Ticks", &number)
}

fn power(name: &'static str, state: &str) -> Expected {
    event(name, INFORMATION, keyword::POWER).field("State", &state)
}

/// What happens while both sessions record: from the second session's enabling to its
/// disabling.
fn middle() -> Vec<Expected> {
    vec![
        write_data("7365636f6e64206f6e65"),
        write(10),
        read(6, 6),
        control_start(IOCTL_ECHO),
        control_stop(IOCTL_ECHO, 4, OK),
        control_start(IOCTL_ECHO_IN_DPC),
        event("DpcRan", VERBOSE, keyword::REQUEST),
        control_stop(IOCTL_ECHO_IN_DPC, 8, OK),
        control_start(UNKNOWN_IOCTL),
        bad_request(UNKNOWN_IOCTL, INVALID_DEVICE_REQUEST),
        control_stop(UNKNOWN_IOCTL, 0, INVALID_DEVICE_REQUEST),
        control_start(IOCTL_SET_TIMER),
        bad_request(IOCTL_SET_TIMER, BUFFER_TOO_SMALL),
        control_stop(IOCTL_SET_TIMER, 0, BUFFER_TOO_SMALL),
        control_start(IOCTL_SET_TIMER),
        control_stop(IOCTL_SET_TIMER, 0, OK),
        tick(1),
        tick(2),
        tick(3),
        control_start(IOCTL_SET_TIMER),
        control_stop(IOCTL_SET_TIMER, 0, OK),
        control_start(IOCTL_GET_STATISTICS),
        control_stop(IOCTL_GET_STATISTICS, size_of::<Statistics>(), OK),
    ]
}

/// The events that the session "Everything" must have recorded, in order.
#[must_use]
pub fn expected_everything() -> Vec<Expected> {
    let mut events = vec![
        event("DriverLoaded", INFORMATION, keyword::LIFECYCLE).opcode(START),
        event("DeviceAdded", INFORMATION, keyword::LIFECYCLE),
        power("D0Entry", "D3 for good(5)"),
        event("FileCreated", VERBOSE, keyword::REQUEST),
        write_data("6669727374"),
        write(5),
        read(64, 5),
    ];
    events.extend(middle());
    events.extend([
        read(64, 10),
        power("D0Exit", "D3(4)"),
        power("D0Entry", "D3(4)"),
        event("State", INFORMATION, keyword::LIFECYCLE)
            .opcode(DC_START)
            .field("EventsFailed", &0),
        event("FileCleanedUp", VERBOSE, keyword::REQUEST),
        event("FileClosed", VERBOSE, keyword::REQUEST),
        power("D0Exit", "D3 for good(5)"),
        event("DriverUnloaded", INFORMATION, keyword::LIFECYCLE).opcode(STOP),
    ]);
    events
}

/// The events that the session "Requests" must have recorded, in order: those of
/// [`expected_everything`] that its level and keyword let through, while it was
/// enabled.
#[must_use]
pub fn expected_requests() -> Vec<Expected> {
    let mut events = middle();
    events.retain(|event| event.level <= INFORMATION && event.keyword == keyword::REQUEST);
    events
}
