//! `cargo etw inf check`: checks that an INF file installs the driver.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgMatches};
use driver_build::progress::step;
use driver_package::inf::{self, Diagnostic, Framework, Inf, Mode, Severity, Source, Stamp};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    driver::{driver_version, framework, providers},
    examine::examine_apart,
    source::stamped,
};
use crate::{
    options::{is_json, optional, text},
    selected_driver::SelectedDriver,
};

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
pub fn mode(matches: &ArgMatches, driver: &SelectedDriver) -> Result<Mode> {
    let name: Option<String> = optional(matches, "mode")?;
    Ok(name.as_deref().and_then(Mode::named).or_else(|| driver.inf_mode()).unwrap_or_default())
}

/// Returns the values that the driver's INF file must match. Loads the image, if there is one, in
/// the stand-in kernel; the other values come from the metadata.
pub fn expected(
    driver: &SelectedDriver,
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

/// Checks that a file installs the driver.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let driver = SelectedDriver::select(matches)?;
    let mode = self::mode(matches, &driver)?;
    if let Some(missing) = driver.missing_resources()? {
        eprintln!("warning: {missing}");
    }
    let path = match optional(matches, "inf")? {
        Some(path) => path,
        None => driver.some_inf()?,
    };
    let image = optional(matches, "image")?.or_else(|| driver.image());
    let wanted = optional(matches, "hardware-id")?;
    let expected = self::expected(&driver, image.as_deref(), wanted)?;
    let stamp = Stamp {
        architecture: "amd64",
        framework: &framework(&driver).to_string(),
        date: &Timestamp::now().strftime("%m/%d/%Y").to_string(),
        version: &driver_version(&driver.driver.version)?,
    };
    let text = stamped(&path, &stamp)?;
    let (_, diagnostics, errors) = checked(&path, &text, &expected, mode)?;
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

/// Returns a stamped file, the diagnostics about it, and the number of errors among them.
fn checked(
    path: &Path,
    text: &Source,
    driver: &inf::Driver,
    mode: Mode,
) -> Result<(Inf, Vec<Diagnostic>, usize)> {
    let inf = Inf::read_source(text).with_context(|| format!("cannot read {}", path.display()))?;
    let diagnostics = inf::check(&inf, driver, mode);
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
    Ok((inf, diagnostics, errors))
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
    let (inf, diagnostics, errors) = checked(path, text, driver, mode)?;
    print(path, &diagnostics);
    ensure!(
        errors == 0,
        "{} breaks {}; to check it again, run `cargo etw inf check`",
        path.display(),
        rules(errors)
    );
    Ok(inf)
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
}
