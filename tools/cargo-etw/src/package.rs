//! `cargo etw package`: builds a driver package for a test machine without the WDK.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgAction, ArgMatches, Command};
use driver_build::{
    driver::{Messages, Profile},
    files::{self, read},
    toolchain::Machine,
};
use driver_package::{
    archive,
    catalog::{Catalog, Member, Version},
    inf::{Inf, Source, Stamp},
    scripts::Installed,
    sign::Certificate,
};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::json;

use driver_build::progress::step;

use crate::{
    build,
    inf::{
        self, check_text, description, driver_version, expected, framework,
        source::{hardware_ids, services, stamped},
    },
    manifest,
    options::{is_json, message_format, optional, path, required, several, text},
    recipes::{Traced, profile_of},
    selected_driver::{self, Declaration, SelectedDriver},
};

/// The operating system version in the catalog.
const KERNEL_VERSION: &str = "2:10.0";

/// Returns the command line.
pub fn command() -> Command {
    let command = Command::new("package")
        .about("Build, stamp, check and sign the driver's package for a test machine, and write it as a .zip file")
        .arg(path(
            "image",
            "FILE",
            "The driver's image [default: built as with `cargo etw build --release`]",
        ))
        .arg(path(
            "inf",
            "FILE",
            "The INF file, stamped (.inf) or not (.inx) [default: the driver's]",
        ))
        .arg(text(
            "driver-version",
            "A.B.C.D",
            "The driver's version [default: the package's version followed by .0]",
        ))
        .arg(text("hardware-id", "ID", "The hardware ID that the INF file must list"))
        .arg(inf::mode_argument())
        .arg(path(
            "certificate",
            "FOLDER",
            "The folder of the test certificate, which is created if it does not exist [default: \
             etw/certificate in the target folder]",
        ))
        .arg(
            text(
                "certificate-name",
                "TEXT",
                "The name in a new certificate",
            )
            .default_value("wdk-etw test certificate"),
        )
        .arg(
            text(
                "catalog",
                "VERSION",
                "The version of the catalog's members: 1 identifies files by SHA-1, 2 by SHA-1 \
                 and SHA-256",
            )
            .value_parser(["1", "2"])
            .default_value("1"),
        )
        .arg(text(
            "description",
            "TEXT",
            "The driver's description in the signatures and the README [default: the package's]",
        ))
        .arg(
            path(
                "text",
                "FILE",
                "A text file to add, or to replace a script of the package, with Windows line \
                 endings; can be repeated",
            )
            .action(ArgAction::Append),
        )
        .arg(
            path("file", "FILE", "An additional file; can be repeated")
                .action(ArgAction::Append),
        )
        .arg(path(
            "notes",
            "FILE",
            "A text file whose contents the README shows after the commands that trace the driver",
        ))
        .arg(path(
            "out",
            "FILE",
            "The .zip file to write [default: etw/package/NAME-VERSION-MACHINE.zip in the target \
             folder]",
        ))
        .arg(message_format());
    selected_driver::arguments(command)
}

/// Returns an image's machine type.
fn machine(image: &[u8], path: &Path) -> Result<Machine> {
    const PLACE_OF_OFFSET: usize = 0x3C;
    const PLACE_OF_MACHINE: usize = 4;
    let bytes = |at: usize, length: usize| image.get(at..at.checked_add(length)?);
    let offset = bytes(PLACE_OF_OFFSET, 4).and_then(|four| <[u8; 4]>::try_from(four).ok());
    let offset = offset.and_then(|offset| usize::try_from(u32::from_le_bytes(offset)).ok());
    let header = offset.and_then(|offset| bytes(offset, PLACE_OF_MACHINE + 2));
    match header {
        Some([b'P', b'E', 0, 0, 0x64, 0x86]) => Ok(Machine::X64),
        Some([b'P', b'E', 0, 0, 0x64, 0xAA]) => Ok(Machine::Arm64),
        _ => bail!("{} is not an x64 or ARM64 image", path.display()),
    }
}

/// Returns the version of the catalog's members from the command line.
fn catalog_version(matches: &ArgMatches) -> Result<Version> {
    match required::<String>(matches, "catalog")?.as_str() {
        "1" => Ok(Version::One),
        "2" => Ok(Version::Two),
        other => bail!("unknown version {other} of a catalog's members; expected 1 or 2"),
    }
}

