//! The guest that stands in for Windows in the tests of `cargo etw vm`: QEMU, with a Linux kernel
//! and busybox from Debian packages that are unpacked but not installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use driver_build::files;

use crate::{
    packages::{self, Program},
    process::{output_of, run_quietly, target},
};

/// QEMU for PCs.
const QEMU: Program = Program { names: &["qemu-system-x86_64"], package: "qemu-system-x86" };

/// The program with which `cargo etw vm` writes CD images.
const XORRISO: Program = Program { names: &["xorriso"], package: "xorriso" };

/// The package that depends on the current kernel; the cloud kernel does not support SATA.
const KERNEL: &str = "linux-image-amd64";
/// The package of a statically linked busybox.
const BUSYBOX: &str = "busybox-static";

/// The kernel modules that the guest loads, and their dependencies.
const MODULES: &str = "ahci cdrom crc-t10dif crc64 crc64-rocksoft crct10dif_common crct10dif_generic \
                       fat isofs libahci libata nls_ascii nls_cp437 nls_iso8859-1 pvpanic pvpanic-pci \
                       scsi_common scsi_mod sd_mod sr_mod t10-pi vfat";

/// The file with the uncompressed kernel.
const UNCOMPRESSED: &str = "vmlinux";

/// Returns the folder that contains the kernel, its modules and busybox.
pub fn folder() -> PathBuf {
    target().join("guest")
}

/// Returns the missing packages that are needed to run the guest.
pub fn missing_packages() -> Vec<&'static str> {
    [QEMU, XORRISO].iter().filter_map(Program::missing).collect()
}

/// Returns the versions of QEMU and the kernel, if both are found.
pub fn version() -> Option<String> {
    XORRISO.path()?;
    let said = output_of(Command::new(QEMU.path()?).arg("--version"))?;
    let qemu = said.lines().next()?.to_owned();
    let kernel = fs::read_to_string(stamp()).ok()?;
    Some(format!("{qemu}, {}", kernel.trim()))
}

/// Installs UEFI firmware for virtual machines, unless it is found.
pub fn find_firmware() -> Result<()> {
    const CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
    if Path::new(CODE).exists() {
        return Ok(());
    }
    packages::install(&["ovmf"])
}

/// The file with the names of the unpacked packages, which is written last.
fn stamp() -> PathBuf {
    folder().join("packages.txt")
}

/// Downloads and unpacks the kernel and busybox, unless that is already done.
pub fn fetch() -> Result<()> {
    if !stamp().exists() {
        fetch_packages()?;
    }
    if !folder().join(UNCOMPRESSED).exists() {
        uncompress_kernel()?;
    }
    Ok(())
}

fn fetch_packages() -> Result<()> {
    let kernel = kernel_package()?;
    let folder = folder();
    let unpacked = folder.join("unpacked");
    let _ = fs::remove_dir_all(&folder);
    files::create_dir_all(&unpacked)?;
    run_quietly(Command::new("apt-get").current_dir(&folder).args(["download", &kernel, BUSYBOX]))
        .with_context(|| format!("cannot download {kernel} and {BUSYBOX}"))?;
    let mut wanted = vec!["*/boot/vmlinuz-*".to_owned()];
    wanted.extend(MODULES.split(' ').map(|name| format!("*/{name}.ko*")));
    let found = unpack(&folder, &kernel, &unpacked, &wanted)?;
    let modules = folder.join("modules");
    files::create_dir_all(&modules)?;
    let mut has_kernel = false;
    for path in found {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("vmlinuz") {
            files::rename(&path, folder.join("vmlinuz"))?;
            has_kernel = true;
            continue;
        }
        // Newer kernels have compressed modules.
        let plain = name.strip_suffix(".xz");
        if plain.is_some() {
            run_quietly(Command::new("xz").arg("--decompress").arg(&path))?;
        }
        let plain = plain.unwrap_or(&name);
        files::rename(path.with_file_name(plain), modules.join(plain))?;
    }
    ensure!(has_kernel, "the package {kernel} has no kernel");
    let found = unpack(&folder, BUSYBOX, &unpacked, &["*/bin/busybox".to_owned()])?;
    let busybox = found.first().with_context(|| format!("the package {BUSYBOX} has no busybox"))?;
    files::rename(busybox, folder.join("busybox"))?;
    files::remove_dir_all(&unpacked)?;
    files::write(stamp(), format!("{kernel}, {BUSYBOX}\n"))
}

