//! The rules for a driver package's INF file.
//!
//! The rules are `infverif`'s rules that a KMDF or WDM driver's file can violate, with infverif's
//! numbers, and the requirement that the file installs this driver.
//! `docs/reference/driver-packaging.md` lists the sources.

mod autologger;
mod context;
mod events;
mod mode;

pub use context::{Driver, Framework, OLDEST_BUILD, Provider, WINDOWS_11};
pub use mode::Mode;

use std::collections::{BTreeMap, BTreeSet};

use self::context::{Check, entries};
use super::{
    class,
    diagnostic::Diagnostic,
    read::{Entry, Inf, Section, number},
};

/// The first Windows build in which the driver store can be a destination (DIRID 13).
const DRIVER_STORE_BUILD: u32 = 16299;
/// The sections that Windows finds by name.
const KNOWN_SECTIONS: [&str; 11] = [
    "Version", "DestinationDirs", "SourceDisksNames", "SourceDisksFiles", "Strings",
    "Manufacturer", "ControlFlags", "ClassInstall32", "InterfaceInstall32", "DefaultInstall",
    "DefaultUninstall",
];

/// The suffixes of sections that belong to an install section.
const PARTS: [&str; 13] = [
    "HW", "Services", "Wdf", "Events", "CoInstallers", "Interfaces", "Filters", "Components",
    "Software", "FactDef", "LogConfigOverride", "PosDup", "WMI",
];