/// The names of an architecture in different formats.
struct Architecture {
    /// The name in an INF file.
    inf: &'static str,
    /// The name in `inf2cat`'s list of systems.
    system: &'static str,
    /// The name in a catalog: Windows 10 2004 ("Vibranium") and later.
    catalog: &'static str,
}

impl Architecture {
    const fn from_machine(machine: Machine) -> Self {
        match machine {
            Machine::X64 => Self { inf: "amd64", system: "X64", catalog: "_v100_X64_Vb" },
            Machine::Arm64 => Self { inf: "arm64", system: "ARM64", catalog: "_v100_ARM64_Vb" },
        }
    }
}

/// The name, contents and description of a file.
type Extra = (String, Vec<u8>, &'static str);

/// The files generated for a package.
struct Made {
    inf: (String, Vec<u8>),
    image: (String, Vec<u8>),
    catalog: (String, Vec<u8>),
    certificate: (String, Vec<u8>),
    service: String,
    hardware_ids: Vec<String>,
    /// The files that the INF file lists, the symbols, the manifest and the profile.
    others: Vec<Extra>,
}

/// Builds the package.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let driver = SelectedDriver::select(matches)?;
    let requirements = inf::mode(matches, &driver)?;
    let file = match optional(matches, "inf")? {
        Some(inf) => inf,
        None => driver.some_inf()?,
    };
    let version = match optional(matches, "driver-version")? {
        Some(version) => version,
        None => driver_version(&driver.driver.version)?,
    };
    let image = image(matches, &driver)?;
    let data = read(&image)?;
    let architecture = machine(&data, &image)?;
    let declarations = driver.declarations()?;
    check_imports(&data, &image);
    check_resources(&driver, &declarations, &image)?;
    let now = Timestamp::now();
    let stamp = Stamp {
        architecture: Architecture::from_machine(architecture).inf,
        framework: &framework(&driver).to_string(),
        // `inf2cat` rejects dates in the future, and uses UTC.
        date: &now.strftime("%m/%d/%Y").to_string(),
        version: &version,
    };
    let wanted = optional(matches, "hardware-id")?;
    let runnable = (architecture == Machine::X64).then_some(image.as_path());
    let expected = expected(&driver, runnable, wanted)?;
    let (text, parsed) = step("Stamping and checking the INF file", || {
        let text = stamped(&file, &stamp)?;
        let parsed = check_text(&file, &text, &expected, requirements)?;
        Ok((text, parsed))
    })?;
    let stamped = Stamped { path: &file, text: &text, parsed: &parsed };
    let made = made(matches, &driver, &declarations, &image, &stamped, now)?;
    let out = match optional(matches, "out")? {
        Some(out) => out,
        None => driver.driver.target.join("etw/package").join(format!(
            "{}-{}-{}.zip",
            driver.driver.image,
            driver.driver.version,
            architecture.name()
        )),
    };
    let files = step("Writing the archive", || {
        let files = files(matches, &driver, made, architecture)?;
        let folder = out.parent().unwrap_or_else(|| Path::new("."));
        files::create_dir_all(folder)?;
        archive::write(&out, &driver.driver.image, &files)?;
        Ok(files)
    })?;
    if is_json(matches)? {
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let message = json!({
            "reason": "driver-package",
            "package": driver.driver.package,
            "version": version,
            "machine": architecture.name(),
            "archive": out,
            "files": names,
        });
        println!("{message}");
    } else {
        println!("{}", out.display());
    }
    Ok(())
}

/// Returns the image that the command line names, or builds one.
fn image(matches: &ArgMatches, driver: &SelectedDriver) -> Result<PathBuf> {
    if let Some(image) = optional(matches, "image")? {
        return Ok(image);
    }
    let toolchain = build::toolchain(Machine::X64, false)?;
    eprintln!("       Building {}.sys", driver.driver.image);
    let messages = if is_json(matches)? { Messages::Json } else { Messages::Human };
    let built = driver.driver.build(&toolchain, Profile::Release, messages)?;
    Ok(built.sys)
}

