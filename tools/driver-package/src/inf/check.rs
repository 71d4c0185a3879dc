//! The rules for a driver package's INF file.
//!
//! The rules are those of `infverif /w` that a KMDF driver's file can violate, with infverif's
//! numbers, and the requirement that the file installs this driver.
//! `docs/reference/driver-packaging.md` lists the sources.

use std::{collections::BTreeSet, fmt, ops::RangeInclusive};

use super::{
    channel::{Channel, ChannelKind, ISOLATIONS, OwnChannel},
    class,
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
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Windows or `infverif` can reject the file, or the file does not install the driver.
    Error,
    /// The file works, but is unusual.
    Warning,
}

/// A violation of a rule in an INF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The line, counting from 1; `None` if something is missing from the file.
    pub line: Option<usize>,
    /// The message.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(formatter, "line {line}: ")?;
        }
        formatter.write_str(&self.message)
    }
}

/// The oldest Windows build that a file should specify: the first with `ExAllocatePool2`, which
/// wdk-alloc calls.
const OLDEST_BUILD: u32 = 19041;
/// The first Windows build in which the driver store can be a destination (DIRID 13).
const DRIVER_STORE_BUILD: u32 = 16299;

/// The sections that Windows finds by name.
const KNOWN_SECTIONS: [&str; 10] = [
    "Version", "DestinationDirs", "SourceDisksNames", "SourceDisksFiles", "Strings",
    "Manufacturer", "ControlFlags", "ClassInstall32", "InterfaceInstall32", "DefaultInstall",
];

/// The suffixes of sections that belong to an install section.
const PARTS: [&str; 13] = [
    "HW", "Services", "Wdf", "Events", "CoInstallers", "Interfaces", "Filters", "Components",
    "Software", "FactDef", "LogConfigOverride", "PosDup", "WMI",
];

/// The entries of a channel's section, with the allowed numbers.
const CHANNEL_VALUES: [(&str, Option<RangeInclusive<u64>>); 7] = [
    ("Isolation", Some(1..=ISOLATIONS.len() as u64)),
    ("Access", None),
    ("Enabled", Some(0..=1)),
    ("Value", Some(16..=255)),
    ("LoggingMaxSize", Some(1 << 20..=u64::MAX)),
    ("LoggingRetention", Some(1..=2)),
    ("LoggingAutoBackup", Some(0..=1)),
];

/// Returns the INF line that registers a channel.
pub fn line(channel: &Channel, section: &str) -> String {
    let Channel { name, own } = channel;
    match own {
        None => format!("ImportChannel = {name}"),
        Some(OwnChannel { settings: Some(settings), .. }) => {
            format!("AddChannel = {name},{:#x},{section}", settings.kind as u64)
        }
        Some(OwnChannel { settings: None, .. }) => format!("AddChannel = {name},TYPE,{section}"),
    }
}

/// Returns a sentence with the INF lines that register channels.
fn lines(channels: &[Channel]) -> String {
    if channels.is_empty() {
        return "the provider declares no channels".to_owned();
    }
    let lines: Vec<String> =
        channels.iter().map(|channel| format!("`{}`", line(channel, "SECTION"))).collect();
    format!("expected {}", lines.join(", "))
}

struct Check<'a> {
    inf: &'a Inf,
    driver: &'a Driver,
    /// The install sections found so far.
    installs: BTreeSet<String>,
    diagnostics: Vec<Diagnostic>,
}

