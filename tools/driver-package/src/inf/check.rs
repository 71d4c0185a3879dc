//! The rules of a driver package's INF file.
//!
//! The rules are those of `infverif /w` that a KMDF driver's file can break, by their numbers, and
//! the rule that the file installs this driver. `docs/reference/driver-packaging.md` has the sources.

use std::collections::BTreeSet;

use super::read::{Entry, Inf, Section};

/// The driver that an INF file installs, as the driver's image and declaration describe it.
#[derive(Clone, Debug)]
pub struct Driver {
    /// The image's file name.
    pub image: String,
    /// The service's name.
    pub service: String,
    /// The device's hardware id.
    pub hardware_id: String,
    /// The framework's version that the image binds to.
    pub framework: (u32, u32),
    /// The provider's GUID.
    pub provider: String,
    /// The provider's name.
    pub provider_name: String,
    /// The security descriptor that the driver gives its device.
    pub sddl: String,
}

/// The oldest build of Windows that a file may name: `ExAllocatePool2` came with it.
const OLDEST_BUILD: u32 = 19041;

/// Microsoft's setup class "System".
const SYSTEM_CLASS: &str = "{4d36e97d-e325-11ce-bfc1-08002be10318}";

/// Entries whose first value names sections.
const LISTS_OF_SECTIONS: [&str; 2] = ["CopyFiles", "AddReg"];

struct Check<'a> {
    inf: &'a Inf,
    driver: &'a Driver,
    /// The names of the sections that something refers to, in lower case.
    reached: BTreeSet<String>,
    findings: Vec<String>,
}

/// Checks a stamped file, and returns a sentence with a line number for each rule that it breaks.
#[must_use]
pub fn check(inf: &Inf, driver: &Driver) -> Vec<String> {
    let mut check = Check {
        inf,
        driver,
        reached: ["Version", "DestinationDirs", "SourceDisksNames", "Strings"]
            .into_iter()
            .chain(["SourceDisksFiles", "Manufacturer"])
            .map(str::to_ascii_lowercase)
            .collect(),
        findings: Vec::new(),
    };
    check.version();
    check.files();
    check.models();
    check.registry();
    check.leftovers();
    check.findings
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4 && parts.iter().all(|part| part.parse::<u16>().is_ok())
}

/// Returns whether a string has the form `MM/DD/YYYY`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    let in_range = |text: &str, length, range: std::ops::RangeInclusive<u32>| {
        text.len() == length && text.parse().is_ok_and(|number| range.contains(&number))
    };
    match parts.as_slice() {
        [month, day, year] => {
            in_range(month, 2, 1..=12) && in_range(day, 2, 1..=31) && in_range(year, 4, 2000..=9999)
        }
        _ => false,
    }
}

impl<'a> Check<'a> {
    fn finding(&mut self, line: usize, what: impl AsRef<str>) {
        self.findings
            .push(format!("line {line}: {}", what.as_ref()));
    }

    /// Adds a finding unless the first entry with the key has the expected value.
    fn must_be(&mut self, section: &str, key: &str, wanted: &str) {
        match self.inf.entry(section, key) {
            Some(entry) if entry.value(0).eq_ignore_ascii_case(wanted) => {}
            Some(entry) => self.finding(
                entry.line,
                format!("{key} is {}; expected {wanted}", entry.value(0)),
            ),
            None => self
                .findings
                .push(format!("[{section}] has no {key}; add `{key} = {wanted}`")),
        }
    }

