//! The system version.

use crate::{
    execution::routine::{At, routine},
    ground::{NtResult, NtStatus, abi::UnicodeString, opaque::OsVersionInfo},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("RtlGetVersion", get_version),
    routine("PsGetVersion", ps_get_version),
    routine("RtlIsNtDdiVersionAvailable", is_version_available),
    routine("RtlIsServicePackVersionInstalled", is_service_pack_installed),
];

/// The version of this kernel: Windows 10, version 2004, as recorded in traces.
pub const MAJOR: u32 = 10;

pub const MINOR: u32 = 0;

/// The build number that traces record.
pub fn build_number() -> u32 {
    etl_file::LogFileHeader::default().os_build
}

/// `NTDDI_WIN10_VB`.
const DDI_VERSION: u32 = 0x0A00_0008;

/// `VER_SUITE_SINGLEUSERTS` and `VER_NT_WORKSTATION`.
pub const SUITE: u16 = 0x100;

pub const WORKSTATION: u8 = 1;

fn get_version(context: &Context, information: At<OsVersionInfo>) -> NtResult {
    /// `sizeof(OSVERSIONINFOW)` and `sizeof(OSVERSIONINFOEXW)`.
    const PLAIN: u32 = 276;
    const EXTENDED: u32 = 284;
    /// `VER_PLATFORM_WIN32_NT`.
    const PLATFORM: u32 = 2;
    let size: u32 = context.read(information.0);
    if size != PLAIN && size != EXTENDED {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let mut value = Vec::new();
    for number in [size, MAJOR, MINOR, build_number(), PLATFORM] {
        value.extend(number.to_le_bytes());
    }
    value.resize(PLAIN as usize, 0);
    if size == EXTENDED {
        value.extend([0; 4]);
        value.extend(SUITE.to_le_bytes());
        value.extend([WORKSTATION, 0]);
    }
    context.write_bytes(information.0, &value);
    Ok(())
}

/// Stores the version. Returns whether the kernel is a checked build, which is always false.
fn ps_get_version(
    context: &Context,
    major: At<u32>,
    minor: At<u32>,
    build: At<u32>,
    pack: At<UnicodeString>,
) -> bool {
    major.write_optional(context, MAJOR);
    minor.write_optional(context, MINOR);
    build.write_optional(context, build_number());
    if !pack.is_null() {
        // An empty string: length, maximum length and buffer.
        context.write(pack.0, &[0_u64; 2]);
    }
    false
}

const fn is_version_available(_context: &Context, version: u32) -> bool {
    version <= DDI_VERSION
}

/// Returns whether a service pack for the system's own version is installed, which is always false.
const fn is_service_pack_installed(_context: &Context, version: u32) -> bool {
    let is_own = version & 0xFFFF_0000 == DDI_VERSION & 0xFFFF_0000;
    is_own && version & 0xFF00 == 0
}
