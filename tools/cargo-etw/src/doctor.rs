//! `cargo etw doctor`: lists the requirements for building, running and packaging, and whether this
//! machine and the current driver meet them.

use std::{env, fs, process::Command as Process};

use anyhow::{Result, ensure};
use clap::{ArgMatches, Command};
use driver_build::{
    packages::Program,
    process::{find_program, output_of},
    standin::{REPLACED, Replaced, kmdf_versions},
    toolchain::{Machine, Rust, Toolchain},
};
use serde_json::{Value, json};

use driver_build::progress::step;

use crate::{
    options::{is_json, message_format},
    requirement::Requirement,
    selected_driver::{self, SelectedDriver},
    windows_requirements,
};

/// The programs that sign packages.
const SIGNERS: [Program; 2] = [
    Program { names: &["openssl"], package: "openssl" },
    Program { names: &["osslsigncode"], package: "osslsigncode" },
];

/// The crates of windows-drivers-rs.
const WDK_CRATES: [&str; 6] =
    ["wdk-build", "wdk-sys", "wdk", "wdk-alloc", "wdk-panic", "wdk-macros"];

/// Returns the command line.
pub fn command() -> Command {
    let command = Command::new("doctor")
        .about("List which requirements for building, running and packaging are found and which are missing")
        .arg(message_format());
    selected_driver::arguments(command)
}

/// Returns a command that installs an operating system package.
fn install(package: &str) -> String {
    if cfg!(windows) {
        format!("install {package}, and add its folder to PATH")
    } else if find_program("apt-get").is_some() {
        format!("sudo apt-get install {package}")
    } else {
        format!("install {package} with the system's package manager")
    }
}

