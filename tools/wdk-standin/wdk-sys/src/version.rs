//! The framework version for which the driver was built, and the oldest one that it works with.

use crate::ULONG;

/// The minor version for which the driver was built.
pub const TARGET: ULONG = number(env!("WDK_STANDIN_KMDF_TARGET"));

/// The oldest KMDF minor version with which the driver works: `minimum-kmdf-version-minor` in its
/// metadata, or the version for which it was built.
#[allow(non_upper_case_globals, reason = "the WDK's headers define the name")]
pub const WdfMinimumVersionRequired: ULONG = number(env!("WDK_STANDIN_KMDF_MINIMUM"));

/// Parses a decimal number that the build script wrote.
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
