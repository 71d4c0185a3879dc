//! `cargo etw inf`: writes INF files, and checks them against the driver.

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
    process::{Command as Process, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Arg, ArgMatches, Command};
use driver_package::{
    archive,
    inf::{
        self, AutoLogger, Channel, ChannelKind, ChannelSettings, Diagnostic, Framework, Inf, Mode,
        New, NewError, OwnChannel, Provider, Severity, Source, Stamp,
    },
};
use etw_manifest::Manifest;
use jiff::Timestamp;
use serde_json::{Value, json};
use wdk_etw_schema::Encoding;

use driver_build::{files, progress::step};

use crate::{
    at_hand::{self, AtHand},
    manifest,
    options::{file, flag, is_json, message_format, optional, optional_file, path, required, text},
};

/// The security descriptor of a new INF file: the system and administrators have full access.
const SDDL: &str = "D:P(A;;GA;;;SY)(A;;GA;;;BA)";
/// The setup class of a new INF file.
const CLASS: &str = "System";
/// The framework version of a driver whose metadata does not specify one; wdk-build uses the same
/// version.
const FRAMEWORK: Framework = Framework { major: 1, minimum: 31, target: 31 };
/// The source of a channel's settings in messages, unless a declaration names a manifest.
const DECLARATION: &str = "its declaration";
/// The time limit in seconds for loading a driver, adding its device, and unloading it.
const SECONDS: u64 = 60;

/// Returns the command line.
pub fn command() -> Command {
    let new = Command::new("new")
        .about("Write the driver's unstamped INF file (.inx)")
        .arg(text(
            "hardware-id",
            "ID",
            "The device's hardware ID [default: Root\\ followed by the driver's name]",
        ))
        .arg(
            flag(
                "primitive",
                "Write the file of a driver without a device, a primitive driver [default: for a WDM driver \
                 without an AddDevice routine in its last built image, or without such an image]",
            )
            .conflicts_with("hardware-id"),
        )
        .arg(text("class", "NAME", "The device's setup class").default_value(CLASS))
        .arg(text(
            "company",
            "NAME",
            "The provider and manufacturer [default: the package's first author, or its name]",
        ))
        .arg(path(
            "out",
            "FILE",
            "The file to write [default: NAME.inx beside the driver's Cargo.toml]",
        ))
        .arg(flag("force", "Replace an existing file"));
    let check = Command::new("check")
        .about("Check the driver's INF file against the rules of infverif and against the driver")
        .arg(optional_file(
            "inf",
            "The INF file, stamped (.inf) or not (.inx) [default: the driver's]",
        ))
        .arg(path(
            "image",
            "FILE",
            "The driver's image [default: the last one that `cargo etw build` built, if any]",
        ))
        .arg(text("hardware-id", "ID", "The hardware ID that the file must list"))
        .arg(mode_argument())
        .arg(message_format());
    let examine = Command::new("examine")
        .about("Load an image in the stand-in kernel, and print the values that an INF file must match")
        .hide(true)
        .arg(file("image", "The driver's image"));
    Command::new("inf")
        .about("Write and check INF files")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(at_hand::arguments(new))
        .subcommand(at_hand::arguments(check))
        .subcommand(examine)
}

/// Returns the argument that chooses the mode of `infverif`.
pub fn mode_argument() -> Arg {
    text(
        "mode",
        "MODE",
        "The requirements for the INF file, by the modes of infverif: `windows` (/w), `universal` (/u), \
         `declarative` (/k) or `desktop` (/h) [default: `inf-mode` in [package.metadata.etw], or `windows`]",
    )
    .value_parser(Mode::ALL.map(Mode::name))
}

/// Returns the mode of `infverif`.
pub fn mode(matches: &ArgMatches, driver: &AtHand) -> Result<Mode> {
    let name: Option<String> = optional(matches, "mode")?;
    Ok(name.as_deref().and_then(Mode::named).or_else(|| driver.inf_mode()).unwrap_or_default())
}