/// Returns the package of the current kernel.
fn kernel_package() -> Result<String> {
    // This updates the package lists, which may contain packages that have been removed from the
    // archive.
    packages::candidate(KERNEL)?;
    let said = output_of(Command::new("apt-cache").args(["depends", KERNEL]).env("LC_ALL", "C"));
    kernel_of(&said.unwrap_or_default())
        .with_context(|| format!("the package {KERNEL} depends on no kernel"))
}

/// Uncompresses the kernel, because that takes most of a start in QEMU without an accelerator. The tests
/// start the compressed kernel if this machine cannot uncompress it.
fn uncompress_kernel() -> Result<()> {
    let compressed = folder().join("kernel.xz");
    let kernel = files::read(folder().join("vmlinuz"))?;
    let Some(payload) = payload(&kernel).filter(|payload| payload.starts_with(b"\xFD7zXZ\0"))
    else {
        return Ok(());
    };
    files::write(&compressed, payload)?;
    // The kernel's size follows the stream.
    let mut xz = Command::new("xz");
    xz.args(["--decompress", "--single-stream"]).arg(&compressed);
    match run_quietly(&mut xz) {
        Ok(()) => files::rename(folder().join("kernel"), folder().join(UNCOMPRESSED)),
        Err(_) => fs::remove_file(compressed).context("cannot remove the compressed kernel"),
    }
}

/// Returns the compressed kernel in a file that a boot loader reads, according to "The Linux/x86 Boot
/// Protocol" (the fields `setup_sects`, `payload_offset` and `payload_length`).
fn payload(kernel: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| {
        let bytes = kernel.get(at..)?.first_chunk()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    };
    let setup = (usize::from(*kernel.get(0x1F1)?) + 1) * 512;
    let start = setup.checked_add(number(0x248)?)?;
    kernel.get(start..start.checked_add(number(0x24C)?)?)
}

/// Returns the kernel package in the output of `apt-cache depends`.
fn kernel_of(depends: &str) -> Option<String> {
    depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with("linux-image-"))
        .map(str::to_owned)
}

/// Unpacks files from a package after downloading it, and removes the package. Returns the files'
/// paths.
fn unpack(folder: &Path, package: &str, to: &Path, wanted: &[String]) -> Result<Vec<PathBuf>> {
    let start = format!("{package}_");
    let entries = files::read_dir(folder)?;
    let deb = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with(&start) && path.extension().is_some_and(|own| own == "deb")
        })
        .with_context(|| format!("apt-get did not download {package}"))?;
    let mut archive = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&deb)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run dpkg-deb")?;
    let input = archive.stdout.take().context("dpkg-deb has no output")?;
    // tar fails if a pattern matches nothing, and kernels have different modules, so the unpacked
    // files determine the result.
    let unpacked = Command::new("tar")
        .args(["--extract", "--wildcards", "--directory"])
        .arg(to)
        .args(wanted)
        .stdin(input)
        .stderr(Stdio::null())
        .status()
        .context("cannot run tar")?;
    let status = archive.wait().context("cannot run dpkg-deb")?;
    let mut found = Vec::new();
    files(to, &mut found)?;
    if found.is_empty() {
        bail!("cannot unpack {} (dpkg-deb: {status}, tar: {unpacked})", deb.display());
    }
    fs::remove_file(&deb).with_context(|| format!("cannot remove {}", deb.display()))?;
    Ok(found)
}

/// Lists the files of a folder and its subfolders.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = files::read_dir(folder)?;
    for entry in entries {
        let path = entry?.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            files(&path, found)?;
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_what_the_package_depends_on() {
        let said = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n  Suggests: grub\n";
        assert_eq!(kernel_of(said).unwrap(), "linux-image-6.1.0-56-amd64");
        assert_eq!(kernel_of("linux-image-amd64\n"), None);
    }

    #[test]
    fn the_compressed_kernel_follows_the_setup_code() {
        let mut kernel = vec![0; 1024];
        kernel[0x1F1] = 1;
        kernel[0x248] = 2;
        kernel[0x24C] = 3;
        assert_eq!(payload(&kernel), None);
        kernel.extend(b"--xz!tail");
        assert_eq!(payload(&kernel), Some(&b"xz!"[..]));
    }
}
