//! Tests the framework's devices, settings and I/O targets: the driver's view of its device, and
//! the path of its requests to other devices.

use crate::{common, kmdf_commands as commands};
use std::sync::{Arc, Mutex};

use crate::bench::{Bench, CLIENT, is_pending, lines, status_of};
use standin_kernel::{
    Completion, DeviceConfig, DevicePowerState, Kernel, KernelError, NtStatus, RequestAction,
    RequestKind, Rule, SimulatedDevice, SimulatedRequest,
};

const NAME: &str = r"\Device\Simulated";

#[test]
fn a_driver_sees_the_device_objects_of_its_stack() {
    let bench = Bench::new();
    bench.command(commands::WDM);
    bench.assert_news(&[
        "own type 3 size 336 stack 2 flags 2004", "same true links true stack 1",
        "physical is attached true",
    ]);
    bench.leave();
}

#[test]
fn settings_are_checked_as_the_framework_does() {
    let bench = Bench::new();
    bench.command(commands::SETTINGS);
    bench.assert_news(&[
        "idle 0 c000000d c0000004",
        "idle and wake c00002d3 c00002d3 c00002d3",
        "wake c00002d3 c00002d3 c00002d3",
        "stop idle 0",
        "state 1 0",
    ]);
    let warnings = bench.kernel.warnings();
    let misused: Vec<&str> = warnings
        .iter()
        .filter(|warning| warning.rule == Rule::FrameworkMisused)
        .map(|warning| warning.message.as_str())
        .collect();
    assert_eq!(misused.len(), 2, "{misused:?}");
    assert!(misused[0].contains("WdfDeviceSetPnpCapabilities"), "{misused:?}");
    assert!(misused[1].contains("without a previous successful WdfDeviceStopIdle"), "{misused:?}");
    bench.leave();
}

#[test]
fn a_device_wakes_from_the_states_of_its_bus() {
    let config = DeviceConfig::new().wakes_from(DevicePowerState::D2);
    let bench = Bench::in_kernel(Kernel::new(), config);
    bench.command(commands::SETTINGS);
    bench.assert_news(&[
        "idle 0 c000000d c0000004", "idle and wake 0 c00002d3 0", "wake 0 c00002d3 0",
        "stop idle 0", "state 1 0",
    ]);
    bench.leave();
}

#[test]
fn a_device_has_registry_keys_and_properties() {
    let config = DeviceConfig::new().hardware_value("value", 7_u32).hardware_id(r"Root\Sample");
    let bench = Bench::in_kernel(Kernel::new(), config);
    bench.command(commands::KEYS);
    bench.assert_news(&[
        // A handle's access rights do not restrict drivers.
        "key 0 0 7 0 0 c0000008",
    ]);
    bench.command(commands::PROPERTIES);
    bench.assert_news(&[
        "enumerator 0 ROOT", "short c0000023 missing c0000034 0",
        r"instance 0 ROOT\ETW_KMDF_DRIVER\0000", "keyed c0000034 0 0 1234 4 7",
        "deleted 0 c0000034 c0000004",
    ]);
    bench.leave();
}

#[test]
fn the_framework_tells_its_version() {
    let bench = Bench::new();
    bench.command(commands::VERSION);
    bench.assert_news(&[
        "1.31 1",
        "1.40 0",
        "version 0 Kernel Mode Driver Framework version 1.33.22000",
    ]);
    bench.leave();
}

/// The requests that a simulated device has received.
type Asked = Arc<Mutex<Vec<SimulatedRequest>>>;

/// Creates a simulated device that answers device controls with `pong`, and reads with two bytes.
fn answering(kernel: &Kernel) -> (SimulatedDevice, Asked) {
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let device = kernel.simulate_device(Some(NAME), move |request| {
        log.lock().unwrap().push(request.clone());
        let output = match request.kind {
            RequestKind::DeviceControl { .. } => b"pong".to_vec(),
            RequestKind::Read => vec![7, 8],
            _ => Vec::new(),
        };
        RequestAction::Complete(Completion::success(output))
    });
    (device, asked)
}

#[test]
fn a_target_that_is_opened_by_name_answers_synchronously() {
    let kernel = Kernel::new();
    let (_device, asked) = answering(&kernel);
    let bench = Bench::in_kernel(kernel, DeviceConfig::new());
    bench.command(commands::TARGET);
    bench.assert_news(&[
        "open 0 from 1 to 1", "ioctl 0 4 [112, 111, 110, 103]", "read 0 2 [7, 8]", "write 0",
        "target true true true", "closed c0000184 4",
    ]);
    let asked = asked.lock().unwrap();
    let kinds: Vec<RequestKind> = asked.iter().map(|request| request.kind).collect();
    assert_eq!(
        kinds,
        [
            RequestKind::Create,
            RequestKind::DeviceControl { code: 0x0022_2000 },
            RequestKind::Read,
            RequestKind::Write,
            RequestKind::Cleanup,
            RequestKind::Close,
        ]
    );
    assert_eq!((&asked[1].input[..], asked[1].output_length), (&b"ping"[..], 8));
    assert_eq!((asked[2].offset, asked[2].output_length), (512, 8));
    assert_eq!(asked[3].input, b"ping");
    drop(asked);
    bench.leave();
}

