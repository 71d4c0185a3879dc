//! Reads, writes, stamps and checks the INF files of driver packages.
//!
//! `stampinf` and `infverif` are part of the WDK. This module replaces them, and also compares the
//! file with the driver.

mod autologger;
mod channel;
mod check;
mod class;
mod diagnostic;
mod encoding;
mod new;
mod read;

pub use autologger::AutoLogger;
pub use channel::{Channel, ChannelKind, ChannelSettings, OwnChannel};
pub use check::{Driver, Framework, Mode, Provider, check};
pub use diagnostic::{Diagnostic, Severity};
pub use encoding::{Encoding, Source};
pub use new::{New, NewError};
pub use read::{Entry, Inf, ReadError, Section};

/// The values that `stampinf` writes to a file.
#[derive(Clone, Debug)]
pub struct Stamp<'a> {
    /// `amd64` or `arm64`.
    pub architecture: &'a str,
    /// The framework's version: `1.31`.
    pub framework: &'a str,
    /// The driver's date: `MM/DD/YYYY`.
    pub date: &'a str,
    /// The driver's version: four numbers.
    pub version: &'a str,
}

impl Stamp<'_> {
    /// Converts the text of a `.inx` file to the text of the `.inf` file.
    #[must_use]
    pub fn apply(&self, inx: &str) -> String {
        let mut inf = String::with_capacity(inx.len());
        for line in inx.split_inclusive('\n') {
            let key = line.split('=').next().unwrap_or_default().trim();
            if key.eq_ignore_ascii_case("DriverVer") {
                let (date, version) = (self.date, self.version);
                inf.extend(["DriverVer   = ", date, ",", version, "\r\n"]);
            } else if line.starts_with(';') {
                // Placeholders in comments stay unchanged.
                inf.push_str(line);
            } else {
                inf.push_str(
                    &line
                        .replace("$ARCH$", self.architecture)
                        .replace("$KMDFVERSION$", self.framework),
                );
            }
        }
        inf
    }
}