/// Runs the command.
pub fn run(name: &str, matches: &ArgMatches) -> Result<()> {
    match name {
        "new" => new(matches),
        "check" => check(matches),
        "examine" => {
            println!("{}", examine(&required::<PathBuf>(matches, "image")?)?);
            Ok(())
        }
        other => bail!("`cargo etw inf` has no command {other}"),
    }
}

/// `inf new`: writes the driver's unstamped INF file.
fn new(matches: &ArgMatches) -> Result<()> {
    let driver = AtHand::of(matches)?;
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
    for session in sessions(&providers) {
        eprintln!("note: only Windows 11 and later add the session {session}, at the next boot");
    }
    if manifest::has_manifest_events(&driver.declarations()?) {
        eprintln!(
            "note: the INF file registers the provider with the image in the driver store; to \
             register the manifest on a machine without the driver, run `{}`",
            manifest::install_command(&format!("{image}.man"), &format!("{image}.sys"))
        );
    }
    Ok(())
}

/// Returns whether the image that was built last has a routine that adds devices.
fn adds_devices(driver: &AtHand) -> bool {
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
fn company(driver: &AtHand) -> String {
    let author = driver.driver.authors.first();
    let name = author.map(|author| author.split('<').next().unwrap_or_default().trim());
    match name {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => driver.driver.package.clone(),
    }
}

/// Returns the driver's description, without a final period.
pub fn description(driver: &AtHand) -> String {
    let text = driver.driver.description.trim().trim_end_matches('.');
    if text.is_empty() { format!("{} driver", driver.driver.package) } else { text.to_owned() }
}

/// Returns the framework's version in the driver's metadata.
pub fn framework(driver: &AtHand) -> Framework {
    let named = driver.driver.framework;
    named.map_or(FRAMEWORK, |named| Framework {
        major: named.major,
        minimum: named.minimum,
        target: named.target,
    })
}

/// Returns the driver's providers: from its declarations or, if it has none, from its image's
/// resources. Returns `None` if neither is known.
fn providers(driver: &AtHand, image: Option<&Path>) -> Result<Option<Vec<Provider>>> {
    let declarations = driver.declarations()?;
    let declared: Vec<_> = declarations.iter().flat_map(|one| &one.providers).collect();
    if !declared.is_empty() {
        // A declaration's channels are in the manifest generated from it, or in the manifest that
        // it names.
        let manifest = if declared.iter().any(|provider| !provider.channels.is_empty()) {
            manifest::of_declarations(&declarations, &driver.installed())?
        } else {
            Manifest::default()
        };
        let providers = declared.iter().map(|provider| {
            let described = manifest.providers.iter().find(|one| one.guid == provider.guid);
            Provider {
                guid: provider.guid.to_string(),
                name: provider.name.clone(),
                has_resources: provider
                    .events
                    .iter()
                    .any(|event| event.encoding == Encoding::Manifest),
                channels: described.map(channels).unwrap_or_default(),
                described_by: provider
                    .manifest
                    .as_ref()
                    .map_or_else(|| DECLARATION.to_owned(), |file| format!("the manifest {file}")),
                autologger: provider.autologger.as_ref().map(autologger),
            }
        });
        return Ok(Some(providers.collect()));
    }
    let described = image.and_then(|image| at_hand::described(image).ok());
    Ok(described.map(|manifest| {
        let providers = manifest.providers.iter().map(|provider| Provider {
            guid: provider.guid.to_string(),
            name: provider.name.clone(),
            has_resources: !provider.events.is_empty(),
            channels: channels(provider),
            described_by: "its image".to_owned(),
            autologger: None,
        });
        providers.collect()
    }))
}

/// Returns a session that a provider declares.
fn autologger(declared: &wdk_etw_schema::AutoLogger) -> AutoLogger {
    AutoLogger {
        session: declared.session.clone(),
        guid: declared.guid.to_string(),
        file: declared.file.clone(),
        values: declared.values.clone(),
        provider_values: declared.provider_values.clone(),
    }
}

/// Returns the channels that a provider lists in its manifest.
fn channels(provider: &etw_manifest::Provider) -> Vec<Channel> {
    // Resources list only the channels that events use.
    let listed = provider.channels.iter().filter(|one| one.declared || !one.imported);
    listed
        .map(|channel| Channel {
            name: channel.name.clone(),
            own: (!channel.imported)
                .then(|| OwnChannel { value: channel.value, settings: settings(channel) }),
        })
        .collect()
}

/// Returns a channel's settings, or `None` if its type is unknown, as in an image's resources.
fn settings(channel: &etw_manifest::Channel) -> Option<ChannelSettings> {
    let kind = ChannelKind::ALL.into_iter().find(|kind| kind.name() == channel.kind)?;
    Some(ChannelSettings {
        kind,
        enabled: channel.enabled,
        isolation: channel.isolation.clone(),
        access: channel.access.clone(),
        max_size: channel.logging.max_size,
        retention: channel.logging.retention,
        auto_backup: channel.logging.auto_backup,
    })
}

/// Returns the values that the driver's INF file must match. Loads the image, if there is one, in
/// the stand-in kernel; the other values come from the metadata.
pub fn expected(
    driver: &AtHand,
    image: Option<&Path>,
    hardware_id: Option<String>,
) -> Result<inf::Driver> {
    let mut expected = inf::Driver {
        image: format!("{}.sys", driver.driver.image),
        hardware_id,
        framework: Some(framework(driver)),
        is_wdm: driver.driver.is_wdm(),
        adds_devices: None,
        providers: providers(driver, image)?,
        sddl: None,
    };
    let Some(image) = image else {
        eprintln!(
            "note: the device's security descriptor is not compared, because there is no x64 \
             image to load; build one with `cargo etw build`"
        );
        return Ok(expected);
    };
    let title = format!("Loading {} in the stand-in kernel", image.display());
    match step(&title, || examine_apart(image)) {
        Ok(found) => {
            for note in found["notes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                eprintln!("note: {note}");
            }
            expected.sddl = found["sddl"].as_str().map(str::to_owned);
            expected.adds_devices = found["adds_devices"].as_bool();
            // The image decides: metadata can name a framework that the driver does not use.
            expected.is_wdm = found["framework"].is_null();
            if !expected.is_wdm
                && let Some(note) = note_on_descriptor(&found)
            {
                eprintln!("note: {note}");
            }
            let number = |at: usize| found["framework"][at].as_u64()?.try_into().ok();
            if let (Some(major), Some(minor)) = (number(0), number(1))
                && driver.driver.framework.is_none()
            {
                expected.framework = Some(Framework { major, minimum: minor, target: minor });
            }
        }
        Err(error) => {
            eprintln!("warning: the INF file is not compared with the running driver: {error:#}");
        }
    }
    Ok(expected)
}

/// Returns the reason why the INF file's security descriptor cannot be compared with a device's. A
/// device without its own descriptor uses the INF file's, so it needs no note.
fn note_on_descriptor(found: &Value) -> Option<&'static str> {
    let adds_devices = found["adds_devices"].as_bool() == Some(true);
    (!adds_devices).then_some(
        "the driver has no EvtDriverDeviceAdd, so the INF file's security descriptor is not \
         compared with a device's",
    )
}