/// Checks a stamped file against the requirements of `mode`, and returns a diagnostic for each
/// violation of a rule.
#[must_use]
pub fn check(inf: &Inf, driver: &Driver, mode: Mode) -> Vec<Diagnostic> {
    let mut check = Check {
        inf,
        driver,
        mode,
        binary: String::new(),
        installs: BTreeSet::new(),
        diagnostics: Vec::new(),
    };
    check.comments();
    check.version();
    check.files();
    check.models();
    check.registry();
    check.removals();
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
        let lockdown = self.inf.entry("Version", "PnpLockdown");
        if lockdown.is_none_or(|entry| number(entry.value(0)) != Some(1)) {
            let line = lockdown.map(|entry| entry.line);
            let message = lockdown.map_or_else(
                || "[Version] has no PnpLockdown; add `PnpLockdown = 1`".to_owned(),
                |entry| format!("PnpLockdown is {}; expected 1", entry.value(0)),
            );
            self.judge(&mode::UNLOCKED, line, &message);
        }
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
            let mode = self.mode;
            if !mode.copies_to(entry.value(0), entry.value(1)) {
                let message = format!("{key} is {}; expected 13, the driver store", entry.value(0));
                self.judge(mode.folder_rule(), entry.line, &message);
            }
        }
        self.binary = self.destination();
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

    /// Returns the path of the installed image, in the folder to which the file copies it. If the
    /// mode accepts only the driver store, the folder is the driver store, whatever the file says.
    fn destination(&self) -> String {
        let image = self.driver.image.as_str();
        let inf = self.inf;
        let copies = |name: &&String| {
            let list = inf.section(name).into_iter().flat_map(|list| &list.entries);
            list.map(|file| file.value(0)).any(|file| file.eq_ignore_ascii_case(image))
        };
        let lists = inf.sections().iter().flat_map(|section| entries(section, "CopyFiles"));
        let list = lists.flat_map(|entry| &entry.values).find(copies);
        let own = list.and_then(|list| inf.entry("DestinationDirs", list));
        let folder = own.or_else(|| inf.entry("DestinationDirs", "DefaultDestDir"));
        let (dirid, subfolder) = folder.map_or(("", ""), |entry| (entry.value(0), entry.value(1)));
        match (self.mode, subfolder.trim_matches('\\')) {
            (Mode::Windows, _) => format!(r"%13%\{image}"),
            _ if dirid.is_empty() => format!(r"%13%\{image}"),
            (_, "") => format!(r"%{dirid}%\{image}"),
            (_, subfolder) => format!(r"%{dirid}%\{subfolder}\{image}"),
        }
    }

    fn models(&mut self) {
        let inf = self.inf;
        let primitive = self.primitive();
        for section in &primitive {
            self.install(section, None);
        }
        let Some(manufacturer) = inf.section("Manufacturer") else {
            if primitive.is_empty() {
                self.report(
                    None,
                    "the section [Manufacturer] is missing; a driver without a device has a section \
                     [DefaultInstall.NTamd64] instead",
                );
            }
            if let (Some(first), Some(wanted)) = (primitive.first(), &self.driver.hardware_id) {
                let name = &first.name;
                self.report(
                    first.line,
                    format!("[{name}] installs no device; the driver's hardware ID is {wanted}"),
                );
            }
            return;
        };
        if let Some(section) = primitive.first() {
            self.report(
                section.line,
                format!(
                    "a file must have [{}] for a driver without a device, or [{}] for a driver of \
                     devices, but not both (infverif 1212)",
                    section.name, manufacturer.name
                ),
            );
        }
        if self.driver.adds_devices == Some(false) {
            self.warning(
                manufacturer.line,
                "the driver adds no devices, so Windows cannot start this file's devices; a driver \
                 without a device has a section [DefaultInstall.NTamd64] and no [Manufacturer]: \
                 `cargo etw inf new --primitive` writes such a file",
            );
        }
        let mut ids = Vec::new();
        // The install sections by line, each with the oldest build of Windows that uses it.
        let mut installs: BTreeMap<usize, (&Section, u32)> = BTreeMap::new();
        for entry in &manufacturer.entries {
            let models = entry.value(0);
            if entry.values.len() < 2 {
                self.report(
                    entry.line,
                    "the TargetOSVersion is missing; write NT$ARCH$.10.0...19041",
                );
            }
            for decoration in entry.values.iter().skip(1) {
                let (architecture, build) = self.decoration(entry, decoration);
                if let Some(section) = self.reach(entry, &format!("{models}.{decoration}")) {
                    if section.entries.is_empty() {
                        self.report(section.line, format!("[{}] lists no device", section.name));
                    }
                    for model in &section.entries {
                        ids.extend(model.values.iter().skip(1).map(String::as_str));
                        if let Some(install) = self.model(model, decoration, architecture) {
                            let known = installs.entry(install.line).or_insert((install, build));
                            known.1 = known.1.min(build);
                        }
                    }
                }
            }
        }
        for (section, build) in installs.values() {
            self.install(section, Some(*build));
        }
        self.added_sessions(manufacturer, installs.values().map(|(_, build)| *build).max());
        if let Some(wanted) = &self.driver.hardware_id
            && !ids.iter().any(|id| id.eq_ignore_ascii_case(wanted))
        {
            self.report(
                manufacturer.line,
                format!("the hardware ID is {}; the driver's is {wanted}", ids.join(", ")),
            );
        }
    }

    /// Checks the names of the sections that install a driver without a device, a primitive driver, and
    /// returns those sections.
    fn primitive(&mut self) -> Vec<&'a Section> {
        let inf = self.inf;
        let of = |wanted: &'static str| {
            inf.sections().iter().filter(move |section| {
                let name = section.name.to_ascii_lowercase();
                undecorated(&name) == wanted
                    && PARTS.iter().all(|part| !ends_with_part(&name, part))
            })
        };
        let found: Vec<&Section> = of("defaultinstall").collect();
        for section in &found {
            let decoration = section.name.split_once('.').map_or("", |(_, decoration)| decoration);
            if decoration.is_empty() || decoration.eq_ignore_ascii_case("NT") {
                self.report(
                    section.line,
                    format!(
                        "[{}] names no architecture; write [DefaultInstall.NTamd64] or \
                         [DefaultInstall.NTarm64] (infverif 1421)",
                        section.name
                    ),
                );
            } else {
                self.architecture(section.line, decoration);
            }
        }
        for section in of("defaultuninstall") {
            if inf.value(&section.name, "LegacyUninstall").and_then(number) != Some(1) {
                self.report(
                    section.line,
                    format!(
                        "Windows removes a primitive driver without instructions; remove [{}], or add \
                         `LegacyUninstall = 1` for Windows before 10 1903 (infverif 1422)",
                        section.name
                    ),
                );
            }
        }
        if let (Some(first), Some(true)) = (found.first(), self.driver.adds_devices) {
            self.warning(
                first.line,
                format!(
                    "[{}] installs a service without a device, but the driver adds devices; without \
                     a [Manufacturer] section, Windows offers it none",
                    first.name
                ),
            );
        }
        found
    }

    /// Reports an architecture that this project's drivers do not support.
    fn architecture(&mut self, line: usize, architecture: &str) {
        if !["ntamd64", "ntarm64"].contains(&architecture.to_ascii_lowercase().as_str()) {
            self.report(
                line,
                format!(
                    "{architecture} is not a supported architecture; expected NTamd64 or NTarm64"
                ),
            );
        }
    }

    /// Checks a models section's decoration, and returns the architecture and the build, or 0.
    fn decoration<'d>(&mut self, entry: &Entry, decoration: &'d str) -> (&'d str, u32) {
        let parts: Vec<&str> = decoration.split('.').collect();
        let architecture = parts.first().copied().unwrap_or_default();
        self.architecture(entry.line, architecture);
        let build = (parts.len() == 6)
            .then(|| parts.last().and_then(|build| build.parse::<u32>().ok()))
            .flatten();
        let oldest = self.driver.framework.map_or(OLDEST_BUILD, Framework::oldest_build);
        match build {
            Some(build) if build >= oldest => {}
            _ if build >= Some(DRIVER_STORE_BUILD) || !self.binary.starts_with("%13%") => self
                .warning(
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
        (architecture, build.unwrap_or(0))
    }

    /// Checks a model, and returns the install section that Windows selects for it by the decoration.
    fn model(
        &mut self,
        model: &Entry,
        decoration: &str,
        architecture: &str,
    ) -> Option<&'a Section> {
        let name = model.value(0);
        if model.value(1).is_empty() {
            self.report(model.line, "the device has no hardware ID");
        }
        let ends =
            [format!(".{decoration}"), format!(".{architecture}"), ".NT".to_owned(), String::new()];
        let found = ends.iter().find_map(|end| self.inf.section(&format!("{name}{end}")));
        if found.is_none() {
            self.report(model.line, format!("the section [{name}.{architecture}] is missing"));
        }
        found
    }

    /// Checks an install section and the sections that belong to it. Windows uses the section from
    /// `build` on, if it is not for all builds.
    fn install(&mut self, section: &'a Section, build: Option<u32>) {
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
            Some(framework) if self.driver.is_wdm => self.report(
                framework.line,
                format!("the driver uses no framework (WDM); remove [{}]", framework.name),
            ),
            Some(framework) => self.framework(framework, service),
            None if self.driver.is_wdm => {}
            None => self.report(section.line, missing("Wdf")),
        }
        self.events(section, part("Events"));
        self.autologgers(section, part("Events"), build);
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

    /// Checks the services, and returns the name of the driver's service.
    fn services(&mut self, section: &'a Section) -> Option<&'a str> {
        const ASSOCIATED: u64 = 2;
        let services: Vec<&Entry> =
            entries(section, "AddService").filter(|entry| !entry.value(0).is_empty()).collect();
        let is_device = !undecorated(&section.name).starts_with("defaultinstall");
        let own = if is_device {
            let is_associated =
                |one: &&&Entry| number(one.value(1)).is_some_and(|flags| flags & ASSOCIATED != 0);
            let associated: Vec<_> = services.iter().filter(is_associated).collect();
            if let (Some(first), []) = (services.first(), associated.as_slice()) {
                self.report(
                    first.line,
                    format!(
                        "AddService has the flags {:?}; expected 0x00000002 (SPSVCINST_ASSOCSERVICE)",
                        first.value(1)
                    ),
                );
            }
            (associated.len() <= 1)
                .then(|| associated.first().copied().or_else(|| services.first()))
        } else {
            let is_own = |one: &&&Entry| {
                let binary = self.inf.value(one.value(2), "ServiceBinary");
                binary.is_some_and(|binary| binary.eq_ignore_ascii_case(&self.binary))
            };
            Some(services.iter().find(is_own).or_else(|| services.first()))
        };
        let Some(own) = own.flatten() else {
            let expected = if is_device {
                "exactly one AddService with the flag 0x00000002 (infverif 1296)"
            } else {
                "an AddService"
            };
            self.report(section.line, format!("expected {expected}"));
            return None;
        };
        for entry in &services {
            if let Some(service) = self.reach(entry, entry.value(2)) {
                self.lists(service);
                self.parameters(service);
                if entry.line == own.line {
                    self.service(service, is_device);
                }
            }
        }
        Some(own.value(0))
    }

    /// Checks the driver's service.
    fn service(&mut self, service: &Section, is_device: bool) {
        let name = service.name.as_str();
        // SERVICE_KERNEL_DRIVER, and SERVICE_FILE_SYSTEM_DRIVER for minifilters.
        let types = if is_device { 1..=1 } else { 1..=2 };
        for (key, range) in [("ServiceType", types), ("StartType", 0..=4), ("ErrorControl", 0..=3)]
        {
            match self.inf.entry(name, key) {
                Some(entry) if number(entry.value(0)).is_some_and(|it| range.contains(&it)) => {}
                Some(entry) => {
                    let (found, least, most) = (entry.value(0), range.start(), range.end());
                    let expected = if least == most {
                        least.to_string()
                    } else {
                        format!("a number from {least} to {most}")
                    };
                    self.report(entry.line, format!("{key} is {found:?}; expected {expected}"));
                }
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
                    "StartType is {}; expected 3 (SERVICE_DEMAND_START), because Plug and Play starts the \
                     driver",
                    start.value(0)
                ),
            );
        }
        let binary = self.binary.clone();
        self.must_be(name, "ServiceBinary", &binary);
    }

    /// Checks that the registry values of a service are below its key `Parameters`.
    fn parameters(&mut self, service: &Section) {
        let inf = self.inf;
        let lists = entries(service, "AddReg").flat_map(|entry| &entry.values);
        for entry in lists.filter_map(|name| inf.section(name)).flat_map(|list| &list.entries) {
            let first = entry.value(1).split('\\').next().unwrap_or_default();
            if entry.value(0).eq_ignore_ascii_case("HKR")
                && !first.eq_ignore_ascii_case("Parameters")
            {
                let message = format!(
                    "the service's value {:?} is below the key {:?}; write `HKR,Parameters,…`",
                    entry.value(2),
                    entry.value(1)
                );
                self.judge(&mode::OUTSIDE_PARAMETERS, entry.line, &message);
            }
        }
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

    /// Checks that the file writes only to the registry keys of the device and the service.
    fn registry(&mut self) {
        let inf = self.inf;
        let class = |section: &&Section| undecorated(&section.name) != "classinstall32";
        let lists =
            inf.sections().iter().filter(class).flat_map(|section| entries(section, "AddReg"));
        for name in lists.flat_map(|entry| &entry.values) {
            for entry in self.inf.section(name).into_iter().flat_map(|it| &it.entries) {
                let (root, key) = (entry.value(0), entry.value(1));
                if !self.mode.writes_to(root, key) {
                    // infverif has different rule numbers for keys and values.
                    let rule = self.mode.key_rule(entry.values.len() > 2);
                    let message = format!("a driver package may write only below HKR, not {root}");
                    self.judge(rule, entry.line, &message);
                }
            }
        }
    }

    /// Reports directives that remove or change something.
    fn removals(&mut self) {
        let inf = self.inf;
        let mut named = BTreeSet::new();
        for key in ["AddService", "AddInterface"] {
            let all = inf.sections().iter().flat_map(|section| entries(section, key));
            named.extend(all.map(|entry| entry.value(2).to_ascii_lowercase()));
        }
        // Other sections have keys of the author's choice. Only Windows before 10 1903 uses the sections
        // that remove a primitive driver.
        let installs = self.installs.clone();
        let has_directives = |section: &&Section| {
            let name = section.name.to_ascii_lowercase();
            let of_install = |part: &&str| {
                ends_with_part(&name, part)
                    && installs.contains(&name[..name.len() - part.len() - 1])
            };
            undecorated(&name) == "classinstall32"
                || named.contains(&name)
                || installs.contains(&name)
                || PARTS.iter().any(of_install)
        };
        let found = inf.sections().iter().filter(has_directives);
        for entry in found.flat_map(|section| &section.entries) {
            let key = entry.key.as_deref().unwrap_or_default();
            if let Some(known) = mode::REMOVING.iter().find(|known| known.eq_ignore_ascii_case(key))
            {
                let message = format!(
                    "{known} cannot be used in a file for all editions of Windows, which only adds \
                     things; Windows removes them with the driver"
                );
                self.judge(&mode::REMOVES, entry.line, &message);
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
