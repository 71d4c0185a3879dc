//! A kernel with the KMDF test driver, its device and an open file, for the tests of the framework.

use std::cell::Cell;

use standin_kernel::{BugCheck, Device, DeviceConfig, Driver, File, Kernel, NtStatus, Request};

use crate::common;
pub use crate::common::{CLIENT, lines};

/// A kernel with the driver, its device, and an open file.
pub struct Bench {
    pub kernel: Kernel,
    pub driver: Driver,
    pub device: Device,
    pub file: File,
    /// The number of lines that [`Self::news`] has returned.
    pub seen: Cell<usize>,
}

impl Bench {
    pub fn new() -> Self {
        Self::in_kernel(Kernel::new(), DeviceConfig::new())
    }

    /// Adds the device with a configuration, in a kernel that the test has prepared.
    pub fn in_kernel(kernel: Kernel, config: DeviceConfig) -> Self {
        let driver = kernel.load(&common::kmdf()).unwrap();
        Self::of_driver(kernel, driver, config)
    }

    /// Loads the driver under a service name, which selects its behavior.
    pub fn of_service(kernel: Kernel, service: &str, config: DeviceConfig) -> Self {
        let driver = kernel.load_as(&common::kmdf(), service).unwrap();
        Self::of_driver(kernel, driver, config)
    }

    fn of_driver(kernel: Kernel, driver: Driver, config: DeviceConfig) -> Self {
        let device = driver.add_device_with(config).unwrap();
        let file = device.open(CLIENT).unwrap();
        let bench = Self { kernel, driver, device, file, seen: Cell::new(0) };
        bench.skip();
        bench
    }

    /// Closes the file, removes the device and unloads the driver.
    pub fn leave(self) {
        self.file.close().unwrap();
        self.device.remove().unwrap();
        self.driver.unload().unwrap();
    }

    /// Returns the lines that the driver printed since the last call.
    pub fn news(&self) -> Vec<String> {
        let lines = lines(&self.kernel);
        let seen = self.seen.replace(lines.len());
        lines[seen..].to_vec()
    }

    pub fn skip(&self) {
        self.news();
    }

    pub fn assert_news(&self, expected: &[&str]) {
        assert_eq!(self.news(), expected);
    }

    pub fn send(&self, command: u32) -> Request {
        self.file.start_device_control(command, &[], 64).unwrap()
    }

    /// Returns the numbers that a command returns.
    pub fn ask(&self, command: u32) -> Vec<u32> {
        numbers(&self.file, command)
    }

    pub fn command(&self, command: u32) {
        assert_eq!(self.ask(command), [0; 0]);
    }

    pub fn assert_status(&self, command: u32, status: NtStatus) {
        assert_eq!(self.ask(command), [status.0.cast_unsigned()]);
    }

    /// Sends a command that must bugcheck, and returns the bugcheck.
    pub fn stops(&self, command: u32) -> BugCheck {
        common::bugcheck(self.file.start_device_control(command, &[], 64))
    }
}

pub fn numbers(file: &File, command: u32) -> Vec<u32> {
    let completion = file.device_control(command, &[], 64).unwrap();
    assert_eq!(completion.status, NtStatus::SUCCESS);
    let numbers = completion.output.chunks_exact(4);
    numbers.map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

pub fn status_of(request: Request) -> NtStatus {
    request.finish().unwrap().status
}

pub fn is_pending(request: &Request) -> bool {
    request.try_finish().unwrap().is_none()
}

pub fn assert_says(bugcheck: &BugCheck, parts: &[&str]) {
    for part in parts {
        assert!(bugcheck.message.contains(part), "{part:?} is not in: {bugcheck}");
    }
}
