//! The rules of the sessions that a file adds (`AddAutoLogger`, `UpdateAutoLogger`).

use std::ops::RangeInclusive;

use etw_wire::autologger::{MAX_FILE_NAME, PROVIDER, SESSION, Setting, conflict};

use super::{
    context::{Check, Provider, WINDOWS_11, entries},
    mode,
};
use crate::inf::{
    autologger::{AutoLogger, DRIVER_DATA, written},
    read::{Entry, Section, number},
};

/// The key of a session's file.
const FILE: &str = "FileName";
/// The key of a session's provider.
const ADD_PROVIDER: &str = "AddAutoLoggerProvider";

/// Returns the keys of a section, with the numbers that are allowed.
fn keys(
    settings: &'static [Setting],
    others: &[&'static str],
) -> Vec<(&'static str, Option<RangeInclusive<u64>>)> {
    let numbers = settings.iter().map(|one| (one.key, Some(one.least..=one.most)));
    numbers.chain(others.iter().map(|key| (*key, None))).collect()
}

/// Returns whether a value has the form of a GUID in braces.
fn is_guid(text: &str) -> bool {
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let lengths = inside
        .into_iter()
        .flat_map(|text| text.split('-'))
        .map(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(part.len()));
    lengths.eq([8, 4, 4, 4, 12].map(Some))
}

impl<'a> Check<'a> {
    /// Checks the sessions that an install section adds. Windows uses the section from `build` on.
    pub(super) fn autologgers(
        &mut self,
        install: &Section,
        section: Option<&'a Section>,
        build: Option<u32>,
    ) {
        let of =
            |key: &'static str| section.into_iter().flat_map(move |section| entries(section, key));
        let added: Vec<&Entry> = of("AddAutoLogger").collect();
        let updated: Vec<&Entry> = of("UpdateAutoLogger").collect();
        if let (Some(first), Some(build)) = (added.first().or_else(|| updated.first()), build)
            && build < WINDOWS_11
        {
            self.report(
                first.line,
                format!(
                    "{} needs Windows 11 (build {WINDOWS_11}), but Windows uses [{}] from build {build} \
                     on; write an install section of its own for models of NT$ARCH$.10.0...{WINDOWS_11} \
                     (infverif 1199)",
                    first.key.as_deref().unwrap_or_default(),
                    install.name
                ),
            );
        }
        for entry in &added {
            self.session_name(entry);
            self.guid(entry, entry.value(1), "session");
            if let Some(session) = self.reach(entry, entry.value(2)) {
                self.session(session);
            }
        }
        for entry in &updated {
            self.session_name(entry);
            if let Some(session) = self.reach(entry, entry.value(1)) {
                self.settings(session, "an updated session", &[(ADD_PROVIDER, None)]);
                self.session_providers(session);
            }
        }
        if build.is_none_or(|build| build >= WINDOWS_11) {
            self.declared_sessions(install, section, &added);
        }
    }

    /// Reports the declaration's sessions if no install section is for Windows 11 only. `newest` is the
    /// greatest build from which Windows uses one.
    pub(super) fn added_sessions(&mut self, manufacturer: &Section, newest: Option<u32>) {
        let mut declared = self.driver.providers.iter().flatten();
        let first = declared.find_map(|provider| provider.autologger.as_ref());
        if let (Some(first), Some(newest)) = (first, newest)
            && newest < WINDOWS_11
        {
            self.report(
                manufacturer.line,
                format!(
                    "the declaration asks for the session {}, which only Windows 11 adds; add models of \
                     NT$ARCH$.10.0...{WINDOWS_11} with an install section of their own, and \
                     `{}` to its section of events",
                    first.session,
                    first.line("SECTION")
                ),
            );
        }
    }

    fn session_name(&mut self, entry: &Entry) {
        let name = entry.value(0);
        if name.is_empty() || name.contains('\\') {
            self.report(entry.line, format!("{name:?} cannot be the name of a session"));
        }
    }

    fn guid(&mut self, entry: &Entry, guid: &str, of: &str) {
        if !is_guid(guid) {
            self.report(
                entry.line,
                format!(
                    "the GUID of the {of} is {guid:?}; expected braces, digits and hyphens in groups of 8, 4, \
                     4, 4 and 12 (infverif 1019)"
                ),
            );
        }
    }

    /// Checks the section of a session.
    fn session(&mut self, section: &'a Section) {
        let inf = self.inf;
        self.settings(section, "a session", &keys(SESSION, &[FILE, ADD_PROVIDER]));
        let name = section.name.as_str();
        if inf.entry(name, "Start").is_none() {
            self.report(section.line, format!("[{name}] has no Start; add `Start = 1`"));
        }
        let value = |key: &str| inf.value(name, key).and_then(number);
        if let Some(why) = conflict(value, inf.value(name, FILE)) {
            self.report(section.line, format!("[{name}] cannot be used: {why}"));
        }
        if let Some(file) = inf.entry(name, FILE) {
            let path = file.value(0);
            if path.chars().count() > MAX_FILE_NAME {
                self.report(
                    file.line,
                    format!("FileName has more than {MAX_FILE_NAME} characters"),
                );
            }
            let start = path.get(..DRIVER_DATA.len());
            if !start.is_some_and(|start| start.eq_ignore_ascii_case(DRIVER_DATA)) {
                let message = format!(
                    "FileName is {path}; expected a path below the folder for drivers' data, such as \
                     `%%DriverData%%\\FILE`"
                );
                self.judge(&mode::FILE_NOT_ISOLATED, file.line, &message);
            }
        }
        self.session_providers(section);
    }

    /// Checks the providers of a session.
    fn session_providers(&mut self, session: &'a Section) {
        for entry in entries(session, ADD_PROVIDER) {
            self.guid(entry, entry.value(0), "session's provider");
            if let Some(section) = self.reach(entry, entry.value(1)) {
                self.settings(section, "a session's provider", &keys(PROVIDER, &[]));
            }
        }
    }

    /// Compares the sessions that an install section adds with the declaration's sessions.
    fn declared_sessions(
        &mut self,
        install: &Section,
        section: Option<&'a Section>,
        added: &[&Entry],
    ) {
        let driver = self.driver;
        for provider in driver.providers.iter().flatten() {
            let Some(session) = &provider.autologger else {
                continue;
            };
            let name = &session.session;
            let Some(entry) = added.iter().find(|one| one.value(0).eq_ignore_ascii_case(name))
            else {
                self.report(
                    section.map_or(install.line, |section| section.line),
                    format!(
                        "the file does not add the session {name} that the declaration of the \
                         provider {} requests; add `{}` to [{}.Events]",
                        provider.name,
                        session.line("SECTION"),
                        install.name
                    ),
                );
                continue;
            };
            let guid = format!("{{{}}}", session.guid);
            if !entry.value(1).eq_ignore_ascii_case(&guid) {
                self.report(
                    entry.line,
                    format!(
                        "the GUID of the session {name} is {}; the declaration says {guid}",
                        entry.value(1)
                    ),
                );
            }
            if let Some(of_session) = self.inf.section(entry.value(2)) {
                self.declared_session(provider, session, of_session);
            }
        }
    }

    /// Compares the section of a session with the declaration.
    fn declared_session(
        &mut self,
        provider: &Provider,
        session: &AutoLogger,
        section: &'a Section,
    ) {
        let name = &session.session;
        self.declared_numbers(&format!("the session {name}"), section, SESSION, &session.values);
        let file = session.file.as_ref().map(|file| format!("{DRIVER_DATA}{file}"));
        let found = self.inf.entry(&section.name, FILE);
        let text = found.map(|found| found.value(0).to_owned());
        if text.as_ref().map(|text| text.to_ascii_lowercase())
            != file.as_ref().map(|file| file.to_ascii_lowercase())
        {
            let shown = |text: Option<String>| text.unwrap_or_else(|| "nothing".to_owned());
            self.report(
                found.map_or(section.line, |found| found.line),
                format!(
                    "FileName of the session {name} is {}; the declaration says {}",
                    shown(text),
                    shown(file)
                ),
            );
        }
        let guid = format!("{{{}}}", provider.guid);
        let own =
            entries(section, ADD_PROVIDER).find(|entry| entry.value(0).eq_ignore_ascii_case(&guid));
        let Some(own) = own else {
            self.report(
                section.line,
                format!(
                    "the session {name} does not enable the provider {}; add `{ADD_PROVIDER} = \
                     {guid},SECTION` to [{}]",
                    provider.name, section.name
                ),
            );
            return;
        };
        if let Some(section) = self.inf.section(own.value(1)) {
            let of = format!("the provider {} in the session {name}", provider.name);
            self.declared_numbers(&of, section, PROVIDER, &session.provider_values);
        }
    }

    /// Compares the numbers of a section with the declaration's numbers.
    fn declared_numbers(
        &mut self,
        of: &str,
        section: &Section,
        settings: &[Setting],
        declared: &[(&'static str, u64)],
    ) {
        for setting in settings {
            let key = setting.key;
            let wanted = declared.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
            // Declarations cannot contain the other settings.
            if wanted.is_none() && setting.ident.is_none() {
                continue;
            }
            let entry = self.inf.entry(&section.name, key);
            let found = entry.map_or(setting.default, |entry| number(entry.value(0)));
            if found == wanted.or(setting.default) {
                continue;
            }
            let shown = entry.map_or("missing", |entry| entry.value(0));
            let wanted = wanted.map(|value| written(key, value));
            let says = wanted.as_deref().unwrap_or("nothing");
            let remedy = wanted.as_ref().map_or_else(
                || "remove the line".to_owned(),
                |value| format!("write `{key} = {value}`"),
            );
            self.report(
                entry.map_or(section.line, |entry| entry.line),
                format!("{key} of {of} is {shown}; the declaration says {says}; {remedy}"),
            );
        }
    }
}