/// Creates a simulated device that leaves device controls pending.
fn keeping(kernel: &Kernel) -> SimulatedDevice {
    kernel.simulate_device(Some(NAME), |request| match request.kind {
        RequestKind::DeviceControl { .. } => RequestAction::Keep,
        _ => RequestAction::Complete(Completion::success(Vec::new())),
    })
}

#[test]
fn a_sent_request_is_completed_later() {
    let kernel = Kernel::new();
    let device = keeping(&kernel);
    let bench = Bench::in_kernel(kernel, DeviceConfig::new());
    let command = bench.send(commands::SEND);
    bench.assert_news(&["open 0 from 1 to 1", "sent 1"]);
    assert!(is_pending(&command));
    let kept = device.kept();
    assert_eq!(kept.len(), 1);
    let completion = Completion::success(b"pong".to_vec());
    assert!(device.complete(&kept[0].0, completion.clone()).unwrap());
    bench.assert_news(&[
        "completed 0 4 type 14 code 222000 true at 0",
        "output [112, 111, 110, 103] of 8",
    ]);
    assert_eq!(status_of(command), NtStatus::SUCCESS);
    assert!(!device.complete(&kept[0].0, completion).unwrap());
    bench.leave();
}

#[test]
fn a_filter_forwards_to_a_device_of_the_test() {
    let kernel = Kernel::new();
    let (lower, asked) = answering(&kernel);
    let driver = kernel.load(&common::hardware("filter")).unwrap();
    let config = DeviceConfig::new().above_simulated(&lower);
    let device = driver.add_device_with(config).unwrap();
    let file = device.open_file(r"\part", CLIENT).unwrap();
    let read = file.read(8).unwrap();
    assert_eq!((read.status, read.output), (NtStatus::SUCCESS, vec![7, 8]));
    let control = file.device_control(0x0022_2000, b"ping", 3).unwrap();
    assert_eq!(control.output, b"pon");
    file.close().unwrap();
    let kinds: Vec<RequestKind> = {
        let asked = asked.lock().unwrap();
        asked.iter().map(|request| request.kind).collect()
    };
    assert_eq!(kinds.first(), Some(&RequestKind::Create));
    assert_eq!(kinds.last(), Some(&RequestKind::Close));
    assert_eq!(
        lines(&kernel),
        ["completed with 0x00000000, 2 bytes", "completed with 0x00000000, 3 bytes"]
    );
    common::leave(driver, &device);
}

#[test]
fn a_cancellation_reaches_the_device_below_a_filter() {
    let kernel = Kernel::new();
    let lower = kernel.simulate_device(None, |request| match request.kind {
        RequestKind::Read => RequestAction::Keep,
        RequestKind::Write => RequestAction::KeepUncancelable,
        _ => RequestAction::Complete(Completion::success(Vec::new())),
    });
    let driver = kernel.load(&common::hardware("filter")).unwrap();
    let config = DeviceConfig::new().above_simulated(&lower);
    let device = driver.add_device_with(config).unwrap();
    let file = device.open(CLIENT).unwrap();
    let read = file.start_read(8).unwrap();
    read.cancel().unwrap();
    assert_eq!(status_of(read), NtStatus::CANCELLED);
    let write = file.start_write(b"one").unwrap();
    write.cancel().unwrap();
    let kept = lower.kept();
    assert!(is_pending(&write) && kept[0].1);
    let completion = Completion { information: 3, ..Completion::success(Vec::new()) };
    assert!(lower.complete(&kept[0].0, completion).unwrap());
    let written = write.finish().unwrap();
    assert_eq!((written.status, written.information), (NtStatus::SUCCESS, 3));
    file.close().unwrap();
    common::leave(driver, &device);
}

#[test]
fn a_filter_above_another_driver_forwards_to_its_queues() {
    let bench = Bench::new();
    let driver = bench.kernel.load(&common::hardware("filter")).unwrap();
    let config = DeviceConfig::new().above(&bench.device);
    let filter = driver.add_device_with(config).unwrap();
    // The path refers to the top of the stack.
    let file = bench.kernel.open(r"\\.\KmdfTest\x", CLIENT).unwrap();
    bench.skip();
    let completion = file.device_control(commands::MEMORY, b"stressed", 8).unwrap();
    assert_eq!(completion.output, b"desserts");
    bench.assert_news(&["past the end c0000023", "completed with 0x00000000, 8 bytes"]);
    let read = file.start_read(1).unwrap();
    read.cancel().unwrap();
    assert_eq!(status_of(read), NtStatus::CANCELLED);
    file.close().unwrap();
    bench.assert_news(&[
        "read 1", "canceled_on_queue", "completed with 0xc0000120, 0 bytes", "file_cleanup",
        "file_close",
    ]);
    filter.remove().unwrap();
    driver.unload().unwrap();
    bench.leave();
}

#[test]
fn requests_end_at_the_bus_below_a_filter() {
    let kernel = Kernel::new();
    let (driver, device) = common::started(&kernel, &common::hardware("filter"));
    let opened = device.open(CLIENT);
    assert!(
        matches!(opened, Err(KernelError::Status { status: NtStatus::INVALID_DEVICE_REQUEST, .. })),
        "{:?}",
        opened.err()
    );
    common::leave(driver, &device);
}