/// Examines an image in a separate process, so that a crash of the driver does not end this
/// process.
fn examine_apart(image: &Path) -> Result<Value> {
    let program = env::current_exe().context("cannot find the path of this program")?;
    let mut child = Process::new(program)
        .args(["etw", "inf", "examine"])
        .arg(image)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start this program again")?;
    let start = Instant::now();
    while child.try_wait().context("cannot wait for this program")?.is_none() {
        if start.elapsed() > Duration::from_secs(SECONDS) {
            // Fails only if the process has already ended.
            let _ = child.kill();
            let _ = child.wait();
            bail!("the driver did not load, start its device and unload within {SECONDS} s");
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().context("cannot read the output of this program")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr).trim().trim_start_matches("error: ")
    );
    serde_json::from_slice(&output.stdout).context("cannot read the output of this program")
}

/// Loads an image in the stand-in kernel, and returns the values that an INF file must match.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn examine(image: &Path) -> Result<Value> {
    let missing = standin_kernel::run::confine(image)?;
    let kernel = standin_kernel::Kernel::new();
    // After an error, the driver can still be loaded.
    let mut found = examine_in(&kernel, image).inspect_err(|_| kernel.leave_behind())?;
    found["notes"] = missing.into();
    Ok(found)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn examine_in(kernel: &standin_kernel::Kernel, image: &Path) -> Result<Value> {
    let stem = image.file_stem().and_then(|stem| stem.to_str());
    let service =
        stem.with_context(|| format!("the file name of {} is not UTF-8", image.display()))?;
    let loaded = kernel
        .load_as(image, service)
        .with_context(|| format!("cannot load {}", image.display()))?;
    let framework = loaded.framework_version();
    let adds_devices = loaded.adds_devices()?;
    let sddl = if adds_devices {
        let device = loaded
            .add_device()
            .with_context(|| format!("{} cannot add a device", image.display()))?;
        let sddl = device.sddl()?;
        device.remove()?;
        sddl
    } else {
        None
    };
    loaded.unload()?;
    Ok(json!({
        "framework": framework.map(<[u32; 2]>::from),
        "adds_devices": adds_devices,
        "sddl": sddl,
    }))
}

