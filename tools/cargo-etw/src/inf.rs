//! `cargo etw inf`: INF files, checked against the driver that they install.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use driver_package::inf::{self, Inf};

use crate::manifest;

/// A driver, by the files that describe it.
#[derive(Clone, Debug)]
pub struct Driver {
    /// Its image.
    pub image: PathBuf,
    /// The declaration of its provider.
    pub declaration: PathBuf,
    /// The hardware id of its device.
    pub hardware_id: String,
}

impl Driver {
    /// Returns the service's name, which is that of the image.
    pub fn service(&self) -> Result<String> {
        let name = self.image.file_stem().and_then(|stem| stem.to_str());
        name.map(str::to_owned)
            .with_context(|| format!("{} has no name in UTF-8", self.image.display()))
    }

    /// Loads the image in the stand-in kernel, reads the declaration, and returns what an INF
    /// file has to agree with.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub fn examine(&self) -> Result<inf::Driver> {
        use etw_testkernel::Kernel;

        let service = self.service()?;
        let provider = manifest::provider(&self.declaration)?;
        let kernel = Kernel::new();
        let loaded = kernel
            .load_as(&self.image, &service)
            .with_context(|| format!("cannot load {}", self.image.display()))?;
        let framework = loaded
            .framework_version()
            .context("the driver has ended its binding to the framework")?;
        let device = loaded.add_device()?;
        let sddl = device.sddl()?.with_context(|| {
            format!(
                "{} makes its device without a security descriptor; call WdfDeviceInitAssignSDDLString \
                 before WdfDeviceCreate",
                self.image.display()
            )
        })?;
        device.remove()?;
        loaded.unload()?;
        Ok(inf::Driver {
            image: format!("{service}.sys"),
            service,
            hardware_id: self.hardware_id.clone(),
            framework,
            provider: provider.guid.to_string(),
            provider_name: provider.name,
            sddl,
        })
    }

    /// Fails: the stand-in kernel, which loads the image, does not run here.
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    pub fn examine(&self) -> Result<inf::Driver> {
        manifest::provider(&self.declaration)?;
        bail!(
            "cannot load {}: the stand-in kernel runs on x86-64 Linux only; on Windows, the WDK's \
             infverif checks INF files",
            self.image.display()
        )
    }
}

/// `inf check`: whether a stamped file installs the driver.
pub fn check(path: &Path, driver: &Driver) -> Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    check_text(&text, &driver.examine()?)
        .with_context(|| format!("{} does not install the driver", path.display()))?;
    println!("{} fits {}", path.display(), driver.image.display());
    Ok(())
}

/// Fails if a stamped file does not install the driver, with every finding.
pub fn check_text(text: &str, driver: &inf::Driver) -> Result<()> {
    let findings = inf::check(&Inf::read(text)?, driver);
    if !findings.is_empty() {
        bail!("the INF file breaks these rules:\n{}", findings.join("\n"));
    }
    Ok(())
}