    /// Returns the section that an entry refers to; a missing section is a finding.
    fn reach(&mut self, entry: &Entry, name: &str) -> Option<&'a Section> {
        self.reached.insert(name.to_ascii_lowercase());
        let found = self.inf.section(name);
        if found.is_none() {
            self.finding(entry.line, format!("the section [{name}] is missing"));
        }
        found
    }

    fn version(&mut self) {
        self.must_be("Version", "Signature", "$WINDOWS NT$");
        self.must_be("Version", "PnpLockdown", "1");
        self.must_be("Version", "Class", "System");
        self.must_be("Version", "ClassGuid", SYSTEM_CLASS);
        for section in self.inf.sections() {
            if section
                .name
                .to_ascii_lowercase()
                .starts_with("classinstall32")
            {
                self.finding(
                    section.line,
                    "the class System installs itself; remove [ClassInstall32] (infverif 1285)",
                );
            }
        }
        match self.inf.value("Version", "Provider") {
            None | Some("") => self.findings.push("[Version] has no Provider".to_owned()),
            Some(provider) if provider.to_ascii_lowercase().contains("microsoft") => {
                self.findings.push(
                    "[Version] names Microsoft as the provider; name your company (infverif 1204)"
                        .to_owned(),
                );
            }
            Some(_) => {}
        }
        let catalog = format!("{}.cat", self.driver.service);
        self.must_be("Version", "CatalogFile", &catalog);
        match self.inf.entry("Version", "DriverVer") {
            Some(entry) => {
                if !is_date(entry.value(0)) || !is_version(entry.value(1)) {
                    self.finding(
                        entry.line,
                        "DriverVer is not in the form MM/DD/YYYY,A.B.C.D",
                    );
                }
            }
            None => self.findings.push("[Version] has no DriverVer".to_owned()),
        }
    }

    fn files(&mut self) {
        self.must_be("DestinationDirs", "DefaultDestDir", "13");
        let Some(files) = self.inf.section("SourceDisksFiles") else {
            self.findings
                .push("the section [SourceDisksFiles] is missing".to_owned());
            return;
        };
        for file in &files.entries {
            if self.inf.entry("SourceDisksNames", file.value(0)).is_none() {
                self.finding(
                    file.line,
                    format!("[SourceDisksNames] has no disk {}", file.value(0)),
                );
            }
        }
        let image = &self.driver.image;
        if self.inf.entry("SourceDisksFiles", image).is_none() {
            self.finding(
                files.line,
                format!("[SourceDisksFiles] does not list {image}"),
            );
        }
    }

    fn models(&mut self) {
        let Some(manufacturer) = self.inf.section("Manufacturer") else {
            self.findings
                .push("the section [Manufacturer] is missing".to_owned());
            return;
        };
        for entry in &manufacturer.entries {
            let models = entry.value(0);
            if entry.values.len() < 2 {
                self.finding(
                    entry.line,
                    "the TargetOSVersion is missing; write NT$ARCH$.10.0...19041",
                );
            }
            for decoration in entry.values.iter().skip(1) {
                let parts: Vec<&str> = decoration.split('.').collect();
                let build = parts.last().and_then(|build| build.parse().ok());
                let architecture = parts.first().copied().unwrap_or_default();
                if !["ntamd64", "ntarm64"].contains(&architecture.to_ascii_lowercase().as_str()) {
                    self.finding(entry.line, format!("{architecture} is not a supported architecture; expected NTamd64 or NTarm64"));
                }
                if parts.len() != 6 || build.is_none_or(|build: u32| build < OLDEST_BUILD) {
                    self.finding(
                        entry.line,
                        format!(
                            "{decoration} is too old: the oldest supported build is {OLDEST_BUILD}"
                        ),
                    );
                }
                if let Some(section) = self.reach(entry, &format!("{models}.{decoration}")) {
                    for model in &section.entries {
                        self.model(model, architecture);
                    }
                }
            }
        }
    }

    fn model(&mut self, model: &Entry, architecture: &str) {
        if !model
            .value(1)
            .eq_ignore_ascii_case(&self.driver.hardware_id)
        {
            self.finding(
                model.line,
                format!(
                    "the hardware id is {}; the driver's is {}",
                    model.value(1),
                    self.driver.hardware_id
                ),
            );
        }
        let install = format!("{}.{architecture}", model.value(0));
        let Some(section) = self.reach(model, &install) else {
            return;
        };
        self.lists(section);
        let copied: Vec<&Entry> = section
            .entries
            .iter()
            .filter(|entry| entry.key.as_deref() == Some("CopyFiles"))
            .flat_map(|entry| &entry.values)
            .filter_map(|name| self.inf.section(name))
            .flat_map(|section| &section.entries)
            .collect();
        for file in &copied {
            if self.inf.entry("SourceDisksFiles", file.value(0)).is_none() {
                self.finding(
                    file.line,
                    format!("[SourceDisksFiles] does not list {}", file.value(0)),
                );
            }
        }
        if !copied
            .iter()
            .any(|file| file.value(0).eq_ignore_ascii_case(&self.driver.image))
        {
            self.finding(
                section.line,
                format!("no CopyFiles section copies {}", self.driver.image),
            );
        }
        for (suffix, rule) in [
            ("HW", Self::hardware as fn(&mut Self, &'a Section)),
            ("Services", Self::services),
            ("Wdf", Self::framework),
            ("Events", Self::events),
        ] {
            if let Some(section) = self.reach(model, &format!("{install}.{suffix}")) {
                rule(self, section);
            }
        }
        let old = format!("{install}.CoInstallers");
        if self.inf.section(&old).is_some() {
            self.finding(
                model.line,
                "co-installers are no longer supported (infverif 1303)",
            );
        }
    }

    /// Follows the entries of a section that list other sections.
    fn lists(&mut self, section: &Section) {
        for entry in &section.entries {
            let key = entry.key.as_deref().unwrap_or_default();
            if LISTS_OF_SECTIONS
                .iter()
                .any(|list| list.eq_ignore_ascii_case(key))
            {
                for name in &entry.values {
                    // With an at sign it is a file's name.
                    if !name.starts_with('@') {
                        self.reach(entry, name);
                    }
                }
            }
        }
    }

    fn hardware(&mut self, section: &'a Section) {
        self.lists(section);
        let security = section
            .entries
            .iter()
            .flat_map(|entry| &entry.values)
            .filter_map(|name| self.inf.section(name))
            .flat_map(|section| &section.entries)
            .find(|entry| entry.value(2).eq_ignore_ascii_case("Security"));
        match security {
            Some(entry) if entry.value(4) == self.driver.sddl => {}
            Some(entry) => self.finding(
                entry.line,
                format!(
                    "the device's security descriptor is {}; the driver sets {}",
                    entry.value(4),
                    self.driver.sddl
                ),
            ),
            None => self.finding(section.line, "the device's security descriptor is not set"),
        }
    }

    fn services(&mut self, section: &'a Section) {
        const ASSOCIATED: &str = "0x00000002";
        let services: Vec<&Entry> = section
            .entries
            .iter()
            .filter(|entry| entry.key.as_deref() == Some("AddService"))
            .collect();
        let [entry] = services.as_slice() else {
            self.finding(section.line, "expected exactly one AddService");
            return;
        };
        if entry.value(0) != self.driver.service {
            self.finding(
                entry.line,
                format!(
                    "the service is {}; the driver's is {}",
                    entry.value(0),
                    self.driver.service
                ),
            );
        }
        if entry.value(1) != ASSOCIATED {
            self.finding(
                entry.line,
                format!(
                    "AddService has the flags {}; expected {ASSOCIATED} (SPSVCINST_ASSOCSERVICE)",
                    entry.value(1)
                ),
            );
        }
        if let Some(service) = self.reach(entry, entry.value(2)) {
            self.lists(service);
            let name = service.name.as_str();
            for (key, value) in [
                ("ServiceType", "1"),
                ("StartType", "3"),
                ("ErrorControl", "1"),
            ] {
                self.must_be(name, key, value);
            }
            let binary = format!(r"%13%\{}", self.driver.image);
            self.must_be(name, "ServiceBinary", &binary);
        }
    }

    fn framework(&mut self, section: &'a Section) {
        let Some(entry) = self.inf.entry(&section.name, "KmdfService") else {
            self.finding(section.line, "KmdfService is missing");
            return;
        };
        if entry.value(0) != self.driver.service {
            self.finding(
                entry.line,
                format!("{} is not the driver's service", entry.value(0)),
            );
        }
        if let Some(framework) = self.reach(entry, entry.value(1)) {
            let (major, minor) = self.driver.framework;
            self.must_be(
                &framework.name,
                "KmdfLibraryVersion",
                &format!("{major}.{minor}"),
            );
        }
    }

    fn events(&mut self, section: &'a Section) {
        let Some(entry) = self.inf.entry(&section.name, "AddEventProvider") else {
            self.finding(section.line, "AddEventProvider is missing");
            return;
        };
        let provider = format!("{{{}}}", self.driver.provider);
        if !entry.value(0).eq_ignore_ascii_case(&provider) {
            self.finding(
                entry.line,
                format!(
                    "AddEventProvider names the ETW provider {}; the driver's declaration has {provider}",
                    entry.value(0)
                ),
            );
        }
        if let Some(provider) = self.reach(entry, entry.value(1)) {
            let binary = format!(r"%13%\{}", self.driver.image);
            let name = provider.name.as_str();
            self.must_be(name, "ProviderName", &self.driver.provider_name.clone());
            self.must_be(name, "ResourceFile", &binary);
            self.must_be(name, "MessageFile", &binary);
        }
    }

    /// Checks that only keys of the device and of the service are written.
    fn registry(&mut self) {
        let inf = self.inf;
        let lists = inf
            .sections()
            .iter()
            .flat_map(|section| &section.entries)
            .filter(|entry| entry.key.as_deref() == Some("AddReg"));
        for name in lists.flat_map(|entry| &entry.values) {
            for entry in self
                .inf
                .section(name)
                .into_iter()
                .flat_map(|it| &it.entries)
            {
                if !entry.value(0).eq_ignore_ascii_case("HKR") {
                    self.finding(
                        entry.line,
                        format!(
                            "a driver package may write only below HKR, not {} (infverif 1304)",
                            entry.value(0)
                        ),
                    );
                }
            }
        }
    }

    fn leftovers(&mut self) {
        for section in self.inf.sections() {
            if !self.reached.contains(&section.name.to_ascii_lowercase()) {
                self.findings.push(format!(
                    "line {}: nothing refers to [{}]",
                    section.line, section.name
                ));
            }
            for entry in &section.entries {
                let texts = entry.key.iter().chain(&entry.values).chain([&section.name]);
                for text in texts {
                    if text.contains("$ARCH$") || text.contains("$KMDFVERSION$") {
                        self.findings
                            .push(format!("line {}: {text} has not been stamped", entry.line));
                    }
                }
            }
        }
    }
}