/// Fails, because the stand-in kernel does not support this system.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn examine(image: &Path) -> Result<Value> {
    bail!(
        "cannot load {}: the stand-in kernel runs on x86-64 Linux only; on Windows, the WDK's \
         infverif checks INF files",
        image.display()
    )
}

/// Returns the driver's four-part version, derived from its package's version.
pub fn driver_version(version: &str) -> Result<String> {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = numbers.split('.').collect();
    ensure!(
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u16>().is_ok()),
        "the package's version {version} is not valid for a driver: each number must be at most 65,535"
    );
    Ok(format!("{numbers}.0"))
}

/// Reads the text of an INF file.
pub fn read_source(path: &Path) -> Result<Source> {
    let source = Source::decode(&files::read(path)?);
    source.with_context(|| format!("{} is not UTF-16, though it begins as such", path.display()))
}

/// Reads an INF file, and stamps it with these values unless it is already stamped.
pub fn stamped(path: &Path, stamp: &Stamp<'_>) -> Result<Source> {
    let mut source = read_source(path)?;
    let is_stamped = path.extension().is_some_and(|one| one.eq_ignore_ascii_case("inf"));
    if !is_stamped {
        source.text = stamp.apply(&source.text);
    }
    Ok(source)
}

/// `inf check`: checks that a file installs the driver.
fn check(matches: &ArgMatches) -> Result<()> {
    let driver = AtHand::of(matches)?;
    let mode = mode(matches, &driver)?;
    let path = match optional(matches, "inf")? {
        Some(path) => path,
        None => driver.some_inf()?,
    };
    let image = optional(matches, "image")?.or_else(|| driver.image());
    let wanted = optional(matches, "hardware-id")?;
    let expected = expected(&driver, image.as_deref(), wanted)?;
    let stamp = Stamp {
        architecture: "amd64",
        framework: &framework(&driver).to_string(),
        date: &Timestamp::now().strftime("%m/%d/%Y").to_string(),
        version: &driver_version(&driver.driver.version)?,
    };
    let text = stamped(&path, &stamp)?;
    let inf = Inf::read_source(&text).with_context(|| format!("cannot read {}", path.display()))?;
    let diagnostics = inf::check(&inf, &expected, mode);
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
    if is_json(matches)? {
        let message = json!({
            "reason": "inf-check",
            "package": driver.driver.package,
            "inf": path,
            "image": image,
            "mode": mode.name(),
            "success": errors == 0,
            "findings": diagnostics.iter().map(in_json).collect::<Vec<_>>(),
        });
        println!("{message}");
    } else {
        print(&path, &diagnostics);
    }
    ensure!(errors == 0, "{} breaks {}", path.display(), rules(errors));
    if !is_json(matches)? {
        println!("{} installs {}", path.display(), expected.image);
    }
    Ok(())
}

