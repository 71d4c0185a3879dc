//! Starts and stops the sample driver's device, which loads and unloads the driver.

use std::{
    ptr, thread,
    time::{Duration, Instant},
};

use windows_sys::Win32::{
    Devices::DeviceAndDriverInstallation::{
        CM_DISABLE_UI_NOT_OK, CM_Disable_DevNode, CM_Enable_DevNode, CM_GETIDLIST_FILTER_SERVICE,
        CM_Get_Device_ID_List_SizeW, CM_Get_Device_ID_ListW, CM_LOCATE_DEVNODE_PHANTOM,
        CM_Locate_DevNodeW, CM_MapCrToWin32Err, CONFIGRET, CR_SUCCESS,
    },
    Foundation::ERROR_GEN_FAILURE,
    System::Services::{
        CloseServiceHandle, OpenSCManagerW, OpenServiceW, QueryServiceStatus, SC_MANAGER_CONNECT,
        SERVICE_QUERY_STATUS, SERVICE_STATUS, SERVICE_STOPPED,
    },
};

use crate::{
    device,
    error::{Failure, Win32Error},
    wide::{list, wide},
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

/// Returns the first device, started or stopped, whose driver is the sample driver.
fn locate() -> Result<u32, Failure> {
    let service = wide(SERVICE);
    let mut length = 0;
    // SAFETY: the filter ends with a NUL, and the out-parameter is a local.
    let found = unsafe {
        CM_Get_Device_ID_List_SizeW(
            &raw mut length,
            service.as_ptr(),
            CM_GETIDLIST_FILTER_SERVICE,
        )
    };
    check("CM_Get_Device_ID_List_Size", found).map_err(|_| Failure::NoDevice)?;
    let mut units = vec![0; length as usize];
    // SAFETY: as above; the length is the size of the buffer.
    let found = unsafe {
        CM_Get_Device_ID_ListW(
            service.as_ptr(),
            units.as_mut_ptr(),
            length,
            CM_GETIDLIST_FILTER_SERVICE,
        )
    };
    check("CM_Get_Device_ID_List", found).map_err(|_| Failure::NoDevice)?;
    let id = list(&units).into_iter().next().ok_or(Failure::NoDevice)?;
    let id = wide(id);
    let mut node = 0;
    // SAFETY: the id ends with a NUL, and the out-parameter is a local.
    let located =
        unsafe { CM_Locate_DevNodeW(&raw mut node, id.as_ptr(), CM_LOCATE_DEVNODE_PHANTOM) };
    check("CM_Locate_DevNode", located)?;
    Ok(node)
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

/// Waits until `condition` returns true; `what` describes the failure if that takes too long.
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
    // SAFETY: the node was located.
    check("CM_Enable_DevNode", unsafe { CM_Enable_DevNode(node, 0) })?;
    wait_until("the device did not start", || {
        Ok(!device::paths().is_empty())
    })
}

/// Stops the device until it is started again, which unloads the driver.
pub fn stop() -> Result<(), Failure> {
    let node = locate()?;
    // SAFETY: the node was located.
    let disabled = unsafe { CM_Disable_DevNode(node, CM_DISABLE_UI_NOT_OK) };
    check("CM_Disable_DevNode", disabled)?;
    wait_until("the driver was not unloaded", || Ok(!is_loaded()?))
}
