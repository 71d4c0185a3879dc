//! The version of the framework that the driver was built for, and the oldest that it runs with.

use crate::ULONG;

/// The minor version that the driver was built for.
pub const TARGET: ULONG = number(env!("WDK_STANDIN_KMDF_TARGET"));

/// The oldest minor version of KMDF that the driver runs with: `minimum-kmdf-version-minor` in its
/// metadata, or the version that it was built for.
#[allow(non_upper_case_globals, reason = "the name is that of the WDK's headers")]
pub const WdfMinimumVersionRequired: ULONG = number(env!("WDK_STANDIN_KMDF_MINIMUM"));

/// Returns a decimal number that the build script wrote.
const fn number(digits: &str) -> ULONG {
    let digits = digits.as_bytes();
    let mut value = 0;
    let mut at = 0;
    while at < digits.len() {
        value = value * 10 + (digits[at] - b'0') as ULONG;
        at += 1;
    }
    value
}
