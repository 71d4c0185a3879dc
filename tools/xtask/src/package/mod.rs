//! `cargo xtask package`: the driver package for a test machine, as far as it can be made
//! without the WDK.

mod catalog;
mod sign;

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use etw_sample_interface::PROVIDER_NAME;
use etw_sample_interface::{HARDWARE_ID, SERVICE};
use jiff::{Timestamp, tz::TimeZone};
use zip::{ZipWriter, write::SimpleFileOptions};

use self::catalog::{Catalog, Member};
use crate::{
    build::{self, Profile},
    client,
    inf::{self, Inf, Stamp},
    packages,
    process::{root, target},
    progress::step,
    recipes,
    toolchain::{Machine, Toolchain},
};

/// What people read first.
const README: &str = include_str!("README.txt");
/// Prepares the machine.
const PREPARE: &str = include_str!("prepare.cmd");
/// Installs the driver.
const INSTALL: &str = include_str!("install.cmd");
/// Undoes what prepared the machine.
const RESTORE: &str = include_str!("restore.cmd");

/// The operating system of the catalog: 64-bit Windows 10 2004 ("Vibranium") and later.
const SYSTEM: &str = "_v100_X64_Vb";
/// The kernel's version.
const KERNEL_VERSION: &str = "2:10.0";

/// Where packages are made.
pub fn folder() -> PathBuf {
    target().join("package")
}

/// The package.
pub fn archive() -> PathBuf {
    folder().join(format!("{SERVICE}-{}-x64.zip", env!("CARGO_PKG_VERSION")))
}

/// The signing tool's version, if it is there.
pub fn signer() -> Option<String> {
    sign::version()
}

/// Returns the packages of the signing tools that are not installed.
pub fn missing_packages() -> Vec<&'static str> {
    sign::missing_packages()
}

/// What the driver says of itself: its image is loaded in the stand-in kernel, and its
/// declaration read.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub fn driver(image: &Path) -> Result<inf::Driver> {
    use etw_testkernel::Kernel;

    let provider = recipes::declaration()?;
    let kernel = Kernel::new();
    let loaded = kernel.load_as(image, SERVICE)?;
    let framework = loaded
        .framework_version()
        .context("the driver has ended its binding to the framework")?;
    let device = loaded.add_device()?;
    let sddl = device.sddl()?;
    device.remove()?;
    loaded.unload()?;
    if provider.name != PROVIDER_NAME {
        bail!(
            "the declaration's provider is {}, and the interface's {PROVIDER_NAME}",
            provider.name
        );
    }
    Ok(inf::Driver {
        image: format!("{SERVICE}.sys"),
        service: SERVICE.to_owned(),
        hardware_id: HARDWARE_ID.to_owned(),
        framework,
        provider: provider.guid.to_string(),
        provider_name: provider.name,
        sddl: sddl.unwrap_or_default(),
    })
}

/// Fails: no chore comes here where the stand-in kernel does not run.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub fn driver(image: &Path) -> Result<inf::Driver> {
    bail!(
        "cannot load {}: the stand-in kernel runs on x86-64 Linux only",
        image.display()
    )
}

/// The INF that belongs to a driver, stamped and checked.
fn inf(driver: &inf::Driver, now: Timestamp) -> Result<String> {
    let path = root().join("inf").join(format!("{SERVICE}.inx"));
    let inx =
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let (major, minor) = driver.framework;
    let stamp = Stamp {
        architecture: "amd64",
        framework: &format!("{major}.{minor}"),
        // `inf2cat` refuses a date that is not there yet, and counts in UTC.
        date: &now.strftime("%m/%d/%Y").to_string(),
        version: &format!("{}.0", env!("CARGO_PKG_VERSION")),
    };
    let stamped = stamp.apply(&inx);
    check_inf(&stamped, driver)?;
    Ok(stamped)
}

