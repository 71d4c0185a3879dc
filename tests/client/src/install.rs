//! Installs the driver and its root-enumerated device, as a setup program does.

use std::{path::Path, ptr};

use etw_sample_interface::HARDWARE_ID;
use windows_sys::{
    Win32::{
        Devices::DeviceAndDriverInstallation::{
            DICD_GENERATE_ID, DIF_REGISTERDEVICE, DIF_REMOVE, DIGCF_ALLCLASSES, DiUninstallDriverW,
            HDEVINFO, INSTALLFLAG_FORCE, SP_DEVINFO_DATA, SPDRP_HARDWAREID,
            SetupDiCallClassInstaller, SetupDiCreateDeviceInfoList, SetupDiCreateDeviceInfoW,
            SetupDiDestroyDeviceInfoList, SetupDiEnumDeviceInfo, SetupDiGetClassDevsW,
            SetupDiGetDeviceRegistryPropertyW, SetupDiGetINFClassW,
            SetupDiSetDeviceRegistryPropertyW, UpdateDriverForPlugAndPlayDevicesW,
        },
        Foundation::INVALID_HANDLE_VALUE,
    },
    core::GUID,
};

use crate::{
    error::{Failure, Win32Error},
    process,
    wide::{list, wide},
};

/// A device information set, which is destroyed when this value is dropped.
struct Devices(HDEVINFO);

impl Devices {
    fn of(call: &'static str, set: HDEVINFO) -> Result<Self, Win32Error> {
        if set == INVALID_HANDLE_VALUE as HDEVINFO {
            return Err(Win32Error::last(call));
        }
        Ok(Self(set))
    }

    /// Calls the class installer for a device.
    fn call_installer(&self, function: u32, device: &SP_DEVINFO_DATA) -> Result<(), Win32Error> {
        // SAFETY: the set is open, and the device is in it.
        let done = unsafe { SetupDiCallClassInstaller(function, self.0, device) };
        succeeded("SetupDiCallClassInstaller", done)
    }

    /// Returns true if a device of the set has the sample device's hardware id.
    fn is_sample(&self, device: &SP_DEVINFO_DATA) -> bool {
        const UNITS: usize = 512;
        let mut ids = [0_u16; UNITS];
        // SAFETY: the set is open, the device is in it, and the buffer is as large as the given
        // size.
        let found = unsafe {
            SetupDiGetDeviceRegistryPropertyW(
                self.0,
                device,
                SPDRP_HARDWAREID,
                ptr::null_mut(),
                ids.as_mut_ptr().cast(),
                bytes(&ids),
                ptr::null_mut(),
            )
        };
        found != 0
            && list(&ids)
                .iter()
                .any(|id| id.eq_ignore_ascii_case(HARDWARE_ID))
    }

    /// Returns the sample devices in the set.
    fn samples(&self) -> Vec<SP_DEVINFO_DATA> {
        let mut found = Vec::new();
        for member in 0.. {
            let mut device = empty_device();
            // SAFETY: the set is open, and the structure contains its size.
            if unsafe { SetupDiEnumDeviceInfo(self.0, member, &raw mut device) } == 0 {
                break;
            }
            if self.is_sample(&device) {
                found.push(device);
            }
        }
        found
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        // SAFETY: this value owns the set.
        unsafe { SetupDiDestroyDeviceInfoList(self.0) };
    }
}

fn succeeded(call: &'static str, result: i32) -> Result<(), Win32Error> {
    if result == 0 {
        return Err(Win32Error::last(call));
    }
    Ok(())
}

/// Returns the size in bytes.
fn bytes(units: &[u16]) -> u32 {
    u32::try_from(size_of_val(units)).unwrap_or(u32::MAX)
}

fn empty_device() -> SP_DEVINFO_DATA {
    SP_DEVINFO_DATA {
        cbSize: u32::try_from(size_of::<SP_DEVINFO_DATA>()).unwrap_or(0),
        ..SP_DEVINFO_DATA::default()
    }
}

/// Returns all root-enumerated devices.
fn root_devices() -> Result<Devices, Win32Error> {
    let enumerator = wide("ROOT");
    // SAFETY: the enumerator's name ends with a NUL; null means every class.
    let set = unsafe {
        SetupDiGetClassDevsW(
            ptr::null(),
            enumerator.as_ptr(),
            ptr::null_mut(),
            DIGCF_ALLCLASSES,
        )
    };
    Devices::of("SetupDiGetClassDevs", set)
}