/// Checks a stamped file, and returns a diagnostic for each violation of a rule.
#[must_use]
pub fn check(inf: &Inf, driver: &Driver) -> Vec<Diagnostic> {
    let mut check = Check { inf, driver, installs: BTreeSet::new(), diagnostics: Vec::new() };
    check.comments();
    check.version();
    check.files();
    check.models();
    check.registry();
    check.leftovers();
    check.diagnostics
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

/// Returns a section's name in lower case, without the platform decoration.
fn undecorated(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let at = [".nt", ".amd64", ".arm64"].iter().filter_map(|mark| name.find(mark)).min();
    at.map_or_else(|| name.clone(), |at| name[..at].to_owned())
}

impl<'a> Check<'a> {
    fn report(&mut self, line: impl Into<Option<usize>>, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic {
            severity: Severity::Error,
            line: line.into(),
            message: message.into(),
        });
    }

    fn warning(&mut self, line: impl Into<Option<usize>>, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic {
            severity: Severity::Warning,
            line: line.into(),
            message: message.into(),
        });
    }

    /// Adds a diagnostic unless the first entry with the key has this value.
    fn must_be(&mut self, section: &str, key: &str, wanted: &str) {
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
    fn reach(&mut self, entry: &Entry, name: &str) -> Option<&'a Section> {
        let found = self.inf.section(name);
        if found.is_none() {
            self.report(entry.line, format!("the section [{name}] is missing"));
        }
        found
    }

    /// Returns an entry of a section or its platform-specific variants.
    fn in_variants(&self, section: &str, key: &str) -> Option<&'a Entry> {
        ["", ".amd64", ".arm64"]
            .iter()
            .find_map(|end| self.inf.entry(&format!("{section}{end}"), key))
    }

    /// Warns about comments with characters that Windows interprets in an unknown code page.
    fn comments(&mut self) {
        let [first, others @ ..] = self.inf.foreign_comments() else {
            return;
        };
        let others = match others.len() {
            0 => String::new(),
            1 => "; so has a comment on another line".to_owned(),
            number => format!("; so have comments on {number} other lines"),
        };
        self.warning(
            *first,
            format!(
                "the comment has characters outside ASCII, which tools show differently, and which \
                 have no effect{others}"
            ),
        );
    }

    fn version(&mut self) {
        self.must_be("Version", "Signature", "$WINDOWS NT$");
        self.must_be("Version", "PnpLockdown", "1");
        self.class();
        match self.inf.entry("Version", "Provider") {
            None => self.report(None, "[Version] has no Provider; name your company"),
            Some(entry) if entry.value(0).is_empty() => {
                self.report(entry.line, "Provider is empty; name your company");
            }
            Some(entry) if entry.value(0).to_ascii_lowercase().contains("microsoft") => {
                self.report(
                    entry.line,
                    "[Version] names Microsoft as the provider; name your company (infverif 1204)",
                );
            }
            Some(_) => {}
        }
        match self.inf.entry("Version", "CatalogFile") {
            None => self.report(
                None,
                "[Version] has no CatalogFile; add `CatalogFile = NAME.cat` (infverif 1233)",
            ),
            Some(entry) => {
                let name = entry.value(0);
                let stem = name.to_ascii_lowercase();
                if stem.strip_suffix(".cat").is_none_or(str::is_empty) || name.contains(['\\', '/'])
                {
                    self.report(
                        entry.line,
                        format!("CatalogFile is {name:?}; expected a file name that ends in .cat"),
                    );
                }
            }
        }
        match self.inf.entry("Version", "DriverVer") {
            Some(entry) => {
                if !is_date(entry.value(0)) || !is_version(entry.value(1)) {
                    self.report(entry.line, "DriverVer is not in the form MM/DD/YYYY,A.B.C.D");
                }
            }
            None => self.report(None, "[Version] has no DriverVer"),
        }
    }

    /// Checks the setup class.
    fn class(&mut self) {
        let own = self
            .inf
            .sections()
            .iter()
            .find(|section| undecorated(&section.name) == "classinstall32");
        let name = self.inf.entry("Version", "Class");
        let guid = self.inf.entry("Version", "ClassGuid");
        for (key, found) in [("Class", name), ("ClassGuid", guid)] {
            match found {
                Some(entry) if entry.value(0).is_empty() => self.report(
                    entry.line,
                    format!(
                        "{key} is empty; for a device without hardware, use `Class = System` and \
                         `ClassGuid = {}`",
                        class::SYSTEM
                    ),
                ),
                Some(_) => {}
                None => self.report(None, format!("[Version] has no {key}")),
            }
        }
        let (Some(name), Some(guid)) = (name, guid) else {
            return;
        };
        if name.value(0).is_empty() || guid.value(0).is_empty() {
            return;
        }
        let by_guid = class::name(guid.value(0));
        match (by_guid, class::guid(name.value(0))) {
            (Some(known), _) if !known.eq_ignore_ascii_case(name.value(0)) => self.report(
                name.line,
                format!("Class is {}; {} is the class {known}", name.value(0), guid.value(0)),
            ),
            (None, Some(known)) => self.report(
                guid.line,
                format!("ClassGuid is {}; the class {} has {known}", guid.value(0), name.value(0)),
            ),
            _ => {}
        }
        match (own, by_guid) {
            (Some(own), Some(known)) => self.report(
                own.line,
                format!(
                    "Windows already has the class {known}; remove [{}] (infverif 1285)",
                    own.name
                ),
            ),
            (None, None) if class::guid(name.value(0)).is_none() => self.warning(
                name.line,
                format!(
                    "this check does not know the setup class {}, and the file does not install \
                     it with [ClassInstall32]",
                    name.value(0)
                ),
            ),
            _ => {}
        }
    }

    fn files(&mut self) {
        let inf = self.inf;
        let mut has_destination = false;
        for entry in inf.section("DestinationDirs").into_iter().flat_map(|it| &it.entries) {
            has_destination = true;
            let key = entry.key.as_deref().unwrap_or_default();
            if entry.value(0) != "13" {
                self.report(
                    entry.line,
                    format!("{key} is {}; expected 13, the driver store", entry.value(0)),
                );
            }
        }
        if !has_destination {
            self.report(None, "[DestinationDirs] has no DefaultDestDir; add `DefaultDestDir = 13`");
        }
        let sections: Vec<&Section> = inf
            .sections()
            .iter()
            .filter(|section| undecorated(&section.name) == "sourcedisksfiles")
            .collect();
        let Some(first) = sections.first() else {
            self.report(None, "the section [SourceDisksFiles] is missing");
            return;
        };
        for file in sections.iter().flat_map(|section| &section.entries) {
            if self.in_variants("SourceDisksNames", file.value(0)).is_none() {
                self.report(file.line, format!("[SourceDisksNames] has no disk {}", file.value(0)));
            }
        }
        let image = &self.driver.image;
        if self.in_variants("SourceDisksFiles", image).is_none() {
            self.report(first.line, format!("[SourceDisksFiles] does not list {image}"));
        }
    }

    fn models(&mut self) {
        let inf = self.inf;
        let primitive: Vec<&Section> = inf
            .sections()
            .iter()
            .filter(|section| {
                let name = section.name.to_ascii_lowercase();
                undecorated(&name) == "defaultinstall"
                    && PARTS.iter().all(|part| !ends_with_part(&name, part))
            })
            .collect();
        for section in &primitive {
            self.install(section);
        }
        let Some(manufacturer) = inf.section("Manufacturer") else {
            if primitive.is_empty() {
                self.report(None, "the section [Manufacturer] is missing");
            }
            return;
        };
        let mut ids = Vec::new();
        for entry in &manufacturer.entries {
            let models = entry.value(0);
            if entry.values.len() < 2 {
                self.report(
                    entry.line,
                    "the TargetOSVersion is missing; write NT$ARCH$.10.0...19041",
                );
            }
            for decoration in entry.values.iter().skip(1) {
                let architecture = self.decoration(entry, decoration);
                if let Some(section) = self.reach(entry, &format!("{models}.{decoration}")) {
                    if section.entries.is_empty() {
                        self.report(section.line, format!("[{}] lists no device", section.name));
                    }
                    for model in &section.entries {
                        ids.extend(model.values.iter().skip(1).map(String::as_str));
                        self.model(model, decoration, architecture);
                    }
                }
            }
        }
        if let Some(wanted) = &self.driver.hardware_id
            && !ids.iter().any(|id| id.eq_ignore_ascii_case(wanted))
        {
            self.report(
                manufacturer.line,
                format!("the hardware ID is {}; the driver's is {wanted}", ids.join(", ")),
            );
        }
    }

    /// Checks a models section's decoration, and returns the architecture.
    fn decoration<'d>(&mut self, entry: &Entry, decoration: &'d str) -> &'d str {
        let parts: Vec<&str> = decoration.split('.').collect();
        let architecture = parts.first().copied().unwrap_or_default();
        if !["ntamd64", "ntarm64"].contains(&architecture.to_ascii_lowercase().as_str()) {
            self.report(
                entry.line,
                format!(
                    "{architecture} is not a supported architecture; expected NTamd64 or NTarm64"
                ),
            );
        }
        let build = (parts.len() == 6)
            .then(|| parts.last().and_then(|build| build.parse::<u32>().ok()))
            .flatten();
        let oldest = self.driver.framework.map_or(OLDEST_BUILD, Framework::oldest_build);
        match build {
            Some(build) if build >= oldest => {}
            Some(build) if build >= DRIVER_STORE_BUILD => self.warning(
                entry.line,
                format!(
                    "{decoration} is too old: the oldest supported build is {oldest}; write \
                     {architecture}.10.0...{oldest}"
                ),
            ),
            _ => self.report(
                entry.line,
                format!(
                    "{decoration} is too old: the oldest supported build is {oldest}, and only \
                     builds from {DRIVER_STORE_BUILD} on support the driver store as a \
                     destination; write \
                     {architecture}.10.0...{oldest}"
                ),
            ),
        }
        architecture
    }

    /// Checks a model, and the install section that Windows selects for it by the decoration.
    fn model(&mut self, model: &Entry, decoration: &str, architecture: &str) {
        let name = model.value(0);
        if model.value(1).is_empty() {
            self.report(model.line, "the device has no hardware ID");
        }
        let ends =
            [format!(".{decoration}"), format!(".{architecture}"), ".NT".to_owned(), String::new()];
        let found = ends.iter().find_map(|end| self.inf.section(&format!("{name}{end}")));
        let Some(section) = found else {
            self.report(model.line, format!("the section [{name}.{architecture}] is missing"));
            return;
        };
        self.install(section);
    }

    /// Checks an install section and the sections that belong to it.
    fn install(&mut self, section: &'a Section) {
        let inf = self.inf;
        if !self.installs.insert(section.name.to_ascii_lowercase()) {
            return;
        }
        self.lists(section);
        let mut copied: Vec<(usize, &str)> = Vec::new();
        for entry in entries(section, "CopyFiles") {
            for name in &entry.values {
                if let Some(file) = name.strip_prefix('@') {
                    copied.push((entry.line, file));
                } else if let Some(list) = inf.section(name) {
                    copied.extend(list.entries.iter().map(|file| (file.line, file.value(0))));
                }
            }
        }
        for (line, file) in &copied {
            if self.in_variants("SourceDisksFiles", file).is_none() {
                self.report(*line, format!("[SourceDisksFiles] does not list {file}"));
            }
        }
        let image = self.driver.image.as_str();
        if !copied.iter().any(|(_, file)| file.eq_ignore_ascii_case(image)) {
            self.report(section.line, format!("no CopyFiles section copies {image}"));
        }
        let part = |name: &str| inf.section(&format!("{}.{name}", section.name));
        let missing = |name: &str| format!("the section [{}.{name}] is missing", section.name);
        if let Some(hardware) = part("HW") {
            self.hardware(hardware);
        }
        let service = if let Some(services) = part("Services") {
            self.services(services)
        } else {
            self.report(section.line, missing("Services"));
            None
        };
        match part("Wdf") {
            Some(framework) => self.framework(framework, service),
            None => self.report(section.line, missing("Wdf")),
        }
        self.events(section, part("Events"));
        if let Some(old) = part("CoInstallers") {
            self.report(old.line, "co-installers are no longer supported (infverif 1303)");
        }
    }

    /// Follows the entries of a section that list other sections.
    fn lists(&mut self, section: &Section) {
        for key in ["CopyFiles", "AddReg", "DelReg"] {
            for entry in entries(section, key) {
                for name in &entry.values {
                    // A value that starts with an at sign is a file name.
                    if !name.starts_with('@') {
                        self.reach(entry, name);
                    }
                }
            }
        }
    }

    fn hardware(&mut self, section: &'a Section) {
        self.lists(section);
        let security = entries(section, "AddReg")
            .flat_map(|entry| &entry.values)
            .filter_map(|name| self.inf.section(name))
            .flat_map(|section| &section.entries)
            .find(|entry| entry.value(2).eq_ignore_ascii_case("Security"));
        if let (Some(entry), Some(wanted)) = (security, &self.driver.sddl)
            && entry.value(4) != wanted
        {
            let found = entry.value(4);
            self.report(
                entry.line,
                format!("the device's security descriptor is {found}; the driver sets {wanted}"),
            );
        }
    }

    /// Checks the function driver's service, and returns the service's name.
    fn services(&mut self, section: &'a Section) -> Option<&'a str> {
        const ASSOCIATED: u64 = 2;
        let services: Vec<&Entry> =
            entries(section, "AddService").filter(|entry| !entry.value(0).is_empty()).collect();
        let [entry] = services.as_slice() else {
            self.report(section.line, "expected exactly one AddService (infverif 1296)");
            return None;
        };
        let flags = number(entry.value(1));
        let is_associated = flags.is_some_and(|flags| flags & ASSOCIATED != 0);
        let is_device = undecorated(&section.name) != "defaultinstall";
        if is_device && !is_associated {
            self.report(
                entry.line,
                format!(
                    "AddService has the flags {:?}; expected 0x00000002 (SPSVCINST_ASSOCSERVICE)",
                    entry.value(1)
                ),
            );
        }
        if let Some(service) = self.reach(entry, entry.value(2)) {
            self.lists(service);
            let name = service.name.as_str();
            self.must_be(name, "ServiceType", "1");
            for (key, range) in [("StartType", 0..=4), ("ErrorControl", 0..=3)] {
                match self.inf.entry(name, key) {
                    Some(entry) if number(entry.value(0)).is_some_and(|it| range.contains(&it)) => {
                    }
                    Some(entry) => self.report(
                        entry.line,
                        format!("{key} is {}; expected {range:?}", entry.value(0)),
                    ),
                    None => self.report(service.line, format!("[{name}] has no {key}")),
                }
            }
            if is_device
                && let Some(start) = self.inf.entry(name, "StartType")
                && number(start.value(0)) != Some(3)
            {
                self.warning(
                    start.line,
                    format!(
                        "StartType is {}; expected 3 (SERVICE_DEMAND_START), because Plug and \
                         Play starts the driver",
                        start.value(0)
                    ),
                );
            }
            let binary = format!(r"%13%\{}", self.driver.image);
            self.must_be(name, "ServiceBinary", &binary);
        }
        Some(entry.value(0))
    }

    fn framework(&mut self, section: &'a Section, service: Option<&str>) {
        let Some(entry) = self.inf.entry(&section.name, "KmdfService") else {
            self.report(section.line, "KmdfService is missing");
            return;
        };
        if let Some(service) = service
            && !entry.value(0).eq_ignore_ascii_case(service)
        {
            self.report(
                entry.line,
                format!("KmdfService is {}; the service is {service}", entry.value(0)),
            );
        }
        let Some(framework) = self.reach(entry, entry.value(1)) else {
            return;
        };
        let Some(version) = self.inf.entry(&framework.name, "KmdfLibraryVersion") else {
            self.report(framework.line, format!("[{}] has no KmdfLibraryVersion", framework.name));
            return;
        };
        let Some(wanted) = self.driver.framework else {
            return;
        };
        let found = version.value(0);
        let allowed = (wanted.minimum..=wanted.target)
            .any(|minor| found == format!("{}.{minor}", wanted.major));
        if !allowed {
            self.report(version.line, format!("KmdfLibraryVersion is {found}; expected {wanted}"));
        }
    }

    /// Checks that the file registers the providers whose events are decoded with the image.
    fn events(&mut self, install: &Section, section: Option<&'a Section>) {
        let mut registered = Vec::new();
        for entry in section.into_iter().flat_map(|one| entries(one, "AddEventProvider")) {
            registered.push(entry);
            if let Some(provider) = self.reach(entry, entry.value(1)) {
                let binary = format!(r"%13%\{}", self.driver.image);
                let name = provider.name.as_str();
                self.must_be(name, "ResourceFile", &binary);
                self.must_be(name, "MessageFile", &binary);
                if self.inf.entry(name, "ProviderName").is_none() {
                    self.report(provider.line, format!("[{name}] has no ProviderName"));
                }
                for channel in entries(provider, "AddChannel") {
                    self.channel(channel);
                }
            }
        }
        let driver = self.driver;
        let Some(providers) = &driver.providers else {
            return;
        };
        let braced = |provider: &Provider| format!("{{{}}}", provider.guid);
        for entry in &registered {
            let own =
                providers.iter().find(|one| entry.value(0).eq_ignore_ascii_case(&braced(one)));
            if let Some(provider) = own {
                if !providers.iter().any(|one| one.has_resources) {
                    self.warning(
                        entry.line,
                        format!(
                            "AddEventProvider registers the ETW provider {}, whose events are \
                             self-describing: the image has no resources for it; remove the line \
                             and its section",
                            provider.name
                        ),
                    );
                }
                if let Some(section) = self.inf.section(entry.value(1)) {
                    self.must_be(&section.name, "ProviderName", &provider.name);
                    self.declared_channels(provider, section);
                }
                continue;
            }
            let declared: Vec<String> = providers.iter().map(braced).collect();
            let declared =
                if declared.is_empty() { "none".to_owned() } else { declared.join(", ") };
            self.report(
                entry.line,
                format!(
                    "AddEventProvider names the ETW provider {}; the driver's declaration has \
                     {declared}",
                    entry.value(0)
                ),
            );
        }
        for provider in providers.iter().filter(|provider| provider.has_resources) {
            let wanted = braced(provider);
            if !registered.iter().any(|entry| entry.value(0).eq_ignore_ascii_case(&wanted)) {
                self.report(
                    section.map_or(install.line, |section| section.line),
                    format!(
                        "the ETW provider {} is not registered, so Windows cannot decode its \
                         events; add `AddEventProvider = {wanted},SECTION` to [{}.Events]",
                        provider.name, install.name
                    ),
                );
            }
        }
    }

    /// Checks the syntax of an `AddChannel` line and its section.
    fn channel(&mut self, entry: &Entry) {
        let kinds = 1..=ChannelKind::ALL.len() as u64;
        if !number(entry.value(1)).is_some_and(|kind| kinds.contains(&kind)) {
            self.report(
                entry.line,
                format!(
                    "the type of the channel {} is {:?}; expected 0x1 (Admin), 0x2 (Operational), \
                     0x3 (Analytic) or 0x4 (Debug)",
                    entry.value(0),
                    entry.value(1)
                ),
            );
        }
        if entry.value(2).is_empty() {
            return;
        }
        let Some(section) = self.reach(entry, entry.value(2)) else {
            return;
        };
        for setting in &section.entries {
            let key = setting.key.as_deref().unwrap_or_default();
            let known = CHANNEL_VALUES.iter().find(|(known, _)| known.eq_ignore_ascii_case(key));
            let Some((key, range)) = known else {
                let known = CHANNEL_VALUES.map(|(known, _)| known).join(", ");
                let name = &section.name;
                self.report(
                    setting.line,
                    format!("[{name}] is the section of a channel and has {key}; known: {known}"),
                );
                continue;
            };
            let value = setting.value(0);
            let is_valid = range
                .as_ref()
                .is_none_or(|range| number(value).is_some_and(|it| range.contains(&it)));
            if let (false, Some(range)) = (is_valid, range) {
                let (least, most) = (range.start(), range.end());
                self.report(
                    setting.line,
                    format!("{key} is {value:?}; expected a number from {least} to {most}"),
                );
            }
        }
        let has = |key: &str, wanted: u64| {
            self.inf.value(&section.name, key).and_then(number) == Some(wanted)
        };
        let backs_up = has("LoggingAutoBackup", 1);
        let is_for_administrators = matches!(number(entry.value(1)), Some(1 | 2));
        if backs_up && !(has("LoggingRetention", 2) && is_for_administrators) {
            self.report(
                section.line,
                format!(
                    "[{}] has LoggingAutoBackup = 1, which needs LoggingRetention = 2 and a channel \
                     of the type 0x1 (Admin) or 0x2 (Operational)",
                    section.name
                ),
            );
        }
    }

    /// Compares the channels in a provider's section with those in its declaration.
    fn declared_channels(&mut self, provider: &Provider, section: &'a Section) {
        let name = &section.name;
        let is_key = |entry: &Entry, key: &str| {
            entry.key.as_deref().is_some_and(|found| found.eq_ignore_ascii_case(key))
        };
        let found: Vec<&Entry> = section
            .entries
            .iter()
            .filter(|entry| is_key(entry, "AddChannel") || is_key(entry, "ImportChannel"))
            .collect();
        let declares = |channel: &Channel, entry: &Entry| {
            channel.name.eq_ignore_ascii_case(entry.value(0))
                && is_key(entry, channel.own.as_ref().map_or("ImportChannel", |_| "AddChannel"))
        };
        for entry in &found {
            if !provider.channels.iter().any(|channel| declares(channel, entry)) {
                self.report(
                    entry.line,
                    format!(
                        "{} names the channel {}, which the provider {} does not declare so; {}",
                        entry.key.as_deref().unwrap_or_default(),
                        entry.value(0),
                        provider.name,
                        lines(&provider.channels)
                    ),
                );
            }
        }
        for channel in &provider.channels {
            let Some(entry) = found.iter().find(|entry| declares(channel, entry)) else {
                self.report(
                    section.line,
                    format!(
                        "the channel {} is not registered, so the event log receives none of its \
                         events; add `{}` to [{name}]",
                        channel.name,
                        line(channel, "SECTION")
                    ),
                );
                continue;
            };
            if let Some(own) = &channel.own {
                self.declared_channel(&channel.name, own, entry);
            }
        }
        let places = provider
            .channels
            .iter()
            .filter_map(|channel| found.iter().position(|entry| declares(channel, entry)));
        let order: Vec<usize> = places.collect();
        if !order.is_sorted() {
            self.report(
                section.line,
                format!(
                    "the channels in [{name}] are in a different order from those of the provider \
                     {}, and the order determines the channels' keyword bits; {}",
                    provider.name,
                    lines(&provider.channels)
                ),
            );
        }
    }

    /// Compares a channel's type and settings with those in the provider's declaration.
    fn declared_channel(&mut self, name: &str, own: &OwnChannel, entry: &Entry) {
        if let Some(settings) = &own.settings {
            let kind = settings.kind;
            if number(entry.value(1)).is_some_and(|found| found != kind as u64) {
                self.report(
                    entry.line,
                    format!(
                        "the type of the channel {name} is {}; its declaration says {} ({:#x})",
                        entry.value(1),
                        kind.name(),
                        kind as u64
                    ),
                );
            }
            if settings.enabled.is_none() && kind.is_for_administrators() {
                self.warning(
                    entry.line,
                    format!(
                        "the channel {name} is disabled until someone enables it, because its \
                         declaration does not say `enabled = true`; write `enabled = false` if that \
                         is intended"
                    ),
                );
            }
        }
        let section = self.inf.section(entry.value(2));
        for value in own.values() {
            let found = section.and_then(|section| self.inf.entry(&section.name, value.key));
            let text = found.map_or(value.default, |found| found.value(0));
            if value.is(text) {
                continue;
            }
            let at = found.map_or(entry.line, |found| found.line);
            let wanted = value.effective();
            let remedy = match (found, section) {
                (Some(_), _) => format!("write `{} = {wanted}`", value.key),
                (None, Some(section)) => {
                    format!("add `{} = {wanted}` to [{}]", value.key, section.name)
                }
                (None, None) => format!(
                    "add a section with `{} = {wanted}` and name it after the channel's type",
                    value.key
                ),
            };
            let shown = if text.is_empty() { "missing" } else { text };
            self.report(
                at,
                format!(
                    "{} of the channel {name} is {shown}; its declaration says {}; {remedy}",
                    value.key,
                    if wanted.is_empty() { "nothing" } else { wanted }
                ),
            );
        }
    }

    /// Checks that the file writes only to the registry keys of the device and the service.
    fn registry(&mut self) {
        let inf = self.inf;
        let class = |section: &&Section| undecorated(&section.name) != "classinstall32";
        let lists =
            inf.sections().iter().filter(class).flat_map(|section| entries(section, "AddReg"));
        for name in lists.flat_map(|entry| &entry.values) {
            for entry in self.inf.section(name).into_iter().flat_map(|it| &it.entries) {
                if !entry.value(0).eq_ignore_ascii_case("HKR") {
                    // infverif has different rule numbers for keys and values.
                    let names_value = entry.values.len() > 2;
                    self.report(
                        entry.line,
                        format!(
                            "a driver package may write only below HKR, not {} (infverif {})",
                            entry.value(0),
                            if names_value { 1321 } else { 1320 }
                        ),
                    );
                }
            }
        }
    }

    fn leftovers(&mut self) {
        let inf = self.inf;
        let mut named: BTreeSet<String> =
            KNOWN_SECTIONS.iter().map(|name| name.to_ascii_lowercase()).collect();
        for value in inf
            .sections()
            .iter()
            .flat_map(|section| &section.entries)
            .flat_map(|entry| &entry.values)
        {
            named.insert(undecorated(value));
            named.insert(value.to_ascii_lowercase());
        }
        for section in inf.sections() {
            let name = section.name.to_ascii_lowercase();
            let whole = PARTS
                .iter()
                .find(|part| ends_with_part(&name, part))
                .map_or(name.as_str(), |part| &name[..name.len() - part.len() - 1]);
            if ![&name, whole, &undecorated(&name), &undecorated(whole)]
                .iter()
                .any(|name| named.contains(*name))
            {
                self.report(section.line, format!("nothing refers to [{}]", section.name));
            }
            for entry in &section.entries {
                let texts = entry.key.iter().chain(&entry.values).chain([&section.name]);
                for text in texts {
                    if text.contains("$ARCH$") || text.contains("$KMDFVERSION$") {
                        self.report(entry.line, format!("{text} has not been stamped"));
                    }
                }
            }
        }
    }
}

/// Returns a section's entries with a key.
fn entries<'s>(section: &'s Section, key: &str) -> impl Iterator<Item = &'s Entry> {
    let has_key = move |entry: &&Entry| {
        let found = entry.key.as_deref();
        found.is_some_and(|found| found.eq_ignore_ascii_case(key))
    };
    section.entries.iter().filter(has_key)
}

/// Returns whether a lower-case section name ends with a dot and `part`.
fn ends_with_part(name: &str, part: &str) -> bool {
    let start = name.strip_suffix(&part.to_ascii_lowercase());
    start.is_some_and(|start| start.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decorations_and_parts_are_taken_off() {
        assert_eq!(undecorated("Inst.NTamd64.10.0...19041"), "inst");
        assert_eq!(undecorated("SourceDisksFiles.amd64"), "sourcedisksfiles");
        assert!(ends_with_part("inst.nt.wdf", "Wdf"));
        assert!(!ends_with_part("wdf", "Wdf"));
        assert_eq!(number("0x00000002"), Some(2));
        assert_eq!(number("3"), Some(3));
        assert_eq!(number("x"), None);
    }
}
