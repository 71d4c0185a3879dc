//! The driver that a file is checked against, and the diagnostics of a check.

use std::{collections::BTreeSet, fmt, ops::RangeInclusive};

use super::mode::{Mode, Rule};
use crate::inf::{
    autologger::AutoLogger,
    channel::Channel,
    diagnostic::{Diagnostic, Severity},
    read::{Entry, Inf, Section, number},
};

/// The driver that an INF file should install, according to its image, declaration and Cargo
/// metadata. Rules about unknown values are skipped.
#[derive(Clone, Debug, Default)]
pub struct Driver {
    /// The image's file name.
    pub image: String,
    /// The hardware ID that the file must list.
    pub hardware_id: Option<String>,
    /// The framework's version.
    pub framework: Option<Framework>,
    /// True if the driver uses no framework (WDM).
    pub is_wdm: bool,
    /// True if the driver adds devices: it has an `EvtDriverDeviceAdd`, or an `AddDevice` routine.
    pub adds_devices: Option<bool>,
    /// The driver's providers.
    pub providers: Option<Vec<Provider>>,
    /// The security descriptor that the driver assigns to its device.
    pub sddl: Option<String>,
}

/// The KMDF version for which a driver is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framework {
    /// The major version.
    pub major: u32,
    /// The oldest minor version with which the driver works.
    pub minimum: u32,
    /// The minor version that the driver is built for.
    pub target: u32,
}

impl Framework {
    /// Returns the first Windows build on which the driver can run: the first with this framework
    /// version and `ExAllocatePool2`.
    #[must_use]
    pub const fn oldest_build(self) -> u32 {
        // KMDF 1.33 came with Windows Server 2022.
        const SERVER_2022: u32 = 20348;
        if self.minimum > 31 { SERVER_2022 } else { OLDEST_BUILD }
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.target)
    }
}

/// An ETW provider of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The GUID, without braces.
    pub guid: String,
    /// The name.
    pub name: String,
    /// True if decoders need the resources in the driver's image, because the provider has
    /// manifest-based events.
    pub has_resources: bool,
    /// The event log channels to which the provider writes, in manifest order.
    pub channels: Vec<Channel>,
    /// The source of the channels, in messages: `its declaration`, or the name of a manifest.
    pub described_by: String,
    /// The session that the file adds for the provider.
    pub autologger: Option<AutoLogger>,
}

/// The oldest Windows build that a file should specify: the first with `ExAllocatePool2`, which
/// wdk-alloc calls.
pub const OLDEST_BUILD: u32 = 19041;
/// The first build that supports `AddAutoLogger`: Windows 11.
pub const WINDOWS_11: u32 = 22000;

/// A check in progress.
pub(super) struct Check<'a> {
    pub(super) inf: &'a Inf,
    pub(super) driver: &'a Driver,
    pub(super) mode: Mode,
    /// The installed image, as the file names it.
    pub(super) binary: String,
    /// The install sections found so far.
    pub(super) installs: BTreeSet<String>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl<'a> Check<'a> {
    pub(super) fn report(&mut self, line: impl Into<Option<usize>>, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic {
            severity: Severity::Error,
            line: line.into(),
            message: message.into(),
        });
    }

    pub(super) fn warning(&mut self, line: impl Into<Option<usize>>, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic {
            severity: Severity::Warning,
            line: line.into(),
            message: message.into(),
        });
    }

    /// Reports a violation of a rule if the mode has the rule.
    pub(super) fn judge(&mut self, rule: &Rule, line: impl Into<Option<usize>>, message: &str) {
        if let Some(severity) = rule.severity(self.mode) {
            let message = format!("{message} (infverif {})", rule.code);
            self.diagnostics.push(Diagnostic { severity, line: line.into(), message });
        }
    }

    /// Checks that each entry of a section has a key of the list, and a number in the key's range.
    pub(super) fn settings(
        &mut self,
        section: &Section,
        of: &str,
        known: &[(&str, Option<RangeInclusive<u64>>)],
    ) {
        for setting in &section.entries {
            let key = setting.key.as_deref().unwrap_or_default();
            let found = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(key));
            let Some((key, range)) = found else {
                let known: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
                let (name, known) = (&section.name, known.join(", "));
                self.report(
                    setting.line,
                    format!("[{name}] is the section of {of} and has {key}; known: {known}"),
                );
                continue;
            };
            let value = setting.value(0);
            if let Some(range) = range
                && !number(value).is_some_and(|it| range.contains(&it))
            {
                let (least, most) = (range.start(), range.end());
                self.report(
                    setting.line,
                    format!("{key} is {value:?}; expected a number from {least} to {most}"),
                );
            }
        }
    }

    /// Adds a diagnostic unless the first entry with the key has this value.
    pub(super) fn must_be(&mut self, section: &str, key: &str, wanted: &str) {
        match self.inf.entry(section, key) {
            Some(entry) if entry.value(0).eq_ignore_ascii_case(wanted) => {}
            Some(entry) => {
                let found = match entry.value(0) {
                    "" => "empty",
                    found => found,
                };
                self.report(entry.line, format!("{key} is {found}; expected {wanted}"));
            }
            None => self.report(None, format!("[{section}] has no {key}; add `{key} = {wanted}`")),
        }
    }

    /// Returns the section that an entry refers to; reports missing sections.
    pub(super) fn reach(&mut self, entry: &Entry, name: &str) -> Option<&'a Section> {
        let found = self.inf.section(name);
        if found.is_none() {
            self.report(entry.line, format!("the section [{name}] is missing"));
        }
        found
    }
}

/// Returns a section's entries with this key.
pub(super) fn entries<'s>(section: &'s Section, key: &str) -> impl Iterator<Item = &'s Entry> {
    let has_key = move |entry: &&Entry| {
        let found = entry.key.as_deref();
        found.is_some_and(|found| found.eq_ignore_ascii_case(key))
    };
    section.entries.iter().filter(has_key)
}
