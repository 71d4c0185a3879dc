//! Tests DMA, the framework's queries, and other routines for drivers that use more than queues.

use crate::bench::{Bench, assert_says};
use crate::{bench, common, kmdf_commands as commands};
use standin_kernel::{
    Completion, DeviceConfig, Kernel, KernelError, NtStatus, Request, RequestAction,
    SimulatedRequest,
};

/// Returns the addresses and lengths of the elements that the driver printed since the last call.
fn elements(bench: &Bench) -> Vec<(u64, usize)> {
    let news = bench.news();
    let elements = news.iter().filter_map(|line| line.strip_prefix("element ")?.split_once(' '));
    elements
        .map(|(address, length)| {
            (u64::from_str_radix(address, 16).unwrap(), length.parse().unwrap())
        })
        .collect()
}

/// Reads the elements that the driver passed to its device.
fn read(bench: &Bench, elements: &[(u64, usize)]) -> Vec<u8> {
    let parts =
        elements.iter().map(|(address, length)| bench.device.dma_read(*address, *length).unwrap());
    parts.collect::<Vec<_>>().concat()
}

/// Starts a transfer of 10,000 bytes, and returns the bytes and the request.
fn start(bench: &Bench) -> (Vec<u8>, Request) {
    let data: Vec<u8> = (0..10_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let request = bench.file.start_device_control(commands::DMA_START, &data, 0).unwrap();
    (data, request)
}

#[test]
fn a_device_shares_a_common_buffer_with_its_driver() {
    let bench = Bench::new();
    bench.command(commands::DMA_CREATE);
    let news = bench.news();
    assert_eq!(news[0], "enabler c000000d 0 8192 8192 3");
    assert_eq!(news[2], "transaction 0 true");
    let words: Vec<&str> = news[1].split(' ').collect();
    let ["common", "0", "24", "bus", address, "0"] = words[..] else {
        panic!("{news:?}");
    };
    let address = u64::from_str_radix(address, 16).unwrap();
    assert_eq!(address % 0x1_0000, 0);
    assert!(address < 1 << 32);
    assert_eq!(bench.device.dma_read(address, 8).unwrap(), b"for you!");
    bench.device.dma_write(address + 16, b"from dev").unwrap();
    let beyond = bench.device.dma_read(address + 20, 8);
    assert!(
        matches!(beyond, Err(KernelError::Status { status: NtStatus::ACCESS_VIOLATION, .. })),
        "{beyond:?}"
    );
    bench.device.power_cycle().unwrap();
    bench.assert_news(&[
        "io_suspend", "d0_exit_pre_interrupts", "d0_exit to 4", "d0_entry from 4",
        "d0_entry_post_interrupts", "dma enable at 0", "io_restart",
    ]);
    bench.device.power_cycle().unwrap();
    assert_eq!(bench.news()[1], "dma disable at 0");
    bench.leave();
}

#[test]
fn a_transaction_has_as_many_transfers_as_the_device_needs() {
    let bench = Bench::new();
    bench.command(commands::DMA_CREATE);
    bench.skip();
    let (data, request) = start(&bench);
    let first = elements(&bench);
    assert!(first.len() >= 2, "{first:?}");
    assert_eq!(read(&bench, &first), data[..8192]);
    bench.command(commands::DMA_COMPLETE);
    let second = elements(&bench);
    assert_eq!(read(&bench, &second), data[8192..]);
    // The first transfer is complete.
    assert!(bench.device.dma_read(first[0].0, 1).is_err());
    bench.command(commands::DMA_COMPLETE);
    bench.assert_news(&["over 1 0 10000", "its request true"]);
    let completion = request.finish().unwrap();
    assert_eq!((completion.status, completion.information), (NtStatus::SUCCESS, 10_000));
    bench.leave();
}

#[test]
fn a_transfer_continues_after_the_bytes_that_the_device_took() {
    let bench = Bench::new();
    bench.command(commands::DMA_CREATE);
    let (data, request) = start(&bench);
    let news = bench.news();
    assert!(news.iter().any(|line| line.ends_with("of 8192 for 7 at 2, write true")));
    assert!(news.iter().any(|line| line.starts_with("start c000000d 0 0 needs ")));
    bench.command(commands::DMA_COMPLETE_SHORT);
    let rest = elements(&bench);
    assert_eq!(read(&bench, &rest), data[1000..9192]);
    bench.command(commands::DMA_COMPLETE_FINAL);
    bench.assert_news(&["over 1 0 1010", "its request true"]);
    assert_eq!(request.finish().unwrap().information, 1010);
    bench.leave();
}

#[test]
fn executing_a_transaction_without_a_buffer_is_a_bugcheck() {
    let bench = Bench::new();
    bench.command(commands::DMA_CREATE);
    let bugcheck = bench.stops(commands::DMA_EXECUTE);
    assert_says(
        &bugcheck,
        &[
            "WdfDmaTransactionExecute was called from",
            "dma::device_control",
            "a DMA transaction that has no buffer",
        ],
    );
}

#[test]
fn the_framework_answers_queries() {
    let bench = Bench::new();
    bench.command(commands::QUERIES);
    bench.assert_news(&[
        "query c0000225 version 1.33 trace c00000bb",
        "file 40000 type 5 true true true of 10",
        "request of 10, 0",
    ]);
    bench.leave();
}

#[test]
fn a_driver_bugchecks_by_the_frameworks_routine() {
    let bugcheck = Bench::new().stops(commands::BUGCHECK);
    assert_eq!((bugcheck.code, bugcheck.parameters), (0xE2, [1, 2, 3, 4]));
    assert_says(
        &bugcheck,
        &["the driver called WdfVerifierKeBugCheck from", "verifier::device_control"],
    );
}

#[test]
fn a_target_is_opened_by_its_device_object() {
    let kernel = Kernel::new();
    let lower = kernel.simulate_device(None, |request: &SimulatedRequest| {
        assert_eq!(request.input, b"ping");
        RequestAction::Complete(Completion::success(Vec::new()))
    });
    let bench = Bench::in_kernel(kernel, DeviceConfig::new().above_simulated(&lower));
    bench.command(commands::OPEN_OBJECT);
    bench.assert_news(&["object 0 true ioctl 0 0"]);
    bench.leave();
}

#[test]
fn lists_of_resources_cannot_be_changed_where_they_are_only_read() {
    let bench = Bench::new();
    bench.command(commands::RESOURCE_LISTS);
    bench.assert_news(&["resources c0000022 c0000022 0", "wake c0000184 c000000d"]);
    let warnings = bench.kernel.warnings();
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    bench.leave();
}

#[test]
fn a_bus_driver_retrieves_its_children() {
    let bench = Bench::new();
    bench.command(commands::ADD_CHILDREN);
    bench.skip();
    bench.command(commands::RETRIEVE_CHILD);
    // The list has no address descriptions, and static children have no descriptions.
    bench.assert_news(&[
        "child true 3 false 1",
        "id 0 7 address c0000010 c0000010 c0000010 static c0000010",
    ]);
    bench.leave();
}

#[test]
fn a_miniport_driver_has_a_device_for_an_object_of_its_own() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kmdf(), "miniport").unwrap();
    assert_eq!(bench::lines(&kernel), ["miniport 0 true true true true true"]);
    kernel.advance(std::time::Duration::from_millis(2)).unwrap();
    driver.unload().unwrap();
    assert_eq!(
        bench::lines(&kernel)[1..],
        ["miniport timer", "miniport device cleanup", "miniport unloaded"]
    );
}
