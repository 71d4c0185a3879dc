//! Drivers and devices that a test leaves behind.

use std::{
    panic::Location,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;

use crate::services::{
    composition::system::System,
    kmdf::state::device::{DeviceData, Presence},
    managers::nodes::Stage,
};

/// Panics if drivers or devices still exist when the kernel and the last of its handles are gone:
/// they can no longer be removed, and their leaks were not checked.
pub struct Guard {
    system: Arc<System>,
    left: Mutex<Left>,
    /// Set if drivers and devices may remain.
    is_off: AtomicBool,
}

#[derive(Default)]
struct Left {
    drivers: Vec<(String, &'static Location<'static>)>,
    devices: Vec<(u64, &'static Location<'static>)>,
}

impl Guard {
    pub fn new(system: &Arc<System>) -> Self {
        Self { system: Arc::clone(system), left: Mutex::default(), is_off: AtomicBool::new(false) }
    }

    /// Disables the guard.
    pub fn turn_off(&self) {
        self.is_off.store(true, Ordering::Relaxed);
    }

    /// Records that a test has loaded a driver.
    pub fn loaded(&self, image: String, at: &'static Location<'static>) {
        self.left.lock().drivers.push((image, at));
    }

    /// Records that a test unloads a driver.
    pub fn unloaded(&self, image: &str) {
        let mut left = self.left.lock();
        let driver = left.drivers.iter().rposition(|(name, _)| name == image);
        if let Some(driver) = driver {
            left.drivers.remove(driver);
        }
    }

    /// Records that a test has added a device.
    pub fn added(&self, device: u64, at: &'static Location<'static>) {
        self.left.lock().devices.push((device, at));
    }

    /// Returns a sentence for each remaining driver and device.
    fn complaints(&self) -> Vec<String> {
        let left = self.left.lock();
        let mut framework = self.system.kmdf.framework();
        let nodes = self.system.ntoskrnl.nodes();
        let devices = left.devices.iter();
        let devices = devices.filter(|(device, _)| {
            let of_driver = nodes.stage(*device);
            let device = framework.get::<DeviceData>(*device);
            of_driver.is_some_and(|stage| stage != Stage::Gone)
                || device.is_ok_and(|device| device.presence == Presence::Present)
        });
        let devices = devices.map(|(_, at)| {
            format!("the device that was added at {at} is still there; call `Device::remove`")
        });
        let drivers = left.drivers.iter();
        let drivers = drivers.map(|(image, at)| {
            format!("{image}, which was loaded at {at}, is still loaded; call `Driver::unload`")
        });
        devices.chain(drivers).collect()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // After a bugcheck, nothing can be removed.
        if std::thread::panicking()
            || self.is_off.load(Ordering::Relaxed)
            || self.system.environment.has_crashed()
        {
            return;
        }
        let complaints = self.complaints();
        assert!(complaints.is_empty(), "the kernel was dropped, and {}", complaints.join("; "));
    }
}
