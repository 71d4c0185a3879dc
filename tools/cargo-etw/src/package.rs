//! `cargo etw package`: builds a driver package for a test machine without the WDK.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result};
use driver_package::{
    archive,
    catalog::{Catalog, Member},
    inf::{self, Stamp},
    sign::Certificate,
};
use jiff::{Timestamp, tz::TimeZone};

use crate::inf::{Driver, check_text};

/// The operating system of the catalog: 64-bit Windows 10 2004 ("Vibranium") and later.
const SYSTEM: &str = "_v100_X64_Vb";
/// The kernel's version.
const KERNEL_VERSION: &str = "2:10.0";

/// The files and settings that a package is built from.
#[derive(Debug)]
pub struct Package {
    /// The driver.
    pub driver: Driver,
    /// The unstamped INF file (`.inx`).
    pub inx: PathBuf,
    /// The driver's version, four numbers.
    pub version: String,
    /// The folder of the test certificate, which also receives the unpacked files.
    pub certificate: PathBuf,
    /// The name in a new certificate.
    pub certificate_name: String,
    /// The driver's description in the signatures.
    pub description: String,
    /// Additional text files, which come first in the archive and get Windows line endings.
    pub texts: Vec<PathBuf>,
    /// Additional files, which come last in the archive.
    pub files: Vec<PathBuf>,
    /// The archive to write.
    pub out: PathBuf,
}

/// Builds the package.
pub fn run(package: &Package) -> Result<()> {
    let service = package.driver.service()?;
    let image = &package.driver.image;
    let now = Timestamp::now();
    let stamped = step("Stamping and checking the INF file", || package.inf(now))?;
    let (signed, catalog, certificate) = step("Signing the driver and its catalog", || {
        let certificate =
            Certificate::find_or_make(&package.certificate, &package.certificate_name)?;
        let signed = package.certificate.join(format!("{service}.sys"));
        certificate.sign_image(&package.description, image, &signed)?;
        let signed = read(&signed)?;
        let catalog = Catalog {
            members: &[
                Member {
                    name: &format!("{service}.inf"),
                    data: stamped.as_bytes(),
                },
                Member {
                    name: &format!("{service}.sys"),
                    data: &signed,
                },
            ],
            hardware_id: &package.driver.hardware_id.to_ascii_lowercase(),
            system: SYSTEM,
            versions: KERNEL_VERSION,
        };
        let time = now.to_zoned(TimeZone::UTC).strftime("%y%m%d%H%M%SZ");
        let catalog = catalog.encode(&time.to_string())?;
        let catalog = certificate.sign_catalog(&package.description, &catalog)?;
        Ok((signed, catalog, certificate.to_der()?))
    })?;
    step("Writing the archive", || {
        let mut files = Vec::new();
        for path in &package.texts {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read {} as text", path.display()))?;
            files.push((name_of(path)?, archive::windows_lines(&text)));
        }
        let name = |extension: &str| format!("{service}.{extension}");
        files.extend([
            (name("inf"), stamped.clone().into_bytes()),
            (name("sys"), signed),
            (name("cat"), catalog),
            (name("cer"), certificate),
            (name("pdb"), read(&image.with_extension("pdb"))?),
        ]);
        for path in &package.files {
            files.push((name_of(path)?, read(path)?));
        }
        Ok(archive::write(&package.out, &service, &files)?)
    })?;
    println!("{}", package.out.display());
    Ok(())
}

impl Package {
    /// Returns the INF file, stamped and checked.
    fn inf(&self, now: Timestamp) -> Result<String> {
        let inx = fs::read_to_string(&self.inx)
            .with_context(|| format!("cannot read {}", self.inx.display()))?;
        let driver: inf::Driver = self.driver.examine()?;
        let (major, minor) = driver.framework;
        let stamp = Stamp {
            architecture: "amd64",
            framework: &format!("{major}.{minor}"),
            // `inf2cat` rejects a date in the future, and uses UTC.
            date: &now.strftime("%m/%d/%Y").to_string(),
            version: &self.version,
        };
        let stamped = stamp.apply(&inx);
        check_text(&stamped, &driver)
            .with_context(|| format!("{} does not install the driver", self.inx.display()))?;
        Ok(stamped)
    }
}

fn name_of(path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned)
        .with_context(|| format!("the file name of {} is not UTF-8", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Runs one step, and prints a line with the time that it took.
fn step<T>(title: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let result = body();
    let mark = if result.is_ok() { "done  " } else { "FAILED" };
    eprintln!("{mark} {title} ({:.1} s)", start.elapsed().as_secs_f32());
    result
}
