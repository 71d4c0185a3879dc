//! What a driver asks about the framework itself.

use super::{
    driver::DriverData,
    state::{
        framework::{Context, Entries},
        text::TextData,
    },
    text_routines::assign,
};
use crate::{execution::routine::Routine, ground::framework_abi::VersionAvailableParameters};

pub const ENTRIES: Entries = &[
    ("WdfDriverIsVersionAvailable", Routine::Three(is_version_available)),
    ("WdfDriverRetrieveVersionString", Routine::Three(retrieve_version_string)),
    ("WdfVerifierDbgBreakPoint", Routine::One(break_point)),
];

/// The version of the framework that the stand-in kernel plays.
pub const VERSION: (u32, u32) = (1, 33);

/// The build number of the framework of Windows 11, which reports this version.
const BUILD: u32 = 22000;

fn is_version_available(context: &Context, _globals: u64, driver: u64, parameters: u64) -> u64 {
    context.with::<DriverData, _>(driver, |_| ());
    let wanted: VersionAvailableParameters = context.read(parameters);
    let (major, minor) = VERSION;
    u64::from(
        wanted.size as usize == size_of::<VersionAvailableParameters>()
            && wanted.major_version == major
            && wanted.minor_version <= minor,
    )
}

fn retrieve_version_string(context: &Context, _globals: u64, driver: u64, string: u64) -> u64 {
    context.with::<DriverData, _>(driver, |_| ());
    context.with::<TextData, _>(string, |_| ());
    let (major, minor) = VERSION;
    let text = format!("Kernel Mode Driver Framework version {major}.{minor}.{BUILD}");
    assign(context, string, &text).to_register()
}

/// Does nothing: on Windows, it breaks into a debugger only where the framework's verifier is on for
/// the driver and asks for that.
const fn break_point(_context: &Context, _globals: u64) -> u64 {
    0
}
