//! Queries about the framework's version.

use crate::{
    execution::routine::{At, Handle, routine},
    ground::{NtResult, abi::VersionAvailableParameters},
    services::kmdf::{
        binding::DriverData,
        object::string::assign,
        state::{
            framework::{Context, Entries},
            text::TextData,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfDriverIsVersionAvailable", is_version_available),
    routine("WdfDriverRetrieveVersionString", retrieve_version_string),
    routine("WdfVerifierDbgBreakPoint", break_point),
];

/// The version of the framework that the stand-in kernel implements.
pub const VERSION: (u32, u32) = (1, 33);

/// The build number of the framework in Windows 11, which has this version.
const BUILD: u32 = 22000;

fn is_version_available(
    context: &Context,
    driver: Handle<DriverData>,
    parameters: At<VersionAvailableParameters>,
) -> bool {
    driver.check(context);
    let wanted = parameters.read(context);
    let (major, minor) = VERSION;
    wanted.size as usize == size_of::<VersionAvailableParameters>()
        && wanted.major_version == major
        && wanted.minor_version <= minor
}

fn retrieve_version_string(
    context: &Context,
    driver: Handle<DriverData>,
    string: Handle<TextData>,
) -> NtResult {
    driver.check(context);
    string.check(context);
    let (major, minor) = VERSION;
    let text = format!("Kernel Mode Driver Framework version {major}.{minor}.{BUILD}");
    assign(context, string.0, &text)
}

/// Does nothing. On Windows, the routine breaks into a debugger only if the framework's verifier is
/// enabled for the driver and configured to do so.
const fn break_point(_context: &Context) {}
