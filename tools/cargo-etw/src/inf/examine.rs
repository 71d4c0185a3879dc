//! Loads an image in the stand-in kernel, and finds the values that an INF file must match.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The time limit in seconds for loading a driver, adding its device, and unloading it.
const SECONDS: u64 = 60;

/// Examines an image in a separate process, so that a crash of the driver does not end this
/// process.
pub fn examine_apart(image: &Path) -> Result<Value> {
    let program = env::current_exe().context("cannot find the path of this program")?;
    let mut child = Command::new(program)
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
#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
pub fn examine(image: &Path) -> Result<Value> {
    let missing = standin_kernel::run::confine(image)?;
    let kernel = standin_kernel::Kernel::new();
    // After an error, the driver can still be loaded.
    let mut found = examine_in(&kernel, image).inspect_err(|_| kernel.leave_behind())?;
    found["notes"] = missing.into();
    Ok(found)
}

#[cfg(all(target_arch = "x86_64", any(target_os = "linux", windows)))]
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
    Ok(serde_json::json!({
        "framework": framework.map(<[u32; 2]>::from),
        "adds_devices": adds_devices,
        "sddl": sddl,
    }))
}

/// Fails, because the stand-in kernel does not support this system.
#[cfg(not(all(target_arch = "x86_64", any(target_os = "linux", windows))))]
pub fn examine(image: &Path) -> Result<Value> {
    bail!(
        "cannot load {}: the stand-in kernel requires x86-64 Linux or Windows; on Windows, the \
         WDK's infverif also checks INF files",
        image.display()
    )
}
