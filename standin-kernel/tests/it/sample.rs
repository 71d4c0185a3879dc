//! Tests the sample driver in the stand-in kernel.

use crate::common;
use etl_file::{Catalog, Decoded, Trace, decode};
use etw_scenarios::{check, drive, expected_everything, expected_requests};

fn decoded(file: &std::path::Path) -> Vec<Decoded> {
    let mut catalog = Catalog::new();
    catalog.load(etw_test_support::root().join("inf/etw_sample_driver.man")).unwrap();
    let trace = Trace::open(file).unwrap();
    assert_eq!(trace.damages(), []);
    trace.events_by_time().into_iter().map(|event| decode(event, &catalog)).collect()
}

// R-C2, R-C3, R-T7, R-E3, R-O6, R-O10
#[test]
fn both_builds_pass_the_tour() {
    for profile in ["debug", "release"] {
        let sys = common::driver(profile, "etw_sample_driver.sys");
        let folder = tempfile::tempdir().unwrap();
        let tour = drive(&sys, folder.path(), &mut |_| ()).unwrap();
        check(&decoded(&tour.everything.file), &expected_everything()).unwrap();
        check(&decoded(&tour.requests.file), &expected_requests()).unwrap();
    }
}

// R-T1, R-T5, R-T6, R-T7, R-O2
#[test]
fn every_event_carries_the_providers_traits() {
    let folder = tempfile::tempdir().unwrap();
    let tour = drive(&common::sample(), folder.path(), &mut |_| ()).unwrap();
    let trace = Trace::open(&tour.everything.file).unwrap();
    let mut expected = b"\x57\x00WdkEtw.SampleDriver\0\x13\x00\x01".to_vec();
    let group: etl_file::Guid = etw_sample_interface::PROVIDER_GROUP.parse().unwrap();
    expected.extend(group.to_bytes());
    expected.extend(b"\x09\x00\x80sample");
    // The custom trait is the service name, which the driver receives in `DriverEntry`.
    expected.extend(b"\x25\x00\x81");
    let service = "etw_sample_driver".encode_utf16();
    expected.extend(service.flat_map(u16::to_le_bytes));
    assert_eq!(expected.len(), 0x57);
    let mut count = 0;
    for event in trace.events() {
        assert_eq!(event.record.provider, etw_scenarios::provider());
        assert_eq!(event.record.item(12), Some(expected.as_slice()));
        count += 1;
    }
    assert_eq!(count, 38);
}

// R-O6, R-O7
#[test]
fn a_request_is_one_activity_even_across_a_dpc() {
    let folder = tempfile::tempdir().unwrap();
    let tour = drive(&common::sample(), folder.path(), &mut |_| ()).unwrap();
    let events = decoded(&tour.everything.file);
    let at = events.iter().position(|event| event.event_name.as_deref() == Some("DpcRan")).unwrap();
    let activities: Vec<_> = events[at - 1..=at + 1].iter().map(|event| event.activity).collect();
    assert!(!activities[0].is_null());
    assert_eq!(activities, [activities[0]; 3]);
    let others = events.iter().filter(|event| event.activity == activities[0]).count();
    assert_eq!(others, 3, "another request has the same activity");
}

#[test]
fn the_device_is_for_administrators_and_the_system() {
    let kernel = standin_kernel::Kernel::new();
    let (driver, device) = common::started(&kernel, &common::sample());
    assert_eq!(device.sddl().unwrap().as_deref(), Some("D:P(A;;GA;;;SY)(A;;GA;;;BA)"));
    common::leave(driver, &device);
}

// R-O9
#[test]
fn a_driver_that_no_session_traces_writes_nothing() {
    let kernel = standin_kernel::Kernel::new();
    let (driver, device) = common::started(&kernel, &common::sample());
    let file = device.open(standin_kernel::Identity { process: 1, thread: 2 }).unwrap();
    let before = kernel.statistics().calls;
    file.write(b"x").unwrap();
    // A write calls the framework for its queue's device, the device's context, the request's context
    // (twice), the buffer, the lock (twice), and the completion. It does not call EtwWriteEx.
    assert_eq!(kernel.statistics().calls - before, 8);
    file.close().unwrap();
    common::leave(driver, &device);
}

// R-O12, R-O13
#[test]
fn full_buffers_go_to_the_file_and_nothing_is_lost() {
    let kernel = standin_kernel::Kernel::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.etl");
    let mut config = standin_kernel::SessionConfig::to_file("small", &file);
    config.buffer_kb = 4;
    let session = kernel.start_session(config).unwrap();
    kernel
        .enable(
            session,
            standin_kernel::Target::Provider(etw_scenarios::provider()),
            standin_kernel::EnableParameters::default(),
        )
        .unwrap();
    let (driver, device) = common::started(&kernel, &common::sample());
    let client = standin_kernel::Identity { process: 1, thread: 2 };
    let handle = device.open(client).unwrap();
    for number in 0..500_u32 {
        handle.write(&number.to_le_bytes()).unwrap();
    }
    handle.close().unwrap();
    common::leave(driver, &device);
    let report = kernel.stop_session(session).unwrap();
    // The other eight events: loaded, added, D0 entry and exit, created, cleaned up, closed,
    // unloaded.
    assert_eq!((report.events, report.events_lost), (2 * 500 + 8, 0));
    let trace = Trace::open(&file).unwrap();
    assert_eq!(trace.events().count(), 2 * 500 + 8);
    assert!(report.buffers_written > 40, "{}", report.buffers_written);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), u64::from(report.buffers_written) * 4096);
}