fn rules(number: usize) -> String {
    if number == 1 { "one rule".to_owned() } else { format!("{number} rules") }
}

fn in_json(diagnostic: &Diagnostic) -> Value {
    json!({
        "severity": severity(diagnostic),
        "line": diagnostic.line,
        "message": diagnostic.message,
    })
}

const fn severity(diagnostic: &Diagnostic) -> &'static str {
    match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// Prints diagnostics in the format of a compiler's messages.
fn print(path: &Path, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        let line = diagnostic.line.map_or_else(String::new, |line| format!(":{line}"));
        let (path, severity) = (path.display(), severity(diagnostic));
        eprintln!("{severity}: {path}{line}: {}", diagnostic.message);
    }
}

/// Fails if a stamped file does not install the driver; prints warnings about the file.
pub fn check_text(path: &Path, text: &Source, driver: &inf::Driver, mode: Mode) -> Result<Inf> {
    let inf = Inf::read_source(text).with_context(|| format!("cannot read {}", path.display()))?;
    let diagnostics = inf::check(&inf, driver, mode);
    print(path, &diagnostics);
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
    ensure!(
        errors == 0,
        "{} breaks {}; to check it again, run `cargo etw inf check`",
        path.display(),
        rules(errors)
    );
    Ok(inf)
}

/// Returns the hardware IDs that a file lists.
pub fn hardware_ids(inf: &Inf) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let manufacturers = inf.section("Manufacturer").into_iter().flat_map(|one| &one.entries);
    for manufacturer in manufacturers {
        for decoration in manufacturer.values.iter().skip(1) {
            let models = inf.section(&format!("{}.{decoration}", manufacturer.value(0)));
            for id in models
                .into_iter()
                .flat_map(|one| &one.entries)
                .flat_map(|model| model.values.iter().skip(1))
            {
                if !id.is_empty() && !ids.iter().any(|known| known.eq_ignore_ascii_case(id)) {
                    ids.push(id.clone());
                }
            }
        }
    }
    ids
}

/// Returns the services that an INF file adds.
pub fn services(inf: &Inf) -> Vec<String> {
    let entries = inf.sections().iter().flat_map(|section| &section.entries);
    let is_service = |entry: &&inf::Entry| {
        let key = entry.key.as_deref();
        key.is_some_and(|key| key.eq_ignore_ascii_case("AddService"))
    };
    let mut names: Vec<String> = entries
        .filter(is_service)
        .map(|entry| entry.value(0).to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_driver_without_devices_gets_the_note_about_descriptors() {
        let note = |adds_devices: bool, sddl: Option<&str>| {
            note_on_descriptor(&json!({ "adds_devices": adds_devices, "sddl": sddl }))
        };
        assert_eq!(note(true, Some("D:P(A;;GA;;;SY)")), None);
        assert_eq!(note(true, None), None);
        assert!(note(false, None).is_some_and(|note| note.contains("no EvtDriverDeviceAdd")));
    }

    #[test]
    fn a_packages_version_is_a_drivers() {
        assert_eq!(driver_version("3.1.4").unwrap(), "3.1.4.0");
        assert_eq!(driver_version("3.1.4-rc.1+x").unwrap(), "3.1.4.0");
        let error = driver_version("70000.1.0").unwrap_err().to_string();
        assert!(error.contains("70000.1.0"), "{error}");
    }
}