/// Fails if the driver has events that can only be decoded with resources, and the image lacks
/// them.
fn check_resources(
    driver: &SelectedDriver,
    declarations: &[Declaration],
    image: &Path,
) -> Result<()> {
    if !selected_driver::has_manifest_events(declarations) {
        return Ok(());
    }
    let described =
        selected_driver::described(image).with_context(|| driver.no_resources(declarations))?;
    let providers = declarations.iter().flat_map(|one| &one.providers);
    for provider in providers {
        let has_events = provider
            .events
            .iter()
            .any(|event| event.encoding == wdk_etw_schema::Encoding::Manifest);
        let is_described = described.providers.iter().any(|one| one.guid == provider.guid);
        ensure!(
            !has_events || is_described,
            "the resources of {} do not describe the provider {}; build the image again, and declare \
             all providers in the file that build.rs compiles",
            image.display(),
            provider.name
        );
    }
    Ok(())
}

/// Warns about imported routines that belong to a static library of the WDK.
fn check_imports(image: &[u8], path: &Path) {
    // The stand-ins import such routines as if from a module with the library's name.
    let end = b".lib\0";
    let libraries: BTreeSet<String> = (0..image.len())
        .filter(|at| image[*at..].starts_with(end))
        .map(|at| {
            let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
            let length = image[..at].iter().rev().take_while(is_letter).count();
            String::from_utf8_lossy(&image[at - length..at + 4]).into_owned()
        })
        .filter(|name| name != ".lib")
        .collect();
    if !libraries.is_empty() {
        eprintln!(
            "warning: {} uses routines of {}, which Windows does not export, so Windows will not \
             load this image; build the driver with the WDK, which links these routines",
            path.display(),
            Vec::from_iter(libraries).join(" and ")
        );
    }
}

/// A stamped INF file.
struct Stamped<'a> {
    path: &'a Path,
    text: &'a Source,
    parsed: &'a Inf,
}

/// Returns the files that an INF file lists in addition to the driver's image: from the command
/// line, or otherwise from the INF file's folder.
fn listed(matches: &ArgMatches, image: &str, inf: &Stamped<'_>) -> Result<Vec<Extra>> {
    let given: Vec<PathBuf> = several(matches, "file");
    let mut found: Vec<Extra> = Vec::new();
    let sections = inf.parsed.sections().iter().filter(|section| {
        let name = section.name.to_ascii_lowercase();
        name.split('.').next() == Some("sourcedisksfiles")
    });
    for file in sections.flat_map(|section| &section.entries) {
        let name = file.key.as_deref().unwrap_or_default();
        let is_known = found.iter().any(|(known, ..)| known.eq_ignore_ascii_case(name));
        if name.eq_ignore_ascii_case(image) || is_known {
            continue;
        }
        let has_name = |path: &&PathBuf| path.file_name().is_some_and(|own| own == name);
        let beside = inf.path.with_file_name(name);
        let path = given.iter().find(has_name).unwrap_or(&beside);
        let data = fs::read(path).with_context(|| {
            format!(
                "{} line {} lists {name}, but {} cannot be read; pass the file with `--file`",
                inf.path.display(),
                file.line,
                path.display()
            )
        })?;
        found.push((name.to_owned(), data, "a file that the INF file lists"));
    }
    Ok(found)
}