fn check_inf(text: &str, driver: &inf::Driver) -> Result<()> {
    let findings = inf::check(&Inf::read(text)?, driver);
    if !findings.is_empty() {
        bail!("the INF is not right:\n{}", findings.join("\n"));
    }
    Ok(())
}

/// `cargo xtask inf`: checks a stamped INF and the image that it is for.
pub fn run_check(path: &Path, image: &Path) -> Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    check_inf(&text, &driver(image)?)?;
    println!("{} fits {}", path.display(), image.display());
    Ok(())
}

/// Reads a file of the package's.
fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
}

/// Text with Windows' line ends.
fn windows_lines(text: &str) -> Vec<u8> {
    text.replace("\r\n", "\n")
        .replace('\n', "\r\n")
        .into_bytes()
}

/// Makes the package; returns the archive.
pub fn make() -> Result<PathBuf> {
    let toolchain = step("Finding the cross toolchain", || {
        Toolchain::find_or_install(Machine::X64)
    })?;
    step("Installing the signing tools", || {
        packages::install(&missing_packages())
    })?;
    let rust = step(
        "Finding the client's compiler",
        client::find_or_install_compiler,
    )?;
    let image = step("Building the driver", || {
        build::build(&toolchain, build::SAMPLE, Profile::Release)
    })?;
    let client = step("Building the client", || client::build(rust))?;
    let now = Timestamp::now();
    let stamped = step("Stamping and checking the INF", || {
        inf(&driver(&image)?, now)
    })?;
    let files = step("Signing the driver and its catalog", || {
        let certificate = sign::certificate(&folder())?;
        let signed = folder().join(format!("{SERVICE}.sys"));
        certificate.sign_image(&image, &signed)?;
        let signed = read(&signed)?;
        let name = |extension: &str| format!("{SERVICE}.{extension}");
        let catalog = Catalog {
            members: &[
                Member {
                    name: &name("inf"),
                    data: stamped.as_bytes(),
                },
                Member {
                    name: &name("sys"),
                    data: &signed,
                },
            ],
            hardware_id: &HARDWARE_ID.to_ascii_lowercase(),
            system: SYSTEM,
            versions: KERNEL_VERSION,
        };
        let time = now.to_zoned(TimeZone::UTC).strftime("%y%m%d%H%M%SZ");
        let catalog = certificate.sign_catalog(&catalog.encode(&time.to_string())?)?;
        Ok(vec![
            ("README.txt".to_owned(), windows_lines(&readme()?)),
            ("prepare.cmd".to_owned(), windows_lines(PREPARE)),
            ("install.cmd".to_owned(), windows_lines(INSTALL)),
            ("restore.cmd".to_owned(), windows_lines(RESTORE)),
            (name("inf"), stamped.clone().into_bytes()),
            (name("sys"), signed),
            (name("cat"), catalog),
            (name("cer"), certificate.to_der()?),
            (name("pdb"), read(&image.with_extension("pdb"))?),
            (name("man"), read(&root().join("inf").join(name("man")))?),
            (name("wprp"), read(&root().join("inf").join(name("wprp")))?),
            ("etw-sample-client.exe".to_owned(), read(&client)?),
        ])
    })?;
    step("Packing", || pack(&files))
}

/// What people read first, with the mask of all the provider's keywords.
fn readme() -> Result<String> {
    let mask = recipes::every_keyword(&recipes::declaration()?);
    Ok(README.replace("$KEYWORDS$", &format!("{mask:#x}")))
}

fn pack(files: &[(String, Vec<u8>)]) -> Result<PathBuf> {
    let path = archive();
    let file =
        File::create(&path).with_context(|| format!("{} cannot be written", path.display()))?;
    let mut zip = ZipWriter::new(file);
    for (name, data) in files {
        zip.start_file(format!("{SERVICE}/{name}"), SimpleFileOptions::default())?;
        zip.write_all(data)?;
    }
    zip.finish()?;
    Ok(path)
}

/// `cargo xtask package`.
pub fn run() -> Result<()> {
    println!("{}", make()?.display());
    Ok(())
}
