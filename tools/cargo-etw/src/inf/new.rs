//! `cargo etw inf new`: writes the driver's unstamped INF file.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, ensure};
use clap::ArgMatches;
use driver_build::files;
use driver_package::{
    archive,
    inf::{New, NewError, Provider},
};

use super::{
    driver::{DECLARATION, description, framework, providers},
    examine::examine_apart,
};
use crate::{
    manifest,
    options::{optional, required},
    selected_driver::{self, SelectedDriver},
};

/// The security descriptor of a new INF file: the system and administrators have full access.
const SDDL: &str = "D:P(A;;GA;;;SY)(A;;GA;;;BA)";

/// The setup class of a new INF file.
pub const CLASS: &str = "System";

/// Writes the driver's unstamped INF file.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let driver = SelectedDriver::select(matches)?;
    let out = optional(matches, "out")?.unwrap_or_else(|| driver.new_inf());
    ensure!(
        matches.get_flag("force") || !out.exists(),
        "{} exists; `--force` replaces it",
        out.display()
    );
    let image = &driver.driver.image;
    let hardware_id: Option<String> = optional(matches, "hardware-id")?;
    let is_primitive = matches.get_flag("primitive")
        || hardware_id.is_none() && driver.driver.is_wdm() && !adds_devices(&driver);
    let hardware_id =
        (!is_primitive).then(|| hardware_id.unwrap_or_else(|| format!("Root\\{image}")));
    let company = optional(matches, "company")?.unwrap_or_else(|| company(&driver));
    let providers = providers(&driver, None)?.unwrap_or_default();
    let text = New {
        image,
        hardware_id: hardware_id.as_deref(),
        class: &required::<String>(matches, "class")?,
        company: &company,
        description: &description(&driver),
        framework: (!driver.driver.is_wdm()).then(|| framework(&driver)),
        providers: &providers,
        sddl: SDDL,
    };
    let text = text.text().map_err(|error| {
        let remedy = match &error {
            NewError::Characters { what, .. } if *what == "company" => {
                "; name the company with `--company`, in ASCII"
            }
            NewError::Characters { .. } => "; change the package's description in Cargo.toml",
            _ => "",
        };
        anyhow!("{error}{remedy}")
    })?;
    // Windows' tools expect Windows line endings.
    let text = archive::windows_lines(&text);
    files::write(&out, text)?;
    println!("{}", out.display());
    if is_primitive {
        eprintln!(
            "note: the file installs a service without a device (a primitive driver), for Windows 10 1903 or \
             later; for a driver with an AddDevice routine, name its device with `--hardware-id`"
        );
    }
    for (channel, remedy) in disabled(&providers) {
        eprintln!(
            "note: the channel {channel} is disabled until someone enables it; to enable it with \
             the installation, {remedy}"
        );
    }
    if let Some(missing) = driver.missing_resources()? {
        eprintln!("warning: {missing}");
    }
    for session in sessions(&providers) {
        eprintln!("note: only Windows 11 and later add the session {session}, at the next boot");
    }
    if selected_driver::has_manifest_events(&driver.declarations()?) {
        eprintln!(
            "note: the INF file registers the provider with the image in the driver store; to \
             register the manifest on a machine without the driver, run `{}`",
            manifest::install_command(&format!("{image}.man"), &format!("{image}.sys"))
        );
    }
    Ok(())
}

/// Returns whether the image that was built last has a routine that adds devices.
fn adds_devices(driver: &SelectedDriver) -> bool {
    let Some(image) = driver.image() else {
        return false;
    };
    match examine_apart(&image) {
        Ok(found) => found["adds_devices"].as_bool() == Some(true),
        Err(error) => {
            eprintln!("warning: {} cannot be examined: {error:#}", image.display());
            false
        }
    }
}

/// Returns the channels for administrators whose declarations do not specify whether they are
/// enabled, each with the declaration to write.
fn disabled(providers: &[Provider]) -> impl Iterator<Item = (&str, String)> {
    let channels = providers
        .iter()
        .flat_map(|provider| provider.channels.iter().map(move |channel| (provider, channel)));
    channels
        .filter(|(_, channel)| {
            let settings = channel.own.as_ref().and_then(|own| own.settings.as_ref());
            settings.is_some_and(|settings| {
                settings.enabled.is_none() && settings.kind.is_for_administrators()
            })
        })
        .map(|(provider, channel)| {
            let remedy = match &provider.described_by {
                from if from == DECLARATION => "write `enabled = true` in its `#[channel(…)]`, and \
                                               `isolation = System` for a driver"
                    .to_owned(),
                from => format!(
                    "write `enabled=\"true\"` in its element of {from}, and `isolation=\"System\"` for a \
                     driver"
                ),
            };
            (channel.name.as_str(), remedy)
        })
}

/// Returns the names of the sessions that the file adds.
fn sessions(providers: &[Provider]) -> BTreeSet<&str> {
    let sessions = providers.iter().filter_map(|provider| provider.autologger.as_ref());
    sessions.map(|session| session.session.as_str()).collect()
}

/// Returns the driver's company: the package's first author, without an address.
fn company(driver: &SelectedDriver) -> String {
    let author = driver.driver.authors.first();
    let name = author.map(|author| author.split('<').next().unwrap_or_default().trim());
    match name {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => driver.driver.package.clone(),
    }
}
