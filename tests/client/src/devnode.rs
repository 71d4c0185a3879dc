//! Starts and stops the sample driver's device, which loads and unloads the driver.

use std::{
    ptr, thread,
    time::{Duration, Instant},
};

use windows_sys::Win32::{
    Devices::DeviceAndDriverInstallation::{
        CM_DISABLE_UI_NOT_OK, CM_Disable_DevNode, CM_Enable_DevNode, CM_MapCrToWin32Err, CONFIGRET,
        CR_SUCCESS,
    },
    Foundation::ERROR_GEN_FAILURE,
    System::Services::{
        CloseServiceHandle, OpenSCManagerW, OpenServiceW, QueryServiceStatus, SC_MANAGER_CONNECT,
        SERVICE_QUERY_STATUS, SERVICE_STATUS, SERVICE_STOPPED,
    },
};

use etw_sample_interface::HARDWARE_ID;
use etw_session::{error::Win32Error, wide::wide};

use crate::{
    device,
    devices::{Devices, Search},
    error::Failure,
};

/// The name of the driver's service in its INF.
pub use etw_sample_interface::SERVICE;

/// The time within which the driver must load or unload.
const TIMEOUT: Duration = Duration::from_secs(15);

fn check(call: &'static str, result: CONFIGRET) -> Result<(), Win32Error> {
    if result == CR_SUCCESS {
        return Ok(());
    }
    // SAFETY: the call has no preconditions.
    let code = unsafe { CM_MapCrToWin32Err(result, ERROR_GEN_FAILURE) };
    Err(Win32Error { call, code })
}

/// Returns the device node of the first sample device, started or disabled.
fn locate() -> Result<u32, Failure> {
    let present = Devices::find(HARDWARE_ID, Search::Present)?;
    if let Some(node) = present.first_node() {
        return Ok(node);
    }
    if Devices::find(HARDWARE_ID, Search::All)?.is_empty() {
        Err(Failure::NoDevice)
    } else {
        Err(Failure::NotPresent)
    }
}

/// Returns true if the driver is loaded.
pub fn is_loaded() -> Result<bool, Win32Error> {
    // SAFETY: null means this machine and its active services database.
    let manager = unsafe { OpenSCManagerW(ptr::null(), ptr::null(), SC_MANAGER_CONNECT) };
    if manager.is_null() {
        return Err(Win32Error::last("OpenSCManager"));
    }
    let name = wide(SERVICE);
    // SAFETY: the name ends with a NUL.
    let service = unsafe { OpenServiceW(manager, name.as_ptr(), SERVICE_QUERY_STATUS) };
    let result = if service.is_null() {
        Err(Win32Error::last("OpenService for the sample driver"))
    } else {
        let mut status = SERVICE_STATUS::default();
        // SAFETY: the service is open, and the out-parameter is a local.
        let found = unsafe { QueryServiceStatus(service, &raw mut status) };
        let result = if found == 0 {
            Err(Win32Error::last("QueryServiceStatus"))
        } else {
            Ok(status.dwCurrentState != SERVICE_STOPPED)
        };
        // SAFETY: the handle was opened above.
        unsafe { CloseServiceHandle(service) };
        result
    };
    // SAFETY: the handle was opened above.
    unsafe { CloseServiceHandle(manager) };
    result
}

/// Waits until `condition` returns true. If this takes too long, `what` describes the failure.
fn wait_until(
    what: &'static str,
    condition: impl Fn() -> Result<bool, Win32Error>,
) -> Result<(), Failure> {
    const STEP: Duration = Duration::from_millis(20);
    let end = Instant::now() + TIMEOUT;
    while !condition()? {
        if Instant::now() > end {
            return Err(etw_scenarios::HostError {
                what: format!("{what} within {} seconds", TIMEOUT.as_secs()),
                code: None,
            }
            .into());
        }
        thread::sleep(STEP);
    }
    Ok(())
}

/// Starts the device, which loads the driver.
pub fn start() -> Result<(), Failure> {
    let node = locate()?;
    // SAFETY: the device is registered.
    check("CM_Enable_DevNode", unsafe { CM_Enable_DevNode(node, 0) })?;
    wait_until("the device did not start", || Ok(!device::paths().is_empty()))
}

/// Stops the device until it is started again, which unloads the driver.
pub fn stop() -> Result<(), Failure> {
    let node = locate()?;
    // SAFETY: the device is registered.
    let disabled = unsafe { CM_Disable_DevNode(node, CM_DISABLE_UI_NOT_OK) };
    check("CM_Disable_DevNode", disabled)?;
    wait_until("the driver was not unloaded", || Ok(!is_loaded()?))
}