/// Signs the image and the catalog, and generates the files derived from the declaration.
fn made(
    matches: &ArgMatches,
    driver: &SelectedDriver,
    declarations: &[Declaration],
    image: &Path,
    stamped: &Stamped<'_>,
    now: Timestamp,
) -> Result<Made> {
    let name = &driver.driver.image;
    let folder: Option<PathBuf> = optional(matches, "certificate")?;
    let folder = folder.unwrap_or_else(|| driver.driver.target.join("etw/certificate"));
    let certificate_name: String = required(matches, "certificate-name")?;
    let about = optional(matches, "description")?.unwrap_or_else(|| description(driver));
    let catalog_name = stamped.parsed.value("Version", "CatalogFile");
    let catalog_name = catalog_name.context("the INF file names no catalog")?.to_owned();
    // The INF file keeps its name.
    let inf_name = name_of(&stamped.path.with_extension("inf"))?;
    let inf = (inf_name, with_windows_lines(stamped.text));
    let sys = format!("{name}.sys");
    let hardware_ids = hardware_ids(stamped.parsed);
    let mut others = listed(matches, &sys, stamped)?;
    let (signed, catalog, certificate) = step("Signing the driver and its catalog", || {
        let certificate = Certificate::find_or_make(&folder, &certificate_name)?;
        let signed = folder.join(&sys);
        certificate.sign_image(&about, image, &signed)?;
        let signed = read(&signed)?;
        let machine = machine(&signed, image)?;
        let mut members =
            vec![Member { name: &inf.0, data: &inf.1 }, Member { name: &sys, data: &signed }];
        members.extend(others.iter().map(|(name, data, _)| Member { name, data }));
        let catalog = Catalog {
            members: &members,
            hardware_ids: &hardware_ids,
            system: Architecture::from_machine(machine).catalog,
            versions: KERNEL_VERSION,
            version: catalog_version(matches)?,
        };
        let time = now.to_zoned(TimeZone::UTC).strftime("%y%m%d%H%M%SZ");
        let catalog = catalog.encode(&time.to_string())?;
        let catalog = certificate.sign_catalog(&about, &catalog)?;
        Ok((signed, catalog, certificate.to_der()?))
    })?;
    let symbols = image.with_extension("pdb");
    if symbols.exists() {
        others.push((format!("{name}.pdb"), read(&symbols)?, "symbols"));
    } else {
        eprintln!("note: {} does not exist, so the package has no symbols", symbols.display());
    }
    others.extend(descriptions(driver, declarations)?);
    Ok(Made {
        inf,
        image: (sys, signed),
        catalog: (catalog_name, catalog),
        certificate: (format!("{name}.cer"), certificate),
        service: services(stamped.parsed).into_iter().next().unwrap_or_else(|| name.clone()),
        hardware_ids,
        others,
    })
}

/// Returns the bytes of an INF file with Windows line endings, in its encoding.
fn with_windows_lines(source: &Source) -> Vec<u8> {
    let text = archive::windows_lines(&source.text);
    Source { text, encoding: source.encoding }.encode()
}

/// Returns the manifest, if tools can need it, and the profile for Windows Performance Recorder.
fn descriptions(driver: &SelectedDriver, declarations: &[Declaration]) -> Result<Vec<Extra>> {
    let name = &driver.driver.image;
    let providers = declarations.iter().flat_map(|one| &one.providers);
    let traced: Vec<Traced> = providers.map(Traced::declared).collect();
    let mut files = Vec::new();
    if selected_driver::has_manifest_events(declarations) {
        let made = manifest::of_declarations(declarations, &driver.installed())?;
        let text = etw_manifest::write(&made, "Written by `cargo etw package`.");
        let what = "the provider's manifest, for tools that need one";
        files.push((format!("{name}.man"), text.into_bytes(), what));
    }
    if !traced.is_empty() {
        let title = match traced.as_slice() {
            [only] => &only.name,
            _ => name,
        };
        let text = profile_of(&traced, title)?;
        let what = "profiles for Windows Performance Recorder";
        files.push((format!("{name}.wprp"), text.into_bytes(), what));
    }
    Ok(files)
}

/// Returns the commands that trace the driver, for the README.
fn trace(driver: &SelectedDriver) -> Result<String> {
    let declarations = driver.declarations()?;
    let providers = declarations.iter().flat_map(|one| &one.providers);
    let mut lines = Vec::new();
    let session = driver.driver.image.trim_end_matches("_driver");
    for (number, provider) in providers.map(Traced::declared).enumerate() {
        let start = if number == 0 {
            format!("create trace {session} -ow -o {session}.etl")
        } else {
            format!("update trace {session}")
        };
        let (mask, level) = (provider.everything(), provider.highest_level());
        // If the INF file registers the providers, Windows knows their names.
        let has_name = provider.events.iter().any(|event| !event.is_self_describing);
        let name = if has_name && !provider.name.contains(' ') {
            provider.name
        } else {
            format!("\"{{{}}}\"", provider.guid)
        };
        lines.push(format!("logman {start} -p {name} {mask:#x} {level} -ets"));
    }
    if !lines.is_empty() {
        lines.push("rem Use the device.".to_owned());
        lines.push(format!("logman stop {session} -ets"));
        lines.push(format!("tracerpt {session}.etl -o {session}.xml -of XML -lr"));
    }
    Ok(lines.join("\n"))
}

