//! The version of Windows.

use std::ptr;

use etw_probes::System;
use etw_session::{error::Win32Error, wide::wide};
use windows_sys::{
    Wdk::System::SystemServices::RtlGetVersion,
    Win32::System::{
        Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_DWORD, RegGetValueW},
        SystemInformation::OSVERSIONINFOW,
    },
};

use crate::error::Failure;

/// Returns the revision of the build (UBR), which updates increase.
fn revision() -> Result<u32, Win32Error> {
    let key = wide(r"SOFTWARE\Microsoft\Windows NT\CurrentVersion");
    let name = wide("UBR");
    let mut revision = 0_u32;
    let mut size = 4;
    // SAFETY: the names end with a NUL, and the buffer has the given size.
    let code = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            name.as_ptr(),
            RRF_RT_REG_DWORD,
            ptr::null_mut(),
            (&raw mut revision).cast(),
            &raw mut size,
        )
    };
    Win32Error::check("RegGetValue of UBR", code)?;
    Ok(revision)
}

/// Returns the running Windows with its build, such as `10.0.26100.1742`.
pub fn system() -> Result<System, Failure> {
    let mut version = OSVERSIONINFOW {
        dwOSVersionInfoSize: u32::try_from(size_of::<OSVERSIONINFOW>()).unwrap_or(0),
        ..OSVERSIONINFOW::default()
    };
    // SAFETY: the structure contains its size. The routine always succeeds.
    unsafe { RtlGetVersion(&raw mut version) };
    Ok(System {
        name: "Windows".to_owned(),
        build: format!(
            "{}.{}.{}.{}",
            version.dwMajorVersion,
            version.dwMinorVersion,
            version.dwBuildNumber,
            revision()?
        ),
        architecture: std::env::consts::ARCH.to_owned(),
    })
}
