//! `cargo etw inf`: checks INF files against the driver that they install.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use driver_package::inf::{self, Inf};

use crate::manifest;

/// The files and the hardware id that describe a driver.
#[derive(Clone, Debug)]
pub struct Driver {
    /// The driver's image.
    pub image: PathBuf,
    /// The source file with the provider's declaration.
    pub declaration: PathBuf,
    /// The device's hardware id.
    pub hardware_id: String,
}

impl Driver {
    /// Returns the service's name, which is the image's name without its extension.
    pub fn service(&self) -> Result<String> {
        let name = self.image.file_stem().and_then(|stem| stem.to_str());
        name.map(str::to_owned)
            .with_context(|| format!("the file name of {} is not UTF-8", self.image.display()))
    }

    /// Loads the image in the stand-in kernel, reads the declaration, and returns the values that
    /// an INF file must match.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub fn examine(&self) -> Result<inf::Driver> {
        let kernel = etw_testkernel::Kernel::new();
        // After an error, the driver may still be loaded.
        self.examine_in(&kernel)
            .inspect_err(|_| kernel.leave_behind())
    }

    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn examine_in(&self, kernel: &etw_testkernel::Kernel) -> Result<inf::Driver> {
        let service = self.service()?;
        let provider = manifest::provider(&self.declaration)?;
        let loaded = kernel
            .load_as(&self.image, &service)
            .with_context(|| format!("cannot load {}", self.image.display()))?;
        let framework = loaded.framework_version().with_context(|| {
            format!(
                "{} called WdfVersionUnbind before it was unloaded; call it only during unload",
                self.image.display()
            )
        })?;
        let device = loaded.add_device()?;
        let sddl = device.sddl()?.with_context(|| {
            format!(
                "{} creates its device without a security descriptor; call WdfDeviceInitAssignSDDLString \
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

    /// Fails, because the stand-in kernel, which loads the image, does not run on this system.
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

/// `inf check`: checks that a stamped file installs the driver.
pub fn check(path: &Path, driver: &Driver) -> Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    check_text(&text, &driver.examine()?)
        .with_context(|| format!("{} does not install the driver", path.display()))?;
    println!("{} installs {}", path.display(), driver.image.display());
    Ok(())
}

/// Fails with every finding if a stamped file does not install the driver.
pub fn check_text(text: &str, driver: &inf::Driver) -> Result<()> {
    let findings = inf::check(&Inf::read(text)?, driver);
    if !findings.is_empty() {
        bail!("the INF file breaks these rules:\n{}", findings.join("\n"));
    }
    Ok(())
}