/// Creates the device, without a driver, in the class that the INF names.
fn create_device(inf: &[u16]) -> Result<(), Win32Error> {
    const NAME_UNITS: usize = 32;
    let mut class = GUID::from_u128(0);
    let mut name = [0_u16; NAME_UNITS];
    // SAFETY: the path ends with a NUL, and the name's buffer has as many units as the given size.
    let found = unsafe {
        SetupDiGetINFClassW(
            inf.as_ptr(),
            &raw mut class,
            name.as_mut_ptr(),
            u32::try_from(NAME_UNITS).unwrap_or(0),
            ptr::null_mut(),
        )
    };
    succeeded("SetupDiGetINFClass", found)?;
    // SAFETY: the class's GUID is a local.
    let set = unsafe { SetupDiCreateDeviceInfoList(&raw const class, ptr::null_mut()) };
    let devices = Devices::of("SetupDiCreateDeviceInfoList", set)?;
    let mut device = empty_device();
    // SAFETY: the set is open, the name ends with a NUL, and the structure contains its size.
    let made = unsafe {
        SetupDiCreateDeviceInfoW(
            devices.0,
            name.as_ptr(),
            &raw const class,
            ptr::null(),
            ptr::null_mut(),
            DICD_GENERATE_ID,
            &raw mut device,
        )
    };
    succeeded("SetupDiCreateDeviceInfo", made)?;
    // A list of strings (REG_MULTI_SZ) ends with an empty string.
    let mut ids = wide(HARDWARE_ID);
    ids.push(0);
    // SAFETY: the set is open, the device is in it, and the list is as long as the given size.
    let set = unsafe {
        SetupDiSetDeviceRegistryPropertyW(
            devices.0,
            &raw mut device,
            SPDRP_HARDWAREID,
            ids.as_ptr().cast(),
            bytes(&ids),
        )
    };
    succeeded("SetupDiSetDeviceRegistryProperty", set)?;
    devices.call_installer(DIF_REGISTERDEVICE, &device)
}

/// True if Windows must be restarted to complete the change.
pub struct Restart(pub bool);

/// Installs the driver package and creates the device if it does not exist.
pub fn install(inf: &Path) -> Result<Restart, Failure> {
    process::require_windows()?;
    let inf = absolute(inf)?;
    if root_devices()?.samples().is_empty() {
        create_device(&inf)?;
    }
    let hardware_id = wide(HARDWARE_ID);
    let mut restart = 0;
    // SAFETY: both strings end with a NUL, and the out-parameter is a local.
    let updated = unsafe {
        UpdateDriverForPlugAndPlayDevicesW(
            ptr::null_mut(),
            hardware_id.as_ptr(),
            inf.as_ptr(),
            INSTALLFLAG_FORCE,
            &raw mut restart,
        )
    };
    let result = succeeded("UpdateDriverForPlugAndPlayDevices", updated);
    if let Err(error) = result {
        // Otherwise the new device would remain without a driver.
        remove_devices()?;
        return Err(error.into());
    }
    Ok(Restart(restart != 0))
}

fn remove_devices() -> Result<(), Win32Error> {
    let devices = root_devices()?;
    for device in devices.samples() {
        devices.call_installer(DIF_REMOVE, &device)?;
    }
    Ok(())
}

/// Removes the device and the driver package.
pub fn uninstall(inf: &Path) -> Result<Restart, Failure> {
    process::require_windows()?;
    let inf = absolute(inf)?;
    remove_devices()?;
    let mut restart = 0;
    // SAFETY: the path ends with a NUL, and the out-parameter is a local.
    let removed = unsafe { DiUninstallDriverW(ptr::null_mut(), inf.as_ptr(), 0, &raw mut restart) };
    succeeded("DiUninstallDriver", removed)?;
    Ok(Restart(restart != 0))
}

fn absolute(path: &Path) -> Result<Vec<u16>, Failure> {
    let whole = std::path::absolute(path).ok().filter(|path| path.is_file());
    whole
        .map(wide)
        .ok_or_else(|| Failure::NoInf(path.to_owned()))
}
