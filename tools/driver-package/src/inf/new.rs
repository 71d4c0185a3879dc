//! Writes INF files for drivers that have none.

use std::fmt::Write as _;

use super::{
    autologger::{AutoLogger, written},
    channel::{OwnChannel, Value, line},
    check::{Framework, OLDEST_BUILD, Provider, WINDOWS_11},
    class,
};

/// The driver for which to write an INF file.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// The image's file name without extension, which is also the service's name.
    pub image: &'a str,
    /// The device's hardware ID; `None` for a driver without a device, a primitive driver.
    pub hardware_id: Option<&'a str>,
    /// The setup class.
    pub class: &'a str,
    /// The company, as both provider and manufacturer.
    pub company: &'a str,
    /// The driver's description.
    pub description: &'a str,
    /// The framework's version; `None` for a driver without a framework (WDM).
    pub framework: Option<Framework>,
    /// The ETW providers. The file registers them if decoders need the image for any of them, and adds
    /// the sessions that they declare.
    pub providers: &'a [Provider],
    /// The device's security descriptor.
    pub sddl: &'a str,
}

/// The reason why an INF file cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NewError {
    /// The setup class is unknown.
    #[error(
        "this command does not know the setup class {0}; write the INF file with another class, \
         then change Class and ClassGuid in it"
    )]
    Class(String),
    /// A value contains a character that strings in an ASCII INF file must not contain.
    #[error("the {what} {text:?} has characters outside ASCII or a percent sign")]
    Characters {
        /// The value.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// Two providers name the same session and describe it differently.
    #[error(
        "the providers {one} and {other} describe the session {session} differently; write the same settings \
         of the session and the same file in both, or name two sessions"
    )]
    Session {
        /// The session.
        session: String,
        /// A provider.
        one: String,
        /// The other provider.
        other: String,
    },
    /// A value is empty or contains a character with a special meaning in INF files.
    #[error("{text:?} cannot be the {what}: expected letters, digits and any of {allowed}")]
    Name {
        /// The value.
        what: &'static str,
        /// The text.
        text: String,
        /// The special characters that are allowed.
        allowed: &'static str,
    },
}

