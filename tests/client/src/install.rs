//! Installs the driver and its root-enumerated device, as a setup program does.

use std::{
    env,
    path::{Path, PathBuf},
    ptr,
};

use etw_sample_interface::HARDWARE_ID;
use etw_session::{error::Win32Error, process, wide::wide};
use windows_sys::Win32::Devices::DeviceAndDriverInstallation::{
    DiUninstallDriverW, INSTALLFLAG_FORCE, INSTALLFLAG_NONINTERACTIVE, SetupSetNonInteractiveMode,
    UpdateDriverForPlugAndPlayDevicesW,
};

use crate::{
    devices::{Devices, Search, copies_of, succeeded},
    error::Failure,
};

/// True if Windows must be restarted to complete the change.
pub struct Restart(pub bool);

/// Makes the setup functions fail where they would show a dialog: nobody may be there to answer it,
/// and the error says more than the question.
fn never_ask() {
    // SAFETY: the call has no preconditions. The result is the previous mode.
    unsafe { SetupSetNonInteractiveMode(1) };
}

/// Installs the driver package and creates the device if it does not exist.
pub fn install(inf: &Path) -> Result<Restart, Failure> {
    process::require_windows()?;
    never_ask();
    let inf = wide(absolute(inf)?);
    install_with(HARDWARE_ID, &inf, update)
}

/// Creates the device if it does not exist, and installs its driver with `update`. If the
/// installation fails, removes a newly created device, which would otherwise remain without a
/// driver. An existing device keeps its driver.
fn install_with(
    hardware_id: &str,
    inf: &[u16],
    update: impl FnOnce(&str, &[u16]) -> Result<Restart, Win32Error>,
) -> Result<Restart, Failure> {
    let created = if Devices::find(hardware_id, Search::Present)?.is_empty() {
        Some(Devices::create(hardware_id, inf)?)
    } else {
        None
    };
    update(hardware_id, inf).map_err(|error| {
        let removed = created.map_or(Ok(()), |device| device.remove());
        if let Err(error) = removed {
            eprintln!("warning: the new device has no driver and cannot be removed: {error}");
        }
        error.into()
    })
}

/// Installs the driver for all present devices with the hardware ID.
fn update(hardware_id: &str, inf: &[u16]) -> Result<Restart, Win32Error> {
    let hardware_id = wide(hardware_id);
    let mut restart = 0;
    // SAFETY: both strings end with a NUL, and the out-parameter is a local.
    let updated = unsafe {
        UpdateDriverForPlugAndPlayDevicesW(
            ptr::null_mut(),
            hardware_id.as_ptr(),
            inf.as_ptr(),
            INSTALLFLAG_FORCE | INSTALLFLAG_NONINTERACTIVE,
            &raw mut restart,
        )
    };
    succeeded("UpdateDriverForPlugAndPlayDevices", updated)?;
    Ok(Restart(restart != 0))
}

/// Removes the devices, including those that are not present, and the driver package.
pub fn uninstall(inf: &Path) -> Result<Restart, Failure> {
    process::require_windows()?;
    never_ask();
    let inf = absolute(inf)?;
    let folder = windows_infs();
    let devices = Devices::find(HARDWARE_ID, Search::All)?;
    // Windows publishes an INF file under another name, and knows the package only by that name.
    let mut published = copies_of(&inf, &folder)
        .map_err(|error| Failure::Infs { folder: folder.clone(), error })?;
    // The installed version may differ from the file.
    let installed = devices.published_infs();
    published.extend(installed.iter().map(|name| folder.join(name)));
    published.sort_unstable();
    published.dedup_by(|one, other| one.as_os_str().eq_ignore_ascii_case(other.as_os_str()));
    devices.remove()?;
    if published.is_empty() {
        return Err(Failure::NotPublished { inf, folder });
    }
    let mut restart = false;
    for inf in published {
        let inf = wide(inf);
        let mut needed = 0;
        // SAFETY: the path ends with a NUL, and the out-parameter is a local.
        let removed =
            unsafe { DiUninstallDriverW(ptr::null_mut(), inf.as_ptr(), 0, &raw mut needed) };
        succeeded("DiUninstallDriver", removed)?;
        restart |= needed != 0;
    }
    Ok(Restart(restart))
}

/// Returns the folder in which Windows publishes INF files.
fn windows_infs() -> PathBuf {
    let windows = env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    PathBuf::from(windows).join("INF")
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let whole = std::path::absolute(path).ok().filter(|path| path.is_file());
    whole.ok_or_else(|| Failure::NoInf(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use windows_sys::Win32::Foundation::ERROR_FILE_NOT_FOUND;

    use super::*;

    const FAILED: Win32Error =
        Win32Error { call: "UpdateDriverForPlugAndPlayDevices", code: ERROR_FILE_NOT_FOUND };

    /// Installs with an update that fails. Runs only under Wine, because on Windows the test would
    /// change the machine.
    #[test]
    fn a_failed_update_removes_only_the_device_that_it_was_for() {
        const ID: &str = r"Root\WdkEtwTestOfUpdates";
        if env::var_os("WINEPREFIX").is_none() {
            return;
        }
        let folder = env::temp_dir().join(format!("wdk-etw-updates-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let inf = folder.join("sample.inf");
        let text = include_str!("../../../inf/etw_sample_driver.inx").replace("$ARCH$", "amd64");
        std::fs::write(&inf, text).unwrap();
        let inf = wide(inf);
        let find = || Devices::find(ID, Search::All).unwrap();
        find().remove().unwrap();
        // A device that was created for the update is removed.
        let mut existed = false;
        let failed = install_with(ID, &inf, |_, _| {
            existed = !find().is_empty();
            Err(FAILED)
        });
        assert!(matches!(failed, Err(Failure::Win32(error)) if error == FAILED));
        assert!(existed);
        assert!(find().is_empty());
        // A device from an earlier installation stays, and no second device is created.
        assert!(install_with(ID, &inf, |_, _| Ok(Restart(false))).is_ok());
        let node = find().first_node();
        assert!(node.is_some());
        assert!(install_with(ID, &inf, |_, _| Err(FAILED)).is_err());
        assert!(!find().is_empty());
        find().remove().unwrap();
    }
}