/// Returns the files of the archive: text files, then the driver's files, then additional files.
fn files(
    matches: &ArgMatches,
    driver: &SelectedDriver,
    made: Made,
    machine: Machine,
) -> Result<Vec<(String, Vec<u8>)>> {
    let texts: Vec<PathBuf> = several(matches, "text");
    let files: Vec<PathBuf> = several(matches, "file");
    let about = optional(matches, "description")?.unwrap_or_else(|| description(driver));
    let notes: Option<PathBuf> = optional(matches, "notes")?;
    let notes = notes.map_or_else(|| Ok(String::new()), |path| read_text(&path))?;
    let mut listed: Vec<(String, String)> =
        made.others.iter().map(|(name, _, what)| (name.clone(), (*what).to_owned())).collect();
    for path in &files {
        let name = name_of(path)?;
        if listed.iter().all(|(known, _)| *known != name) {
            listed.push((name, "an additional file".to_owned()));
        }
    }
    // A WDM driver has no framework that needs a newer system.
    let is_newer = !driver.driver.is_wdm() && framework(driver).minimum > 31;
    let installed = Installed {
        description: &about,
        inf: &made.inf.0,
        image: &made.image.0,
        catalog: &made.catalog.0,
        certificate: &made.certificate.0,
        service: &made.service,
        hardware_ids: &made.hardware_ids,
        files: &listed,
        trace: &trace(driver)?,
        notes: &notes,
        oldest: if is_newer { "Windows 11 or Windows Server 2022" } else { "Windows 10 2004" },
        system: Architecture::from_machine(machine).system,
        catalog_version: catalog_version(matches)?,
    };
    let mut scripts = installed.files();
    let mut own = Vec::new();
    for path in &texts {
        let (name, text) = (name_of(path)?, read_text(path)?);
        match scripts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, script)) => *script = text,
            None => own.push((name, text)),
        }
    }
    let scripts = scripts.into_iter().map(|(name, text)| (name.to_owned(), text));
    let mut all: Vec<(String, Vec<u8>)> = scripts
        .chain(own)
        .map(|(name, text)| (name, archive::windows_lines(&text).into_bytes()))
        .collect();
    all.extend([made.inf, made.image, made.catalog, made.certificate]);
    all.extend(made.others.into_iter().map(|(name, data, _)| (name, data)));
    for path in &files {
        let name = name_of(path)?;
        // A file on the command line replaces the generated one.
        all.retain(|(known, _)| *known != name);
        all.push((name, read(path)?));
    }
    Ok(all)
}

fn name_of(path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned)
        .with_context(|| format!("the file name of {} is not UTF-8", path.display()))
}

fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {} as text", path.display()))
}

#[cfg(test)]
mod tests {
    use driver_package::inf::Encoding;

    use super::*;

    #[test]
    fn an_inf_file_keeps_its_encoding_and_gets_windows_lines() {
        let encoding = Encoding::Utf16 { big_endian: false };
        let source = Source { text: "; M\u{fc}ller\n[A]\r\n".to_owned(), encoding };
        let read = Source::decode(&with_windows_lines(&source)).unwrap();
        assert_eq!(read, Source { text: "; M\u{fc}ller\r\n[A]\r\n".to_owned(), encoding });
    }

    #[test]
    fn the_machine_is_in_the_image() {
        let mut image = vec![0; 0x48];
        image[0x3C] = 0x40;
        image[0x40..0x46].copy_from_slice(&[b'P', b'E', 0, 0, 0x64, 0x86]);
        let path = Path::new("a.sys");
        assert_eq!(machine(&image, path).unwrap(), Machine::X64);
        image[0x45] = 0xAA;
        assert_eq!(machine(&image, path).unwrap(), Machine::Arm64);
        assert!(machine(&image[..0x44], path).is_err());
        assert!(machine(b"MZ", path).is_err());
    }
}
