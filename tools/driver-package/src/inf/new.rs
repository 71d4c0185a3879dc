//! Writes INF files for drivers that have none.

use std::fmt::Write as _;

use super::{
    channel::{OwnChannel, Value},
    check::{Framework, Provider, line},
    class,
};

/// The driver for which to write an INF file.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// The image's file name without extension, which is also the service's name.
    pub image: &'a str,
    /// The device's hardware ID.
    pub hardware_id: &'a str,
    /// The device's setup class.
    pub class: &'a str,
    /// The company, as both provider and manufacturer.
    pub company: &'a str,
    /// The driver's description.
    pub description: &'a str,
    /// The framework's version.
    pub framework: Framework,
    /// The ETW providers. The file registers them if any of them needs the image for decoding.
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

impl New<'_> {
    /// Returns the text of an unstamped INF file (`.inx`) that installs the driver.
    ///
    /// As Windows requires of drivers for all of its editions, the file copies files only to the
    /// driver store, writes only to the registry keys of the device and the service, and needs no
    /// co-installer.
    ///
    /// # Errors
    ///
    /// Fails if the class is unknown, or if a value is not allowed in an INF file.
    pub fn text(&self) -> Result<String, NewError> {
        let Self { image, hardware_id, sddl, .. } = *self;
        let guid = class::guid(self.class).ok_or_else(|| NewError::Class(self.class.to_owned()))?;
        name("image's name", image, "_-.")?;
        name("hardware ID", hardware_id, "\\_-.&*{}#")?;
        name("security descriptor", sddl, ":;()-_")?;
        for (what, text) in [("company", self.company), ("description", self.description)] {
            let is_allowed = |one: char| matches!(one, ' '..='~') && one != '%';
            if !text.chars().all(is_allowed) {
                let text = text.to_owned();
                return Err(NewError::Characters { what, text });
            }
        }
        let build = self.framework.oldest_build();
        let class = self.class;
        let (company, description) = (quoted(self.company), quoted(self.description));
        let events = self.events()?;
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
             [Manufacturer]\n\
             %Company% = Devices,NT$ARCH$.10.0...{build}\n\
             \n\
             [Devices.NT$ARCH$.10.0...{build}]\n\
             %Device% = Device_Install,{hardware_id}\n\
             \n\
             [Device_Install.NT$ARCH$]\n\
             CopyFiles = Files\n\
             \n\
             [Files]\n\
             {image}.sys\n\
             \n\
             ; Who may open the device: the system and administrators, unless the driver says otherwise.\n\
             [Device_Install.NT$ARCH$.HW]\n\
             AddReg = Device_Registry\n\
             \n\
             [Device_Registry]\n\
             HKR,,Security,,\"{sddl}\"\n\
             \n\
             [Device_Install.NT$ARCH$.Services]\n\
             AddService = {image},%SPSVCINST_ASSOCSERVICE%,Service\n\
             \n\
             [Service]\n\
             DisplayName   = %Service%\n\
             ServiceType   = 1 ; SERVICE_KERNEL_DRIVER\n\
             StartType     = 3 ; SERVICE_DEMAND_START\n\
             ErrorControl  = 1 ; SERVICE_ERROR_NORMAL\n\
             ServiceBinary = %13%\\{image}.sys\n\
             \n\
             [Device_Install.NT$ARCH$.Wdf]\n\
             KmdfService = {image},Framework\n\
             \n\
             [Framework]\n\
             KmdfLibraryVersion = $KMDFVERSION$\n\
             {events}\n\
             [Strings]\n\
             SPSVCINST_ASSOCSERVICE = 0x00000002\n\
             Company                = {company}\n\
             Disk                   = {description}\n\
             Device                 = {description}\n\
             Service                = {description}\n"
        ))
    }

    /// Returns the sections that register the providers.
    fn events(&self) -> Result<String, NewError> {
        // An image's resources describe all its providers, even those without manifest-based
        // events.
        if !self.providers.iter().any(|one| one.has_resources) {
            return Ok(String::new());
        }
        let mut text = String::from(
            "\n; Decoders find the event metadata of the providers in the driver's image.\n\
             [Device_Install.NT$ARCH$.Events]\n",
        );
        let mut sections = String::new();
        for (number, provider) in (1..).zip(self.providers) {
            let Provider { guid, name: of, .. } = provider;
            name("ETW provider's name", of, "_-. ()/")?;
            let _ = writeln!(text, "AddEventProvider = {{{guid}}},Event_Provider_{number}");
            let image = self.image;
            let _ = write!(
                sections,
                "\n[Event_Provider_{number}]\n\
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
        }
        Ok(text + &sections)
    }
}