/// Returns a string for the `[Strings]` section.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Returns the entries of numbers.
fn numbers(values: &[(&'static str, u64)]) -> String {
    values.iter().fold(String::new(), |mut text, (key, value)| {
        let _ = writeln!(text, "{key} = {}", written(key, *value));
        text
    })
}

/// Fails unless a name consists of letters, digits and the allowed characters.
fn name(what: &'static str, text: &str, allowed: &'static str) -> Result<(), NewError> {
    let is_allowed = |one: char| one.is_ascii_alphanumeric() || allowed.contains(one);
    if !text.is_empty() && text.chars().all(is_allowed) {
        return Ok(());
    }
    Err(NewError::Name { what, text: text.to_owned(), allowed })
}

/// Returns the entries of a channel's section.
fn entries(own: &OwnChannel) -> Result<String, NewError> {
    let mut entries = String::new();
    for Value { key, text, .. } in own.values() {
        let Some(text) = text else {
            continue;
        };
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        if !text.chars().all(|one| matches!(one, ' '..='~') && one != '%') {
            return Err(NewError::Characters { what: "access of an event log channel", text });
        }
        let text = if is_number { text } else { quoted(&text) };
        let _ = writeln!(entries, "{key:<17} = {text}");
    }
    Ok(entries)
}

/// An install section.
struct Install {
    /// The name, without the architecture.
    name: &'static str,
    /// True if it adds the sessions.
    adds_sessions: bool,
}

impl New<'_> {
    /// Returns the text of an unstamped INF file (`.inx`) that installs the driver.
    ///
    /// Windows requires this of drivers for all of its editions: the file copies files only to the
    /// driver store, writes only to the registry keys of the device and the service, and needs no
    /// co-installer.
    ///
    /// # Errors
    ///
    /// Fails if the class is unknown, or if a value is not allowed in an INF file.
    pub fn text(&self) -> Result<String, NewError> {
        let Self { image, hardware_id, .. } = *self;
        let guid = class::guid(self.class).ok_or_else(|| NewError::Class(self.class.to_owned()))?;
        name("image's name", image, "_-.")?;
        if let Some(hardware_id) = hardware_id {
            name("hardware ID", hardware_id, "\\_-.&*{}#")?;
        }
        for (what, text) in [("company", self.company), ("description", self.description)] {
            let is_allowed = |one: char| matches!(one, ' '..='~') && one != '%';
            if !text.chars().all(is_allowed) {
                let text = text.to_owned();
                return Err(NewError::Characters { what, text });
            }
        }
        let class = self.class;
        let (company, description) = (quoted(self.company), quoted(self.description));
        let (models, installs) = self.installs();
        // Returns a section for each install section: the install section itself if `part` is
        // empty, otherwise the section with this suffix that belongs to it.
        let each = |part: &str, text: &str| {
            let block = |install: &Install| format!("[{}.NT$ARCH${part}]\n{text}\n", install.name);
            installs.iter().map(block).collect::<String>()
        };
        let install = each("", "CopyFiles = Files\n");
        let hardware = self.hardware(&each)?;
        // Only a device has an associated service.
        let flags = if hardware_id.is_some() { "%SPSVCINST_ASSOCSERVICE%" } else { "" };
        let services = each(".Services", &format!("AddService = {image},{flags},Service\n"));
        let framework = self.framework.map_or_else(String::new, |_| {
            each(".Wdf", &format!("KmdfService = {image},Framework\n"))
                + "[Framework]\nKmdfLibraryVersion = $KMDFVERSION$\n\n"
        });
        let events = self.events(&installs)?;
        let (associated, device) = match hardware_id {
            None => ("", String::new()),
            Some(_) => (
                "SPSVCINST_ASSOCSERVICE = 0x00000002\n",
                format!("Device                 = {description}\n"),
            ),
        };
        Ok(format!(
            "; {image}.inf. stampinf, or `cargo etw package`, creates it from this file: it replaces $ARCH$\n\
             ; with the architecture and $KMDFVERSION$ with the framework's version, and writes DriverVer.\n\
             \n\
             [Version]\n\
             Signature   = \"$WINDOWS NT$\"\n\
             Class       = {class}\n\
             ClassGuid   = {guid}\n\
             Provider    = %Company%\n\
             CatalogFile = {image}.cat\n\
             DriverVer   = 01/01/2026,0.0.0.0\n\
             PnpLockdown = 1\n\
             \n\
             [DestinationDirs]\n\
             DefaultDestDir = 13\n\
             \n\
             [SourceDisksNames]\n\
             1 = %Disk%,,,\"\"\n\
             \n\
             [SourceDisksFiles]\n\
             {image}.sys = 1,,\n\
             \n\
             {models}\
             {install}\
             [Files]\n\
             {image}.sys\n\
             \n\
             {hardware}\
             {services}\
             [Service]\n\
             DisplayName   = %Service%\n\
             ServiceType   = 1 ; SERVICE_KERNEL_DRIVER\n\
             StartType     = 3 ; SERVICE_DEMAND_START\n\
             ErrorControl  = 1 ; SERVICE_ERROR_NORMAL\n\
             ServiceBinary = %13%\\{image}.sys\n\
             \n\
             {framework}\
             {events}\
             [Strings]\n\
             {associated}\
             Company                = {company}\n\
             Disk                   = {description}\n\
             {device}\
             Service                = {description}\n"
        ))
    }

    /// Returns the sections that choose the install sections, and the install sections. Sessions
    /// need Windows 11, so there are two install sections if the driver also runs on an older
    /// Windows.
    fn installs(&self) -> (String, Vec<Install>) {
        let adds_sessions = self.providers.iter().any(|one| one.autologger.is_some());
        let Some(hardware_id) = self.hardware_id else {
            let comment = "; A service without a device: a primitive driver.\n";
            return (comment.to_owned(), vec![Install { name: "DefaultInstall", adds_sessions }]);
        };
        let build = self.framework.map_or(OLDEST_BUILD, Framework::oldest_build);
        let mut builds = vec![(build, Install { name: "Device_Install", adds_sessions: false })];
        if adds_sessions {
            let install = Install { name: "Device_Install_Windows_11", adds_sessions };
            builds.push((WINDOWS_11, install));
        }
        let mut text = "[Manufacturer]\n%Company% = Devices".to_owned();
        for (build, _) in &builds {
            let _ = write!(text, ",NT$ARCH$.10.0...{build}");
        }
        text.push_str("\n\n");
        for (build, install) in &builds {
            let name = install.name;
            let _ = write!(
                text,
                "[Devices.NT$ARCH$.10.0...{build}]\n%Device% = {name},{hardware_id}\n\n"
            );
        }
        (text, builds.into_iter().map(|(_, install)| install).collect())
    }

    /// Returns the sections with the device's security descriptor.
    fn hardware(&self, each: &dyn Fn(&str, &str) -> String) -> Result<String, NewError> {
        if self.hardware_id.is_none() {
            return Ok(String::new());
        }
        let sddl = self.sddl;
        name("security descriptor", sddl, ":;()-_")?;
        let sections = each(".HW", "AddReg = Device_Registry\n");
        Ok(format!(
            "; Who may open the device: the system and administrators, unless the driver says otherwise.\n\
             {sections}\
             [Device_Registry]\n\
             HKR,,Security,,\"{sddl}\"\n\
             \n"
        ))
    }

    /// Returns the sections that register the providers and add their sessions.
    fn events(&self, installs: &[Install]) -> Result<String, NewError> {
        let (lines, sections) = self.registrations()?;
        let (sessions, of_sessions) = self.sessions()?;
        let mut text = String::new();
        for install in installs {
            let sessions = if install.adds_sessions { sessions.as_str() } else { "" };
            if !(lines.is_empty() && sessions.is_empty()) {
                let _ = write!(text, "[{}.NT$ARCH$.Events]\n{lines}{sessions}\n", install.name);
            }
        }
        if !lines.is_empty() {
            text.insert_str(
                0,
                "; Decoders find the event metadata of the providers in the driver's image.\n",
            );
        }
        Ok(text + &sections + &of_sessions)
    }

    /// Returns the lines that add the sessions, and the sessions' sections.
    fn sessions(&self) -> Result<(String, String), NewError> {
        let mut sessions: Vec<(&AutoLogger, Vec<(&Provider, &AutoLogger)>)> = Vec::new();
        for provider in self.providers {
            let Some(own) = &provider.autologger else {
                continue;
            };
            let same = |one: &AutoLogger| one.session.eq_ignore_ascii_case(&own.session);
            match sessions.iter_mut().find(|(one, _)| same(one)) {
                Some((one, others)) if one.differs(own) => {
                    return Err(NewError::Session {
                        session: own.session.clone(),
                        one: others[0].0.name.clone(),
                        other: provider.name.clone(),
                    });
                }
                Some((_, others)) => others.push((provider, own)),
                None => sessions.push((own, vec![(provider, own)])),
            }
        }
        let (mut lines, mut sections) = (String::new(), String::new());
        for (number, (session, providers)) in (1..).zip(sessions) {
            name("name of a session", &session.session, "_-. ()")?;
            let section = format!("AutoLogger_{number}");
            let _ = writeln!(lines, "{}", session.line(&section));
            let _ = writeln!(
                sections,
                "; Windows 11 starts the session at its next boot.\n[{section}]"
            );
            let _ = write!(sections, "{}", numbers(&session.values));
            if let Some(file) = &session.file {
                name("file of a session", file, "_-. ()\\")?;
                let _ = writeln!(sections, "FileName = \"%%DriverData%%\\{file}\"");
            }
            let mut of_providers = String::new();
            for (place, (provider, own)) in (1..).zip(providers) {
                let part = format!("{section}_Provider_{place}");
                let _ = writeln!(sections, "AddAutoLoggerProvider = {{{}}},{part}", provider.guid);
                let values = numbers(&own.provider_values);
                let _ = write!(of_providers, "\n[{part}]\n{values}");
            }
            let _ = writeln!(sections, "{of_providers}");
        }
        Ok((lines, sections))
    }

    /// Returns the lines that register the providers, and the providers' sections.
    fn registrations(&self) -> Result<(String, String), NewError> {
        let mut text = String::new();
        // An image's resources describe all its providers, even those without manifest-based
        // events.
        if !self.providers.iter().any(|one| one.has_resources) {
            return Ok((text.clone(), text));
        }
        let mut sections = String::new();
        for (number, provider) in (1..).zip(self.providers) {
            let Provider { guid, name: of, .. } = provider;
            name("ETW provider's name", of, "_-. ()/")?;
            let _ = writeln!(text, "AddEventProvider = {{{guid}}},Event_Provider_{number}");
            let image = self.image;
            let _ = write!(
                sections,
                "[Event_Provider_{number}]\n\
                 ProviderName = {of}\n\
                 ResourceFile = %13%\\{image}.sys\n\
                 MessageFile  = %13%\\{image}.sys\n"
            );
            let mut of_channels = String::new();
            for channel in &provider.channels {
                name("event log channel's name", &channel.name, "_-. ()/")?;
                let section = channel
                    .own
                    .as_ref()
                    .map(|own| format!("Event_Provider_{number}_Channel_{}", own.value))
                    .unwrap_or_default();
                let _ = writeln!(sections, "{}", line(channel, &section));
                if let Some(own) = &channel.own {
                    let _ = write!(of_channels, "\n[{section}]\n{}", entries(own)?);
                }
            }
            sections.push_str(&of_channels);
            sections.push('\n');
        }
        Ok((text, sections))
    }
}
