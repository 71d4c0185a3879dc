//! A tour of the sample driver: every path of the driver, traced by two sessions.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use etw_sample_interface::{
    IOCTL_ECHO, IOCTL_ECHO_IN_DPC, IOCTL_GET_STATISTICS, IOCTL_SET_TIMER, MAX_RECORDED,
    NotificationRecord, Registration, Statistics, TimerControl, keyword, outcome,
};
use standin_kernel::{
    Completion, EnableParameters, File, Guid, Identity, Kernel, KernelError, NtStatus,
    SessionConfig, SessionReport, Target,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::provider;

/// The process and thread that use the device.
const CLIENT: Identity = Identity { process: 4242, thread: 4244 };

/// The client's activity.
const CLIENT_ACTIVITY: &str = "9d3a6c11-7e0b-4d9e-8b52-6c1f0f6a2e01";

/// A control code that the driver does not support.
const UNKNOWN_IOCTL: u32 = 0x0022_2FFC;

const INFORMATION: u8 = 4;
const VERBOSE: u8 = 5;

/// The results of a tour.
#[derive(Debug)]
pub struct Tour {
    /// The session that recorded all events.
    pub everything: SessionReport,
    /// The session that recorded requests, without details, for part of the tour.
    pub requests: SessionReport,
    /// The statistics of the stand-in kernel.
    pub statistics: standin_kernel::Statistics,
    /// The statements that the tour verified.
    pub verified: Vec<String>,
}

/// An error of a tour.
#[derive(Debug, thiserror::Error)]
pub enum TourError {
    /// The stand-in kernel refused an operation or reported a bugcheck.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The driver's response differs from its interface.
    #[error("{what}: expected {expected}, got {got}")]
    Answer {
        /// The request.
        what: &'static str,
        /// The expected answer.
        expected: String,
        /// The actual answer.
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
    Err(TourError::Answer { what, expected: format!("{expected:?}"), got: format!("{got:?}") })
}

/// Checks that a request succeeded with this output.
fn expect_output(what: &'static str, expected: &[u8], got: &Completion) -> Result<(), TourError> {
    expect(what, &NtStatus::SUCCESS, &got.status)?;
    expect(what, &expected, &got.output.as_slice())
}

/// Exercises every path of the driver at `sys`, writes the sessions' files to the folder `out`,
/// and calls `progress` before each step.
///
/// # Errors
///
/// Returns an error if the kernel finds a fault in the driver, or if a response of the driver
/// differs from its interface.
pub fn drive(sys: &Path, out: &Path, progress: &mut dyn FnMut(&str)) -> Result<Tour, TourError> {
    let kernel = Kernel::new();
    // After an error, the driver is still loaded.
    drive_in(&kernel, sys, out, progress).inspect_err(|_| kernel.leave_behind())
}

fn drive_in(
    kernel: &Kernel,
    sys: &Path,
    out: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Tour, TourError> {
    let target = Target::Provider(provider());
    let file = |name: &str| -> PathBuf { out.join(name) };
    let mut verified = Vec::new();
    kernel.set_thread_activity(CLIENT, client_activity());

    progress("starting a session that records everything, before the driver is loaded");
    let everything =
        kernel.start_session(SessionConfig::to_file("Everything", file("everything.etl")))?;
    kernel.enable(
        everything,
        target,
        EnableParameters { level: VERBOSE, ..EnableParameters::default() },
    )?;

    progress("loading the driver and adding its device");
    let driver = kernel.load(sys)?;
    let device = driver.add_device()?;
    verified.push(format!(
        "all {} imports of the image are provided, and its entry point succeeded",
        driver.imports().len()
    ));

    progress("opening the device, writing and reading before the second session starts");
    let handle = device.open(CLIENT)?;
    expect_output("a write", &[], &handle.write(b"first")?)?;
    expect_output("a read", b"first", &handle.read(64)?)?;

    progress("starting a second session, which records requests without details");
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

    progress("sending writes, reads and device controls, one of them completed in a DPC");
    send_requests(&handle)?;
    verified.push("every request was completed once, with the expected bytes and status".into());

    progress("running the periodic timer");
    run_timer(kernel, &handle)?;
    verified.push(
        "the timer fired at DISPATCH_LEVEL three times in 35 ms, and not at all once it was stopped".into(),
    );

    progress("disabling the provider in the second session, then reading again");
    kernel.disable(requests, target, None)?;
    expect_output("a read", b"second one", &handle.read(64)?)?;
    let requests = kernel.stop_session(requests)?;

    progress("cycling power, capturing state, closing, removing and unloading");
    device.power_cycle()?;
    kernel.capture_state(everything, target, None)?;
    handle.close()?;
    device.remove()?;
    driver.unload()?;
    let statistics = kernel.statistics();
    expect("pool blocks freed", &statistics.allocations, &statistics.frees)?;
    expect("registrations left", &0, &statistics.registrations)?;
    expect("warnings of the verifier", &Vec::new(), &kernel.warnings())?;
    let deepest = kernel.stack_use().into_values().max().unwrap_or(0);
    verified.push(format!("the driver used at most {deepest} of the 24,576 bytes of kernel stack"));
    verified.push(format!(
        "all {} calls into the kernel were made at an IRQL that the routine allows",
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
    Ok(Tour { everything, requests, statistics, verified })
}

/// Sends valid and invalid requests of every kind.
fn send_requests(handle: &File) -> Result<(), TourError> {
    expect_output("a write", &[], &handle.write(b"second one")?)?;
    expect_output("a short read", b"second", &handle.read(6)?)?;
    let echo = handle.device_control(IOCTL_ECHO, b"echo", 16)?;
    expect_output("IOCTL_ECHO", b"echo", &echo)?;
    let echo = handle.device_control(IOCTL_ECHO_IN_DPC, b"deferred", 16)?;
    expect_output("IOCTL_ECHO_IN_DPC", b"deferred", &echo)?;
    let unknown = handle.device_control(UNKNOWN_IOCTL, &[], 0)?;
    expect("an unknown control code", &NtStatus::INVALID_DEVICE_REQUEST, &unknown.status)?;
    let short = handle.device_control(IOCTL_SET_TIMER, &[1], 0)?;
    expect("a timer control with truncated input", &NtStatus::BUFFER_TOO_SMALL, &short.status)
}

/// Runs the timer, stops it, and checks the counters.
fn run_timer(kernel: &Kernel, handle: &File) -> Result<(), TourError> {
    let timer = |run| handle.device_control(IOCTL_SET_TIMER, TimerControl { run }.as_bytes(), 0);
    expect_output("IOCTL_SET_TIMER", &[], &timer(1)?)?;
    kernel.advance(Duration::from_millis(35))?;
    expect_output("IOCTL_SET_TIMER", &[], &timer(0)?)?;
    kernel.advance(Duration::from_millis(35))?;
    let answer = handle.device_control(IOCTL_GET_STATISTICS, &[], size_of::<Statistics>())?;
    expect("IOCTL_GET_STATISTICS", &NtStatus::SUCCESS, &answer.status)?;
    let counted = Statistics::read_from_bytes(&answer.output).unwrap_or_default();
    // Two sessions have enabled the provider, the first before it was registered.
    let notified = |during_registration| NotificationRecord {
        recorded: 1,
        during_registration,
        control_code: 1,
        level: u32::from(VERBOSE),
        match_any: u64::MAX,
        ..NotificationRecord::default()
    };
    let mut first_notifications = [NotificationRecord::default(); MAX_RECORDED];
    for (record, during_registration) in first_notifications.iter_mut().zip([1, 0]) {
        *record = notified(during_registration);
    }
    expect(
        "the device's counters",
        &Statistics {
            bytes_read: 11,
            bytes_written: 15,
            timer_ticks: 3,
            notifications: 2,
            enabled: 1,
            level: u32::from(VERBOSE),
            match_any: u64::MAX,
            registration: Registration { outcome: outcome::COMPLETE, ..Registration::default() },
            first_notifications,
            ..Statistics::default()
        },
        &counted,
    )
}

fn client_activity() -> Guid {
    CLIENT_ACTIVITY.parse().unwrap_or_default()
}

/// The events that the session "Everything" records, in order. Lines of dashes mark the start and
/// the end of the time during which both sessions enable the provider.
const EVENTS: &str = include_str!("tour.txt");
const DASHES: &str = "---\n";

/// Returns the events that the session "Everything" must record, in order.
#[must_use]
pub fn expected_everything() -> Vec<&'static str> {
    EVENTS.split(DASHES).flat_map(str::lines).collect()
}

/// Returns the events that the session "Requests" must record, in order. They are the events of
/// [`expected_everything`] that pass the session's level and keyword while it enables the provider.
#[must_use]
pub fn expected_requests() -> Vec<&'static str> {
    let both = EVENTS.split(DASHES).nth(1).unwrap_or_default();
    let passes = |line: &&str| {
        [3, 4].iter().any(|level| {
            line.contains(&format!("(level {level}, keyword 0x{:x}, ", keyword::REQUEST))
        })
    };
    both.lines().filter(passes).collect()
}