/// Returns this machine's requirements.
fn machine() -> Vec<Requirement> {
    let rustup = if cfg!(windows) {
        "download rustup-init.exe from https://rustup.rs and run it"
    } else {
        "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    };
    let mut requirements = vec![
        Requirement::new("Rust", "every command", Rust::Current.version(), rustup),
        toolchain("toolchain for x64", "build, run, package", Machine::X64),
        toolchain("toolchain for ARM64", "build --machine arm64", Machine::Arm64).optional(),
    ];
    let runs = cfg!(all(target_arch = "x86_64", any(target_os = "linux", windows)));
    let host = format!("{} {}", env::consts::ARCH, env::consts::OS);
    requirements.push(
        Requirement::new(
            "stand-in kernel",
            "run, inf check, package",
            runs.then_some(host),
            "use an x86-64 machine with Linux or Windows: the stand-in kernel runs the driver's machine code",
        )
        .optional(),
    );
    for (signer, what) in SIGNERS.iter().zip(["openssl", "osslsigncode"]) {
        let found = signer.path().map(|path| {
            let version = output_of(Process::new(&path).arg(if what == "openssl" {
                "version"
            } else {
                "--version"
            }));
            let first = version.and_then(|text| text.lines().next().map(str::to_owned));
            let first = first.map(|line| line.trim_end_matches(", using:").to_owned());
            first.unwrap_or_else(|| path.display().to_string())
        });
        requirements.push(Requirement::new(what, "package", found, &install(signer.package)));
    }
    let git = output_of(Process::new("git").arg("--version"));
    requirements.push(Requirement::new("git", "manifest check", git, &install("git")).optional());
    if cfg!(windows) {
        requirements.extend(windows_requirements::list(&windows_requirements::ThisMachine));
    }
    requirements
}

fn toolchain(what: &'static str, needed_by: &'static str, machine: Machine) -> Requirement {
    let found = Toolchain::find(machine).map(|toolchain| toolchain.describe());
    let remedy = Toolchain::how_to_install(machine);
    Requirement::new(what, needed_by, found, &remedy)
}

/// Returns the versions of the WDK crates in a lock file.
fn locked(lock: &str) -> Vec<(String, String)> {
    let value = |line: &str, key: &str| {
        let text = line.strip_prefix(key)?.trim_start().strip_prefix('=')?;
        Some(text.trim().trim_matches('"').to_owned())
    };
    let mut found = Vec::new();
    let mut name = String::new();
    for line in lock.lines() {
        if let Some(text) = value(line, "name") {
            name = text;
        } else if let Some(version) = value(line, "version")
            && WDK_CRATES.contains(&name.as_str())
        {
            found.push((name.clone(), version));
        }
    }
    found
}

/// Returns the driver's requirements.
fn driver(driver: &SelectedDriver) -> Vec<Requirement> {
    let package = &driver.driver;
    let mut requirements = vec![Requirement::new(
        "driver",
        "every command",
        Some(format!(
            "{} {} ({}.sys), {}",
            package.package,
            package.version,
            package.image,
            package.manifest.display()
        )),
        "",
    )];
    requirements.push(framework(driver));
    requirements.push(crates(driver));
    let declared = driver.declarations();
    let (found, remedy) = match &declared {
        Ok(all) if all.is_empty() => (
            None,
            "declare a provider with #[wdk_etw::provider]; docs/instrument-your-driver.md shows how"
                .to_owned(),
        ),
        Ok(all) => {
            let names: Vec<String> = all
                .iter()
                .flat_map(|one| one.providers.iter().map(|it| (it, driver.named(&one.path))))
                .map(|(provider, path)| format!("{} in {path}", provider.name))
                .collect();
            (Some(names.join(", ")), String::new())
        }
        Err(error) => (None, format!("{error:#}")),
    };
    let mut requirement =
        Requirement::new("declaration", "manifest, recipes, package", found, &remedy);
    // A driver without providers can be built and packaged, unlike a driver with a broken
    // declaration.
    requirement.is_optional = declared.is_ok();
    requirements.push(requirement);
    if let Ok(Some(remedy)) = driver.missing_resources() {
        requirements
            .push(Requirement::new("event resources", "run, package, Windows", None, &remedy));
    }
    let inf = driver.inf();
    let (found, remedy) = match &inf {
        Ok(found) => {
            (found.as_ref().map(|path| driver.named(path)), "cargo etw inf new".to_owned())
        }
        Err(error) => (None, format!("{error:#}")),
    };
    requirements
        .push(Requirement::new("INF file", "inf check, package", found, &remedy).optional());
    requirements
}

/// Returns the framework version in the driver's metadata, if it is supported.
fn framework(driver: &SelectedDriver) -> Requirement {
    if let Err(error) = driver.driver.check_model() {
        return Requirement::new("KMDF", "build, run", None, &error.to_string());
    }
    if driver.driver.is_wdm() {
        let found = Some("WDM, without a framework".to_owned());
        return Requirement::new("driver model", "build, run", found, "");
    }
    let Some(version) = driver.driver.framework else {
        let remedy = format!(
            "add [package.metadata.wdk.driver-model] with driver-type = \"KMDF\", \
             kmdf-version-major = 1 and target-kmdf-version-minor = 31, or another of {}, to the \
             driver's Cargo.toml",
            kmdf_versions()
        );
        return Requirement::new("KMDF", "build", None, &remedy);
    };
    let mut text = format!("{}.{}", version.major, version.target);
    if version.minimum != version.target {
        text = format!("{text}, at least {}.{}", version.major, version.minimum);
    }
    Requirement::new("KMDF", "build", Some(text), "")
}

/// Returns the versions of the WDK crates that the driver uses, if they are supported.
fn crates(driver: &SelectedDriver) -> Requirement {
    let supported = REPLACED.map(|one| format!("{} {}", one.name, one.version)).join(", ");
    let lock = driver.driver.workspace.join("Cargo.lock");
    let Ok(lock) = fs::read_to_string(lock) else {
        let found = Some(format!("no Cargo.lock yet; {supported} are supported"));
        return Requirement::new("WDK crates", "build", found, "");
    };
    let found = locked(&lock);
    let is_supported = |name: &str, version: &str| {
        REPLACED.iter().all(|one| one.name != name) || Replaced::find(name, version).is_some()
    };
    let names = |all: Vec<&(String, String)>| {
        let all: Vec<String> =
            all.iter().map(|(name, version)| format!("{name} {version}")).collect();
        all.join(", ")
    };
    let others: Vec<_> =
        found.iter().filter(|(name, version)| !is_supported(name, version)).collect();
    if found.is_empty() {
        let remedy = format!("the driver's Cargo.lock has none; {supported} are supported");
        return Requirement::new("WDK crates", "build", None, &remedy);
    }
    if others.is_empty() {
        let all = names(found.iter().collect());
        return Requirement::new("WDK crates", "build", Some(all), "");
    }
    let remedy = format!(
        "the driver uses {}; without the WDK, {supported} are supported: run `cargo update` or \
    change the version in Cargo.toml",
        names(others)
    );
    Requirement::new("WDK crates", "build", None, &remedy)
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let mut requirements = step("Looking for the tools", || Ok(machine()))?;
    match SelectedDriver::select(matches) {
        Ok(selected) => requirements.extend(driver(&selected)),
        // The machine can be checked in any folder, unless the command line names a driver.
        Err(error) if matches.contains_id("package") || matches.contains_id("manifest-path") => {
            return Err(error);
        }
        Err(error) => {
            let remedy = format!("{error:#}");
            requirements
                .push(Requirement::new("driver", "every command", None, &remedy).optional());
        }
    }
    let missing = requirements.iter().filter(|one| one.is_needed()).count();
    if is_json(matches)? {
        let message = json!({
            "reason": "doctor",
            "success": missing == 0,
            "findings": requirements.iter().map(in_json).collect::<Vec<_>>(),
        });
        println!("{message}");
    } else {
        print(&requirements);
    }
    ensure!(missing == 0, "{missing} of {} requirements are missing", requirements.len());
    Ok(())
}

fn in_json(requirement: &Requirement) -> Value {
    json!({
        "what": requirement.what,
        "needed_by": requirement.needed_by,
        "found": requirement.found,
        "remedy": requirement.found.is_none().then_some(&requirement.remedy),
        "optional": requirement.is_optional,
    })
}

fn print(requirements: &[Requirement]) {
    for requirement in requirements {
        let what = requirement.what;
        if let Some(found) = &requirement.found {
            println!("found    {what:<20} {found}");
        } else {
            let mark = if requirement.is_optional { "optional" } else { "missing " };
            println!("{mark} {what:<20} needed by {}", requirement.needed_by);
            println!("{:>9}{:<20} {}", "", "", requirement.remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_a_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"anyhow\"\nversion = \"1.0.0\"\n\n\
                    [[package]]\nname = \"wdk-sys\"\nversion = \"0.5.2\"\n\
                    [[package]]\nname = \"wdk-build\"\nversion = \"0.4.0\"\n";
        let found = locked(lock);
        let pair = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(found, [pair("wdk-sys", "0.5.2"), pair("wdk-build", "0.4.0")]);
    }

    #[test]
    fn something_optional_is_not_needed() {
        let missing = Requirement::new("x", "build", None, "install x");
        assert!(missing.is_needed());
        assert!(!missing.optional().is_needed());
        assert!(!Requirement::new("x", "build", Some("1".to_owned()), "").is_needed());
    }
}
